// Takes a matrix of Tpetra, makes it node-aware by one line, and compares the products.
#include <Komvos_NodeAwareCrsMatrix.hpp>
#include <cstdio>

#include "matrix.hpp"

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  auto A = makeMatrix(1000);
  Tpetra::MultiVector<> x(A->getDomainMap(), 1), expected(A->getRangeMap(), 1), y(A->getRangeMap(), 1);
  x.randomize();
  A->apply(x, expected);

  A = Komvos::makeNodeAware(A);

  A->apply(x, y);
  y.update(-1, expected, 1);
  const double difference = y.getVector(0)->norm2();
  if (A->getComm()->getRank() == 0) {
    std::printf("%d ranks, difference %g\n", A->getComm()->getSize(), difference);
  }
  return difference <= 1e-14 ? 0 : 1;
}
