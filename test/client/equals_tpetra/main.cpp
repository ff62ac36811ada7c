// Does with Komvos what a Tpetra program may do with a matrix, an import and an export, and compares with Tpetra: on
// every route, with messages and with shared memory, on nodes of uneven sizes. Fails where anything differs: imports in
// any bit, sums by more than rounding.
#include <Komvos_NodeTopology.hpp>
#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>

#include "comparison.hpp"

namespace {

/// Nodes for so many ranks: as KOMVOS_RANKS_PER_NODE reads them.
std::vector<std::string> nodesFor(int size) {
  if (size == 1) {
    return {"1"};
  }
  const std::string rest = std::to_string(size - size / 2 - 1);
  return {"2", std::to_string(size / 2 + 1) + (rest == "0" ? "" : "," + rest), "1"};
}

void set(const char* variable, const std::string& value) { setenv(variable, value.c_str(), 1); }

/// All routes by messages and by shared memory, on different nodes, with every kind of overlap.
bool compareAll(const twin::Comm& comm) {
  const int size = comm->getSize();
  std::vector<std::pair<std::string, std::string>> ways;  // route, and what carries values on a node
  for (const char* const route : {"standard", "two-step", "three-step", "split:3", "axis", "sockets"}) {
    ways.insert(ways.end(), {{route, "messages"}, {route, "shared-memory"}});
  }
  if (size <= 4) {
    ways.emplace_back("auto", "auto");  // measures each halo, which takes its time
  }
  const std::vector<std::string> nodes = nodesFor(size);
  const std::string overlaps[] = {"by-node", "none", "interior"};
  twin::Comparisons comparisons(comm->getRank());
  int turn = 0;
  for (const auto& [route, onNode] : ways) {
    const std::string& placed = nodes[turn % nodes.size()];
    const std::string& overlap = overlaps[(turn / 2) % 3];
    set("KOMVOS_ROUTE", route);
    set("KOMVOS_ON_NODE", onNode);
    set("KOMVOS_RANKS_PER_NODE", placed);
    set("KOMVOS_OVERLAP", route == "auto" ? route : overlap);
    twin::Setting setting{route + " by " + onNode + ", overlap " + overlap + ", nodes of " + placed, {}, turn++};
    if (route == "sockets") {  // not looked up where the nodes are given
      const auto topology = Komvos::NodeTopology::parse(placed, size);
      setting.options.sockets = std::make_shared<const Komvos::NodeTopology>(topology.sockets(1 + turn % 2));
    }
    compareMatrices(comparisons, comm, setting);
    compareTransfers(comparisons, comm, setting);
  }
  if (comm->getRank() == 0) {
    std::printf("%d ranks, %d combinations of route, transport, overlap and nodes:\n", size, turn);
  }
  return comparisons.report();
}

}  // namespace

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  try {
    return compareAll(Tpetra::getDefaultComm()) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
