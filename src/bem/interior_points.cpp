#include "bem/interior_points.hpp"

#include <algorithm>
#include <cmath>

namespace Komvos::Program {

namespace {

const double pi = std::acos(-1.0);

/// Member `index` of van der Corput's sequence; in three bases, the points fill a box evenly (Halton).
double radicalInverse(int index, int base) {
  double value = 0, digit = 1;
  for (int rest = index; rest > 0; rest /= base) {
    digit /= base;
    value += digit * (rest % base);
  }
  return value;
}

/// Whether the point is inside of the triangles, and `margin` away from their centroids.
bool isInside(const TriangleMesh& mesh, const std::vector<int>& triangles, const Point3& point, double margin) {
  for (const int t : triangles) {
    const Point3 centroid = (1.0 / 3) * (mesh.corner(t, 0) + mesh.corner(t, 1) + mesh.corner(t, 2));
    if (norm(point - centroid) < margin) {
      return false;
    }
  }
  double angle = 0;
  for (const int t : triangles) {
    angle += solidAngle(point, mesh.corner(t, 0), mesh.corner(t, 1), mesh.corner(t, 2));
  }
  return angle > 2 * pi;  // 4 pi inside, 0 outside
}

/// Up to `count` points in one body.
void addPointsOf(const TriangleMesh& mesh, const std::vector<int>& triangles, int count, std::vector<Point3>& points) {
  Box box{mesh.corner(triangles.front(), 0), mesh.corner(triangles.front(), 0)};
  for (const int t : triangles) {
    for (int k = 0; k < 3; ++k) {
      box = enclosing(box, {mesh.corner(t, k), mesh.corner(t, k)});
    }
  }
  const Point3 size = box.most - box.least;
  const int mostTries = 40 * count;
  for (int i = 1, found = 0; i <= mostTries && found < count; ++i) {
    const Point3 point =
        box.least + Point3{size.x * radicalInverse(i, 2), size.y * radicalInverse(i, 3), size.z * radicalInverse(i, 5)};
    if (isInside(mesh, triangles, point, 0.1 * box.diameter())) {
      points.push_back(point);
      ++found;
    }
  }
}

}  // namespace

double solidAngle(const Point3& from, const Point3& a, const Point3& b, const Point3& c) {
  const Point3 u = a - from, v = b - from, w = c - from;
  const double lu = norm(u), lv = norm(v), lw = norm(w);
  // tan(angle / 2) = u . (v x w) / (|u| |v| |w| + (u . v) |w| + (u . w) |v| + (v . w) |u|)
  return 2 * std::atan2(dot(u, cross(v, w)), lu * lv * lw + dot(u, v) * lw + dot(u, w) * lv + dot(v, w) * lu);
}

std::vector<Point3> interiorPoints(const TriangleMesh& mesh, int count) {
  std::vector<std::vector<int>> trianglesOf(mesh.numBodies());
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    trianglesOf[mesh.bodyOf(t)].push_back(t);
  }
  const int bodies = static_cast<int>(trianglesOf.size());
  std::vector<Point3> points;
  for (int body = 0; body < bodies && static_cast<int>(points.size()) < count; ++body) {
    addPointsOf(mesh, trianglesOf[body], std::max(1, count / bodies), points);
  }
  return points;
}

}  // namespace Komvos::Program
