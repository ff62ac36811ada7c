// Plans built by MPI ranks together are those built in memory, entry by entry; bad input fails everywhere alike.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_DetectedTopology.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_NodeMemory.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ThreeStepRoute.hpp"
#include "Komvos_Traffic.hpp"
#include "support/mpi_support.hpp"
#include "support/plan_simulation.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace KomvosTest;
using Komvos::ExchangeOptions;
using Komvos::InMemorySetupTransport;
using Komvos::MpiSetupTransport;
using Komvos::Pairing;
using Komvos::RouteChoice;

ExchangePlan buildWithMpi(RouteChoice choice, Pairing pairing, const NodeTopology& topology, const Pattern& mine) {
  MpiSetupTransport transport(MPI_COMM_WORLD);
  const auto route = Komvos::makeRoute(choice, topology, pairing);
  return buildPlans(transport, topology, *route, {mine}).front();
}

TEST(MpiPlans, EqualThePlansBuiltInMemory) {
  const int rank = worldRank();
  const int size = worldSize();
  const auto compare = [&](RouteChoice choice, Pairing pairing, const NamedTopology& where, const NamedPatterns& what) {
    InMemorySetupTransport transport(size);
    const auto route = Komvos::makeRoute(choice, where.topology, pairing);
    const auto plans = buildPlans(transport, where.topology, *route, what.patterns);
    ASSERT_EQ("", PlanSimulation(plans, what.patterns, where.topology).problems()) << where.name << ", " << what.name;
    const ExchangePlan mine = buildWithMpi(choice, pairing, where.topology, what.patterns[rank]);
    EXPECT_EQ(describe(plans[rank]), describe(mine)) << where.name << ", " << what.name << ", " << toString(pairing);
    const auto expected = trafficOf(plans).total;
    const auto found = Komvos::reduceTraffic(MPI_COMM_WORLD, trafficOf(mine)).total;
    EXPECT_EQ(expected.interNodeMessages, found.interNodeMessages);
    EXPECT_EQ(expected.onNodeValues, found.onNodeValues);
  };
  for (const NamedTopology& where : topologiesFor(size)) {
    for (const NamedPatterns& what : patternsFor(size, 40 + size)) {
      compare(RouteChoice::standard, Pairing::byVolume, where, what);
      for (const Pairing pairing : allPairings()) {
        compare(RouteChoice::threeStep, pairing, where, what);
      }
    }
  }
}

TEST(MpiPlans, OfEveryRouteEqualThePlansBuiltInMemory) {
  const int rank = worldRank();
  const int size = worldSize();
  MpiSetupTransport transport(MPI_COMM_WORLD);
  for (const NamedTopology& where : topologiesFor(size)) {
    const NodeTopology sockets = socketsOf(where.topology, 2);
    for (const NamedPatterns& what : patternsFor(size, 60 + size)) {
      for (const Komvos::RouteChoice& spec : routesFor(size)) {
        SCOPED_TRACE(where.name + ", " + what.name + ", " + toString(spec));
        InMemorySetupTransport memory(size);
        const auto alone = makeRoute(spec, where.topology, Pairing::byVolume, &sockets);
        const auto plans = buildPlans(memory, where.topology, *alone, what.patterns);
        const auto together = makeRoute(spec, where.topology, Pairing::byVolume, &sockets);
        const auto mine = buildPlans(transport, where.topology, *together, {what.patterns[rank]});
        EXPECT_EQ(describe(plans[rank]), describe(mine.front()));
      }
    }
  }
}

/// Candidates between which there was a choice.
long allowed(const Komvos::HaloReport& report) {
  return std::count_if(report.candidates.begin(), report.candidates.end(),
                       [](const Komvos::HaloCandidate& one) { return one.rejectionReason != "not asked for"; });
}

TEST(MpiPlans, PlanHaloReportsTheTrafficOfBothRoutes) {
  const int rank = worldRank();
  const int size = worldSize();
  for (const NamedTopology& where : topologiesFor(size)) {
    const NamedPatterns what = patternsFor(size, 7).at(1);
    InMemorySetupTransport transport(size);
    const auto standard = Komvos::makeRoute(RouteChoice::standard, where.topology, Pairing::byVolume);
    const auto expected = trafficOf(buildPlans(transport, where.topology, *standard, what.patterns));
    ExchangeOptions options;
    options.topology = std::make_shared<const NodeTopology>(where.topology);
    options.intraNode = Komvos::IntraNode::messages;
    for (const RouteChoice& choice : {RouteChoice::standard, RouteChoice::threeStep, RouteChoice::automatic}) {
      options.route = choice;
      const auto halo = Komvos::planHalo(MPI_COMM_WORLD, what.patterns[rank], options);
      EXPECT_EQ(expected.total.interNodeValues, halo.report.standard.total.interNodeValues);
      EXPECT_EQ(expected.max.neighbours, halo.report.standard.max.neighbours);
      EXPECT_EQ(halo.plan->route, halo.report.route);
      EXPECT_EQ(what.patterns[rank].numTarget, halo.plan->numTarget);
      const auto chosen = Komvos::reduceTraffic(MPI_COMM_WORLD, trafficOf(*halo.plan));
      EXPECT_EQ(chosen.total.interNodeMessages, halo.report.chosen.total.interNodeMessages);
      EXPECT_EQ(chosen.max.onNodeValues, halo.report.chosen.max.onNodeValues);
      const bool measured = choice == RouteChoice::automatic && allowed(halo.report) > 1;
      EXPECT_EQ(measured, halo.report.standardSeconds > 0) << where.name;
      EXPECT_EQ(measured, halo.report.chosenSeconds > 0) << where.name;
      if (choice != RouteChoice::automatic) {
        EXPECT_EQ(choice == RouteChoice::standard ? "standard" : "three-step", halo.report.route);
      }
    }
  }
}

/// What one rank may get wrong, with some words of the error it must cause everywhere.
struct Mistake {
  std::string name;
  std::string words;
  std::function<void(Pattern&, NodeTopology&)> make;
};

std::vector<Mistake> mistakes() {
  return {
      {"a value that is needed is not sent", "is needed", [](Pattern& p, NodeTopology&) { p.sends.pop_back(); }},
      {"nothing is sent", "", [](Pattern& p, NodeTopology&) { p.sends.clear(); }},
      {"nothing is expected", "", [](Pattern& p, NodeTopology&) { p.receives.clear(); }},
      {"a value is not expected", "are needed",
       [](Pattern& p, NodeTopology&) { p.receives.erase(p.receives.begin()); }},
      {"a value that does not exist is expected", "value 77 of rank",
       [](Pattern& p, NodeTopology&) { p.receives.back().value.local = 77; }},
      {"an owned value out of range", "sends owned value 99 of",
       [](Pattern& p, NodeTopology&) { p.sends.back().local = 99; }},
      {"a destination out of range", "sends to rank 99 of",
       [](Pattern& p, NodeTopology&) { p.sends.back().destination = 99; }},
      {"a target out of range", "fills target 999 of",
       [](Pattern& p, NodeTopology&) { p.receives.back().target = 999; }},
      {"the pattern of another rank", "not those of the ranks at hand", [](Pattern& p, NodeTopology&) { p.rank = 77; }},
      {"a topology of another size", "the topology has 77 ranks",
       [](Pattern&, NodeTopology& t) { t = NodeTopology::uniform(77, 2); }},
  };
}

TEST(MpiPlanErrors, AMistakeOfOneRankIsTheSameErrorOnAllRanks) {
  const int rank = worldRank();
  const int size = worldSize();
  if (size == 1) {
    GTEST_SKIP() << "one rank has nobody to disagree with";
  }
  const Needs halo = allToAll(size, 2);
  const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  for (const Mistake& mistake : mistakes()) {
    for (const int guilty : {0, size - 1}) {
      for (const int ppn : {1, 3}) {
        Pattern mine = patterns[rank];
        NodeTopology topology = NodeTopology::uniform(size, ppn);
        if (rank == guilty) {
          mistake.make(mine, topology);
        }
        const std::string where =
            mistake.name + ", rank " + std::to_string(guilty) + ", " + std::to_string(ppn) + " per node";
        for (const RouteChoice& choice : {RouteChoice::standard, RouteChoice::threeStep}) {
          const std::string direct =
              commonError(where, [&] { buildWithMpi(choice, Pairing::byVolume, topology, mine); });
          if (choice == RouteChoice::standard) {
            EXPECT_NE(std::string::npos, direct.find(mistake.words)) << where << ": " << direct;
          }
          ExchangeOptions options;
          options.route = choice;
          options.topology = std::make_shared<const NodeTopology>(topology);
          const std::string planned = commonError(where, [&] { Komvos::planHalo(MPI_COMM_WORLD, mine, options); });
          EXPECT_NE(std::string::npos, planned.find(mistake.words)) << where << ": " << planned;
        }
      }
    }
  }
}

TEST(MpiPlanErrors, OptionsThatDifferBetweenRanksAreRefused) {
  const int rank = worldRank();
  const int size = worldSize();
  if (size == 1) {
    GTEST_SKIP() << "one rank has nobody to disagree with";
  }
  const Needs halo = allToAll(size, 2);
  const Pattern mine = KomvosTest::patternsFromNeeds(halo.owner, halo.needs)[rank];
  const auto planned = [&](const char* option, RouteChoice route, Pairing pairing, int ppn) {
    ExchangeOptions options;
    options.route = route;
    options.pairing = pairing;
    options.topology = std::make_shared<const NodeTopology>(NodeTopology::uniform(size, ppn));
    const std::string error = commonError(option, [&] { Komvos::planHalo(MPI_COMM_WORLD, mine, options); });
    EXPECT_NE(std::string::npos, error.find(std::string("the ") + option)) << error;
  };
  const bool odd = rank == size - 1;
  planned("route", odd ? RouteChoice::standard : RouteChoice::threeStep, Pairing::byVolume, 2);
  planned("pairing", RouteChoice::threeStep, odd ? Pairing::majority : Pairing::byVolume, 2);
  planned("topology", RouteChoice::threeStep, Pairing::byVolume, odd ? 1 : 2);
}

TEST(MpiPlanErrors, ATopologyOnSomeRanksOnlyIsRefused) {
  const int rank = worldRank();
  const int size = worldSize();
  if (size == 1) {
    GTEST_SKIP() << "one rank has nobody to disagree with";
  }
  const Needs halo = allToAll(size, 1);
  const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  ExchangeOptions options;
  if (rank == size - 1) {
    options.topology = std::make_shared<const NodeTopology>(NodeTopology::uniform(size, 1));
  }
  const std::string text = commonError("topology", [&] { Komvos::planHalo(MPI_COMM_WORLD, patterns[rank], options); });
  EXPECT_EQ("a topology is given on some ranks only", text);
}

/// Signals of a message stand on lines of their own, for the sender as for the receiver.
TEST(NodeMemory, BlocksStartOnCacheLinesInTheEyesOfAllRanks) {
  const auto comm = Komvos::Impl::PrivateComm::of(MPI_COMM_WORLD);
  Komvos::Impl::NodeMemory memory(comm->get());
  int others = 0;
  for (const std::size_t bytes : {1, 64, 100, 3 << 18}) {  // the last one does not fit into the first window
    const Komvos::Impl::NodeMemory::Block block = memory.allocate(bytes);
    ASSERT_NE(nullptr, block.data);
    EXPECT_GE(block.bytes, bytes);
    block.data[0] = static_cast<char>(1 + comm->rank());
    block.data[bytes - 1] = static_cast<char>(1 + comm->rank());
    memory.sync(block.place.window);
    std::array<std::int64_t, 2> mine{block.place.window, block.place.offset};
    std::vector<std::int64_t> all(2 * comm->size());
    MPI_Allgather(mine.data(), 2, MPI_INT64_T, all.data(), 2, MPI_INT64_T, comm->get());
    memory.sync(block.place.window);
    for (int rank = 0; rank < comm->size(); ++rank) {
      const int peer = memory.nodeRank(rank);
      if (peer >= 0) {
        const char* const seen = memory.at(peer, {all[2 * rank], all[2 * rank + 1]});
        EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(seen) % 64) << bytes << " bytes of rank " << rank;
        EXPECT_EQ(1 + rank, seen[0]);
        EXPECT_EQ(1 + rank, seen[bytes - 1]);
        others += rank != comm->rank() ? 1 : 0;
      }
    }
    MPI_Barrier(comm->get());
  }
  const auto nodes = Komvos::Impl::detectedTopology(*comm);
  EXPECT_EQ(4 * (nodes->numRanksOn(nodes->nodeOf(comm->rank())) - 1), others);
}

TEST(MpiPlans, AfterErrorsTheCommunicatorStillWorks) {
  const int rank = worldRank();
  const int size = worldSize();
  const auto patterns = patternsFor(size, 3).front().patterns;
  const NodeTopology topology = NodeTopology::uniform(size, 2);
  const ExchangePlan plan = buildWithMpi(RouteChoice::threeStep, Pairing::byVolume, topology, patterns[rank]);
  EXPECT_EQ(patterns[rank].receives.size(), plan.deliveries.size());
}

}  // namespace
