/// \file Komvos_AssimpFile.hpp
/// Reads the formats for which the library Assimp is used.
#pragma once

#include <string>

#include "Komvos_TriangleMesh.hpp"

namespace Komvos::Impl {

/// \param group of an OBJ file; empty: all of it
/// \return vertices as they are in Assimp: several in one place, some of them unused; the list `body` is empty
/// \throws BadInput with the file's name, if Assimp cannot read it or finds a fault in it
TriangleMesh readByAssimp(const std::string& path, const std::string& group);

}  // namespace Komvos::Impl
