/// \file Komvos_LocalBlocks.cpp
#include "Komvos_LocalBlocks.hpp"

#include <algorithm>
#include <tuple>

namespace Komvos::Impl {
namespace {

/// Clusters of at most `size` unknowns that are as large as possible: (cluster, begin, end). Leaves are cut.
std::vector<std::tuple<int, int, int>> clustersUpTo(const ClusterTree& tree, int size, bool leavesOnly) {
  std::vector<std::tuple<int, int, int>> found;
  std::vector<int> open{0};
  while (!open.empty()) {
    const int c = open.back();
    const Cluster& cluster = tree.clusters()[c];
    open.pop_back();
    if (!cluster.isLeaf() && (leavesOnly || cluster.size() > size)) {
      open.push_back(cluster.child + 1);
      open.push_back(cluster.child);
      continue;
    }
    for (int begin = cluster.begin; begin < cluster.end; begin += size) {
      found.emplace_back(c, begin, std::min(begin + size, cluster.end));
    }
  }
  return found;
}

/// The unit that begins at a place.
int unitAt(const std::vector<BlockUnit>& units, int place) {
  return static_cast<int>(
      std::partition_point(units.begin(), units.end(), [place](const BlockUnit& unit) { return unit.begin < place; }) -
      units.begin());
}

/// Units within a distance of a box, the nearest first, then by place.
std::vector<std::pair<double, int>> unitsNear(const ClusterTree& tree, const std::vector<BlockUnit>& units,
                                              const Box& box, double most) {
  std::vector<std::pair<double, int>> near;
  std::vector<int> open{0};
  while (!open.empty()) {
    const Cluster& cluster = tree.clusters()[open.back()];
    open.pop_back();
    const double gap = distance(box, cluster.box);
    if (gap > most) {
      continue;
    }
    if (!cluster.isLeaf()) {
      open.push_back(cluster.child);
      open.push_back(cluster.child + 1);
      continue;
    }
    for (int u = unitAt(units, cluster.begin); u < static_cast<int>(units.size()) && units[u].begin < cluster.end;
         ++u) {
      near.emplace_back(gap, u);
    }
  }
  std::sort(near.begin(), near.end());
  return near;
}

}  // namespace

int LocalBlocks::extendedSize(const LocalBlock& block) const {
  int size = 0;
  for (const int u : block.units) {
    size += units[u].size();
  }
  return size;
}

std::vector<std::pair<int, int>> LocalBlocks::rangesOf(const LocalBlock& block) const {
  std::vector<std::pair<int, int>> ranges;
  for (const int u : block.units) {
    if (!ranges.empty() && ranges.back().second == units[u].begin) {
      ranges.back().second = units[u].end;
    } else {
      ranges.emplace_back(units[u].begin, units[u].end);
    }
  }
  return ranges;
}

LocalBlocks localBlocks(const ClusterTree& tree, int blockSize, double overlap, int most, int first, int last) {
  LocalBlocks result;
  for (const auto& [c, begin, end] : clustersUpTo(tree, blockSize, true)) {
    result.units.push_back({begin, end, tree.clusters()[c].box});
  }
  for (const auto& [c, begin, end] : clustersUpTo(tree, blockSize, false)) {
    if (end <= first || begin >= last) {
      continue;
    }
    LocalBlock block{begin, end, {}};
    for (int u = unitAt(result.units, begin); u < static_cast<int>(result.units.size()) && result.units[u].begin < end;
         ++u) {
      block.units.push_back(u);
    }
    const Box& box = tree.clusters()[c].box;
    int size = end - begin;
    if (overlap > 0) {
      for (const auto& [gap, u] : unitsNear(tree, result.units, box, overlap * box.diameter())) {
        const BlockUnit& unit = result.units[u];
        if (unit.begin >= begin && unit.begin < end) {
          continue;
        }
        if (size + unit.size() > most) {
          break;
        }
        size += unit.size();
        block.units.push_back(u);
      }
      std::sort(block.units.begin(), block.units.end());
    }
    result.blocks.push_back(std::move(block));
  }
  return result;
}

}  // namespace Komvos::Impl
