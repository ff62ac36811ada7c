/// \file Komvos_GmshFile.hpp
/// Reads the files of the mesh generator Gmsh.
#pragma once

#include <string>

#include "Komvos_TriangleMesh.hpp"

namespace Komvos::Impl {

/// \param text the whole file, MSH 2.2 or 4.1
/// \return all nodes as vertices, used or not; the list `body` is empty
/// \throws BadInput with the file's name and the line or the byte
TriangleMesh readGmsh(const std::string& path, const std::string& text);

}  // namespace Komvos::Impl
