/// \file Komvos_AssimpFile.cpp
/// How it works: Assimp reads the file, then cuts polygons into triangles. Of some faults it tells only its log: it
/// replaces the corner of a triangle that does not exist by another, and goes on where a file breaks off. So the log is
/// read along. It is one for the whole program, so only one thread reads at a time.
#include "impl/Komvos_AssimpFile.hpp"

#include <algorithm>
#include <assimp/DefaultLogger.hpp>
#include <assimp/Importer.hpp>
#include <assimp/LogStream.hpp>
#include <assimp/postprocess.h>
#include <assimp/scene.h>
#include <memory>
#include <mutex>
#include <vector>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {
namespace {

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// "Error, T0: OBJ: Invalid face index.\n" without what does not concern the user. A damaged file may have any bytes.
std::string cleaned(std::string text) {
  const auto begin = text.find("T0: ");
  if (begin != std::string::npos) {
    text.erase(0, begin + 4);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) {
    text.pop_back();
  }
  std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  const bool isAboutNumber = contains(text, "Cannot parse string") || contains(text, "cannot be converted");
  const std::size_t most = 120;
  return (isAboutNumber ? "has something else where a number is expected, or breaks off: " : "") +
         text.substr(0, most) + (text.size() > most ? "..." : "");
}

/// Keeps the first message that tells of a fault in the surface.
class FirstFault : public Assimp::LogStream {
 public:
  void write(const char* message) override {
    const std::string text = message;
    // Colours are of no interest; the end of the file is, but is only a warning.
    const bool isFault =
        (contains(text, "Error") && !contains(text, "material")) || contains(text, "unexpected EOF");
    if (isFault && text_.empty()) {
      text_ = cleaned(text);
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Listens to Assimp's log while it lives; the user's own logger, if there is one, goes on.
class Listening {
 public:
  Listening() : lock_(theOnlyReader()), isOurs_(Assimp::DefaultLogger::isNullLogger()) {
    if (isOurs_) {
      Assimp::DefaultLogger::create("", Assimp::Logger::NORMAL, 0);
    }
    Assimp::DefaultLogger::get()->attachStream(&fault_, severity);
  }
  ~Listening() {
    Assimp::DefaultLogger::get()->detachStream(&fault_, severity);
    if (isOurs_) {
      Assimp::DefaultLogger::kill();
    }
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  const std::string& fault() const { return fault_.text(); }

 private:
  static std::mutex& theOnlyReader() {
    static std::mutex mutex;
    return mutex;
  }
  static constexpr unsigned severity = Assimp::Logger::Err | Assimp::Logger::Warn;

  std::lock_guard<std::mutex> lock_;
  bool isOurs_;
  FirstFault fault_;
};

/// Those under the nodes of this name: Assimp makes a node of each run of lines that belong to a group. All of them, if
/// the name is empty.
void collect(const aiNode& node, const std::string& name, bool isInside, std::vector<unsigned>& meshes) {
  const bool isWanted = isInside || name.empty() || name == node.mName.C_Str();
  if (isWanted) {
    meshes.insert(meshes.end(), node.mMeshes, node.mMeshes + node.mNumMeshes);
  }
  for (unsigned i = 0; i < node.mNumChildren; ++i) {
    collect(*node.mChildren[i], name, isWanted, meshes);
  }
}

[[noreturn]] void throwNoGroup(const std::string& path, const aiNode& root, const std::string& group) {
  const unsigned most = 5;
  std::string names;
  for (unsigned i = 0; i < std::min(root.mNumChildren, most); ++i) {
    names += std::string(i == 0 ? "" : ", ") + "'" + root.mChildren[i]->mName.C_Str() + "'";
  }
  if (root.mNumChildren > most) {
    names += " and " + std::to_string(root.mNumChildren - most) + " more";
  }
  throw BadInput(path + ": has no group '" + group + "', but " + names);
}

bool hasPolygons(const aiScene& scene) {
  return std::any_of(scene.mMeshes, scene.mMeshes + scene.mNumMeshes, [](const aiMesh* mesh) {
    return std::any_of(mesh->mFaces, mesh->mFaces + mesh->mNumFaces, [](const aiFace& f) { return f.mNumIndices > 3; });
  });
}

/// Of all polygons: lines and points, which OBJ has too, are none.
std::size_t expectedTriangles(const aiScene& scene) {
  std::size_t count = 0;
  for (unsigned m = 0; m < scene.mNumMeshes; ++m) {
    for (unsigned f = 0; f < scene.mMeshes[m]->mNumFaces; ++f) {
      count += std::max(scene.mMeshes[m]->mFaces[f].mNumIndices, 2U) - 2;
    }
  }
  return count;
}

void append(TriangleMesh& result, const aiMesh& part) {
  const int first = static_cast<int>(result.vertices.size());
  for (unsigned v = 0; v < part.mNumVertices; ++v) {
    result.vertices.push_back({part.mVertices[v].x, part.mVertices[v].y, part.mVertices[v].z});
  }
  for (unsigned f = 0; f < part.mNumFaces; ++f) {
    const aiFace& face = part.mFaces[f];
    // Others are lines and points: polygons are triangles by now.
    if (face.mNumIndices == 3) {
      result.triangles.push_back({first + static_cast<int>(face.mIndices[0]),
                                  first + static_cast<int>(face.mIndices[1]),
                                  first + static_cast<int>(face.mIndices[2])});
    }
  }
}

}  // namespace

TriangleMesh readByAssimp(const std::string& path, const std::string& group) {
  const Listening log;
  Assimp::Importer importer;
  const aiScene* scene = importer.ReadFile(path, 0);
  const auto throwIfFaulty = [&] {
    if (scene == nullptr || !log.fault().empty()) {
      throw BadInput(path + ": " + (scene == nullptr ? cleaned(importer.GetErrorString()) : log.fault()));
    }
  };
  throwIfFaulty();
  const std::size_t expected = expectedTriangles(*scene);
  // Without polygons, Assimp built with assertions would end the program.
  if (hasPolygons(*scene)) {
    scene = importer.ApplyPostProcessing(aiProcess_Triangulate);
    throwIfFaulty();
  }
  if (expectedTriangles(*scene) != expected) {
    throw BadInput(path + ": its polygons are " + std::to_string(expected) + " triangles, but only " +
                   std::to_string(expectedTriangles(*scene)) + " could be cut out of them; does one cross itself?");
  }
  std::vector<unsigned> parts;
  collect(*scene->mRootNode, group, false, parts);
  if (parts.empty() && !group.empty()) {
    throwNoGroup(path, *scene->mRootNode, group);
  }
  TriangleMesh mesh;
  for (const unsigned part : parts) {
    append(mesh, *scene->mMeshes[part]);
  }
  return mesh;
}

}  // namespace Komvos::Impl
