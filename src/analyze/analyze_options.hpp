/// \file analyze_options.hpp
/// The command line of `komvos analyze`.
#pragma once

#include <string>

#include "analyze/virtual_cluster.hpp"
#include "problem/problem_options.hpp"

namespace Komvos::Program {

/// Routes hold standard first once checkAnalyzeOptions was called.
struct AnalyzeOptions : ProblemOptions, ClusterOptions {
  bool hierarchy = false;
  std::string parameterFile;
  std::string partition = "contiguous";
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
