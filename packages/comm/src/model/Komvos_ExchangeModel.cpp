#include "Komvos_ExchangeModel.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace Komvos {

namespace {

/// What the ranks of a node send off it, or receive from elsewhere, in one stage by one protocol.
struct NodeLoad {
  int ranks = 0;
  long bytes = 0;
};
using NodeLoads = std::array<NodeLoad, numProtocols>;

double onNodeTime(const OnNodeModel& model, const MessageLoad& load) {
  double time = 0;
  for (int p = 0; p < numProtocols; ++p) {
    const MessageLoad::Count& l = load.onNode[p];
    time += l.messages * model.parameters[p].latency + l.bytes / model.parameters[p].rate;
  }
  return time;
}

/// \param node of all ranks of the node, this one included
double offNodeTime(const OffNodeModel& model, const MessageLoad& load, const NodeLoads& node) {
  double time = 0;
  for (int p = 0; p < numProtocols; ++p) {
    const MessageLoad::Count& l = load.offNode[p];
    if (l.messages > 0) {
      const OffNodeModel::Parameters& parameters = model.parameters[p];
      const double together = node[p].bytes / model.jointRate(static_cast<Protocol>(p), node[p].ranks);
      time += l.messages * parameters.latency + std::max(l.bytes / parameters.rate, together);
    }
  }
  return time;
}

/// Of the slowest rank of a node. \param oneWay all that a rank sends in a stage, or all that it receives
double slowestTime(const MachineModel& machine, const std::vector<std::vector<StageLoad>>& loads, std::size_t stage,
                   MessageLoad StageLoad::*oneWay) {
  NodeLoads node;
  for (const std::vector<StageLoad>& rank : loads) {
    for (int p = 0; p < numProtocols; ++p) {
      const MessageLoad::Count& load = (rank[stage].*oneWay).offNode[p];
      node[p].ranks += load.messages > 0;
      node[p].bytes += load.bytes;
    }
  }
  double slowest = 0;
  for (const std::vector<StageLoad>& rank : loads) {
    const MessageLoad& load = rank[stage].*oneWay;
    const double offNode = machine.offNode ? offNodeTime(*machine.offNode, load, node) : 0.0;
    slowest = std::max(slowest, onNodeTime(machine.onNode, load) + offNode);
  }
  return slowest;
}

}  // namespace

void MessageLoad::add(const MachineModel& machine, bool isOnNode, long bytes) {
  const Protocol protocol = (isOnNode ? machine.onNode.limits : machine.needOffNode().limits).of(bytes);
  Count& load = (isOnNode ? onNode : offNode)[static_cast<int>(protocol)];
  load.messages += 1;
  load.bytes += bytes;
}

std::vector<StageLoad> stageLoads(const MachineModel& machine, const ExchangePlan& plan, int bytesPerValue) {
  std::vector<StageLoad> loads(plan.numStages);
  const auto bytesOf = [&](const PlanMessage& message) { return static_cast<long>(message.count) * bytesPerValue; };
  for (const PlanMessage& message : plan.sends) {
    loads[message.stage].sent.add(machine, message.onNode, bytesOf(message));
  }
  for (const PlanMessage& message : plan.receives) {
    loads[message.stage].received.add(machine, message.onNode, bytesOf(message));
  }
  return loads;
}

std::vector<double> stageTimesOnNode(const MachineModel& machine, const std::vector<std::vector<StageLoad>>& loads) {
  std::vector<double> times(loads.empty() ? 0 : loads.front().size());
  for (std::size_t stage = 0; stage < times.size(); ++stage) {
    times[stage] = std::max(slowestTime(machine, loads, stage, &StageLoad::sent),
                            slowestTime(machine, loads, stage, &StageLoad::received));
  }
  return times;
}

ModelAccumulator::ModelAccumulator(MachineModel machine, NodeTopology topology, int numStages)
    : machine_(std::move(machine)),
      topology_(std::move(topology)),
      numStages_(numStages),
      loads_(topology_.numRanks(), std::vector<StageLoad>(numStages)) {}

void ModelAccumulator::add(int stage, int from, int to, long bytes) {
  const bool onNode = topology_.sameNode(from, to);
  loads_.at(from).at(stage).sent.add(machine_, onNode, bytes);
  loads_.at(to).at(stage).received.add(machine_, onNode, bytes);
}

std::vector<double> ModelAccumulator::stageTimes() const {
  std::vector<double> times(numStages_);
  for (int node = 0; node < topology_.numNodes(); ++node) {
    std::vector<std::vector<StageLoad>> loads;
    for (int local = 0; local < topology_.numRanksOn(node); ++local) {
      loads.push_back(loads_[topology_.rankOn(node, local)]);
    }
    const std::vector<double> here = stageTimesOnNode(machine_, loads);
    for (int stage = 0; stage < numStages_; ++stage) {
      times[stage] = std::max(times[stage], here[stage]);
    }
  }
  return times;
}

double ModelAccumulator::time() const {
  const std::vector<double> times = stageTimes();
  return std::accumulate(times.begin(), times.end(), 0.0);
}

double modelledExchangeTime(const MachineModel& machine, const std::vector<ExchangePlan>& plans,
                            const NodeTopology& topology, int bytesPerValue) {
  ModelAccumulator model(machine, topology, plans.empty() ? 0 : plans.front().numStages);
  for (const ExchangePlan& plan : plans) {
    for (const PlanMessage& send : plan.sends) {
      model.add(send.stage, plan.rank, send.peer, static_cast<long>(send.count) * bytesPerValue);
    }
  }
  return model.time();
}

}  // namespace Komvos
