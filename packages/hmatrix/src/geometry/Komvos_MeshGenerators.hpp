/// \file Komvos_MeshGenerators.hpp
/// Meshes of shapes whose fields are known.
#pragma once

#include "Komvos_TriangleMesh.hpp"

namespace Komvos {

/// A sphere of exactly `numTriangles` triangles of about the same size: rings of vertices on the sphere, and a vertex
/// at each pole.
/// \throws BadInput unless numTriangles is even and at least 8, and the radius above 0
TriangleMesh sphereMesh(int numTriangles, double radius = 1, const Point3& centre = {});

/// A closed cylinder around the z axis, of exactly `numTriangles` triangles of about the same size, from z = 0 to
/// `height`.
/// \throws BadInput unless numTriangles is even and at least 24, and the lengths above 0
TriangleMesh cylinderMesh(int numTriangles, double radius = 1, double height = 4);

/// Two spheres of the same radius at z = +-distance / 2: bodies 0 (above) and 1.
/// \throws BadInput as sphereMesh(), with half of the triangles, or if the spheres touch
TriangleMesh twoSpheresMesh(int numTriangles, double radius = 0.25, double distance = 1);

/// `perSide`^3 spheres of radius `radius` at the points of a cubic lattice, `distance` apart: a body each. The first is
/// at the origin, the next along x; then come y and z.
/// \param numTriangles of all together; each sphere gets the same even number, so the mesh may have a few less
/// \throws BadInput as above
TriangleMesh sphereArrayMesh(int numTriangles, int perSide = 3, double radius = 0.25, double distance = 1);

/// Several meshes as one; each keeps its bodies, numbered one after the other.
TriangleMesh united(const TriangleMesh& a, const TriangleMesh& b);

}  // namespace Komvos
