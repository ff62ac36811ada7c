/// \file Komvos_ThreeStepRoute.hpp
/// Gather on the node, one message per pair of nodes, scatter on the other node.
#pragma once

#include "Komvos_NodePairing.hpp"
#include "Komvos_Route.hpp"

namespace Komvos {

/// The node-aware exchange of A. Bienz, W. Gropp, L. Olson, "Node aware sparse matrix-vector multiplication",
/// J. Parallel Distrib. Comput. 130 (2019), Algorithm 3: owner -> sender of the pair of nodes -> receiver of the
/// pair -> destination. Values for the same node go straight to their destination.
///
/// A value crosses the network once per node that needs it, and a node sends one message to each other node. Where a
/// process both needs a value and forwards it, it gets one copy in one message (the paper sends two).
class ThreeStepRoute : public Route {
 public:
  explicit ThreeStepRoute(NodeTopology topology, Pairing pairing = Pairing::byVolume)
      : topology_(std::move(topology)), pairing_(pairing) {}

  std::string name() const override { return "three-step"; }
  int numStages() const override { return 3; }

  void prepare(SetupTransport& transport, const std::vector<Pattern>& patterns) override {
    pairs_ = NodePairing::agree(transport, topology_, patterns, pairing_);
  }

  bool knowsPeers(int) const override { return true; }
  Peers peers(int stage, const Pattern& pattern) const override {
    return {pairs_.sources(stage, pattern, topology_), {}};
  }

  int hop(int stage, int, int origin, int destination) const override {
    if (stage == 2) {
      return destination;
    }
    const int from = topology_.nodeOf(origin);
    const int to = topology_.nodeOf(destination);
    if (from == to) {
      return destination;
    }
    return stage == 0 ? pairs_.senderOf(from, to) : pairs_.receiverOf(from, to);
  }

 private:
  NodeTopology topology_;
  Pairing pairing_;
  NodePairing pairs_;
};

}  // namespace Komvos
