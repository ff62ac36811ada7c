/// \file Komvos_ExchangeModel.hpp
/// What an exchange of many messages costs on a machine.
///
/// The paper (see Komvos_MachineModel.hpp) models single messages only. Here the messages of a rank in a stage follow
/// one another: their times by equations (12) and (10) are added, where ppn s in (10) is what all ranks of the node
/// send off it in this stage by this protocol, and ppn is the number of these ranks; no rank is faster than (11)
/// allows. What a rank receives is counted in the same way, which the paper leaves out: without it a gather to one rank
/// would cost nothing there. A stage lasts as long as the rank that is busiest sending, or receiving, and the stages
/// follow one another.
#pragma once

#include <array>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_MachineModel.hpp"
#include "Komvos_NodeTopology.hpp"

namespace Komvos {

/// Messages of one rank in one stage of an exchange, all sent or all received, by Protocol.
struct MessageLoad {
  struct Count {
    long messages = 0;
    long bytes = 0;
  };
  std::array<Count, numProtocols> onNode;
  std::array<Count, numProtocols> offNode;

  /// Adds one message. \throws BadInput if it leaves the node and `machine` has no parameters for that.
  void add(const MachineModel& machine, bool isOnNode, long bytes);
};

/// What one rank sends and receives in one stage of an exchange.
struct StageLoad {
  MessageLoad sent;
  MessageLoad received;
};

/// What the rank of `plan` sends and receives. \return one load for each stage
/// \throws BadInput as MessageLoad::add
std::vector<StageLoad> stageLoads(const MachineModel& machine, const ExchangePlan& plan, int bytesPerValue);

/// Seconds of each stage on one node, the maximum over its ranks.
/// \param loads stageLoads of all ranks of the node, each of as many stages
std::vector<double> stageTimesOnNode(const MachineModel& machine, const std::vector<std::vector<StageLoad>>& loads);

/// Models an exchange from its messages, in any order, without plans. Takes 200 bytes for each rank and stage.
class ModelAccumulator {
 public:
  ModelAccumulator(MachineModel machine, NodeTopology topology, int numStages);

  /// \throws BadInput as MessageLoad::add
  void add(int stage, int from, int to, long bytes);

  /// Seconds of each stage: the maximum over ranks.
  std::vector<double> stageTimes() const;
  /// Seconds of the exchange: the sum over stages.
  double time() const;

 private:
  MachineModel machine_;
  NodeTopology topology_;
  int numStages_;
  std::vector<std::vector<StageLoad>> loads_;  // by rank, then stage
};

/// Seconds of an exchange whose plans are all at hand, by ModelAccumulator. \param plans of all ranks
/// \throws BadInput as MessageLoad::add
double modelledExchangeTime(const MachineModel& machine, const std::vector<ExchangePlan>& plans,
                            const NodeTopology& topology, int bytesPerValue);

}  // namespace Komvos
