/// \file Komvos_NodePairing.hpp
/// Which process of a node sends to, and which receives from, each other node.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_Transport.hpp"

namespace Komvos {

/// How the nodes a node talks to are spread over its processes.
enum class Pairing {
  /// Section 4.1 of Bienz, Gropp and Olson: nodes by falling volume |E(n,m)| go to local processes 0, 1, 2, ...
  /// cyclically for sending, and to ppn-1, ppn-2, ... for receiving. Ties: lower node first. The default.
  byVolume,
  /// Nodes by falling volume go to the local process with the least volume so far (ties: as in byVolume, the lowest
  /// for sending, the highest for receiving). Balances values where byVolume balances messages.
  leastLoaded,
  /// The process that owns most of E(n,m) sends it, the one that needs most of it receives it (ties: lowest, highest
  /// local process): the least on-node traffic, named at the end of section 4.1.
  majority,
};

/// \throws BadInput unless `text` is one of "by-volume", "least-loaded", "majority".
Pairing parsePairing(const std::string& text);
std::string toString(Pairing pairing);

/// T and U of Bienz, Gropp and Olson, eq. (15) and (16): for each pair of nodes with traffic, one sender and one
/// receiver. Under MPI a rank knows the pairs (n, m) of its own node n; in memory all pairs are known.
class NodePairing {
 public:
  /// Agrees on the pairs. Node leaders talk to their ranks and to the leaders of the nodes their node sends to;
  /// nobody else, so no rank sends a number of messages that grows with the machine.
  /// \param patterns one for each rank the transport plays
  /// \note Collective on the transport.
  static NodePairing agree(Transport& transport, const NodeTopology& topology, const std::vector<Pattern>& patterns,
                           Pairing pairing);

  /// Rank on `from` that sends to node `to`. \throws Error if the pair has no traffic or is not known here.
  int senderOf(int from, int to) const { return find(from, to).sender; }
  /// Rank on `to` that receives from node `from`.
  int receiverOf(int from, int to) const { return find(from, to).receiver; }

  int numPairs() const { return static_cast<int>(pairs_.size()); }

 private:
  struct Ends {
    int sender, receiver;
  };
  static std::int64_t key(int from, int to) { return (static_cast<std::int64_t>(from) << 32) | to; }
  const Ends& find(int from, int to) const;

  std::unordered_map<std::int64_t, Ends> pairs_;
};

}  // namespace Komvos
