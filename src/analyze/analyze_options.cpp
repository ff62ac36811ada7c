#include "analyze/analyze_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "Komvos_Error.hpp"
#include "Komvos_Settings.hpp"

namespace Komvos::Program {

namespace {

const char* const footer =
    "All ranks are virtual: one process counts what each of them would send, exactly, and models the time.\n"
    "Routes: standard, two-step, three-step, split, split:V (several ranks share a pair of nodes that has more than V "
    "values),\n"
    "axis, axis:C,X,Y,Z (groups of C ranks on a grid of X x Y x Z groups), sockets; without --routes all that need no\n"
    "further numbers. --hierarchy adds the levels of MueLu, set up in this process: its aggregates do not end where\n"
    "ranks do, and a coarse row belongs to the rank with the most weight in its aggregate.\n"
    "Example: komvos analyze --problem elasticity3d --n 24 --hierarchy --partition blocks --ranks 1024 "
    "--ranks-per-node 16\n"
    "Exit status: 0 done, 1 wrong input, 3 internal error.";

}  // namespace

CLI::App& addAnalyzeCommand(CLI::App& app, AnalyzeOptions& options) {
  CLI::App& analyze =
      *app.add_subcommand("analyze", "Count and model the halos of a matrix on a cluster that need not exist");
  analyze.footer(footer);
  addProblemOptions(analyze, options);
  analyze.add_flag("--hierarchy", options.hierarchy, "also A, P and R of every level of a MueLu hierarchy");
  analyze.add_option("--xml", options.parameterFile, "parameters for MueLu, with --hierarchy")->type_name("FILE");
  analyze.add_option("--ranks", options.ranks, "virtual ranks")->check(CLI::Range(1, 1 << 24));
  analyze
      .add_option("--ranks-per-node", options.ranksPerNode,
                  "ranks on each node, on each in turn, or a node for each rank")
      ->type_name("K|K,K,...|@FILE");
  analyze.add_option("--ranks-per-socket", options.ranksPerSocket, "consecutive ranks on each socket of a node")
      ->check(CLI::PositiveNumber);
  analyze
      .add_option_function<std::string>(
          "--routes", [&options](const std::string& text) { options.routes = splitRoutes(text); },
          "routes to compare; standard is always among them")
      ->type_name("ROUTE,ROUTE,...");
  analyze.add_option("--pairing", options.pairing, "which ranks carry what crosses nodes (default by-volume)")
      ->check(CLI::IsMember({"by-volume", "least-loaded", "majority"}));
  analyze
      .add_option("--partition", options.partition,
                  "which rank owns which rows (default contiguous); blocks: by coordinates of a generated problem")
      ->check(CLI::IsMember({"contiguous", "strided", "blocks"}));
  analyze
      .add_option("--machine", options.machine,
                  "parameters of the model: blue-waters (default), or a file of `komvos calibrate`")
      ->type_name("NAME|FILE");
  analyze
      .add_option("--simgrid", options.platforms, "also simulate each halo with SimGrid on this network; repeatable")
      ->check(CLI::IsMember({"torus", "fat-tree"}))
      ->allow_extra_args(false);
  analyze.add_option("--trace", options.traceFolder, "keep the traces and platforms for SimGrid here")
      ->type_name("DIR");
  analyze.add_option("--csv", options.csvFile, "write the table")->type_name("FILE");
  analyze.add_option("--json", options.jsonFile, "write everything; - is stdout, the text then goes to stderr")
      ->type_name("FILE|-");
  analyze.add_option("--plot", options.plotFile, "draw messages and times of each level")->type_name("FILE.svg");
  analyze.add_flag("--quiet", options.quiet, "no table, only errors");
  return analyze;
}

void checkAnalyzeOptions(const CLI::App& command, AnalyzeOptions& options) {
  checkProblemOptions(command, options);
  if (options.ranks == 0 || options.ranksPerNode.empty()) {
    throw BadInput("analyze: needs --ranks and --ranks-per-node (see komvos analyze --help)");
  }
  const Settings settings = readSettings();  // also refuses what is misspelt there
  if (command.count("--machine") == 0) {
    options.machine = settings.machine.value_or(options.machine);
  }
  if (!options.parameterFile.empty() && !options.hierarchy) {
    throw BadInput("analyze: --xml goes with --hierarchy only");
  }
  if (options.routes.empty()) {
    options.routes = {"standard", "two-step", "three-step", "split", "axis"};
    if (options.ranksPerSocket > 0) {
      options.routes.push_back("sockets");
    }
  }
  // First, for the others are compared with it.
  options.routes.erase(std::remove(options.routes.begin(), options.routes.end(), "standard"), options.routes.end());
  options.routes.insert(options.routes.begin(), "standard");
}

}  // namespace Komvos::Program
