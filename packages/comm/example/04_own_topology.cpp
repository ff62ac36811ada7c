// Nodes of your own: which ranks share a node is detected, or given as a list.
//
// The same halo under three placements of the ranks. The report counts what crosses between nodes, along the standard
// route and along three steps: at most one message for each ordered pair of nodes, however uneven the nodes are.
//
//   mpirun -n 4 ./04_own_topology
#include <Komvos_NodeAwareCrsMatrix.hpp>
#include <Komvos_NodeTopology.hpp>
#include <Komvos_RouteChoice.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "laplacian.hpp"

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  const auto matrix = example::laplacian(30, example::cyclicRows(30));
  const int rank = matrix->getComm()->getRank(), size = matrix->getComm()->getSize();
  if (size == 1) {
    std::printf("one rank has no halo; run this on several\n");
    return 0;
  }
  std::vector<int> uneven;  // rank 0 has a node to itself, the others share one
  for (int r = 0; r < size; ++r) {
    uneven.push_back(r == 0 ? 0 : 1);
  }

  bool right = true;
  for (const auto& topology : {Komvos::NodeTopology::detect(MPI_COMM_WORLD), Komvos::NodeTopology::uniform(size, 2),
                               Komvos::NodeTopology::fromMap(uneven)}) {
    Komvos::ExchangeOptions options;
    options.topology = std::make_shared<const Komvos::NodeTopology>(topology);
    options.route = Komvos::RouteChoice::threeStep;
    const auto A = Komvos::makeNodeAware(matrix, options);

    const Komvos::HaloReport& report = A->importHalo()->report();
    const Komvos::RankTraffic &standard = report.standard.total, &threeStep = report.chosen.total;
    if (rank == 0) {
      std::printf("%s: %ld messages with %ld values between nodes by the standard route, %ld with %ld by three steps\n",
                  topology.describe().c_str(), standard.interNodeMessages, standard.interNodeValues,
                  threeStep.interNodeMessages, threeStep.interNodeValues);
    }
    const long pairsOfNodes = static_cast<long>(topology.numNodes()) * (topology.numNodes() - 1);
    right = right && threeStep.interNodeMessages <= pairsOfNodes &&
            threeStep.interNodeValues <= standard.interNodeValues && example::productDifference(*matrix, *A) < 1e-14;
  }
  return right ? 0 : 1;
}
