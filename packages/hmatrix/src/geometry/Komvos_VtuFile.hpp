/// \file Komvos_VtuFile.hpp
/// Writes surfaces with values for ParaView.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "Komvos_TriangleMesh.hpp"

namespace Komvos {

/// One value for each triangle.
struct CellData {
  std::string name;
  const std::vector<double>* values;  ///< [triangles]
};

/// Writes a VTK unstructured grid (.vtu, XML, values in binary as base64): triangles, their bodies, and the data.
/// \throws BadInput if the lengths do not fit, or a name is empty, "body", or there twice
void writeVtu(std::ostream& out, const TriangleMesh& mesh, const std::vector<CellData>& data);

}  // namespace Komvos
