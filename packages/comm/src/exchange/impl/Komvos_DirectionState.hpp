/// \file Komvos_DirectionState.hpp
/// What an exchange keeps for one direction of its plan.
#pragma once

#include <memory>
#include <utility>

#include "Komvos_GatherKernels.hpp"
#include "Komvos_MessageEngine.hpp"
#include "Komvos_Schedule.hpp"

namespace Komvos::Impl {

/// The schedule, its index lists where kernels need them, and its messages.
template <class MemorySpace>
struct DirectionState {
  using List = DeviceGatherList<MemorySpace>;
  struct Unpack {
    List onNode, rest;
    explicit Unpack(const UnpackLists& lists) : onNode(lists.onNode), rest(lists.rest) {}
  };

  Schedule schedule;
  List pack, relay;
  DeviceGatherList<Kokkos::HostSpace> relayOnHost;  ///< in the place of `relay` where messages are staged
  Unpack unpackAll, unpackBuffered;
  MessageEngine engine;

  DirectionState(Schedule lists, Direction direction, std::shared_ptr<PrivateComm> comm, int firstTag, bool staged,
                 const SharedMemoryBuffers* shared)
      : schedule(std::move(lists)),
        pack(schedule.pack),
        relay(staged ? GatherList{} : schedule.relay),
        relayOnHost(staged ? schedule.relay : GatherList{}),
        unpackAll(schedule.unpackAll),
        unpackBuffered(schedule.unpackBuffered),
        engine(std::move(comm), firstTag, schedule, shared, direction) {
    schedule.dropLists();
  }

  std::size_t memoryBytes() const {
    std::size_t bytes = schedule.memoryBytes() + engine.memoryBytes() + relayOnHost.memoryBytes();
    for (const List* list :
         {&pack, &relay, &unpackAll.onNode, &unpackAll.rest, &unpackBuffered.onNode, &unpackBuffered.rest}) {
      bytes += list->memoryBytes();
    }
    return bytes;
  }
};

}  // namespace Komvos::Impl
