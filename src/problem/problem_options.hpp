/// \file problem_options.hpp
/// The part of the command line that names a matrix.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace Komvos::Program {

struct ProblemOptions {
  std::string matrixFile;       ///< empty if a problem is generated
  std::string problem;          ///< empty if a matrix is read
  std::vector<long long> size;  ///< points in each direction; rows for "random"
  int entriesPerRow = 50;       ///< of "random"
  std::string rhsFile;
};

/// Adds MATRIX, --problem, --n and --entries to a subcommand; parsing fills `options`, which must outlive it.
void addProblemOptions(CLI::App& command, ProblemOptions& options);

/// What CLI11 cannot see by itself; fills `size` up. \throws BadInput
void checkProblemOptions(const CLI::App& command, ProblemOptions& options);

/// "standard,axis:16,4,4,2,split" holds three routes: a piece that begins with a digit belongs to the one before.
std::vector<std::string> splitRoutes(const std::string& text);

}  // namespace Komvos::Program
