// A complex hierarchical matrix, compiled from the installed definitions where Tpetra has no complex numbers: A times
// A^H is Hermitian, so (x, A A^H x) is |A^H x|^2.
#include <Komvos_TpetraVector_def.hpp>
// Behind it:
#include <Komvos_BoundaryKernels.hpp>
#include <Komvos_HMatrixOperatorFile_def.hpp>
#include <Komvos_MeshGenerators.hpp>
#include <Tpetra_Core.hpp>
#include <complex>
#include <cstdio>

int main(int argc, char** argv) {
  using Complex = std::complex<double>;
  const Tpetra::ScopeGuard scope(&argc, &argv);
  const auto comm = Tpetra::getDefaultComm();
  const Komvos::TriangleMesh mesh = Komvos::sphereMesh(600);
  const Komvos::HelmholtzSingleLayer kernel(mesh, 3);
  const Komvos::ClusterTree tree(centroidsOf(mesh), boxesOf(mesh));
  const Komvos::HMatrixOperator<Complex> A(comm, tree, kernel);
  Tpetra::Vector<Complex> x(A.getDomainMap()), y(A.getDomainMap()), z(A.getRangeMap());
  x.putScalar(Complex(1, 2));
  A.apply(x, y, Teuchos::CONJ_TRANS);
  A.apply(y, z);
  const Complex product = x.dot(z);
  const double square = y.norm2() * y.norm2(), error = std::abs(product - square) / square;
  if (comm->getRank() == 0) {
    std::printf("%d ranks, error %g\n", comm->getSize(), error);
  }
  return error <= 1e-12 ? 0 : 1;
}
