/// \file solve.hpp
/// The subcommand `komvos solve`.
#pragma once

#include "solve/solve_options.hpp"

namespace Komvos::Program {

/// \return an ExitCode
/// \note Collective on MPI_COMM_WORLD.
/// \throws BadInput on all ranks
int runSolve(const SolveOptions& options);

}  // namespace Komvos::Program
