// How the pairs of nodes are agreed on: NodePairing::agree.
//
// Each node's lowest rank, its leader, decides for its node. Four rounds of set-up messages, in which everybody knows
// from the patterns who writes to him, so that nobody waits for others:
//   1. every rank tells its leader what it sends to and needs from each other node;
//   2. leaders cut the traffic to each node into parts, choose the sender of each part, and tell the leader of that
//   node the volumes of the parts and their senders;
//   3. leaders choose the receiver of each part, and answer;
//   4. leaders publish sender and receiver of each part to the ranks of their node, for parts that leave and that
//   arrive, and tell each rank whose values it gathers. With that every rank knows who sends to it in each step.
// No rank talks to any other, so no rank sends a number of messages that grows with the machine. All choices follow
// from volumes and node numbers alone: both ends come to the same order without talking about it. Under MPI this
// process is one rank; in memory it is all of them, and each list below has an entry for each.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_NodePairing.hpp"
#include "Komvos_SortRuns.hpp"

namespace Komvos {

namespace {

/// What one local process owns of, or needs of, the traffic with another node.
struct Share {
  int local;
  int values;
};
using SharesByNode = std::map<int, std::vector<Share>>;  // by ascending local process

/// A part of the traffic with one other node, as a leader at either end sees it.
struct TrafficPart {
  int node;
  long pairVolume;  // distinct values between the two nodes
  long volume;      // of this part
  int firstLocal;   // lowest local process among its origins
  int bestLocal;    // local process of this end with the largest share
  int sender = -1;  // receiving end only: a rank
};

enum class End { send, receive };

/// Gives each part a local process of a node with `numLocal` of them; to the parts of one pair different ones.
/// \return local process of each part.
std::vector<int> assign(const std::vector<TrafficPart>& parts, int numLocal, Pairing pairing, End end) {
  std::vector<int> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_tuple(-parts[a].pairVolume, parts[a].node, -parts[a].volume) <
           std::make_tuple(-parts[b].pairVolume, parts[b].node, -parts[b].volume);
  });
  std::vector<int> local(parts.size());
  std::vector<std::pair<bool, long>> load(numLocal);  // (has a part of this pair, values so far)
  int node = -1;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const TrafficPart& part = parts[order[k]];
    int process = static_cast<int>(k % numLocal);  // counted from the end where the paper starts
    if (pairing == Pairing::leastLoaded) {
      for (auto& entry : load) {
        entry.first = entry.first && part.node == node;
      }
      process = static_cast<int>(std::min_element(load.begin(), load.end()) - load.begin());
      load[process] = {true, load[process].second + part.volume};
    }
    node = part.node;
    local[order[k]] = end == End::send ? process : numLocal - 1 - process;
    if (pairing == Pairing::majority) {
      local[order[k]] = part.bestLocal;
    }
  }
  return local;
}

/// Cuts what the local processes own of the traffic to `node` into at most `maxParts` intervals of processes.
std::vector<TrafficPart> cut(int node, const std::vector<Share>& shares, int maxParts, long splitValues) {
  long volume = 0;
  for (const Share& share : shares) {
    volume += share.values;
  }
  const long numParts = std::min<long>(maxParts, (volume - 1) / splitValues + 1);
  std::vector<TrafficPart> parts;
  long before = 0;
  long last = -1;
  int best = 0;
  for (const Share& share : shares) {
    const long part = (2 * before + share.values) * numParts / (2 * volume);  // where the middle of its values falls
    if (part != last) {
      parts.push_back({node, volume, 0, share.local, share.local});
      best = 0;
    }
    last = part;
    before += share.values;
    parts.back().volume += share.values;
    if (share.values > best) {
      best = share.values;
      parts.back().bestLocal = share.local;
    }
  }
  return parts;
}

/// Local processes by falling share, ties from the highest.
std::vector<int> byNeed(const std::vector<Share>& shares, int numLocal) {
  std::vector<std::pair<int, int>> needs;  // (values, local)
  for (int local = 0; local < numLocal; ++local) {
    needs.emplace_back(0, local);
  }
  for (const Share& share : shares) {
    needs[share.local].first = share.values;
  }
  std::sort(needs.rbegin(), needs.rend());
  std::vector<int> order;
  for (const auto& need : needs) {
    order.push_back(need.second);
  }
  return order;
}

/// What rank `pattern.rank` sends to and receives from each other node: distinct values, by node.
struct Shares {
  std::map<int, int> sent;
  std::map<int, int> received;
};

Shares sharesOf(const Pattern& pattern, const NodeTopology& topology) {
  const int home = topology.nodeOf(pattern.rank);
  std::map<int, std::vector<int>> toNode;  // owned values, ascending for each destination
  std::vector<int>* values = nullptr;
  int destination = -1;
  for (const Pattern::Send& send : pattern.sends) {  // sorted by destination, then value
    if (std::exchange(destination, send.destination) != send.destination) {
      const int node = topology.nodeOf(send.destination);
      values = node != home ? &toNode[node] : nullptr;
    }
    if (values != nullptr) {
      values->push_back(send.local);
    }
  }
  Shares shares;
  for (auto& [node, sent] : toNode) {
    Impl::sortRuns(sent.begin(), sent.end());
    shares.sent[node] = static_cast<int>(std::unique(sent.begin(), sent.end()) - sent.begin());
  }
  const ValueId* last = nullptr;
  int* count = nullptr;
  for (const Pattern::Receive& receive : pattern.receives) {  // sorted by value
    if (last == nullptr || last->owner != receive.value.owner) {
      const int node = topology.nodeOf(receive.value.owner);
      count = node != home ? &shares.received[node] : nullptr;
    }
    if (count != nullptr && (last == nullptr || *last != receive.value)) {
      ++*count;
    }
    last = &receive.value;
  }
  return shares;
}

/// The four rounds, and what leaders remember between them.
class PairingAgreement {
 public:
  PairingAgreement(SetupTransport& transport, const NodeTopology& topology, Pairing pairing)
      : transport_(transport),
        topology_(topology),
        pairing_(pairing),
        ranks_(transport.myRanks()),
        leaders_(ranks_.size()) {}

  void tellLeaders(const std::vector<Pattern>& patterns);
  void chooseSenders(long splitValues);
  void chooseReceivers();
  void publish();

  /// What the leader of its node has published to rank `ranks_[i]`, in order.
  const std::vector<int>& published(std::size_t i) const { return inbox_[i].front().data; }

 private:
  using Outbox = std::vector<std::vector<SetupMessage>>;

  /// What the leader of one node knows.
  struct Leader {
    SharesByNode owned;                 // what its ranks send to each other node
    SharesByNode needed;                // what they need of each
    std::vector<TrafficPart> sent;      // by node, then by origin
    std::vector<int> senders;           // local process of each part of `sent`
    std::vector<TrafficPart> received;  // by leader of the other node, then by origin
    std::vector<int> receivers;         // local process of each part of `received`
  };

  using Sources = std::vector<std::vector<int>>;

  int homeOf(std::size_t i) const { return topology_.nodeOf(ranks_[i]); }
  int numLocal(std::size_t i) const { return topology_.numRanksOn(homeOf(i)); }
  bool isLeader(std::size_t i) const { return topology_.leaderOf(homeOf(i)) == ranks_[i]; }
  std::vector<int> leadersOf(const SharesByNode& nodes) const;
  void exchange(Outbox outbox, const Sources& sources) {
    inbox_ = transport_.exchangeKnown(std::move(outbox), sources);
  }
  std::vector<TrafficPart> receivedParts(std::size_t i) const;
  std::vector<int> partsTable(std::size_t i) const;
  std::vector<int> originsOf(std::size_t i, int local) const;

  SetupTransport& transport_;
  const NodeTopology& topology_;
  const Pairing pairing_;
  const std::vector<int>& ranks_;
  std::vector<Leader> leaders_;
  Outbox inbox_;  // of the last round
};

/// Round 1. A message holds the number of destinations, then (node, share) of each, then (node, share) of each origin.
void PairingAgreement::tellLeaders(const std::vector<Pattern>& patterns) {
  Outbox outbox(ranks_.size());
  Sources sources(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (int local = 0; isLeader(i) && local < numLocal(i); ++local) {
      sources[i].push_back(topology_.rankOn(homeOf(i), local));
    }
    const Shares shares = sharesOf(patterns[i], topology_);
    SetupMessage message{topology_.leaderOf(homeOf(i)), {static_cast<int>(shares.sent.size())}};
    for (const auto* part : {&shares.sent, &shares.received}) {
      for (const auto& [node, share] : *part) {
        message.data.insert(message.data.end(), {node, share});
      }
    }
    outbox[i].push_back(std::move(message));
  }
  exchange(std::move(outbox), sources);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (const SetupMessage& message : inbox_[i]) {
      const std::size_t firstReceived = 1 + 2 * static_cast<std::size_t>(message.data[0]);
      for (std::size_t k = 1; k < message.data.size(); k += 2) {
        SharesByNode& shares = k < firstReceived ? leaders_[i].owned : leaders_[i].needed;
        shares[message.data[k]].push_back({topology_.localRankOf(message.peer), message.data[k + 1]});
      }
    }
  }
}

/// Ascending.
std::vector<int> PairingAgreement::leadersOf(const SharesByNode& nodes) const {
  std::vector<int> leaders;
  for (const auto& [node, shares] : nodes) {
    leaders.push_back(topology_.leaderOf(node));
  }
  std::sort(leaders.begin(), leaders.end());
  return leaders;
}

/// Round 2. A message to the leader of another node holds volume, first origin and sender of each part that goes there.
void PairingAgreement::chooseSenders(long splitValues) {
  Outbox outbox(ranks_.size());
  Sources sources(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Leader& leader = leaders_[i];
    sources[i] = leadersOf(leader.needed);
    for (const auto& [node, shares] : leader.owned) {
      const int maxParts = std::min(numLocal(i), topology_.numRanksOn(node));
      for (const TrafficPart& part : cut(node, shares, maxParts, splitValues)) {
        leader.sent.push_back(part);
      }
    }
    leader.senders = assign(leader.sent, numLocal(i), pairing_, End::send);
    for (std::size_t k = 0; k < leader.sent.size(); ++k) {
      const TrafficPart& part = leader.sent[k];
      if (k == 0 || part.node != leader.sent[k - 1].node) {
        outbox[i].push_back({topology_.leaderOf(part.node), {}});
      }
      std::vector<int>& data = outbox[i].back().data;
      data.insert(data.end(),
                  {static_cast<int>(part.volume), part.firstLocal, topology_.rankOn(homeOf(i), leader.senders[k])});
    }
  }
  exchange(std::move(outbox), sources);
}

/// The parts that other nodes have announced.
std::vector<TrafficPart> PairingAgreement::receivedParts(std::size_t i) const {
  std::vector<TrafficPart> parts;
  for (const SetupMessage& message : inbox_[i]) {
    const int node = topology_.nodeOf(message.peer);
    const std::size_t numParts = message.data.size() / 3;
    long volume = 0;
    for (std::size_t k = 0; k < numParts; ++k) {
      volume += message.data[3 * k];
    }
    const std::vector<int> best = byNeed(leaders_[i].needed.at(node), numLocal(i));
    for (std::size_t k = 0; k < numParts; ++k) {
      const int* part = &message.data[3 * k];
      parts.push_back({node, volume, part[0], part[1], best[k], part[2]});
    }
  }
  return parts;
}

/// Round 3. The answer holds the receiving rank of each part, in the order of their announcement.
void PairingAgreement::chooseReceivers() {
  Outbox outbox(ranks_.size());
  Sources sources(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    sources[i] = leadersOf(leaders_[i].owned);
    const std::vector<TrafficPart>& parts = leaders_[i].received = receivedParts(i);
    const std::vector<int>& receivers = leaders_[i].receivers = assign(parts, numLocal(i), pairing_, End::receive);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (k == 0 || parts[k].node != parts[k - 1].node) {
        outbox[i].push_back({topology_.leaderOf(parts[k].node), {}});
      }
      outbox[i].back().data.push_back(topology_.rankOn(homeOf(i), receivers[k]));
    }
  }
  exchange(std::move(outbox), sources);
}

/// The number of parts that leave, of those that arrive, and (other node, first origin, sender, receiver) of each.
std::vector<int> PairingAgreement::partsTable(std::size_t i) const {
  std::map<int, const std::vector<int>*> receivers;  // by node
  for (const SetupMessage& message : inbox_[i]) {
    receivers[topology_.nodeOf(message.peer)] = &message.data;
  }
  const Leader& leader = leaders_[i];
  std::vector<int> table{static_cast<int>(leader.sent.size()), static_cast<int>(leader.received.size())};
  std::size_t first = 0;  // part of the same node
  for (std::size_t k = 0; k < leader.sent.size(); ++k) {
    const TrafficPart& part = leader.sent[k];
    first = part.node == leader.sent[first].node ? first : k;
    table.insert(table.end(), {part.node, part.firstLocal, topology_.rankOn(homeOf(i), leader.senders[k]),
                               receivers.at(part.node)->at(k - first)});
  }
  for (std::size_t k = 0; k < leader.received.size(); ++k) {
    const TrafficPart& part = leader.received[k];
    table.insert(table.end(),
                 {part.node, part.firstLocal, part.sender, topology_.rankOn(homeOf(i), leader.receivers[k])});
  }
  return table;
}

/// The other ranks of the node whose values local process `local` gathers, ascending.
std::vector<int> PairingAgreement::originsOf(std::size_t i, int local) const {
  const Leader& leader = leaders_[i];
  std::vector<int> origins;
  for (std::size_t k = 0; k < leader.sent.size(); ++k) {
    if (leader.senders[k] != local) {
      continue;
    }
    const TrafficPart& part = leader.sent[k];
    const bool isLast = k + 1 == leader.sent.size() || leader.sent[k + 1].node != part.node;
    const int end = isLast ? numLocal(i) : leader.sent[k + 1].firstLocal;
    for (const Share& share : leader.owned.at(part.node)) {
      if (share.local >= part.firstLocal && share.local < end && share.local != local) {
        origins.push_back(topology_.rankOn(homeOf(i), share.local));
      }
    }
  }
  std::sort(origins.begin(), origins.end());
  origins.erase(std::unique(origins.begin(), origins.end()), origins.end());
  return origins;
}

/// Round 4. A message holds the table of the node's parts, then the origins of the one who gets it.
void PairingAgreement::publish() {
  Outbox outbox(ranks_.size());
  Sources sources(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    sources[i] = {topology_.leaderOf(homeOf(i))};
    if (!isLeader(i)) {
      continue;
    }
    const std::vector<int> table = partsTable(i);
    for (int local = 0; local < numLocal(i); ++local) {
      outbox[i].push_back({topology_.rankOn(homeOf(i), local), table});
      const std::vector<int> origins = originsOf(i, local);
      std::vector<int>& data = outbox[i].back().data;
      data.insert(data.end(), origins.begin(), origins.end());
    }
  }
  exchange(std::move(outbox), sources);
}

}  // namespace

NodePairing NodePairing::agree(SetupTransport& transport, const NodeTopology& topology,
                               const std::vector<Pattern>& patterns, Pairing pairing, long splitValues) {
  PairingAgreement agreement(transport, topology, pairing);
  agreement.tellLeaders(patterns);
  agreement.chooseSenders(splitValues);
  agreement.chooseReceivers();
  agreement.publish();
  NodePairing result;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    result.learn(patterns[i].rank, topology.nodeOf(patterns[i].rank), agreement.published(i));
  }
  return result;
}

}  // namespace Komvos
