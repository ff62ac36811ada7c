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

  List pack, relay;
  DeviceGatherList<Kokkos::HostSpace> relayOnHost;  ///< in the place of `relay` where messages are staged
  std::vector<int> relayOffset;                     ///< sends + 1, into the rows of the relay list
  Unpack unpackAll, unpackBuffered;

  DirectionLists(const Schedule& schedule, bool staged)
      : pack(schedule.pack),
        relay(staged ? GatherList{} : schedule.relay),
        relayOnHost(staged ? schedule.relay : GatherList{}),
        relayOffset(schedule.relayOffset),
        unpackAll(schedule.unpackAll),
        unpackBuffered(schedule.unpackBuffered) {}
  DirectionLists(const SelectedCopies& copies, bool staged)
      : pack(copies.pack),
        relay(staged ? GatherList{} : copies.relay),
        relayOnHost(staged ? copies.relay : GatherList{}),
        relayOffset(copies.relayOffset) {
    unpackAll.rest = List(copies.unpack);
  }

  std::size_t memoryBytes() const {
    std::size_t bytes = relayOnHost.memoryBytes() + relayOffset.size() * sizeof(int);
    for (const List* list :
         {&pack, &relay, &unpackAll.onNode, &unpackAll.rest, &unpackBuffered.onNode, &unpackBuffered.rest}) {
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
