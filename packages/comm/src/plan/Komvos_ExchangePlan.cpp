// How a plan is made: buildPlans.
//
// A rank keeps a list of (value, destination) pairs that it holds. In each stage it asks the route where each pair goes
// next. Pairs that leave are sorted by next hop and value: each hop becomes one message, each value in it one position
// of the send buffer, whatever number of destinations it serves there. The same lists travel along the hops as set-up
// messages, so that the receiver knows the positions of its receive buffer and which pairs it holds now. After the last
// stage what arrived is matched with what the pattern needs. Patterns that do not fit each other are errors on all
// ranks. PlanInProgress is one rank; under MPI there is one in each process, in memory there are all.
#include "Komvos_ExchangePlan.hpp"

#include <algorithm>
#include <tuple>

#include "Komvos_Error.hpp"

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
  int next;    // next hop of this stage
};

/// A value that has reached a rank that needs it.
struct Arrival {
  ValueId value;
  int position;
};

/// The plan of one rank in the making.
class PlanInProgress {
 public:
  PlanInProgress(const Pattern& pattern, const NodeTopology& topology, const Route& route, int numRanks)
      : pattern_(pattern), topology_(topology), route_(route) {
    plan_.route = route.name();
    plan_.rank = pattern.rank;
    plan_.numRanks = numRanks;
    plan_.numStages = route.numStages();
    plan_.numOwned = pattern.numOwned;
    plan_.numTarget = pattern.numTarget;
    for (const Pattern::Send& send : pattern.sends) {
      items_.push_back({{pattern.rank, send.local}, send.destination, send.local, -1});
    }
  }

  /// Groups the items that leave in this stage into messages. A set-up message lists, for each value: owner, owner's
  /// index, number of destinations, destinations.
  std::vector<SetupMessage> send(int stage) {
    const int here = plan_.rank;
    for (Item& item : items_) {
      item.next = route_.hop(stage, here, item.value.owner, item.destination);
    }
    const auto staying = [here](const Item& item) { return item.next == here; };
    const auto leaving = std::stable_partition(items_.begin(), items_.end(), staying);
    std::sort(leaving, items_.end(), [](const Item& a, const Item& b) {
      return std::tie(a.next, a.value, a.destination) < std::tie(b.next, b.value, b.destination);
    });
    std::vector<SetupMessage> announced;
    std::vector<int> destinations;
    for (auto item = leaving; item != items_.end();) {
      if (announced.empty() || announced.back().peer != item->next) {
        announced.push_back({item->next, {}});
        plan_.sends.push_back({item->next, stage, plan_.sendLength(), 0, topology_.sameNode(here, item->next)});
      }
      const Item& first = *item;
      destinations.clear();
      for (; item != items_.end() && item->next == first.next && item->value == first.value; ++item) {
        destinations.push_back(item->destination);
      }
      std::vector<int>& data = announced.back().data;
      data.insert(data.end(), {first.value.owner, first.value.local, static_cast<int>(destinations.size())});
      data.insert(data.end(), destinations.begin(), destinations.end());
      plan_.sendSource.push_back(first.source);
      plan_.sendHighest.push_back(destinations.back());
      ++plan_.sends.back().count;
    }
    items_.erase(leaving, items_.end());
    return announced;
  }

  void receive(int stage, const std::vector<SetupMessage>& announced) {
    for (const SetupMessage& incoming : announced) {
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
            items_.push_back({value, incoming.data[k], ~position, -1});
          }
        }
      }
      plan_.receives.push_back(message);
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
    std::sort(arrivals_.begin(), arrivals_.end(), [](const Arrival& a, const Arrival& b) { return a.value < b.value; });
    auto arrival = arrivals_.begin();
    std::size_t used = 0;
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
      const bool onNode = topology_.sameNode(plan_.rank, receive.value.owner);
      plan_.deliveries.push_back({arrival->position, receive.target, onNode});
    }
    if (used != arrivals_.size()) {
      return error(std::to_string(arrivals_.size()) + " values arrive, but " + std::to_string(used) + " are needed");
    }
    std::sort(plan_.deliveries.begin(), plan_.deliveries.end(),
              [](const ExchangePlan::Delivery& a, const ExchangePlan::Delivery& b) { return a.target < b.target; });
    return {};
  }

  ExchangePlan take() { return std::move(plan_); }

 private:
  const Pattern& pattern_;
  const NodeTopology& topology_;
  const Route& route_;
  ExchangePlan plan_;
  std::vector<Item> items_;
  std::vector<Arrival> arrivals_;
  ValueId lastUsed_{-1, -1};
};

/// Runs `step` for each i < count and agrees on the first error among all ranks.
template <class Step>
void agreed(SetupTransport& transport, std::size_t count, const Step& step) {
  std::string error;
  for (std::size_t i = 0; i < count && error.empty(); ++i) {
    try {
      error = step(i);
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
  }
  transport.throwOnAllIfAny(error);
}

}  // namespace

std::vector<ExchangePlan> buildPlans(SetupTransport& transport, const NodeTopology& topology, Route& route,
                                     const std::vector<Pattern>& patterns) {
  const std::vector<int>& ranks = transport.myRanks();
  const int numRanks = transport.numRanks();
  agreed(transport, ranks.size(), [&](std::size_t i) -> std::string {
    if (topology.numRanks() != numRanks) {
      return "the topology has " + std::to_string(topology.numRanks()) + " ranks, the communicator " +
             std::to_string(numRanks);
    }
    if (patterns.size() != ranks.size() || patterns[i].rank != ranks[i]) {
      return "the patterns given are not those of the ranks at hand (rank " + std::to_string(ranks[i]) + ")";
    }
    patterns[i].check(numRanks);
    return {};
  });
  route.prepare(transport, patterns);
  std::vector<PlanInProgress> work;
  work.reserve(ranks.size());
  for (const Pattern& pattern : patterns) {
    work.emplace_back(pattern, topology, route, numRanks);
  }
  for (int stage = 0; stage < route.numStages(); ++stage) {
    std::vector<std::vector<SetupMessage>> outbox(ranks.size());
    agreed(transport, ranks.size(), [&](std::size_t i) -> std::string {
      outbox[i] = work[i].send(stage);
      return {};
    });
    const auto inbox = transport.exchange(std::move(outbox));
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      work[i].receive(stage, inbox[i]);
    }
  }
  agreed(transport, ranks.size(), [&](std::size_t i) { return work[i].finish(); });
  std::vector<ExchangePlan> plans;
  for (PlanInProgress& one : work) {
    plans.push_back(one.take());
  }
  return plans;
}

}  // namespace Komvos
