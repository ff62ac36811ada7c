/// \file boundary_matrix_test.cpp
/// Hierarchical matrices of boundary elements: every kernel on every shape keeps the accuracy that was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_BoundaryKernels.hpp"
#include "Komvos_DeviceKernels.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_MeshGenerators.hpp"

namespace Komvos {
namespace {

using Space = Kokkos::DefaultExecutionSpace;

struct Shape {
  std::string name;
  TriangleMesh mesh;
};
std::vector<Shape> shapes() {
  return {{"sphere", sphereMesh(600)}, {"cylinder", cylinderMesh(600, 1, 6)}, {"two spheres", twoSpheresMesh(600)}};
}

/// || A - H || / || A || in the Frobenius norm, entry by entry.
template <class Scalar>
double frobeniusError(const HMatrix<Scalar, Space>& matrix, const std::vector<Scalar>& dense, int n) {
  using Value = typename HMatrix<Scalar, Space>::value_type;
  using Vectors = Kokkos::View<Value**, Kokkos::LayoutLeft, typename HMatrix<Scalar, Space>::memory_space>;
  const Vectors unit("unit", n, n), y("y", n, n);
  const auto host = Kokkos::create_mirror_view(unit), out = Kokkos::create_mirror_view(y);
  for (int i = 0; i < n; ++i) {
    host(i, i) = 1;
  }
  Kokkos::deep_copy(unit, host);
  matrix.multiply(Space(), unit, y);
  Space().fence();
  Kokkos::deep_copy(out, y);
  double difference = 0, all = 0;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      const std::complex<double> exact = dense[static_cast<std::size_t>(j) * n + i];
      difference += std::norm(std::complex<double>(static_cast<Scalar>(out(i, j))) - exact);
      all += std::norm(exact);
    }
  }
  return std::sqrt(difference / all);
}

/// `make(mesh, accuracy of entries)` gives the kernel.
template <class Scalar, class Make>
void expectAccurate(const Make& make, const std::vector<Storage>& storages) {
  for (const Shape& shape : shapes()) {
    const int n = shape.mesh.numTriangles();
    const ClusterTree tree(centroidsOf(shape.mesh), boxesOf(shape.mesh), {20});
    for (const double accuracy : {1e-3, 1e-4, 1e-6, 1e-8, 1e-10}) {
      const auto kernel = make(shape.mesh, std::min(1e-8, 0.01 * accuracy));
      std::vector<int> all(n);
      for (int i = 0; i < n; ++i) {
        all[i] = i;
      }
      std::vector<Scalar> dense(static_cast<std::size_t>(n) * n);
      kernel.block(all.data(), n, all.data(), n, dense.data());
      for (const Storage storage : storages) {
        HMatrixOptions options;
        options.lowRank.accuracy = accuracy;
        options.lowRank.approximation = storage == Storage::Whole ? Approximation::AcaPlus : Approximation::Aca;
        options.storage = storage;
        const HMatrix<Scalar, Space> matrix(tree, tree, kernel, options);
        EXPECT_LE(frobeniusError(matrix, dense, n), accuracy)
            << shape.name << ", " << accuracy << (storage == Storage::Whole ? "" : ", reduced");
        EXPECT_LE(matrix.report().compression, 1.0);
      }
    }
  }
}

const std::vector<Storage> both{Storage::Whole, Storage::Reduced};

TEST(BoundaryMatrix, ofTheLaplaceSingleLayerIsAccurate) {
  expectAccurate<double>(
      [](const TriangleMesh& mesh, double accuracy) { return LaplaceSingleLayer(mesh, {accuracy}); }, both);
}

TEST(BoundaryMatrix, ofTheLaplaceDoubleLayerIsAccurate) {
  expectAccurate<double>(
      [](const TriangleMesh& mesh, double accuracy) { return LaplaceDoubleLayer(mesh, -0.5, {accuracy}); }, both);
}

TEST(BoundaryMatrix, ofTheYukawaPotentialIsAccurate) {
  expectAccurate<double>(
      [](const TriangleMesh& mesh, double accuracy) { return YukawaSingleLayer(mesh, 2.0, {accuracy}); }, both);
}

TEST(BoundaryMatrix, ofWavesIsAccurate) {
  expectAccurate<std::complex<double>>(
      [](const TriangleMesh& mesh, double accuracy) { return HelmholtzSingleLayer(mesh, 2.0, {accuracy}); },
      {Storage::Whole});
}

TEST(BoundaryMatrix, ofInverseDistancesIsAccurate) {
  expectAccurate<double>([](const TriangleMesh& mesh, double) { return OneOverDistance(centroidsOf(mesh), 10.0); },
                         both);
}

using Memory = Space::memory_space;

TEST(BoundaryMatrix, takesDenseBlocksFromTheDeviceWhereTheKernelCan) {
  const TriangleMesh mesh = sphereMesh(600);
  const int n = mesh.numTriangles();
  const ClusterTree tree(centroidsOf(mesh), boxesOf(mesh), {20});
  const auto onHost = std::make_shared<LaplaceSingleLayer>(mesh);
  std::vector<int> all(n);
  for (int i = 0; i < n; ++i) {
    all[i] = i;
  }
  std::vector<double> dense(static_cast<std::size_t>(n) * n);
  onHost->block(all.data(), n, all.data(), n, dense.data());
  // Twice as large on the device: so it is seen which entries come from there.
  struct Doubled : LaplaceSingleLayerEntry<Memory> {
    using LaplaceSingleLayerEntry<Memory>::LaplaceSingleLayerEntry;
    KOKKOS_FUNCTION double operator()(int i, int j) const {
      return 2 * LaplaceSingleLayerEntry<Memory>::operator()(i, j);
    }
  };
  HMatrixOptions options;
  options.storage = Storage::Whole;
  const HMatrix<double, Space> same(
      tree, tree, withDevice<double>(onHost, LaplaceSingleLayerEntry<Memory>(mesh)), options);
  EXPECT_LE(frobeniusError(same, dense, n), 1e-4);
  const HMatrix<double, Space> doubled(tree, tree, withDevice<double>(onHost, Doubled(mesh)), options);
  for (const Block& block : doubled.blocks()) {
    for (int r = block.rowBegin; r < block.rowEnd && !block.isAdmissible; ++r) {
      for (int c = block.columnBegin; c < block.columnEnd; ++c) {
        dense[static_cast<std::size_t>(tree.order()[c]) * n + tree.order()[r]] *= 2;
      }
    }
  }
  EXPECT_LE(frobeniusError(doubled, dense, n), 1e-4);
}

TEST(BoundaryMatrix, anEntryThatIsNotFiniteOnTheDeviceIsAnError) {
  const TriangleMesh mesh = sphereMesh(200);
  struct Bad : LaplaceSingleLayerEntry<Memory> {
    using LaplaceSingleLayerEntry<Memory>::LaplaceSingleLayerEntry;
    KOKKOS_FUNCTION double operator()(int i, int j) const {
      return i == 17 && j == 17 ? std::numeric_limits<double>::quiet_NaN()
                                : LaplaceSingleLayerEntry<Memory>::operator()(i, j);
    }
  };
  HMatrixOptions options;
  options.storage = Storage::Whole;
  const ClusterTree tree(centroidsOf(mesh), boxesOf(mesh), {20});
  EXPECT_THROW((HMatrix<double, Space>(
                   tree, tree, withDevice<double>(std::make_shared<LaplaceSingleLayer>(mesh), Bad(mesh)), options)),
               BadInput);
}

}  // namespace
}  // namespace Komvos
