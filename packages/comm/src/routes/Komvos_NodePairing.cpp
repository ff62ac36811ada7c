#include "Komvos_NodePairing.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos {

Pairing parsePairing(const std::string& text) {
  for (const Pairing pairing : {Pairing::byVolume, Pairing::leastLoaded, Pairing::majority}) {
    if (text == toString(pairing)) {
      return pairing;
    }
  }
  throw BadInput("pairing '" + text + "' is not one of by-volume, least-loaded, majority");
}

std::string toString(Pairing pairing) {
  switch (pairing) {
    case Pairing::leastLoaded:
      return "least-loaded";
    case Pairing::majority:
      return "majority";
    default:
      return "by-volume";
  }
}

const NodePairing::Part& NodePairing::partOf(int from, int to, int local) const {
  const auto found = pairs_.find(key(from, to));
  if (found == pairs_.end()) {
    throw Error("NodePairing: no pair for values from node " + std::to_string(from) + " to node " + std::to_string(to));
  }
  const std::vector<Part>& parts = found->second;
  const auto after = std::upper_bound(parts.begin() + 1, parts.end(), local,
                                      [](int origin, const Part& part) { return origin < part.firstLocal; });
  return *(after - 1);
}

namespace {

/// What one local process owns of, or needs of, the traffic with another node.
struct Share {
  int local;
  int values;
};
using SharesByNode = std::map<int, std::vector<Share>>;  // by ascending local process

/// A part of the traffic with one other node, as a leader at either end sees it.
struct Load {
  int node;
  long pairVolume;  // distinct values between the two nodes
  long volume;      // of this part
  int firstLocal;   // sending end only
  int bestLocal;    // local process with the largest share
};

enum class End { send, receive };

/// Gives each part a local process of a node with `numLocal` of them; to the parts of one pair different ones.
/// \return local process of each part.
std::vector<int> assign(const std::vector<Load>& parts, int numLocal, Pairing pairing, End end) {
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
    const Load& part = parts[order[k]];
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

/// Cuts what the local processes own of the traffic to `node` into at most `maxParts` runs of processes.
std::vector<Load> cut(int node, const std::vector<Share>& shares, int maxParts, long splitValues) {
  long volume = 0;
  for (const Share& share : shares) {
    volume += share.values;
  }
  const long numParts = std::min<long>(maxParts, (volume - 1) / splitValues + 1);
  std::vector<Load> parts;
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

/// The error of patterns that do not fit each other.
std::string oneSided(int from, int to, const std::string& missing) {
  return "no rank " + missing + " the values that travel from node " + std::to_string(from) + " to node " +
         std::to_string(to) + " by the pattern of the other side";
}

}  // namespace

NodePairing NodePairing::agree(SetupTransport& transport, const NodeTopology& topology,
                               const std::vector<Pattern>& patterns, Pairing pairing, long splitValues) {
  const std::vector<int>& ranks = transport.myRanks();
  const std::size_t count = ranks.size();
  std::vector<std::vector<SetupMessage>> outbox(count);

  // 1. Every rank with off-node traffic tells its leader: number of destinations, then (node, share) of each, then
  // (node, share) of each origin.
  for (std::size_t i = 0; i < count; ++i) {
    const Shares shares = sharesOf(patterns[i], topology);
    if (shares.sent.empty() && shares.received.empty()) {
      continue;
    }
    SetupMessage packet{topology.leaderOf(topology.nodeOf(ranks[i])), {static_cast<int>(shares.sent.size())}};
    for (const auto* part : {&shares.sent, &shares.received}) {
      for (const auto& [node, share] : *part) {
        packet.data.insert(packet.data.end(), {node, share});
      }
    }
    outbox[i].push_back(std::move(packet));
  }
  auto inbox = transport.exchange(std::move(outbox));

  // 2. Leaders cut the traffic to each node into parts, choose senders, and tell the leader of each destination the
  // volumes of the parts.
  outbox.assign(count, {});
  std::vector<SharesByNode> needed(count);
  std::vector<std::vector<Load>> sent(count);  // parts by node, then by origin
  std::vector<std::vector<int>> sender(count);
  for (std::size_t i = 0; i < count; ++i) {
    SharesByNode owned;
    for (const SetupMessage& packet : inbox[i]) {
      const std::size_t firstReceived = 1 + 2 * static_cast<std::size_t>(packet.data[0]);
      for (std::size_t k = 1; k < packet.data.size(); k += 2) {
        SharesByNode& shares = k < firstReceived ? owned : needed[i];
        shares[packet.data[k]].push_back({topology.localRankOf(packet.peer), packet.data[k + 1]});
      }
    }
    const int numLocal = topology.numRanksOn(topology.nodeOf(ranks[i]));
    for (const auto& [node, shares] : owned) {
      const int maxParts = std::min(numLocal, topology.numRanksOn(node));
      SetupMessage packet{topology.leaderOf(node), {}};
      for (const Load& part : cut(node, shares, maxParts, splitValues)) {
        sent[i].push_back(part);
        packet.data.push_back(static_cast<int>(part.volume));
      }
      outbox[i].push_back(std::move(packet));
    }
    sender[i] = assign(sent[i], numLocal, pairing, End::send);
  }
  inbox = transport.exchange(std::move(outbox));

  // 3. Leaders choose receivers, and answer.
  outbox.assign(count, {});
  std::string error;
  for (std::size_t i = 0; i < count; ++i) {
    const int home = topology.nodeOf(ranks[i]);
    const int numLocal = topology.numRanksOn(home);
    std::vector<Load> parts;
    for (const SetupMessage& packet : inbox[i]) {
      const int node = topology.nodeOf(packet.peer);
      const auto shares = needed[i].find(node);
      if (shares == needed[i].end()) {
        error = oneSided(node, home, "needs");
        continue;
      }
      const long volume = std::accumulate(packet.data.begin(), packet.data.end(), 0L);
      const std::vector<int> best = byNeed(shares->second, numLocal);
      for (std::size_t k = 0; k < packet.data.size(); ++k) {
        parts.push_back({node, volume, packet.data[k], 0, best[k]});
      }
      needed[i].erase(shares);
    }
    if (!needed[i].empty()) {
      error = oneSided(needed[i].begin()->first, home, "sends");
    }
    const std::vector<int> receiver = assign(parts, numLocal, pairing, End::receive);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (k == 0 || parts[k].node != parts[k - 1].node) {
        outbox[i].push_back({topology.leaderOf(parts[k].node), {}});
      }
      outbox[i].back().data.push_back(topology.rankOn(home, receiver[k]));
    }
  }
  transport.throwOnAllIfAny(error);
  inbox = transport.exchange(std::move(outbox));

  // 4. Leaders publish (destination node, first origin, sender, receiver) of each part on their node.
  outbox.assign(count, {});
  for (std::size_t i = 0; i < count; ++i) {
    const int home = topology.nodeOf(ranks[i]);
    std::map<int, const std::vector<int>*> receivers;
    for (const SetupMessage& packet : inbox[i]) {
      receivers[topology.nodeOf(packet.peer)] = &packet.data;
    }
    std::vector<int> table;
    std::size_t first = 0;
    for (std::size_t k = 0; k < sent[i].size(); ++k) {
      const Load& part = sent[i][k];
      first = part.node == sent[i][first].node ? first : k;
      table.insert(table.end(), {part.node, part.firstLocal, topology.rankOn(home, sender[i][k]),
                                 receivers.at(part.node)->at(k - first)});
    }
    for (int local = 0; !table.empty() && local < topology.numRanksOn(home); ++local) {
      outbox[i].push_back({topology.rankOn(home, local), table});
    }
  }
  inbox = transport.exchange(std::move(outbox));

  NodePairing result;
  for (std::size_t i = 0; i < count; ++i) {
    const int home = topology.nodeOf(ranks[i]);
    for (const SetupMessage& packet : inbox[i]) {
      for (std::size_t k = 0; k < packet.data.size(); k += 4) {
        result.pairs_[key(home, packet.data[k])].push_back(
            {packet.data[k + 1], packet.data[k + 2], packet.data[k + 3]});
      }
    }
  }
  return result;
}

}  // namespace Komvos
