/// \file bem.hpp
/// The subcommand `komvos bem`.
#pragma once

#include "bem/bem_options.hpp"

namespace Komvos::Program {

/// \return an ExitCode
/// \note Collective on MPI_COMM_WORLD.
/// \throws BadInput on all ranks
int runBem(const BemOptions& options);

}  // namespace Komvos::Program
