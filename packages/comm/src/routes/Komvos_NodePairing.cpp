#include "Komvos_NodePairing.hpp"

#include <algorithm>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos {

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

/// \param published as PairingAgreement::publish() writes it
void NodePairing::learn(int rank, int home, const std::vector<int>& published) {
  const int numLeaving = published[0];
  const int numParts = numLeaving + published[1];
  Duties& duties = duties_[rank];
  Pairs pairs;
  for (int k = 0; k < numParts; ++k) {
    const int* entry = &published[2 + 4 * k];
    const int other = entry[0];
    const Part part{entry[1], entry[2], entry[3]};
    pairs[k < numLeaving ? key(home, other) : key(other, home)].push_back(part);
    if (part.receiver == rank) {
      duties.senders.push_back(part.sender);
    }
  }
  std::sort(duties.senders.begin(), duties.senders.end());
  duties.origins.assign(published.begin() + 2 + 4 * numParts, published.end());
  pairs_.merge(pairs);  // in memory, the other ranks of the node have told the same
}

std::vector<int> NodePairing::sources(int step, const Pattern& pattern, const NodeTopology& topology) const {
  const Duties& duties = duties_.at(pattern.rank);
  if (step == 1) {
    return duties.senders;
  }
  const int home = topology.nodeOf(pattern.rank);
  std::vector<int> sources = step == 0 ? duties.origins : std::vector<int>();
  int last = -1;
  for (const Pattern::Receive& receive : pattern.receives) {  // sorted by owner
    const int owner = receive.value.owner;
    if (owner == std::exchange(last, owner)) {
      continue;
    }
    const int from = topology.nodeOf(owner);
    if (step == 0 && from == home) {
      sources.push_back(owner);
    }
    if (step == 2 && from != home) {
      sources.push_back(partOf(from, home, topology.localRankOf(owner)).receiver);
    }
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  sources.erase(std::remove(sources.begin(), sources.end(), pattern.rank), sources.end());
  return sources;
}

}  // namespace Komvos
