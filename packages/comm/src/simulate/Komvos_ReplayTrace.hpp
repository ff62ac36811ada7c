/// \file Komvos_ReplayTrace.hpp
/// An exchange as a time-independent trace, which SimGrid replays on a platform (smpirun -replay).
#pragma once

#include <ostream>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_VirtualMessages.hpp"

namespace Komvos {

/// The actions of every rank: in each stage in which it takes part, it starts all its receives, then its sends, and
/// waits for each of them. (SimGrid's "waitall" would do the same in time that is quadratic in their number.) Ranks
/// without messages are left out and the others renumbered, so that the cost of a replay depends on the active ranks
/// only.
class ReplayTrace {
 public:
  /// \param messages   of all ranks, each once
  /// \param valueBytes bytes of one value
  ReplayTrace(const NodeTopology& topology, const std::vector<VirtualMessage>& messages, int valueBytes);

  /// Ranks that send or receive.
  int numActive() const { return static_cast<int>(nodeOf_.size()); }

  /// What receiving costs the receiver, in flops of its host. A replay charges senders only: without this a gather to
  /// one rank would cost nothing.
  struct ReceiveCost {
    double flopsPerMessage = 0;
    double flopsPerByte = 0;
  };

  /// Lines "RANK init", "RANK irecv FROM TAG BYTES", "RANK isend TO TAG BYTES", "RANK wait FROM TO TAG", "RANK compute
  /// FLOPS" for all receives of the stage, unless they are free, and "RANK finalize"; the stage as tag, by rank.
  /// \param maxConcurrentSends the most sends of a rank in flight: before it starts one more, it waits for the oldest.
  ///     Receivers are then in a pseudo-random order; in the order of ranks, all senders would wait for the same few
  ///     receivers. 0: all sends at once, in the order of ranks.
  void writeActions(std::ostream& out, const ReceiveCost& cost, int maxConcurrentSends = 0) const;

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

  using Actions = std::vector<Action>;

  static void writeSends(std::ostream& out, Actions sends, int maxConcurrentSends);
  static void writeStage(std::ostream& out, Actions::const_iterator begin, Actions::const_iterator end,
                         const ReceiveCost& cost, int maxConcurrentSends);

  std::vector<int> nodeOf_;  // of each active rank, in the order of ranks
  Actions actions_;          // by rank, stage, receives first
};

}  // namespace Komvos
