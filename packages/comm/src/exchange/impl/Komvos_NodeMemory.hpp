/// \file Komvos_NodeMemory.hpp
/// Memory that the ranks of one node share (MPI_Win_allocate_shared), and on-node messages through it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"

namespace Komvos::Impl {

class PrivateComm;

/// Pieces of memory that every rank of this node can address. A rank takes pieces from its own segment of a few large
/// windows, so that thousands of exchanges cost a few windows, and gives them back without asking anybody.
class NodeMemory {
 public:
  /// Names a byte of a rank's own segment; valid on all ranks of the node.
  struct Place {
    std::int64_t window = -1;
    std::int64_t offset = 0;
  };
  struct Block {
    Place place;
    std::size_t bytes = 0;
    char* data = nullptr;  ///< null: the node has no shared memory to give, on any of its ranks
  };

  /// \note Collective on `comm`.
  explicit NodeMemory(MPI_Comm comm);
  /// The one of this communicator. \note Collective the first time.
  static NodeMemory& of(PrivateComm& comm);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Rank of the node's communicator, or -1 if `rank` of the whole one is on another node.
  int nodeRank(int rank) const;
  /// A block of this rank's segment, aligned to a cache line. \note Collective on the ranks of the node.
  Block allocate(std::size_t bytes);
  /// Gives `block` back once `inUse` is false; it is asked again at each allocate().
  void release(const Block& block, std::function<bool()> inUse);
  char* at(int nodeRank, Place place) const { return windows_[place.window].segments[nodeRank] + place.offset; }

  /// The memory barrier MPI demands between a store to shared memory and the signal that announces it, and between
  /// the sight of the signal and the load (MPI 3.1, 11.7.1: load and store in the unified model, MPI_WIN_SYNC).
  void sync(std::int64_t window) const { mpiCheck(MPI_Win_sync(windows_[window].handle), "MPI_Win_sync"); }

 private:
  struct Window {
    MPI_Win handle;
    std::vector<char*> segments;              // by node rank
    std::map<std::size_t, std::size_t> free;  // of my segment: offset -> bytes
  };
  struct Waiting {
    Block block;
    std::function<bool()> inUse;
  };

  bool takeFree(std::size_t bytes, Block& block);
  bool addWindow(std::size_t bytes);
  void giveBack(const Block& block);

  MPI_Comm node_ = MPI_COMM_NULL;
  int me_ = 0;
  std::vector<int> ranks_;  // of the whole communicator, by node rank: ascending
  std::vector<Window> windows_;
  std::vector<Waiting> waiting_;
};

/// The state of one on-node message, in the sender's memory. The sender writes the first line, the receiver the other.
struct MailSignal {
  alignas(64) std::atomic<std::uint64_t> published;  ///< number of the exchange whose values are ready
  std::int32_t bytesPerValue;                        ///< of that exchange; 0: it was abandoned
  alignas(64) std::atomic<std::uint64_t> taken;      ///< last exchange whose values the receiver has copied
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

/// The on-node messages of one exchange, both directions. A message's values stay in the sender's send buffer, which
/// lies in shared memory; a signal beside it says that they are ready, and another that they have been copied. Values
/// that only travel on are not packed: the receiver picks them from the sender's receive buffer ("relayed").
///
/// Ordering. Sender: stores the values, MPI_Win_sync, stores `published` with release. Receiver: loads `published` with
/// acquire, MPI_Win_sync, copies, stores `taken` with release. The sender loads `taken` with acquire before it writes
/// its buffers again. The window is in one passive epoch (MPI_Win_lock_all) for all its life.
class NodeMailbox {
 public:
  enum Direction { forward = 0, reverse = 1 };
  /// One message; `signal` is null where it must go by MPI.
  struct Slot {
    MailSignal* signal = nullptr;
    std::int64_t window = 0;
    bool relayed = false;
    // Receives only:
    const char* buffer = nullptr;    ///< the sender's, where the values are
    std::int64_t first = 0;          ///< first position there, unless relayed
    const int* positions = nullptr;  ///< if relayed: position of each value
  };

  /// \param firstTag   forward messages have tags firstTag + stage, reverse ones numStages more
  /// \param valueBytes bytes of one value of one column
  /// \param columns    room for so many; wider vectors go by MPI
  /// \note Collective on `comm`.
  NodeMailbox(std::shared_ptr<PrivateComm> comm, const ExchangePlan& plan, int firstTag, int valueBytes, int columns);
  ~NodeMailbox();
  NodeMailbox(const NodeMailbox&) = delete;
  NodeMailbox& operator=(const NodeMailbox&) = delete;

  /// False if the node has no shared memory to give: then all messages go by MPI.
  bool available() const { return block_.data != nullptr; }
  int columns() const { return columns_; }
  int maxBytesPerValue() const { return valueBytes_ * columns_; }
  /// [plan.sendLength() x columns()] and [plan.receiveLength() x columns()]
  char* outbound() const { return outbound_; }
  char* inbound() const { return inbound_; }
  const std::vector<Slot>& sends(Direction d) const { return sends_[d]; }
  const std::vector<Slot>& receives(Direction d) const { return receives_[d]; }

  /// Without the two buffers.
  std::size_t memoryBytes() const;

  void publish(const Slot& slot, std::uint64_t exchange, int bytesPerValue) const;
  /// \return whether the sender of `slot` has published this exchange; then its memory may be read.
  bool arrived(const Slot& slot, std::uint64_t exchange) const;
  static void take(const Slot& slot, std::uint64_t exchange);
  /// Waits until the receivers have copied all that was published: both buffers may be written again.
  void waitUntilTaken() const;

 private:
  void connect(const ExchangePlan& plan, int firstTag);
  void connectRelayed(const ExchangePlan& plan, int firstTag);

  std::shared_ptr<PrivateComm> comm_;
  NodeMemory* memory_;
  NodeMemory::Block block_;
  int valueBytes_;
  int columns_;
  int numSignals_ = 0;
  char* outbound_ = nullptr;
  char* inbound_ = nullptr;
  std::vector<Slot> sends_[2];
  std::vector<Slot> receives_[2];
  std::vector<std::vector<int>> positions_;  // of relayed receives
};

/// What a rank does while it waits for others of its node: spin, then let another process run; and let MPI make
/// progress, as every blocking MPI call would.
class NodeWait {
 public:
  explicit NodeWait(const PrivateComm& comm) : comm_(comm) {}
  void operator()();
  /// Only lets another process run: for loops that call MPI themselves.
  void yield();

 private:
  const PrivateComm& comm_;
  unsigned turns_ = 0;  // goes round after half an hour of waiting: some more spins
};

}  // namespace Komvos::Impl
