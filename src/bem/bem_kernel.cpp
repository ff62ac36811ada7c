#include "bem/bem_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "Komvos_BoundaryKernels.hpp"

namespace Komvos::Program {

double kernelAccuracy(const BemOptions& options) { return std::min(1e-6, options.accuracy / 100); }

std::unique_ptr<EntryKernel<double>> makeBemKernel(const BemOptions& options, const BemMesh& mesh) {
  BoundaryKernelOptions kernel;
  kernel.accuracy = kernelAccuracy(options);
  if (options.kernel == "laplace-single-layer") {
    return std::make_unique<LaplaceSingleLayer>(mesh.surface, kernel);
  }
  if (options.kernel == "laplace-double-layer") {
    return std::make_unique<LaplaceDoubleLayer>(mesh.surface, -0.5, kernel);
  }
  if (options.kernel == "yukawa") {
    return std::make_unique<YukawaSingleLayer>(mesh.surface, options.kappa, kernel);
  }
  // On the diagonal the mean of 1/r over a disc of the mean area around its centre.
  const double area = std::accumulate(mesh.areas.begin(), mesh.areas.end(), 0.0) / mesh.size();
  return std::make_unique<OneOverDistance>(mesh.centroids, 2 * std::sqrt(std::acos(-1.0) / area));
}

ClusterTree makeClusterTree(const BemOptions& options, const BemMesh& mesh) {
  ClusterOptions cluster;
  cluster.leafSize = options.leafSize;
  cluster.split = options.clusterSplit == "principal-axis" ? ClusterSplit::PrincipalAxis : ClusterSplit::LongestSide;
  const bool points = options.kernel == "one-over-r";
  return ClusterTree(mesh.centroids, points ? std::vector<Box>() : boxesOf(mesh.surface), cluster);
}

HMatrixOptions matrixOptionsOf(const BemOptions& options) {
  HMatrixOptions matrix;
  matrix.eta = options.eta;
  matrix.lowRank.accuracy = options.accuracy;
  matrix.lowRank.approximation = options.approximation == "aca" ? Approximation::Aca : Approximation::AcaPlus;
  matrix.storage = options.storage == "reduced" ? Storage::Reduced : Storage::Whole;
  return matrix;
}

}  // namespace Komvos::Program
