/// \file Komvos_MessageCosts.hpp
/// What messages cost while all ranks send, as far as forecasts need it.
#pragma once

namespace Komvos {

class NodeTopology;
struct MachineModel;

namespace Impl {

class PrivateComm;

/// Of a rank's messages, sent one after the other. Plain data; as it is: a ratio of latency and rate that is usual in
/// clusters, in units of the latency between nodes.
struct MessageCosts {
  double latency = 1;  ///< between nodes
  double perByte = 1.0 / 32768;
  double onNodeLatency = 0.5;  ///< of a step on a node
  double onNodePerByte = 0.25 / 32768;
  bool inSeconds = false;
};

/// Those of eager messages. As usual if the model knows no messages between nodes.
MessageCosts costsOf(const MachineModel& machine);

/// Measures with a few messages of each rank: it sends 4 to the rank with its local rank on the next node, and 4 to the
/// next rank on its node, while all others do the same. The result is the mean over ranks.
/// \param seconds what it took, maximum over ranks
/// \return as usual if no rank has such a partner on another node
/// \note Collective on `comm`.
MessageCosts measureMessageCosts(PrivateComm& comm, const NodeTopology& nodes, double& seconds);

/// The same, but measured once: the result is kept with the communicator, and one whose ranks have all been in another
/// that was measured takes over what they know.
/// \param seconds 0 if nothing was measured
/// \note Collective on `comm` the first time with these nodes.
MessageCosts quickCalibration(PrivateComm& comm, const NodeTopology& nodes, double& seconds);

}  // namespace Impl

}  // namespace Komvos
