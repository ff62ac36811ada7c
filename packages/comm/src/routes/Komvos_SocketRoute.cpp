#include "Komvos_SocketRoute.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos {

SocketRoute::SocketRoute(NodeTopology nodes, NodeTopology sockets, Pairing pairing)
    : nodes_(std::move(nodes)), sockets_(std::move(sockets)), pairing_(pairing) {
  if (nodes_.numRanks() != sockets_.numRanks()) {
    throw BadInput("route sockets: " + std::to_string(nodes_.numRanks()) + " ranks on nodes, but " +
                   std::to_string(sockets_.numRanks()) + " on sockets");
  }
  for (int rank = 0; rank < nodes_.numRanks();
       rank = std::min(nodes_.endOfInterval(rank), sockets_.endOfInterval(rank))) {
    const int leader = sockets_.leaderOf(sockets_.nodeOf(rank));
    if (!nodes_.sameNode(leader, rank)) {
      throw BadInput("route sockets: ranks " + std::to_string(leader) + " and " + std::to_string(rank) +
                     " share a socket, but are on nodes " + std::to_string(nodes_.nodeOf(leader)) + " and " +
                     std::to_string(nodes_.nodeOf(rank)));
    }
  }
}

int SocketRoute::hop(int stage, int here, int origin, int destination) const {
  const int from = nodes_.nodeOf(origin);
  const int to = nodes_.nodeOf(destination);
  if (from == to) {
    return hopOnNode(stage, here, destination);
  }
  if (stage < 3) {
    return hopOnNode(stage, here, pairs_.senderOf(from, to));
  }
  return stage == 3 ? pairs_.receiverOf(from, to) : hopOnNode(stage - 4, here, destination);
}

/// Until the last step the value is on the socket it started from, or at its target.
int SocketRoute::hopOnNode(int step, int here, int target) const {
  const int from = sockets_.nodeOf(here);
  const int to = sockets_.nodeOf(target);
  if (from == to || step == 2) {
    return target;
  }
  // As in NodePairing, senders are counted from the lowest local rank and receivers from the highest.
  return step == 0 ? sockets_.rankOn(from, to % sockets_.numRanksOn(from))
                   : sockets_.rankOn(to, sockets_.numRanksOn(to) - 1 - from % sockets_.numRanksOn(to));
}

}  // namespace Komvos
