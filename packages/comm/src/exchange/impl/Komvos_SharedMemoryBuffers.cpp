#include "Komvos_SharedMemoryBuffers.hpp"

#include <algorithm>
#include <new>

#include "Komvos_Backoff.hpp"
#include "Komvos_Error.hpp"

// How this works. One block of node memory holds a flag for each send of both directions, then the outbound and the
// inbound buffer. connect() makes the flags and tells the receiver of every on-node message, by one small MPI message,
// where its flag and its values are. The two ranks of a forward message are also those of the reverse one, with roles
// exchanged: each sends one address and gets one.
//
// A forward message of values that only travel on is never packed. Its receiver reads the sender's inbound buffer, at
// positions that sharePositions() sends once.
//
// The block is given back when the exchange goes, but used again only after all receivers have acknowledged what was
// published: NodeMemory asks the flags.

namespace Komvos::Impl {

namespace {

constexpr int addressLength = 5;

/// Room that costs little, on this rank.
int modestColumns(const ExchangePlan& plan, int valueBytes) {
  constexpr std::size_t most = 8, modestBytes = std::size_t{1} << 20;
  const std::size_t values = static_cast<std::size_t>(plan.sendLength()) + plan.receiveLength();
  const std::size_t fitting = modestBytes / std::max<std::size_t>(1, values * valueBytes);
  return static_cast<int>(std::clamp<std::size_t>(fitting, 1, most));
}

/// A message of values that all have arrived in other messages.
bool onlyTravelsOn(const ExchangePlan& plan, const PlanMessage& send) {
  const auto first = plan.sendSource.begin() + send.first;
  return std::all_of(first, first + send.count, [](int source) { return source < 0; });
}

void waitForAll(std::vector<MPI_Request>& requests) {
  mpiCheck(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

}  // namespace

/// What a sender tells its receiver about a message.
struct SharedMemoryBuffers::Address {
  std::int64_t window, flag, buffer, first, inReceiveBuffer;
};

/// A message of one direction, seen by its sender.
struct SharedMemoryBuffers::Outgoing {
  Direction direction;
  std::size_t number;  ///< among the sends of this direction, and among the receives of the other
  int flag;            ///< which flag is its own
  int nodeRank;        ///< of the receiver, or -1: it goes by MPI
  const PlanMessage& message;
};

SharedMemoryBuffers::SharedMemoryBuffers(std::shared_ptr<PrivateComm> comm, const ExchangePlan& plan, int firstTag,
                                         int valueBytes, int columns)
    : comm_(std::move(comm)),
      memory_(&NodeMemory::of(*comm_)),
      valueBytes_(valueBytes),
      columns_(columns > 0 ? columns : modestColumns(plan, valueBytes)) {
  numFlags_ = static_cast<int>(plan.sends.size() + plan.receives.size());
  const std::size_t flags = numFlags_ * sizeof(SharedMemoryFlag);
  const auto lines = [valueBytes](int length, int numColumns) {
    return wholeLines(static_cast<std::size_t>(length) * static_cast<std::size_t>(valueBytes) * numColumns);
  };
  block_ = memory_->allocate(columns_, [&](int numColumns) {
    return flags + lines(plan.sendLength(), numColumns) + lines(plan.receiveLength(), numColumns);
  });
  for (const Direction d : bothDirections) {
    sends_[index(d)].resize(d == Direction::forward ? plan.sends.size() : plan.receives.size());
    receives_[index(d)].resize(d == Direction::forward ? plan.receives.size() : plan.sends.size());
  }
  if (available()) {
    outbound_ = block_.data + flags;
    inbound_ = outbound_ + lines(plan.sendLength(), columns_);
    connect(plan, firstTag);
    sharePositions(plan, firstTag);
  }
}

SharedMemoryBuffers::~SharedMemoryBuffers() {
  if (available()) {
    const auto* const flags = std::launder(reinterpret_cast<const SharedMemoryFlag*>(block_.data));
    memory_->release(block_, [flags, count = numFlags_] {
      return std::any_of(flags, flags + count, [](const SharedMemoryFlag& flag) {
        return flag.acknowledged.load(std::memory_order_acquire) != flag.published.load(std::memory_order_relaxed);
      });
    });
  }
}

template <class Work>
void SharedMemoryBuffers::forEachMessage(const ExchangePlan& plan, const Work& work) const {
  int flag = 0;
  for (const Direction d : bothDirections) {
    const std::vector<PlanMessage>& messages = d == Direction::forward ? plan.sends : plan.receives;
    for (std::size_t m = 0; m < messages.size(); ++m, ++flag) {
      const int nodeRank = messages[m].onNode ? memory_->nodeRank(messages[m].peer) : -1;
      work(Outgoing{d, m, flag, nodeRank, messages[m]});
    }
  }
}

/// Fills the slot of an on-node message whose flag has been made.
SharedMemoryBuffers::Address SharedMemoryBuffers::prepareSend(const ExchangePlan& plan, const Outgoing& send) {
  const bool forward = send.direction == Direction::forward;
  char* const flag = block_.data + send.flag * sizeof(SharedMemoryFlag);
  Slot& slot = sends_[index(send.direction)][send.number];
  slot.flag = std::launder(reinterpret_cast<SharedMemoryFlag*>(flag));
  slot.window = block_.place.window;
  slot.inReceiveBuffer = forward && onlyTravelsOn(plan, send.message);
  const char* const buffer = forward && !slot.inReceiveBuffer ? outbound_ : inbound_;
  const auto offset = [this](const char* p) { return block_.place.offset + (p - block_.data); };
  return {block_.place.window, offset(flag), offset(buffer), send.message.first, slot.inReceiveBuffer ? 1 : 0};
}

void SharedMemoryBuffers::connect(const ExchangePlan& plan, int firstTag) {
  static_assert(sizeof(Address) == addressLength * sizeof(std::int64_t));
  const int tags[2] = {firstTag, firstTag + plan.numStages};
  std::vector<Address> mine(numFlags_);
  std::vector<Address> theirs(numFlags_);
  std::vector<MPI_Request> requests;
  forEachMessage(plan, [&](const Outgoing& send) {
    new (block_.data + send.flag * sizeof(SharedMemoryFlag)) SharedMemoryFlag{{0}, 0, {0}};
    if (send.nodeRank < 0) {
      return;
    }
    mine[send.flag] = prepareSend(plan, send);
    const int peer = send.message.peer;
    const int tag = tags[index(send.direction)] + send.message.stage;
    const int tagBack = tags[index(opposite(send.direction))] + send.message.stage;
    requests.resize(requests.size() + 2);
    mpiCheck(MPI_Irecv(&theirs[send.flag], addressLength, MPI_INT64_T, peer, tagBack, comm_->get(),
                       &requests[requests.size() - 2]),
             "MPI_Irecv");
    mpiCheck(MPI_Isend(&mine[send.flag], addressLength, MPI_INT64_T, peer, tag, comm_->get(), &requests.back()),
             "MPI_Isend");
  });
  waitForAll(requests);
  forEachMessage(plan, [&](const Outgoing& send) {
    if (send.nodeRank >= 0) {
      const Address& a = theirs[send.flag];
      char* const flag = memory_->at(send.nodeRank, {a.window, a.flag});
      receives_[index(opposite(send.direction))][send.number] = {
          std::launder(reinterpret_cast<SharedMemoryFlag*>(flag)), a.window, a.inReceiveBuffer != 0,
          memory_->at(send.nodeRank, {a.window, a.buffer}),        a.first,  nullptr};
    }
  });
}

void SharedMemoryBuffers::sharePositions(const ExchangePlan& plan, int firstTag) {
  std::vector<std::vector<int>> mine;
  std::vector<MPI_Request> requests;
  const auto request = [&requests]() -> MPI_Request* {
    requests.emplace_back();
    return &requests.back();
  };
  for (std::size_t m = 0; m < plan.receives.size(); ++m) {
    Slot& slot = receives_[index(Direction::forward)][m];
    if (slot.inReceiveBuffer) {
      const PlanMessage& message = plan.receives[m];
      positions_.emplace_back(message.count);
      slot.positions = positions_.back().data();
      mpiCheck(MPI_Irecv(positions_.back().data(), message.count, MPI_INT, message.peer, firstTag + message.stage,
                         comm_->get(), request()),
               "MPI_Irecv");
    }
  }
  for (std::size_t m = 0; m < plan.sends.size(); ++m) {
    if (sends(Direction::forward)[m].inReceiveBuffer) {
      const PlanMessage& message = plan.sends[m];
      mine.emplace_back(message.count);
      std::transform(plan.sendSource.begin() + message.first, plan.sendSource.begin() + message.first + message.count,
                     mine.back().begin(), [](int source) { return ~source; });
      mpiCheck(MPI_Isend(mine.back().data(), message.count, MPI_INT, message.peer, firstTag + message.stage,
                         comm_->get(), request()),
               "MPI_Isend");
    }
  }
  waitForAll(requests);
}

CopiedMessages SharedMemoryBuffers::copiedMessages() const {
  CopiedMessages copied;
  for (const Slot& slot : receives(Direction::forward)) {
    copied.receives.push_back(slot.flag != nullptr);
    copied.picked.push_back(slot.positions != nullptr);
  }
  for (const Slot& slot : sends(Direction::forward)) {
    copied.sendsReadInPlace.push_back(slot.inReceiveBuffer);
  }
  return copied;
}

std::size_t SharedMemoryBuffers::memoryBytes() const {
  std::size_t bytes = numFlags_ * sizeof(SharedMemoryFlag);
  for (const Direction d : bothDirections) {
    bytes += (sends(d).size() + receives(d).size()) * sizeof(Slot);
  }
  for (const std::vector<int>& list : positions_) {
    bytes += list.size() * sizeof(int);
  }
  return bytes;
}

void SharedMemoryBuffers::waitUntilAcknowledged() const {
  Backoff backoff(*comm_);
  for (const Direction d : bothDirections) {
    for (const Slot& slot : sends(d)) {
      while (slot.flag != nullptr && slot.flag->acknowledged.load(std::memory_order_acquire) !=
                                         slot.flag->published.load(std::memory_order_relaxed)) {
        backoff.pause();
      }
    }
  }
}

}  // namespace Komvos::Impl
