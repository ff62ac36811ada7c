// The program komvos: reads the command line and calls the subcommand.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "analyze/analyze.hpp"
#include "bench/bench_halo.hpp"
#include "calibrate/calibrate.hpp"
#include "calibrate/calibrate_options.hpp"
#include "solve/solve.hpp"
#include "solve/solve_options.hpp"
#include "support/run_collectively.hpp"

namespace {

using namespace Komvos::Program;

const char* const footer =
    "Run it under MPI: mpirun -n 4 komvos solve --problem elasticity3d --n 12 --ranks-per-node 2\n"
    "Arguments --kokkos-... go to Kokkos. Exit status: 0 done, 1 wrong input, 2 not converged, 3 internal error.";

/// A subcommand, as it stands on the command line after `komvos`.
struct Command {
  std::string name;
  const CLI::App* parser;
  std::function<void()> check;
  std::function<int()> run;
};

int run(std::vector<std::string> arguments) {
  int rank = 0;
  Komvos::mpiCheck(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  CLI::App app("Node-aware halo exchange for Trilinos", "komvos");
  app.footer(footer);
  app.set_version_flag("--version", "komvos " KOMVOS_VERSION);
  app.require_subcommand(1);
  SolveOptions solve;
  AnalyzeOptions analyze;
  CalibrateOptions calibrate;
  BenchHaloOptions benchHalo;
  const CLI::App& solveParser = addSolveCommand(app, solve);
  const CLI::App& analyzeParser = addAnalyzeCommand(app, analyze);
  const CLI::App& calibrateParser = addCalibrateCommand(app, calibrate);
  const CLI::App& benchHaloParser = addBenchHaloCommand(app, benchHalo);
  const Command commands[] = {
      {"solve", &solveParser, [&] { checkSolveOptions(solveParser, solve); }, [&] { return runSolve(solve); }},
      {"analyze", &analyzeParser, [&] { checkAnalyzeOptions(analyzeParser, analyze); },
       [&] { return runAnalyze(analyze); }},
      {"calibrate", &calibrateParser, [] {}, [&] { return runCalibrate(calibrate); }},
      {"bench halo", &benchHaloParser, [&] { checkBenchHaloOptions(benchHaloParser, benchHalo); },
       [&] { return runBenchHalo(benchHalo); }}};
  const auto given = [&] {
    return std::find_if(std::begin(commands), std::end(commands),
                        [](const Command& command) { return command.parser->parsed(); });
  };
  const std::string first = arguments.empty() ? "" : arguments.front();
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
    given()->check();
  } catch (const CLI::Success& success) {  // --help, --version
    return rank == 0 ? app.exit(success) : 0;
  } catch (const CLI::RequiredError&) {
    throw Komvos::BadInput("the subcommands are solve, analyze, calibrate and bench halo" +
                           (first.empty() || first == "bench" ? "" : ", there is no '" + first + "'") +
                           " (see komvos --help)");
  } catch (const CLI::ParseError& error) {
    const std::string command = given() != std::end(commands) ? given()->name + " " : "";
    throw Komvos::BadInput(std::string(error.what()) + " (see komvos " + command + "--help)");
  }
  return given()->run();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> ours;
  std::vector<char*> kokkos{argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--kokkos-", 9) == 0) {
      kokkos.push_back(argv[i]);
    } else {
      ours.emplace_back(argv[i]);
    }
  }
  int kokkosCount = static_cast<int>(kokkos.size());
  kokkos.push_back(nullptr);
  char** kokkosArguments = kokkos.data();
  Tpetra::ScopeGuard scope(&kokkosCount, &kokkosArguments);
  const int code = runCollectively(MPI_COMM_WORLD, [&] { return run(std::move(ours)); });
  std::cout.flush();
  std::fflush(stdout);
  if (!std::cout || std::ferror(stdout) != 0) {
    printError("cannot write to standard output");
    return code != converged ? code : badInput;
  }
  return code;
}
