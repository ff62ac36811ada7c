#include "Komvos_NodeMemory.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "Komvos_PrivateComm.hpp"

// How this works. One NodeMemory belongs to each communicator (PrivateComm keeps it). It splits off the ranks that MPI
// says share memory and allocates windows on them, in which every rank has a segment of its own; all ranks know where
// the segments of the others are in their address space.
//
// allocate() is collective on the node: each rank looks for a free piece of its own segment, and if one rank finds
// none, all add a window. Free pieces are kept by offset and merged with their neighbours. release() is local and does
// not free at once, for other ranks may still read the block: allocate() asks again whether it is in use. Windows go on
// all ranks together: when PrivateComm is freed, in freeUnused(), and in an allocate() that has to add a window: what
// online tuning has given up makes room for the next halo.
//
// If a window cannot be made on one rank, allocate() returns an empty block on all ranks of the node, and the caller
// uses messages. Other MPI errors are thrown.

namespace Komvos::Impl {

NodeMemory::NodeMemory(MPI_Comm comm) {
  int rank = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node_), "MPI_Comm_split_type");
  mpiCheck(MPI_Comm_set_errhandler(node_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  int size = 0;
  mpiCheck(MPI_Comm_size(node_, &size), "MPI_Comm_size");
  mpiCheck(MPI_Comm_rank(node_, &me_), "MPI_Comm_rank");
  ranks_.resize(size);
  mpiCheck(MPI_Allgather(&rank, 1, MPI_INT, ranks_.data(), 1, MPI_INT, node_), "MPI_Allgather");
}

NodeMemory& NodeMemory::of(PrivateComm& comm) {
  return comm.attached<NodeMemory>([&comm] { return std::make_shared<NodeMemory>(comm.get()); });
}

NodeMemory::~NodeMemory() {
  for (Window& window : windows_) {
    freeWindow(window);
  }
  MPI_Comm_free(&node_);
}

void NodeMemory::freeWindow(Window& window) {
  if (window.handle != MPI_WIN_NULL) {
    MPI_Win_unlock_all(window.handle);
    MPI_Win_free(&window.handle);
  }
  window = {};
}

int NodeMemory::nodeRank(int rank) const {
  const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  return found != ranks_.end() && *found == rank ? static_cast<int>(found - ranks_.begin()) : -1;
}

bool NodeMemory::takeFree(std::size_t bytes, Block& block) {
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    auto& free = windows_[w].free;
    const auto found = std::find_if(free.begin(), free.end(), [&](const auto& piece) { return piece.second >= bytes; });
    if (found != free.end()) {
      const auto [offset, length] = *found;
      free.erase(found);
      if (length > bytes) {
        free[offset + bytes] = length - bytes;
      }
      block.place = {static_cast<std::int64_t>(w), static_cast<std::int64_t>(offset)};
      block.bytes = bytes;
      block.data = at(me_, block.place);
      return true;
    }
  }
  return false;
}

void NodeMemory::giveBack(const Block& block) {
  auto& free = windows_[block.place.window].free;
  auto piece = free.emplace(block.place.offset, block.bytes).first;
  const auto next = std::next(piece);
  if (next != free.end() && piece->first + piece->second == next->first) {
    piece->second += next->second;
    free.erase(next);
  }
  if (piece != free.begin()) {
    const auto before = std::prev(piece);
    if (before->first + before->second == piece->first) {
      before->second += piece->second;
      free.erase(piece);
    }
  }
}

bool NodeMemory::addWindow(std::size_t bytes) {
  MPI_Info info = MPI_INFO_NULL;
  mpiCheck(MPI_Info_create(&info), "MPI_Info_create");
  // Each segment on pages of its own, which its owner touches first.
  mpiCheck(MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set");
  Window window;
  window.bytes = bytes;
  void* mine = nullptr;
  // MPI promises no alignment (Open MPI 4.1 starts 16 bytes off a line, or 8); other ranks see the same offsets to a
  // page, so that my lines are lines for them.
  std::size_t room = bytes + cacheLine;
  const int code = MPI_Win_allocate_shared(static_cast<MPI_Aint>(room), 1, info, node_, &mine, &window.handle);
  MPI_Info_free(&info);
  int allocated = code == MPI_SUCCESS ? 1 : 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &allocated, 1, MPI_INT, MPI_MIN, node_), "MPI_Allreduce");
  if (allocated == 0) {
    return false;
  }
  mpiCheck(MPI_Win_set_errhandler(window.handle, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  mpiCheck(MPI_Win_lock_all(MPI_MODE_NOCHECK, window.handle), "MPI_Win_lock_all");
  void* aligned = mine;
  std::align(cacheLine, bytes, aligned, room);
  window.free[static_cast<char*>(aligned) - static_cast<char*>(mine)] = bytes;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    MPI_Aint size = 0;
    int unit = 0;
    char* segment = nullptr;
    mpiCheck(MPI_Win_shared_query(window.handle, static_cast<int>(r), &size, &unit, &segment), "MPI_Win_shared_query");
    window.segments.push_back(segment);
  }
  const auto unused =
      std::find_if(windows_.begin(), windows_.end(), [](const Window& w) { return w.handle == MPI_WIN_NULL; });
  *(unused != windows_.end() ? unused : windows_.emplace(unused)) = std::move(window);
  return true;
}

void NodeMemory::giveBackWaiting() {
  const auto stillUsed = [this](const Waiting& one) {
    if (one.inUse()) {
      return true;
    }
    giveBack(one.block);
    return false;
  };
  waiting_.erase(std::stable_partition(waiting_.begin(), waiting_.end(), stillUsed), waiting_.end());
}

/// Gives back what is beyond so many bytes.
void NodeMemory::shorten(Block& block, std::size_t bytes) {
  if (block.data != nullptr && block.bytes > bytes) {
    Block rest;
    rest.place = {block.place.window, block.place.offset + static_cast<std::int64_t>(bytes)};
    rest.bytes = block.bytes - bytes;
    block.bytes = bytes;
    giveBack(rest);
  }
}

NodeMemory::Block NodeMemory::allocate(std::size_t bytes) {
  int amount = 1;
  return allocate(amount, [bytes](int) { return bytes; });
}

NodeMemory::Block NodeMemory::allocate(int& amount, const std::function<std::size_t(int)>& bytesOf) {
  const auto linesOf = [&bytesOf](int number) { return std::max(cacheLine, wholeLines(bytesOf(number))); };
  giveBackWaiting();
  Block block;
  int least[] = {amount, takeFree(linesOf(amount), block) ? 1 : 0};
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT, MPI_MIN, node_), "MPI_Allreduce");
  amount = least[0];
  const std::size_t bytes = linesOf(amount);
  shorten(block, bytes);
  if (least[1] != 0) {
    return block;
  }
  freeUnused();  // windows too small for this
  // Many small halos share a window. Each window is as large as all before together, up to a bound, for MPI has but a
  // few thousand; pages that nobody touches cost nothing.
  const std::size_t smallest = std::size_t{1} << 18, most = std::size_t{1} << 22;
  std::size_t before = 0;
  for (const Window& window : windows_) {
    before += window.handle == MPI_WIN_NULL ? 0 : window.bytes;
  }
  // Where there is no room for that, there may be for a small one; this is agreed, for addWindow() is.
  if (addWindow(std::max({bytes, smallest, std::min(before, most)})) || addWindow(std::max(bytes, smallest))) {
    if (block.data == nullptr) {
      takeFree(bytes, block);
    }
    return block;
  }
  if (block.data != nullptr) {
    giveBack(block);
  }
  return {};
}

void NodeMemory::freeUnused() {
  giveBackWaiting();
  std::vector<int> unused;
  for (const Window& window : windows_) {
    unused.push_back(window.free.size() == 1 && window.free.begin()->second == window.bytes ? 1 : 0);
  }
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, unused.data(), static_cast<int>(unused.size()), MPI_INT, MPI_MIN, node_),
           "MPI_Allreduce");
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    if (unused[w] != 0) {
      freeWindow(windows_[w]);
    }
  }
}

std::size_t NodeMemory::memoryBytes() const {
  return std::accumulate(windows_.begin(), windows_.end(), std::size_t{0},
                         [](std::size_t sum, const Window& window) { return sum + window.bytes; });
}

void NodeMemory::release(const Block& block, std::function<bool()> inUse) {
  waiting_.push_back({block, std::move(inUse)});
}

}  // namespace Komvos::Impl
