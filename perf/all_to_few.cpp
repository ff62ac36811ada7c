// How long does it take to gather a coarse level of a few thousand rows from many ranks onto few, and to scatter it?
#include <CLI/CLI.hpp>
#include <iostream>

#include "Komvos_Error.hpp"
#include "analyze/analyze_report.hpp"

namespace {

using namespace Komvos::Program;
using Komvos::VirtualHalo;

struct Level {
  int ranks;
  int rows;
  /// One row each on ranks that are spread evenly.
  std::vector<int> owners() const { return spread(rows); }
  /// Equal shares of consecutive rows on `few` ranks that are spread evenly.
  std::vector<int> gathered(int few) const {
    const std::vector<int> roots = spread(few);
    std::vector<int> owner(rows);
    for (int row = 0; row < rows; ++row) {
      owner[row] = roots[static_cast<long>(row) * few / rows];
    }
    return owner;
  }

 private:
  std::vector<int> spread(int count) const {
    std::vector<int> list(count);
    for (int i = 0; i < count; ++i) {
      list[i] = static_cast<int>(static_cast<long>(i) * ranks / count);
    }
    return list;
  }
};

/// Row i of the gathered vector is row i of the level.
VirtualHalo move(int ranks, const std::vector<int>& from, const std::vector<int>& to) {
  std::vector<std::size_t> offset(from.size() + 1);
  std::vector<int> column(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    column[i] = static_cast<int>(i);
    offset[i + 1] = i + 1;
  }
  return VirtualHalo::ofProduct(ranks, {from.size(), offset.data(), column.data()}, to, from);
}

void run(const ClusterOptions& options, int rows, const std::vector<int>& roots) {
  const VirtualCluster cluster(options);
  const Level level{options.ranks, rows};
  AnalyzeReport report;
  report.problem = "gather and scatter of " + std::to_string(rows) + " rows";
  report.partition = "spread";
  report.pairing = options.pairing;
  report.topology = cluster.topology().describe();
  report.machine = cluster.machine().name;
  report.ranks = options.ranks;
  report.nodes = cluster.topology().numNodes();
  for (const SimulatedNetwork& network : cluster.networks()) {
    report.networks.push_back(network.describe());
  }
  for (const int few : roots) {
    const std::vector<int> many = level.owners();
    const std::vector<int> gathered = level.gathered(few);
    for (const char* const name : {"gather", "scatter"}) {
      const bool in = std::string(name) == "gather";
      const VirtualHalo halo = in ? move(options.ranks, many, gathered) : move(options.ranks, gathered, many);
      OperatorResult result{few, name, rows, rows, in ? few : rows, halo.numNeeds(), {}};
      result.routes = cluster.compare(halo, result.label(), [](const std::string& what) { std::cerr << what << '\n'; });
      report.operators.push_back(std::move(result));
    }
  }
  writeJson(std::cout, report);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Gathers a level of one row on each of --rows ranks onto --roots ranks; JSON to stdout");
  ClusterOptions options;
  options.ranks = 27000;
  options.ranksPerNode = "20";
  int rows = 4000;
  std::vector<int> roots{1, 5, 28};
  app.add_option("--ranks", options.ranks, "virtual ranks (27000)")->check(CLI::PositiveNumber);
  app.add_option("--ranks-per-node", options.ranksPerNode, "(20)");
  app.add_option("--ranks-per-socket", options.ranksPerSocket, "consecutive ranks, for the route sockets");
  app.add_option("--rows", rows, "rows of the level (4000)")->check(CLI::PositiveNumber);
  app.add_option("--roots", roots, "numbers of ranks to gather on (1 5 28)")->check(CLI::PositiveNumber);
  app.add_option("--routes", options.routes, "standard first")->required();
  app.add_option("--simgrid", options.platforms, "torus, fat-tree");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options, rows, roots);
  } catch (const Komvos::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
