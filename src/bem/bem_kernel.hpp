/// \file bem_kernel.hpp
/// The kernels of `komvos bem`, by name.
#pragma once

#include <memory>

#include "Komvos_ClusterTree.hpp"
#include "Komvos_EntryKernel.hpp"
#include "Komvos_HMatrix.hpp"
#include "bem/bem_mesh.hpp"
#include "bem/bem_options.hpp"

namespace Komvos::Program {

/// Relative error of the integrals: far below that of the matrix.
double kernelAccuracy(const BemOptions& options);

/// Any but helmholtz.
std::unique_ptr<EntryKernel<double>> makeBemKernel(const BemOptions& options, const BemMesh& mesh);

ClusterTree makeClusterTree(const BemOptions& options, const BemMesh& mesh);

HMatrixOptions matrixOptionsOf(const BemOptions& options);

}  // namespace Komvos::Program
