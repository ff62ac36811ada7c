/// \file solve_exchange.hpp
/// How the halos of `komvos solve` are exchanged.
#pragma once

#include <mpi.h>

#include "Komvos_ExchangeOptions.hpp"
#include "solve/report.hpp"
#include "solve/solve_options.hpp"

namespace Komvos::Program {

/// Options for all halos of this solve, none of them left to the environment: the command line, then the environment,
/// then defaults. What was found is noted in the report.
/// \note Collective on `comm`. \throws BadInput on all ranks
ExchangeOptions resolveExchange(const SolveOptions& options, MPI_Comm comm, SolveReport& report);

}  // namespace Komvos::Program
