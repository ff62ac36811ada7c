// How a plan is made: buildPlans.
//
// A rank keeps a list of (value, destination) pairs that it holds. In each stage it asks the route where each pair goes
// next. Pairs that leave are sorted by next hop and value: each hop becomes one message, each value in it one position
// of the send buffer, whatever number of destinations it serves there. The same lists travel along the hops as set-up
// messages, so that the receiver knows the positions of its receive buffer and which pairs it holds now. After the last
// stage what arrived is matched with what the pattern needs. On a direct route both ends know the only message from
// their patterns, and nothing is sent. PlanInProgress is one rank; under MPI there is one in each process, in memory
// there are all.
//
// Errors: one sum over all ranks, before anything else, says whether a rank has an error of its own, whether all have
// the same nodes and route, and whether what ranks send is what others need, by hashes (balanceOf). If not, the
// standard route is built with messages, which finds the value that is missing. After that one agreement at the end
// will do: a rank with an error goes on without sending. But in stages whose peers are known, the others would wait for
// it: there a rank without memory, or a user's route that throws on some ranks, is not caught.
#include "Komvos_ExchangePlan.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_Hash.hpp"
#include "Komvos_SortRuns.hpp"

namespace Komvos {

std::size_t ExchangePlan::memoryBytes() const {
  return sizeof(*this) + (sends.size() + receives.size()) * sizeof(PlanMessage) + 2 * sendSource.size() * sizeof(int) +
         deliveries.size() * sizeof(Delivery);
}

namespace {

/// A value on its way to one destination, at the rank that holds it now.
struct Item {
  ValueId value;
  int destination;
  int source;  // as in ExchangePlan::sendSource

  friend bool operator<(const Item& a, const Item& b) {
    return a.value == b.value ? a.destination < b.destination : a.value < b.value;
  }
};

/// A value that has reached a rank that needs it.
struct Arrival {
  ValueId value;
  int position;

  friend bool operator<(const Arrival& a, const Arrival& b) { return a.value < b.value; }
};

/// The lists of a stage by next hop. Values of a message have few owners and destinations, in any order: for each slot,
/// it is remembered where those asked for last go, so that the route need not be asked again.
class Departures {
 public:
  explicit Departures(std::size_t numItems) {
    while (slots_.size() < std::min<std::size_t>(numItems, 1024)) {
      slots_.resize(2 * slots_.size());
    }
  }
  /// \param hop says the next hop, this rank itself for what stays
  template <class Hop>
  void add(const Item& item, int here, const Hop& hop) {
    const auto number =
        static_cast<std::uint32_t>(item.value.owner) * 73u + static_cast<std::uint32_t>(item.destination);
    Slot& slot = slots_[number & (slots_.size() - 1)];
    if (slot.items == nullptr || slot.owner != item.value.owner || slot.destination != item.destination) {
      const int next = hop(item.value.owner, item.destination);
      slot = {item.value.owner, item.destination, next == here ? &staying : &leaving[next]};
    }
    slot.items->push_back(item);
  }

  std::vector<Item> staying;
  std::map<int, std::vector<Item>> leaving;

 private:
  struct Slot {
    int owner = -1, destination = -1;
    std::vector<Item>* items = nullptr;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(16);  // a power of two
};

/// The plan of one rank in the making.
class PlanInProgress {
 public:
  /// \param isDirect what goes and comes is known from the pattern: call compileDirect() instead of send and receive
  PlanInProgress(const Pattern& pattern, const NodeTopology& topology, const Route& route, int numRanks, bool isDirect)
      : pattern_(pattern), topology_(topology), route_(route) {
    plan_.route = route.name();
    plan_.rank = pattern.rank;
    plan_.numRanks = numRanks;
    plan_.numStages = route.numStages();
    plan_.numOwned = pattern.numOwned;
    plan_.numTarget = pattern.numTarget;
    for (const Pattern::Send& send : pattern.sends) {
      if (!isDirect) {
        items_.push_back({{pattern.rank, send.local}, send.destination, send.local});
      }
    }
  }

  /// Groups the items that leave in this stage into messages. A set-up message lists, for each value: owner, owner's
  /// index, number of destinations, destinations.
  std::vector<SetupMessage> send(int stage) {
    const int here = plan_.rank;
    Departures departures(items_.size());
    for (const Item& item : items_) {
      departures.add(item, here,
                     [&](int owner, int destination) { return route_.hop(stage, here, owner, destination); });
    }
    items_ = std::move(departures.staying);
    std::vector<SetupMessage> announced;
    for (auto& [peer, items] : departures.leaving) {
      Impl::sortRuns(items.begin(), items.end());
      announced.push_back({peer, announce(peer, stage, items)});
    }
    return announced;
  }

  void receive(int stage, const std::vector<SetupMessage>& announced) {
    for (const SetupMessage& incoming : announced) {
      if (incoming.data.empty()) {
        continue;
      }
      PlanMessage message{incoming.peer, stage, plan_.receiveLength(), 0,
                          topology_.sameNode(plan_.rank, incoming.peer)};
      for (std::size_t k = 0; k < incoming.data.size();) {
        const ValueId value{incoming.data[k], incoming.data[k + 1]};
        const int numDestinations = incoming.data[k + 2];
        const int position = message.first + message.count++;
        k += 3;
        for (int d = 0; d < numDestinations; ++d, ++k) {
          if (incoming.data[k] == plan_.rank) {
            arrivals_.push_back({value, position});
          } else {
            items_.push_back({value, incoming.data[k], ~position});
          }
        }
      }
      plan_.receives.push_back(message);
    }
  }

  /// Values for one destination are one message, and those of one owner, in its order.
  void compileDirect() {
    for (const Pattern::Send& send : pattern_.sends) {  // sorted by destination, then value
      const int peer = send.destination;
      if (plan_.sends.empty() || plan_.sends.back().peer != peer) {
        plan_.sends.push_back({peer, 0, plan_.sendLength(), 0, topology_.sameNode(plan_.rank, peer)});
      }
      plan_.sendSource.push_back(send.local);
      plan_.sendHighest.push_back(peer);
      ++plan_.sends.back().count;
    }
    for (const Pattern::Receive& receive : pattern_.receives) {  // sorted by value, a value may have several targets
      const int owner = receive.value.owner;
      if (plan_.receives.empty() || plan_.receives.back().peer != owner) {
        plan_.receives.push_back({owner, 0, plan_.receiveLength(), 0, topology_.sameNode(plan_.rank, owner)});
      } else if (arrivals_.back().value == receive.value) {
        continue;
      }
      PlanMessage& message = plan_.receives.back();
      arrivals_.push_back({receive.value, message.first + message.count++});
    }
  }

  /// Matches what arrived with what is needed. \return an error text, or nothing.
  std::string finish() {
    const auto error = [this](const std::string& what) {
      return "plan of rank " + std::to_string(plan_.rank) + ", route " + plan_.route + ": " + what;
    };
    if (!items_.empty()) {
      return error(std::to_string(items_.size()) + " values end before their destination");
    }
    Impl::sortRuns(arrivals_.begin(), arrivals_.end());
    auto arrival = arrivals_.begin();
    std::size_t used = 0;
    int owner = -1;
    bool onNode = false;
    std::vector<ExchangePlan::Delivery> byTarget(pattern_.numTarget, {-1, -1, false});  // a target is filled once
    for (const Pattern::Receive& receive : pattern_.receives) {  // sorted by value, a value may have several targets
      while (arrival != arrivals_.end() && arrival->value < receive.value) {
        ++arrival;
      }
      if (arrival == arrivals_.end() || arrival->value != receive.value) {
        return error("value " + std::to_string(receive.value.local) + " of rank " +
                     std::to_string(receive.value.owner) + " is needed, but its owner does not send it");
      }
      used += receive.value != lastUsed_;
      lastUsed_ = receive.value;
      if (receive.value.owner != owner) {
        owner = receive.value.owner;
        onNode = topology_.sameNode(plan_.rank, owner);
      }
      byTarget[receive.target] = {arrival->position, receive.target, onNode};
    }
    if (used != arrivals_.size()) {
      return error(std::to_string(arrivals_.size()) + " values arrive, but " + std::to_string(used) + " are needed");
    }
    plan_.deliveries.reserve(pattern_.receives.size());
    std::copy_if(byTarget.begin(), byTarget.end(), std::back_inserter(plan_.deliveries),
                 [](const ExchangePlan::Delivery& one) { return one.target >= 0; });
    return {};
  }

  ExchangePlan take() { return std::move(plan_); }

 private:
  /// Makes `items`, which are sorted, a message of the plan. \return the set-up message that lists them.
  std::vector<int> announce(int peer, int stage, const std::vector<Item>& items) {
    PlanMessage message{peer, stage, plan_.sendLength(), 0, topology_.sameNode(plan_.rank, peer)};
    std::vector<int> data;
    data.reserve(4 * items.size());
    for (auto item = items.begin(); item != items.end();) {
      const Item& first = *item;
      const std::size_t head = data.size();
      data.insert(data.end(), {first.value.owner, first.value.local, 0});
      for (; item != items.end() && item->value == first.value; ++item) {
        data.push_back(item->destination);
        ++data[head + 2];
      }
      plan_.sendSource.push_back(first.source);
      plan_.sendHighest.push_back(data.back());
      ++message.count;
    }
    plan_.sends.push_back(message);
    return data;
  }

  const Pattern& pattern_;
  const NodeTopology& topology_;
  const Route& route_;
  ExchangePlan plan_;
  std::vector<Item> items_;
  std::vector<Arrival> arrivals_;
  ValueId lastUsed_{-1, -1};
};

/// Nothing, or why these ranks cannot begin.
std::string errorOf(const std::vector<Pattern>& patterns, const std::vector<int>& ranks, int numRanks,
                    const NodeTopology& topology) {
  if (topology.numRanks() != numRanks) {
    return "the topology has " + std::to_string(topology.numRanks()) + " ranks, the communicator " +
           std::to_string(numRanks);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (patterns.size() != ranks.size() || patterns[i].rank != ranks[i]) {
      return "the patterns given are not those of the ranks at hand (rank " + std::to_string(ranks[i]) + ")";
    }
    try {
      patterns[i].check(numRanks);
    } catch (...) {
      return Impl::textOf(std::current_exception());
    }
  }
  return {};
}

/// Calls work(i) for each rank of this process that has no error yet. What it throws is its error.
template <class Work>
void onEachRank(std::vector<std::string>& errors, const Work& work) {
  for (std::size_t i = 0; i < errors.size(); ++i) {
    try {
      if (errors[i].empty()) {
        work(i);
      }
    } catch (...) {
      errors[i] = Impl::textOf(std::current_exception());
    }
  }
}

std::string firstOf(const std::vector<std::string>& errors) {
  const auto found = std::find_if(errors.begin(), errors.end(), [](const auto& error) { return !error.empty(); });
  return found != errors.end() ? *found : std::string();
}

std::vector<ExchangePlan> taken(std::vector<PlanInProgress>& work) {
  std::vector<ExchangePlan> plans;
  for (PlanInProgress& one : work) {
    plans.push_back(one.take());
  }
  return plans;
}

/// The plan of a direct route.
ExchangePlan compileDirect(const NodeTopology& topology, const Route& route, const Pattern& pattern, int numRanks) {
  PlanInProgress work(pattern, topology, route, numRanks, true);
  work.compileDirect();
  const std::string error = work.finish();
  if (!error.empty()) {
    throw Error(error);
  }
  return work.take();
}

/// Plans of a direct route, for patterns that fit each other.
std::vector<ExchangePlan> compileDirect(const NodeTopology& topology, const Route& route,
                                        const std::vector<Pattern>& patterns, int numRanks) {
  std::vector<ExchangePlan> plans;
  for (const Pattern& pattern : patterns) {
    plans.push_back(compileDirect(topology, route, pattern, numRanks));
  }
  return plans;
}

/// Delivers the messages of a stage whose peers the route knows.
std::vector<std::vector<SetupMessage>> exchangeWithPeers(SetupTransport& transport, const Route& route, int stage,
                                                         const std::vector<Pattern>& patterns,
                                                         std::vector<std::vector<SetupMessage>> outbox) {
  std::vector<std::vector<int>> sources(patterns.size());
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    Route::Peers peers = route.peers(stage, patterns[i]);
    sources[i] = std::move(peers.sources);
    for (const SetupMessage& message : outbox[i]) {  // ascending
      const auto found = std::lower_bound(peers.expects.begin(), peers.expects.end(), message.peer);
      if (found != peers.expects.end() && *found == message.peer) {
        peers.expects.erase(found);
      }
    }
    for (const int peer : peers.expects) {
      outbox[i].push_back({peer, {}});
    }
  }
  return transport.exchangeKnown(std::move(outbox), sources);
}

/// Plans of any route, for patterns that may still not fit each other.
std::vector<ExchangePlan> compile(SetupTransport& transport, const NodeTopology& topology, const Route& route,
                                  const std::vector<Pattern>& patterns) {
  std::vector<PlanInProgress> work;
  for (const Pattern& pattern : patterns) {
    work.emplace_back(pattern, topology, route, transport.numRanks(), false);
  }
  std::vector<std::string> errors(patterns.size());
  for (int stage = 0; stage < route.numStages(); ++stage) {
    std::vector<std::vector<SetupMessage>> outbox(work.size());
    onEachRank(errors, [&](std::size_t i) { outbox[i] = work[i].send(stage); });
    const auto inbox = route.knowsPeers(stage) ? exchangeWithPeers(transport, route, stage, patterns, std::move(outbox))
                                               : transport.exchange(std::move(outbox));
    onEachRank(errors, [&](std::size_t i) { work[i].receive(stage, inbox[i]); });
  }
  const std::string cause = firstOf(errors);
  onEachRank(errors, [&](std::size_t i) { errors[i] = work[i].finish(); });
  try {
    transport.throwOnAllIfAny(firstOf(errors));
  } catch (const BadInput&) {
    transport.throwOnAllIfAny(cause);  // rather than what follows from it on another rank
    throw;
  }
  return taken(work);
}

}  // namespace

namespace Impl {

ExchangePlan standardPlan(const Pattern& pattern, const NodeTopology& topology, int numRanks) {
  pattern.check(numRanks);
  return compileDirect(topology, StandardRoute(), pattern, numRanks);
}

std::uint64_t balanceOf(const Pattern& pattern) {
  const auto hash = [](int owner, int local, int destination) {
    const std::uint64_t value = static_cast<std::uint64_t>(static_cast<std::uint32_t>(owner)) << 32 |
                                static_cast<std::uint32_t>(local);
    // One after the other: mix() takes the sum of its arguments.
    return mix(mix(0, value), static_cast<std::uint64_t>(destination));
  };
  std::uint64_t balance = 0;
  for (const Pattern::Send& send : pattern.sends) {
    balance += hash(pattern.rank, send.local, send.destination);
  }
  const ValueId* last = nullptr;
  for (const Pattern::Receive& receive : pattern.receives) {
    if (last == nullptr || *last != receive.value) {
      balance -= hash(receive.value.owner, receive.value.local, pattern.rank);
    }
    last = &receive.value;
  }
  return balance;
}

void throwMisfit(SetupTransport& transport, const NodeTopology& topology, const std::vector<Pattern>& patterns) {
  compile(transport, topology, StandardRoute(), patterns);
  throw BadInput("what ranks send is not what others need");  // not reached, unless hashes deceive
}

}  // namespace Impl

std::vector<ExchangePlan> buildPlans(SetupTransport& transport, const NodeTopology& topology, Route& route,
                                     const std::vector<Pattern>& patterns) {
  const std::vector<int>& ranks = transport.myRanks();
  const int numRanks = transport.numRanks();
  const std::string error = errorOf(patterns, ranks, numRanks, topology);
  std::uint64_t balance = 0;
  std::uint64_t common = Impl::mix(topology.fingerprint(), Impl::hashOf(route.name()));
  for (std::size_t i = 0; error.empty() && i < ranks.size(); ++i) {
    balance += Impl::balanceOf(patterns[i]);
  }
  // Rank 0 weighs against all others: 0 if all have the same.
  common *= ranks.empty() || ranks.front() != 0 ? -ranks.size() : numRanks - ranks.size();
  const std::vector<std::uint64_t> sums = transport.sum({error.empty() ? 0u : 1u, balance, common});
  if (sums[0] != 0) {
    transport.throwOnAllIfAny(error);
  }
  if (sums[2] != 0) {
    throw BadInput("the nodes and the route of a plan must be the same on all ranks, and are not");
  }
  if (sums[1] != 0) {
    Impl::throwMisfit(transport, topology, patterns);
  }
  return buildPlansAgain(transport, topology, route, patterns);
}

std::vector<ExchangePlan> buildPlansAgain(SetupTransport& transport, const NodeTopology& topology, Route& route,
                                          const std::vector<Pattern>& patterns) {
  if (route.isDirect()) {
    return compileDirect(topology, route, patterns, transport.numRanks());
  }
  route.prepare(transport, patterns);
  return compile(transport, topology, route, patterns);
}

}  // namespace Komvos
