/// \file run_collectively.hpp
/// How the program ends when something throws.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

namespace Komvos::Program {

/// What `komvos` returns to the shell.
enum ExitCode {
  converged = 0,
  badInput = 1,
  notConverged = 2,
  internalError = 3,
};

/// Runs the work of this rank. What it throws is reported once, as one line "komvos: error: ...":
/// - on all ranks, as agreed errors are: rank 0 prints, all ranks return badInput, or internalError where each of them
///   saw a failed MPI call, the end of memory, or Komvos contradict itself (what throwOnAllIfAny spreads is BadInput);
/// - on some ranks only, while others wait for them in vain: after a grace of some seconds the rank prints, and MPI
///   is aborted with internalError.
/// \note Collective on `comm`.
int runCollectively(MPI_Comm comm, const std::function<int()>& work);

/// Runs `work` on rank 0, and throws on all ranks what it throws.
/// \note Collective on `comm`. \throws Error if it threw one that is not BadInput, or had no memory; else BadInput
void onRankZero(MPI_Comm comm, const std::function<void()>& work);

/// Whether every rank gets here within some seconds. \param comm used by nothing else, and not again if they do not
bool allRanksArrive(MPI_Comm comm);

/// Prints "komvos: error: <text>" to stderr, as one line.
void printError(const std::string& text);

/// Trilinos' exception texts span many lines and name source files; this is what they say, on one line.
std::string oneLine(const std::string& text);

}  // namespace Komvos::Program
