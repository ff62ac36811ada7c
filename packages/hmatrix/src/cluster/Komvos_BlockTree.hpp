/// \file Komvos_BlockTree.hpp
/// Which blocks of a hierarchical matrix are of low rank, and which are dense.
#pragma once

#include <utility>
#include <vector>

#include "Komvos_ClusterTree.hpp"

namespace Komvos {

/// One block: the rows of a cluster, the columns of another, both as places in the order of their tree.
struct Block {
  int rowBegin = 0, rowEnd = 0, columnBegin = 0, columnEnd = 0;
  bool isAdmissible = false;  ///< its clusters are far enough apart: of low rank, if the kernel is smooth there
  int rank = -1;              ///< in a matrix, of a block of low rank; -1 of dense ones

  int rows() const { return rowEnd - rowBegin; }
  int columns() const { return columnEnd - columnBegin; }
};

enum class BlockHalf {
  Both,
  Lower  ///< only blocks on the diagonal or below it: those that a symmetric matrix needs. Diagonal ones are whole.
};

/// The leaves of the block tree: they cover the matrix, each entry once.
///
/// A block is admissible if min(diam(rows), diam(columns)) <= eta * distance, for the boxes of its clusters. A block
/// that is not is split in four; or along its larger side, where one cluster has twice the unknowns of the other. What
/// cannot be split is dense.
/// \param rows, columns the same tree, for BlockHalf::Lower
/// \return in ascending order of rowBegin, then of columnBegin
/// \throws BadInput unless 0 < eta < infinity, or if a half is asked for of two trees
std::vector<Block> blockLeaves(const ClusterTree& rows, const ClusterTree& columns, double eta,
                               BlockHalf half = BlockHalf::Both);

/// Places of a tree's order that are needed, without the others. Their positions count from 0 in ascending order.
class PlaceRanges {
 public:
  /// \param ranges [begin, end) each, in any order; they may overlap
  explicit PlaceRanges(std::vector<std::pair<int, int>> ranges);

  int length() const { return length_; }
  /// \param place that is in a range; those after it in the same range follow
  int positionOf(int place) const;
  /// Ascending, without overlap, and not next to each other.
  const std::vector<std::pair<int, int>>& ranges() const { return ranges_; }
  /// All of them.
  std::vector<int> places() const;

 private:
  std::vector<std::pair<int, int>> ranges_;
  std::vector<int> position_;  ///< of the beginning of each range
  int length_ = 0;
};

/// The rows, and the columns, of these blocks.
PlaceRanges rowsOf(const std::vector<Block>& blocks);
PlaceRanges columnsOf(const std::vector<Block>& blocks);

}  // namespace Komvos
