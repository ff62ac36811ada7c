/// \file Komvos_TriangleMesh.hpp
/// Surfaces made of flat triangles.
#pragma once

#include <array>
#include <vector>

#include "Komvos_Box.hpp"
#include "Komvos_Point3.hpp"

namespace Komvos {

/// A surface, or several. Lengths are in the user's unit.
struct TriangleMesh {
  std::vector<Point3> vertices;
  /// Numbers of vertices, counter-clockwise as seen from outside.
  std::vector<std::array<int, 3>> triangles;
  /// Which body each triangle belongs to, from 0 on; empty: all to body 0. bodiesOf() finds them.
  std::vector<int> body;

  int numTriangles() const { return static_cast<int>(triangles.size()); }
  Point3 corner(int triangle, int k) const { return vertices[triangles[triangle][k]]; }
  int bodyOf(int triangle) const { return body.empty() ? 0 : body[triangle]; }
  int numBodies() const;  ///< 0 without triangles
};

// These expect triangles whose vertices exist: see checkMesh().

/// The centroid of each triangle.
std::vector<Point3> centroidsOf(const TriangleMesh& mesh);
/// The area of each triangle.
std::vector<double> areasOf(const TriangleMesh& mesh);
/// The box around each triangle: the supports of a ClusterTree.
std::vector<Box> boxesOf(const TriangleMesh& mesh);
/// Of unit length, outwards; zero for a triangle without area.
std::vector<Point3> normalsOf(const TriangleMesh& mesh);
/// Which triangles hang together by shared vertices: the list `body`, numbered by the first triangle of each.
std::vector<int> bodiesOf(const TriangleMesh& mesh);
/// The volume that the triangles of one body enclose; negative where they are oriented inwards. Only for closed bodies.
double volumeOf(const TriangleMesh& mesh, int body);

}  // namespace Komvos
