/// \file Komvos_SharedMemoryChannel.hpp
/// On-node messages of one direction of an exchange, through memory that the node shares.
#pragma once

#include <cstdint>
#include <vector>

#include "Komvos_BufferAddresses.hpp"
#include "Komvos_Schedule.hpp"
#include "Komvos_SharedMemoryBuffers.hpp"

namespace Komvos::Impl {

/// A message has a slot here if sender and receiver share memory. Its values stay in the sender's buffer; a flag beside
/// it says that they are ready, and another that they have been copied. No MPI message is sent, unless the values are
/// too wide for the buffer: then they go by MPI, but the flag still comes first, so that ranks which disagree about the
/// width find out and none waits.
///
/// Ordering. Sender: stores the values, MPI_Win_sync, stores `published` with release. Receiver: loads `published` with
/// acquire, MPI_Win_sync, copies, stores `acknowledged` with release. The sender loads `acknowledged` with acquire
/// before it writes its buffers again.
class SharedMemoryChannel {
 public:
  /// \param buffers null: no message has a slot
  SharedMemoryChannel(const SharedMemoryBuffers* buffers, Direction direction, const Schedule& schedule);

  bool hasSend(int send) const { return sends_[send].flag != nullptr; }
  bool hasReceive(int receive) const { return receives_[receive].flag != nullptr; }
  bool hasReceives() const { return !flaggedReceives_.empty(); }
  /// Whether values of this width have room in shared memory.
  bool fits(int bytesPerValue) const { return buffers_ != nullptr && bytesPerValue <= buffers_->maxBytesPerValue(); }
  /// Whether the receiver of this send finds its values in our receive buffer: nothing is to be packed.
  bool isReadFromReceiveBuffer(int send, int bytesPerValue) const {
    return sends_[send].inReceiveBuffer && fits(bytesPerValue);
  }

  /// A new exchange: waits until the receivers have copied the values of the last one.
  void beginExchange();
  /// The values of `send` are in our buffer. \param bytesPerValue 0: there are none, the exchange is abandoned
  void publish(int send, int bytesPerValue) const;
  /// Whether the sender has published; then its memory may be read until acknowledge().
  bool arrived(int receive) const;
  int bytesPerValueOf(int receive) const { return receives_[receive].flag->bytesPerValue; }
  /// Copies the values to where they belong.
  void copy(int receive, const BufferAddresses& to) const;
  void acknowledge(int receive) const {
    receives_[receive].flag->acknowledged.store(exchange_, std::memory_order_release);
  }

  /// Receives with a slot whose flag has not been seen in this exchange.
  int numPending() const { return static_cast<int>(pendingFlags_.size()); }
  /// Calls work(receive) for those of them that have arrived; they are not pending any more.
  template <class Work>
  void forArrived(const Work& work) {
    for (std::size_t i = 0; i < pendingFlags_.size();) {
      const int receive = pendingFlags_[i];
      if (arrived(receive)) {
        pendingFlags_[i] = pendingFlags_.back();
        pendingFlags_.pop_back();
        work(receive);
      } else {
        ++i;
      }
    }
  }

  std::size_t memoryBytes() const;

 private:
  using Slot = SharedMemoryBuffers::Slot;

  const SharedMemoryBuffers* buffers_;
  const Schedule& schedule_;
  std::vector<Slot> sends_;
  std::vector<Slot> receives_;
  std::vector<int> flaggedReceives_;  // all that have a slot
  std::vector<int> pendingFlags_;
  std::uint64_t exchange_ = 0;  // counts from 1
};

}  // namespace Komvos::Impl
