/// \file Komvos_MeshCheck.cpp
/// How it works: triangles with bad vertex numbers are counted and then left out. Each other triangle gives its three
/// sides; sorted by their ends, those that are the same edge stand together. Triangles that share an edge are of one
/// piece. Where a piece is closed and its triangles go round the same way, the sign of its volume tells whether it
/// faces inwards. Pieces are found here rather than by bodiesOf(), as bodies that touch in a vertex must not be taken
/// for one.
#include "Komvos_MeshCheck.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace Komvos {
namespace {

bool isFinite(const Point3& p) { return std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z); }

void add(MeshFault& fault, int where) {
  fault.first = fault.count == 0 ? where : std::min(fault.first, where);
  ++fault.count;
}

bool hasGoodNumbers(const TriangleMesh& mesh, int triangle) {
  const auto& corners = mesh.triangles[triangle];
  return std::all_of(corners.begin(), corners.end(),
                     [&](int v) { return v >= 0 && static_cast<std::size_t>(v) < mesh.vertices.size(); });
}

bool namesAVertexTwice(const std::array<int, 3>& corners) {
  return corners[0] == corners[1] || corners[1] == corners[2] || corners[2] == corners[0];
}

/// Its height is less than what rounding of the coordinates can make of three points on a line.
bool isFlat(const TriangleMesh& mesh, int triangle) {
  const Point3 a = mesh.corner(triangle, 0), b = mesh.corner(triangle, 1), c = mesh.corner(triangle, 2);
  if (!isFinite(a) || !isFinite(b) || !isFinite(c)) {
    return false;
  }
  const double longest = std::max({norm(b - a), norm(c - b), norm(a - c)});
  const double away = std::max({norm(a), norm(b), norm(c)});
  const double rounding = 4 * std::numeric_limits<double>::epsilon() * away;
  return !(norm(cross(b - a, c - a)) > rounding * longest);
}

/// One side of a triangle.
struct Side {
  int low, high;  ///< its ends
  int triangle;
  bool upwards;  ///< the triangle goes round from the end with the lower number to the other
};

std::vector<Side> sortedSides(const TriangleMesh& mesh) {
  std::vector<Side> sides;
  sides.reserve(3 * mesh.triangles.size());
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    const auto& corners = mesh.triangles[t];
    // A triangle with two equal corners fills no gap between others.
    if (!hasGoodNumbers(mesh, t) || namesAVertexTwice(corners)) {
      continue;
    }
    for (int k = 0; k < 3; ++k) {
      const int from = corners[k], to = corners[(k + 1) % 3];
      sides.push_back({std::min(from, to), std::max(from, to), t, from < to});
    }
  }
  std::sort(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
    return std::tie(a.low, a.high, a.triangle) < std::tie(b.low, b.high, b.triangle);
  });
  return sides;
}

/// Triangles that hang together by edges.
class Pieces {
 public:
  explicit Pieces(int numTriangles) : parent_(numTriangles), isSound_(numTriangles, true) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  /// The piece's lowest triangle.
  int pieceOf(int triangle) {
    while (parent_[triangle] != triangle) {
      parent_[triangle] = parent_[parent_[triangle]];
      triangle = parent_[triangle];
    }
    return triangle;
  }
  void join(int a, int b) {
    a = pieceOf(a);
    b = pieceOf(b);
    const bool isSound = isSound_[a] && isSound_[b];
    parent_[std::max(a, b)] = std::min(a, b);
    isSound_[std::min(a, b)] = isSound;
  }
  /// It is not closed, or its triangles do not go round the same way.
  void setUnsound(int triangle) { isSound_[pieceOf(triangle)] = false; }
  bool isSound(int piece) const { return isSound_[piece]; }

 private:
  std::vector<int> parent_;
  std::vector<bool> isSound_;
};

void checkVertices(const TriangleMesh& mesh, MeshCheck& result) {
  for (std::size_t v = 0; v < mesh.vertices.size(); ++v) {
    if (!isFinite(mesh.vertices[v])) {
      add(result.notFinite, static_cast<int>(v));
    }
  }
}

void checkTriangles(const TriangleMesh& mesh, MeshCheck& result) {
  std::vector<std::pair<std::array<int, 3>, int>> corners;
  corners.reserve(mesh.triangles.size());
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    if (!hasGoodNumbers(mesh, t)) {
      add(result.badVertexNumbers, t);
      continue;
    }
    if (namesAVertexTwice(mesh.triangles[t]) || isFlat(mesh, t)) {
      add(result.degenerate, t);
    }
    corners.emplace_back(mesh.triangles[t], t);
    std::sort(corners.back().first.begin(), corners.back().first.end());
  }
  std::sort(corners.begin(), corners.end());
  for (std::size_t i = 1; i < corners.size(); ++i) {
    if (corners[i].first == corners[i - 1].first) {
      add(result.duplicates, corners[i].second);
    }
  }
}

/// \return the pieces, with those marked that are not sound
Pieces checkEdges(const TriangleMesh& mesh, MeshCheck& result) {
  Pieces pieces(mesh.numTriangles());
  const std::vector<Side> sides = sortedSides(mesh);
  for (auto first = sides.begin(), last = first; first != sides.end(); first = last) {
    last = std::find_if(first, sides.end(),
                        [&](const Side& s) { return s.low != first->low || s.high != first->high; });
    for (auto side = first; side != last; ++side) {
      pieces.join(first->triangle, side->triangle);
    }
    const auto count = last - first;
    MeshFault* fault = nullptr;
    if (count == 1) {
      fault = &result.openEdges;
    } else if (count > 2) {
      fault = &result.manyTriangles;
    } else if (first->upwards == (first + 1)->upwards) {
      fault = &result.turnedEdges;
    }
    if (fault != nullptr) {
      add(*fault, first->triangle);
      pieces.setUnsound(first->triangle);
    }
  }
  return pieces;
}

void checkDirection(const TriangleMesh& mesh, Pieces& pieces, MeshCheck& result) {
  struct Extent {
    double volume = 0, area = 0, size = 0;
  };
  std::vector<Extent> extents(mesh.triangles.size());
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    if (!hasGoodNumbers(mesh, t)) {
      continue;
    }
    const int piece = pieces.pieceOf(t);
    const Point3 origin = mesh.corner(piece, 0), a = mesh.corner(t, 0);
    const Point3 normal = cross(mesh.corner(t, 1) - a, mesh.corner(t, 2) - a);
    Extent& extent = extents[piece];
    extent.volume += dot(a - origin, normal) / 6;
    extent.area += norm(normal) / 2;
    extent.size = std::max(extent.size, norm(a - origin));
  }
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    // A folded sheet has no volume, and rounding must not make it an inward body.
    const Extent& extent = extents[t];
    if (extent.volume < -1e-12 * extent.area * extent.size && pieces.isSound(t)) {
      add(result.inwardBodies, t);
    }
  }
}

/// \param one, many what is wrong, for one and for several
/// \param place "triangle" or "vertex"
void describe(std::vector<std::string>& lines, const MeshFault& fault, const char* one, const char* many,
              const char* place) {
  if (fault.count == 0) {
    return;
  }
  const std::string where = std::string(place) + " " + std::to_string(fault.first);
  if (fault.count == 1) {
    lines.push_back(std::string("1 ") + one + " (" + where + ")");
  } else {
    lines.push_back(std::to_string(fault.count) + " " + many + " (the first is " + where + ")");
  }
}

}  // namespace

std::vector<std::string> MeshCheck::faults() const {
  std::vector<std::string> lines;
  describe(lines, notFinite, "vertex has a coordinate that is not finite",
           "vertices have coordinates that are not finite", "vertex");
  describe(lines, badVertexNumbers, "triangle names a vertex that does not exist",
           "triangles name vertices that do not exist", "triangle");
  describe(lines, degenerate, "triangle has no area", "triangles have no area", "triangle");
  describe(lines, duplicates, "triangle has the same corners as an earlier one",
           "triangles have the same corners as an earlier one", "triangle");
  describe(lines, openEdges, "edge belongs to one triangle only, so the surface is open there",
           "edges belong to one triangle only, so the surface is open there", "of triangle");
  describe(lines, manyTriangles, "edge belongs to more than two triangles", "edges belong to more than two triangles",
           "of triangle");
  describe(lines, turnedEdges, "edge has triangles on its sides that face opposite ways",
           "edges have triangles on their sides that face opposite ways", "of triangle");
  describe(lines, inwardBodies, "closed body faces inwards", "closed bodies face inwards", "with triangle");
  return lines;
}

MeshCheck checkMesh(const TriangleMesh& mesh) {
  MeshCheck result;
  checkVertices(mesh, result);
  checkTriangles(mesh, result);
  Pieces pieces = checkEdges(mesh, result);
  checkDirection(mesh, pieces, result);
  return result;
}

}  // namespace Komvos
