// The program komvos: reads the command line and calls the subcommand.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "analyze/analyze.hpp"
#include "bem/bem.hpp"
#include "bem/bem_options.hpp"
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

/// From 2.5 on, CLI11 writes "Usage:" only where the program has no name.
struct HelpFormatter : CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string name) const override {
    const std::string usage = Formatter::make_usage(app, name);
    return usage.find("Usage:") != std::string::npos ? usage : "Usage: " + usage.substr(usage.find_first_not_of('\n'));
  }
};

/// A subcommand, as it stands on the command line after `komvos`.
struct Command {
  std::string name;
  const CLI::App* parser;
  std::function<void(const CLI::App&)> check;  ///< of what the parser cannot see by itself
  std::function<int()> run;
};

/// The subcommands with their options. Not movable: the parsers point into it.
struct Program {
  CLI::App app{"Node-aware halo exchange and hierarchical matrices for Trilinos", "komvos"};
  SolveOptions solve;
  BemOptions bem;
  AnalyzeOptions analyze;
  CalibrateOptions calibrate;
  BenchHaloOptions benchHalo;
  std::vector<Command> commands;

  Program() {
    app.formatter(std::make_shared<HelpFormatter>());  // which subcommands inherit
    app.footer(footer);
    app.set_version_flag("--version", "komvos " KOMVOS_VERSION);
    app.require_subcommand(1);
    commands = {
        {"solve", &addSolveCommand(app, solve), [this](const CLI::App& parser) { checkSolveOptions(parser, solve); },
         [this] { return runSolve(solve); }},
        {"bem", &addBemCommand(app, bem), [this](const CLI::App& parser) { checkBemOptions(parser, bem); },
         [this] { return runBem(bem); }},
        {"analyze", &addAnalyzeCommand(app, analyze),
         [this](const CLI::App& parser) { checkAnalyzeOptions(parser, analyze); },
         [this] { return runAnalyze(analyze); }},
        {"calibrate", &addCalibrateCommand(app, calibrate), [](const CLI::App&) {},
         [this] { return runCalibrate(calibrate); }},
        {"bench halo", &addBenchHaloCommand(app, benchHalo),
         [this](const CLI::App& parser) { checkBenchHaloOptions(parser, benchHalo); },
         [this] { return runBenchHalo(benchHalo); }}};
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The subcommand on the command line; null if there is none.
  const Command* given() const {
    const auto found =
        std::find_if(commands.begin(), commands.end(), [](const Command& command) { return command.parser->parsed(); });
    return found != commands.end() ? &*found : nullptr;
  }
};

int run(std::vector<std::string> arguments) {
  int rank = 0;
  Komvos::mpiCheck(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  Program program;
  const std::string first = arguments.empty() ? "" : arguments.front();
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    program.app.parse(std::move(arguments));
    program.given()->check(*program.given()->parser);
  } catch (const CLI::Success& success) {  // --help, --version
    return rank == 0 ? program.app.exit(success) : 0;
  } catch (const CLI::RequiredError&) {
    throw Komvos::BadInput("the subcommands are solve, bem, analyze, calibrate and bench halo" +
                           (first.empty() || first == "bench" ? "" : ", there is no '" + first + "'") +
                           " (see komvos --help)");
  } catch (const CLI::ParseError& error) {
    const std::string command = program.given() != nullptr ? program.given()->name + " " : "";
    throw Komvos::BadInput(std::string(error.what()) + " (see komvos " + command + "--help)");
  }
  return program.given()->run();
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
