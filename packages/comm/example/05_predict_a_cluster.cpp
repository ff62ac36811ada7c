// What 1,024 ranks would send, counted and modelled in one process.
//
// Each virtual rank owns one line of a grid of 32 x 32 x 32 points with 27-point stencils, so it has up to eight
// neighbours; 16 ranks share a node. The plans are those that the same ranks would make on a cluster. Their times are
// modelled with the published parameters of Blue Waters; `komvos calibrate` measures those of your cluster, and
// `komvos analyze` does all this for matrices and multigrid hierarchies.
//
//   ./05_predict_a_cluster
#include <Komvos_ExchangeModel.hpp>
#include <Komvos_ExchangePlan.hpp>
#include <Komvos_MachineModel.hpp>
#include <Komvos_RouteChoice.hpp>
#include <Komvos_SetupTransport.hpp>
#include <Komvos_Traffic.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

namespace {

const int lines = 32, points = 32, numRanks = lines * lines;

/// The ranks whose lines touch the line of `rank`.
std::vector<int> neighboursOf(int rank) {
  std::vector<int> neighbours;
  for (int other = 0; other < numRanks; ++other) {
    const int dy = std::abs(other % lines - rank % lines), dz = std::abs(other / lines - rank / lines);
    if (other != rank && dy <= 1 && dz <= 1) {
      neighbours.push_back(other);
    }
  }
  return neighbours;
}

/// What each rank sends, and what it needs of others: a value is its owner and the owner's index.
std::vector<Komvos::Pattern> patternsOfAllRanks() {
  std::vector<Komvos::Pattern> patterns(numRanks);
  for (int rank = 0; rank < numRanks; ++rank) {
    Komvos::Pattern& mine = patterns[rank];
    mine.rank = rank;
    mine.numOwned = points;
    for (const int neighbour : neighboursOf(rank)) {
      for (int point = 0; point < points; ++point) {
        mine.sends.push_back({neighbour, point});
        mine.receives.push_back({{neighbour, point}, mine.numTarget++});
      }
    }
    mine.normalize();
  }
  return patterns;
}

}  // namespace

int main() {
  const auto topology = Komvos::NodeTopology::uniform(numRanks, 16);
  const auto patterns = patternsOfAllRanks();
  std::printf("%s\n%-12s %18s %18s %14s\n", topology.describe().c_str(), "route", "messages off node",
              "values off node", "modelled, us");

  // For the check at the end: pairs of ranks, and of nodes, that must talk across the network.
  std::set<std::pair<int, int>> rankPairs, nodePairs;
  for (int rank = 0; rank < numRanks; ++rank) {
    for (const int other : neighboursOf(rank)) {
      if (!topology.sameNode(rank, other)) {
        rankPairs.insert({rank, other});
        nodePairs.insert({topology.nodeOf(rank), topology.nodeOf(other)});
      }
    }
  }

  bool right = true;
  for (const auto& choice : {Komvos::RouteChoice::standard, Komvos::RouteChoice::twoStep,
                             Komvos::RouteChoice::threeStep, Komvos::RouteChoice::axis}) {
    Komvos::InMemorySetupTransport transport(numRanks);
    const auto route = Komvos::makeRoute(choice, topology);
    const auto plans = Komvos::buildPlans(transport, topology, *route, patterns);

    const Komvos::RankTraffic sent = Komvos::trafficOf(plans).total;
    const double seconds = Komvos::modelledExchangeTime(Komvos::blueWaters(), plans, topology, sizeof(double));
    std::printf("%-12s %18ld %18ld %14.1f\n", toString(choice).c_str(), sent.interNodeMessages, sent.interNodeValues,
                1e6 * seconds);

    const auto messages = static_cast<std::size_t>(sent.interNodeMessages);
    right = right && seconds > 0 && (choice != Komvos::RouteChoice::standard || messages == rankPairs.size()) &&
            (choice != Komvos::RouteChoice::threeStep || messages == nodePairs.size());
  }
  return right ? 0 : 1;
}
