/// \file Komvos_MeshGenerators.cpp
/// How it works: spheres and cylinders are surfaces of revolution around the z axis: a vertex at the top, rings of
/// vertices, a vertex at the bottom. A ring of n vertices has n edges, each of which carries one triangle above the
/// ring and one below. So a mesh of N triangles needs N / 2 vertices in its rings, which are shared out in proportion
/// to the rings' circumferences: edges of the same length everywhere.
///
/// Between two rings the triangles are put in the order of the angles of their edges' middles. For points on two lines
/// this is the Delaunay triangulation, as the middle is below the centre of the triangle's circumcircle.
#include "Komvos_MeshGenerators.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos {
namespace {

constexpr double pi = 3.14159265358979323846;

/// Of vertices at the same height. Vertex i is at the angle (i + shift) / count of a full turn.
struct Ring {
  double radius, z;
  int count = 0;
  double shift = 0;  ///< -1/2 or 0
  int first = 0;     ///< the number of its first vertex

  int vertex(int i) const { return first + i % count; }
  double middleOfEdge(int i) const { return (i + 0.5 + shift) / count; }
};

std::string text(double value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

void checkCount(const char* function, int numTriangles, int least) {
  if (numTriangles < least || numTriangles % 2 != 0) {
    throw BadInput(std::string(function) + ": " + std::to_string(numTriangles) +
                   " triangles; an even number is needed, at least " + std::to_string(least));
  }
}

void checkLength(const char* function, const char* name, double length) {
  if (!(length > 0) || !std::isfinite(length)) {
    throw BadInput(std::string(function) + ": the " + name + " is " + text(length) +
                   "; it must be above 0, and finite");
  }
}

/// The length of an edge, if `area` is covered by `numTriangles` triangles with equal sides.
double edgeLength(double area, int numTriangles) { return std::sqrt(4 * area / (std::sqrt(3.0) * numTriangles)); }

/// How often the height of such triangles fits into `length`, rounded, from 1 to `most`.
int numBands(double length, double edge, int most) {
  return std::max(1, static_cast<int>(std::min(std::round(length / (edge * std::sqrt(0.75))), 1.0 * most)));
}

/// Shares `numVertices` out, at least three to each ring and the rest in proportion to the radius, rounded to whole
/// numbers: down, and up where most was cut off.
void shareOut(std::vector<Ring>& rings, int numVertices) {
  const double sum = std::accumulate(rings.begin(), rings.end(), 0.0,
                                     [](double s, const Ring& ring) { return s + ring.radius; });
  std::vector<std::pair<double, std::size_t>> cutOff;
  int left = numVertices;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const double share = numVertices * rings[i].radius / sum;
    rings[i].count = std::max(3, static_cast<int>(share));
    left -= rings[i].count;
    cutOff.emplace_back(rings[i].count - share, i);
  }
  std::sort(cutOff.begin(), cutOff.end());
  for (std::size_t i = 0; left > 0; ++i, --left) {
    ++rings[cutOff[i % cutOff.size()].second].count;
  }
  // Too many are out where small rings took three.
  for (; left < 0; ++left) {
    --std::max_element(rings.begin(), rings.end(), [](const Ring& a, const Ring& b) { return a.count < b.count; })
          ->count;
  }
}

/// \param upper, lower seen from outside, angles grow to the right
void addBand(TriangleMesh& mesh, const Ring& upper, const Ring& lower) {
  int i = 0, j = 0;
  while (i < upper.count || j < lower.count) {
    const int above = upper.vertex(i), below = lower.vertex(j);
    if (j == lower.count || (i < upper.count && upper.middleOfEdge(i) <= lower.middleOfEdge(j))) {
      mesh.triangles.push_back({above, below, upper.vertex(++i)});
    } else {
      mesh.triangles.push_back({above, below, lower.vertex(++j)});
    }
  }
}

/// \param rings from the top down, with radius and z
TriangleMesh revolved(double top, std::vector<Ring> rings, double bottom, int numTriangles) {
  shareOut(rings, numTriangles / 2);
  TriangleMesh mesh;
  mesh.vertices.push_back({0, 0, top});
  for (std::size_t r = 0; r < rings.size(); ++r) {
    Ring& ring = rings[r];
    // Neighbours with the same number of vertices are turned by half an edge.
    ring.shift = r % 2 == 0 ? 0 : -0.5;
    ring.first = static_cast<int>(mesh.vertices.size());
    for (int i = 0; i < ring.count; ++i) {
      const double angle = 2 * pi * (i + ring.shift) / ring.count;
      mesh.vertices.push_back({ring.radius * std::cos(angle), ring.radius * std::sin(angle), ring.z});
    }
  }
  const int last = static_cast<int>(mesh.vertices.size());
  mesh.vertices.push_back({0, 0, bottom});
  mesh.triangles.reserve(numTriangles);
  for (int i = 0; i < rings.front().count; ++i) {
    mesh.triangles.push_back({0, rings.front().vertex(i), rings.front().vertex(i + 1)});
  }
  for (std::size_t r = 1; r < rings.size(); ++r) {
    addBand(mesh, rings[r - 1], rings[r]);
  }
  for (int i = 0; i < rings.back().count; ++i) {
    mesh.triangles.push_back({last, rings.back().vertex(i + 1), rings.back().vertex(i)});
  }
  mesh.body.assign(mesh.triangles.size(), 0);
  return mesh;
}

}  // namespace

TriangleMesh sphereMesh(int numTriangles, double radius, const Point3& centre) {
  checkCount("sphereMesh", numTriangles, 8);
  checkLength("sphereMesh", "radius", radius);
  // Of a sphere of radius 1, as ratios of lengths count.
  const int bands = std::max(2, numBands(pi, edgeLength(4 * pi, numTriangles), numTriangles));
  std::vector<Ring> rings;
  for (int i = 1; i < bands; ++i) {
    rings.push_back({std::sin(pi * i / bands), std::cos(pi * i / bands)});
  }
  TriangleMesh mesh = revolved(1, std::move(rings), -1, numTriangles);
  for (Point3& vertex : mesh.vertices) {
    vertex = centre + radius * vertex;
  }
  return mesh;
}

TriangleMesh cylinderMesh(int numTriangles, double radius, double height) {
  checkCount("cylinderMesh", numTriangles, 24);
  checkLength("cylinderMesh", "radius", radius);
  checkLength("cylinderMesh", "height", height);
  const double edge = edgeLength(2 * pi * radius * (radius + height), numTriangles);
  // A ring has three vertices at least: no more rings than that, of which a cap has one for each of its bands.
  const int mostRings = numTriangles / 2 / 3;
  const int capBands = numBands(radius, edge, (mostRings - 1) / 2);
  const int sideBands = numBands(height, edge, mostRings - 2 * capBands + 1);
  std::vector<Ring> rings;
  for (int i = 1; i < capBands; ++i) {
    rings.push_back({radius * i / capBands, height});
  }
  for (int i = sideBands; i >= 0; --i) {
    rings.push_back({radius, height * i / sideBands});
  }
  for (int i = capBands - 1; i > 0; --i) {
    rings.push_back({radius * i / capBands, 0});
  }
  return revolved(height, std::move(rings), 0, numTriangles);
}

TriangleMesh twoSpheresMesh(int numTriangles, double radius, double distance) {
  if (numTriangles % 4 != 0) {
    throw BadInput("twoSpheresMesh: " + std::to_string(numTriangles) +
                   " triangles; a multiple of 4 is needed, an even number for each sphere");
  }
  checkCount("twoSpheresMesh", numTriangles, 16);
  checkLength("twoSpheresMesh", "radius", radius);
  if (!(distance > 2 * radius) || !std::isfinite(distance)) {
    throw BadInput("twoSpheresMesh: spheres of radius " + text(radius) + " at the distance " + text(distance) +
                   " touch; it must be more than twice the radius, and finite");
  }
  return united(sphereMesh(numTriangles / 2, radius, {0, 0, distance / 2}),
                sphereMesh(numTriangles / 2, radius, {0, 0, -distance / 2}));
}

TriangleMesh sphereArrayMesh(int numTriangles, int perSide, double radius, double distance) {
  // 1290^3 is near what an int can hold, and that many spheres cannot have 8 triangles each.
  if (perSide < 1 || perSide > 1290) {
    throw BadInput("sphereArrayMesh: " + std::to_string(perSide) +
                   " spheres a side; at least 1 is needed, at most 1290");
  }
  const int numSpheres = perSide * perSide * perSide;
  const int numEach = numTriangles / numSpheres / 2 * 2;
  if (numEach < 8) {
    throw BadInput("sphereArrayMesh: " + std::to_string(numTriangles) + " triangles for " + std::to_string(numSpheres) +
                   " spheres; each needs at least 8");
  }
  checkLength("sphereArrayMesh", "radius", radius);
  if (perSide > 1 && (!(distance > 2 * radius) || !std::isfinite(distance))) {
    throw BadInput("sphereArrayMesh: spheres of radius " + text(radius) + " at the distance " + text(distance) +
                   " touch; it must be more than twice the radius, and finite");
  }
  const TriangleMesh sphere = sphereMesh(numEach, radius);
  TriangleMesh mesh;
  for (int s = 0; s < numSpheres; ++s) {
    const Point3 place{distance * (s % perSide), distance * (s / perSide % perSide),
                       distance * (s / perSide / perSide)};
    const int firstVertex = static_cast<int>(mesh.vertices.size());
    for (const Point3& vertex : sphere.vertices) {
      mesh.vertices.push_back(place + vertex);
    }
    for (const auto& corners : sphere.triangles) {
      mesh.triangles.push_back({firstVertex + corners[0], firstVertex + corners[1], firstVertex + corners[2]});
      mesh.body.push_back(s);
    }
  }
  return mesh;
}

TriangleMesh united(const TriangleMesh& a, const TriangleMesh& b) {
  TriangleMesh both = a;
  both.vertices.insert(both.vertices.end(), b.vertices.begin(), b.vertices.end());
  both.body.resize(a.triangles.size(), 0);
  const int firstVertex = static_cast<int>(a.vertices.size()), firstBody = a.numBodies();
  for (int t = 0; t < b.numTriangles(); ++t) {
    const auto& corners = b.triangles[t];
    both.triangles.push_back({firstVertex + corners[0], firstVertex + corners[1], firstVertex + corners[2]});
    both.body.push_back(firstBody + b.bodyOf(t));
  }
  return both;
}

}  // namespace Komvos
