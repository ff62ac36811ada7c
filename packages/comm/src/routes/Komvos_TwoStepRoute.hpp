/// \file Komvos_TwoStepRoute.hpp
/// One message from each process to each node, scattered on arrival.
#pragma once

#include <algorithm>
#include <utility>

#include "Komvos_Route.hpp"

namespace Komvos {

/// Owner -> partner on the destination's node -> destination. Values for the same node go straight to their
/// destination.
///
/// The partner has the owner's local rank, taken modulo the ranks of its node where nodes are uneven. A value crosses
/// the network once per node that needs it, and a process sends at most one message to each other node. Compared with
/// ThreeStepRoute there is nothing to agree on and no gathering, for up to as many messages between two nodes as the
/// first has processes.
class TwoStepRoute : public Route {
 public:
  explicit TwoStepRoute(NodeTopology topology) : topology_(std::move(topology)) {}

  std::string name() const override { return "two-step"; }
  int numStages() const override { return 2; }

  bool knowsPeers(int stage) const override { return stage == 1; }

  Peers peers(int, const Pattern& pattern) const override {
    const int home = topology_.nodeOf(pattern.rank);
    Peers peers;
    for (const Pattern::Receive& receive : pattern.receives) {  // sorted by owner
      const int owner = receive.value.owner;
      if (topology_.nodeOf(owner) != home && partnerOf(owner, home) != pattern.rank) {
        peers.sources.push_back(partnerOf(owner, home));
      }
    }
    std::sort(peers.sources.begin(), peers.sources.end());
    peers.sources.erase(std::unique(peers.sources.begin(), peers.sources.end()), peers.sources.end());
    return peers;
  }

  int hop(int stage, int, int origin, int destination) const override {
    const int to = topology_.nodeOf(destination);
    return stage == 1 || topology_.nodeOf(origin) == to ? destination : partnerOf(origin, to);
  }

 private:
  int partnerOf(int origin, int node) const {
    return topology_.rankOn(node, topology_.localRankOf(origin) % topology_.numRanksOn(node));
  }

  NodeTopology topology_;
};

}  // namespace Komvos
