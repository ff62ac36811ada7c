/// \file report.hpp
/// The result of `komvos solve`, for people and as JSON.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "Komvos_DirectSolver.hpp"
#include "solve/cycle_times.hpp"
#include "solve/halo_entry.hpp"
#include "support/exchange_choice.hpp"
#include "support/residual_history.hpp"

namespace Komvos::Program {

struct SolveReport : ExchangeSummary {
  std::string problem;
  long long rows = 0;
  long long entries = 0;
  bool symmetric = false;
  std::string partition;
  std::string solver, preconditioner;
  int iterations = 0;
  int maxIterations = 0;
  int restarts = 0;
  double tolerance = 0;
  double belosResidual = 0;
  double trueResidual = 0;
  bool belosConverged = false;
  bool converged = false;
  std::string failureReason;
  bool exactKnown = false;
  double relativeError = 0;  ///< |x - exact| / |exact|
  double readSeconds = 0;    ///< reading or generating, partitioning
  double setupSeconds = 0;   ///< halos and preconditioner
  double solveSeconds = 0;
  std::optional<DirectReport> direct;  ///< of a direct solver; then iterations are solves, and there is no Belos
  std::optional<CycleTimes> cycles;
  std::string whyNoCycles;  // though they were asked for
  ResidualHistory history;  ///< empty if it was not asked for
  std::vector<HaloEntry> halos;
  std::vector<std::string> keptByMueLu;  ///< what exchanges as without Komvos, and why
  std::size_t savedDecisions = 0;        ///< in the tuning cache
  std::size_t savedGuesses = 0;          ///< of these, of halos that were used too little to be decided
};

std::string toText(const SolveReport& report);
std::string toJson(const SolveReport& report);

/// "not converged: ..." on one line; empty if it converged.
std::string whyNotConverged(const SolveReport& report);

}  // namespace Komvos::Program
