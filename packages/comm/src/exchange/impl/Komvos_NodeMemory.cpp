#include "Komvos_NodeMemory.hpp"

#include <sched.h>

#include <algorithm>
#include <new>

#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

namespace {

constexpr std::size_t line = 64;  // bytes of a cache line

std::size_t wholeLines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

}  // namespace

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
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) {
    return;
  }
  for (Window& window : windows_) {
    MPI_Win_unlock_all(window.handle);
    MPI_Win_free(&window.handle);
  }
  MPI_Comm_free(&node_);
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
  Window window{MPI_WIN_NULL, {}, {}};
  void* mine = nullptr;
  // MPI promises no alignment (Open MPI 4.1 starts 16 bytes off a line, or 8); other ranks see the same offsets to a
  // page, so that my lines are lines for them.
  std::size_t room = bytes + line;
  const int code = MPI_Win_allocate_shared(static_cast<MPI_Aint>(room), 1, info, node_, &mine, &window.handle);
  MPI_Info_free(&info);
  int made = code == MPI_SUCCESS ? 1 : 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_MIN, node_), "MPI_Allreduce");
  if (made == 0) {
    return false;
  }
  mpiCheck(MPI_Win_set_errhandler(window.handle, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  mpiCheck(MPI_Win_lock_all(MPI_MODE_NOCHECK, window.handle), "MPI_Win_lock_all");
  void* aligned = mine;
  std::align(line, bytes, aligned, room);
  window.free[static_cast<char*>(aligned) - static_cast<char*>(mine)] = bytes;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    MPI_Aint size = 0;
    int unit = 0;
    char* segment = nullptr;
    mpiCheck(MPI_Win_shared_query(window.handle, static_cast<int>(r), &size, &unit, &segment), "MPI_Win_shared_query");
    window.segments.push_back(segment);
  }
  windows_.push_back(std::move(window));
  return true;
}

NodeMemory::Block NodeMemory::allocate(std::size_t bytes) {
  bytes = std::max(line, wholeLines(bytes));
  const auto stillUsed = [this](const Waiting& one) {
    if (one.inUse()) {
      return true;
    }
    giveBack(one.block);
    return false;
  };
  waiting_.erase(std::stable_partition(waiting_.begin(), waiting_.end(), stillUsed), waiting_.end());
  Block block;
  int missing = takeFree(bytes, block) ? 0 : 1;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &missing, 1, MPI_INT, MPI_MAX, node_), "MPI_Allreduce");
  if (missing == 0) {
    return block;
  }
  const std::size_t atLeast = std::size_t{1} << 18;  // many small halos share a window
  if (addWindow(std::max(bytes, atLeast))) {
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

void NodeMemory::release(const Block& block, std::function<bool()> inUse) {
  waiting_.push_back({block, std::move(inUse)});
}

NodeMailbox::NodeMailbox(std::shared_ptr<PrivateComm> comm, const ExchangePlan& plan, int firstTag, int valueBytes,
                         int columns)
    : comm_(std::move(comm)), memory_(&NodeMemory::of(*comm_)), valueBytes_(valueBytes), columns_(columns) {
  numSignals_ = static_cast<int>(plan.sends.size() + plan.receives.size());
  const std::size_t signals = numSignals_ * sizeof(MailSignal);
  const std::size_t out = wholeLines(static_cast<std::size_t>(plan.sendLength()) * maxBytesPerValue());
  const std::size_t in = wholeLines(static_cast<std::size_t>(plan.receiveLength()) * maxBytesPerValue());
  block_ = memory_->allocate(signals + out + in);
  for (const Direction d : {forward, reverse}) {
    sends_[d].resize(d == forward ? plan.sends.size() : plan.receives.size());
    receives_[d].resize(d == forward ? plan.receives.size() : plan.sends.size());
  }
  if (available()) {
    outbound_ = block_.data + signals;
    inbound_ = outbound_ + out;
    connect(plan, firstTag);
  }
}

NodeMailbox::~NodeMailbox() {
  if (available()) {
    const MailSignal* const signals = std::launder(reinterpret_cast<const MailSignal*>(block_.data));
    memory_->release(block_, [signals, count = numSignals_] {
      return std::any_of(signals, signals + count, [](const MailSignal& signal) {
        return signal.taken.load(std::memory_order_acquire) != signal.published.load(std::memory_order_relaxed);
      });
    });
  }
}

namespace {

/// What a sender tells its receiver about a message.
struct Address {
  std::int64_t window, signal, buffer, first, relayed;
};
constexpr int addressLength = 5;
static_assert(sizeof(Address) == addressLength * sizeof(std::int64_t));

/// A message of values that all have arrived in other messages.
bool onlyTravelsOn(const ExchangePlan& plan, const PlanMessage& send) {
  const auto first = plan.sendSource.begin() + send.first;
  return std::all_of(first, first + send.count, [](int source) { return source < 0; });
}

void waitForAll(std::vector<MPI_Request>& requests) {
  mpiCheck(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

}  // namespace

void NodeMailbox::connect(const ExchangePlan& plan, int firstTag) {
  const int tags[2] = {firstTag, firstTag + plan.numStages};
  std::vector<Address> mine(numSignals_);
  std::vector<Address> theirs(numSignals_);
  std::vector<MPI_Request> requests;
  const auto offset = [this](const void* p) {
    return block_.place.offset + (static_cast<const char*>(p) - block_.data);
  };
  // Runs over both lists of messages: what is sent forward, and what is sent in reverse.
  const auto each = [&](const auto& work) {
    int next = 0;
    for (const Direction d : {forward, reverse}) {
      const std::vector<PlanMessage>& messages = d == forward ? plan.sends : plan.receives;
      for (std::size_t m = 0; m < messages.size(); ++m, ++next) {
        const int peer = messages[m].onNode ? memory_->nodeRank(messages[m].peer) : -1;
        work(next, d, d == forward ? reverse : forward, m, messages[m], peer);
      }
    }
  };
  each([&](int i, Direction d, Direction incoming, std::size_t m, const PlanMessage& message, int peer) {
    auto* const signal = new (block_.data + i * sizeof(MailSignal)) MailSignal{{0}, 0, {0}};
    if (peer < 0) {
      return;
    }
    const bool relayed = d == forward && onlyTravelsOn(plan, message);
    sends_[d][m].signal = signal;
    sends_[d][m].window = block_.place.window;
    sends_[d][m].relayed = relayed;
    mine[i] = {block_.place.window, offset(signal), offset(d == forward && !relayed ? outbound_ : inbound_),
               message.first, relayed ? 1 : 0};
    requests.resize(requests.size() + 2);
    mpiCheck(MPI_Irecv(&theirs[i], addressLength, MPI_INT64_T, message.peer, tags[incoming] + message.stage,
                       comm_->get(), &requests[requests.size() - 2]),
             "MPI_Irecv");
    mpiCheck(MPI_Isend(&mine[i], addressLength, MPI_INT64_T, message.peer, tags[d] + message.stage, comm_->get(),
                       &requests.back()),
             "MPI_Isend");
  });
  waitForAll(requests);
  each([&](int i, Direction, Direction incoming, std::size_t m, const PlanMessage&, int peer) {
    if (peer >= 0) {
      const Address& a = theirs[i];
      char* const signal = memory_->at(peer, {a.window, a.signal});
      receives_[incoming][m] = {std::launder(reinterpret_cast<MailSignal*>(signal)),
                                a.window,
                                a.relayed != 0,
                                memory_->at(peer, {a.window, a.buffer}),
                                a.first,
                                nullptr};
    }
  });
  connectRelayed(plan, firstTag);
}

void NodeMailbox::connectRelayed(const ExchangePlan& plan, int firstTag) {
  std::vector<std::vector<int>> mine;
  std::vector<MPI_Request> requests;
  const auto request = [&requests]() -> MPI_Request* {
    requests.emplace_back();
    return &requests.back();
  };
  for (std::size_t m = 0; m < plan.receives.size(); ++m) {
    Slot& slot = receives_[forward][m];
    if (slot.relayed) {
      const PlanMessage& message = plan.receives[m];
      positions_.emplace_back(message.count);
      slot.positions = positions_.back().data();
      mpiCheck(MPI_Irecv(positions_.back().data(), message.count, MPI_INT, message.peer, firstTag + message.stage,
                         comm_->get(), request()),
               "MPI_Irecv");
    }
  }
  for (std::size_t m = 0; m < plan.sends.size(); ++m) {
    if (sends_[forward][m].relayed) {
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

std::size_t NodeMailbox::memoryBytes() const {
  std::size_t bytes = numSignals_ * sizeof(MailSignal);
  for (const Direction d : {forward, reverse}) {
    bytes += (sends_[d].size() + receives_[d].size()) * sizeof(Slot);
  }
  for (const std::vector<int>& list : positions_) {
    bytes += list.size() * sizeof(int);
  }
  return bytes;
}

void NodeMailbox::publish(const Slot& slot, std::uint64_t exchange, int bytesPerValue) const {
  slot.signal->bytesPerValue = bytesPerValue;
  memory_->sync(slot.window);
  slot.signal->published.store(exchange, std::memory_order_release);
}

bool NodeMailbox::arrived(const Slot& slot, std::uint64_t exchange) const {
  if (slot.signal->published.load(std::memory_order_acquire) != exchange) {
    return false;
  }
  memory_->sync(slot.window);
  return true;
}

void NodeMailbox::take(const Slot& slot, std::uint64_t exchange) {
  slot.signal->taken.store(exchange, std::memory_order_release);
}

void NodeMailbox::waitUntilTaken() const {
  NodeWait wait(*comm_);
  for (const Direction d : {forward, reverse}) {
    for (const Slot& slot : sends_[d]) {
      while (slot.signal != nullptr && slot.signal->taken.load(std::memory_order_acquire) !=
                                           slot.signal->published.load(std::memory_order_relaxed)) {
        wait();
      }
    }
  }
}

void NodeWait::operator()() {
  const unsigned spins = 32;           // about a microsecond: the partner is about to store
  const unsigned turnsToProgress = 8;  // a call into MPI costs about as much as these
  if (++turns_ <= spins) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return;
  }
  if (turns_ % turnsToProgress == 0) {
    int found = 0;  // looking for a message that nobody sends makes progress; our tags start at 1
    mpiCheck(MPI_Iprobe(comm_.rank(), 0, comm_.get(), &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
  }
  yield();
}

void NodeWait::yield() { sched_yield(); }

}  // namespace Komvos::Impl
