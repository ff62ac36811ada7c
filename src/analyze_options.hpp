/// \file analyze_options.hpp
/// The command line of `komvos analyze`.
#pragma once

#include <string>
#include <vector>

#include "problem_options.hpp"

namespace Komvos::Program {

struct AnalyzeOptions : ProblemOptions {
  bool hierarchy = false;
  std::string parameterFile;
  int ranks = 0;
  std::string ranksPerNode;
  int ranksPerSocket = 0;           ///< 0: sockets are not known
  std::vector<std::string> routes;  ///< as given; checkAnalyzeOptions fills the default in
  std::string pairing = "by-volume";
  std::string partition = "contiguous";
  std::string machine = "blue-waters";
  std::vector<std::string> platforms;  ///< that SimGrid simulates
  std::string traceFolder;
  std::string csvFile;
  std::string jsonFile;
  std::string plotFile;
  bool quiet = false;
};

/// Adds the subcommand; parsing fills `options`, which must outlive `app`.
CLI::App& addAnalyzeCommand(CLI::App& app, AnalyzeOptions& options);

/// What CLI11 cannot see by itself. \throws BadInput
void checkAnalyzeOptions(const CLI::App& command, AnalyzeOptions& options);

}  // namespace Komvos::Program
