/// \file Komvos_Point3.hpp
/// Points and vectors of three-dimensional space, on the host and on devices.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cmath>

namespace Komvos {

/// A point, or a vector. Lengths are in the user's unit.
struct Point3 {
  double x = 0, y = 0, z = 0;
};

KOKKOS_INLINE_FUNCTION Point3 operator+(const Point3& a, const Point3& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
KOKKOS_INLINE_FUNCTION Point3 operator-(const Point3& a, const Point3& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
KOKKOS_INLINE_FUNCTION Point3 operator*(double s, const Point3& a) { return {s * a.x, s * a.y, s * a.z}; }
KOKKOS_INLINE_FUNCTION double dot(const Point3& a, const Point3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
KOKKOS_INLINE_FUNCTION Point3 cross(const Point3& a, const Point3& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
KOKKOS_INLINE_FUNCTION double norm(const Point3& a) { return std::sqrt(dot(a, a)); }

}  // namespace Komvos
