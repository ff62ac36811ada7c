/// \file partition.hpp
/// Which rank owns which rows.
#pragma once

#include <string>

#include "problem/problem.hpp"

namespace Komvos::Program {

/// Moves a problem that is over consecutive rows. The rows of a node stay together.
/// \param kind "contiguous" (as it is), "strided" (node i on rank i modulo ranks) or "graph"
/// \note Collective.
void partition(Problem& problem, const std::string& kind);

/// A part for each node (row / dofsPerNode) of this rank, by graph partitioning into as many parts as ranks, so that
/// few entries cross parts.
/// \note Collective.
std::vector<int> partitionGraph(const Matrix& matrix, int dofsPerNode);

/// Values over the map, in place of what they were over. \note Collective.
void moveTo(const Teuchos::RCP<const Map>& map, Teuchos::RCP<MultiVector>& vector);

}  // namespace Komvos::Program
