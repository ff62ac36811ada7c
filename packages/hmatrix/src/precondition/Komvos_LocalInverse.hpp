/// \file Komvos_LocalInverse.hpp
/// An approximate inverse of one rank, as products of dense matrices that run on any execution space.
#pragma once

#include <cstdint>
#include <vector>

#include "Komvos_BlockTree.hpp"
#include "Komvos_ClusterTree.hpp"
#include "Komvos_EntryKernel.hpp"
#include "Komvos_Hodlr.hpp"
#include "Komvos_LocalBlocks.hpp"
#include "Komvos_PanelMaker.hpp"

namespace Komvos::Impl {

/// y = M x for the rank's own places. All steps work on one array [x | ...], in which y begins at `output`.
template <class Value, class ExecutionSpace>
struct LocalInverse {
  struct Step {
    Panels<Value, ExecutionSpace> panels;
    int input, output;  ///< where the array that the panels count from begins
    bool add;           ///< to what is there
  };

  PlaceRanges inputs{{}};  ///< the places of x
  int workLength = 0;
  int output = 0;
  std::vector<Step> steps;
  std::int64_t numValues = 0;
  int largestBlock = 0, largestRank = 0;
};

/// For each block, the rows of its inverse that belong to places [begin, end).
/// \throws BadInput if a block is singular, or an entry is not finite
template <class Scalar, class Value, class ExecutionSpace>
LocalInverse<Value, ExecutionSpace> denseInverse(const ClusterTree& tree, const LocalBlocks& local, int begin, int end,
                                                 const EntryKernel<Scalar>& kernel);

/// Of the part of the matrix that has its rows and columns in places [begin, end). \throws as hodlrInverse()
template <class Scalar, class Value, class ExecutionSpace>
LocalInverse<Value, ExecutionSpace> hodlrLocalInverse(const ClusterTree& tree, int begin, int end,
                                                      const EntryKernel<Scalar>& kernel, const HodlrOptions& options);

}  // namespace Komvos::Impl
