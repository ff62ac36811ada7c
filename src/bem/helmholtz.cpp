#include "bem/helmholtz.hpp"

#include <Kokkos_Core.hpp>
#include <cmath>
#include <complex>

#include "Komvos_BoundaryKernels.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_KokkosShim.hpp"
#include "bem/bem_kernel.hpp"
#include "bem/set_up_progress.hpp"

namespace Komvos::Program {

namespace {

using Complex = std::complex<double>;
using Space = Kokkos::DefaultExecutionSpace;
using ComplexMatrix = HMatrix<Complex, Space>;
using Vectors = Kokkos::View<Kokkos::complex<double>**, Kokkos::LayoutLeft, ComplexMatrix::memory_space>;

ErrorEstimate estimateError(const ComplexMatrix& matrix, const EntryKernel<Complex>& kernel) {
  const int n = matrix.numRows();
  const Vectors x("Komvos::Program::x", n, errorVectors), y("Komvos::Program::y", n, errorVectors);
  const auto host = Kokkos::create_mirror_view(x);
  for (int vector = 0; vector < errorVectors; ++vector) {
    for (int j = 0; j < n; ++j) {
      host(j, vector) = errorSign(j, vector);
    }
  }
  Kokkos::deep_copy(x, host);
  matrix.multiply(Space(), x, y);
  Impl::fence(Space(), "Komvos::Program::estimateError: multiplied before y is read");
  Kokkos::deep_copy(host, y);
  const std::vector<int> rows = errorRows(n);
  std::vector<Complex> product;
  for (const int row : rows) {
    for (int vector = 0; vector < errorVectors; ++vector) {
      product.emplace_back(host(row, vector).real(), host(row, vector).imag());
    }
  }
  const ErrorSums sums = errorSums(kernel, n, rows, product);
  return {std::sqrt(sums.difference / sums.all), static_cast<int>(rows.size()), errorVectors};
}

}  // namespace

std::vector<Block> measureHelmholtz(const BemOptions& options, const BemMesh& mesh, MPI_Comm comm, bool showProgress,
                                    BemReport& report) {
  const double start = MPI_Wtime();
  BoundaryKernelOptions accuracy;
  accuracy.accuracy = kernelAccuracy(options);
  const HelmholtzSingleLayer kernel(mesh.surface, options.wavenumber, accuracy);
  const ClusterTree tree = makeClusterTree(options, mesh);
  report.depth = tree.depth();
  SetUpProgress progress(showProgress);
  const ComplexMatrix matrix(tree, tree, kernel, progress.listening(matrixOptionsOf(options)));
  progress.clear();
  report.setupSeconds = MPI_Wtime() - start;
  report.isComplex = true;
  static_cast<HMatrixReport&>(report.matrix) = matrix.report();
  report.matrix.bytesOfRank = {matrix.report().bytes};
  report.matrix.gatheredOfRank = report.matrix.sentBackOfRank = {0};
  report.error = estimateError(matrix, kernel);
  const Vectors x("Komvos::Program::x", mesh.size(), 1), y("Komvos::Program::y", mesh.size(), 1);
  Kokkos::deep_copy(x, Kokkos::complex<double>(1, 0));
  report.products = timeProducts(comm, matrix.bytesRead(), options.products, [&] {
    matrix.multiply(Space(), x, y);
    Impl::fence(Space(), "Komvos::Program::measureHelmholtz: a product is timed to its end");
  });
  return matrix.blocks();
}

}  // namespace Komvos::Program
