/// \file Komvos_MeshCheck.hpp
/// Is a mesh fit for boundary elements?
#pragma once

#include <string>
#include <vector>

#include "Komvos_TriangleMesh.hpp"

namespace Komvos {

/// One kind of fault: how often, and where it was found first. Triangles and vertices count from 0.
struct MeshFault {
  long count = 0;
  int first = -1;  ///< the lowest triangle that has it; for vertices that are not finite, the lowest vertex
};

/// What is wrong with a mesh.
struct MeshCheck {
  MeshFault notFinite;         ///< vertices with a coordinate that is not finite
  MeshFault badVertexNumbers;  ///< triangles that name a vertex that does not exist
  /// Triangles without area: two corners in one place, or all three on a line, as far as their rounding lets one tell.
  MeshFault degenerate;
  MeshFault duplicates;        ///< triangles with the same three corners as an earlier one
  MeshFault openEdges;         ///< edges of one triangle only: a hole, or the rim of an open surface
  MeshFault manyTriangles;     ///< edges of more than two triangles
  MeshFault turnedEdges;       ///< edges whose two triangles go round in opposite ways: one of them is turned over
  /// Closed bodies whose triangles all face inwards. A body is here what hangs together by edges.
  MeshFault inwardBodies;

  /// No system of equations can be made of it: not finite, bad numbers, degenerate, duplicates.
  bool isUnusable() const {
    return notFinite.count + badVertexNumbers.count + degenerate.count + duplicates.count > 0;
  }
  bool isClosed() const { return openEdges.count == 0; }
  /// Closed, and all triangles face outwards: what kernels need that look at normals.
  bool isOriented() const {
    return isClosed() && manyTriangles.count == 0 && turnedEdges.count == 0 && inwardBodies.count == 0;
  }
  /// One line for each kind of fault that was found, such as "3 triangles have no area (the first is triangle 17)".
  std::vector<std::string> faults() const;
};

/// Corners count as the same where their vertices have the same number. Takes O(n log n).
MeshCheck checkMesh(const TriangleMesh& mesh);

}  // namespace Komvos
