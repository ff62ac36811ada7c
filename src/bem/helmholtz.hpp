/// \file helmholtz.hpp
/// The complex matrix of `komvos bem`.
#pragma once

#include <mpi.h>

#include <vector>

#include "Komvos_BlockTree.hpp"
#include "bem/bem_mesh.hpp"
#include "bem/bem_options.hpp"
#include "bem/bem_report.hpp"

namespace Komvos::Program {

/// Makes the matrix of Helmholtz's kernel on this process, and measures it. No equations are solved.
/// \param comm of one rank \return the blocks
std::vector<Block> measureHelmholtz(const BemOptions& options, const BemMesh& mesh, MPI_Comm comm, bool showProgress,
                                    BemReport& report);

}  // namespace Komvos::Program
