/// \file Komvos_MeshFile.hpp
/// Reads surfaces from files.
#pragma once

#include <string>

#include "Komvos_TriangleMesh.hpp"

namespace Komvos {

/// Reads OBJ, OFF and STL by the library Assimp, and Gmsh's MSH (versions 2.2 and 4.1, text or binary), as the ending
/// of the file's name says. Polygons become triangles; of a Gmsh mesh, the surface triangles and quadrangles count, of
/// curved ones their corners. Vertices at exactly the same place become one, as STL repeats them; those of no triangle
/// are left out. The list `body` is set by bodiesOf(); nothing else is repaired: see checkMesh().
///
/// Assimp keeps coordinates in 32 bits: those of OBJ, OFF and STL are rounded to 6e-8 of their size. A mesh that is far
/// from the origin in comparison with its triangles should be moved there first, as vertices may fall together.
/// \param group only what belongs to this group or object of an OBJ file; empty: everything
/// \note Not collective. May be called by several threads.
/// \throws BadInput with the file's name if it cannot be read, if it breaks off or has a fault, or has no triangle or
/// no such group; for OBJ, OFF and STL also if Komvos was built without Assimp
TriangleMesh readMesh(const std::string& path, const std::string& group = "");

}  // namespace Komvos
