#include "bem/bem_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "Komvos_Error.hpp"
#include "bem/harmonic_functions.hpp"
#include "support/text_format.hpp"

namespace Komvos::Program {

namespace {

const char* const footer =
    "Entry (i, j) of the matrix is what a density of one on triangle j gives at the centroid of triangle i.\n"
    "Lengths are in m, potentials in V, charges in C.\n"
    "Problems: potential, conductors at given potentials (laplace-single-layer, yukawa); uniform-field, conductors\n"
    "without net charge in a uniform field (laplace-single-layer); interior, the potential inside of closed bodies\n"
    "from its values on the surface (laplace-double-layer). The kernels helmholtz (complex) and one-over-r\n"
    "(between centroids) are for products.\n"
    "Solver auto: pipelined-bicgstab. Converged means: the residual |b - H x| / |b| of the hierarchical matrix H,\n"
    "computed afresh, is at most the tolerance (a residual up to 0.1 % above it is accepted).\n"
    "Exit status: 0 solved, 1 wrong input, 2 not converged, 3 internal error.";

void addGeometryOptions(CLI::App& bem, BemOptions& options) {
  bem.add_option("MESH", options.meshFile, "surface of triangles: OBJ, OFF, STL, or MSH of Gmsh");
  bem.add_option("--mesh-group", options.meshGroup, "only this group or object of an OBJ file")->type_name("NAME");
  bem.add_option("--geometry", options.geometry, "generate a surface instead of reading one")
      ->check(CLI::IsMember({"sphere", "two-spheres", "sphere-array", "cylinder"}));
  bem.add_option("--triangles", options.triangles, "its number of triangles, all bodies together");
  bem.add_option("--radius", options.radius, "of spheres (default 1, of several 0.25) or of the cylinder (default 1)");
  bem.add_option("--height", options.height, "of the cylinder (default 4)");
  bem.add_option("--distance", options.distance, "between the centres of neighbouring spheres (default 1)");
  bem.add_option("--per-side", options.perSide, "spheres along a side of the array (default 3)");
}

void addProblemChoice(CLI::App& bem, BemOptions& options) {
  bem.add_option("--kernel", options.kernel, "(default laplace-single-layer)")
      ->check(CLI::IsMember({"laplace-single-layer", "laplace-double-layer", "yukawa", "helmholtz", "one-over-r"}));
  bem.add_option("--kappa", options.kappa, "of yukawa, exp(-kappa r) / (4 pi r), in 1/m");
  bem.add_option("--wavenumber", options.wavenumber, "k of helmholtz, exp(i k r) / (4 pi r), in 1/m");
  bem.add_option("--problem", options.problem, "what is solved (default: the first one of the kernel)")
      ->check(CLI::IsMember({"potential", "uniform-field", "interior"}));
  bem.add_option("--potentials", options.potentials,
                 "in V, for each body, or one for all (default 1, of two-spheres 1,-1)")
      ->delimiter(',')
      ->type_name("V[,V,...]");
  bem.add_option("--field", options.field, "of uniform-field, in V/m (default 0,0,1)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("X,Y,Z");
  bem.add_option("--boundary-value", options.boundaryValue, "of interior, a harmonic function (default z)")
      ->check(CLI::IsMember(harmonicFunctions()));
  bem.add_flag("--capacitance-matrix", options.capacitanceMatrix,
               "solve for each body at 1 V with the others at 0 V, all together");
}

void addMatrixOptions(CLI::App& bem, BemOptions& options) {
  bem.add_option("--accuracy", options.accuracy, "of each low-rank block, relative (default 1e-4)");
  bem.add_option("--eta", options.eta, "of the admissibility condition (default 2)");
  bem.add_option("--leaf-size", options.leafSize, "unknowns of a cluster that is not split (default 32)");
  bem.add_option("--approximation", options.approximation, "of blocks (default aca)")
      ->check(CLI::IsMember({"aca", "aca+"}));
  bem.add_option("--cluster-split", options.clusterSplit, "how clusters are split (default longest-side)")
      ->check(CLI::IsMember({"longest-side", "principal-axis"}));
  bem.add_option("--storage", options.storage,
                 "of real values: reduced to the bytes that the accuracy needs, or whole (default reduced)")
      ->check(CLI::IsMember({"whole", "reduced"}));
}

void addSolverOptions(CLI::App& bem, BemOptions& options) {
  bem.add_option(
      "--solver", options.solver,
      "auto (see below), bicgstab, gmres or any other of Belos; pipelined-bicgstab, ours; none: products only");
  bem.add_option("--variant", options.variant,
                 "of pipelined-bicgstab; replicated: every rank holds whole vectors, so that there are no reductions "
                 "(default auto: merged or pipelined)")
      ->check(CLI::IsMember({"auto", "merged", "pipelined", "replicated", "replicated-pipelined"}));
  bem.add_option("--preconditioner", options.preconditioner, "(default diagonal)")
      ->check(CLI::IsMember({"none", "diagonal", "block-jacobi", "overlapping", "hodlr"}));
  bem.add_option("--tolerance", options.tolerance, "relative residual to reach (default 1e-6)");
  bem.add_option("--max-iterations", options.maxIterations, "(default 1000)");
  bem.add_option("--products", options.products, "products to time after the set-up (default 20)");
}

void addOutputOptions(CLI::App& bem, BemOptions& options) {
  bem.add_option("--output", options.densityFile, "write the density on the triangles, for ParaView (.vtu)")
      ->type_name("FILE");
  bem.add_option("--block-plot", options.blockPlotFile, "draw the blocks of the matrix and their ranks (SVG)")
      ->type_name("FILE");
  bem.add_option("--convergence-plot", options.convergencePlotFile,
                 "draw the residuals of each iteration, as the solver estimates them and as they are (SVG, by gnuplot; "
                 "for pipelined-bicgstab; costs a product an iteration)")
      ->type_name("FILE");
  bem.add_option("--json", options.jsonFile, "write the report as JSON; - is stdout, the text then goes to stderr")
      ->type_name("FILE|-");
  bem.add_flag("--quiet", options.quiet, "no report, only errors");
}

bool isOneOf(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void require(bool holds, const std::string& error) {
  if (!holds) {
    throw BadInput("bem: " + error);
  }
}

void requirePositive(double value, const char* option) {
  require(std::isfinite(value) && value > 0, format("%s %g: must be above 0, and finite", option, value));
}

void requireFraction(double value, const char* option) {
  require(value > 0 && value < 1, format("%s %g: must be above 0 and below 1", option, value));
}

void requireFinite(const std::vector<double>& values, const char* option) {
  for (const double value : values) {
    require(std::isfinite(value), format("%s: %g is not finite", option, value));
  }
  require(std::any_of(values.begin(), values.end(), [](double value) { return value != 0; }) || values.empty(),
          std::string(option) + ": all are zero, there is nothing to solve");
}

using Given = std::vector<const char*>;

/// Each of the options is there only if `allowed`.
void requireOnly(const CLI::App& command, bool allowed, const Given& options, const std::string& place) {
  for (const char* option : options) {
    require(allowed || command.count(option) == 0, std::string(option) + " goes with " + place + " only");
  }
}

void checkGeometry(const CLI::App& command, const BemOptions& options) {
  const bool generated = command.count("--geometry") > 0, read = command.count("MESH") > 0;
  require(generated || read, "needs the file of a mesh or --geometry (see komvos bem --help)");
  require(!generated || !read, "both a file (" + options.meshFile + ") and --geometry are given");
  require(!generated || command.count("--triangles") > 0, "--geometry " + options.geometry + " needs --triangles");
  requireOnly(command, read, {"--mesh-group"}, "the file of a mesh");
  const bool several = isOneOf(options.geometry, {"two-spheres", "sphere-array"});
  requireOnly(command, generated, {"--triangles", "--radius"}, "--geometry");
  requireOnly(command, options.geometry == "cylinder", {"--height"}, "--geometry cylinder");
  requireOnly(command, several, {"--distance"}, "--geometry two-spheres and sphere-array");
  requireOnly(command, options.geometry == "sphere-array", {"--per-side"}, "--geometry sphere-array");
  if (command.count("--radius") > 0) {
    requirePositive(options.radius, "--radius");
  }
  requirePositive(options.height, "--height");
  requirePositive(options.distance, "--distance");
  require(options.perSide > 0 && options.perSide <= 1000,
          format("--per-side %d: must be between 1 and 1000", options.perSide));
}

/// The problems of a kernel, its default first.
std::vector<std::string> problemsOf(const std::string& kernel) {
  if (kernel == "laplace-single-layer") {
    return {"potential", "uniform-field"};
  }
  if (kernel == "yukawa") {
    return {"potential"};
  }
  return {kernel == "laplace-double-layer" ? "interior" : "none"};
}

void checkProblem(const CLI::App& command, BemOptions& options) {
  const std::vector<std::string> problems = problemsOf(options.kernel);
  if (options.problem.empty()) {
    options.problem = problems.front();
  }
  require(std::find(problems.begin(), problems.end(), options.problem) != problems.end(),
          "--problem " + options.problem + " has no meaning beside --kernel " + options.kernel);
  requireOnly(command, options.kernel == "yukawa", {"--kappa"}, "--kernel yukawa");
  requireOnly(command, options.kernel == "helmholtz", {"--wavenumber"}, "--kernel helmholtz");
  require(options.kernel != "yukawa" || command.count("--kappa") > 0, "--kernel yukawa needs --kappa");
  require(options.kernel != "helmholtz" || command.count("--wavenumber") > 0, "--kernel helmholtz needs --wavenumber");
  require(std::isfinite(options.kappa) && options.kappa >= 0, format("--kappa %g: must be at least 0", options.kappa));
  require(std::isfinite(options.wavenumber) && options.wavenumber >= 0,
          format("--wavenumber %g: must be at least 0", options.wavenumber));
  requireOnly(command, options.problem == "potential", {"--potentials", "--capacitance-matrix"}, "--problem potential");
  requireOnly(command, options.problem == "uniform-field", {"--field"}, "--problem uniform-field");
  requireOnly(command, options.problem == "interior", {"--boundary-value"}, "--kernel laplace-double-layer");
  requireFinite(options.potentials, "--potentials");
  require(options.field.size() == 3, format("--field has %zu numbers, not 3", options.field.size()));
  requireFinite(options.field, "--field");
  if (options.potentials.empty()) {
    options.potentials = options.geometry == "two-spheres" ? std::vector<double>{1, -1} : std::vector<double>{1};
  }
}

void checkSolver(const CLI::App& command, BemOptions& options) {
  if (options.solver.empty()) {
    options.solver = options.problem == "none" ? "none" : "auto";
  }
  require(options.kernel != "helmholtz" || !options.solves(),
          "--solver " + options.solver + ": the matrix of --kernel helmholtz is complex, and only multiplied");
  requireFraction(options.tolerance, "--tolerance");
  require(options.maxIterations > 0, format("--max-iterations %d: must be at least 1", options.maxIterations));
  require(options.products >= 0 && options.products <= 1000000,
          format("--products %d: must be between 0 and 1000000", options.products));
  requireOnly(command, options.solves(),
              {"--variant", "--preconditioner", "--tolerance", "--max-iterations", "--output", "--convergence-plot",
               "--capacitance-matrix"},
              "a solver");
}

}  // namespace

CLI::App& addBemCommand(CLI::App& app, BemOptions& options) {
  CLI::App& bem = *app.add_subcommand("bem", "Solve a boundary-element problem by a hierarchical matrix");
  bem.footer(footer);
  addGeometryOptions(bem, options);
  addProblemChoice(bem, options);
  addMatrixOptions(bem, options);
  addSolverOptions(bem, options);
  addExchangeOptions(bem, options);
  addOutputOptions(bem, options);
  return bem;
}

void checkBemOptions(const CLI::App& command, BemOptions& options) {
  checkGeometry(command, options);
  checkProblem(command, options);
  requireFraction(options.accuracy, "--accuracy");
  requirePositive(options.eta, "--eta");
  require(options.leafSize > 0, format("--leaf-size %d: must be at least 1", options.leafSize));
  checkSolver(command, options);
  const std::pair<const std::string*, const char*> files[] = {{&options.densityFile, "--output"},
                                                              {&options.blockPlotFile, "--block-plot"},
                                                              {&options.convergencePlotFile, "--convergence-plot"}};
  for (const auto& [file, option] : files) {
    require(*file != "-", std::string(option) + " needs the name of a file");
  }
}

}  // namespace Komvos::Program
