#include "analyze/analyze_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "Komvos_Error.hpp"
#include "Komvos_Settings.hpp"

namespace Komvos::Program {

namespace {

const char* const footer =
    "Predicts the benefit before you have a cluster: one process counts exactly what each rank would send, and models\n"
    "the time.\n"
    "Routes: standard, two-step, three-step, split, split:V (several ranks share a pair of nodes that exchanges more\n"
    "than V values), axis, axis:C,X,Y,Z (groups of C ranks on a grid of X x Y x Z groups), sockets (with\n"
    "--ranks-per-socket). The default is all routes that need no parameters.\n"
    "--hierarchy adds the levels of a MueLu hierarchy. It is set up in this process, so aggregates may span several\n"
    "ranks; a coarse row belongs to the rank with the largest weight in its aggregate.\n"
    "Example: komvos analyze --problem elasticity3d --n 24 --hierarchy --partition blocks --ranks 1024 "
    "--ranks-per-node 16\n"
    "Exit status: 0 success, 1 invalid input, 3 internal error.";

void addClusterOptions(CLI::App& analyze, ClusterOptions& options) {
  analyze.add_option("--ranks", options.ranks, "number of simulated ranks")->check(CLI::Range(1, 1 << 24));
  analyze
      .add_option("--ranks-per-node", options.ranksPerNode,
                  "ranks on every node, a list with one count per node, or a file with the node of each rank")
      ->type_name("K|K,K,...|@FILE");
  analyze.add_option("--ranks-per-socket", options.ranksPerSocket, "consecutive ranks on each socket of a node")
      ->check(CLI::Range(1, 1 << 24));
  analyze
      .add_option_function<std::string>(
          "--routes", [&options](const std::string& text) { options.routes = splitRoutes(text); },
          "routes to compare; standard is always included")
      ->type_name("ROUTE,ROUTE,...");
  analyze.add_option("--pairing", options.pairing, "how ranks are chosen to send between nodes (default by-volume)")
      ->check(CLI::IsMember({"by-volume", "least-loaded", "majority"}));
  analyze
      .add_option("--machine", options.machine,
                  "model parameters: blue-waters (default), or a file written by `komvos calibrate`")
      ->type_name("NAME|FILE");
  analyze
      .add_option("--simgrid", options.platforms, "also simulate each halo with SimGrid on this network; repeatable")
      ->check(CLI::IsMember({"torus", "fat-tree"}))
      ->allow_extra_args(false);
  analyze.add_flag("--set-up", options.setUp,
                   "also plan each route for all ranks, and count what that sends; needs more memory");
  analyze.add_option("--trace", options.traceFolder, "keep SimGrid's traces and platform files in this directory")
      ->type_name("DIR");
}

void addOutputOptions(CLI::App& analyze, AnalyzeOptions& options) {
  analyze.add_option("--csv", options.csvFile, "write the table as CSV")->type_name("FILE");
  analyze.add_option("--json", options.jsonFile, "write all results; with - to stdout, and the text to stderr")
      ->type_name("FILE|-");
  analyze.add_option("--plot", options.plotFile, "draw messages and times of every operator (needs gnuplot)")
      ->type_name("FILE.svg");
  analyze.add_flag("--quiet", options.quiet, "print errors only");
}

}  // namespace

CLI::App& addAnalyzeCommand(CLI::App& app, AnalyzeOptions& options) {
  CLI::App& analyze =
      *app.add_subcommand("analyze", "Count and model the halo exchanges of a matrix on a cluster that need not exist");
  analyze.footer(footer);
  addProblemOptions(analyze, options);
  analyze.add_flag(
      "--hierarchy", options.hierarchy,
      "also analyze A, P and R of every level of a MueLu hierarchy, and what its coarse solve gathers (G) and scatters "
      "(S)");
  analyze.add_option("--xml", options.parameterFile, "MueLu parameters, with --hierarchy")->type_name("FILE");
  analyze
      .add_option("--partition", options.partition,
                  "distribution of the rows (default contiguous); blocks needs the coordinates of a generated problem")
      ->check(CLI::IsMember({"contiguous", "strided", "blocks"}));
  addClusterOptions(analyze, options);
  addOutputOptions(analyze, options);
  return analyze;
}

void checkAnalyzeOptions(const CLI::App& command, AnalyzeOptions& options) {
  checkProblemOptions(command, options);
  if (options.ranks == 0 || options.ranksPerNode.empty()) {
    throw BadInput("analyze: needs --ranks and --ranks-per-node (see komvos analyze --help)");
  }
  const Settings settings = readSettings();  // also rejects misspelt variables
  if (command.count("--machine") == 0) {
    options.machine = settings.machine.value_or(options.machine);
  }
  if (!options.parameterFile.empty() && !options.hierarchy) {
    throw BadInput("analyze: --xml is only valid with --hierarchy");
  }
  if (options.routes.empty()) {
    options.routes = {"standard", "two-step", "three-step", "split", "axis"};
    if (options.ranksPerSocket > 0) {
      options.routes.push_back("sockets");
    }
  }
  // First, because the others are compared with it.
  options.routes.erase(std::remove(options.routes.begin(), options.routes.end(), "standard"), options.routes.end());
  options.routes.insert(options.routes.begin(), "standard");
}

}  // namespace Komvos::Program
