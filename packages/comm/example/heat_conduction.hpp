// Heat conduction in a box of hexahedra, -div(k grad u), elements dealt out in slabs along z. Nodes between two slabs
// belong to the upper one; both have contributions to their rows.
#pragma once

#include <Tpetra_Core.hpp>
#include <Tpetra_Map.hpp>
#include <array>
#include <vector>

namespace example {

using GlobalOrdinal = Tpetra::Map<>::global_ordinal_type;

/// The elements of this rank and the nodes that they touch.
class Slab {
 public:
  /// \param n elements along each edge of the box
  Slab(GlobalOrdinal n, const Teuchos::RCP<const Teuchos::Comm<int>>& comm) : n_(n), comm_(comm) {
    const int rank = comm->getRank(), size = comm->getSize();
    first_ = n * rank / size;
    last_ = n * (rank + 1) / size;
  }

  /// Rows that this rank has alone: planes of nodes below its elements, and the uppermost for who has it.
  Teuchos::RCP<const Tpetra::Map<>> owned() const { return planes(last_ + (last_ == n_ && first_ < last_ ? 1 : 0)); }
  /// These, then the nodes that the next rank owns.
  Teuchos::RCP<const Tpetra::Map<>> touched() const { return planes(first_ < last_ ? last_ + 1 : last_); }

  std::size_t numElements() const { return static_cast<std::size_t>((last_ - first_) * n_ * n_); }
  std::size_t numNodes() const {
    return static_cast<std::size_t>((n_ + 1) * (n_ + 1) * (first_ < last_ ? last_ - first_ + 1 : 0));
  }
  /// Local indices, in touched(), of the corners of element e.
  std::array<int, 8> corners(std::size_t e) const {
    const auto element = static_cast<GlobalOrdinal>(e);
    const GlobalOrdinal x = element % n_, y = element / n_ % n_, z = element / (n_ * n_), row = n_ + 1;
    std::array<int, 8> nodes;
    for (int c = 0; c < 8; ++c) {
      nodes[static_cast<std::size_t>(c)] =
          static_cast<int>((x + (c & 1)) + row * ((y + (c >> 1 & 1)) + row * (z + (c >> 2))));
    }
    return nodes;
  }
  /// Local to global, in touched().
  GlobalOrdinal globalIndex(int node) const { return (n_ + 1) * (n_ + 1) * first_ + node; }
  /// Of element e; changes with time.
  double conductivity(std::size_t e, double time) const {
    return 1 + 0.5 * static_cast<double>((first_ * n_ * n_ + static_cast<GlobalOrdinal>(e)) % 7) * time;
  }

 private:
  Teuchos::RCP<const Tpetra::Map<>> planes(GlobalOrdinal end) const {
    const GlobalOrdinal plane = (n_ + 1) * (n_ + 1);
    Teuchos::Array<GlobalOrdinal> mine;
    for (GlobalOrdinal node = plane * first_; node < plane * end; ++node) {
      mine.push_back(node);
    }
    const auto all = Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid();
    return Teuchos::rcp(new Tpetra::Map<>(all, mine(), 0, comm_));
  }

  GlobalOrdinal n_, first_ = 0, last_ = 0;  // planes of elements
  Teuchos::RCP<const Teuchos::Comm<int>> comm_;
};

/// The stiffness matrix of a unit cube of conductivity 1: products of those of its edges.
inline std::array<std::array<double, 8>, 8> cubeStiffness() {
  std::array<std::array<double, 8>, 8> matrix{};
  const double stiffness[2][2] = {{1, -1}, {-1, 1}}, mass[2][2] = {{1.0 / 3, 1.0 / 6}, {1.0 / 6, 1.0 / 3}};
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      const auto along = [&](const double(&edge)[2][2], unsigned axis) { return edge[i >> axis & 1][j >> axis & 1]; };
      matrix[i][j] = along(stiffness, 0) * along(mass, 1) * along(mass, 2) +
                     along(mass, 0) * along(stiffness, 1) * along(mass, 2) +
                     along(mass, 0) * along(mass, 1) * along(stiffness, 2);
    }
  }
  return matrix;
}

/// Where element matrices go in arrays of rows: each row of one is appended to the row of its node, as it comes. These
/// arrays are on the host; RowTransfer takes arrays where its matrices are, so on a GPU a kernel would fill them.
class AssemblyArrays {
 public:
  /// Computes all element matrices, and where they go.
  explicit AssemblyArrays(const Slab& slab, double time = 0)
      : slab_(slab), stiffness_(cubeStiffness()), offset("offset", slab.numNodes() + 1), next_(slab.numNodes()) {
    for (std::size_t e = 0; e < slab.numElements(); ++e) {
      for (const int node : slab.corners(e)) {
        offset(static_cast<std::size_t>(node) + 1) += 8;
      }
    }
    for (std::size_t i = 0; i < slab.numNodes(); ++i) {
      offset(i + 1) += offset(i);
    }
    const std::size_t entries = offset(slab.numNodes());
    columns = decltype(columns)(Kokkos::view_alloc("columns", Kokkos::WithoutInitializing), entries);
    values = decltype(values)(Kokkos::view_alloc("values", Kokkos::WithoutInitializing), entries);
    fill(time, true);
  }

  /// Computes all element matrices anew.
  void fill(double time, bool withColumns = false) {
    for (std::size_t i = 0; i < next_.size(); ++i) {
      next_[i] = offset(i);
    }
    for (std::size_t e = 0; e < slab_.numElements(); ++e) {
      const auto nodes = slab_.corners(e);
      const double k = slab_.conductivity(e, time);
      for (std::size_t i = 0; i < 8; ++i) {
        std::size_t& at = next_[static_cast<std::size_t>(nodes[i])];
        for (std::size_t j = 0; j < 8; ++j, ++at) {
          values(at) = k * stiffness_[i][j];
          if (withColumns) {
            columns(at) = slab_.globalIndex(nodes[j]);
          }
        }
      }
    }
  }

 private:
  const Slab& slab_;
  std::array<std::array<double, 8>, 8> stiffness_;

 public:
  Kokkos::View<std::size_t*, Kokkos::HostSpace> offset;
  Kokkos::View<GlobalOrdinal*, Kokkos::HostSpace> columns;
  Kokkos::View<double*, Kokkos::HostSpace> values;

 private:
  std::vector<std::size_t> next_;
};

}  // namespace example
