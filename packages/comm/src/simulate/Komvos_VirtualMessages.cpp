#include "Komvos_VirtualMessages.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "Komvos_Error.hpp"

// How this works: a message is identified by stage, sender and receiver. visitMessages lets ValueTracer send every
// value of the halo along all stages of the route; on each hop the tracer adds one to the count of the message that
// carries the value. Counts are kept in KeyCounter, a hash table whose key packs (sender, receiver, stage) into 64
// bits, and are visited by ascending key. Routes of one stage need no table: visitDirectMessages counts the values for
// each receiver, one sender at a time. TrafficCounter adds the messages of each rank up.

namespace Komvos {

namespace {

/// Counts how often each key was added: a hash table with open addressing and linear probing, at most half full.
class KeyCounter {
 public:
  struct Slot {
    std::uint64_t key;
    std::int64_t count;  // 0: free
  };

  void add(std::uint64_t key) {
    if (2 * used_ >= slots_.size()) {
      grow();
    }
    Slot& slot = find(key);
    used_ += slot.count == 0;
    slot.key = key;
    ++slot.count;
  }

  /// All counts by ascending key. The counter is empty afterwards.
  std::vector<Slot> takeSorted() {
    slots_.erase(std::remove_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.count == 0; }),
                 slots_.end());
    std::sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.key < b.key; });
    used_ = 0;
    return std::move(slots_);
  }

 private:
  Slot& find(std::uint64_t key) {
    const std::size_t mask = slots_.size() - 1;
    // Fibonacci hashing: the upper bits of the product are well mixed.
    std::size_t at = (key * 0x9e3779b97f4a7c15ULL) >> 20 & mask;
    while (slots_[at].count != 0 && slots_[at].key != key) {
      at = (at + 1) & mask;
    }
    return slots_[at];
  }

  void grow() {
    std::vector<Slot> old(std::max<std::size_t>(1024, 2 * slots_.size()), Slot{0, 0});
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.count != 0) {
        find(slot.key) = slot;
      }
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

/// For routes of one stage: counts values by receiver, one sender at a time.
void visitDirectMessages(const VirtualHalo& halo, const Route& route,
                         const std::function<void(const VirtualMessage&)>& visit) {
  std::vector<long> values(halo.numRanks(), 0);
  std::vector<int> receivers;
  for (int owner = 0; owner < halo.numRanks(); ++owner) {
    for (int local = 0; local < halo.numValuesOf(owner); ++local) {
      for (const int destination : halo.destinationsOf(owner, local)) {
        if (const int next = route.hop(0, owner, owner, destination); next != destination) {
          throw Error("route " + route.name() + " has one stage, and leads from rank " + std::to_string(owner) +
                      " to " + std::to_string(next) + " instead of " + std::to_string(destination));
        }
        if (values[destination]++ == 0) {
          receivers.push_back(destination);
        }
      }
    }
    std::sort(receivers.begin(), receivers.end());
    for (const int receiver : receivers) {
      visit({0, owner, receiver, values[receiver]});
      values[receiver] = 0;
    }
    receivers.clear();
  }
}

/// Sends one value along all stages and counts each message that carries it once.
class ValueTracer {
 public:
  ValueTracer(int numRanks, const Route& route, KeyCounter& counter)
      : numRanks_(static_cast<std::uint64_t>(numRanks)),
        numStages_(static_cast<std::uint64_t>(route.numStages())),
        route_(route),
        counter_(counter) {}

  void trace(int owner, const VirtualHalo::Destinations& destinations) {
    copies_.clear();
    for (const int destination : destinations) {
      copies_.push_back({owner, destination});
    }
    for (int stage = 0; stage < route_.numStages(); ++stage) {
      hop(stage, owner);
    }
    if (!copies_.empty()) {
      throw Error("route " + route_.name() + " loses values of rank " + std::to_string(owner) + " for rank " +
                  std::to_string(copies_.front().destination));
    }
  }

  VirtualMessage message(const KeyCounter::Slot& slot) const {
    const std::uint64_t pair = slot.key / numStages_;
    return {static_cast<int>(slot.key % numStages_), static_cast<int>(pair / numRanks_),
            static_cast<int>(pair % numRanks_), static_cast<long>(slot.count)};
  }

 private:
  struct Copy {
    int here;
    int destination;
  };

  void hop(int stage, int owner) {
    keys_.clear();
    for (Copy& copy : copies_) {
      const int next = route_.hop(stage, copy.here, owner, copy.destination);
      if (next != copy.here) {
        keys_.push_back((static_cast<std::uint64_t>(copy.here) * numRanks_ + static_cast<std::uint64_t>(next)) *
                            numStages_ +
                        static_cast<std::uint64_t>(stage));
        copy.here = next;
      }
    }
    std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    for (const std::uint64_t key : keys_) {
      counter_.add(key);
    }
    copies_.erase(
        std::remove_if(copies_.begin(), copies_.end(), [](const Copy& copy) { return copy.here == copy.destination; }),
        copies_.end());
  }

  std::uint64_t numRanks_;
  std::uint64_t numStages_;
  const Route& route_;
  KeyCounter& counter_;
  std::vector<Copy> copies_;
  std::vector<std::uint64_t> keys_;
};

Traffic reduce(const std::vector<RankTraffic>& ranks) {
  Traffic traffic;
  for (const RankTraffic& rank : ranks) {
    for (const auto field : {&RankTraffic::neighbours, &RankTraffic::interNodeMessages, &RankTraffic::interNodeValues,
                             &RankTraffic::onNodeMessages, &RankTraffic::onNodeValues}) {
      traffic.max.*field = std::max(traffic.max.*field, rank.*field);
      traffic.total.*field += rank.*field;
    }
  }
  return traffic;
}

}  // namespace

void visitMessages(const VirtualHalo& halo, const Route& route,
                   const std::function<void(const VirtualMessage&)>& visit) {
  if (route.numStages() == 1) {
    visitDirectMessages(halo, route, visit);
    return;
  }
  KeyCounter counter;
  ValueTracer tracer(halo.numRanks(), route, counter);
  for (int owner = 0; owner < halo.numRanks(); ++owner) {
    for (int local = 0; local < halo.numValuesOf(owner); ++local) {
      tracer.trace(owner, halo.destinationsOf(owner, local));
    }
  }
  for (const KeyCounter::Slot& slot : counter.takeSorted()) {
    visit(tracer.message(slot));
  }
}

TrafficCounter::TrafficCounter(NodeTopology topology)
    : topology_(std::move(topology)), sent_(topology_.numRanks()), received_(topology_.numRanks()) {}

void TrafficCounter::add(const VirtualMessage& message) {
  const bool onNode = topology_.sameNode(message.from, message.to);
  const bool newPair = message.from != last_.from || message.to != last_.to;
  for (RankTraffic* const traffic : {&sent_[message.from], &received_[message.to]}) {
    traffic->neighbours += newPair;
    (onNode ? traffic->onNodeMessages : traffic->interNodeMessages) += 1;
    (onNode ? traffic->onNodeValues : traffic->interNodeValues) += message.values;
  }
  last_ = message;
}

Traffic TrafficCounter::sent() const { return reduce(sent_); }

Traffic TrafficCounter::received() const { return reduce(received_); }

}  // namespace Komvos
