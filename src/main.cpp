// The program komvos: reads the command line and calls the subcommand.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "calibrate.hpp"
#include "calibrate_options.hpp"
#include "end_together.hpp"
#include "solve.hpp"
#include "solve_options.hpp"

namespace {

using namespace Komvos::Program;

const char* const footer =
    "Run it under MPI: mpirun -n 4 komvos solve --problem elasticity3d --n 12 --ranks-per-node 2\n"
    "Arguments --kokkos-... go to Kokkos. Exit status: 0 done, 1 wrong input, 2 not converged, 3 internal error.";

int run(std::vector<std::string> arguments) {
  int rank = 0;
  Komvos::mpiCheck(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  CLI::App app("Node-aware halo exchange for Trilinos", "komvos");
  app.footer(footer);
  app.set_version_flag("--version", "komvos " KOMVOS_VERSION);
  app.require_subcommand(1);
  SolveOptions solveOptions;
  CalibrateOptions calibrateOptions;
  const CLI::App& solve = addSolveCommand(app, solveOptions);
  const CLI::App& calibrate = addCalibrateCommand(app, calibrateOptions);
  const std::string first = arguments.empty() ? "" : arguments.front();
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
    if (solve.parsed()) {
      checkSolveOptions(solve, solveOptions);
    }
  } catch (const CLI::Success& success) {  // --help, --version
    return rank == 0 ? app.exit(success) : 0;
  } catch (const CLI::RequiredError&) {
    throw Komvos::BadInput("the subcommands are solve and calibrate" +
                           (first.empty() ? "" : ", there is no '" + first + "'") + " (see komvos --help)");
  } catch (const CLI::ParseError& error) {
    const char* const command = solve.parsed() ? "solve " : calibrate.parsed() ? "calibrate " : "";
    throw Komvos::BadInput(std::string(error.what()) + " (see komvos " + command + "--help)");
  }
  return calibrate.parsed() ? runCalibrate(calibrateOptions) : runSolve(solveOptions);
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
  const int code = endTogether(MPI_COMM_WORLD, [&] { return run(std::move(ours)); });
  std::fflush(stdout);
  return code;
}
