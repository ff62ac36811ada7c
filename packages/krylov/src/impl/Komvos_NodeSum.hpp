/// \file Komvos_NodeSum.hpp
/// Shared memory in which the ranks of a node lay down what they add, and find the sum.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "Komvos_NodeMemory.hpp"

namespace Komvos {
class NodeTopology;
}

namespace Komvos::Impl {

class PrivateComm;

/// Of one communicator; lives as long as it does. The first rank of a node, its leader, adds up, in the order of ranks,
/// and is in leaders(). Sums are numbered; each rank has laid down those of one number before it lays down the next,
/// and has read a result before, so that nothing is overwritten that somebody still reads.
class NodeSum {
 public:
  static constexpr std::size_t maxBytes = 8192;  ///< of one sum's numbers

  /// The one of this communicator; null if some node has no shared memory to give, or if each rank has a node of its
  /// own, on all ranks. \param topology the same at each call \note Collective the first time.
  static std::shared_ptr<NodeSum> of(PrivateComm& comm, const NodeTopology& topology);
  NodeSum(PrivateComm& comm, const NodeTopology& topology);
  ~NodeSum();
  NodeSum(const NodeSum&) = delete;
  NodeSum& operator=(const NodeSum&) = delete;

  bool isUsable() const { return usable_; }
  bool isLeader() const { return !slots_.empty(); }
  /// The first ranks of all nodes; null on other ranks.
  MPI_Comm leaders() const { return leaders_; }
  int numNodes() const { return numNodes_; }

  /// Takes the memory for a sum, unless it is taken: the same answer on all ranks, if they ask in the same order.
  bool take();
  void giveBack() { taken_ = false; }

  /// Lays down this rank's numbers.
  void layDown(const void* numbers, std::size_t bytes);
  /// Whether all ranks of the node have. On leaders.
  bool allAreThere() const;
  int numRanks() const { return static_cast<int>(slots_.size()); }
  /// What the i-th rank has laid down. On leaders.
  const void* numbersOf(int i) const { return slots_[i]->numbers; }
  void announce(const void* sums, std::size_t bytes);
  /// Whether the leader has announced the sum.
  bool isAnnounced() const;
  const void* sums() const { return leader_->sums; }

 private:
  /// Each rank's segment. Writer and readers of a flag are on cache lines apart from the numbers.
  struct Slot {
    alignas(64) std::atomic<std::uint64_t> laidDown;
    alignas(64) std::atomic<std::uint64_t> announced;
    alignas(64) unsigned char numbers[maxBytes];
    alignas(64) unsigned char sums[maxBytes];
  };

  MPI_Comm leaders_ = MPI_COMM_NULL;
  NodeMemory& memory_;
  std::int64_t window_ = -1;
  bool usable_ = false, taken_ = false;
  int numNodes_ = 0;
  std::uint64_t turn_ = 0;
  Slot* own_ = nullptr;
  Slot* leader_ = nullptr;
  std::vector<Slot*> slots_;  // of the node's ranks, on its leader
};

}  // namespace Komvos::Impl
