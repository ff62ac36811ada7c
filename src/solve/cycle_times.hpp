/// \file cycle_times.hpp
/// Where the time of a multigrid cycle goes, level by level.
#pragma once

#include <Tpetra_Operator.hpp>
#include <string>
#include <vector>

#include "problem/problem.hpp"

namespace Komvos::Program {

/// Seconds of one cycle on one level, means over ranks: a rank that waits does so in an exchange.
struct LevelTime {
  double work = 0;
  double exchange = 0;
  double total() const { return work + exchange; }
};

/// The same cycles by two preconditioners. Medians over samples.
struct CycleTimes {
  int samples = 0;  ///< of each, in turn
  int cyclesOfSample = 0;
  std::vector<LevelTime> before, after;  ///< with Tpetra's exchanges, with ours
};

/// What this needs of the environment. Before the first exchange of the program.
void prepareToTimeCycles();

/// \param before, after made by createMueLuPreconditioner, with as many levels
/// \param b a right-hand side
/// \note Collective.
CycleTimes timeCycles(const Teuchos::RCP<Tpetra::Operator<>>& before, const Teuchos::RCP<Tpetra::Operator<>>& after,
                      const MultiVector& b);

std::string toText(const CycleTimes& times);

/// Writes bars as SVG, two for each level. Needs gnuplot, see gnuplot.hpp.
void drawPlot(const std::string& path, const CycleTimes& times, const std::string& problem, const std::string& ranks);

}  // namespace Komvos::Program
