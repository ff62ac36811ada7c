#include "solve_options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "Komvos_Error.hpp"

namespace Komvos::Program {

namespace {

const char* const footer =
    "Problems: laplace3d, 7 points; elasticity3d, cubes with trilinear elements, one face clamped; "
    "rotated-anisotropic2d,\n"
    "9 points, diffusion 1 along pi/8 and 0.001 across; random, diagonally dominant, not symmetric. They are the same "
    "on\n"
    "any number of ranks. Without --rhs the right-hand side is A times a known vector, and the error is reported too.\n"
    "Solver auto: cg if A is symmetric with a positive diagonal, gmres (minres without preconditioner) if symmetric "
    "with\n"
    "another, bicgstab if not symmetric. The XML file holds a ParameterList with the sublists MueLu and Belos; options "
    "given\n"
    "here go first. Where it names no smoother, a symmetric A with a positive diagonal gets Chebyshev of degree 2.\n"
    "Converged means: the residual |b - A x| / |b|, computed afresh with Tpetra's own product, is at most the "
    "tolerance\n"
    "(0.1 % above it is let pass). Exit status: 0 solved, 1 wrong input, 2 not converged, 3 internal error.";

/// "12" or "12,8,4".
std::vector<long long> parseSize(const std::string& text) {
  std::vector<long long> size;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    long long number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 1 || (next != end && *next != ',')) {
      throw BadInput("--n " + text + ": must be one to three positive numbers, as in 12 or 12,8,4");
    }
    size.push_back(number);
    if (next == end) {
      return size;
    }
    at = next + 1;
  }
}

}  // namespace

CLI::App& addSolveCommand(CLI::App& app, SolveOptions& options) {
  CLI::App& solve = *app.add_subcommand("solve", "Solve a linear system with Belos along node-aware routes");
  solve.footer(footer);
  solve.add_option("MATRIX", options.matrixFile, "Matrix Market file: coordinate, real or integer, square");
  solve.add_option("--problem", options.problem, "generate a problem instead")
      ->check(CLI::IsMember({"laplace3d", "elasticity3d", "rotated-anisotropic2d", "random"}));
  solve
      .add_option_function<std::string>(
          "--n", [&options](const std::string& text) { options.size = parseSize(text); },
          "its points in each direction, N or NX,NY,NZ; rows for random")
      ->type_name("N[,NY[,NZ]]");
  solve.add_option("--entries", options.entriesPerRow, "entries in a row of random (default 50)")
      ->check(CLI::Range(1, 100000));
  solve.add_option("--rhs", options.rhsFile, "right-hand side: Matrix Market array, real or integer, one column");
  solve
      .add_option("--ranks-per-node", options.ranksPerNode,
                  "ranks on each node, on each in turn, or a node for each rank; default: as MPI says")
      ->type_name("K|K,K,...|@FILE");
  solve.add_option("--route", options.route, "how halos travel (default auto: measured)")
      ->check(CLI::IsMember({"standard", "three-step", "auto"}));
  solve.add_option("--pairing", options.pairing, "which ranks carry what crosses nodes (default by-volume)")
      ->check(CLI::IsMember({"by-volume", "least-loaded", "majority"}));
  solve.add_option("--solver", options.solver, "auto (see below), cg, bicgstab, gmres, minres or any other of Belos");
  solve.add_option("--prec", options.preconditioner, "preconditioner (default muelu, for random jacobi)")
      ->check(CLI::IsMember({"muelu", "jacobi", "none"}));
  solve.add_option("--partition", options.partition, "which rank owns which rows; graph: by Zoltan2 with Scotch")
      ->check(CLI::IsMember({"contiguous", "strided", "graph"}));
  solve.add_option("--tolerance", options.tolerance, "relative residual to reach (default 1e-8)");
  solve.add_option("--max-iterations", options.maxIterations, "(default 1000)");
  solve.add_option("--xml", options.parameterFile, "parameters for MueLu and Belos")->type_name("FILE");
  solve.add_option("--output", options.solutionFile, "write the solution, as a Matrix Market array")->type_name("FILE");
  solve.add_option("--json", options.jsonFile, "write the report as JSON; - is stdout, the text then goes to stderr")
      ->type_name("FILE|-");
  solve.add_flag("--quiet", options.quiet, "no report, only errors");
  return solve;
}

void checkSolveOptions(const CLI::App& command, SolveOptions& options) {
  const auto given = [&command](const char* name) { return command.count(name) > 0; };
  const auto require = [](bool holds, const std::string& error) {
    if (!holds) {
      throw BadInput(error);
    }
  };
  const bool generated = given("--problem");
  require(generated || given("MATRIX"),
          "solve: nothing to solve; give a Matrix Market file or --problem (see komvos solve --help)");
  require(!generated || !given("MATRIX"), "solve: both a file (" + options.matrixFile + ") and --problem are given");
  require(!generated || given("--n"), "solve: --problem " + options.problem + " needs --n");
  require(generated || !given("--n"), "solve: --n goes with --problem only");
  require(options.problem == "random" || !given("--entries"), "solve: --entries goes with --problem random only");
  const std::size_t directions = options.problem == "random" ? 1 : options.problem == "rotated-anisotropic2d" ? 2 : 3;
  require(options.size.size() <= 1 || options.size.size() == directions,
          "solve: --n has " + std::to_string(options.size.size()) + " numbers, " + options.problem + " takes 1" +
              (directions > 1 ? " or " + std::to_string(directions) : ""));
  if (generated) {
    options.size.resize(directions, options.size.front());
  }
  require(options.solutionFile != "-", "solve: --output needs the name of a file");
  require(!options.tolerance || (std::isfinite(*options.tolerance) && *options.tolerance > 0 && *options.tolerance < 1),
          "solve: --tolerance must be above 0 and below 1");
  require(!options.maxIterations || *options.maxIterations > 0, "solve: --max-iterations must be at least 1");
  if (options.preconditioner.empty()) {
    options.preconditioner = options.problem == "random" ? "jacobi" : "muelu";
  }
}

}  // namespace Komvos::Program
