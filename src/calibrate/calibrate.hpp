/// \file calibrate.hpp
/// The subcommand `komvos calibrate`.
#pragma once

#include "calibrate/calibrate_options.hpp"

namespace Komvos::Program {

/// \return an ExitCode
/// \note Collective on MPI_COMM_WORLD.
/// \throws BadInput on all ranks
int runCalibrate(const CalibrateOptions& options);

}  // namespace Komvos::Program
