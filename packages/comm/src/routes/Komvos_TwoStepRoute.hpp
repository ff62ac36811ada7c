/// \file Komvos_TwoStepRoute.hpp
/// One message from each process to each node, scattered on arrival.
#pragma once

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

  int hop(int stage, int, int origin, int destination) const override {
    const int to = topology_.nodeOf(destination);
    if (stage == 1 || topology_.nodeOf(origin) == to) {
      return destination;
    }
    return topology_.rankOn(to, topology_.localRankOf(origin) % topology_.numRanksOn(to));
  }

 private:
  NodeTopology topology_;
};

}  // namespace Komvos
