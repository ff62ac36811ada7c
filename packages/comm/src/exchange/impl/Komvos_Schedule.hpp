/// \file Komvos_Schedule.hpp
/// A plan turned into index lists and dependency counts for one direction.
#pragma once

#include <vector>

#include "Komvos_ExchangePlan.hpp"

namespace Komvos::Impl {

/// Of an exchange along a plan: owned values to ghosts, or ghosts back to their owners.
enum class Direction { forward = 0, reverse = 1 };
constexpr Direction bothDirections[] = {Direction::forward, Direction::reverse};
constexpr int index(Direction direction) { return static_cast<int>(direction); }
constexpr Direction opposite(Direction direction) {
  return direction == Direction::forward ? Direction::reverse : Direction::forward;
}

/// Row i says: destination[to[i]] gets source[from[j]] summed over offset[i] <= j < offset[i+1]. Where every row has
/// one source, `offset` is empty and the source is from[i].
struct GatherList {
  std::vector<int> to;
  std::vector<int> offset;
  std::vector<int> from;
  int size() const { return static_cast<int>(to.size()); }
};

/// Vector from receive buffer, in two steps.
struct UnpackLists {
  GatherList onNode;  ///< values whose owner is on this node; empty in the reverse direction
  GatherList rest;
};

/// One direction of a plan, for one rank. Forward: owned values to ghosts, one source for each position. Reverse: the
/// same messages backwards, ghosts summed into owned values; every sum has a fixed order, so results do not depend on
/// the order in which messages arrive.
///
/// The lists follow a value on its way: `pack` takes it from the vector to the send buffer, `relay` from the receive
/// buffer of a rank it only passes through to the send buffer there, an unpack list from the receive buffer to the
/// vector.
///
/// Forward, a message whose values all stay here, each at one place of the vector, can skip the receive buffer:
///  - *contiguous*: its values fill consecutive entries, so that the message itself can be received there;
///  - *scattered*: they fill entries anywhere; only a receiver that copies them one by one can put them there.
/// `unpackAll` is for vectors that are not known when messages arrive: every value is in the receive buffer.
/// `unpackBuffered` is for those that are: contiguous and scattered messages are in place, and left out.
struct Schedule {
  struct Message {
    int peer, stage, first, count;
    int waitsFor;               ///< sends only: receives that must be complete before it can be packed
    int contiguousTarget = -1;  ///< receives only, if contiguous: the first entry of the vector that it fills
    int scatterOffset = -1;     ///< receives only, if scattered: its entries are scatterTargets[scatterOffset], ...
  };
  std::vector<Message> sends;
  std::vector<Message> receives;
  int sendLength = 0;     ///< values in the send buffer
  int receiveLength = 0;  ///< values in the receive buffer

  std::vector<int> dependentOffset;  ///< receives + 1, into dependents
  std::vector<int> dependents;       ///< sends that wait for the receive

  GatherList pack;               ///< send buffer from the vector, before any message
  GatherList relay;              ///< send buffer from the receive buffer; rows of one send are consecutive
  std::vector<int> relayOffset;  ///< sends + 1, into the rows of `relay`
  bool relayAdds = false;        ///< `relay` adds to what `pack` wrote
  UnpackLists unpackAll;
  UnpackLists unpackBuffered;
  std::vector<int> scatterTargets;
  std::vector<bool> onNodeReceive;  ///< receives that `unpackAll.onNode` reads

  /// Frees the GatherLists and relayOffset: they have been copied to where they are used.
  void dropLists();
  std::size_t memoryBytes() const;  ///< without these
};

/// The lists of the reverse direction where copies are not summed: of all that come back on their way to one entry,
/// that of the highest rank travels on, and there that of the highest target. Their messages and dependencies are those
/// of reverseSchedule().
struct SelectedCopies {
  GatherList pack, relay;
  std::vector<int> relayOffset;
  GatherList unpack;
};
SelectedCopies reverseSelection(const ExchangePlan& plan);

/// \param canScatter receives whose values this process copies itself, so that it can put them anywhere; none if empty
Schedule forwardSchedule(const ExchangePlan& plan, const std::vector<bool>& canScatter = {});
Schedule reverseSchedule(const ExchangePlan& plan);

}  // namespace Komvos::Impl
