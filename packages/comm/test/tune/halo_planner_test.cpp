// planHalo: what it reports, and that bad input fails everywhere alike.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_RouteForecast.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_Traffic.hpp"
#include "support/mistakes.hpp"
#include "support/mpi_support.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace KomvosTest;
using Komvos::ExchangeOptions;
using Komvos::InMemorySetupTransport;
using Komvos::Pairing;
using Komvos::RouteChoice;

/// Candidates between which there was a choice.
long allowed(const Komvos::HaloReport& report) {
  return std::count_if(report.candidates.begin(), report.candidates.end(),
                       [](const Komvos::HaloCandidate& one) { return one.rejectionReason != "not asked for"; });
}

/// With sets, where the library marks what it has seen.
TEST(HaloCounts, CountEachValueOncePerNode) {
  const int size = 12;
  for (const NamedTopology& where : topologiesFor(size)) {
    for (const NamedPatterns& what : patternsFor(size, 7)) {
      for (const Komvos::Pattern& pattern : what.patterns) {
        std::set<int> ranksOn, ranksOff, nodes;
        std::set<std::pair<int, int>> valuesOfNodes;
        long valuesOn = 0, valuesOff = 0;
        const int here = where.topology.nodeOf(pattern.rank);
        for (const Komvos::Pattern::Send& send : pattern.sends) {
          const int node = where.topology.nodeOf(send.destination);
          (node == here ? ranksOn : ranksOff).insert(send.destination);
          ++(node == here ? valuesOn : valuesOff);
          if (node != here) {
            nodes.insert(node);
            valuesOfNodes.emplace(node, send.local);
          }
        }
        const Komvos::HaloCounts counts = Komvos::Impl::countsOfRank(pattern, where.topology);
        const std::string name = what.name + ", " + where.name + ", rank " + std::to_string(pattern.rank);
        EXPECT_EQ(static_cast<long>(ranksOff.size()), counts.ranksOffNode) << name;
        EXPECT_EQ(valuesOff, counts.valuesOffNode) << name;
        EXPECT_EQ(static_cast<long>(nodes.size()), counts.nodes) << name;
        EXPECT_EQ(static_cast<long>(valuesOfNodes.size()), counts.valuesOfNodes) << name;
        EXPECT_EQ(static_cast<long>(ranksOn.size()), counts.ranksOnNode) << name;
        EXPECT_EQ(valuesOn, counts.valuesOnNode) << name;
      }
    }
  }
}

TEST(HaloPlanner, ReportsTheTrafficOfBothRoutes) {
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
    options.tuning = Komvos::Tuning::exhaustive;
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

/// Everything of a plan that an exchange uses.
std::string textOf(const Komvos::ExchangePlan& plan) {
  std::string text = plan.route + ":";
  const auto add = [&text](std::initializer_list<int> numbers) {
    for (const int number : numbers) {
      text += " " + std::to_string(number);
    }
    text += ";";
  };
  add({plan.rank, plan.numRanks, plan.numStages, plan.numOwned, plan.numTarget});
  for (const auto* list : {&plan.sends, &plan.receives}) {
    for (const Komvos::PlanMessage& one : *list) {
      add({one.peer, one.stage, one.first, one.count, one.onNode});
    }
  }
  for (const int source : plan.sendSource) {
    add({source});
  }
  for (const auto& one : plan.deliveries) {
    add({one.position, one.target, one.onNode});
  }
  return text;
}

TEST(HaloPlanner, PlansSeveralAsItPlansEach) {
  const int rank = worldRank();
  const int size = worldSize();
  for (const NamedTopology& where : topologiesFor(size)) {
    std::vector<Pattern> patterns;
    for (const NamedPatterns& what : patternsFor(size, 5)) {
      patterns.push_back(what.patterns[rank]);
    }
    patterns.push_back(patterns.front());  // the same once more
    for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep, RouteChoice::automatic}) {
      ExchangeOptions options;
      options.topology = std::make_shared<const NodeTopology>(where.topology);
      options.route = route;
      options.reuseDecisions = false;
      options.calibrate = false;  // or each begins as its forecast says, by what planning took this time
      const auto together = Komvos::planHalos(MPI_COMM_WORLD, patterns, options);
      ASSERT_EQ(patterns.size(), together.size());
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        const auto alone = Komvos::planHalo(MPI_COMM_WORLD, patterns[i], options);
        EXPECT_EQ(textOf(*alone.plan), textOf(*together[i].plan)) << where.name << ", " << toString(route);
        EXPECT_EQ(alone.intraNode, together[i].intraNode);
        EXPECT_EQ(alone.tuner != nullptr, together[i].tuner != nullptr);
        EXPECT_EQ(alone.report.reverseRoute, together[i].report.reverseRoute);
        EXPECT_EQ(alone.report.standard.total.interNodeValues, together[i].report.standard.total.interNodeValues);
        EXPECT_EQ(alone.report.chosen.max.interNodeMessages, together[i].report.chosen.max.interNodeMessages);
        EXPECT_GT(together[i].report.setupSeconds, 0);
      }
    }
  }
  EXPECT_TRUE(Komvos::planHalos(MPI_COMM_WORLD, {}, {}).empty());
}

TEST(HaloPlannerErrors, AMistakeInOneOfSeveralIsTheSameErrorOnAllRanks) {
  const int rank = worldRank();
  const int size = worldSize();
  if (size == 1) {
    GTEST_SKIP() << "one rank has nobody to disagree with";
  }
  const Needs halo = allToAll(size, 2);
  const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  for (const Mistake& mistake : mistakes()) {
    std::vector<Pattern> mine(3, patterns[rank]);
    NodeTopology topology = NodeTopology::uniform(size, 2);
    if (rank == size / 2) {
      mistake.make(mine[1], topology);
    }
    ExchangeOptions options;
    options.topology = std::make_shared<const NodeTopology>(topology);
    const std::string planned = commonError(mistake.name, [&] { Komvos::planHalos(MPI_COMM_WORLD, mine, options); });
    EXPECT_NE(std::string::npos, planned.find(mistake.words)) << mistake.name << ": " << planned;
  }
  const std::string text = commonError("number", [&] {
    Komvos::planHalos(MPI_COMM_WORLD, std::vector<Pattern>(rank == 0 ? 2 : 3, patterns[rank]), {});
  });
  EXPECT_NE(std::string::npos, text.find("number of those planned together")) << text;
}

TEST(HaloPlannerErrors, AMistakeOfOneRankIsTheSameErrorOnAllRanks) {
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

TEST(HaloPlannerErrors, OptionsThatDifferBetweenRanksAreRefused) {
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

TEST(HaloPlannerErrors, ATopologyOnSomeRanksOnlyIsRefused) {
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

}  // namespace
