/// \file ranks_support.hpp
/// A matrix and vectors for the tests on many ranks.
#pragma once

#include <Tpetra_MultiVector.hpp>
#include <cmath>
#include <vector>

#include "Komvos_ClusterTree.hpp"
#include "Komvos_TpetraShim.hpp"
#include "point_sets.hpp"

namespace Komvos::test {

using MV = Tpetra::MultiVector<>;
using Map = MV::map_type;
using GO = Map::global_ordinal_type;

/// A map of the same elements on each rank, in the same order, or in the reverse one.
inline Teuchos::RCP<const Map> copyOf(const Map& map, bool reversed) {
  std::vector<GO> indices(Impl::localLength(map));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[reversed ? indices.size() - 1 - i : i] = map.getGlobalElement(static_cast<int>(i));
  }
  return Teuchos::rcp(new Map(map.getGlobalNumElements(), Teuchos::arrayViewFromVector(indices), 0, map.getComm()));
}

inline double valueAt(GO i, std::size_t column) {
  return std::sin(1.0 + static_cast<double>(i) * (1.0 + 0.1 * static_cast<double>(column)));
}

/// The same values on any number of ranks.
inline MV vectors(const Teuchos::RCP<const Map>& map, std::size_t count) {
  MV v(map, count);
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t i = 0; i < Impl::localLength(*map); ++i) {
      v.replaceLocalValue(static_cast<int>(i), j, valueAt(map->getGlobalElement(static_cast<int>(i)), j));
    }
  }
  return v;
}

/// One over the distance of points on a sphere, not symmetric. A function of entries, with its tree.
class SphereProblem {
 public:
  SphereProblem(int n, int leafSize, double diagonal)
      : points_(spiralOnSphere(n)), tree_(points_, {}, {leafSize}), diagonal_(diagonal) {}
  const ClusterTree& tree() const { return tree_; }
  int size() const { return tree_.size(); }
  double operator()(int i, int j) const {
    return i == j ? diagonal_ : (1 + 0.5 * points_[j].z) / norm(points_[i] - points_[j]);
  }

 private:
  std::vector<Point3> points_;
  ClusterTree tree_;
  double diagonal_;
};

}  // namespace Komvos::test
