// NodeAwareImport in the place of Tpetra::Import, for programs that exchange ghosts themselves.
//
// Values go from an owned map to an overlapping one and back. The ghosts are those of Tpetra bit by bit. Sums may
// differ in the last digits: here the route fixes their order.
//
//   mpirun -n 4 ./02_import
#include <Komvos_NodeAwareImport.hpp>
#include <algorithm>
#include <cstdio>

#include "laplacian.hpp"

namespace {

double largestDifference(const Tpetra::MultiVector<>& a, const Tpetra::MultiVector<>& b) {
  Tpetra::MultiVector<> difference(a, Teuchos::Copy);
  difference.update(-1, b, 1);
  Teuchos::Array<double> norms(a.getNumVectors());
  difference.normInf(norms());
  return *std::max_element(norms.begin(), norms.end());
}

}  // namespace

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  const auto matrix = example::laplacian(30, example::cyclicRows(30));
  const auto owned = matrix->getDomainMap(), overlapping = matrix->getColMap();
  Tpetra::MultiVector<> x(owned, 3), xTpetra(overlapping, 3), xKomvos(overlapping, 3);
  x.randomize();

  const Tpetra::Import<> import(owned, overlapping);
  const Komvos::NodeAwareImport<> halo(import);  // collective; keep it as long as the Import

  xTpetra.doImport(x, import, Tpetra::INSERT);
  halo.doImport(x, xKomvos, Tpetra::INSERT);
  const double ghosts = largestDifference(xTpetra, xKomvos);

  Tpetra::MultiVector<> yTpetra(owned, 3), yKomvos(owned, 3);
  yTpetra.doExport(xTpetra, import, Tpetra::ADD_ASSIGN);
  halo.doExport(xKomvos, yKomvos, Tpetra::ADD_ASSIGN);
  const double sums = largestDifference(yTpetra, yKomvos);

  if (owned->getComm()->getRank() == 0) {
    std::printf("%d ranks: ghosts differ by %g, sums by %g\n", owned->getComm()->getSize(), ghosts, sums);
  }
  return ghosts == 0 && sums < 1e-13 ? 0 : 1;
}
