/// \file bench_halo.hpp
/// The subcommand `komvos bench halo`.
#pragma once

#include <string>
#include <vector>

#include "problem/problem_options.hpp"

namespace Komvos::Program {

struct BenchHaloOptions : ProblemOptions {
  std::string ranksPerNode;
  int ranksPerSocket = 0;           ///< 0: not given
  std::vector<std::string> routes;  ///< empty: all that make sense here
  std::string pairing;              ///< empty: not given
  std::string machine;
  std::string partition = "contiguous";
  bool hierarchy = false;
  bool product = false;
  int coarseSize = 100;
  int samples = 30;
  int repeats = 4;
  std::string network = "as it is";
  std::string jsonFile;
  bool quiet = false;
};

/// Adds `bench` with its subcommand `halo`, which is returned; parsing fills `options`, which must outlive `app`.
CLI::App& addBenchHaloCommand(CLI::App& app, BenchHaloOptions& options);

/// What CLI11 cannot see by itself. \throws BadInput
void checkBenchHaloOptions(const CLI::App& command, BenchHaloOptions& options);

/// Times the halos of a problem, in turn, by Tpetra's variants and all of ours.
/// \return exit code \note Collective. \throws BadInput on all ranks
int runBenchHalo(const BenchHaloOptions& options);

}  // namespace Komvos::Program
