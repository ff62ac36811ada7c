#include "Komvos_NodeSum.hpp"

#include <cstring>
#include <new>

#include "Komvos_Error.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

namespace {

struct Cached {
  std::shared_ptr<NodeSum> sum;
};

struct GroupComm {
  MPI_Comm comm = MPI_COMM_NULL;
  ~GroupComm() {
    if (comm != MPI_COMM_NULL) {
      MPI_Comm_free(&comm);
    }
  }
};

}  // namespace

std::shared_ptr<NodeSum> NodeSum::of(PrivateComm& comm, const NodeTopology& topology) {
  const Cached& cached = comm.attached<Cached>([&] {
    auto made = std::make_shared<Cached>();
    if (topology.numNodes() < topology.numRanks()) {
      made->sum = std::make_shared<NodeSum>(comm, topology);
    }
    return made;
  });
  return cached.sum != nullptr && cached.sum->isUsable() ? cached.sum : nullptr;
}

NodeSum::NodeSum(PrivateComm& comm, const NodeTopology& topology)
    : comm_(comm), memory_(NodeMemory::of(comm)), numNodes_(topology.numNodes()) {
  const int rank = comm.rank(), node = topology.nodeOf(rank), leader = topology.leaderOf(node);
  mpiCheck(MPI_Comm_split(comm.get(), rank == leader ? 0 : MPI_UNDEFINED, rank, &leaders_), "MPI_Comm_split");
  const NodeMemory::Block block = memory_.allocate(sizeof(Slot));
  // What is called a node here may be part of one, but not more.
  int usable = block.data != nullptr && memory_.nodeRank(leader) >= 0 ? 1 : 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, comm.get()), "MPI_Allreduce");
  usable_ = usable == 1;
  if (!usable_) {
    return;
  }
  window_ = block.place.window;
  own_ = new (block.data) Slot;
  own_->laidDown.store(0);
  own_->announced.store(0);
  GroupComm group;
  mpiCheck(MPI_Comm_split(comm.get(), node, rank, &group.comm), "MPI_Comm_split");
  const int size = topology.numRanksOn(node);
  std::vector<NodeMemory::Place> places(size);
  memory_.sync(window_);
  mpiCheck(MPI_Allgather(&block.place, sizeof(NodeMemory::Place), MPI_BYTE, places.data(), sizeof(NodeMemory::Place),
                         MPI_BYTE, group.comm),
           "MPI_Allgather");
  const auto slotOf = [&](int local) {
    const int other = topology.rankOn(node, local);
    return reinterpret_cast<Slot*>(memory_.at(memory_.nodeRank(other), places[local]));
  };
  leader_ = slotOf(0);
  for (int local = 0; (rank == leader || numNodes_ == 1) && local < size; ++local) {
    slots_.push_back(slotOf(local));
  }
  memory_.sync(window_);
}

NodeSum::~NodeSum() {
  if (leaders_ != MPI_COMM_NULL) {
    MPI_Comm_free(&leaders_);
  }
}

bool NodeSum::take() {
  const bool free = !taken_;
  taken_ = true;
  turn_ += free ? 1 : 0;
  return free;
}

bool NodeSum::agree(bool flag) {
  int onAny[2] = {taken_ ? 1 : 0, flag ? 1 : 0};
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, onAny, 2, MPI_INT, MPI_MAX, comm_.get()), "MPI_Allreduce");
  taken_ = onAny[0] == 1;
  return onAny[1] == 1;
}

void NodeSum::layDown(const void* numbers, std::size_t bytes) {
  std::memcpy(own_->numbers[turn_ % 2], numbers, bytes);
  memory_.sync(window_);
  own_->laidDown.store(turn_, std::memory_order_release);
}

bool NodeSum::allAreThere() const {
  for (const Slot* slot : slots_) {
    // Others may be one sum ahead.
    if (slot->laidDown.load(std::memory_order_acquire) < turn_) {
      return false;
    }
  }
  memory_.sync(window_);
  return true;
}

void NodeSum::announce(const void* sums, std::size_t bytes) {
  std::memcpy(own_->sums, sums, bytes);
  memory_.sync(window_);
  own_->announced.store(turn_, std::memory_order_release);
}

bool NodeSum::isAnnounced() const {
  const bool there = leader_->announced.load(std::memory_order_acquire) == turn_;
  if (there) {
    memory_.sync(window_);
  }
  return there;
}

}  // namespace Komvos::Impl
