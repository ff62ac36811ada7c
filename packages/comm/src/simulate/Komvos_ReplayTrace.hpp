/// \file Komvos_ReplayTrace.hpp
/// An exchange as a time-independent trace, which SimGrid's smpirun -replay plays on a platform.
#pragma once

#include <ostream>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_VirtualMessages.hpp"

namespace Komvos {

/// What each rank does: for each stage in which it takes part, start all its receives, then its sends, and wait for
/// each of them; "waitall" would wait for the same, in time that grows with the square of their number. Ranks without
/// messages are left out and the others renumbered; hosts say on which node each of them is, so nothing is lost, and a
/// gather to one of 27,000 ranks replays as fast as it is small.
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

  /// Lines "RANK init", "RANK irecv FROM TAG BYTES", "RANK isend TO TAG BYTES", "RANK wait FROM TO TAG", "RANK compute
  /// FLOPS" for all receives of the stage, unless they are free, and "RANK finalize"; the stage as tag, by rank.
  /// \param maxConcurrentSends sends of a rank that are under way at once: before it starts one more, it waits for the
  /// oldest.
  ///     Receivers then come in an order as if drawn at random: in the order of ranks all would wait for the same few.
  ///     0: all at once, in the order of ranks.
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

  static void writeStage(std::ostream& out, Actions::const_iterator begin, Actions::const_iterator end,
                         const ReceiveCost& cost, int maxConcurrentSends);

  std::vector<int> nodeOf_;  // of each active rank, in the order of ranks
  Actions actions_;          // by rank, stage, receives first
};

}  // namespace Komvos
