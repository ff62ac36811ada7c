#include "Komvos_SharedMemoryChannel.hpp"

#include <cstring>

// How this works. The sender packs into its send buffer, which lies in shared memory, and publishes: it stores the
// number of the exchange in the flag of the message. The receiver looks at the flags of the receives it still waits for
// and, when one shows the number of its own exchange, copies the values itself: into its receive buffer, or to where
// they belong, in the vector and in its own send buffer (see Schedule). Then it acknowledges in the other half of the
// flag. A message of nothing but what its sender got from others is read from the sender's receive buffer, at positions
// known from set-up.
//
// The two MPI_Win_sync (after the sender's stores, before the receiver's loads) are what MPI demands of programs that
// share a window; release and acquire on the flag order the same accesses for the compiler and the processor.
//
// Both directions use the same buffers. So a new exchange in either waits until all that was published in both has been
// acknowledged. An abandoned message has width 0 and is acknowledged like any other.

namespace Komvos::Impl {

namespace {

/// Value toIndex[i] gets value fromIndex[i], i < count; null stands for i. \tparam Size of a value, or 0: `size`
template <int Size>
void copyValues(char* to, const int* toIndex, const char* from, const int* fromIndex, int count, int size) {
  const std::size_t bytes = Size > 0 ? Size : size;
  for (int i = 0; i < count; ++i) {
    const std::size_t t = toIndex != nullptr ? toIndex[i] : i;
    const std::size_t f = fromIndex != nullptr ? fromIndex[i] : i;
    std::memcpy(to + t * bytes, from + f * bytes, bytes);
  }
}

void copyBySize(char* to, const int* toIndex, const char* from, const int* fromIndex, int count, int size) {
  if (toIndex == nullptr && fromIndex == nullptr) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * size);
  } else if (size == 8) {
    copyValues<8>(to, toIndex, from, fromIndex, count, 8);
  } else if (size == 4) {
    copyValues<4>(to, toIndex, from, fromIndex, count, 4);
  } else {
    copyValues<0>(to, toIndex, from, fromIndex, count, size);
  }
}

}  // namespace

SharedMemoryChannel::SharedMemoryChannel(const SharedMemoryBuffers* buffers, Direction direction,
                                         const Schedule& schedule)
    : buffers_(buffers), schedule_(schedule), sends_(schedule.sends.size()), receives_(schedule.receives.size()) {
  if (buffers_ != nullptr) {
    sends_ = buffers_->sends(direction);
    receives_ = buffers_->receives(direction);
  }
  for (int i = 0; i < static_cast<int>(receives_.size()); ++i) {
    if (hasReceive(i)) {
      flaggedReceives_.push_back(i);
    }
  }
  pendingFlags_.reserve(flaggedReceives_.size());
}

void SharedMemoryChannel::beginExchange() {
  if (buffers_ != nullptr) {
    buffers_->waitUntilAcknowledged();
  }
  pendingFlags_ = flaggedReceives_;
  ++exchange_;
}

void SharedMemoryChannel::publish(int send, int bytesPerValue) const {
  const Slot& slot = sends_[send];
  slot.flag->bytesPerValue = bytesPerValue;
  buffers_->memory().sync(slot.window);
  slot.flag->published.store(exchange_, std::memory_order_release);
}

bool SharedMemoryChannel::arrived(int receive) const {
  const Slot& slot = receives_[receive];
  if (slot.flag->published.load(std::memory_order_acquire) != exchange_) {
    return false;
  }
  buffers_->memory().sync(slot.window);
  return true;
}

void SharedMemoryChannel::copy(int receive, const BufferAddresses& to) const {
  const Slot& slot = receives_[receive];
  const Schedule::Message& m = schedule_.receives[receive];
  const int size = to.bytesPerValue;
  const char* const source = slot.bufferOfSender + (slot.positions != nullptr ? 0 : slot.first * size);
  if (!to.scatters(m)) {
    copyBySize(to.receiveAddress(m), nullptr, source, slot.positions, m.count, size);
    return;
  }
  const auto scatter = [&](void* target, const Schedule::Scatter& list) {
    if (list.count > 0) {
      const int* const from = list.from >= 0 ? &schedule_.scatterSources[list.from] : slot.positions;
      copyBySize(static_cast<char*>(target), &schedule_.scatterTargets[list.to], source, from, list.count, size);
    }
  };
  scatter(to.vector, m.toVector);
  scatter(to.sendBuffer, m.toSends);
}

std::size_t SharedMemoryChannel::memoryBytes() const {
  return (sends_.size() + receives_.size()) * sizeof(Slot) + receives_.size() * 2 * sizeof(int);
}

}  // namespace Komvos::Impl
