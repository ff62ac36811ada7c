/// \file solve_options.hpp
/// The command line of `komvos solve`.
#pragma once

#include <optional>
#include <string>

#include "problem/problem_options.hpp"
#include "support/exchange_choice.hpp"

namespace CLI {
class App;
}

namespace Komvos::Program {

struct SolveOptions : ProblemOptions, ExchangeChoice {
  std::string solver = "auto";
  std::string preconditioner;  ///< empty: muelu, but jacobi for "random"
  std::string partition = "contiguous";
  std::optional<double> tolerance;
  std::optional<int> maxIterations;
  std::string parameterFile;
  std::string solutionFile;
  std::string jsonFile;
  bool cycleTimes = false;
  std::string cyclePlotFile;
  std::string convergencePlotFile;
  bool quiet = false;
};

/// Adds the subcommand; parsing fills `options`, which must outlive `app`.
CLI::App& addSolveCommand(CLI::App& app, SolveOptions& options);

/// What CLI11 cannot see by itself. \throws BadInput
void checkSolveOptions(const CLI::App& command, SolveOptions& options);

}  // namespace Komvos::Program
