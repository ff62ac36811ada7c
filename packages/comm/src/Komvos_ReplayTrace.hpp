/// \file Komvos_ReplayTrace.hpp
/// An exchange as a time-independent trace, which SimGrid's smpirun -replay plays on a platform.
#pragma once

#include <ostream>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_VirtualMessages.hpp"

namespace Komvos {

/// What each rank does: for each stage in which it takes part, start all its receives, then its sends, and wait for all
/// of them. Ranks without messages are left out and the others renumbered; hosts say on which node each of them is, so
/// nothing is lost, and a gather to one of 27,000 ranks replays as fast as it is small.
class ReplayTrace {
 public:
  /// \param messages   of all ranks, each once
  /// \param valueBytes bytes of one value
  ReplayTrace(const NodeTopology& topology, const std::vector<VirtualMessage>& messages, int valueBytes);

  /// Ranks that send or receive.
  int numActive() const { return static_cast<int>(nodeOf_.size()); }

  /// What receiving costs the receiver, in flops of its host: a replay charges senders only, and a gather to one rank
  /// would cost nothing.
  struct ReceiveCost {
    double flopsPerMessage = 0;
    double flopsPerByte = 0;
  };

  /// Lines "RANK init", "RANK irecv FROM TAG BYTES", "RANK isend TO TAG BYTES", "RANK waitall", "RANK compute FLOPS"
  /// for all receives of the stage, unless they are free, and "RANK finalize"; the stage as tag, by rank.
  void writeActions(std::ostream& out, const ReceiveCost& cost) const;

  /// The host file: "n<node>", a line for each active rank.
  void writeHosts(std::ostream& out) const;

 private:
  struct Action {
    int rank;  // active
    int stage;
    bool send;
    int peer;  // active
    long bytes;
  };

  std::vector<int> nodeOf_;      // of each active rank, in the order of ranks
  std::vector<Action> actions_;  // by rank, stage, receives first
};

}  // namespace Komvos
