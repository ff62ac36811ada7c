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

/// Of one communicator; lives as long as it does. Where all ranks share one node, each adds up what all have laid down,
/// in the order of ranks: nobody waits for another to do it. Else the first rank of a node, its leader, does, is in
/// leaders(), and announces the result.
///
/// Sums are numbered, and take two places in turn. A rank lays down numbers where those of the sum before last were: it
/// has the last sum, so all ranks have laid down theirs, and so have read the one before.
class NodeSum {
 public:
  static constexpr std::size_t maxBytes = 8192;  ///< of one sum's numbers

  /// The one of this communicator; null if some node has no shared memory to give, or if each rank has a node of its
  /// own, on all ranks.
  /// \param topology the same at each call
  /// \note Collective the first time.
  static std::shared_ptr<NodeSum> of(PrivateComm& comm, const NodeTopology& topology);
  NodeSum(PrivateComm& comm, const NodeTopology& topology);
  ~NodeSum();
  NodeSum(const NodeSum&) = delete;
  NodeSum& operator=(const NodeSum&) = delete;

  bool isUsable() const { return usable_; }
  /// Whether this rank adds up what the ranks of its node have laid down; others wait until that is announced.
  bool addsUp() const { return !slots_.empty(); }
  /// The first ranks of all nodes; null on other ranks.
  MPI_Comm leaders() const { return leaders_; }
  int numNodes() const { return numNodes_; }

  /// Takes the memory for a sum, unless it is taken: the same answer on all ranks, if they take and give back in the
  /// same order. That is why it is given back where a caller waits, and not where the sum happens to arrive.
  bool take();
  void giveBack() { taken_ = false; }
  /// Takes the memory on all ranks if some rank has not given it back, as after an exception there: for good then.
  /// \return whether `flag` is set on any rank \note Collective.
  bool agree(bool flag);

  /// Lays down this rank's numbers.
  void layDown(const void* numbers, std::size_t bytes);
  /// Whether all ranks of the node have. Where addsUp().
  bool allAreThere() const;
  int numRanks() const { return static_cast<int>(slots_.size()); }
  /// What the i-th rank has laid down. Where addsUp().
  const void* numbersOf(int i) const { return slots_[i]->numbers[turn_ % 2]; }
  void announce(const void* sums, std::size_t bytes);
  /// Whether the leader has announced the sum.
  bool isAnnounced() const;
  const void* sums() const { return leader_->sums; }

 private:
  /// Each rank's segment. Writer and readers of a flag are on cache lines apart from the numbers.
  struct Slot {
    alignas(64) std::atomic<std::uint64_t> laidDown;
    alignas(64) std::atomic<std::uint64_t> announced;
    alignas(64) unsigned char numbers[2][maxBytes];
    alignas(64) unsigned char sums[maxBytes];
  };

  PrivateComm& comm_;
  MPI_Comm leaders_ = MPI_COMM_NULL;
  NodeMemory& memory_;
  std::int64_t window_ = -1;
  bool usable_ = false, taken_ = false;
  int numNodes_ = 0;
  std::uint64_t turn_ = 0;
  Slot* own_ = nullptr;
  Slot* leader_ = nullptr;
  std::vector<Slot*> slots_;  // of the node's ranks, where they are added up
};

}  // namespace Komvos::Impl
