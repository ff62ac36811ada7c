// MueLu with Komvos' coarse solver, from an installed Komvos: one level, so the preconditioner is the inverse.
#include <Komvos_MueLuPreconditioner.hpp>
#include <cstdio>

#include "matrix.hpp"

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  const auto A = makeMatrix(100);
  Tpetra::MultiVector<> x(A->getDomainMap(), 1), b(A->getRangeMap(), 1), y(A->getDomainMap(), 1);
  x.randomize();
  A->apply(x, b);
  Teuchos::ParameterList parameters;
  const auto inverse = Komvos::createMueLuPreconditioner(A, parameters);
  inverse->apply(b, y);
  y.update(-1, x, 1);
  const double error = y.getVector(0)->norm2();
  if (A->getComm()->getRank() == 0) {
    std::printf("%d ranks, error %g\n", A->getComm()->getSize(), error);
  }
  return error <= 1e-10 ? 0 : 1;
}
