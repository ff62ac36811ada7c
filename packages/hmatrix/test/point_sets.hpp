/// \file point_sets.hpp
/// Points and kernels for the tests.
#pragma once

#include <cmath>
#include <complex>
#include <vector>

#include "Komvos_EntryKernel.hpp"
#include "Komvos_Point3.hpp"

namespace Komvos::test {

/// n points spread evenly over the unit sphere, on a spiral from pole to pole.
inline std::vector<Point3> spiralOnSphere(int n) {
  std::vector<Point3> points;
  const double goldenAngle = 2.399963229728653;
  for (int i = 0; i < n; ++i) {
    const double z = 1 - (2 * i + 1.0) / n, r = std::sqrt(1 - z * z);
    points.push_back({r * std::cos(goldenAngle * i), r * std::sin(goldenAngle * i), z});
  }
  return points;
}

/// f of the distance of two points, and something for points in one place.
template <class Scalar, class Function>
auto distanceKernel(const std::vector<Point3>& rows, const std::vector<Point3>& columns, Function f,
                    Scalar inOnePlace) {
  const auto entry = [&rows, &columns, f, inOnePlace](int i, int j) -> Scalar {
    const double r = norm(rows[i] - columns[j]);
    return r > 0 ? f(r) : inOnePlace;
  };
  return FunctionKernel<Scalar, decltype(entry)>(entry, true);
}

}  // namespace Komvos::test
