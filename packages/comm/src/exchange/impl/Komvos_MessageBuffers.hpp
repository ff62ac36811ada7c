/// \file Komvos_MessageBuffers.hpp
/// The memory that messages leave from and arrive in.
#pragma once

#include <cstddef>
#include <exception>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_LargeArray.hpp"
#include "Komvos_Schedule.hpp"
#include "Komvos_SharedMemoryBuffers.hpp"

namespace Komvos::Impl {

/// A message buffer on the device, and its copy on the host where messages are staged.
template <class Scalar, class ExecutionSpace>
class MessageBuffer {
  using Spaces = BufferSpace<ExecutionSpace>;

 public:
  Kokkos::View<Scalar*, typename Spaces::type> device;
  Kokkos::View<Scalar*, typename Spaces::pinned> host;

  void allocate(std::size_t size, bool staged) {
    device = largeArray<decltype(device)>("Komvos::Exchange::buffer", size);
    host = largeArray<decltype(host)>("Komvos::Exchange::stagedBuffer", staged ? size : 0);
  }
  /// Messages leave from, or arrive in, memory that is given. It is not pinned.
  void place(char* memory, std::size_t size, bool staged) {
    allocate(staged ? size : 0, false);
    auto* const values = reinterpret_cast<Scalar*>(memory);
    if (staged) {
      host = decltype(host)(values, size);
    } else {
      device = decltype(device)(values, size);
    }
  }
  Scalar* forMessages(bool staged) const { return staged ? host.data() : device.data(); }
  std::size_t memoryBytes() const { return (device.size() + host.size()) * sizeof(Scalar); }
};

/// The buffers of a plan. Those for up to so many columns may lie in shared memory; wider ones are our own.
template <class Scalar, class ExecutionSpace>
class MessageBuffers {
 public:
  using Buffer = MessageBuffer<Scalar, ExecutionSpace>;

  /// Makes room for `columns`, if there is memory; else allocate() throws when an exchange begins, which other ranks
  /// can be told.
  /// \param shared where messages of up to its columns are; null: all in memory of our own
  MessageBuffers(const ExchangePlan& plan, bool staged, const SharedMemoryBuffers* shared, int columns)
      : sendLength_(plan.sendLength()), receiveLength_(plan.receiveLength()), staged_(staged), memory_(shared) {
    try {
      allocate(columns);
    } catch (const std::exception&) {
      isPlaced_ = false;
    }
  }

  bool hasRoomFor(int columns) const { return areShared(columns) ? isPlaced_ : columns <= ownColumns_; }
  /// Memory for so many columns: own memory in place of that for fewer.
  void allocate(int columns) {
    if (areShared(columns)) {
      const int most = memory_->columns();
      shared_.outbound.place(memory_->outbound(), sendLength_ * most, staged_);
      shared_.inbound.place(memory_->inbound(), receiveLength_ * most, staged_);
      isPlaced_ = true;
      return;
    }
    ownColumns_ = 0;  // an allocation that fails leaves room for none: some may be new, others old
    own_.outbound.allocate(sendLength_ * columns, staged_);
    own_.inbound.allocate(receiveLength_ * columns, staged_);
    ownColumns_ = columns;
  }

  // What a forward exchange sends from, a reverse one receives into.
  Buffer& toSend(Direction direction, int columns) {
    return direction == Direction::forward ? pairFor(columns).outbound : pairFor(columns).inbound;
  }
  Buffer& toReceive(Direction direction, int columns) { return toSend(opposite(direction), columns); }

  std::size_t memoryBytes() const {
    return shared_.outbound.memoryBytes() + shared_.inbound.memoryBytes() + own_.outbound.memoryBytes() +
           own_.inbound.memoryBytes();
  }

 private:
  struct Pair {
    Buffer outbound, inbound;
  };
  bool areShared(int columns) const { return memory_ != nullptr && columns <= memory_->columns(); }
  Pair& pairFor(int columns) { return areShared(columns) ? shared_ : own_; }

  std::size_t sendLength_, receiveLength_;
  bool staged_;
  const SharedMemoryBuffers* memory_;
  Pair shared_, own_;
  bool isPlaced_ = false;
  int ownColumns_ = 0;
};

}  // namespace Komvos::Impl
