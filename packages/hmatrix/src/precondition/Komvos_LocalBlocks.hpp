/// \file Komvos_LocalBlocks.hpp
/// Which unknowns a local preconditioner solves for at once.
#pragma once

#include <utility>
#include <vector>

#include "Komvos_ClusterTree.hpp"

namespace Komvos::Impl {

/// A leaf of the tree, or a part of a large one: places [begin, end). Blocks are made of whole ones.
struct BlockUnit {
  int begin, end;
  Box box;

  int size() const { return end - begin; }
};

/// The unknowns at places [begin, end), and those around them.
struct LocalBlock {
  int begin, end;
  std::vector<int> units;  ///< ascending: of the extended block, its own among them
};

struct LocalBlocks {
  std::vector<BlockUnit> units;  ///< of the whole tree, in ascending order of places
  std::vector<LocalBlock> blocks;

  int extendedSize(const LocalBlock& block) const;
  /// The places of the extended block, ascending: [first, last) each, neighbours united.
  std::vector<std::pair<int, int>> rangesOf(const LocalBlock& block) const;
};

/// The largest clusters of at most `blockSize` unknowns, and larger leaves cut to that. Each is extended by the units
/// that are no further away than `overlap` diameters, from box to box: the nearest ones, up to `most` unknowns in all.
/// \param first, last only blocks with a place in [first, last). They are the same whatever others are asked for.
LocalBlocks localBlocks(const ClusterTree& tree, int blockSize, double overlap, int most, int first, int last);

}  // namespace Komvos::Impl
