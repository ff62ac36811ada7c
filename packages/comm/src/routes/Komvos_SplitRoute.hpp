/// \file Komvos_SplitRoute.hpp
/// Three steps, with several messages for a pair of nodes that has much to say.
#pragma once

#include <string>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_NodePairing.hpp"
#include "Komvos_Route.hpp"

namespace Komvos {

/// As ThreeStepRoute, but the traffic of one pair of nodes is shared by several processes when its volume asks for it,
/// as section 4.1 of Bienz, Gropp and Olson maps a node to several local processes "so that all processes communicate".
/// Values are shared out by origin (NodePairing::agree), so that one for several ranks of a node still crosses once.
class SplitRoute : public Route {
 public:
  /// 8 KiB of doubles. In the max-rate model of the paper, eq. (10), a further process adds bandwidth to a node only
  /// where messages are long, and each message costs the latency again. At the rendezvous limit of the paper's machine
  /// the two meet: shorter messages are mostly latency, and cutting there keeps every part in the eager protocol.
  static constexpr int defaultSplitValues = 1024;

  /// \param splitValues a pair of nodes gets one more message for each so many distinct values
  /// \throws BadInput unless splitValues is at least 1.
  explicit SplitRoute(NodeTopology topology, Pairing pairing = Pairing::byVolume, int splitValues = defaultSplitValues)
      : topology_(std::move(topology)), pairing_(pairing), splitValues_(splitValues) {
    if (splitValues < 1) {
      throw BadInput("route split: " + std::to_string(splitValues) + " values a message; must be at least 1");
    }
  }

  /// "split", or "split:V" where V is not the default.
  std::string name() const override {
    return splitValues_ == defaultSplitValues ? "split" : "split:" + std::to_string(splitValues_);
  }
  int numStages() const override { return 3; }

  void prepare(SetupTransport& transport, const std::vector<Pattern>& patterns) override {
    pairs_ = NodePairing::agree(transport, topology_, patterns, pairing_, splitValues_);
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
    const NodePairing::Part& part = pairs_.partOf(from, to, topology_.localRankOf(origin));
    return stage == 0 ? part.sender : part.receiver;
  }

 private:
  NodeTopology topology_;
  Pairing pairing_;
  int splitValues_;
  NodePairing pairs_;
};

}  // namespace Komvos
