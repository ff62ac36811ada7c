#include "solve/solve_options.hpp"

#include <CLI/CLI.hpp>
#include <cmath>

#include "Komvos_Error.hpp"
#include "solve/direct_solve.hpp"

namespace Komvos::Program {

namespace {

const char* const footer =
    "Problems: laplace3d, also called poisson3d, 7 points; groundwater3d, the same with conductivities from 1e-5 to\n"
    "1e5; convection3d, laplace3d with a wind, not symmetric; elasticity3d, cubes with trilinear elements, one face\n"
    "clamped; rotated-anisotropic2d, 9 points, diffusion 1 along pi/8 and 0.001 across; random, diagonally dominant,\n"
    "not symmetric. They are the same on any number of ranks.\n"
    "Routes: split:V, several ranks share a pair of nodes that has more than V values; axis:C,X,Y,Z, groups of C "
    "ranks\n"
    "on a grid of X x Y x Z groups.\n"
    "Without --rhs the right-hand side is A times a known vector, and the error is reported, too.\n"
    "Solver auto: cg if A is symmetric with a positive diagonal, gmres (minres without preconditioner) if symmetric\n"
    "with another, bicgstab if not symmetric.\n"
    "The XML file holds a ParameterList with the sublists MueLu and Belos; options given here take precedence. Where "
    "it\n"
    "names no smoother, a symmetric A with a positive diagonal gets Chebyshev of degree 2.\n"
    "Converged means: the residual |b - A x| / |b|, computed afresh with Tpetra's own product, is at most the "
    "tolerance\n"
    "(a residual up to 0.1 % above it is accepted). Exit status: 0 solved, 1 wrong input, 2 not converged, 3 internal\n"
    "error.";

}  // namespace

CLI::App& addSolveCommand(CLI::App& app, SolveOptions& options) {
  CLI::App& solve = *app.add_subcommand("solve", "Solve a linear system with Belos along node-aware routes");
  solve.footer(footer);
  addProblemOptions(solve, options);
  solve.add_option("--rhs", options.rhsFile, "right-hand side: Matrix Market array, real or integer, one column");
  addExchangeOptions(solve, options);
  solve.add_option("--solver", options.solver,
                   "auto (see below), cg, bicgstab, gmres, minres or any other of Belos; pipelined-bicgstab, ours, "
                   "which hides its reductions; or direct: mumps, superlu-dist");
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
  solve.add_flag("--cycle-times", options.cycleTimes,
                 "after the solve, time MueLu's cycles on each level, beside those with Tpetra's exchanges, for which "
                 "MueLu sets up once more");
  solve.add_option("--cycle-plot", options.cyclePlotFile, "the same as a picture (SVG, by gnuplot)")->type_name("FILE");
  solve
      .add_option(
          "--convergence-plot", options.convergencePlotFile,
          "draw the residuals of each iteration, as the solver estimates them and as they are (SVG, by gnuplot; "
          "for pipelined-bicgstab; costs a product an iteration)")
      ->type_name("FILE");
  solve.add_flag("--quiet", options.quiet, "no report, only errors");
  return solve;
}

void checkSolveOptions(const CLI::App& command, SolveOptions& options) {
  checkProblemOptions(command, options);
  const auto require = [](bool holds, const std::string& error) {
    if (!holds) {
      throw BadInput(error);
    }
  };
  require(options.solutionFile != "-", "solve: --output needs the name of a file");
  require(!options.tolerance || (std::isfinite(*options.tolerance) && *options.tolerance > 0 && *options.tolerance < 1),
          "solve: --tolerance must be above 0 and below 1");
  require(!options.maxIterations || *options.maxIterations > 0, "solve: --max-iterations must be at least 1");
  const bool direct = isDirectSolver(options.solver);
  require(!direct || options.preconditioner.empty() || options.preconditioner == "none",
          "solve: --prec " + options.preconditioner + " has no meaning beside --solver " + options.solver);
  require(!direct || !options.maxIterations,
          "solve: --max-iterations has no meaning beside --solver " + options.solver);
  require(!direct || options.convergencePlotFile.empty(),
          "solve: --convergence-plot has no meaning beside --solver " + options.solver);
  const bool timesCycles = options.cycleTimes || !options.cyclePlotFile.empty();
  const bool byMueLu =
      options.preconditioner == "muelu" || (options.preconditioner.empty() && options.problem != "random");
  require(!timesCycles || (byMueLu && !direct), "solve: --cycle-times and --cycle-plot need the preconditioner muelu");
  require(options.cyclePlotFile != "-", "solve: --cycle-plot needs the name of a file");
  require(options.convergencePlotFile != "-", "solve: --convergence-plot needs the name of a file");
  if (options.preconditioner.empty() && direct) {
    options.preconditioner = "none";
  }
  if (options.preconditioner.empty()) {
    options.preconditioner = options.problem == "random" ? "jacobi" : "muelu";
  }
}

}  // namespace Komvos::Program
