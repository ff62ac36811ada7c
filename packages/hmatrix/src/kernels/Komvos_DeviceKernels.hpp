/// \file Komvos_DeviceKernels.hpp
/// Entries of boundary-element matrices inside kernels of any execution space, and whole blocks of them.
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <complex>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_BoundaryEntry.hpp"
#include "Komvos_BoundaryKernels.hpp"
#include "Komvos_EntryKernel.hpp"
#include "Komvos_KokkosShim.hpp"

namespace Komvos {
namespace Impl {

/// A copy of a list in `MemorySpace`.
template <class MemorySpace, class Value>
Kokkos::View<const Value*, MemorySpace> viewOf(const std::vector<Value>& values, const std::string& label) {
  const Kokkos::View<Value*, MemorySpace> view(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), values.size());
  const auto host = Kokkos::create_mirror_view(view);
  std::copy(values.begin(), values.end(), host.data());
  Kokkos::deep_copy(view, host);
  return view;
}

/// Entries of a mesh: what the functors below share. Copies share their memory.
template <class MemorySpace, class Form>
struct MeshEntry {
  using memory_space = MemorySpace;
  using value_type = typename Form::value_type;

  /// Entry (row, column).
  KOKKOS_FUNCTION value_type operator()(int row, int column) const {
    const BoundaryTriangle& t = triangles(column);
    return boundaryEntry(form, rules, t, triangles(row).centroid - t.centroid, row == column);
  }

  MeshEntry(const TriangleMesh& mesh, const FarCriterion& criterion, const Form& f)
      : triangles(viewOf<MemorySpace>(boundaryTriangles(mesh, criterion), "Komvos::MeshEntry::triangles")),
        points(viewOf<MemorySpace>(rulePointsAroundCentroid(rules), "Komvos::MeshEntry::points")),
        form(f) {
    rules.points = points.data();
  }

  RuleTable rules;
  Kokkos::View<const BoundaryTriangle*, MemorySpace> triangles;
  Kokkos::View<const TriangleRulePoint*, MemorySpace> points;  ///< of the rules
  Form form;
};

}  // namespace Impl

/// As the class LaplaceSingleLayer, to rounding: `entry(i, j)` in a kernel that can read MemorySpace. The same holds
/// for the others.
template <class MemorySpace>
struct LaplaceSingleLayerEntry : Impl::MeshEntry<MemorySpace, Impl::SingleLayerForm> {
  explicit LaplaceSingleLayerEntry(const TriangleMesh& mesh, const BoundaryKernelOptions& options = {})
      : Impl::MeshEntry<MemorySpace, Impl::SingleLayerForm>(mesh, {false, 0, options.accuracy}, {}) {}
};

template <class MemorySpace>
struct LaplaceDoubleLayerEntry : Impl::MeshEntry<MemorySpace, Impl::DoubleLayerForm> {
  LaplaceDoubleLayerEntry(const TriangleMesh& mesh, double jump, const BoundaryKernelOptions& options = {})
      : Impl::MeshEntry<MemorySpace, Impl::DoubleLayerForm>(mesh, {true, 0, options.accuracy}, {jump}) {}
};

template <class MemorySpace>
struct YukawaSingleLayerEntry : Impl::MeshEntry<MemorySpace, Impl::YukawaForm> {
  YukawaSingleLayerEntry(const TriangleMesh& mesh, double kappa, const BoundaryKernelOptions& options = {})
      : Impl::MeshEntry<MemorySpace, Impl::YukawaForm>(mesh, {false, kappa, options.accuracy},
                                                       Impl::YukawaForm(kappa, options.accuracy)) {}
};

/// Entries are Kokkos::complex<double>.
template <class MemorySpace>
struct HelmholtzSingleLayerEntry : Impl::MeshEntry<MemorySpace, Impl::HelmholtzForm> {
  HelmholtzSingleLayerEntry(const TriangleMesh& mesh, double wavenumber, const BoundaryKernelOptions& options = {})
      : Impl::MeshEntry<MemorySpace, Impl::HelmholtzForm>(mesh, {false, wavenumber, options.accuracy},
                                                          Impl::HelmholtzForm(wavenumber, options.accuracy)) {}
};

template <class MemorySpace>
struct OneOverDistanceEntry {
  using memory_space = MemorySpace;
  using value_type = double;

  OneOverDistanceEntry(const std::vector<Point3>& pointList, double valueOnDiagonal)
      : points(Impl::viewOf<MemorySpace>(pointList, "Komvos::OneOverDistanceEntry::points")),
        diagonal(valueOnDiagonal) {}
  KOKKOS_FUNCTION double operator()(int row, int column) const {
    const double r = norm(points(row) - points(column));
    return r == 0 ? diagonal : 1 / r;
  }

  Kokkos::View<const Point3*, MemorySpace> points;
  double diagonal;
};

namespace Impl {

/// A team fills a block.
template <class Entry>
struct FillBlocks {
  using space = typename Entry::memory_space::execution_space;
  using member = typename Kokkos::TeamPolicy<space>::member_type;
  using Value = typename Entry::value_type;

  KOKKOS_FUNCTION void operator()(const member& team) const {
    const DeviceBlock& block = blocks(team.league_rank());
    Value* const out = values + block.offset;
    const int numRows = block.numRows;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, numRows * block.numColumns), [&](int place) {
      out[place] = entry(block.rows[place % numRows], block.columns[place / numRows]);
    });
  }

  Entry entry;
  Kokkos::View<const DeviceBlock*, typename Entry::memory_space> blocks;
  Value* values;
};

}  // namespace Impl

/// A kernel with entries on the host, and a functor that gives the same entries on a device, such as those above:
/// `value_type operator()(int row, int column) const`, with the types `value_type` (of the bytes of Scalar) and
/// `memory_space`.
template <class Scalar, class Entry>
class DeviceEntryKernel : public EntryKernel<Scalar> {
 public:
  static_assert(sizeof(Scalar) == sizeof(typename Entry::value_type), "The functor gives other values");

  DeviceEntryKernel(std::shared_ptr<const EntryKernel<Scalar>> onHost, Entry onDevice)
      : onHost_(std::move(onHost)), onDevice_(std::move(onDevice)) {}
  Scalar entry(int row, int column) const override { return onHost_->entry(row, column); }
  void block(const int* rows, int numRows, const int* columns, int numColumns, Scalar* out) const override {
    onHost_->block(rows, numRows, columns, numColumns, out);
  }
  bool isSymmetric() const override { return onHost_->isSymmetric(); }

  bool fillDevice(const DeviceBlock* blocks, int numBlocks, Scalar* values) const override {
    using MemorySpace = typename Entry::memory_space;
    using Value = typename Entry::value_type;
    using Fill = Impl::FillBlocks<Entry>;
    static_assert(
        Kokkos::SpaceAccessibility<typename Fill::space, Kokkos::DefaultExecutionSpace::memory_space>::accessible,
        "values are in memory of Kokkos' default execution space: the functor's memory_space has to be that, too");
    if (numBlocks == 0) {
      return true;
    }
    const auto list = Impl::viewOf<MemorySpace>(std::vector<DeviceBlock>(blocks, blocks + numBlocks),
                                                "Komvos::DeviceEntryKernel::blocks");
    const auto& space = Impl::defaultSpace<typename Fill::space>();
    Kokkos::parallel_for("Komvos::DeviceEntryKernel: entries of dense blocks",
                         Kokkos::TeamPolicy<typename Fill::space>(space, numBlocks, Kokkos::AUTO),
                         Fill{onDevice_, list, reinterpret_cast<Value*>(values)});
    Impl::fence(space, "Komvos::DeviceEntryKernel: the list of blocks is freed, and values may be read");
    return true;
  }

 private:
  std::shared_ptr<const EntryKernel<Scalar>> onHost_;
  Entry onDevice_;
};

/// \param onHost of the same entries
template <class Scalar, class Entry>
DeviceEntryKernel<Scalar, Entry> withDevice(std::shared_ptr<const EntryKernel<Scalar>> onHost, Entry onDevice) {
  return {std::move(onHost), std::move(onDevice)};
}

}  // namespace Komvos
