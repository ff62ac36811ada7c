/// \file Komvos_BoundaryEntry.cpp
#include "Komvos_BoundaryEntry.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {
namespace {

/// c_k of ruleError(): for 1 / r, with or without exponential function, and for 1 / r^3.
constexpr double constants[numTriangleRules] = {0.27, 0.027, 0.0065, 0.0125, 0.0012, finestRuleConstant};
constexpr double cubedConstants[numTriangleRules] = {1.5, 0.36, 0.105, 0.34, 0.034, 0.001};

/// The least distance / h from which on the error of a rule is below the accuracy, or infinity.
double leastRatio(int degree, double c, double z, double accuracy) {
  const double least = 2, most = 1e12;
  const auto isGood = [&](double ratio) { return ruleError(degree, c, z, 1 / ratio) <= accuracy; };
  if (!isGood(most)) {
    return std::numeric_limits<double>::infinity();
  }
  double bad = least, good = most;
  if (isGood(least)) {
    return least;
  }
  while (good > 1.001 * bad) {
    const double middle = std::sqrt(bad * good);
    (isGood(middle) ? good : bad) = middle;
  }
  return good;
}

/// Of all rules. Falls with the degree.
std::array<double, numTriangleRules> leastRatios(const FarCriterion& criterion, double z) {
  std::array<double, numTriangleRules> ratios{};
  double previous = std::numeric_limits<double>::infinity();
  for (int k = 0; k < numTriangleRules; ++k) {
    const double c = criterion.isCubed ? cubedConstants[k] : constants[k];
    previous = ratios[k] = std::min(previous, leastRatio(triangleRules()[k].degree, c, z, criterion.accuracy));
  }
  if (criterion.isCubed) {
    ratios.back() = ratios[numTriangleRules - 2];  // the exact integral costs less than 33 points
  }
  return ratios;
}

/// By up to 5 %, so that there are few different values.
double roundedUp(double z) {
  const double step = std::log(1.05);
  return z > 0 ? std::exp(step * std::ceil(std::log(z) / step)) : 0;
}

void requireSound(const FarCriterion& criterion) {
  if (!(criterion.accuracy > 0 && criterion.accuracy < 1)) {
    throw BadInput("BoundaryKernelOptions: accuracy is " + std::to_string(criterion.accuracy) +
                   ", expected a number between 0 and 1");
  }
  if (!(criterion.kappa >= 0 && std::isfinite(criterion.kappa))) {
    throw BadInput("Boundary kernel: kappa or wavenumber is " + std::to_string(criterion.kappa) +
                   ", expected a number of at least 0");
  }
}

/// \throws BadInput without area, or with coordinates that are not finite
BoundaryTriangle shapeOf(const TriangleMesh& mesh, int number) {
  const Point3 a = mesh.corner(number, 0), b = mesh.corner(number, 1), c = mesh.corner(number, 2);
  BoundaryTriangle t;
  t.centroid = (1.0 / 3) * (a + b + c);
  t.edge1 = b - a;
  t.edge2 = c - a;
  // Any two edges give the normal; those whose lengths have the smallest product give it best.
  const Point3 edge3 = c - b;
  const double l1 = dot(t.edge1, t.edge1), l2 = dot(t.edge2, t.edge2), l3 = dot(edge3, edge3);
  const Point3 normal = l3 >= std::max(l1, l2) ? cross(t.edge1, t.edge2)
                        : l2 >= l1             ? cross(t.edge1, edge3)
                                               : cross(t.edge2, edge3);
  const double length = norm(normal);
  if (!(length > 0 && std::isfinite(length))) {
    throw BadInput("Boundary kernel: triangle " + std::to_string(number) + " has area " + std::to_string(0.5 * length) +
                   ", expected a number above 0");
  }
  t.normal = (1 / length) * normal;
  t.area = 0.5 * length;
  for (int k = 0; k < 3; ++k) {
    t.radius = std::max(t.radius, norm(cornerOf(t, k)));
  }
  return t;
}

}  // namespace

std::vector<TriangleRulePoint> rulePointsAroundCentroid(RuleTable& table) {
  std::vector<TriangleRulePoint> points;
  for (int k = 0; k < numTriangleRules; ++k) {
    table.begin[k] = static_cast<int>(points.size());
    for (const TriangleRulePoint& p : triangleRules()[k].points) {
      points.push_back({p.a - 1.0 / 3, p.b - 1.0 / 3, p.weight});
    }
  }
  table.begin[numTriangleRules] = static_cast<int>(points.size());
  return points;
}

std::vector<BoundaryTriangle> boundaryTriangles(const TriangleMesh& mesh, const FarCriterion& criterion) {
  requireSound(criterion);
  std::vector<BoundaryTriangle> triangles(mesh.numTriangles());
  std::map<double, std::array<double, numTriangleRules>> known;  // z to ratios
  for (int i = 0; i < mesh.numTriangles(); ++i) {
    BoundaryTriangle& t = triangles[i] = shapeOf(mesh, i);
    const double z = roundedUp(criterion.kappa * t.radius);
    const auto place = known.find(z);
    const auto& ratios = place != known.end() ? place->second : known[z] = leastRatios(criterion, z);
    for (int k = 0; k < numTriangleRules; ++k) {
      t.squaredLimit[k] = ratios[k] * t.radius * (ratios[k] * t.radius);
    }
  }
  return triangles;
}

}  // namespace Komvos::Impl
