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

/// Which messages of the forward direction go through memory that the node shares: a receiver copies their values one
/// by one, and can put them anywhere. No lists: none.
struct CopiedMessages {
  std::vector<bool> receives;
  std::vector<bool> picked;            ///< receives whose values are at positions anywhere in the sender's memory
  std::vector<bool> sendsReadInPlace;  ///< sends whose receiver reads our receive buffer
};

/// One direction of a plan, for one rank. Forward: owned values to ghosts, one source for each position. Reverse: the
/// same messages backwards, ghosts summed into owned values; every sum has a fixed order, so results do not depend on
/// the order in which messages arrive.
///
/// The lists follow a value on its way: `pack` takes it from the vector to the send buffer, `relay` from the receive
/// buffer of a rank it only passes through to the send buffer there, an unpack list from the receive buffer to the
/// vector.
///
/// Forward, messages can skip the receive buffer:
///  - *contiguous*: all values stay here, and fill consecutive entries of the vector: the message itself can be
///  received
///    there;
///  - *scattered*: a receiver that copies values one by one puts them where they belong, those that stay here in the
///    vector, and those that travel on in the send buffer.
/// `unpackAll` and `relay` are for vectors that are not known when messages arrive: every value is in the receive
/// buffer. `unpackBuffered` and `relayBuffered` are for those that are: contiguous and scattered messages are in place,
/// and left out.
struct Schedule {
  /// Value from[i] of a message goes to entry to[i]: lists in scatterTargets and scatterSources.
  struct Scatter {
    int to = 0, count = 0;
    int from = -1;  ///< -1: value i goes to entry to[i]
  };
  struct Message {
    int peer, stage, first, count;
    int waitsFor;               ///< sends only: receives that must be complete before it can be packed
    int contiguousTarget = -1;  ///< receives only, if contiguous: the first entry of the vector that it fills
    bool isScattered = false;   ///< receives only
    Scatter toVector = {}, toSends = {};
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
  bool scattersToSends = false;  ///< else `relayBuffered` is not there, and `relay` in its place
  GatherList relayBuffered;
  std::vector<int> relayBufferedOffset;
  UnpackLists unpackAll;
  UnpackLists unpackBuffered;
  std::vector<int> scatterTargets, scatterSources;
  std::vector<bool> onNodeReceive;  ///< receives that `unpackAll.onNode` reads

  /// Frees the GatherLists and the offsets of relays: they have been copied to where they are used.
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

Schedule forwardSchedule(const ExchangePlan& plan, const CopiedMessages& copied = {});
Schedule reverseSchedule(const ExchangePlan& plan);

}  // namespace Komvos::Impl
