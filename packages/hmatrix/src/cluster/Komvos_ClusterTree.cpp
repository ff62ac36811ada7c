/// \file Komvos_ClusterTree.cpp
/// How it works: clusters are split in the order in which they were made, each at the median of its centres' positions
/// along one direction. Ties are broken by the user's number, so that the result does not depend on how nth_element
/// works. Boxes are found afterwards, from the leaves up.
#include "Komvos_ClusterTree.hpp"

#include <Teuchos_LAPACK.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos {
namespace {

bool isFinite(const Point3& p) { return std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z); }

void check(const std::vector<Point3>& centres, const std::vector<Box>& supports, const ClusterOptions& options) {
  if (options.leafSize < 1) {
    throw BadInput("ClusterTree: a leaf size of " + std::to_string(options.leafSize) + "; at least 1 is needed");
  }
  if (centres.empty()) {
    throw BadInput("ClusterTree: there are no unknowns");
  }
  if (!supports.empty() && supports.size() != centres.size()) {
    throw BadInput("ClusterTree: " + std::to_string(supports.size()) + " supports for " +
                   std::to_string(centres.size()) + " unknowns");
  }
  const auto wrong = std::count_if(centres.begin(), centres.end(), [](const Point3& p) { return !isFinite(p); }) +
                     std::count_if(supports.begin(), supports.end(),
                                   [](const Box& b) { return !isFinite(b.least) || !isFinite(b.most); });
  if (wrong > 0) {
    throw BadInput("ClusterTree: " + std::to_string(wrong) + " of " + std::to_string(centres.size()) +
                   " centres or supports have coordinates that are not finite");
  }
}

Point3 longestSide(const Box& box) {
  const Point3 side = box.most - box.least;
  if (side.x >= side.y && side.x >= side.z) {
    return {1, 0, 0};
  }
  return side.y >= side.z ? Point3{0, 1, 0} : Point3{0, 0, 1};
}

Box boxAround(const std::vector<Point3>& centres, const int* first, const int* last) {
  Box box{centres[*first], centres[*first]};
  for (const int* i = first; i != last; ++i) {
    box = enclosing(box, {centres[*i], centres[*i]});
  }
  return box;
}

/// The eigenvector of the largest eigenvalue of the centres' covariance.
Point3 principalAxis(const std::vector<Point3>& centres, const int* first, const int* last) {
  Point3 mean;
  for (const int* i = first; i != last; ++i) {
    mean = mean + centres[*i];
  }
  mean = (1.0 / static_cast<double>(last - first)) * mean;
  std::array<double, 9> covariance{};
  for (const int* i = first; i != last; ++i) {
    const Point3 d = centres[*i] - mean;
    const std::array<double, 3> v{d.x, d.y, d.z};
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 3; ++c) {
        covariance[r + 3 * c] += v[r] * v[c];
      }
    }
  }
  std::array<double, 3> eigenvalues{};
  std::array<double, 32> work{};
  int info = 0;
  Teuchos::LAPACK<int, double>().SYEV('V', 'U', 3, covariance.data(), 3, eigenvalues.data(), work.data(),
                                      static_cast<int>(work.size()), &info);
  if (info != 0 || !(eigenvalues[2] > 0)) {
    return longestSide(boxAround(centres, first, last));
  }
  return {covariance[6], covariance[7], covariance[8]};
}

}  // namespace

ClusterTree::ClusterTree(const std::vector<Point3>& centres, const std::vector<Box>& supports,
                         const ClusterOptions& options)
    : order_(centres.size()) {
  check(centres, supports, options);
  std::iota(order_.begin(), order_.end(), 0);
  clusters_.push_back({0, size(), -1, {}});
  std::vector<int> level{1};
  std::vector<std::pair<double, int>> position(order_.size());
  for (std::size_t c = 0; c < clusters_.size(); ++c) {
    const int begin = clusters_[c].begin, end = clusters_[c].end;
    depth_ = std::max(depth_, level[c]);
    if (end - begin <= options.leafSize) {
      continue;
    }
    const int *first = order_.data() + begin, *last = order_.data() + end;
    const Point3 direction = options.split == ClusterSplit::PrincipalAxis
                                 ? principalAxis(centres, first, last)
                                 : longestSide(boxAround(centres, first, last));
    for (int i = begin; i < end; ++i) {
      position[i] = {dot(direction, centres[order_[i]]), order_[i]};
    }
    const int middle = begin + (end - begin + 1) / 2;
    std::nth_element(position.begin() + begin, position.begin() + middle, position.begin() + end);
    // In the user's order within each half: what nth_element leaves is for it to say.
    for (int i = begin; i < end; ++i) {
      order_[i] = position[i].second;
    }
    std::sort(order_.begin() + begin, order_.begin() + middle);
    std::sort(order_.begin() + middle, order_.begin() + end);
    clusters_[c].child = static_cast<int>(clusters_.size());
    clusters_.push_back({begin, middle, -1, {}});
    clusters_.push_back({middle, end, -1, {}});
    level.insert(level.end(), 2, level[c] + 1);
  }
  for (auto cluster = clusters_.rbegin(); cluster != clusters_.rend(); ++cluster) {
    if (!cluster->isLeaf()) {
      cluster->box = enclosing(clusters_[cluster->child].box, clusters_[cluster->child + 1].box);
      continue;
    }
    const auto boxOf = [&](int i) { return supports.empty() ? Box{centres[i], centres[i]} : supports[i]; };
    cluster->box = boxOf(order_[cluster->begin]);
    for (int i = cluster->begin; i < cluster->end; ++i) {
      cluster->box = enclosing(cluster->box, boxOf(order_[i]));
    }
  }
}

}  // namespace Komvos
