/// \file bem_mesh.hpp
/// The surface of `komvos bem`.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "Komvos_MeshCheck.hpp"
#include "Komvos_TriangleMesh.hpp"
#include "bem/bem_options.hpp"

namespace Komvos::Program {

/// A surface that can be used, and what is often asked of it.
struct BemMesh {
  std::string name;  ///< for people
  TriangleMesh surface;
  std::vector<double> areas;
  std::vector<Point3> centroids;
  std::vector<std::string> faults;  ///< that do not matter to the kernel

  int size() const { return surface.numTriangles(); }
  int numBodies() const { return surface.numBodies(); }
};

/// Of the generated spheres or cylinder.
double radiusOf(const BemOptions& options);

/// Generates the surface, or reads it on rank 0, and checks it. All ranks get the whole of it.
/// \note Collective. \throws BadInput on all ranks, with all faults, if it cannot be used with the kernel
BemMesh loadBemMesh(const BemOptions& options, MPI_Comm comm);

}  // namespace Komvos::Program
