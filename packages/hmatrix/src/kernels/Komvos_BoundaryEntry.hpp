/// \file Komvos_BoundaryEntry.hpp
/// One entry of a boundary-element matrix, on the host and on devices: which way it is integrated, and the integral.
#pragma once

#include <Kokkos_Complex.hpp>
#include <Kokkos_Macros.hpp>
#include <cmath>
#include <vector>

#include "Komvos_TriangleIntegrals.hpp"
#include "Komvos_TriangleMesh.hpp"
#include "Komvos_TriangleRules.hpp"

namespace Komvos::Impl {

constexpr int numTriangleRules = 6;
constexpr double oneOver4Pi = 0.0795774715459476679;

/// A triangle, and how far away which rule is good enough.
struct BoundaryTriangle {
  Point3 centroid, edge1, edge2, normal;  ///< edges from corner 0 to corners 1 and 2
  double area = 0;
  double radius = 0;  ///< the largest distance of a corner from the centroid
  /// Rule k is good enough for a point whose squared distance from the centroid is at least this. Falls with k; may be
  /// infinite.
  double squaredLimit[numTriangleRules] = {};
};

/// All rules, one after the other: y = centroid + a edge1 + b edge2.
struct RuleTable {
  const TriangleRulePoint* points = nullptr;  ///< a and b are relative to the centroid
  int begin[numTriangleRules + 1] = {};
};

/// The points of triangleRules(), relative to the centroid; sets `begin` of the table.
std::vector<TriangleRulePoint> rulePointsAroundCentroid(RuleTable& table);

/// What an integrand asks of the rules.
struct FarCriterion {
  bool isCubed = false;  ///< 1 / r^3 instead of 1 / r
  double kappa = 0;      ///< of exp(-kappa r) or exp(i kappa r)
  double accuracy = 0;
};

/// \throws BadInput if a triangle has no area, or numbers are out of range
std::vector<BoundaryTriangle> boundaryTriangles(const TriangleMesh& mesh, const FarCriterion& criterion);

/// The error of rule k, relative to the integral of the absolute value, is below
///
///     c_k S,  S = sum over j from 0 to n of z^j / j! q^(n-j),  n = degree + 1, z = kappa h, q = h / distance <= 1/2
///
/// (h the radius, distance from the centroid). S is the coefficient of order n of exp(z s) / (1 - q s): of Taylor's
/// series of the integrand around the centroid, which rules integrate exactly up to their degree. c_k is 1.5 times the
/// largest ratio found for 6000 triangles and points, most of them slivers seen along their longest side, which is
/// where it is largest; long double, z from 0 to 4, 1/q from 2 to 30.
KOKKOS_INLINE_FUNCTION double ruleError(int degree, double c, double z, double q) {
  double sum = 1;  // Horner's scheme: S_n = q S_(n-1) + z^n / n!
  double term = 1;
  for (int n = 1; n <= degree + 1; ++n) {
    term *= z / n;
    sum = q * sum + term;
  }
  return c * sum;
}
constexpr double finestRuleConstant = 1.6e-5;
constexpr int finestRuleDegree = 12;

KOKKOS_INLINE_FUNCTION Point3 cornerOf(const BoundaryTriangle& t, int k) {
  // Corners as seen from the centroid: -(e1 + e2) / 3, (2 e1 - e2) / 3, (2 e2 - e1) / 3.
  const double a = k == 1 ? 2.0 / 3 : -1.0 / 3, b = k == 2 ? 2.0 / 3 : -1.0 / 3;
  return a * t.edge1 + b * t.edge2;
}

/// As seen from its own centroid.
KOKKOS_INLINE_FUNCTION FlatTriangle aroundCentroid(const BoundaryTriangle& t, double scale, const Point3& shift) {
  FlatTriangle flat;
  for (int k = 0; k < 3; ++k) {
    flat.corner[k] = shift + scale * cornerOf(t, k);
  }
  flat.normal = t.normal;
  flat.area = scale * scale * t.area;
  return flat;
}

/// The mean of an integrand over the triangle by rule k. \param x as seen from the centroid
template <class Form>
KOKKOS_INLINE_FUNCTION typename Form::value_type meanByRule(const Form& form, const RuleTable& rules, int k,
                                                            const Point3& x, const Point3& edge1, const Point3& edge2) {
  typename Form::value_type sum = 0;
  for (int q = rules.begin[k]; q < rules.begin[k + 1]; ++q) {
    const TriangleRulePoint& p = rules.points[q];
    const Point3 r = x - p.a * edge1 - p.b * edge2;
    sum += p.weight * form.integrand(dot(r, r));
  }
  return sum;
}

/// 1 / r
struct SingleLayerForm {
  using value_type = double;
  KOKKOS_INLINE_FUNCTION double integrand(double squaredDistance) const { return 1 / std::sqrt(squaredDistance); }
  KOKKOS_INLINE_FUNCTION double factor(const BoundaryTriangle& t, const Point3&) const { return oneOver4Pi * t.area; }
  KOKKOS_INLINE_FUNCTION double near(const RuleTable&, const BoundaryTriangle& t, const Point3& x, bool) const {
    return oneOver4Pi * integralOfOneOverDistance(x, aroundCentroid(t, 1, {}));
  }
};

/// n . (x - y) / r^3, where the scalar product is the same for all y.
struct DoubleLayerForm {
  using value_type = double;
  double jump = 0;
  KOKKOS_INLINE_FUNCTION double integrand(double squaredDistance) const {
    return 1 / (squaredDistance * std::sqrt(squaredDistance));
  }
  KOKKOS_INLINE_FUNCTION double factor(const BoundaryTriangle& t, const Point3& x) const {
    return oneOver4Pi * t.area * dot(t.normal, x);
  }
  KOKKOS_INLINE_FUNCTION double near(const RuleTable&, const BoundaryTriangle& t, const Point3& x,
                                     bool isDiagonal) const {
    return isDiagonal ? jump : -oneOver4Pi * solidAngle(x, aroundCentroid(t, 1, {}));
  }
};

/// A near integral of exp(-kappa r) / r or exp(i kappa r) / r: the power series where kappa r is small; else the
/// triangle is cut into four similar ones, until all are far or small.
template <class Form>
KOKKOS_INLINE_FUNCTION typename Form::value_type nearExponential(const Form& form, const RuleTable& rules,
                                                                 const BoundaryTriangle& t, const Point3& x) {
  constexpr int deepest = 24;
  typename Form::value_type sum = 0;
  int digits[deepest + 1] = {};  // which of the four, at each level; level 0 is the triangle itself
  int level = 0;
  while (true) {
    // A part is the triangle, scaled around its own centroid; the middle one is turned: scale < 0.
    double scale = 1;
    Point3 shift;
    for (int l = 1; l <= level; ++l) {
      scale /= 2;
      if (digits[l] < 3) {
        shift = shift + scale * cornerOf(t, digits[l]);
      } else {
        scale = -scale;
      }
    }
    const double radius = std::fabs(scale) * t.radius, distance = norm(x - shift);
    const bool isFar = 2 * radius <= distance && ruleError(finestRuleDegree, finestRuleConstant, form.kappa * radius,
                                                           radius / distance) <= form.accuracy;
    if (isFar) {
      const auto mean = meanByRule(form, rules, numTriangleRules - 1, x - shift, scale * t.edge1, scale * t.edge2);
      sum += scale * scale * t.area * mean;
    } else if (level == deepest || form.kappa * (distance + radius) <= form.longestSeries) {
      sum += form.bySeries(x, aroundCentroid(t, scale, shift));
    } else {
      digits[++level] = 0;
      continue;
    }
    while (level > 0 && digits[level] == 3) {
      --level;
    }
    if (level == 0) {
      return sum;
    }
    ++digits[level];
  }
}

/// What the two exponential forms share.
struct ExponentialForm {
  double kappa = 0, accuracy = 0;
  double longestSeries = 0;  ///< kappa r up to which rounding, 1e-15 exp(2 kappa r), stays below the accuracy
  ExponentialForm() = default;
  ExponentialForm(double k, double a) : kappa(k), accuracy(a) {
    const double most = 0.5 * std::log(1e14 * a);
    longestSeries = most > 6 ? 6 : most < 1 ? 1 : most;
  }
  KOKKOS_INLINE_FUNCTION double factor(const BoundaryTriangle& t, const Point3&) const { return oneOver4Pi * t.area; }
};

/// exp(-kappa r) / r
struct YukawaForm : ExponentialForm {
  using ExponentialForm::ExponentialForm;
  using value_type = double;
  KOKKOS_INLINE_FUNCTION double integrand(double squaredDistance) const {
    const double r = std::sqrt(squaredDistance);
    return std::exp(-kappa * r) / r;
  }
  KOKKOS_INLINE_FUNCTION double bySeries(const Point3& x, const FlatTriangle& triangle) const {
    const auto parts = integralOfExponential(x, triangle, kappa, 1, 0.01 * accuracy);
    return parts.even - parts.odd;
  }
  KOKKOS_INLINE_FUNCTION double near(const RuleTable& rules, const BoundaryTriangle& t, const Point3& x, bool) const {
    return oneOver4Pi * nearExponential(*this, rules, t, x);
  }
};

/// exp(i kappa r) / r
struct HelmholtzForm : ExponentialForm {
  using ExponentialForm::ExponentialForm;
  using value_type = Kokkos::complex<double>;
  KOKKOS_INLINE_FUNCTION value_type integrand(double squaredDistance) const {
    const double r = std::sqrt(squaredDistance);
    return {std::cos(kappa * r) / r, std::sin(kappa * r) / r};
  }
  KOKKOS_INLINE_FUNCTION value_type bySeries(const Point3& x, const FlatTriangle& triangle) const {
    const auto parts = integralOfExponential(x, triangle, kappa, -1, 0.01 * accuracy);
    return {parts.even, parts.odd};
  }
  KOKKOS_INLINE_FUNCTION value_type near(const RuleTable& rules, const BoundaryTriangle& t, const Point3& x,
                                         bool) const {
    const double scale = oneOver4Pi;  // complex products take references, and constants have no address on devices
    return scale * nearExponential(*this, rules, t, x);
  }
};

/// Entry (i, j). \param x the centroid of triangle i, as seen from that of j, which is `t`
template <class Form>
KOKKOS_INLINE_FUNCTION typename Form::value_type boundaryEntry(const Form& form, const RuleTable& rules,
                                                               const BoundaryTriangle& t, const Point3& x,
                                                               bool isDiagonal) {
  const double squaredDistance = dot(x, x);
  for (int k = 0; k < numTriangleRules; ++k) {
    if (squaredDistance >= t.squaredLimit[k]) {
      return form.factor(t, x) * meanByRule(form, rules, k, x, t.edge1, t.edge2);
    }
  }
  return form.near(rules, t, x, isDiagonal);
}

}  // namespace Komvos::Impl
