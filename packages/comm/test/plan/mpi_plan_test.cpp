// Plans built by MPI ranks together are those built in memory, entry by entry; bad input fails everywhere alike.
#include <gtest/gtest.h>
#include <mpi.h>

#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_Traffic.hpp"
#include "support/mistakes.hpp"
#include "support/mpi_support.hpp"
#include "support/plan_simulation.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace KomvosTest;
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
        }
      }
    }
  }
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
