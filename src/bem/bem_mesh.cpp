#include "bem/bem_mesh.hpp"

#include <array>

#include "Komvos_Error.hpp"
#include "Komvos_MeshFile.hpp"
#include "Komvos_MeshGenerators.hpp"
#include "support/run_collectively.hpp"

namespace Komvos::Program {

namespace {

TriangleMesh generate(const BemOptions& options) {
  const double radius = radiusOf(options);
  if (options.geometry == "sphere") {
    return sphereMesh(options.triangles, radius);
  }
  if (options.geometry == "cylinder") {
    return cylinderMesh(options.triangles, radius, options.height);
  }
  if (options.geometry == "two-spheres") {
    return twoSpheresMesh(options.triangles, radius, options.distance);
  }
  return sphereArrayMesh(options.triangles, options.perSide, radius, options.distance);
}

/// The list of rank 0, on all ranks.
template <class Element>
void broadcast(std::vector<Element>& list, MPI_Comm comm) {
  long long length = static_cast<long long>(list.size());
  mpiCheck(MPI_Bcast(&length, 1, MPI_LONG_LONG, 0, comm), "MPI_Bcast");
  list.resize(static_cast<std::size_t>(length));
  MPI_Datatype type = MPI_DATATYPE_NULL;  // an element, so that counts stay small
  mpiCheck(MPI_Type_contiguous(sizeof(Element), MPI_BYTE, &type), "MPI_Type_contiguous");
  mpiCheck(MPI_Type_commit(&type), "MPI_Type_commit");
  const int code = MPI_Bcast(list.data(), static_cast<int>(length), type, 0, comm);
  mpiCheck(MPI_Type_free(&type), "MPI_Type_free");
  mpiCheck(code, "MPI_Bcast");
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += (text.empty() ? "" : "; ") + line;
  }
  return text;
}

void requireUsable(const BemMesh& mesh, const MeshCheck& check, const std::string& kernel) {
  if (check.isUnusable()) {
    throw BadInput(mesh.name + ": no equations can be made of this mesh: " + joined(mesh.faults));
  }
  if (kernel == "laplace-double-layer" && !check.isOriented()) {
    throw BadInput(mesh.name +
                   ": the double layer needs closed bodies whose triangles face outwards: " + joined(mesh.faults));
  }
}

}  // namespace

double radiusOf(const BemOptions& options) {
  return options.radius > 0                                               ? options.radius
         : options.geometry == "sphere" || options.geometry == "cylinder" ? 1
                                                                          : 0.25;
}

BemMesh loadBemMesh(const BemOptions& options, MPI_Comm comm) {
  BemMesh mesh;
  mesh.name = options.geometry.empty() ? options.meshFile : options.geometry;
  if (options.geometry.empty()) {
    onRankZero(comm, [&] { mesh.surface = readMesh(options.meshFile, options.meshGroup); });
    broadcast(mesh.surface.vertices, comm);
    broadcast(mesh.surface.triangles, comm);
    broadcast(mesh.surface.body, comm);
  } else {
    mesh.surface = generate(options);  // the same on all ranks, errors as well
  }
  const MeshCheck check = checkMesh(mesh.surface);
  mesh.faults = check.faults();
  requireUsable(mesh, check, options.kernel);
  mesh.areas = areasOf(mesh.surface);
  mesh.centroids = centroidsOf(mesh.surface);
  return mesh;
}

}  // namespace Komvos::Program
