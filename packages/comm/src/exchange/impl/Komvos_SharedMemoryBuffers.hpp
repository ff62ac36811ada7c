/// \file Komvos_SharedMemoryBuffers.hpp
/// The send and receive buffer of an exchange in memory that the node shares, and a flag for each on-node message.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_NodeMemory.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Schedule.hpp"

namespace Komvos::Impl {

/// The state of one on-node message, in the sender's memory. The sender writes the first cache line, the receiver the
/// other.
struct SharedMemoryFlag {
  alignas(cacheLine) std::atomic<std::uint64_t> published;     ///< number of the exchange whose values are ready
  std::int32_t bytesPerValue;                                  ///< of that exchange; 0: it was abandoned
  alignas(cacheLine) std::atomic<std::uint64_t> acknowledged;  ///< last exchange whose values the receiver has copied
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

/// Made once for an exchange; then every rank knows where in its address space the values and flags of its on-node
/// messages are. Both directions use the same two buffers: what a forward exchange sends from, a reverse one receives
/// into. SharedMemoryChannel runs the messages.
class SharedMemoryBuffers {
 public:
  /// One message. Only receives have what is below `bufferOfSender`.
  struct Slot {
    SharedMemoryFlag* flag = nullptr;  ///< null: the message must go by MPI
    std::int64_t window = 0;
    /// All values of the message only travel on: the receiver picks them from the sender's receive buffer.
    bool inReceiveBuffer = false;
    const char* bufferOfSender = nullptr;  ///< where the values are
    std::int64_t first = 0;                ///< position there of the first value, if they are consecutive
    const int* positions = nullptr;        ///< position of each value, if they are in the sender's receive buffer
  };

  /// \param firstTag   forward messages have tags firstTag + stage, reverse ones numStages more
  /// \param valueBytes bytes of one value of one column
  /// \param columns    room for so many; wider vectors go by MPI. 0: room that costs little, for 8 columns, or fewer on a
  ///                   node where that is more than 1 MiB for a rank
  /// \note Collective on `comm`.
  SharedMemoryBuffers(std::shared_ptr<PrivateComm> comm, const ExchangePlan& plan, int firstTag, int valueBytes,
                      int columns);
  ~SharedMemoryBuffers();
  SharedMemoryBuffers(const SharedMemoryBuffers&) = delete;
  SharedMemoryBuffers& operator=(const SharedMemoryBuffers&) = delete;

  /// False if the node has no shared memory to give: then all messages go by MPI.
  bool available() const { return block_.data != nullptr; }
  int columns() const { return columns_; }
  int maxBytesPerValue() const { return valueBytes_ * columns_; }
  /// [plan.sendLength() x columns()] and [plan.receiveLength() x columns()]
  char* outbound() const { return outbound_; }
  char* inbound() const { return inbound_; }
  const std::vector<Slot>& sends(Direction d) const { return sends_[index(d)]; }
  const std::vector<Slot>& receives(Direction d) const { return receives_[index(d)]; }
  /// For forwardSchedule().
  CopiedMessages copiedMessages() const;
  const NodeMemory& memory() const { return *memory_; }

  /// Waits until the receivers have copied all that was published, in either direction: both buffers may be written
  /// again.
  void waitUntilAcknowledged() const;
  /// Without the two buffers.
  std::size_t memoryBytes() const;

 private:
  struct Address;
  struct Outgoing;
  template <class Work>
  void forEachMessage(const ExchangePlan& plan, const Work& work) const;
  Address prepareSend(const ExchangePlan& plan, const Outgoing& send);
  void connect(const ExchangePlan& plan, int firstTag);
  void sharePositions(const ExchangePlan& plan, int firstTag);

  std::shared_ptr<PrivateComm> comm_;
  NodeMemory* memory_;
  NodeMemory::Block block_;
  int valueBytes_;
  int columns_;
  int numFlags_ = 0;
  char* outbound_ = nullptr;
  char* inbound_ = nullptr;
  std::vector<Slot> sends_[2];  // by index(Direction)
  std::vector<Slot> receives_[2];
  std::vector<std::vector<int>> positions_;  // what Slot::positions points to
};

}  // namespace Komvos::Impl
