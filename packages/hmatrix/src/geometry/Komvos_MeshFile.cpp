/// \file Komvos_MeshFile.cpp
#include "Komvos_MeshFile.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <tuple>

#include "Komvos_Error.hpp"
#include "impl/Komvos_AssimpFile.hpp"
#include "impl/Komvos_GmshFile.hpp"

namespace Komvos {
namespace {

std::string inSmallLetters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string contentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    throw BadInput(path + ": cannot be read");
  }
  return text;
}

void checkFile(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw BadInput(path + ": no such file");
  }
  if (status.type() == std::filesystem::file_type::directory) {
    throw BadInput(path + ": is a folder");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw BadInput(path + ": cannot be opened" + (errno == 0 ? "" : std::string(": ") + std::strerror(errno)));
  }
  if (file.peek() == std::ifstream::traits_type::eof()) {
    throw BadInput(path + ": is empty");
  }
}

/// A binary STL file has the number of its triangles after 80 bytes, and so says how long it must be. One of text ends
/// with "endsolid". Of a file that breaks off Assimp tells in words that do not help, or only in its log.
void checkWholeStl(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(84, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  const auto byte = [&](std::size_t i) { return std::uintmax_t{static_cast<unsigned char>(head[80 + i])}; };
  const std::uintmax_t numTriangles = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  const std::uintmax_t expected = 84 + 50 * numTriangles, length = std::filesystem::file_size(path);
  if (length == expected) {
    return;
  }
  const std::size_t begin = std::min(head.find_first_not_of(" \t\r\n"), head.size());
  if (inSmallLetters(head.substr(begin, 5)) != "solid") {
    throw BadInput(path + ": has " + std::to_string(length) + " bytes, " +
                   (length < 84 ? "too few for an STL file"
                                : "but a binary STL file of " + std::to_string(numTriangles) + " triangles has " +
                                      std::to_string(expected)));
  }
  // A name may follow.
  std::string tail(std::min<std::uintmax_t>(length, 1000), '\0');
  file.clear();
  file.seekg(-static_cast<std::streamoff>(tail.size()), std::ios::end);
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  if (inSmallLetters(tail).find("endsolid") == std::string::npos) {
    throw BadInput(path + ": breaks off: \"endsolid\" is missing");
  }
}

#ifdef KOMVOS_HAVE_ASSIMP
TriangleMesh readOther(const std::string& path, const std::string& group) { return Impl::readByAssimp(path, group); }
#else
TriangleMesh readOther(const std::string& path, const std::string&) {
  throw BadInput(path + ": this Komvos was built without Assimp, and reads only Gmsh's .msh");
}
#endif

bool isFinite(const Point3& p) { return std::isfinite(p.x) && std::isfinite(p.y) && std::isfinite(p.z); }

/// For each vertex the first one in the same place. One that is not finite is in no place.
std::vector<int> firstInPlace(const std::vector<Point3>& vertices) {
  std::vector<int> first(vertices.size());
  std::iota(first.begin(), first.end(), 0);
  std::vector<int> sorted;
  std::copy_if(first.begin(), first.end(), std::back_inserter(sorted), [&](int v) { return isFinite(vertices[v]); });
  const auto place = [&](int v) { return std::tie(vertices[v].x, vertices[v].y, vertices[v].z); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) { return place(a) < place(b); });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (place(sorted[i]) == place(sorted[i - 1])) {
      first[sorted[i]] = first[sorted[i - 1]];
    }
  }
  return first;
}

/// Joins vertices in the same place and drops those of no triangle. The others keep their order.
TriangleMesh joined(const TriangleMesh& mesh) {
  const std::vector<int> first = firstInPlace(mesh.vertices);
  std::vector<int> number(mesh.vertices.size(), -1);
  for (const auto& corners : mesh.triangles) {
    for (const int corner : corners) {
      number[first[corner]] = 0;
    }
  }
  TriangleMesh result;
  for (std::size_t v = 0; v < number.size(); ++v) {
    if (number[v] == 0) {
      number[v] = static_cast<int>(result.vertices.size());
      result.vertices.push_back(mesh.vertices[v]);
    }
  }
  for (const auto& corners : mesh.triangles) {
    result.triangles.push_back({number[first[corners[0]]], number[first[corners[1]]], number[first[corners[2]]]});
  }
  return result;
}

}  // namespace

TriangleMesh readMesh(const std::string& path, const std::string& group) {
  const std::string extension = inSmallLetters(std::filesystem::path(path).extension().string());
  const bool isGmsh = extension == ".msh";
  if (!isGmsh && extension != ".obj" && extension != ".off" && extension != ".stl") {
    throw BadInput(path + ": its name does not end with .obj, .off, .stl or .msh, which can be read");
  }
  if (!group.empty() && extension != ".obj") {
    throw BadInput(path + ": the group '" + group + "' is asked for, but only those of .obj can be told apart");
  }
  checkFile(path);
  if (extension == ".stl") {
    checkWholeStl(path);
  }
  TriangleMesh mesh = joined(isGmsh ? Impl::readGmsh(path, contentsOf(path)) : readOther(path, group));
  if (mesh.triangles.empty()) {
    throw BadInput(path + ": has no triangle");
  }
  mesh.body = bodiesOf(mesh);
  return mesh;
}

}  // namespace Komvos
