// What each route promises, for all ranks of virtual machines in one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_AxisRoute.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_Schedule.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_SocketRoute.hpp"
#include "Komvos_SplitRoute.hpp"
#include "Komvos_ThreeStepRoute.hpp"
#include "Komvos_TwoStepRoute.hpp"
#include "support/counting_transport.hpp"
#include "support/plan_simulation.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace KomvosTest;
using Komvos::AxisFactors;
using Komvos::AxisRoute;
using Komvos::BadInput;
using Komvos::InMemorySetupTransport;
using Komvos::Pairing;
using Komvos::Route;
using Komvos::RouteChoice;
using Komvos::SocketRoute;
using Komvos::SplitRoute;
using Komvos::ThreeStepRoute;
using Komvos::TwoStepRoute;
using KomvosTest::CountingTransport;

std::vector<ExchangePlan> plansOf(Route& route, const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
  InMemorySetupTransport transport(nodes.numRanks());
  return buildPlans(transport, nodes, route, patterns);
}

/// The messages along `route`, after the simulation found no fault.
Messages messagesOf(Route& route, const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
  const auto plans = plansOf(route, nodes, patterns);
  const PlanSimulation simulation(plans, patterns, nodes);
  EXPECT_EQ("", simulation.problems()) << route.name() << " on " << nodes.describe();
  return simulation.messages();
}

/// Nodes of all kinds: those of topologiesFor, and two random maps to up to eight.
std::vector<NamedTopology> manyNodes(int numRanks, Random& random) {
  std::vector<NamedTopology> list = topologiesFor(numRanks);
  for (int trial = 0; trial < 2; ++trial) {
    std::vector<int> node(numRanks);
    const int numNodes = 1 + random.below(8);
    for (int& label : node) {
      label = random.below(numNodes);
    }
    if (trial == 0) {
      std::sort(node.begin(), node.end());
    }
    list.push_back({trial == 0 ? "random blocks" : "random map", NodeTopology::fromMap(node)});
  }
  return list;
}

template <class Work>
void onManyHalos(int lastNumRanks, const Work& work) {
  Random random(3);
  for (int numRanks = 1; numRanks <= lastNumRanks; ++numRanks) {
    for (const NamedTopology& where : manyNodes(numRanks, random)) {
      for (const NamedPatterns& what : patternsFor(numRanks, 500 + numRanks)) {
        SCOPED_TRACE(where.name + ", " + what.name + ", ranks " + std::to_string(numRanks));
        work(where.topology, what.patterns);
      }
    }
  }
}

// --- all routes ------------------------------------------------------------------------------------------------------

TEST(Routes, BringEveryValueOnceAndSumBackOnAnyNodes) {
  onManyHalos(24, [](const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
    const NodeTopology sockets = socketsOf(nodes, 2);
    for (const RouteChoice& spec : routesFor(nodes.numRanks())) {
      const auto route = makeRoute(spec, nodes, Pairing::byVolume, &sockets);
      messagesOf(*route, nodes, patterns);
    }
  });
}

TEST(Routes, GiveExactValuesAndSumsInWhateverOrderMessagesArrive) {
  Random random(12);
  onManyHalos(9, [&random](const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
    using Values = std::vector<std::vector<long>>;
    const NodeTopology sockets = socketsOf(nodes, 2, false);
    Values owned, filled, ghosts, summed;  // what goes in and what must come out, forward and reverse
    for (const Pattern& pattern : patterns) {
      owned.emplace_back();
      for (int i = 0; i < pattern.numOwned; ++i) {
        owned.back().push_back(1000 * (pattern.rank + 1) + i);
      }
      ghosts.emplace_back();
      for (int t = 0; t < pattern.numTarget; ++t) {
        ghosts.back().push_back(1 + random.below(1000000));
      }
      filled.emplace_back(pattern.numTarget, 0);
      summed.emplace_back(pattern.numOwned, 0);
    }
    for (const Pattern& pattern : patterns) {
      for (const Pattern::Receive& r : pattern.receives) {
        filled[pattern.rank][r.target] = owned[r.value.owner][r.value.local];
        summed[r.value.owner][r.value.local] += ghosts[pattern.rank][r.target];
      }
    }
    for (const RouteChoice& spec : routesFor(nodes.numRanks())) {
      const auto route = makeRoute(spec, nodes, Pairing::byVolume, &sockets);
      std::vector<Komvos::Impl::Schedule> forward, reverse;
      Values targets, sums;
      for (const ExchangePlan& plan : plansOf(*route, nodes, patterns)) {
        forward.push_back(Komvos::Impl::forwardSchedule(plan));
        reverse.push_back(Komvos::Impl::reverseSchedule(plan));
        targets.emplace_back(plan.numTarget, 0);
        sums.emplace_back(plan.numOwned, 0);
      }
      EXPECT_EQ("", runSchedules(forward, owned, targets, false, random)) << toString(spec);
      EXPECT_EQ(filled, targets) << toString(spec);
      EXPECT_EQ("", runSchedules(reverse, ghosts, sums, true, random)) << toString(spec);
      EXPECT_EQ(summed, sums) << toString(spec);
    }
  });
}

TEST(Routes, SetUpMessagesDoNotGrowWithTheMachine) {
  const int numRanks = 2048;
  const int ppn = 16;
  Random random(8);
  Needs halo;
  halo.needs.resize(numRanks);
  for (int i = 0; i < 2 * numRanks; ++i) {
    halo.owner.push_back(i / 2);
  }
  for (int rank = 0; rank < numRanks; ++rank) {
    for (int k = 0; k < 12; ++k) {
      halo.needs[rank].push_back(2 * ((rank + numRanks - 30 + random.below(61)) % numRanks));
    }
  }
  const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  const NodeTopology nodes = NodeTopology::uniform(numRanks, ppn);
  const NodeTopology sockets = socketsOf(nodes, 2);
  for (const RouteChoice& spec : routesFor(numRanks)) {
    CountingTransport transport(numRanks);
    const auto route = makeRoute(spec, nodes, Pairing::byVolume, &sockets);
    const auto plans = buildPlans(transport, nodes, *route, patterns);
    EXPECT_EQ("", PlanSimulation(plans, patterns, nodes).problems()) << toString(spec);
    EXPECT_LT(transport.mostOfARankAtOnce(), 100) << toString(spec);
  }
}

// --- two steps -------------------------------------------------------------------------------------------------------

TEST(TwoStepRoute, AProcessSendsOneMessageToANodeAndToItsPartnerThere) {
  onManyHalos(24, [](const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
    TwoStepRoute route(nodes);
    std::set<std::pair<int, int>> sent;  // (from, node)
    for (const auto& [key, values] : messagesOf(route, nodes, patterns)) {
      const auto& [stage, from, to] = key;
      if (!nodes.sameNode(from, to)) {
        EXPECT_EQ(0, stage);
        EXPECT_TRUE(sent.emplace(from, nodes.nodeOf(to)).second) << from << " -> " << to;
        EXPECT_EQ(nodes.localRankOf(from) % nodes.numRanksOn(nodes.nodeOf(to)), nodes.localRankOf(to));
      }
    }
  });
}

// --- split -----------------------------------------------------------------------------------------------------------

struct CrossMessage {
  int from, to;
  std::vector<ValueId> values;
};

/// The messages of each pair of nodes.
std::map<std::pair<int, int>, std::vector<CrossMessage>> crossMessages(const Messages& messages,
                                                                       const NodeTopology& nodes) {
  std::map<std::pair<int, int>, std::vector<CrossMessage>> pairs;
  for (const auto& [key, values] : messages) {
    const auto& [stage, from, to] = key;
    if (!nodes.sameNode(from, to)) {
      EXPECT_EQ(1, stage);
      pairs[{nodes.nodeOf(from), nodes.nodeOf(to)}].push_back({from, to, values});
    }
  }
  return pairs;
}

TEST(SplitRoute, SharesAPairOfNodesAmongDifferentProcessesByVolume) {
  for (const Pairing pairing : allPairings()) {
    for (const int splitValues : {1, 3, 8}) {
      onManyHalos(17, [&](const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
        SplitRoute route(nodes, pairing, splitValues);
        for (const auto& [pair, messages] : crossMessages(messagesOf(route, nodes, patterns), nodes)) {
          std::set<int> senders, receivers, owners;
          std::map<int, long> share;  // of each owner
          long volume = 0;
          for (const CrossMessage& message : messages) {
            EXPECT_TRUE(senders.insert(message.from).second);
            EXPECT_TRUE(receivers.insert(message.to).second);
            volume += static_cast<long>(message.values.size());
            for (const ValueId& value : message.values) {
              ++share[value.owner];
            }
          }
          const long wanted = (volume + splitValues - 1) / splitValues;
          const long parts = std::min<long>({wanted, nodes.numRanksOn(pair.first), nodes.numRanksOn(pair.second)});
          EXPECT_LE(static_cast<long>(messages.size()), parts);
          long largest = 0;
          for (const auto& entry : share) {
            largest = std::max(largest, entry.second);
          }
          for (const CrossMessage& message : messages) {
            EXPECT_LE(static_cast<long>(message.values.size()) * parts, volume + largest * parts);
            std::set<int> ownersHere;
            for (const ValueId& value : message.values) {
              ownersHere.insert(value.owner);
            }
            for (const int owner : ownersHere) {
              EXPECT_TRUE(owners.insert(owner).second) << "the values of rank " << owner << " take two ways";
            }
          }
        }
      });
    }
  }
}

TEST(SplitRoute, HasAsManyMessagesAsTheVolumeAsksForWhereOriginsAreAlike) {
  const Needs halo = allToAll(20, 3);
  const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  // 4 processes a node, but 8 on the last: 12 values from a small node, 24 from the large one.
  const NodeTopology nodes = NodeTopology::parse("4,4,4,8", 20);
  const std::map<int, std::pair<std::size_t, std::size_t>> expected{
      {1000, {1, 1}}, {24, {1, 1}}, {23, {1, 2}}, {12, {1, 2}}, {11, {2, 3}}, {6, {2, 4}}, {3, {4, 4}}, {1, {4, 4}}};
  for (const auto& [splitValues, counts] : expected) {
    SplitRoute route(nodes, Pairing::byVolume, splitValues);
    const auto pairs = crossMessages(messagesOf(route, nodes, patterns), nodes);
    EXPECT_EQ(12u, pairs.size());
    for (const auto& [pair, messages] : pairs) {
      EXPECT_EQ(pair.first == 3 ? counts.second : counts.first, messages.size())
          << "split:" << splitValues << ", nodes " << pair.first << " -> " << pair.second;
    }
  }
}

TEST(SplitRoute, IsThreeStepWherePairsOfNodesHaveLittleToSay) {
  for (const Pairing pairing : allPairings()) {
    onManyHalos(12, [&](const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
      SplitRoute split(nodes, pairing, 1000);
      ThreeStepRoute threeStep(nodes, pairing);
      EXPECT_EQ(messagesOf(threeStep, nodes, patterns), messagesOf(split, nodes, patterns));
    });
  }
}

TEST(SplitRoute, RefusesToSplitByNothing) {
  EXPECT_THROW(SplitRoute(NodeTopology::uniform(4, 2), Pairing::byVolume, 0), BadInput);
  EXPECT_THROW(SplitRoute(NodeTopology::uniform(4, 2), Pairing::byVolume, -1), BadInput);
}

// --- set-up ----------------------------------------------------------------------------------------------------------

/// What it takes to make the plans of a halo in which every rank needs 3 values of either neighbour, on nodes of 8.
struct Cost {
  int messagesOfARank;  // in one step
  double messagesPerRank;
  std::size_t planBytes, topologyBytes;
};

Cost setUpOf(const RouteChoice& choice, int numRanks) {
  const NodeTopology nodes = NodeTopology::uniform(numRanks, 8);
  const NodeTopology sockets = NodeTopology::uniform(numRanks, 4);
  const int each = 6;
  std::vector<int> owner(static_cast<std::size_t>(each) * numRanks);
  std::vector<std::vector<int>> needs(numRanks);
  for (int rank = 0; rank < numRanks; ++rank) {
    std::fill_n(owner.begin() + each * rank, each, rank);
    for (int i = 1; i <= 3; ++i) {
      needs[rank].push_back((each * rank - i + each * numRanks) % (each * numRanks));
      needs[rank].push_back((each * (rank + 1) + i - 1) % (each * numRanks));
    }
  }
  CountingTransport transport(numRanks);
  const auto route = makeRoute(choice, nodes, Pairing::byVolume, &sockets);
  Cost result{0, 0, 0, nodes.memoryBytes()};
  for (const ExchangePlan& plan : buildPlans(transport, nodes, *route, KomvosTest::patternsFromNeeds(owner, needs))) {
    result.planBytes = std::max(result.planBytes, plan.memoryBytes());
  }
  result.messagesOfARank = transport.mostOfARankAtOnce();
  result.messagesPerRank = static_cast<double>(transport.total()) / numRanks;
  return result;
}

/// The collectors on the longest axis besides one of them, and on all axes. They grow with the cube root of the nodes.
std::pair<int, int> otherCollectors(const RouteChoice& choice, int numRanks) {
  if (choice != RouteChoice::axis) {
    return {0, 0};
  }
  const AxisFactors grid = AxisFactors::fitting(NodeTopology::uniform(numRanks, 8));
  return {grid.x - 1, grid.x + grid.y + grid.z - 3};
}

TEST(SetUp, OfARankCostsTheSameOnAnyNumberOfRanks) {
  for (const char* text : {"standard", "two-step", "three-step", "split", "split:1", "sockets", "axis"}) {
    SCOPED_TRACE(text);
    const RouteChoice choice = Komvos::parseRoute(text);
    const Cost few = setUpOf(choice, 64);
    for (const int numRanks : {512, 4096}) {
      const Cost many = setUpOf(choice, numRanks);
      const auto [onOneAxis, onAllAxes] = otherCollectors(choice, numRanks);
      EXPECT_LE(many.messagesOfARank, std::max(few.messagesOfARank, onOneAxis));
      EXPECT_LE(many.messagesPerRank, few.messagesPerRank + 0.5 + onAllAxes / 8.0);
      // A grid of more ranks may have one axis more: two messages more in the plan of a collector.
      EXPECT_LE(many.planBytes, few.planBytes + 2 * sizeof(Komvos::PlanMessage));
      EXPECT_EQ(few.topologyBytes, many.topologyBytes);
    }
  }
}

/// Consensus takes ranks several times as long as waiting for those they know. That the senders a route names are the
/// right ones, InMemorySetupTransport makes sure of in every test of a route here.
TEST(SetUp, RanksKnowWhomToWaitFor) {
  struct Rounds {
    const char* route;
    int ofConsensus, ofKnown;
  };
  const Rounds expected[] = {{"standard", 0, 0}, {"two-step", 1, 1}, {"three-step", 0, 7},
                             {"split", 0, 7},    {"split:1", 0, 7},  {"axis", 0, 5}};
  const Needs halo = allToAll(24, 3);
  const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  const NodeTopology nodes = NodeTopology::uniform(24, 4);
  for (const auto& [text, ofConsensus, ofKnown] : expected) {
    CountingTransport transport(24);
    const auto route = makeRoute(Komvos::parseRoute(text), nodes, Pairing::byVolume, nullptr);
    buildPlans(transport, nodes, *route, patterns);
    EXPECT_EQ(ofConsensus, transport.roundsOfConsensus()) << text;
    EXPECT_EQ(ofKnown, transport.roundsOfKnown()) << text;
  }
}

TEST(SetUp, CollectorsOnVeryLongAxesFindEachOtherByConsensus) {
  const Needs halo = KomvosTest::randomNeeds(130, 3, 2, 1);
  const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  const NodeTopology nodes = NodeTopology::uniform(130, 2);
  for (const auto& [text, ofConsensus] : {std::pair{"axis:2,13,5,1", 0}, std::pair{"axis:2,65,1,1", 1}}) {
    CountingTransport transport(130);
    const auto route = makeRoute(Komvos::parseRoute(text), nodes, Pairing::byVolume, nullptr);
    buildPlans(transport, nodes, *route, patterns);
    EXPECT_EQ(ofConsensus, transport.roundsOfConsensus()) << text;
    EXPECT_EQ(5 - ofConsensus, transport.roundsOfKnown()) << text;
  }
}

// --- axis ------------------------------------------------------------------------------------------------------------

/// Section 2 of the paper, word by word.
struct Coordinates {
  int x, y, z;
  Coordinates(const AxisFactors& f, int r) : x(r / f.c % f.x), y(r / f.c / f.x % f.y), z(r / f.c / (f.x * f.y)) {}
};

void expectAxisMessages(const AxisFactors& f, const Messages& messages) {
  std::set<std::pair<int, ValueId>> inGroup;
  std::map<int, int> sent;  // to other groups
  for (const auto& [key, values] : messages) {
    const auto& [stage, from, to] = key;
    ASSERT_FALSE(values.empty());
    const Coordinates a(f, from);
    const Coordinates b(f, to);
    const int changed = (a.x != b.x) + 2 * (a.y != b.y) + 4 * (a.z != b.z);
    if (changed == 0) {
      EXPECT_TRUE(stage == 0 || stage == 4);
      continue;
    }
    EXPECT_EQ(1 << (stage - 1), changed) << "stage " << stage << ", " << from << " -> " << to;
    EXPECT_EQ(0, from % f.c);
    EXPECT_EQ(0, to % f.c);
    EXPECT_LE(++sent[from], f.x - 1 + f.y - 1 + f.z - 1);
    for (const ValueId& value : values) {
      EXPECT_NE(value.owner / f.c, to / f.c);
      EXPECT_TRUE(inGroup.emplace(to / f.c, value).second) << "a value enters group " << to / f.c << " twice";
    }
  }
}

TEST(AxisRoute, TravelsAlongOneAxisAStageForAllFactorisations) {
  Random random(4);
  for (const int numRanks : {1, 8, 12, 16, 24}) {
    const auto what = patternsFor(numRanks, 70 + numRanks);
    for (const AxisFactors& factors : AxisFactors::all(numRanks)) {
      for (const NamedPatterns& halo : what) {
        SCOPED_TRACE("axis:" + factors.text() + ", " + halo.name);
        AxisRoute route(factors, numRanks);
        const Messages messages = messagesOf(route, NodeTopology::uniform(numRanks, factors.c), halo.patterns);
        expectAxisMessages(factors, messages);
        // Where the nodes are does not matter to who sends what.
        const auto where = manyNodes(numRanks, random).back();
        EXPECT_EQ(messages, messagesOf(route, where.topology, halo.patterns));
      }
    }
  }
}

TEST(AxisRoute, ReachesTheBoundOfMessagesWhenEverybodyNeedsEverything) {
  const AxisFactors factors{2, 2, 3, 4};  // the example of the paper: 48 processes
  const Needs halo = allToAll(48, 1);
  AxisRoute route(factors, 48);
  std::map<int, int> sent;
  for (const auto& entry :
       messagesOf(route, NodeTopology::uniform(48, 2), KomvosTest::patternsFromNeeds(halo.owner, halo.needs))) {
    const auto& [stage, from, to] = entry.first;
    sent[from] += from / 2 != to / 2 ? 1 : 0;
  }
  for (int rank = 0; rank < 48; ++rank) {
    EXPECT_EQ(rank % 2 == 0 ? 1 + 2 + 3 : 0, sent[rank]) << "rank " << rank;
  }
}

std::string axisError(const AxisFactors& factors, int numRanks) {
  try {
    AxisRoute(factors, numRanks);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(AxisRoute, RefusesFactorsThatAreNotThoseOfTheRanks) {
  EXPECT_EQ("no error", axisError({2, 3, 1, 2}, 12));
  EXPECT_EQ("route axis:2,3,1,2: needs four positive factors with product 13, the number of ranks",
            axisError({2, 3, 1, 2}, 13));
  EXPECT_NE("no error", axisError({-2, -3, 1, 2}, 12));
  EXPECT_NE("no error", axisError({0, 1, 1, 1}, 1));
  EXPECT_NE("no error", axisError({2, 3, 2, 2}, 12));
  EXPECT_NE("no error", axisError({65536, 65536, 65536, 65536}, 1));  // the product is 2^64
  EXPECT_NE("no error", axisError({2147483647, 2147483647, 4, 1}, 4));
}

TEST(AxisFactors, AllAreAllGridsOfTheRanks) {
  for (int numRanks = 1; numRanks <= 24; ++numRanks) {
    std::vector<AxisFactors> expected;
    for (int c = 1; c <= numRanks; ++c) {
      for (int x = 1; x <= numRanks; ++x) {
        for (int y = 1; y <= numRanks; ++y) {
          for (int z = 1; z <= numRanks; ++z) {
            if (c * x * y * z == numRanks) {
              expected.push_back({c, x, y, z});
            }
          }
        }
      }
    }
    EXPECT_EQ(expected, AxisFactors::all(numRanks)) << numRanks << " ranks";
  }
  EXPECT_EQ(816u, AxisFactors::all(32768).size());
  EXPECT_THROW(AxisFactors::all(0), BadInput);
}

TEST(AxisFactors, BalancedGridsAreAsCubicAsTheRanksAllow) {
  EXPECT_EQ("1,1,1,1", AxisFactors::balanced(1, 1).text());
  EXPECT_EQ("16,16,8,8", AxisFactors::balanced(16384, 16).text());
  EXPECT_EQ("16,16,16,8", AxisFactors::balanced(32768, 16).text());
  EXPECT_EQ("4,3,2,2", AxisFactors::balanced(48, 4).text());
  EXPECT_EQ("2,7,1,1", AxisFactors::balanced(14, 2).text());
  EXPECT_EQ("12,1,1,1", AxisFactors::balanced(12, 12).text());
  EXPECT_THROW(AxisFactors::balanced(12, 5), BadInput);
  EXPECT_THROW(AxisFactors::balanced(12, 0), BadInput);
}

TEST(AxisFactors, FittingGroupsAreTheLargestThatStayInsideNodes) {
  EXPECT_EQ("4,2,2,2", AxisFactors::fitting(NodeTopology::uniform(32, 4)).text());
  EXPECT_EQ("2,5,1,1", AxisFactors::fitting(NodeTopology::parse("6,4", 10)).text());
  EXPECT_EQ("1,2,2,2", AxisFactors::fitting(NodeTopology::fromMap({0, 1, 0, 1, 0, 1, 0, 1})).text());
  Random random(6);
  for (int numRanks = 1; numRanks <= 24; ++numRanks) {
    for (const NamedTopology& where : manyNodes(numRanks, random)) {
      int largest = 1;
      for (int c = 1; c <= numRanks; ++c) {
        bool fits = numRanks % c == 0;
        for (int rank = 0; rank < numRanks; ++rank) {
          fits = fits && where.topology.sameNode(rank, rank / c * c);
        }
        largest = fits ? c : largest;
      }
      EXPECT_EQ(largest, AxisFactors::fitting(where.topology).c) << where.name << ", " << numRanks << " ranks";
    }
  }
}

// --- sockets ---------------------------------------------------------------------------------------------------------

TEST(SocketRoute, AValueEntersASocketOnceAndAPairOfSocketsHasOneMessageEachWay) {
  for (const Pairing pairing : allPairings()) {
    for (const bool blocks : {true, false}) {
      onManyHalos(17, [&](const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
        const NodeTopology sockets = socketsOf(nodes, 3, blocks);
        SocketRoute route(nodes, sockets, pairing);
        std::set<std::pair<int, ValueId>> entered;
        std::set<std::pair<bool, std::pair<int, int>>> pairs;  // (after the network, sockets)
        for (const auto& [key, values] : messagesOf(route, nodes, patterns)) {
          const auto& [stage, from, to] = key;
          const std::pair<int, int> pair{sockets.nodeOf(from), sockets.nodeOf(to)};
          if (pair.first == pair.second) {
            continue;
          }
          if (nodes.sameNode(from, to)) {
            EXPECT_TRUE(stage == 1 || stage == 5);
            EXPECT_TRUE(pairs.emplace(stage > 3, pair).second) << from << " -> " << to;
          }
          for (const ValueId& value : values) {
            EXPECT_NE(sockets.nodeOf(value.owner), pair.second);
            EXPECT_TRUE(entered.emplace(pair.second, value).second) << "socket " << pair.second << " gets it twice";
          }
        }
      });
    }
  }
}

/// Stages dropped: (from, to) -> all values.
std::map<std::pair<int, int>, std::set<ValueId>> withoutStages(const Messages& messages) {
  std::map<std::pair<int, int>, std::set<ValueId>> sent;
  for (const auto& [key, values] : messages) {
    sent[{std::get<1>(key), std::get<2>(key)}].insert(values.begin(), values.end());
  }
  return sent;
}

TEST(SocketRoute, IsThreeStepWhereEveryNodeIsOneSocket) {
  onManyHalos(16, [](const NodeTopology& nodes, const std::vector<Pattern>& patterns) {
    SocketRoute sockets(nodes, nodes);
    ThreeStepRoute threeStep(nodes);
    EXPECT_EQ(withoutStages(messagesOf(threeStep, nodes, patterns)),
              withoutStages(messagesOf(sockets, nodes, patterns)));
  });
}

std::string socketError(const NodeTopology& nodes, const NodeTopology& sockets) {
  try {
    SocketRoute(nodes, sockets);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(SocketRoute, RefusesSocketsThatSpanNodes) {
  const NodeTopology nodes = NodeTopology::uniform(8, 4);
  EXPECT_EQ("no error", socketError(nodes, NodeTopology::uniform(8, 2)));
  EXPECT_EQ("no error", socketError(nodes, NodeTopology::parse("1,3,4", 8)));
  EXPECT_EQ("route sockets: ranks 3 and 4 share a socket, but are on nodes 0 and 1",
            socketError(nodes, NodeTopology::uniform(8, 3)));
  EXPECT_EQ("route sockets: 8 ranks on nodes, but 6 on sockets", socketError(nodes, NodeTopology::uniform(6, 2)));
}

// --- names -----------------------------------------------------------------------------------------------------------

TEST(RouteChoice, ReadsBackAndNamesTheRoute) {
  const NodeTopology nodes = NodeTopology::uniform(48, 4);
  const NodeTopology sockets = NodeTopology::uniform(48, 2);
  for (const std::string text :
       {"standard", "two-step", "three-step", "split", "split:7", "axis:2,2,3,4", "axis:48,1,1,1", "sockets"}) {
    const RouteChoice spec = Komvos::parseRoute(text);
    EXPECT_EQ(text, toString(spec));
    EXPECT_EQ(text, makeRoute(spec, nodes, Pairing::byVolume, &sockets)->name());
  }
  EXPECT_EQ("auto", toString(Komvos::parseRoute("auto")));
  EXPECT_EQ("axis", toString(Komvos::parseRoute("axis")));
  EXPECT_EQ("axis:4,3,2,2", makeRoute(Komvos::parseRoute("axis"), nodes)->name());
  EXPECT_EQ(Komvos::parseRoute("split"), Komvos::parseRoute("split:1024"));
  EXPECT_NE(Komvos::parseRoute("split"), Komvos::parseRoute("split:7"));
  EXPECT_NE(Komvos::parseRoute("axis"), Komvos::parseRoute("axis:48,1,1,1"));
  EXPECT_EQ(RouteChoice{}, Komvos::parseRoute("auto"));
}

TEST(RouteChoice, RefusesOtherTexts) {
  for (const char* text : {"",
                           "threestep",
                           "Standard",
                           "standard ",
                           "standard:",
                           "three-step:2",
                           "auto:1",
                           "axis:",
                           "axis:2",
                           "axis:2,2,3",
                           "axis:2,2,3,4,1",
                           "axis:2,2,3,0",
                           "axis:2,2,3,-4",
                           "axis:2,2,,4",
                           "axis:2,2,3,4,",
                           "axis: 2,2,3,4",
                           "axis:a,b,c,d",
                           "axis:2;2;3;4",
                           "axis:99999999999,1,1,1",
                           "split:",
                           "split:0",
                           "split:-1",
                           "split:1,2",
                           "split:x",
                           "socket"}) {
    EXPECT_THROW(Komvos::parseRoute(text), BadInput) << "'" << text << "'";
  }
}

TEST(RouteChoice, MakesNoRouteOfWhatDoesNotFit) {
  const NodeTopology nodes = NodeTopology::uniform(8, 4);
  const auto make = [&](const char* text) { return makeRoute(Komvos::parseRoute(text), nodes); };
  EXPECT_THROW(make("auto"), BadInput);
  EXPECT_THROW(make("sockets"), BadInput);
  EXPECT_THROW(make("axis:2,2,3,4"), BadInput);
}

}  // namespace
