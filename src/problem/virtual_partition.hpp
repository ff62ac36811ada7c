/// \file virtual_partition.hpp
/// Which virtual rank owns which rows.
#pragma once

#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace Komvos::Program {

/// The rank of each row. The rows of a node stay together.
/// \param kind "contiguous" (consecutive nodes, equal shares), "strided" (node i on rank i modulo ranks) or "blocks"
/// (boxes of equal shares by recursive bisection of the coordinates, so that consecutive ranks are close)
/// \throws BadInput if there are more ranks than nodes, or no coordinates for blocks
std::vector<int> virtualOwners(const Problem& problem, const std::string& kind, int numRanks);

/// The rank of each coarse row: the one with the most weight |P| in the fine rows of its aggregate, the lowest of
/// equals.
/// \param rowsPerAggregate consecutive coarse rows that stay together
std::vector<int> coarseOwners(const Matrix& prolongator, const std::vector<int>& fineOwners, int rowsPerAggregate);

}  // namespace Komvos::Program
