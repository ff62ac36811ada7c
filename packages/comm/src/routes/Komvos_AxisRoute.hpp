/// \file Komvos_AxisRoute.hpp
/// Collected on the node, then along the axes of a grid of nodes.
#pragma once

#include <string>
#include <vector>

#include "Komvos_Route.hpp"

namespace Komvos {

/// A grid of X*Y*Z groups of C consecutive ranks. Group g = r/C of rank r stands at (g%X, g/X%Y, g/(X*Y)).
struct AxisFactors {
  int c, x, y, z;

  friend bool operator==(const AxisFactors& a, const AxisFactors& b) {
    return a.c == b.c && a.x == b.x && a.y == b.y && a.z == b.z;
  }

  /// "C,X,Y,Z".
  std::string text() const;

  /// All grids of `numRanks` ranks, by c, then x, then y. 32,768 ranks have 816. \throws BadInput unless numRanks >= 1.
  static std::vector<AxisFactors> all(int numRanks);

  /// The grid of numRanks/c groups with the smallest x + y + z, which bounds the messages of a collector; x >= y >= z.
  /// \throws BadInput unless c divides numRanks.
  static AxisFactors balanced(int numRanks, int c);

  /// The balanced grid with the largest groups of which each stays inside one node: C is the ranks per node where
  /// every node has the same number of consecutive ranks, and a divisor of it, 1 if need be, elsewhere.
  static AxisFactors fitting(const NodeTopology& nodes);
};

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
  int hop(int stage, int here, int origin, int destination) const override;

 private:
  AxisFactors factors_;
};

}  // namespace Komvos
