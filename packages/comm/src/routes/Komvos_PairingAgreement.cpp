// How the pairs of nodes are agreed on: NodePairing::agree.
//
// Each node's lowest rank, its leader, decides for its node. Four rounds of set-up messages, in which everybody knows
// from the patterns who writes to him, so that nobody waits for others:
//   1. every rank tells its leader what it sends to and needs from each other node;
//   2. leaders cut the traffic to each node into parts, choose the sender of each part, and tell the leader of that
//   node
//      the volumes of the parts;
//   3. leaders choose the receiver of each part, and answer;
//   4. leaders publish sender and receiver of each part to the ranks of their node.
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
  int firstLocal;   // sending end only
  int bestLocal;    // local process with the largest share
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
  std::vector<std::pair<int, int>> sent;  // (node, owned value)
  for (const Pattern::Send& send : pattern.sends) {
    const int node = topology.nodeOf(send.destination);
    if (node != home) {
      sent.emplace_back(node, send.local);
    }
  }
  std::sort(sent.begin(), sent.end());
  sent.erase(std::unique(sent.begin(), sent.end()), sent.end());
  Shares shares;
  for (const auto& [node, local] : sent) {
    ++shares.sent[node];
  }
  const ValueId* last = nullptr;
  for (const Pattern::Receive& receive : pattern.receives) {  // sorted by value
    const int node = topology.nodeOf(receive.value.owner);
    if (node != home && (last == nullptr || *last != receive.value)) {
      ++shares.received[node];
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

  /// Calls take(home node, other node, part) for each part that a rank of this process has learned of.
  template <class Take>
  void forEachPart(const Take& take) const;

 private:
  using Outbox = std::vector<std::vector<SetupMessage>>;

  /// What the leader of one node knows.
  struct Leader {
    SharesByNode owned;             // what its ranks send to each other node
    SharesByNode needed;            // what they need of each
    std::vector<TrafficPart> sent;  // by node, then by origin
    std::vector<int> senders;       // local process of each part of `sent`
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
  std::vector<int> publishedTable(std::size_t i) const;

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

/// Round 2. A message to the leader of another node holds the volumes of the parts that go there.
void PairingAgreement::chooseSenders(long splitValues) {
  Outbox outbox(ranks_.size());
  Sources sources(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Leader& leader = leaders_[i];
    sources[i] = leadersOf(leader.needed);
    for (const auto& [node, shares] : leader.owned) {
      const int maxParts = std::min(numLocal(i), topology_.numRanksOn(node));
      SetupMessage message{topology_.leaderOf(node), {}};
      for (const TrafficPart& part : cut(node, shares, maxParts, splitValues)) {
        leader.sent.push_back(part);
        message.data.push_back(static_cast<int>(part.volume));
      }
      outbox[i].push_back(std::move(message));
    }
    leader.senders = assign(leader.sent, numLocal(i), pairing_, End::send);
  }
  exchange(std::move(outbox), sources);
}

/// The parts that other nodes have announced.
std::vector<TrafficPart> PairingAgreement::receivedParts(std::size_t i) const {
  std::vector<TrafficPart> parts;
  for (const SetupMessage& message : inbox_[i]) {
    const int node = topology_.nodeOf(message.peer);
    const long volume = std::accumulate(message.data.begin(), message.data.end(), 0L);
    const std::vector<int> best = byNeed(leaders_[i].needed.at(node), numLocal(i));
    for (std::size_t k = 0; k < message.data.size(); ++k) {
      parts.push_back({node, volume, message.data[k], 0, best[k]});
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
    const std::vector<TrafficPart> parts = receivedParts(i);
    const std::vector<int> receivers = assign(parts, numLocal(i), pairing_, End::receive);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (k == 0 || parts[k].node != parts[k - 1].node) {
        outbox[i].push_back({topology_.leaderOf(parts[k].node), {}});
      }
      outbox[i].back().data.push_back(topology_.rankOn(homeOf(i), receivers[k]));
    }
  }
  exchange(std::move(outbox), sources);
}

/// (destination node, first origin, sender, receiver) of each part that leaves this node.
std::vector<int> PairingAgreement::publishedTable(std::size_t i) const {
  std::map<int, const std::vector<int>*> receivers;  // by node
  for (const SetupMessage& message : inbox_[i]) {
    receivers[topology_.nodeOf(message.peer)] = &message.data;
  }
  const Leader& leader = leaders_[i];
  std::vector<int> table;
  std::size_t first = 0;  // part of the same node
  for (std::size_t k = 0; k < leader.sent.size(); ++k) {
    const TrafficPart& part = leader.sent[k];
    first = part.node == leader.sent[first].node ? first : k;
    table.insert(table.end(), {part.node, part.firstLocal, topology_.rankOn(homeOf(i), leader.senders[k]),
                               receivers.at(part.node)->at(k - first)});
  }
  return table;
}

/// Round 4.
void PairingAgreement::publish() {
  Outbox outbox(ranks_.size());
  Sources sources(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    sources[i] = {topology_.leaderOf(homeOf(i))};
    const std::vector<int> table = publishedTable(i);
    for (int local = 0; isLeader(i) && local < numLocal(i); ++local) {
      outbox[i].push_back({topology_.rankOn(homeOf(i), local), table});
    }
  }
  exchange(std::move(outbox), sources);
}

template <class Take>
void PairingAgreement::forEachPart(const Take& take) const {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (const SetupMessage& message : inbox_[i]) {
      for (std::size_t k = 0; k < message.data.size(); k += 4) {
        const NodePairing::Part part{message.data[k + 1], message.data[k + 2], message.data[k + 3]};
        take(homeOf(i), message.data[k], part);
      }
    }
  }
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
  agreement.forEachPart([&](int from, int to, const Part& part) { result.pairs_[key(from, to)].push_back(part); });
  return result;
}

}  // namespace Komvos
