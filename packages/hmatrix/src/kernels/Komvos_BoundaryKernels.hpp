/// \file Komvos_BoundaryKernels.hpp
/// The entries of boundary-element matrices: collocation at the centroids of triangles, one constant value a triangle.
#pragma once

#include <complex>
#include <memory>
#include <vector>

#include "Komvos_EntryKernel.hpp"
#include "Komvos_TriangleMesh.hpp"

namespace Komvos {

/// What all kernels of a mesh share: entry (i, j) is an integral over triangle j of a function of centroid i. Near
/// triangles are integrated exactly, and far ones by the cheapest of the rules in Komvos_TriangleRules.hpp that is good
/// enough. An entry has the same bits in whatever block it is asked for; CPUs with other vector units may round
/// differently.
struct BoundaryKernelOptions {
  /// The error of an entry, relative to the integral of the absolute value, is below this, or rounding, a few 1e-15 h
  /// for the integral of 1 / r over a triangle of size h. Choose it below the accuracy of the hierarchical matrix.
  /// \throws BadInput, all constructors, unless it is between 0 and 1
  double accuracy = 1e-8;
};

/// Entry (i, j): the integral over triangle j of 1 / (4 pi |x_i - y|). The potential at x_i of a charge density of one
/// on triangle j, in units of 1 / epsilon_0.
class LaplaceSingleLayer : public EntryKernel<double> {
 public:
  /// \param mesh not needed afterwards \throws BadInput if a triangle has no area
  explicit LaplaceSingleLayer(const TriangleMesh& mesh, const BoundaryKernelOptions& options = {});
  ~LaplaceSingleLayer() override;
  double entry(int row, int column) const override;
  void block(const int* rows, int numRows, const int* columns, int numColumns, double* out) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Entry (i, j): the integral over triangle j of n(y) . (x_i - y) / (4 pi |x_i - y|^3), plus `jump` on the diagonal.
/// Without jump, the diagonal is zero, for triangles are flat. With the triangles oriented outwards, a potential u
/// inside is the double layer of a density mu with -1/2 as jump: (K - 1/2) mu = u on the surface.
class LaplaceDoubleLayer : public EntryKernel<double> {
 public:
  LaplaceDoubleLayer(const TriangleMesh& mesh, double jump, const BoundaryKernelOptions& options = {});
  ~LaplaceDoubleLayer() override;
  double entry(int row, int column) const override;
  void block(const int* rows, int numRows, const int* columns, int numColumns, double* out) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Entry (i, j): the integral over triangle j of exp(-kappa |x_i - y|) / (4 pi |x_i - y|). Triangles larger than about
/// 2 / kappa are cut up for each entry, which takes (kappa h)^2 times as long.
class YukawaSingleLayer : public EntryKernel<double> {
 public:
  /// \param kappa 1 / length, at least 0
  YukawaSingleLayer(const TriangleMesh& mesh, double kappa, const BoundaryKernelOptions& options = {});
  ~YukawaSingleLayer() override;
  double entry(int row, int column) const override;
  void block(const int* rows, int numRows, const int* columns, int numColumns, double* out) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Entry (i, j): the integral over triangle j of exp(i k |x_i - y|) / (4 pi |x_i - y|), for k |x_i - y| < 1e6.
/// Triangles larger than about 2 / k are cut up, as above.
class HelmholtzSingleLayer : public EntryKernel<std::complex<double>> {
 public:
  /// \param wavenumber k, 1 / length, at least 0
  HelmholtzSingleLayer(const TriangleMesh& mesh, double wavenumber, const BoundaryKernelOptions& options = {});
  ~HelmholtzSingleLayer() override;
  std::complex<double> entry(int row, int column) const override;
  void block(const int* rows, int numRows, const int* columns, int numColumns,
             std::complex<double>* out) const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Entry (i, j): 1 / |x_i - x_j| between points; `diagonal` for i = j and for points in one place. Symmetric.
class OneOverDistance : public EntryKernel<double> {
 public:
  OneOverDistance(std::vector<Point3> points, double diagonal);
  ~OneOverDistance() override;
  double entry(int row, int column) const override;
  void block(const int* rows, int numRows, const int* columns, int numColumns, double* out) const override;
  bool isSymmetric() const override { return true; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Komvos
