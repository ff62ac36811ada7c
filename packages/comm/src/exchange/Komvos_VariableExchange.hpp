/// \file Komvos_VariableExchange.hpp
/// An exchange in which each value of a plan is a run of words, each of a length of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_MessageBuffers.hpp"
#include "Komvos_MessageEngine.hpp"
#include "Komvos_PrivateComm.hpp"

// How this works. Counts travel first, one number for each run along the same plan, to all ranks that it passes
// through; lengths and offsets follow. Then the engine runs the plan's messages with other counts. The caller packs
// what leaves here and unpacks what arrives; in between runs are copied from one message to another.
//
//   begin   fence; start all receives; the caller's kernel writes the send buffer; (staged: to the host); first sends
//   end     poll and copy what travels on until nothing waits; wait; (staged: to the device)
namespace Komvos::Impl {

/// Runs of one buffer: run i begins at word first(i), and is entry index(i) of the caller's.
template <class MemorySpace>
struct DeviceRuns {
  Kokkos::View<int*, MemorySpace> index;
  Kokkos::View<std::int64_t*, MemorySpace> first;
  std::vector<int> hostIndex;
  std::vector<std::int64_t> hostFirst;

  int size() const { return static_cast<int>(hostIndex.size()); }
  void set(std::vector<int> indices, std::vector<std::int64_t> firsts) {
    hostIndex = std::move(indices);
    hostFirst = std::move(firsts);
    index = deviceList<MemorySpace>("Komvos::VariableExchange::index", hostIndex);
    first = deviceList<MemorySpace>("Komvos::VariableExchange::first", hostFirst);
  }
};

/// Copies of runs, `words(i)` words each, from one buffer to another.
template <class MemorySpace>
struct RunCopies {
  using word = std::uint64_t;
  using list = Kokkos::View<const std::int64_t*, MemorySpace>;
  struct Functor {
    list from, to, words;
    int first;
    const word* source;
    word* target;
    template <class Member>
    KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
      const int i = first + member.league_rank();
      Kokkos::parallel_for(Kokkos::TeamVectorRange(member, words(i)),
                           [&](const std::int64_t k) { target[to(i) + k] = source[from(i) + k]; });
    }
  };
  list from, to, words;

  /// Those of [begin, end).
  template <class ExecutionSpace>
  void run(const ExecutionSpace& space, int begin, int end, const word* source, word* target) const {
    if (end > begin) {
      Kokkos::parallel_for("Komvos::VariableExchange::relay",
                           Kokkos::TeamPolicy<ExecutionSpace>(space, end - begin, Kokkos::AUTO),
                           Functor{from, to, words, begin, source, target});
    }
  }
  std::size_t memoryBytes() const { return (from.size() + to.size() + words.size()) * sizeof(std::int64_t); }
};

/// Owned runs to targets, along any plan: a run that several ranks of a node need crosses the network once.
///
/// All runs have at least one word. At most one exchange is in flight.
/// \tparam Device as of Exchange
template <class Device>
class VariableExchange {
 public:
  using word = std::uint64_t;
  using execution_space = typename Device::execution_space;
  using memory_space = typename BufferSpace<execution_space>::type;
  using buffer_view = Kokkos::View<word*, memory_space>;
  using runs_type = DeviceRuns<memory_space>;

  /// \param mpiIsGpuAware, forceStaging as of Exchange \note Collective.
  VariableExchange(MPI_Comm comm, std::shared_ptr<const ExchangePlan> plan, bool mpiIsGpuAware, bool forceStaging)
      : plan_(std::move(plan)),
        comm_(PrivateComm::of(comm)),
        tags_(comm_->takeTags(plan_->numStages)),
        poisons_(forceStaging),
        staged_(forceStaging || (!hostCanAccessBuffers<execution_space>() && !mpiIsGpuAware)),
        schedule_(forwardSchedule(*plan_)),
        counts_(comm, planOfCounts(*plan_), 1, IntraNode::messages, mpiIsGpuAware, forceStaging) {}
  /// Sends may still read buffers of this object. It may outlive MPI.
  ~VariableExchange() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (engine_ && !finalized) {
      try {
        engine_->completeSends();
      } catch (const MpiError&) {  // nobody is left to hear of it
      }
    }
  }
  VariableExchange(const VariableExchange&) = delete;
  VariableExchange& operator=(const VariableExchange&) = delete;

  /// Some count that belongs to each run, such as the entries of a row.
  struct Counts {
    std::vector<std::int64_t> owned;     ///< [plan.numOwned]
    std::vector<std::int64_t> received;  ///< by position of the receive buffer
  };
  /// Makes room for runs of these counts.
  /// \param wordsOf (count) words of a run with this count, at least 1
  /// \note Collective. \throws BadInput on all ranks if the messages of one have more than 2^31 words, a count is
  /// negative or above 2^34, or what else fails on one
  template <class WordsOf>
  void setLengths(const Counts& counts, const WordsOf& wordsOf) {
    setLengths(counts, wordsOf, {});
  }
  /// The same, once the counts have travelled along the plan. \note Collective, and throws, as setLengths.
  template <class WordsOf>
  Counts exchangeLengths(std::vector<std::int64_t> owned, const WordsOf& wordsOf) {
    Counts counts;
    const std::string error = errorIn([&] { counts = exchangeCounts(std::move(owned)); });
    setLengths(counts, wordsOf, error);
    return counts;
  }
  /// Of each run that arrives, in the order of arrivals().
  std::vector<std::int64_t> arrivalCounts(const Counts& counts) const;

  /// What the caller packs: owned index, and where it goes in the send buffer. A run may be there several times.
  const runs_type& departures() const { return departures_; }
  /// What the caller unpacks: target index, and where it is in the receive buffer.
  const runs_type& arrivals() const { return arrivals_; }
  const buffer_view& received() const { return receive_.device; }

  /// \param pack (send buffer) writes the departures; its kernels run on `space` \note Collective, as end() is.
  /// \throws what `pack` throws, once others have been told; they get a PlanMismatch
  template <class Pack>
  void begin(const execution_space& space, const Pack& pack);
  /// Afterwards received() has what arrived, until the next begin(). \throws PlanMismatch, as Exchange::end
  void end(const execution_space& space);
  /// In the place of begin() and end(), by a rank that cannot take part.
  void abandon() { engine_->abandon(); }

  std::size_t wordsSent() const { return send_.device.size(); }
  std::size_t memoryBytes() const {
    return plan_->memoryBytes() + counts_.memoryBytes() + send_.memoryBytes() + receive_.memoryBytes() +
           3 * relayFrom_.size() * sizeof(std::int64_t) + relays_.memoryBytes() +
           (engine_ ? engine_->memoryBytes() : 0);
  }

 private:
  /// The plan, with every received value as a target: who relays a run has to know its length too.
  static std::shared_ptr<const ExchangePlan> planOfCounts(const ExchangePlan& plan) {
    auto all = std::make_shared<ExchangePlan>(plan);
    all->deliveries.clear();
    for (int p = 0; p < plan.receiveLength(); ++p) {
      all->deliveries.push_back({p, p, false});
    }
    all->numTarget = plan.receiveLength();
    return all;
  }
  Counts exchangeCounts(std::vector<std::int64_t> owned);
  template <class WordsOf>
  void setLengths(const Counts& counts, const WordsOf& wordsOf, const std::string& error);
  template <class WordsOf>
  void setOffsets(const Counts& counts, const WordsOf& wordsOf);
  void resizeMessages(const std::vector<std::int64_t>& sendOffset, const std::vector<std::int64_t>& receiveOffset);
  template <class Buffer>
  static void poison(const Buffer& buffer) {
    Kokkos::deep_copy(buffer, ~word(0) / 2);
  }
  void startRelays(const execution_space& space);
  void copyRelays(const execution_space& space, int first, int last);
  template <class Work>
  void packOrGiveUp(const Work& pack);
  /// Who relays copies with kernels: in device memory that the host cannot read.
  bool relaysOnDevice() const { return !staged_ && !hostCanAccessBuffers<execution_space>(); }

  std::shared_ptr<const ExchangePlan> plan_;
  std::shared_ptr<PrivateComm> comm_;
  TagRange tags_;
  bool poisons_;  // staging is forced for a test: what must not be read yet is no row
  bool staged_;
  Schedule schedule_;  // of single values; its lists stay
  Exchange<long long, Device> counts_;
  Schedule sized_;  // the same with messages counted in words, and no lists
  std::unique_ptr<MessageEngine> engine_;
  MessageBuffer<word, execution_space> send_, receive_;
  runs_type departures_, arrivals_;
  std::vector<std::int64_t> relayFrom_, relayTo_, relayWords_;  // rows of schedule_.relay
  RunCopies<memory_space> relays_;                              // the same, if relaysOnDevice()
  std::exception_ptr packError_;
};

/// Lets the counts travel with the plan. \note In the place of each other rank's; an error here is one on all ranks
/// that miss counts of this one.
template <class Device>
auto VariableExchange<Device>::exchangeCounts(std::vector<std::int64_t> owned) -> Counts {
  using List = Kokkos::View<long long**, Kokkos::LayoutLeft, Device>;
  const execution_space& space = defaultSpace<execution_space>();
  List mine, arrived;
  try {
    mine = List("Komvos::VariableExchange::counts", owned.size(), 1);
    arrived = List("Komvos::VariableExchange::counts", plan_->receiveLength(), 1);
    const auto mineOnHost = Kokkos::create_mirror_view(mine);
    for (std::size_t i = 0; i < owned.size(); ++i) {
      mineOnHost(i, 0) = owned[i];
    }
    Kokkos::deep_copy(mine, mineOnHost);
  } catch (...) {
    counts_.abandonForward();
    throw;
  }
  counts_.forward(space, mine, arrived);
  fence(space, "Komvos::VariableExchange: counts have arrived");
  const auto arrivedOnHost = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), arrived);
  return {std::move(owned), {arrivedOnHost.data(), arrivedOnHost.data() + arrivedOnHost.size()}};
}

template <class Device>
std::vector<std::int64_t> VariableExchange<Device>::arrivalCounts(const Counts& counts) const {
  std::vector<std::int64_t> arriving;
  for (const ExchangePlan::Delivery& delivery : plan_->deliveries) {
    arriving.push_back(counts.received[delivery.position]);
  }
  return arriving;
}

/// \param error of this rank
template <class Device>
template <class WordsOf>
void VariableExchange<Device>::setLengths(const Counts& counts, const WordsOf& wordsOf, const std::string& error) {
  throwOnAllIfAny(comm_->get(), error.empty() ? errorIn([&] { setOffsets(counts, wordsOf); }) : error);
}

template <class Device>
template <class WordsOf>
void VariableExchange<Device>::setOffsets(const Counts& counts, const WordsOf& wordsOf) {
  const std::int64_t most = std::numeric_limits<int>::max();
  for (const std::vector<std::int64_t>* const list : {&counts.owned, &counts.received}) {
    for (const std::int64_t count : *list) {
      // What arrives may be anything, and sums must not overflow. Entries may be bytes.
      if (count < 0 || count > most * static_cast<std::int64_t>(sizeof(word))) {
        throw BadInput("a message has a run of " + std::to_string(count) + " entries (rank " +
                       std::to_string(plan_->rank) + ")");
      }
    }
  }
  std::vector<std::int64_t> sendOffset{0}, receiveOffset{0};  // of runs, in words
  for (const int source : plan_->sendSource) {
    sendOffset.push_back(sendOffset.back() + wordsOf(source >= 0 ? counts.owned[source] : counts.received[~source]));
  }
  for (const std::int64_t count : counts.received) {
    receiveOffset.push_back(receiveOffset.back() + wordsOf(count));
  }
  const std::int64_t words = std::max(sendOffset.back(), receiveOffset.back());
  if (words > most) {
    throw BadInput("messages of " + std::to_string(words) + " words of 8 bytes (rank " + std::to_string(plan_->rank) +
                   "); at most " + std::to_string(most) + " travel at once");
  }
  resizeMessages(sendOffset, receiveOffset);

  const auto at = [](const std::vector<int>& positions, const std::vector<std::int64_t>& offset) {
    std::vector<std::int64_t> first;
    for (const int p : positions) {
      first.push_back(offset[p]);
    }
    return first;
  };
  departures_.set(schedule_.pack.from, at(schedule_.pack.to, sendOffset));
  relayFrom_ = at(schedule_.relay.from, receiveOffset);
  relayTo_ = at(schedule_.relay.to, sendOffset);
  relayWords_.clear();
  for (const int p : schedule_.relay.from) {
    relayWords_.push_back(wordsOf(counts.received[p]));
  }
  if (relaysOnDevice()) {
    const auto listOf = [](const std::vector<std::int64_t>& list) {
      return deviceList<memory_space>("Komvos::VariableExchange::relays", list);
    };
    relays_ = {listOf(relayFrom_), listOf(relayTo_), listOf(relayWords_)};
  }
  std::vector<int> targets, positions;
  for (const ExchangePlan::Delivery& delivery : plan_->deliveries) {
    targets.push_back(delivery.target);
    positions.push_back(delivery.position);
  }
  arrivals_.set(std::move(targets), at(positions, receiveOffset));
}

template <class Device>
void VariableExchange<Device>::resizeMessages(const std::vector<std::int64_t>& sendOffset,
                                              const std::vector<std::int64_t>& receiveOffset) {
  const auto resize = [](std::vector<Schedule::Message>& messages, const std::vector<std::int64_t>& offset) {
    for (Schedule::Message& message : messages) {
      const std::int64_t first = offset[message.first], last = offset[message.first + message.count];
      message.first = static_cast<int>(first);
      message.count = static_cast<int>(last - first);
      message.contiguousTarget = -1;
    }
  };
  if (engine_) {
    engine_->completeSends();
    engine_.reset();
  }
  send_ = {};  // before there are new ones
  receive_ = {};
  sized_ = schedule_;
  sized_.dropLists();
  resize(sized_.sends, sendOffset);
  resize(sized_.receives, receiveOffset);
  sized_.sendLength = static_cast<int>(sendOffset.back());
  sized_.receiveLength = static_cast<int>(receiveOffset.back());
  send_.allocate(sized_.sendLength, staged_);
  receive_.allocate(sized_.receiveLength, staged_);
  engine_ = std::make_unique<MessageEngine>(comm_, tags_.first(), sized_, nullptr, Direction::forward);
}

template <class Device>
template <class Pack>
void VariableExchange<Device>::begin(const execution_space& space, const Pack& pack) {
  try {
    engine_->completeSends();
    engine_->bind({send_.forMessages(staged_), receive_.forMessages(staged_), nullptr, static_cast<int>(sizeof(word))});
    fence(space, "Komvos::VariableExchange::begin: the last unpack is done before its buffer is received into");
    if (poisons_) {
      poison(receive_.device);
      poison(receive_.host);
      poison(send_.host);
    }
  } catch (...) {  // nothing has been posted
    engine_->abandon();
    throw;
  }
  engine_->startReceives();
  packOrGiveUp([&] {
    pack(send_.device);
    if (staged_) {
      Kokkos::deep_copy(space, send_.host, send_.device);
    }
    if (poisons_) {
      poison(send_.device);
    }
    fence(space, "Komvos::VariableExchange::begin: packed before send");
  });
  engine_->startReadySends();
}

/// The receives are posted by now, and others wait for what is packed: after an exception they get empty messages, and
/// end() throws it.
template <class Device>
template <class Work>
void VariableExchange<Device>::packOrGiveUp(const Work& pack) {
  try {
    pack();
  } catch (...) {
    packError_ = std::current_exception();
    engine_->giveUp(textOf(packError_));
  }
}

template <class Device>
void VariableExchange<Device>::startRelays(const execution_space& space) {
  for (int send = engine_->popReady(); send >= 0; send = engine_->popReady()) {
    packOrGiveUp([&] { copyRelays(space, schedule_.relayOffset[send], schedule_.relayOffset[send + 1]); });
    engine_->startSend(send);
  }
}

/// Rows [first, last) of schedule_.relay.
template <class Device>
void VariableExchange<Device>::copyRelays(const execution_space& space, int first, int last) {
  const auto copyOnHost = [&](const word* from, word* to) {
    for (int i = first; i < last; ++i) {
      std::copy_n(from + relayFrom_[i], relayWords_[i], to + relayTo_[i]);
    }
  };
  if (staged_) {
    copyOnHost(receive_.host.data(), send_.host.data());
  } else if (!relaysOnDevice()) {
    copyOnHost(receive_.device.data(), send_.device.data());
  } else {  // GPU-aware MPI
    relays_.run(space, first, last, receive_.device.data(), send_.device.data());
    fence(space, "Komvos::VariableExchange: copied before send");
  }
}

template <class Device>
void VariableExchange<Device>::end(const execution_space& space) {
  while (engine_->relaysPending()) {
    engine_->poll(true);
    startRelays(space);
  }
  engine_->waitForAll();
  try {
    engine_->finish();
  } catch (const PlanMismatch&) {
    if (packError_) {
      std::rethrow_exception(std::exchange(packError_, nullptr));
    }
    throw;
  }
  if (staged_) {
    Kokkos::deep_copy(receive_.device, receive_.host);
  }
}

}  // namespace Komvos::Impl
