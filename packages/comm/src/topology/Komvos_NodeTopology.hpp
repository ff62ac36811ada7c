/// \file Komvos_NodeTopology.hpp
/// Which ranks share a node.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace Komvos {

/// Maps every rank of a communicator to a node and to a local rank on that node.
///
/// Nodes are numbered 0 .. numNodes()-1, by their lowest rank (detect) or by label (fromMap); local ranks
/// 0 .. numRanksOn(node)-1 by rank. Nodes may hold different numbers of ranks, and the ranks of a node need not be
/// neighbours. O(1) memory when every node has the next ppn ranks and when ranks are dealt to nodes in turn; any other
/// placement is kept as intervals of consecutive ranks, O(number of nodes) for blocks of different lengths.
class NodeTopology {
 public:
  /// Asks MPI which ranks can share memory. \note Collective on `comm`.
  static NodeTopology detect(MPI_Comm comm);

  /// Asks Linux which socket the calling thread of each rank is bound to; sockets are numbered as nodes are. A socket
  /// is a package, or a NUMA node where all ranks of a node are on one package. Where one rank of a node may run on
  /// several sockets, the whole node counts as one.
  /// \note Collective on `comm`.
  static NodeTopology detectSockets(MPI_Comm comm);

  /// Nodes of your own. \param node the ranks of this rank's node, in the same order as in `comm`
  /// \note Collective on `comm`.
  static NodeTopology fromCommunicators(MPI_Comm comm, MPI_Comm node);

  /// `ranksPerNode` consecutive ranks on each node; the last node takes what is left.
  /// \throws BadInput unless both numbers are at least 1.
  static NodeTopology uniform(int numRanks, int ranksPerNode);

  /// Ranks dealt to nodes in turn, as by `mpirun --map-by node`: rank r is on node r % numNodes.
  /// \throws BadInput unless 1 <= numNodes <= numRanks.
  static NodeTopology cyclic(int numRanks, int numNodes);

  /// Any placement. \param nodeOfRank one arbitrary non-negative label per rank; equal labels share a node.
  /// \throws BadInput on an empty list or a negative label.
  static NodeTopology fromMap(const std::vector<int>& nodeOfRank);

  /// A placement written as text: "4" (ranks per node), "5,2,5" (ranks on each node in turn) or "@file" (one node
  /// label per rank, separated by white space).
  /// \throws BadInput when the text does not describe `numRanks` ranks.
  static NodeTopology parse(const std::string& text, int numRanks);

  /// The sockets of these nodes, numbered as nodes are: on each node `ranksPerSocket` ranks on the first, as many on
  /// the next, by local rank; the last takes what is left.
  /// \throws BadInput unless the number is at least 1.
  NodeTopology sockets(int ranksPerSocket) const;

  int numRanks() const { return numRanks_; }
  int numNodes() const { return numNodes_; }
  int nodeOf(int rank) const;
  int localRankOf(int rank) const;
  int numRanksOn(int node) const;
  /// The rank with local rank `local` on `node`. \throws BadInput, as its neighbours, if there is none
  int rankOn(int node, int local) const;
  /// The lowest rank of `node`.
  int leaderOf(int node) const { return rankOn(node, 0); }
  /// One more than the last of the consecutive ranks on the node of `rank`, from `rank` on.
  int endOfInterval(int rank) const;
  bool sameNode(int a, int b) const { return nodeOf(a) == nodeOf(b); }
  /// The largest divisor c of numRanks() such that each group of ranks c*i ... c*i + c-1 stays on one node.
  int largestGroup() const;

  /// A hash; collisions are possible.
  std::uint64_t fingerprint() const;

  /// Bytes this object holds.
  std::size_t memoryBytes() const;
  /// For people: "16 ranks on 4 nodes (4 each)".
  std::string describe() const;

 private:
  /// Consecutive ranks on one node.
  struct RankInterval {
    int firstRank, node, firstLocal, count;
  };

  NodeTopology() = default;
  static NodeTopology fromIntervals(int numRanks, std::vector<RankInterval> intervalsByRank);
  const RankInterval& intervalOf(int rank) const;
  void checkRank(int rank) const;
  void checkNode(int node) const;

  int numRanks_ = 0;
  int numNodes_ = 0;
  bool isCyclic_ = false;                // with several ranks on some of several nodes
  int uniform_ = 0;                      // ranks on every node but the last; 0 if cyclic, or given by intervals
  std::vector<RankInterval> intervals_;  // by first rank
  std::vector<int> nodeOffset_;          // numNodes + 1, into intervalsOfNode_
  std::vector<int> intervalsOfNode_;     // indices into intervals_, by node, then by first local rank
};

}  // namespace Komvos
