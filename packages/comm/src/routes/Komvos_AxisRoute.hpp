/// \file Komvos_AxisRoute.hpp
/// Collected on the node, then along the axes of a grid of nodes.
#pragma once

#include <string>

#include "Komvos_AxisFactors.hpp"
#include "Komvos_Route.hpp"

namespace Komvos {

/// Section 2 of A. Fujii, O. Marques, "Axis communication method for algebraic multigrid solver": the lowest rank of a
/// group, its collector, takes what the group sends to other groups, it travels along X, then Y, then Z from collector
/// to collector, and the last one hands it to the destination. Values for the same group go straight to their
/// destination.
///
/// Whatever the nodes are, a value enters each group at most once, and a collector sends at most X-1 + Y-1 + Z-1
/// messages to other groups, none of them empty. If the groups are the nodes, the same holds for nodes. The price is
/// that values pass through up to two groups on their way; between two groups of one node they may leave the node.
class AxisRoute : public Route {
 public:
  /// \throws BadInput unless the four factors are positive and their product is `numRanks`.
  AxisRoute(const AxisFactors& factors, int numRanks);

  /// "axis:C,X,Y,Z".
  std::string name() const override { return "axis:" + factors_.text(); }
  int numStages() const override { return 5; }
  /// A collector waits for its whole group, and for all collectors on its axis unless they are very many.
  bool knowsPeers(int stage) const override;
  Peers peers(int stage, const Pattern& pattern) const override;
  int hop(int stage, int here, int origin, int destination) const override;

 private:
  AxisFactors factors_;
};

}  // namespace Komvos
