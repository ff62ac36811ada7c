/// \file hmatrix_points.hpp
/// The points and the kernel of the benchmarks of hierarchical matrices.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "Komvos_Point3.hpp"

namespace Komvos::Perf {

/// Points on a spiral: around a sphere of radius 1, or a cylinder of radius 1 with as much room for each point in both
/// directions.
inline std::vector<Point3> pointsOf(const std::string& geometry, int n) {
  std::vector<Point3> points;
  const double pi = 3.14159265358979323846, step = 1.75 * pi / std::sqrt(static_cast<double>(n));
  const auto around = static_cast<int>(2 * pi / step);
  for (int i = 0; i < n; ++i) {
    if (geometry == "sphere") {
      const double z = 1 - (2 * i + 1.0) / n, r = std::sqrt(1 - z * z), angle = 2.399963229728653 * i;
      points.push_back({r * std::cos(angle), r * std::sin(angle), z});
    } else {
      const double angle = 2 * pi * i / around;
      points.push_back({std::cos(angle), std::sin(angle), step * i / around});
    }
  }
  return points;
}

/// 1/r; where r = 0, its mean over a disc as large as a point's share of the surface: 2 / radius.
struct OneOverDistance {
  const std::vector<Point3>& points;
  double onDiagonal;
  double operator()(int i, int j) const { return i == j ? onDiagonal : 1 / norm(points[i] - points[j]); }
};

inline OneOverDistance oneOverDistance(const std::vector<Point3>& points, const std::string& geometry) {
  const double pi = 3.14159265358979323846;
  const double area = geometry == "sphere" ? 4 * pi : 1.75 * 1.75 * pi * pi;  // of all points
  return {points, 2 / std::sqrt(area / pi / static_cast<double>(points.size()))};
}

}  // namespace Komvos::Perf
