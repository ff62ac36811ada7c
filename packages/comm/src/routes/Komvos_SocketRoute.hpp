/// \file Komvos_SocketRoute.hpp
/// Three steps between nodes, and three steps between the sockets of a node.
#pragma once

#include "Komvos_NodePairing.hpp"
#include "Komvos_Route.hpp"

namespace Komvos {

/// ThreeStepRoute with a second level, the extension that Bienz, Gropp and Olson propose in their last section: where a
/// value moves inside a node, to the sender of a pair of nodes or to its destination, and changes socket, it goes from
/// its holder -> sender of the pair of sockets -> receiver of that pair -> target. Values on one socket go straight.
///
/// A value crosses the network once per node that needs it, and enters each socket at most once, by the network or
/// from another socket. Which process serves a pair of sockets follows from their numbers, so that there is nothing to
/// agree on: another partner socket, another process, as far as there are processes.
class SocketRoute : public Route {
 public:
  /// \param sockets the same ranks, with each socket as a "node"
  /// \throws BadInput if the two have different numbers of ranks, or a socket has ranks of two nodes.
  SocketRoute(NodeTopology nodes, NodeTopology sockets, Pairing pairing = Pairing::byVolume);

  std::string name() const override { return "sockets"; }
  /// Three on the owner's node, one across, three on the destination's node.
  int numStages() const override { return 7; }

  void prepare(SetupTransport& transport, const std::vector<Pattern>& patterns) override {
    pairs_ = NodePairing::agree(transport, nodes_, patterns, pairing_);
  }

  int hop(int stage, int here, int origin, int destination) const override;

 private:
  int hopOnNode(int step, int here, int target) const;

  NodeTopology nodes_;
  NodeTopology sockets_;
  Pairing pairing_;
  NodePairing pairs_;
};

}  // namespace Komvos
