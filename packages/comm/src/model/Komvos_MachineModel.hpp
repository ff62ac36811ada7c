/// \file Komvos_MachineModel.hpp
/// What a message costs on a machine, and what an exchange costs that sends many.
///
/// Equations and the numbers of Blue Waters are those of A. Bienz, W. Gropp, L. Olson, "Node aware sparse
/// matrix-vector multiplication", section 3. Latencies are seconds, rates bytes per second, sizes bytes.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_NodeTopology.hpp"

namespace Komvos {

/// How MPI sends a message, by its size: inside its envelope, at once into the receiver's buffer, or when the receiver
/// says that it is ready.
enum class Protocol { shortMessage, eager, rendezvous };
constexpr int numProtocols = 3;

/// The sizes at which the protocol changes.
struct ProtocolLimits {
  long shortMax;  ///< the largest short message
  long eagerMax;  ///< the largest eager message; larger ones take rendezvous
  Protocol of(long bytes) const;
};

/// Messages between ranks of one node.
struct OnNodeModel {
  struct Parameters {
    double latency;  ///< alpha_l
    double rate;     ///< B_max,l; infinite where the size does not count
  };
  ProtocolLimits limits;
  std::array<Parameters, numProtocols> parameters;  ///< by Protocol

  const Parameters& of(Protocol protocol) const { return parameters[static_cast<int>(protocol)]; }
  /// alpha_l + s / B_max,l, equation (12).
  double time(long bytes) const;
};

/// Messages between ranks of different nodes.
struct OffNodeModel {
  struct Parameters {
    double latency;    ///< alpha
    double rate;       ///< B_max, of one sender alone; infinite where the size does not count
    double addedRate;  ///< B_inj, what each further sender of the node adds; may be negative, at most `rate`
    double nodeRate = std::numeric_limits<double>::infinity();  ///< B_N, what the node's network card can do
  };
  ProtocolLimits limits;
  std::array<Parameters, numProtocols> parameters;  ///< by Protocol
  /// The most senders of a node that were measured. More than these share the rate of so many: where B_inj is
  /// negative, the line through the measurements would reach zero.
  int measuredSenders;

  const Parameters& of(Protocol protocol) const { return parameters[static_cast<int>(protocol)]; }
  /// min(B_N, B_max + (senders - 1) B_inj): what `senders` ranks of a node send together, the denominator of (10).
  double jointRate(Protocol protocol, int senders) const;
  /// alpha + s / B_max, equation (11).
  double time(long bytes) const;
  /// alpha + ppn s / min(B_N, B_max + (ppn - 1) B_inj), equation (10): `senders` ranks of a node send a message of
  /// `bytes` each. Equal to (11) for one sender.
  double time(long bytes, int senders) const;
};

/// One way times of messages, as measured.
struct MeasuredSeries {
  struct Point {
    long bytes;
    double seconds;
  };
  bool onNode;
  int pairs;  ///< pairs of ranks that exchanged messages at the same time, between the same two nodes
  std::vector<Point> points;
};

/// A machine. Plain data.
struct MachineModel {
  std::string name;
  std::string date;  ///< of the measurement, as 2026-11-21
  std::string host;  ///< for people: processor, network, MPI library
  OnNodeModel onNode;
  std::optional<OffNodeModel> offNode;   ///< empty if there was one node only
  std::vector<MeasuredSeries> measured;  ///< what the parameters were fitted to; may be empty

  /// \throws BadInput naming the machine, if it has no parameters for messages between nodes.
  const OffNodeModel& needOffNode() const;
};

/// Blue Waters, a Cray XE with 16 cores a node: tables 3 and 4 of the paper. The heads of B_inj and B_max are swapped
/// there, see (10); the sizes where the protocol changes are not printed, these are the ones of its MPI library.
MachineModel blueWaters();

/// Messages of one protocol.
struct Load {
  long messages = 0;
  long bytes = 0;
};

/// Messages of one rank in one stage of an exchange, all sent or all received, by Protocol.
struct MessageLoad {
  std::array<Load, numProtocols> onNode;
  std::array<Load, numProtocols> offNode;

  /// Adds one message. \throws BadInput if it leaves the node and `machine` has no parameters for that.
  void add(const MachineModel& machine, bool isOnNode, long bytes);
};

/// What one rank sends and receives in one stage of an exchange.
struct StageLoad {
  MessageLoad sent;
  MessageLoad received;
};

/// What the rank of `plan` has to do. \return one load for each stage
/// \throws BadInput as MessageLoad::add
std::vector<StageLoad> stageLoads(const MachineModel& machine, const ExchangePlan& plan, int bytesPerValue);

/// Seconds of each stage on one node, the maximum over its ranks, by the model of ModelAccumulator.
/// \param loads stageLoads of all ranks of the node, each of as many stages
std::vector<double> stageTimesOnNode(const MachineModel& machine, const std::vector<std::vector<StageLoad>>& loads);

/// Models an exchange from its messages, in any order, without plans: 200 bytes for each rank and stage.
///
/// The paper models single messages only. Here a rank's messages of a stage follow one another: their times by (12)
/// and (10) are added, where ppn s in (10) is what all ranks of the node send off it in this stage by this protocol,
/// and ppn is the number of these ranks; no rank is faster than (11) allows. What a rank receives is counted in the
/// same way, which the paper leaves out: without it a gather to one rank would cost nothing there. A stage lasts as
/// long as the rank that is busiest sending, or receiving, and the stages follow one another.
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

/// The model of ModelAccumulator for plans of all ranks. \throws BadInput as MessageLoad::add
double modelledExchangeTime(const MachineModel& machine, const std::vector<ExchangePlan>& plans,
                            const NodeTopology& topology, int bytesPerValue);

}  // namespace Komvos
