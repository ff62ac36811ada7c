// Tpetra need not be compiled for complex vectors; here it is.
#include "Komvos_TpetraVector_def.hpp"
// Behind it:
#include <complex>

#include "Komvos_BoundaryKernels.hpp"
#include "Komvos_HMatrixOperatorFile_def.hpp"
#include "bem/bem_kernel.hpp"
#include "bem/helmholtz.hpp"
#include "bem/measured_matrix.hpp"

namespace Komvos::Program {

std::vector<Block> measureHelmholtz(const BemOptions& options, const BemMesh& mesh, const CommPtr& comm,
                                    const ExchangeOptions& exchange, bool showProgress, BemReport& report) {
  const double start = MPI_Wtime();
  BoundaryKernelOptions accuracy;
  accuracy.accuracy = kernelAccuracy(options);
  const HelmholtzSingleLayer kernel(mesh.surface, options.wavenumber, accuracy);
  const auto A = makeMeasuredMatrix<std::complex<double>>(options, makeClusterTree(options, mesh), kernel, comm,
                                                          exchange, showProgress, start, report);
  report.isComplex = true;
  return A->blocks();
}

}  // namespace Komvos::Program
