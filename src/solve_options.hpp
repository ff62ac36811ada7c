/// \file solve_options.hpp
/// The command line of `komvos solve`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace Komvos::Program {

struct SolveOptions {
  std::string matrixFile;       ///< empty if a problem is generated
  std::string problem;          ///< empty if a matrix is read
  std::vector<long long> size;  ///< points in each direction; rows for "random"
  int entriesPerRow = 50;       ///< of "random"
  std::string rhsFile;
  std::string ranksPerNode;
  std::string route;
  std::string pairing;
  std::string solver = "auto";
  std::string preconditioner;  ///< empty: muelu, but jacobi for "random"
  std::string partition = "contiguous";
  std::optional<double> tolerance;
  std::optional<int> maxIterations;
  std::string parameterFile;
  std::string solutionFile;
  std::string jsonFile;
  bool quiet = false;
};

/// Adds the subcommand; parsing fills `options`, which must outlive `app`.
CLI::App& addSolveCommand(CLI::App& app, SolveOptions& options);

/// What CLI11 cannot see by itself. \throws BadInput
void checkSolveOptions(const CLI::App& command, SolveOptions& options);

}  // namespace Komvos::Program
