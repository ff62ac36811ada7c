// How a placement is kept and found.
//
// A uniform placement is two numbers. Any other is a list of intervals: consecutive ranks on one node. intervalOf(rank)
// and rankOn(node, local) are binary searches, in all intervals and in those of a node. detect() asks MPI which ranks
// can share memory, detectSockets() asks hwloc where each rank is bound; gather() makes one placement of what the nodes
// know. fromMap() and parse() come to the same intervals from labels and from text.
#include "Komvos_NodeTopology.hpp"

#include <algorithm>
#include <fstream>
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
  NodeTopology topology = gather(comm, node);
  MPI_Comm_free(&node);
  return topology;
}

NodeTopology NodeTopology::detectSockets(MPI_Comm comm) {
  MPI_Comm node = nodeOfThisRank(comm);
  const int mine = Impl::socketOfThisThread();
  int lowest = mine;
  int rank = 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, node), "MPI_Allreduce");
  mpiCheck(MPI_Comm_rank(node, &rank), "MPI_Comm_rank");
  MPI_Comm socket = MPI_COMM_NULL;
  mpiCheck(MPI_Comm_split(node, lowest < 0 ? 0 : mine, rank, &socket), "MPI_Comm_split");
  NodeTopology topology = gather(comm, socket);
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

}  // namespace

/// Tells all ranks of `comm` which of them share a `node`; the ranks of both are in the same order. The lowest rank of
/// each node, its leader, describes its node by intervals of consecutive ranks; leaders, ordered by rank, number the
/// nodes, share what they have, and pass it on.
NodeTopology NodeTopology::gather(MPI_Comm comm, MPI_Comm node) {
  int rank = 0;
  int size = 0;
  int local = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  mpiCheck(MPI_Comm_rank(node, &local), "MPI_Comm_rank");
  MPI_Comm leaders = MPI_COMM_NULL;
  mpiCheck(MPI_Comm_split(comm, local == 0 ? 0 : MPI_UNDEFINED, rank, &leaders), "MPI_Comm_split");
  const std::vector<int> ranks = ranksOfNode(rank, node);
  std::vector<int> all;  // four numbers for each interval, as in RankInterval
  if (local == 0) {
    int nodeId = 0;
    mpiCheck(MPI_Comm_rank(leaders, &nodeId), "MPI_Comm_rank");
    std::vector<int> mine;
    for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
      if (i == 0 || ranks[i] != ranks[i - 1] + 1) {
        mine.insert(mine.end(), {ranks[i], nodeId, i, 0});
      }
      ++mine.back();
    }
    all = concatenate(leaders, mine);
    MPI_Comm_free(&leaders);
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
  return uniform_ ? rank / uniform_ : intervalOf(rank).node;
}

int NodeTopology::localRankOf(int rank) const {
  checkRank(rank);
  if (uniform_) {
    return rank % uniform_;
  }
  const RankInterval& interval = intervalOf(rank);
  return interval.firstLocal + rank - interval.firstRank;
}

int NodeTopology::endOfInterval(int rank) const {
  checkRank(rank);
  if (uniform_) {
    return rank + std::min(numRanks_ - rank, uniform_ - rank % uniform_);
  }
  const RankInterval& interval = intervalOf(rank);
  return interval.firstRank + interval.count;
}

int NodeTopology::numRanksOn(int node) const {
  checkNode(node);
  if (uniform_) {
    return std::min(uniform_, numRanks_ - node * uniform_);
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
  const auto first = intervalsOfNode_.begin() + nodeOffset_[node];
  const auto after = std::upper_bound(first, intervalsOfNode_.begin() + nodeOffset_[node + 1], local,
                                      [this](int l, int interval) { return l < intervals_[interval].firstLocal; });
  const RankInterval& interval = intervals_[*(after - 1)];
  return interval.firstRank + local - interval.firstLocal;
}

std::uint64_t NodeTopology::fingerprint() const {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  const auto mix = [&hash](int number) { hash = (hash ^ static_cast<std::uint32_t>(number)) * 1099511628211ull; };
  mix(numRanks_);
  mix(uniform_);
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
  for (int node = 0; node < numNodes_ && !uniform_; ++node) {
    fewest = std::min(fewest, numRanksOn(node));
    most = std::max(most, numRanksOn(node));
  }
  std::ostringstream text;
  text << numRanks_ << (numRanks_ == 1 ? " rank on " : " ranks on ") << numNodes_
       << (numNodes_ == 1 ? " node" : " nodes");
  if (fewest == most) {
    text << " (" << most << " each)";
  } else {
    text << " (" << fewest << " to " << most << " each)";
  }
  return text.str();
}

}  // namespace Komvos
