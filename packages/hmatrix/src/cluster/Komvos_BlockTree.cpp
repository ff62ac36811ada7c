/// \file Komvos_BlockTree.cpp
#include "Komvos_BlockTree.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos {
namespace {

class LeafSearch {
 public:
  LeafSearch(const ClusterTree& rows, const ClusterTree& columns, double eta, BlockHalf half)
      : rows_(rows.clusters()), columns_(columns.clusters()), eta_(eta), half_(half) {}

  void visit(int rowCluster, int columnCluster) {
    const Cluster& t = rows_[rowCluster];
    const Cluster& s = columns_[columnCluster];
    if (half_ == BlockHalf::Lower && t.end <= s.begin) {
      return;
    }
    // Not the diameter of one point: two unknowns in one place are not far apart.
    const double gap = distance(t.box, s.box);
    const bool isAdmissible = gap > 0 && std::min(t.box.diameter(), s.box.diameter()) <= eta_ * gap;
    if (isAdmissible || (t.isLeaf() && s.isLeaf())) {
      leaves_.push_back({t.begin, t.end, s.begin, s.end, isAdmissible});
      return;
    }
    const bool splitRows = !t.isLeaf() && (s.isLeaf() || 2 * t.size() > s.size());
    const bool splitColumns = !s.isLeaf() && (t.isLeaf() || 2 * s.size() > t.size());
    for (int i = 0; i < (splitRows ? 2 : 1); ++i) {
      for (int j = 0; j < (splitColumns ? 2 : 1); ++j) {
        visit(splitRows ? t.child + i : rowCluster, splitColumns ? s.child + j : columnCluster);
      }
    }
  }

  std::vector<Block> sortedLeaves() && {
    std::sort(leaves_.begin(), leaves_.end(), [](const Block& a, const Block& b) {
      return std::tie(a.rowBegin, a.columnBegin) < std::tie(b.rowBegin, b.columnBegin);
    });
    return std::move(leaves_);
  }

 private:
  const std::vector<Cluster>&rows_, &columns_;
  double eta_;
  BlockHalf half_;
  std::vector<Block> leaves_;
};

}  // namespace

std::vector<Block> blockLeaves(const ClusterTree& rows, const ClusterTree& columns, double eta, BlockHalf half) {
  if (!(eta > 0) || !std::isfinite(eta)) {
    throw BadInput("blockLeaves: eta is " + std::to_string(eta) + "; it must be above 0, and finite");
  }
  if (half == BlockHalf::Lower && &rows != &columns) {
    throw BadInput("blockLeaves: half of the blocks makes sense only for the same tree of rows and of columns");
  }
  LeafSearch search(rows, columns, eta, half);
  search.visit(0, 0);
  return std::move(search).sortedLeaves();
}

PlaceRanges::PlaceRanges(std::vector<std::pair<int, int>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (const auto& range : ranges) {
    if (range.first >= range.second) {
      continue;
    }
    if (!ranges_.empty() && range.first <= ranges_.back().second) {
      ranges_.back().second = std::max(ranges_.back().second, range.second);
    } else {
      ranges_.push_back(range);
    }
  }
  for (const auto& [begin, end] : ranges_) {
    position_.push_back(length_);
    length_ += end - begin;
  }
}

int PlaceRanges::positionOf(int place) const {
  const auto next = std::partition_point(ranges_.begin(), ranges_.end(),
                                         [place](const auto& range) { return range.second <= place; });
  if (next == ranges_.end() || place < next->first) {
    throw Error("PlaceRanges: place " + std::to_string(place) + " is in none of " + std::to_string(ranges_.size()) +
                " ranges");
  }
  return position_[next - ranges_.begin()] + (place - next->first);
}

std::vector<int> PlaceRanges::places() const {
  std::vector<int> places;
  places.reserve(length_);
  for (const auto& [begin, end] : ranges_) {
    for (int place = begin; place < end; ++place) {
      places.push_back(place);
    }
  }
  return places;
}

PlaceRanges rowsOf(const std::vector<Block>& blocks) {
  std::vector<std::pair<int, int>> ranges;
  for (const Block& block : blocks) {
    ranges.emplace_back(block.rowBegin, block.rowEnd);
  }
  return PlaceRanges(std::move(ranges));
}

PlaceRanges columnsOf(const std::vector<Block>& blocks) {
  std::vector<std::pair<int, int>> ranges;
  for (const Block& block : blocks) {
    ranges.emplace_back(block.columnBegin, block.columnEnd);
  }
  return PlaceRanges(std::move(ranges));
}

}  // namespace Komvos
