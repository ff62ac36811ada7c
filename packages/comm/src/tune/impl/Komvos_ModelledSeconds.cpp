#include "Komvos_ModelledSeconds.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangeModel.hpp"

namespace Komvos::Impl {

namespace {

static_assert(sizeof(StageLoad) % sizeof(int) == 0, "loads travel as ints");

/// What this rank sends and receives in each stage. \note Collective on `comm`. \throws BadInput on all ranks
std::vector<StageLoad> loadsOfThisRank(MPI_Comm comm, const MachineModel& machine, const ExchangePlan& plan) {
  std::vector<StageLoad> loads;
  std::string error;
  try {
    loads = stageLoads(machine, plan, sizeof(double));
  } catch (const BadInput& thrown) {  // a rank without messages off its node does not miss those parameters
    error = thrown.what();
  }
  throwOnAllIfAny(comm, error);
  return loads;
}

/// On the first rank of each node the loads of all its ranks; elsewhere only those of the rank itself.
/// \note Collective on the transport.
std::vector<std::vector<StageLoad>> gatherOnNode(SetupTransport& transport, int rank, int leader,
                                                 const std::vector<StageLoad>& mine) {
  const std::size_t bytes = mine.size() * sizeof(StageLoad);
  std::vector<SetupMessage> toLeader;
  if (rank != leader) {
    toLeader.push_back({leader, std::vector<int>(bytes / sizeof(int))});
    std::memcpy(toLeader.back().data.data(), mine.data(), bytes);
  }
  std::vector<std::vector<StageLoad>> loads{mine};
  const std::vector<std::vector<SetupMessage>> arrived = transport.exchange({std::move(toLeader)});
  for (const SetupMessage& message : arrived.front()) {
    loads.emplace_back(mine.size());
    std::memcpy(static_cast<void*>(loads.back().data()), message.data.data(), bytes);
  }
  return loads;
}

void dropOnNode(std::vector<std::vector<StageLoad>>& loads) {
  for (std::vector<StageLoad>& ofRank : loads) {
    for (StageLoad& load : ofRank) {
      load.sent.onNode = load.received.onNode = {};
    }
  }
}

}  // namespace

/// By (10) the ranks of a node share its rate, so the first rank of each node computes for all of them. A stage takes
/// as long as on the slowest node.
ModelledSeconds modelledSeconds(MPI_Comm comm, SetupTransport& transport, const MachineModel& machine,
                                const NodeTopology& nodes, const ExchangePlan& plan) {
  const int leader = nodes.leaderOf(nodes.nodeOf(plan.rank));
  std::vector<std::vector<StageLoad>> loads =
      gatherOnNode(transport, plan.rank, leader, loadsOfThisRank(comm, machine, plan));
  std::vector<double> stages(2 * plan.numStages);  // first all messages, then those between nodes
  const auto betweenNodes = stages.begin() + plan.numStages;
  if (plan.rank == leader) {
    const std::vector<double> all = stageTimesOnNode(machine, loads);
    std::copy(all.begin(), all.end(), stages.begin());
    dropOnNode(loads);
    const std::vector<double> some = stageTimesOnNode(machine, loads);
    std::copy(some.begin(), some.end(), betweenNodes);
  }
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, stages.data(), 2 * plan.numStages, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
  return {std::accumulate(stages.begin(), betweenNodes, 0.0), std::accumulate(betweenNodes, stages.end(), 0.0)};
}

}  // namespace Komvos::Impl
