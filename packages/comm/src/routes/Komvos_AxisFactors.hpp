/// \file Komvos_AxisFactors.hpp
/// The grid of groups of ranks that the axis route travels on.
#pragma once

#include <string>
#include <vector>

namespace Komvos {

class NodeTopology;

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

}  // namespace Komvos
