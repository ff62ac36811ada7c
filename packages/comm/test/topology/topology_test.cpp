// Which ranks share a node: numbering, memory, text forms, and what MPI says.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_SocketBinding.hpp"
#include "support/test_patterns.hpp"

namespace {

using Komvos::BadInput;
using Komvos::NodeTopology;

/// Holds a topology against a plain map of labels.
void expectIs(const NodeTopology& topology, const std::vector<int>& label) {
  std::map<int, std::vector<int>> ranksOf;
  for (int rank = 0; rank < static_cast<int>(label.size()); ++rank) {
    ranksOf[label[rank]].push_back(rank);
  }
  ASSERT_EQ(static_cast<int>(label.size()), topology.numRanks());
  ASSERT_EQ(static_cast<int>(ranksOf.size()), topology.numNodes());
  int node = 0;
  for (const auto& [name, ranks] : ranksOf) {  // ascending labels
    ASSERT_EQ(static_cast<int>(ranks.size()), topology.numRanksOn(node)) << "node " << node << ", label " << name;
    EXPECT_EQ(ranks.front(), topology.leaderOf(node));
    for (int local = 0; local < static_cast<int>(ranks.size()); ++local) {
      EXPECT_EQ(node, topology.nodeOf(ranks[local])) << "rank " << ranks[local];
      EXPECT_EQ(local, topology.localRankOf(ranks[local])) << "rank " << ranks[local];
      EXPECT_EQ(ranks[local], topology.rankOn(node, local)) << "node " << node << ", local rank " << local;
      EXPECT_TRUE(topology.sameNode(ranks[local], ranks.front()));
    }
    EXPECT_FALSE(topology.sameNode(ranks.front(), ranksOf.begin()->second.front()) && node > 0);
    ++node;
  }
  for (auto rank = label.begin(); rank != label.end(); ++rank) {
    const auto end = std::find_if(rank, label.end(), [&](int other) { return other != *rank; });
    EXPECT_EQ(end - label.begin(), topology.endOfInterval(static_cast<int>(rank - label.begin())));
  }
}

/// A file that goes away at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    std::string name = "/tmp/komvos_topology_XXXXXX";
    const int file = mkstemp(name.data());
    if (file >= 0) {
      close(file);
    }
    path_ = name;
    std::ofstream(path_) << content;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  std::string text() const { return "@" + path_; }

 private:
  std::string path_;
};

std::string errorOf(const std::string& text, int numRanks) {
  try {
    NodeTopology::parse(text, numRanks);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(NodeTopology, UniformPlacementIsWhatTheLabelsSay) {
  for (int ranks = 1; ranks <= 13; ++ranks) {
    for (int ppn = 1; ppn <= 14; ++ppn) {
      std::vector<int> label(ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        label[rank] = rank / ppn;
      }
      expectIs(NodeTopology::uniform(ranks, ppn), label);
      expectIs(NodeTopology::fromMap(label), label);
      EXPECT_EQ(NodeTopology::uniform(ranks, ppn).memoryBytes(), NodeTopology::fromMap(label).memoryBytes());
    }
  }
}

TEST(NodeTopology, CyclicPlacementIsWhatTheLabelsSay) {
  for (int ranks = 1; ranks <= 13; ++ranks) {
    for (int nodes = 1; nodes <= ranks; ++nodes) {
      std::vector<int> label(ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        label[rank] = rank % nodes;
      }
      const NodeTopology cyclic = NodeTopology::cyclic(ranks, nodes);
      expectIs(cyclic, label);
      EXPECT_EQ(sizeof(NodeTopology), cyclic.memoryBytes());
      EXPECT_EQ(sizeof(NodeTopology), NodeTopology::fromMap(label).memoryBytes());
      EXPECT_EQ(NodeTopology::fromMap(label).fingerprint(), cyclic.fingerprint());
      EXPECT_EQ(NodeTopology::fromMap(label).describe(), cyclic.describe());
    }
  }
  EXPECT_NE(NodeTopology::cyclic(16, 4).fingerprint(), NodeTopology::cyclic(16, 2).fingerprint());
  EXPECT_NE(NodeTopology::cyclic(16, 4).fingerprint(), NodeTopology::uniform(16, 4).fingerprint());
}

TEST(NodeTopology, NoLargerGroupsStayOnTheirNodes) {
  const auto stayOnNode = [](const NodeTopology& nodes, int c) {
    for (int rank = 0; rank < nodes.numRanks(); ++rank) {
      if (!nodes.sameNode(rank, rank / c * c)) {
        return false;
      }
    }
    return nodes.numRanks() % c == 0;
  };
  std::vector<NodeTopology> all{NodeTopology::parse("4,8,4", 16), NodeTopology::parse("6,3,9", 18),
                                NodeTopology::parse("5,2,5", 12), NodeTopology::fromMap({0, 0, 1, 1, 0, 0})};
  for (int ranks = 1; ranks <= 16; ++ranks) {
    for (int n = 1; n <= ranks; ++n) {
      all.push_back(NodeTopology::uniform(ranks, n));
      all.push_back(NodeTopology::cyclic(ranks, n));
    }
  }
  for (const NodeTopology& nodes : all) {
    int largest = 1;
    for (int c = 1; c <= nodes.numRanks(); ++c) {
      largest = stayOnNode(nodes, c) ? c : largest;
    }
    EXPECT_EQ(largest, nodes.largestGroup()) << nodes.describe();
  }
}

TEST(NodeTopology, UniformPlacementTakesTheSameMemoryForAnyNumberOfRanks) {
  const std::size_t small = NodeTopology::uniform(4, 2).memoryBytes();
  EXPECT_EQ(small, sizeof(NodeTopology));
  EXPECT_EQ(small, NodeTopology::uniform(1 << 20, 16).memoryBytes());
  EXPECT_EQ(65536, NodeTopology::uniform(1 << 20, 16).numNodes());
}

TEST(NodeTopology, BlockedPlacementTakesMemoryForNodesOnly) {
  std::vector<int> label;
  for (int node = 0; node < 100; ++node) {
    label.insert(label.end(), 40 + node % 3, node);
  }
  const std::size_t bytes = NodeTopology::fromMap(label).memoryBytes();
  EXPECT_LE(bytes, sizeof(NodeTopology) + 100 * 32);
  EXPECT_LT(bytes, label.size() * sizeof(int));
}

TEST(NodeTopology, SocketsHoldConsecutiveRanksOfANode) {
  const NodeTopology uneven = NodeTopology::fromMap({0, 1, 0, 0, 1, 2});
  const NodeTopology pairs = uneven.sockets(2);
  EXPECT_EQ(pairs.fingerprint(), NodeTopology::fromMap({0, 2, 0, 1, 2, 3}).fingerprint());
  EXPECT_EQ(uneven.sockets(3).fingerprint(), uneven.fingerprint());
  EXPECT_EQ(NodeTopology::uniform(7, 4).sockets(2).fingerprint(),
            NodeTopology::fromMap({0, 0, 1, 1, 2, 2, 3}).fingerprint());
  EXPECT_THROW(uneven.sockets(0), Komvos::BadInput);
}

TEST(NodeTopology, AnyPlacementIsWhatTheLabelsSay) {
  KomvosTest::Random random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> label(1 + random.below(30));
    const int nodes = 1 + random.below(8);
    const int run = 1 + random.below(4);
    for (std::size_t i = 0; i < label.size(); ++i) {
      label[i] = i % run != 0 ? label[i - 1] : 5 * random.below(nodes);
    }
    expectIs(NodeTopology::fromMap(label), label);
  }
}

TEST(NodeTopology, LabelsMayHaveGapsAndKeepTheirOrder) {
  expectIs(NodeTopology::fromMap({7, 2, 7, 2}), {7, 2, 7, 2});
  EXPECT_EQ(0, NodeTopology::fromMap({7, 2, 7, 2}).nodeOf(1));
  EXPECT_EQ(1, NodeTopology::fromMap({7, 2, 7, 2}).nodeOf(0));
  expectIs(NodeTopology::fromMap({2147483647, 0}), {1, 0});
}

TEST(NodeTopology, TextGivesRanksPerNodeOrRanksOfEachNode) {
  expectIs(NodeTopology::parse("3", 7), {0, 0, 0, 1, 1, 1, 2});
  expectIs(NodeTopology::parse("12", 3), {0, 0, 0});
  expectIs(NodeTopology::parse("5,2", 7), {0, 0, 0, 0, 0, 1, 1});
  expectIs(NodeTopology::parse("1,3,2", 6), {0, 1, 1, 1, 2, 2});
}

TEST(NodeTopology, FileGivesOneLabelPerRank) {
  const TemporaryFile file("4 4\n1\t4\n");
  expectIs(NodeTopology::parse(file.text(), 4), {4, 4, 1, 4});
}

TEST(NodeTopology, BadTextIsRefusedWithItsNumbers) {
  for (const char* text :
       {"", "0", "-2", "x", "2x", "2.5", "3,", ",3", "3,,1", "3,0,1", "3;1", "1,2 ,1", "99999999999"}) {
    EXPECT_NE(errorOf(text, 4), "no error") << "'" << text << "'";
  }
  EXPECT_NE(errorOf("5,2", 8).find("7 ranks, but there are 8"), std::string::npos) << errorOf("5,2", 8);
  EXPECT_NE(errorOf("2000000000,2000000000", 8).find("but there are 8"), std::string::npos);
  const TemporaryFile three("0 0 1");
  EXPECT_NE(errorOf(three.text(), 4).find("3 readable node numbers, but there are 4 ranks"), std::string::npos);
  const TemporaryFile word("0 0 one 1");
  EXPECT_NE(errorOf(word.text(), 4), "no error");
  const TemporaryFile negative("0 0 -1 1");
  EXPECT_NE(errorOf(negative.text(), 4).find("rank 2"), std::string::npos) << errorOf(negative.text(), 4);
  EXPECT_NE(errorOf("@/no/such/file", 4).find("/no/such/file"), std::string::npos);
  EXPECT_NE(errorOf("@", 4), "no error");
}

TEST(NodeTopology, BadNumbersAreRefused) {
  EXPECT_THROW(NodeTopology::uniform(0, 1), BadInput);
  EXPECT_THROW(NodeTopology::uniform(4, 0), BadInput);
  EXPECT_THROW(NodeTopology::uniform(4, -1), BadInput);
  EXPECT_THROW(NodeTopology::cyclic(4, 0), BadInput);
  EXPECT_THROW(NodeTopology::cyclic(4, 5), BadInput);
  EXPECT_THROW(NodeTopology::fromMap({}), BadInput);
  EXPECT_THROW(NodeTopology::fromMap({0, -1}), BadInput);
  const NodeTopology topology = NodeTopology::parse("5,2", 7);
  EXPECT_THROW(topology.nodeOf(7), BadInput);
  EXPECT_THROW(topology.nodeOf(-1), BadInput);
  EXPECT_THROW(topology.localRankOf(7), BadInput);
  EXPECT_THROW(topology.numRanksOn(2), BadInput);
  EXPECT_THROW(topology.rankOn(1, 2), BadInput);
  EXPECT_THROW(topology.rankOn(0, -1), BadInput);
  EXPECT_EQ(1, NodeTopology::uniform(2147483647, 2147483647).numNodes());
}

TEST(NodeTopology, DescriptionNamesRanksAndNodes) {
  EXPECT_EQ("16 ranks on 4 nodes (4 each)", NodeTopology::uniform(16, 4).describe());
  EXPECT_EQ("7 ranks on 2 nodes (2 to 5 each)", NodeTopology::parse("5,2", 7).describe());
  EXPECT_EQ("7 ranks on 2 nodes (2 to 5 each)", NodeTopology::parse("2,5", 7).describe());
  EXPECT_EQ("7 ranks on 2 nodes (2 to 5 each)", NodeTopology::uniform(7, 5).describe());
  EXPECT_EQ("16 ranks on 4 nodes (4 each, in turn)", NodeTopology::cyclic(16, 4).describe());
  EXPECT_EQ("7 ranks on 2 nodes (3 to 4 each, in turn)", NodeTopology::cyclic(7, 2).describe());
  EXPECT_EQ("1 rank on 1 node (1 each)", NodeTopology::uniform(1, 1).describe());
}

/// For each rank of `comm` the lowest rank it shares memory with, by MPI's groups.
std::vector<int> lowestPartners(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  int lowest = rank;
  MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, node);
  MPI_Comm_free(&node);
  std::vector<int> all(size);
  MPI_Allgather(&lowest, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
  return all;
}

/// The label of each rank of MPI_COMM_WORLD, gathered.
std::vector<int> labelsOfAll(int mine) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> all(size);
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  return all;
}

/// A folder like Linux' /sys/devices/system, of this rank alone.
class System {
 public:
  System() : root_(std::filesystem::temp_directory_path() / ("komvos-system-" + std::to_string(getpid()))) {}
  ~System() { std::filesystem::remove_all(root_); }
  std::string root() const { return root_.string(); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  void addPackage(int number, const std::string& list, const std::vector<int>& processors, const char* name) const {
    for (const int one : processors) {
      const std::string topology = "cpu/cpu" + std::to_string(one) + "/topology/";
      write(topology + name, list);
      write(topology + "physical_package_id", std::to_string(number));
    }
  }

 private:
  std::filesystem::path root_;
};

TEST(SocketBinding, IsWhereAllProcessorsOfAThreadAre) {
  const auto expectIs = [](int package, int numaNode, const Komvos::Impl::SocketBinding& binding) {
    EXPECT_EQ(package, binding.package);
    EXPECT_EQ(numaNode, binding.numaNode);
  };
  for (const char* name : {"package_cpus_list", "core_siblings_list"}) {
    const System system;
    system.addPackage(0, "0-1,4", {0, 1, 4}, name);
    system.addPackage(7, "2-3,5", {2, 3, 5}, name);
    system.write("node/online", "0,2-3");
    system.write("node/node0/cpulist", "0-1,4");
    system.write("node/node2/cpulist", "2,5");
    system.write("node/node3/cpulist", "3");
    const auto of = [&](const std::vector<int>& processors) {
      return Komvos::Impl::bindingOf(processors, system.root());
    };
    expectIs(0, 0, of({0}));
    expectIs(0, 0, of({1, 4}));
    expectIs(7, 2, of({2, 5}));
    expectIs(7, 3, of({3}));
    expectIs(7, -1, of({3, 5}));
    expectIs(-1, -1, of({1, 2}));
    expectIs(-1, -1, of({9}));
    expectIs(-1, -1, of({}));
  }
  const System nothing;
  expectIs(-1, -1, Komvos::Impl::bindingOf({0}, nothing.root()));
}

TEST(SocketBinding, OfAThreadFollowsWhatItIsBoundTo) {
  cpu_set_t before;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof(before), &before));
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &before)) {
      continue;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ASSERT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
    const Komvos::Impl::SocketBinding binding = Komvos::Impl::bindingOfThisThread();
    const Komvos::Impl::SocketBinding expected = Komvos::Impl::bindingOf({processor});
    EXPECT_EQ(expected.package, binding.package) << processor;
    EXPECT_EQ(expected.numaNode, binding.numaNode) << processor;
  }
  EXPECT_EQ(0, sched_setaffinity(0, sizeof(before), &before));
}

TEST(NodeTopologyDetect, SocketsAreWhereProcessesAreBound) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::vector<int> nodes = lowestPartners(MPI_COMM_WORLD);
  const int odd = rank % 2;
  const auto sockets = [](int package, int numaNode) {
    return Komvos::Impl::socketsFrom(MPI_COMM_WORLD, {package, numaNode});
  };
  const std::vector<int> halves = labelsOfAll(nodes[rank] + odd);  // numbered by lowest rank: even ranks come first
  expectIs(sockets(odd, odd), halves);
  expectIs(sockets(odd, 5), halves);
  expectIs(sockets(3, odd), halves);
  expectIs(sockets(-1, odd), halves);
  expectIs(sockets(3, 5), nodes);
  expectIs(sockets(-1, -1), nodes);
  expectIs(sockets(rank == 0 ? -1 : odd, rank == 0 ? -1 : odd), nodes);  // rank 0 may run on both
  expectIs(sockets(odd, -1), halves);
}

TEST(NodeTopologyDetect, SocketsOfThisMachineStayInsideNodes) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  for (const MPI_Comm comm : {MPI_COMM_WORLD, half}) {
    const NodeTopology nodes = NodeTopology::detect(comm);
    const NodeTopology sockets = NodeTopology::detectSockets(comm);
    ASSERT_EQ(nodes.numRanks(), sockets.numRanks());
    for (int r = 0; r < sockets.numRanks(); ++r) {
      EXPECT_TRUE(nodes.sameNode(r, sockets.leaderOf(sockets.nodeOf(r)))) << "rank " << r;
    }
  }
  MPI_Comm_free(&half);
}

TEST(NodeTopologyDetect, NodesOfAnyShapeAreFoundFromTheirCommunicators) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<std::vector<int>> all;
  for (int n = 1; n <= size; ++n) {
    std::vector<int> blocks(size), inTurn(size), longLast(size), longFirst(size);
    for (int r = 0; r < size; ++r) {
      blocks[r] = r / n;
      inTurn[r] = r % n;
      longLast[r] = std::min(r, size - n);
      longFirst[r] = std::max(r, n);
    }
    all.insert(all.end(), {blocks, inTurn, longLast, longFirst});
  }
  all.push_back(std::vector<int>(size));
  for (int r = 0; r < size; ++r) {
    all.back()[r] = std::min(r / 2, 1);  // two ranks, and all others
  }
  KomvosTest::Random random(11);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<int> label(size);
    for (int& one : label) {
      one = random.below(3);
    }
    all.push_back(label);
  }
  for (const std::vector<int>& any : all) {
    std::vector<int> label(size);  // the lowest rank of the node
    for (int r = 0; r < size; ++r) {
      label[r] = static_cast<int>(std::find(any.begin(), any.end(), any[r]) - any.begin());
    }
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, label[rank], rank, &node);
    const NodeTopology found = NodeTopology::fromCommunicators(MPI_COMM_WORLD, node);
    MPI_Comm_free(&node);
    expectIs(found, label);
    EXPECT_EQ(NodeTopology::fromMap(label).fingerprint(), found.fingerprint());
  }
}

TEST(NodeTopologyDetect, FindsTheRanksThatShareMemoryOnAnyCommunicator) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  expectIs(NodeTopology::detect(MPI_COMM_WORLD), lowestPartners(MPI_COMM_WORLD));
  MPI_Comm backwards = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
  expectIs(NodeTopology::detect(backwards), lowestPartners(backwards));
  MPI_Comm_free(&backwards);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  expectIs(NodeTopology::detect(half), lowestPartners(half));
  MPI_Comm_free(&half);
  expectIs(NodeTopology::detect(MPI_COMM_SELF), {0});
}

}  // namespace
