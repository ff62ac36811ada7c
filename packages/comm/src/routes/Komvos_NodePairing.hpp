/// \file Komvos_NodePairing.hpp
/// Which process of a node sends to, and which receives from, each other node.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_Pairing.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_SetupTransport.hpp"

namespace Komvos {

/// T and U of Bienz, Gropp and Olson, eq. (15) and (16): for each pair of nodes with traffic, who sends and who
/// receives. Most often one process each; a pair with much traffic may be cut into parts by origin, as section 4.1 of
/// the paper lets a node be mapped to several local processes. Under MPI a rank knows the pairs (n, m) and (m, n) of
/// its own node n; in memory all pairs are known.
class NodePairing {
 public:
  /// The traffic of one pair of nodes, from the origins of this part, is one message between these two ranks.
  struct Part {
    int firstLocal;  ///< lowest local rank of its origins; the next part's ends them
    int sender, receiver;
  };

  static constexpr long neverSplit = std::numeric_limits<long>::max();

  /// Agrees on the pairs. Node leaders talk to their ranks and to the leaders of the nodes their node sends to;
  /// nobody else, so no rank sends a number of messages that grows with the machine.
  ///
  /// A pair of nodes with V distinct values gets ceil(V / splitValues) parts, but no more than the smaller node has
  /// ranks. A part holds consecutive origins, so its volume is that of an equal share give or take one origin's; where
  /// one origin has more than an equal share, there are fewer parts. The parts of one pair have different senders and
  /// different receivers.
  /// \param patterns one for each rank the transport plays; what one rank sends another needs (buildPlans makes sure)
  /// \param splitValues at least 1, the same on all ranks
  /// \note Collective on the transport.
  static NodePairing agree(SetupTransport& transport, const NodeTopology& topology,
                           const std::vector<Pattern>& patterns, Pairing pairing, long splitValues = neverSplit);

  /// The part of the traffic from node `from` to node `to` that holds what local rank `local` of `from` owns.
  /// \throws Error if the pair has no traffic or is not known here.
  const Part& partOf(int from, int to, int local) const;

  /// The ranks that send to `pattern.rank` while values are gathered on their node (step 0), cross the network (1) and
  /// are scattered (2), ascending.
  /// \param pattern of a rank that this process plays, as agree() had it
  std::vector<int> sources(int step, const Pattern& pattern, const NodeTopology& topology) const;

  /// Rank on `from` that sends to node `to`, and rank on `to` that receives, where nothing is split.
  int senderOf(int from, int to) const { return partOf(from, to, 0).sender; }
  int receiverOf(int from, int to) const { return partOf(from, to, 0).receiver; }

 private:
  /// What one rank does for others.
  struct Duties {
    std::vector<int> origins;  // whose values it gathers; ascending
    std::vector<int> senders;  // on other nodes, of what it receives; ascending
  };
  using Pairs = std::unordered_map<std::int64_t, std::vector<Part>>;  // parts by firstLocal

  static std::int64_t key(int from, int to) { return (static_cast<std::int64_t>(from) << 32) | to; }
  void learn(int rank, int home, const std::vector<int>& published);

  Pairs pairs_;
  std::unordered_map<int, Duties> duties_;  // by rank
};

}  // namespace Komvos
