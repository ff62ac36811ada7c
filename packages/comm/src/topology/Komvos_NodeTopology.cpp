// How a placement is kept and found.
//
// A uniform or cyclic placement is two numbers. Any other is a list of intervals: consecutive ranks on one node.
// intervalOf(rank) and rankOn(node, local) are binary searches, in all intervals and in those of a node. detect() asks
// MPI which ranks can share memory, detectSockets() asks Linux where each rank is bound; fromCommunicators() makes one
// placement of what the nodes know, of a few numbers if that is enough. fromMap() and parse() come to the same
// placements from labels and from text.
#include "Komvos_NodeTopology.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>

#include "Komvos_Error.hpp"
#include "Komvos_SocketBinding.hpp"

namespace Komvos {

NodeTopology NodeTopology::uniform(int numRanks, int ranksPerNode) {
  if (numRanks < 1 || ranksPerNode < 1) {
    throw BadInput("NodeTopology::uniform: " + std::to_string(numRanks) + " ranks with " +
                   std::to_string(ranksPerNode) + " ranks per node; both must be at least 1");
  }
  NodeTopology topology;
  topology.numRanks_ = numRanks;
  topology.uniform_ = std::min(ranksPerNode, numRanks);
  topology.numNodes_ = (numRanks - 1) / topology.uniform_ + 1;
  return topology;
}

NodeTopology NodeTopology::cyclic(int numRanks, int numNodes) {
  if (numNodes < 1 || numNodes > numRanks) {
    throw BadInput("NodeTopology::cyclic: " + std::to_string(numRanks) + " ranks on " + std::to_string(numNodes) +
                   " nodes; each node must have one");
  }
  if (numNodes == 1 || numNodes == numRanks) {
    return uniform(numRanks, numRanks / numNodes);
  }
  NodeTopology topology;
  topology.numRanks_ = numRanks;
  topology.numNodes_ = numNodes;
  topology.isCyclic_ = true;
  return topology;
}

NodeTopology NodeTopology::fromMap(const std::vector<int>& nodeOfRank) {
  if (nodeOfRank.empty()) {
    throw BadInput("NodeTopology::fromMap: the list of nodes is empty");
  }
  for (int rank = 0; rank < static_cast<int>(nodeOfRank.size()); ++rank) {
    if (nodeOfRank[rank] < 0) {
      throw BadInput("NodeTopology::fromMap: rank " + std::to_string(rank) + " has the negative node " +
                     std::to_string(nodeOfRank[rank]));
    }
  }
  std::vector<int> labels(nodeOfRank);
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  std::vector<int> ranksSeen(labels.size(), 0);
  std::vector<RankInterval> intervals;
  for (int rank = 0; rank < static_cast<int>(nodeOfRank.size()); ++rank) {
    const int node =
        static_cast<int>(std::lower_bound(labels.begin(), labels.end(), nodeOfRank[rank]) - labels.begin());
    if (intervals.empty() || intervals.back().node != node) {
      intervals.push_back({rank, node, ranksSeen[node], 0});
    }
    ++intervals.back().count;
    ++ranksSeen[node];
  }
  return fromIntervals(static_cast<int>(nodeOfRank.size()), std::move(intervals));
}

NodeTopology NodeTopology::fromIntervals(int numRanks, std::vector<RankInterval> intervals) {
  NodeTopology topology;
  topology.numRanks_ = numRanks;
  for (const RankInterval& interval : intervals) {
    topology.numNodes_ = std::max(topology.numNodes_, interval.node + 1);
  }
  const int ppn = intervals.front().count;
  const auto isNext = [&](const RankInterval& interval) {
    const bool last = &interval == &intervals.back();
    return interval.node == &interval - intervals.data() && (interval.count == ppn || (last && interval.count < ppn));
  };
  if (static_cast<int>(intervals.size()) == topology.numNodes_ &&
      std::all_of(intervals.begin(), intervals.end(), isNext)) {
    topology.uniform_ = ppn;
    return topology;
  }
  const auto isDealt = [&](const RankInterval& interval) {
    return interval.node == (&interval - intervals.data()) % topology.numNodes_;
  };
  if (static_cast<int>(intervals.size()) == numRanks && std::all_of(intervals.begin(), intervals.end(), isDealt)) {
    topology.isCyclic_ = true;
    return topology;
  }
  topology.nodeOffset_.assign(topology.numNodes_ + 1, 0);
  for (const RankInterval& interval : intervals) {
    ++topology.nodeOffset_[interval.node + 1];
  }
  for (int node = 0; node < topology.numNodes_; ++node) {
    topology.nodeOffset_[node + 1] += topology.nodeOffset_[node];
  }
  topology.intervalsOfNode_.resize(intervals.size());
  std::vector<int> next(topology.nodeOffset_.begin(), topology.nodeOffset_.end() - 1);
  for (int i = 0; i < static_cast<int>(intervals.size()); ++i) {
    topology.intervalsOfNode_[next[intervals[i].node]++] = i;
  }
  topology.intervals_ = std::move(intervals);
  return topology;
}

namespace {

/// The ranks of `comm` that can share memory with this one. To be freed.
MPI_Comm nodeOfThisRank(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm node = MPI_COMM_NULL;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  return node;
}

}  // namespace

NodeTopology NodeTopology::detect(MPI_Comm comm) {
  MPI_Comm node = nodeOfThisRank(comm);
  NodeTopology topology = fromCommunicators(comm, node);
  MPI_Comm_free(&node);
  return topology;
}

NodeTopology NodeTopology::detectSockets(MPI_Comm comm) { return Impl::socketsFrom(comm, Impl::bindingOfThisThread()); }

NodeTopology Impl::socketsFrom(MPI_Comm comm, const SocketBinding& mine) {
  MPI_Comm node = nodeOfThisRank(comm);
  int least[] = {mine.package, -mine.package, mine.numaNode};
  int rank = 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, least, 3, MPI_INT, MPI_MIN, node), "MPI_Allreduce");
  mpiCheck(MPI_Comm_rank(node, &rank), "MPI_Comm_rank");
  const bool severalPackages = least[0] >= 0 && least[0] != -least[1];
  const int color = severalPackages ? mine.package : least[2] >= 0 ? mine.numaNode : 0;
  MPI_Comm socket = MPI_COMM_NULL;
  mpiCheck(MPI_Comm_split(node, color, rank, &socket), "MPI_Comm_split");
  NodeTopology topology = NodeTopology::fromCommunicators(comm, socket);
  MPI_Comm_free(&socket);
  MPI_Comm_free(&node);
  return topology;
}

namespace {

/// The ranks of `node` in `comm`, ascending; on the lowest of them only.
std::vector<int> ranksOfNode(int rank, MPI_Comm node) {
  int size = 0;
  mpiCheck(MPI_Comm_size(node, &size), "MPI_Comm_size");
  std::vector<int> ranks(size);
  mpiCheck(MPI_Gather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, 0, node), "MPI_Gather");
  return ranks;
}

/// Everybody's list, one after the other. \note Collective on `comm`.
std::vector<int> concatenate(MPI_Comm comm, const std::vector<int>& mine) {
  int size = 0;
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const int length = static_cast<int>(mine.size());
  std::vector<int> lengths(size);
  mpiCheck(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm), "MPI_Allgather");
  std::vector<int> offsets(size + 1, 0);
  std::partial_sum(lengths.begin(), lengths.end(), offsets.begin() + 1);
  std::vector<int> all(offsets.back());
  mpiCheck(MPI_Allgatherv(mine.data(), length, MPI_INT, all.data(), lengths.data(), offsets.data(), MPI_INT, comm),
           "MPI_Allgatherv");
  return all;
}

/// The list of the lowest rank. \note Collective on `comm`.
void broadcastList(MPI_Comm comm, std::vector<int>& list) {
  int length = static_cast<int>(list.size());
  mpiCheck(MPI_Bcast(&length, 1, MPI_INT, 0, comm), "MPI_Bcast");
  list.resize(length);
  mpiCheck(MPI_Bcast(list.data(), length, MPI_INT, 0, comm), "MPI_Bcast");
}

/// What leaders find out about all nodes.
enum Placement { inBlocks, inTurn, irregular };

/// Whether a placement is uniform or cyclic, from what each node knows of itself.
/// \param ranks of this rank's node, ascending \note Collective on the leaders, which are numbered as nodes.
Placement agreeOnPlacement(MPI_Comm leaders, const std::vector<int>& ranks) {
  int node = 0, numNodes = 0;
  mpiCheck(MPI_Comm_rank(leaders, &node), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(leaders, &numNodes), "MPI_Comm_size");
  const int size = static_cast<int>(ranks.size());
  // In blocks of the same length, node * length is the first rank; so all but the last have that length.
  const int length = node == 0 ? size : ranks.front() / node;
  int isNoBlock = ranks.front() != node * length || size > length;
  int isNotDealt = 0;
  for (int i = 0; i < size; ++i) {
    isNoBlock |= ranks[i] != ranks.front() + i;
    isNotDealt |= ranks[i] != node + i * numNodes;
  }
  int most[] = {isNoBlock, isNotDealt, length, -length};
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, most, static_cast<int>(std::size(most)), MPI_INT, MPI_MAX, leaders),
           "MPI_Allreduce");
  const bool lengthsAreEqual = most[2] == -most[3];
  return most[0] == 0 && lengthsAreEqual ? inBlocks : most[1] == 0 ? inTurn : irregular;
}

}  // namespace

/// Tells all ranks of `comm` which of them share a `node`; the ranks of both are in the same order. The lowest rank of
/// each node is its leader; leaders, ordered by rank, number the nodes. If the placement is irregular, each describes
/// its node by intervals of consecutive ranks, all share what they have, and pass it on.
NodeTopology NodeTopology::fromCommunicators(MPI_Comm comm, MPI_Comm node) {
  int rank = 0;
  int size = 0;
  int local = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  mpiCheck(MPI_Comm_rank(node, &local), "MPI_Comm_rank");
  MPI_Comm leaders = MPI_COMM_NULL;
  mpiCheck(MPI_Comm_split(comm, local == 0 ? 0 : MPI_UNDEFINED, rank, &leaders), "MPI_Comm_split");
  const std::vector<int> ranks = ranksOfNode(rank, node);
  std::vector<int> all;         // four numbers for each interval, as in RankInterval, if the placement is irregular
  int placement[] = {0, 0, 0};  // Placement, ranks of the first node, number of nodes
  if (local == 0) {
    int nodeId = 0;
    mpiCheck(MPI_Comm_rank(leaders, &nodeId), "MPI_Comm_rank");
    placement[0] = agreeOnPlacement(leaders, ranks);
    placement[1] = nodeId == 0 ? static_cast<int>(ranks.size()) : ranks.front() / nodeId;  // the same, if in blocks
    mpiCheck(MPI_Comm_size(leaders, &placement[2]), "MPI_Comm_size");
    if (placement[0] == irregular) {
      std::vector<int> mine;
      for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
        if (i == 0 || ranks[i] != ranks[i - 1] + 1) {
          mine.insert(mine.end(), {ranks[i], nodeId, i, 0});
        }
        ++mine.back();
      }
      all = concatenate(leaders, mine);
    }
    MPI_Comm_free(&leaders);
  }
  mpiCheck(MPI_Bcast(placement, static_cast<int>(std::size(placement)), MPI_INT, 0, node), "MPI_Bcast");
  if (placement[0] == inBlocks) {
    return uniform(size, placement[1]);
  }
  if (placement[0] == inTurn) {
    return cyclic(size, placement[2]);
  }
  broadcastList(node, all);
  std::vector<RankInterval> intervals;
  for (std::size_t i = 0; i < all.size(); i += 4) {
    intervals.push_back({all[i], all[i + 1], all[i + 2], all[i + 3]});
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const RankInterval& a, const RankInterval& b) { return a.firstRank < b.firstRank; });
  return fromIntervals(size, std::move(intervals));
}

namespace {

std::vector<int> readLabels(const std::string& path, int numRanks) {
  std::ifstream file(path);
  if (!file) {
    throw BadInput("node map '" + path + "' cannot be opened");
  }
  std::vector<int> labels;
  for (int label = 0; file >> label;) {
    labels.push_back(label);
  }
  if (!file.eof() || static_cast<int>(labels.size()) != numRanks) {
    throw BadInput("node map '" + path + "' has " + std::to_string(labels.size()) +
                   " readable node numbers, but there are " + std::to_string(numRanks) + " ranks");
  }
  return labels;
}

}  // namespace

NodeTopology NodeTopology::parse(const std::string& text, int numRanks) {
  if (!text.empty() && text.front() == '@') {
    return fromMap(readLabels(text.substr(1), numRanks));
  }
  std::vector<int> counts;
  std::istringstream stream(text + ',');  // a separator at the end of `text` then shows as an empty item
  for (std::string item; std::getline(stream, item, ',');) {
    std::size_t used = 0;
    int count = 0;
    try {
      count = std::stoi(item, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != item.size() || count < 1) {
      throw BadInput("ranks per node '" + text + "': '" + item + "' is not a positive number");
    }
    counts.push_back(count);
  }
  if (counts.size() == 1) {
    return uniform(numRanks, counts.front());
  }
  const long placed = std::accumulate(counts.begin(), counts.end(), 0L);
  if (placed != numRanks) {
    throw BadInput("ranks per node '" + text + "' place " + std::to_string(placed) + " ranks, but there are " +
                   std::to_string(numRanks));
  }
  std::vector<int> labels;
  for (int node = 0; node < static_cast<int>(counts.size()); ++node) {
    labels.insert(labels.end(), counts[node], node);
  }
  return fromMap(labels);
}

NodeTopology NodeTopology::sockets(int ranksPerSocket) const {
  if (ranksPerSocket < 1) {
    throw BadInput("ranks per socket " + std::to_string(ranksPerSocket) + ": must be at least 1");
  }
  std::vector<int> firstSocket{0};  // of each node
  for (int node = 0; node < numNodes_; ++node) {
    firstSocket.push_back(firstSocket.back() + (numRanksOn(node) - 1) / ranksPerSocket + 1);
  }
  std::vector<int> labels(numRanks_);
  for (int rank = 0; rank < numRanks_; ++rank) {
    labels[rank] = firstSocket[nodeOf(rank)] + localRankOf(rank) / ranksPerSocket;
  }
  return fromMap(labels);
}

void NodeTopology::checkRank(int rank) const {
  if (rank < 0 || rank >= numRanks_) {
    throw BadInput("NodeTopology: rank " + std::to_string(rank) + " of " + std::to_string(numRanks_));
  }
}

void NodeTopology::checkNode(int node) const {
  if (node < 0 || node >= numNodes_) {
    throw BadInput("NodeTopology: node " + std::to_string(node) + " of " + std::to_string(numNodes_));
  }
}

const NodeTopology::RankInterval& NodeTopology::intervalOf(int rank) const {
  const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), rank,
                                      [](int r, const RankInterval& interval) { return r < interval.firstRank; });
  return *(after - 1);
}

int NodeTopology::nodeOf(int rank) const {
  checkRank(rank);
  return uniform_ ? rank / uniform_ : isCyclic_ ? rank % numNodes_ : intervalOf(rank).node;
}

int NodeTopology::localRankOf(int rank) const {
  checkRank(rank);
  if (uniform_) {
    return rank % uniform_;
  }
  if (isCyclic_) {
    return rank / numNodes_;
  }
  const RankInterval& interval = intervalOf(rank);
  return interval.firstLocal + rank - interval.firstRank;
}

int NodeTopology::endOfInterval(int rank) const {
  checkRank(rank);
  if (uniform_) {
    return rank + std::min(numRanks_ - rank, uniform_ - rank % uniform_);
  }
  if (isCyclic_) {
    return rank + 1;
  }
  const RankInterval& interval = intervalOf(rank);
  return interval.firstRank + interval.count;
}

int NodeTopology::numRanksOn(int node) const {
  checkNode(node);
  if (uniform_) {
    return std::min(uniform_, numRanks_ - node * uniform_);
  }
  if (isCyclic_) {
    return (numRanks_ - 1 - node) / numNodes_ + 1;
  }
  const RankInterval& last = intervals_[intervalsOfNode_[nodeOffset_[node + 1] - 1]];
  return last.firstLocal + last.count;
}

int NodeTopology::rankOn(int node, int local) const {
  if (local < 0 || local >= numRanksOn(node)) {
    throw BadInput("NodeTopology: local rank " + std::to_string(local) + " of " + std::to_string(numRanksOn(node)) +
                   " on node " + std::to_string(node));
  }
  if (uniform_) {
    return node * uniform_ + local;
  }
  if (isCyclic_) {
    return node + local * numNodes_;
  }
  const auto first = intervalsOfNode_.begin() + nodeOffset_[node];
  const auto after = std::upper_bound(first, intervalsOfNode_.begin() + nodeOffset_[node + 1], local,
                                      [this](int l, int interval) { return l < intervals_[interval].firstLocal; });
  const RankInterval& interval = intervals_[*(after - 1)];
  return interval.firstRank + local - interval.firstLocal;
}

int NodeTopology::largestGroup() const {
  if (uniform_) {
    return std::gcd(numRanks_, uniform_);
  }
  int c = isCyclic_ ? 1 : numRanks_;
  for (const RankInterval& interval : intervals_) {
    c = std::gcd(c, interval.firstRank);
  }
  return c;
}

std::uint64_t NodeTopology::fingerprint() const {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  const auto mix = [&hash](int number) { hash = (hash ^ static_cast<std::uint32_t>(number)) * 1099511628211ull; };
  mix(numRanks_);
  mix(uniform_);
  if (isCyclic_) {
    mix(numNodes_);
  }
  for (const RankInterval& interval : intervals_) {
    mix(interval.firstRank);
    mix(interval.node);
  }
  return hash;
}

std::size_t NodeTopology::memoryBytes() const {
  return sizeof(*this) + intervals_.size() * sizeof(RankInterval) +
         (nodeOffset_.size() + intervalsOfNode_.size()) * sizeof(int);
}

std::string NodeTopology::describe() const {
  int fewest = numRanksOn(numNodes_ - 1);
  int most = numRanksOn(0);
  for (int node = 0; node < numNodes_ && !intervals_.empty(); ++node) {
    fewest = std::min(fewest, numRanksOn(node));
    most = std::max(most, numRanksOn(node));
  }
  std::ostringstream text;
  text << numRanks_ << (numRanks_ == 1 ? " rank on " : " ranks on ") << numNodes_
       << (numNodes_ == 1 ? " node" : " nodes");
  text << " (";
  if (fewest != most) {
    text << fewest << " to ";
  }
  text << most << " each" << (isCyclic_ ? ", in turn)" : ")");
  return text.str();
}

}  // namespace Komvos
