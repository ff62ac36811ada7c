/// \file Komvos_DirectionState.hpp
/// What an exchange keeps for one direction of its plan.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "Komvos_GatherKernels.hpp"
#include "Komvos_MessageEngine.hpp"
#include "Komvos_Schedule.hpp"

namespace Komvos::Impl {

/// The index lists of one direction, where kernels need them.
template <class MemorySpace>
struct DirectionLists {
  using List = DeviceGatherList<MemorySpace>;
  struct Unpack {
    List onNode, rest;
    Unpack() = default;
    explicit Unpack(const UnpackLists& lists) : onNode(lists.onNode), rest(lists.rest) {}
  };

  struct Relay {
    List list;
    DeviceGatherList<Kokkos::HostSpace> onHost;  ///< in the place of `list` where messages are staged
    std::vector<int> offset;                     ///< sends + 1, into the rows of the list
    Relay() = default;
    Relay(const GatherList& rows, const std::vector<int>& offsets, bool staged)
        : list(staged ? GatherList{} : rows), onHost(staged ? rows : GatherList{}), offset(offsets) {}
  };

  List pack;
  Relay relay, relayBuffered;  ///< the second only if the schedule has it
  bool scattersToSends = false;
  Unpack unpackAll, unpackBuffered;

  DirectionLists(const Schedule& schedule, bool staged)
      : pack(schedule.pack),
        relay(schedule.relay, schedule.relayOffset, staged),
        relayBuffered(schedule.relayBuffered, schedule.relayBufferedOffset, staged),
        scattersToSends(schedule.scattersToSends),
        unpackAll(schedule.unpackAll),
        unpackBuffered(schedule.unpackBuffered) {}
  DirectionLists(const SelectedCopies& copies, bool staged)
      : pack(copies.pack), relay(copies.relay, copies.relayOffset, staged) {
    unpackAll.rest = List(copies.unpack);
  }

  /// \param inPlace whether messages skip the receive buffer
  const Relay& relays(bool inPlace) const { return inPlace && scattersToSends ? relayBuffered : relay; }

  std::size_t memoryBytes() const {
    std::size_t bytes = 0;
    for (const Relay* one : {&relay, &relayBuffered}) {
      bytes += one->list.memoryBytes() + one->onHost.memoryBytes() + one->offset.size() * sizeof(int);
    }
    for (const List* list : {&pack, &unpackAll.onNode, &unpackAll.rest, &unpackBuffered.onNode, &unpackBuffered.rest}) {
      bytes += list->memoryBytes();
    }
    return bytes;
  }
};

/// The schedule, its lists and its messages.
template <class MemorySpace>
struct DirectionState {
  using Lists = DirectionLists<MemorySpace>;

  Schedule schedule;
  Lists lists;
  std::unique_ptr<Lists> selection;  ///< in the place of `lists` where copies are not summed; made when first used
  MessageEngine engine;

  DirectionState(Schedule theSchedule, Direction direction, std::shared_ptr<PrivateComm> comm, int firstTag,
                 bool staged, const SharedMemoryBuffers* shared)
      : schedule(std::move(theSchedule)),
        lists(schedule, staged),
        engine(std::move(comm), firstTag, schedule, shared, direction) {
    schedule.dropLists();
  }

  std::size_t memoryBytes() const {
    return schedule.memoryBytes() + engine.memoryBytes() + lists.memoryBytes() +
           (selection ? selection->memoryBytes() : 0);
  }
};

}  // namespace Komvos::Impl
