/// \file Komvos_TriangleRules.hpp
/// Symmetric Gauss rules on triangles: A. H. Stroud, 1971, and G. R. Cowper, 1973, for low degrees; D. A. Dunavant,
/// "High degree efficient symmetrical Gaussian quadrature rules for the triangle", 1985, for higher ones. All weights
/// are positive, and all points inside.
#pragma once

#include <vector>

namespace Komvos {

/// A point of a rule: corner0 + a (corner1 - corner0) + b (corner2 - corner0).
struct TriangleRulePoint {
  double a = 0, b = 0;
  double weight = 0;  ///< weights of a rule sum up to 1: times the area
};

/// Exact for polynomials up to `degree`.
struct TriangleRule {
  int degree = 0;
  std::vector<TriangleRulePoint> points;
};

/// Rules of 1, 3, 6, 7, 16 and 33 points, of degrees 1, 2, 4, 5, 8 and 12.
const std::vector<TriangleRule>& triangleRules();

}  // namespace Komvos
