// What messages cost: from a machine model, and by a quick calibration.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "Komvos_MachineModel.hpp"
#include "Komvos_MessageCosts.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_PrivateComm.hpp"
#include "support/matrix_support.hpp"
#include "support/mpi_counter.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::NodeTopology;
using Komvos::Impl::costsOf;
using Komvos::Impl::MessageCosts;
using Komvos::Impl::PrivateComm;

std::vector<double> numbersOf(const MessageCosts& costs) {
  return {costs.latency, costs.perByte, costs.onNodeLatency, costs.onNodePerByte, costs.inSeconds ? 1.0 : 0.0};
}

void expectAlikeOnAllRanks(const MessageCosts& costs) {
  std::vector<double> least = numbersOf(costs), most = least;
  const int count = static_cast<int>(least.size());
  MPI_Allreduce(MPI_IN_PLACE, least.data(), count, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, most.data(), count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_EQ(least, most);
}

TEST(MessageCosts, OfAMachineAreThoseOfItsEagerMessages) {
  const Komvos::MachineModel machine = Komvos::blueWaters();
  const MessageCosts costs = costsOf(machine);
  EXPECT_TRUE(costs.inSeconds);
  EXPECT_EQ(machine.needOffNode().of(Komvos::Protocol::eager).latency, costs.latency);
  EXPECT_EQ(1 / machine.needOffNode().of(Komvos::Protocol::eager).rate, costs.perByte);
  EXPECT_EQ(machine.onNode.of(Komvos::Protocol::eager).latency, costs.onNodeLatency);
  Komvos::MachineModel oneNode = machine;
  oneNode.offNode.reset();
  EXPECT_EQ(numbersOf(MessageCosts()), numbersOf(costsOf(oneNode)));
}

/// A rank sends 4 messages to a partner on the next node, if there is one, and 4 on its own node.
TEST(MessageCosts, AreMeasuredByAFewMessagesOfEachRank) {
  const auto comm = PrivateComm::of(MPI_COMM_WORLD);
  for (const NamedTopology& where : topologiesFor(comm->size())) {
    SCOPED_TRACE(where.name);
    const NodeTopology& nodes = where.topology;
    const int node = nodes.nodeOf(comm->rank()), local = nodes.localRankOf(comm->rank());
    const int next = (node + 1) % nodes.numNodes();
    const bool hasNext = next != node && local < nodes.numRanksOn(next);
    const bool isAlone = nodes.numRanksOn(node) == 1;
    double seconds = -1;
    startCounting();
    const MessageCosts costs = Komvos::Impl::measureMessageCosts(*comm, nodes, seconds);
    const Counts counts = stopCounting();
    const auto toNode = [&](int which) {
      return std::count_if(counts.sent.begin(), counts.sent.end(), [&](const SentMessage& one) {
        return one.peer != MPI_PROC_NULL && nodes.nodeOf(one.peer) == which;
      });
    };
    EXPECT_EQ(hasNext ? 4 : 0, next == node ? 0 : toNode(next));
    EXPECT_EQ(isAlone ? 0 : 4, toNode(node));
    EXPECT_EQ(1, counts.collectives);
    EXPECT_EQ(nodes.numNodes() > 1, costs.inSeconds);
    EXPECT_GT(costs.latency, 0);
    EXPECT_GE(costs.perByte, 0);
    EXPECT_GT(costs.onNodeLatency, 0);
    EXPECT_GE(costs.onNodePerByte, 0);
    if (costs.inSeconds) {
      EXPECT_LT(costs.latency, seconds);
      EXPECT_LT(costs.onNodeLatency, seconds);
    }
    expectAlikeOnAllRanks(costs);
  }
}

TEST(QuickCalibration, MeasuresOnceAndIsTakenOverByOtherCommunicators) {
  const auto world = PrivateComm::of(MPI_COMM_WORLD);
  if (world->size() < 3) {
    return;
  }
  const NodeTopology nodes = NodeTopology::uniform(world->size(), 2);
  double seconds = -1;
  const MessageCosts first = Komvos::Impl::quickCalibration(*world, nodes, seconds);
  EXPECT_TRUE(first.inSeconds);
  expectAlikeOnAllRanks(first);

  startCounting();
  const MessageCosts again = Komvos::Impl::quickCalibration(*world, nodes, seconds);
  Counts counts = stopCounting();
  EXPECT_EQ(numbersOf(first), numbersOf(again));
  EXPECT_EQ(0, seconds);
  EXPECT_EQ(0u, counts.sent.size() + counts.collectives);

  MPI_Comm twin = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  {
    const auto other = PrivateComm::of(twin);
    startCounting();
    const MessageCosts there = Komvos::Impl::quickCalibration(*other, nodes, seconds);
    counts = stopCounting();
    EXPECT_EQ(0u, counts.sent.size());
    EXPECT_EQ(1, counts.collectives);
    EXPECT_EQ(0, seconds);
    expectAlikeOnAllRanks(there);
    EXPECT_TRUE(there.inSeconds);
  }
  MPI_Comm_free(&twin);
}

}  // namespace
