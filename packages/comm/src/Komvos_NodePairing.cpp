#include "Komvos_NodePairing.hpp"

#include <algorithm>
#include <map>

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

const NodePairing::Ends& NodePairing::find(int from, int to) const {
  const auto found = pairs_.find(key(from, to));
  if (found == pairs_.end()) {
    throw Error("NodePairing: no pair for values from node " + std::to_string(from) + " to node " + std::to_string(to));
  }
  return found->second;
}

namespace {

/// Traffic with one other node, as a leader sees it.
struct Partner {
  int node;
  long volume;    // distinct values between the two nodes
  int bestLocal;  // local process with the largest share
  int bestShare;
};

enum class End { send, receive };

/// Gives each partner a local process of a node with `numLocal` of them. \return local process of each partner.
std::vector<int> assign(const std::vector<Partner>& partners, int numLocal, Pairing pairing, End end) {
  std::vector<int> order(partners.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int>(i);
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return partners[a].volume != partners[b].volume ? partners[a].volume > partners[b].volume
                                                    : partners[a].node < partners[b].node;
  });
  std::vector<int> local(partners.size());
  std::vector<long> load(numLocal, 0);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Partner& partner = partners[order[k]];
    int process = static_cast<int>(k % numLocal);  // counted from the end where the paper starts
    if (pairing == Pairing::leastLoaded) {
      process = static_cast<int>(std::min_element(load.begin(), load.end()) - load.begin());
      load[process] += partner.volume;
    }
    local[order[k]] = end == End::send ? process : numLocal - 1 - process;
    if (pairing == Pairing::majority) {
      local[order[k]] = partner.bestLocal;
    }
  }
  return local;
}

/// Merges one process' share of the traffic with a node. Shares arrive by ascending local process.
void addShare(std::map<int, Partner>& partners, int node, int local, int share, End end) {
  Partner& partner = partners.try_emplace(node, Partner{node, 0, local, -1}).first->second;
  partner.volume += share;
  if (share > partner.bestShare || (share == partner.bestShare && end == End::receive)) {
    partner.bestShare = share;
    partner.bestLocal = local;
  }
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

std::vector<Partner> values(const std::map<int, Partner>& partners) {
  std::vector<Partner> list;
  for (const auto& entry : partners) {
    list.push_back(entry.second);
  }
  return list;
}

/// The error of patterns that do not fit each other.
std::string oneSided(int from, int to, const std::string& missing) {
  return "no rank " + missing + " the values that travel from node " + std::to_string(from) + " to node " +
         std::to_string(to) + " by the pattern of the other side";
}

}  // namespace

NodePairing NodePairing::agree(Transport& transport, const NodeTopology& topology, const std::vector<Pattern>& patterns,
                               Pairing pairing) {
  const std::vector<int>& ranks = transport.myRanks();
  const std::size_t count = ranks.size();
  std::vector<std::vector<Packet>> outbox(count);

  // 1. Every rank with off-node traffic tells its leader: number of destinations, then (node, share) of each, then
  // (node, share) of each origin.
  for (std::size_t i = 0; i < count; ++i) {
    const Shares shares = sharesOf(patterns[i], topology);
    if (shares.sent.empty() && shares.received.empty()) {
      continue;
    }
    Packet packet{topology.leaderOf(topology.nodeOf(ranks[i])), {static_cast<int>(shares.sent.size())}};
    for (const auto* part : {&shares.sent, &shares.received}) {
      for (const auto& [node, share] : *part) {
        packet.data.insert(packet.data.end(), {node, share});
      }
    }
    outbox[i].push_back(std::move(packet));
  }
  auto inbox = transport.exchange(std::move(outbox));

  // 2. Leaders choose senders, and tell the leader of each destination the volume.
  outbox.assign(count, {});
  std::vector<std::map<int, Partner>> to(count);
  std::vector<std::map<int, Partner>> from(count);
  std::vector<std::vector<int>> sender(count);  // by order of `to`
  for (std::size_t i = 0; i < count; ++i) {
    for (const Packet& packet : inbox[i]) {
      const int local = topology.localRankOf(packet.peer);
      const std::size_t firstReceived = 1 + 2 * static_cast<std::size_t>(packet.data[0]);
      for (std::size_t k = 1; k < packet.data.size(); k += 2) {
        const End end = k < firstReceived ? End::send : End::receive;
        addShare(end == End::send ? to[i] : from[i], packet.data[k], local, packet.data[k + 1], end);
      }
    }
    const int numLocal = topology.numRanksOn(topology.nodeOf(ranks[i]));
    sender[i] = assign(values(to[i]), numLocal, pairing, End::send);
    for (const auto& [node, partner] : to[i]) {
      outbox[i].push_back({topology.leaderOf(node), {static_cast<int>(partner.volume)}});
    }
  }
  inbox = transport.exchange(std::move(outbox));

  // 3. Leaders choose receivers, and answer.
  outbox.assign(count, {});
  std::string error;
  for (std::size_t i = 0; i < count; ++i) {
    for (const Packet& packet : inbox[i]) {
      const int node = topology.nodeOf(packet.peer);
      const auto partner = from[i].find(node);
      if (partner == from[i].end()) {
        error = oneSided(node, topology.nodeOf(ranks[i]), "needs");
        continue;
      }
      partner->second.volume = packet.data[0];
    }
    const std::vector<Partner> partners = values(from[i]);
    const std::vector<int> local =
        assign(partners, topology.numRanksOn(topology.nodeOf(ranks[i])), pairing, End::receive);
    for (std::size_t k = 0; k < partners.size(); ++k) {
      outbox[i].push_back({topology.leaderOf(partners[k].node), {local[k]}});
    }
  }
  transport.agree(error);
  inbox = transport.exchange(std::move(outbox));

  // 4. Leaders publish (destination node, sender, receiver) on their node.
  outbox.assign(count, {});
  for (std::size_t i = 0; i < count; ++i) {
    const int home = topology.nodeOf(ranks[i]);
    std::vector<int> table;
    for (const Packet& packet : inbox[i]) {
      const int node = topology.nodeOf(packet.peer);
      const auto partner = to[i].find(node);
      if (partner == to[i].end()) {
        error = oneSided(home, node, "sends");
        continue;
      }
      const auto k = std::distance(to[i].begin(), partner);
      table.insert(table.end(), {node, topology.rankOn(home, sender[i].at(k)), topology.rankOn(node, packet.data[0])});
    }
    for (int local = 0; !table.empty() && local < topology.numRanksOn(home); ++local) {
      outbox[i].push_back({topology.rankOn(home, local), table});
    }
  }
  transport.agree(error);
  inbox = transport.exchange(std::move(outbox));

  NodePairing result;
  for (std::size_t i = 0; i < count; ++i) {
    const int home = topology.nodeOf(ranks[i]);
    for (const Packet& packet : inbox[i]) {
      for (std::size_t k = 0; k < packet.data.size(); k += 3) {
        result.pairs_[key(home, packet.data[k])] = {packet.data[k + 1], packet.data[k + 2]};
      }
    }
  }
  return result;
}

}  // namespace Komvos
