/// \file Komvos_TriangleMesh.cpp
#include "Komvos_TriangleMesh.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace Komvos {
namespace {

/// Twice the area, in the direction of the normal.
Point3 areaVector(const TriangleMesh& mesh, int triangle) {
  const Point3 a = mesh.corner(triangle, 0);
  return cross(mesh.corner(triangle, 1) - a, mesh.corner(triangle, 2) - a);
}

/// The representative of `i`'s set. Halves the path to it on the way.
int rootOf(std::vector<int>& parent, int i) {
  while (parent[i] != i) {
    parent[i] = parent[parent[i]];
    i = parent[i];
  }
  return i;
}

template <class T, class Function>
std::vector<T> ofEachTriangle(const TriangleMesh& mesh, Function function) {
  std::vector<T> values;
  values.reserve(mesh.triangles.size());
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    values.push_back(function(t));
  }
  return values;
}

}  // namespace

int TriangleMesh::numBodies() const {
  if (triangles.empty()) {
    return 0;
  }
  return body.empty() ? 1 : *std::max_element(body.begin(), body.end()) + 1;
}

std::vector<Point3> centroidsOf(const TriangleMesh& mesh) {
  return ofEachTriangle<Point3>(
      mesh, [&](int t) { return (1.0 / 3.0) * (mesh.corner(t, 0) + mesh.corner(t, 1) + mesh.corner(t, 2)); });
}

std::vector<double> areasOf(const TriangleMesh& mesh) {
  return ofEachTriangle<double>(mesh, [&](int t) { return 0.5 * norm(areaVector(mesh, t)); });
}

std::vector<Box> boxesOf(const TriangleMesh& mesh) {
  return ofEachTriangle<Box>(mesh, [&](int t) {
    const Point3 a = mesh.corner(t, 0), b = mesh.corner(t, 1), c = mesh.corner(t, 2);
    return enclosing(enclosing({a, a}, {b, b}), {c, c});
  });
}

std::vector<Point3> normalsOf(const TriangleMesh& mesh) {
  return ofEachTriangle<Point3>(mesh, [&](int t) {
    const Point3 direction = areaVector(mesh, t);
    const double length = norm(direction);
    return length > 0 ? (1 / length) * direction : Point3{};
  });
}

std::vector<int> bodiesOf(const TriangleMesh& mesh) {
  std::vector<int> parent(mesh.vertices.size());
  std::iota(parent.begin(), parent.end(), 0);
  for (const auto& corners : mesh.triangles) {
    for (const int k : {1, 2}) {
      const int a = rootOf(parent, corners[0]), b = rootOf(parent, corners[k]);
      // The smaller number, for paths that are short where neighbours have similar numbers.
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<int> number(mesh.vertices.size(), -1);
  int numBodies = 0;
  return ofEachTriangle<int>(mesh, [&](int t) {
    int& body = number[rootOf(parent, mesh.triangles[t][0])];
    if (body < 0) {
      body = numBodies++;
    }
    return body;
  });
}

double volumeOf(const TriangleMesh& mesh, int body) {
  // Of the tetrahedra between a fixed point and each triangle. A point of the body is near all of them, and with it the
  // result does not suffer from a body that is far from the origin.
  Point3 origin;
  bool hasOrigin = false;
  double volume = 0;
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    if (mesh.bodyOf(t) != body) {
      continue;
    }
    if (!std::exchange(hasOrigin, true)) {
      origin = mesh.corner(t, 0);
    }
    volume += dot(mesh.corner(t, 0) - origin, areaVector(mesh, t)) / 6;
  }
  return volume;
}

}  // namespace Komvos
