/// \file Komvos_NodeMemory.hpp
/// Memory that the ranks of one node share (MPI_Win_allocate_shared): windows, and blocks in them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

class PrivateComm;

constexpr std::size_t cacheLine = 64;  // bytes

/// `bytes` rounded up to whole cache lines.
constexpr std::size_t wholeLines(std::size_t bytes) { return (bytes + cacheLine - 1) / cacheLine * cacheLine; }

/// Pieces of memory that every rank of this node can address. A rank takes pieces from its own segment of a few large
/// windows, so that thousands of exchanges cost a few windows, and gives them back without asking anybody. Each window
/// is in one passive epoch (MPI_Win_lock_all) for all its life.
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
  /// \note Collective, see PrivateComm.
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Rank of the node's communicator, or -1 if `rank` of the whole one is on another node.
  int nodeRank(int rank) const;
  /// A block of this rank's segment, aligned to a cache line. \note Collective on the ranks of the node.
  Block allocate(std::size_t bytes);
  /// The same for as much as all ranks of the node can agree on.
  /// \param amount  on entry what this rank wants at most, then the least of what the ranks want
  /// \param bytesOf bytes that a rank needs for an amount: no less for more
  Block allocate(int& amount, const std::function<std::size_t(int)>& bytesOf);
  /// Gives `block` back once `inUse` is false; it is asked again at each allocate().
  void release(const Block& block, std::function<bool()> inUse);
  /// Frees the windows in which no rank of the node uses a block. \note Collective on the ranks of the node.
  void freeUnused();
  /// Of this rank's segments.
  std::size_t memoryBytes() const;
  char* at(int nodeRank, Place place) const { return windows_[place.window].segments[nodeRank] + place.offset; }

  /// The memory barrier MPI demands between a store to shared memory and the flag that announces it, and between
  /// the sight of the flag and the load (MPI 3.1, 11.7.1: load and store in the unified model, MPI_WIN_SYNC).
  void sync(std::int64_t window) const { mpiCheck(MPI_Win_sync(windows_[window].handle), "MPI_Win_sync"); }

 private:
  struct Window {
    MPI_Win handle = MPI_WIN_NULL;            // null: a number for the next window
    std::size_t bytes = 0;                    // of my segment, for blocks
    std::vector<char*> segments;              // by node rank
    std::map<std::size_t, std::size_t> free;  // of my segment: offset -> bytes
  };
  struct Waiting {
    Block block;
    std::function<bool()> inUse;
  };

  static void freeWindow(Window& window);
  void giveBackWaiting();
  bool takeFree(std::size_t bytes, Block& block);
  bool addWindow(std::size_t bytes);
  void giveBack(const Block& block);
  void shorten(Block& block, std::size_t bytes);

  MPI_Comm node_ = MPI_COMM_NULL;
  int me_ = 0;
  std::vector<int> ranks_;  // of the whole communicator, by node rank: ascending
  std::vector<Window> windows_;
  std::vector<Waiting> waiting_;
};

}  // namespace Komvos::Impl
