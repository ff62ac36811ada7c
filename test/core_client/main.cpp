// A halo without Trilinos: from what each rank needs to plans of all routes, their messages and modelled times.
//
// Every rank owns two values and needs both of every other rank. Nodes are taken to have two ranks.
#include <Komvos_ExchangeModel.hpp>
#include <Komvos_ExchangePlan.hpp>
#include <Komvos_MachineModel.hpp>
#include <Komvos_NodeTopology.hpp>
#include <Komvos_Route.hpp>
#include <Komvos_RouteChoice.hpp>
#include <Komvos_SetupTransport.hpp>
#include <Komvos_Traffic.hpp>
#include <cstdio>
#include <string>
#include <vector>

namespace {

Komvos::Pattern patternOf(int rank, int numRanks) {
  Komvos::Pattern pattern;
  pattern.rank = rank;
  pattern.numOwned = 2;
  for (int other = 0; other < numRanks; ++other) {
    for (int local = 0; local < 2 && other != rank; ++local) {
      pattern.sends.push_back({other, local});
      pattern.receives.push_back({{other, local}, pattern.numTarget++});
    }
  }
  pattern.normalize();
  return pattern;
}

/// Plans this halo along a route and compares it with the same halo planned in one process.
/// \return whether they agree, and one message joins each ordered pair of nodes on the routes that promise it
bool check(const std::string& name, const Komvos::NodeTopology& topology, int rank) {
  const int numRanks = topology.numRanks();
  const Komvos::RouteChoice choice = Komvos::parseRoute(name);
  Komvos::MpiSetupTransport messages(MPI_COMM_WORLD);
  const auto route = Komvos::makeRoute(choice, topology, Komvos::Pairing::byVolume);
  const auto mine = buildPlans(messages, topology, *route, {patternOf(rank, numRanks)});
  const Komvos::Traffic found = Komvos::reduceTraffic(MPI_COMM_WORLD, trafficOf(mine.front()));

  std::vector<Komvos::Pattern> all;
  for (int other = 0; other < numRanks; ++other) {
    all.push_back(patternOf(other, numRanks));
  }
  Komvos::InMemorySetupTransport memory(numRanks);
  const auto same = Komvos::makeRoute(choice, topology, Komvos::Pairing::byVolume);
  const auto plans = buildPlans(memory, topology, *same, all);
  const double seconds = modelledExchangeTime(Komvos::blueWaters(), plans, topology, sizeof(double));
  if (rank == 0) {
    std::printf("%-12s %4ld messages between nodes, %.3g s modelled\n", name.c_str(), found.total.interNodeMessages,
                seconds);
  }
  const long pairs = static_cast<long>(topology.numNodes()) * (topology.numNodes() - 1);
  return found.total.interNodeMessages == trafficOf(plans).total.interNodeMessages &&
         (name != "three-step" || found.total.interNodeMessages == pairs) && (numRanks == 1 || seconds > 0);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto topology = Komvos::NodeTopology::uniform(size, 2);
  int failed = 0;
  for (const char* const name : {"standard", "three-step", "two-step", "split:4"}) {
    failed += check(name, topology, rank) ? 0 : 1;
  }
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
