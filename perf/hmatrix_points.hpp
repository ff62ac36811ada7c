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

struct OneOverDistance {
  const std::vector<Point3>& points;
  double operator()(int i, int j) const { return 1 / (norm(points[i] - points[j]) + 1e-10); }
};

}  // namespace Komvos::Perf
