/// \file Komvos_VtuFile.cpp
#include "Komvos_VtuFile.hpp"

#include <cstdint>
#include <cstring>
#include <set>
#include <type_traits>

#include "Komvos_Error.hpp"

namespace Komvos {
namespace {

/// The bytes in letters that XML allows, three bytes in four of them (RFC 4648).
class Base64 {
 public:
  explicit Base64(std::ostream& out) : out_(out) {}

  void write(const void* data, std::size_t numBytes) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < numBytes; ++i) {
      group_[held_++] = bytes[i];
      if (held_ == 3) {
        flush();
      }
    }
  }
  void end() {
    if (held_ > 0) {
      flush();
    }
  }

 private:
  void flush() {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned bits = unsigned{group_[0]} << 16 | unsigned{group_[1]} << 8 | unsigned{group_[2]};
    const char four[] = {letters[bits >> 18], letters[bits >> 12 & 63], held_ > 1 ? letters[bits >> 6 & 63] : '=',
                         held_ > 2 ? letters[bits & 63] : '='};
    out_.write(four, sizeof four);
    std::memset(group_, 0, sizeof group_);
    held_ = 0;
  }

  std::ostream& out_;
  unsigned char group_[3] = {0, 0, 0};
  int held_ = 0;
};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

const char* byteOrder() {
  const std::uint16_t one = 1;
  unsigned char first = 0;
  std::memcpy(&first, &one, 1);
  return first == 1 ? "LittleEndian" : "BigEndian";
}

template <class T>
constexpr const char* typeName() {
  static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t> ||
                std::is_same_v<T, std::uint8_t>);
  if constexpr (std::is_same_v<T, double>) {
    return "Float64";
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return "Int32";
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return "Int64";
  } else {
    return "UInt8";
  }
}

/// An array: its number of bytes, then the bytes.
template <class T>
void writeArray(std::ostream& out, const std::string& name, const T* values, std::size_t count, int components = 1) {
  out << "<DataArray type=\"" << typeName<T>() << "\" Name=\"" << escaped(name) << "\" NumberOfComponents=\""
      << components << "\" format=\"binary\">";
  const std::uint64_t numBytes = count * sizeof(T);
  Base64 base64(out);
  base64.write(&numBytes, sizeof numBytes);
  base64.write(values, numBytes);
  base64.end();
  out << "</DataArray>\n";
}

template <class T>
void writeArray(std::ostream& out, const std::string& name, const std::vector<T>& values) {
  writeArray(out, name, values.data(), values.size());
}

void check(const TriangleMesh& mesh, const std::vector<CellData>& data) {
  const std::string triangles = std::to_string(mesh.triangles.size()) + " triangles";
  if (!mesh.body.empty() && mesh.body.size() != mesh.triangles.size()) {
    throw BadInput("writeVtu: bodies of " + std::to_string(mesh.body.size()) + " triangles, but the mesh has " +
                   triangles);
  }
  std::set<std::string> names{"body"};
  for (const CellData& one : data) {
    if (one.values == nullptr || one.values->size() != mesh.triangles.size()) {
      throw BadInput("writeVtu: '" + one.name + "' has " +
                     std::to_string(one.values == nullptr ? 0 : one.values->size()) + " values, but the mesh has " +
                     triangles);
    }
    if (one.name.empty() || !names.insert(one.name).second) {
      throw BadInput("writeVtu: the name '" + one.name + "' is " + (one.name.empty() ? "empty" : "taken already"));
    }
  }
}

void writeCells(std::ostream& out, const TriangleMesh& mesh) {
  std::vector<std::int32_t> corners;
  std::vector<std::int64_t> ends;
  corners.reserve(3 * mesh.triangles.size());
  ends.reserve(mesh.triangles.size());
  for (const auto& triangle : mesh.triangles) {
    corners.insert(corners.end(), triangle.begin(), triangle.end());
    ends.push_back(static_cast<std::int64_t>(corners.size()));
  }
  const std::uint8_t vtkTriangle = 5;
  out << "<Cells>\n";
  writeArray(out, "connectivity", corners);
  writeArray(out, "offsets", ends);
  writeArray(out, "types", std::vector<std::uint8_t>(mesh.triangles.size(), vtkTriangle));
  out << "</Cells>\n";
}

}  // namespace

void writeVtu(std::ostream& out, const TriangleMesh& mesh, const std::vector<CellData>& data) {
  check(mesh, data);
  static_assert(sizeof(Point3) == 3 * sizeof(double), "vertices are written as one array of numbers");
  out << "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"" << byteOrder()
      << "\" header_type=\"UInt64\">\n<UnstructuredGrid>\n<Piece NumberOfPoints=\"" << mesh.vertices.size()
      << "\" NumberOfCells=\"" << mesh.triangles.size() << "\">\n<Points>\n";
  writeArray(out, "points", reinterpret_cast<const double*>(mesh.vertices.data()), 3 * mesh.vertices.size(), 3);
  out << "</Points>\n";
  writeCells(out, mesh);
  out << "<CellData>\n";
  writeArray(out, "body",
             mesh.body.empty() ? std::vector<std::int32_t>(mesh.triangles.size(), 0)
                               : std::vector<std::int32_t>(mesh.body.begin(), mesh.body.end()));
  for (const CellData& one : data) {
    writeArray(out, one.name, *one.values);
  }
  out << "</CellData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n";
}

}  // namespace Komvos
