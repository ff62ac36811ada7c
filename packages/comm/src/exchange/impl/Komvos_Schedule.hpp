/// \file Komvos_Schedule.hpp
/// A plan turned into index lists and dependency counts for one direction.
#pragma once

#include <vector>

#include "Komvos_ExchangePlan.hpp"

namespace Komvos::Impl {

/// Row i says: destination[to[i]] gets source[from[j]] summed over offset[i] <= j < offset[i+1]. Where every row has
/// one source, `offset` is empty and the source is from[i].
struct GatherList {
  std::vector<int> to;
  std::vector<int> offset;
  std::vector<int> from;
  int size() const { return static_cast<int>(to.size()); }
};

/// One direction of a plan, for one rank. Forward: owned values to ghosts, one source for each position. Reverse: the
/// same messages backwards, ghosts summed into owned values; every sum has a fixed order, so results do not depend on
/// the order in which messages arrive.
struct Schedule {
  struct Message {
    int peer, stage, first, count;
    int waitsFor;           ///< sends only: receives that must be complete before it can be packed
    int directTarget = -1;  ///< receives only: t if its values fill targets t, t+1, ... and go nowhere else
    int scatter = -1;       ///< receives only: its values fill scatterTargets[scatter], ... and go nowhere else
  };
  std::vector<Message> sends;
  std::vector<Message> receives;
  int sendLength = 0;     ///< values in the send buffer
  int receiveLength = 0;  ///< values in the receive buffer

  std::vector<int> dependentOffset;  ///< receives + 1, into dependents
  std::vector<int> dependents;       ///< sends that wait for the receive

  GatherList initial;            ///< send buffer from the vector, before any message
  GatherList forward;            ///< send buffer from the receive buffer; rows of one send are consecutive
  std::vector<int> relayOffset;  ///< sends + 1, into the rows of `forward`
  bool relayAdds = false;        ///< forward rows add to what `initial` wrote
  GatherList finalOnNode;        ///< vector from receive buffer: what came straight from this node
  GatherList finalRest;          ///< ... and the rest
  GatherList copiedOnNode;       ///< finalOnNode without receives that have directTarget or scatter
  GatherList copiedRest;         ///< finalRest likewise
  std::vector<int> scatterTargets;
  std::vector<bool> onNodeReceive;  ///< receives that `finalOnNode` reads

  /// Frees the GatherLists: they have been copied to where they are used.
  void dropLists();
  std::size_t memoryBytes() const;  ///< without the GatherLists
};

/// \param canScatter receives whose values this process copies itself, so that it can put them anywhere; none if empty
Schedule forwardSchedule(const ExchangePlan& plan, const std::vector<bool>& canScatter = {});
Schedule reverseSchedule(const ExchangePlan& plan);

}  // namespace Komvos::Impl
