// Patterns, routes, pairings and plans, for all ranks of virtual machines in one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_Schedule.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_ThreeStepRoute.hpp"
#include "Komvos_Traffic.hpp"
#include "support/counting_transport.hpp"
#include "support/plan_simulation.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace KomvosTest;
using Komvos::BadInput;
using Komvos::buildPlans;
using Komvos::InMemorySetupTransport;
using Komvos::Pairing;
using Komvos::StandardRoute;
using Komvos::ThreeStepRoute;
using Komvos::Traffic;
using KomvosTest::CountingTransport;
using nlohmann::json;

std::vector<ExchangePlan> threeStepPlans(const NodeTopology& topology, const std::vector<Pattern>& patterns,
                                         Pairing pairing = Pairing::byVolume) {
  InMemorySetupTransport transport(topology.numRanks());
  ThreeStepRoute route(topology, pairing);
  return buildPlans(transport, topology, route, patterns);
}

std::vector<ExchangePlan> standardPlans(const NodeTopology& topology, const std::vector<Pattern>& patterns) {
  InMemorySetupTransport transport(topology.numRanks());
  StandardRoute route;
  return buildPlans(transport, topology, route, patterns);
}

// --- the cases of the oracle -----------------------------------------------------------------------------------------

struct Case {
  std::string name;
  std::vector<int> owner;
  std::vector<std::vector<int>> needs;
  std::vector<int> node;
  json reference;
};

std::vector<Case> readCases() {
  std::ifstream file(KOMVOS_TEST_DATA_DIR "/napspmv_cases.json");
  std::vector<Case> cases;
  for (const json& entry : json::parse(file)) {
    Case one{entry.at("name"), entry.at("owner"), {}, entry.at("node"), entry.at("reference")};
    one.needs.resize(one.node.size());
    for (const auto& [rank, indices] : entry.at("needs").items()) {
      one.needs.at(std::stoi(rank)) = indices.get<std::vector<int>>();
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = readCases();
  return all;
}

/// Sets of the paper, by key "a->b" or "a", as in the reference file.
using Sets = std::map<std::string, std::set<int>>;

std::string arrow(int from, int to) { return std::to_string(from) + "->" + std::to_string(to); }

Sets setsOf(const json& object) {
  Sets sets;
  for (const auto& [key, values] : object.items()) {
    if (!values.empty()) {
      sets[key] = values.get<std::set<int>>();
    }
  }
  return sets;
}

std::string asText(const Sets& sets) { return json(sets).dump(); }

void expectSame(const Case& one, const std::string& what, const Sets& found, const Sets& expected) {
  EXPECT_EQ(asText(expected), asText(found)) << what << " in case '" << one.name << "'";
}

/// Global index of each owned value, as patternsFromNeeds numbers them.
class GlobalIndices {
 public:
  explicit GlobalIndices(const Case& one) : of_(one.node.size()) {
    for (std::size_t i = 0; i < one.owner.size(); ++i) {
      of_[one.owner[i]].push_back(static_cast<int>(i));
    }
  }
  int operator()(const ValueId& value) const { return of_.at(value.owner).at(value.local); }

 private:
  std::vector<std::vector<int>> of_;
};

/// T, U, N and E as a plan has them, by the node numbers of the case.
void expectNodeLevel(const Case& one, const Messages& messages, const GlobalIndices& index) {
  Sets senders, receivers, nodes, values;
  for (const auto& [key, list] : messages) {
    const auto& [stage, from, to] = key;
    if (stage != 1) {
      continue;
    }
    senders[std::to_string(from)].insert(one.node[to]);
    receivers[std::to_string(to)].insert(one.node[from]);
    nodes[std::to_string(one.node[from])].insert(one.node[to]);
    for (const ValueId& value : list) {
      EXPECT_TRUE(values[arrow(one.node[from], one.node[to])].insert(index(value)).second);
    }
  }
  expectSame(one, "T", senders, setsOf(one.reference.at("T")));
  expectSame(one, "U", receivers, setsOf(one.reference.at("U")));
  expectSame(one, "N", nodes, setsOf(one.reference.at("N")));
  expectSame(one, "E", values, setsOf(one.reference.at("E")));
}

Sets messagesOf(int stage, const Messages& messages, const GlobalIndices& index) {
  Sets sets;
  for (const auto& [key, list] : messages) {
    if (std::get<0>(key) == stage) {
      std::set<int>& set = sets[arrow(std::get<1>(key), std::get<2>(key))];
      for (const ValueId& value : list) {
        EXPECT_TRUE(set.insert(index(value)).second) << "a value twice in one message";
      }
    }
  }
  return sets;
}

/// What travels in the first stage to go on to another node, and what is needed where it arrives.
std::pair<Sets, Sets> gatheredAndLocal(const std::vector<ExchangePlan>& plans, const Messages& messages,
                                       const GlobalIndices& index) {
  Sets gathered, local;
  for (const ExchangePlan& plan : plans) {
    std::set<int> needed, relayed;
    for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
      needed.insert(delivery.position);
    }
    for (const PlanMessage& send : plan.sends) {
      for (int p = send.first; p < send.first + send.count; ++p) {
        if (plan.sendSource[p] < 0) {
          EXPECT_EQ(send.stage == 2, send.onNode) << "rank " << plan.rank;
          relayed.insert(~plan.sendSource[p]);
        }
      }
    }
    for (const PlanMessage& receive : plan.receives) {
      for (int i = 0; receive.stage == 0 && i < receive.count; ++i) {
        const int value = index(messages.at({0, receive.peer, plan.rank})[i]);
        if (needed.count(receive.first + i) != 0) {
          local[arrow(receive.peer, plan.rank)].insert(value);
        }
        if (relayed.count(receive.first + i) != 0) {
          gathered[arrow(receive.peer, plan.rank)].insert(value);
        }
      }
    }
  }
  return {gathered, local};
}

Sets unite(Sets a, const Sets& b) {
  for (const auto& [key, values] : b) {
    a[key].insert(values.begin(), values.end());
  }
  return a;
}

long sizeOf(const Sets& sets) {
  long size = 0;
  for (const auto& entry : sets) {
    size += static_cast<long>(entry.second.size());
  }
  return size;
}

TEST(ReferenceCases, AreThere) { EXPECT_GE(cases().size(), 200u); }

TEST(ReferenceCases, StandardPlansSendTheSetsOfThePaper) {
  for (const Case& one : cases()) {
    const NodeTopology topology = NodeTopology::fromMap(one.node);
    const auto patterns = KomvosTest::patternsFromNeeds(one.owner, one.needs);
    const auto plans = standardPlans(topology, patterns);
    const PlanSimulation simulation(plans, patterns, topology);
    EXPECT_EQ("", simulation.problems()) << one.name;
    const Sets found = messagesOf(0, simulation.messages(), GlobalIndices(one));
    expectSame(one, "D", found, setsOf(one.reference.at("D")));
    Sets peers;
    for (const ExchangePlan& plan : plans) {
      for (const PlanMessage& send : plan.sends) {
        peers[std::to_string(plan.rank)].insert(send.peer);
      }
    }
    expectSame(one, "P", peers, setsOf(one.reference.at("P")));

    const Traffic traffic = trafficOf(plans);
    const json& inter = one.reference.at("count").at("standard").at("inter");
    const json& intra = one.reference.at("count").at("standard").at("intra");
    EXPECT_EQ(inter.at("max_messages").get<long>(), traffic.max.interNodeMessages) << one.name;
    EXPECT_EQ(inter.at("total_messages").get<long>(), traffic.total.interNodeMessages) << one.name;
    EXPECT_EQ(inter.at("max_values").get<long>(), traffic.max.interNodeValues) << one.name;
    EXPECT_EQ(inter.at("total_values").get<long>(), traffic.total.interNodeValues) << one.name;
    EXPECT_EQ(intra.at("max_messages").get<long>(), traffic.max.onNodeMessages) << one.name;
    EXPECT_EQ(intra.at("total_messages").get<long>(), traffic.total.onNodeMessages) << one.name;
    EXPECT_EQ(intra.at("max_values").get<long>(), traffic.max.onNodeValues) << one.name;
    EXPECT_EQ(intra.at("total_values").get<long>(), traffic.total.onNodeValues) << one.name;
  }
}

TEST(ReferenceCases, ThreeStepPlansSendTheSetsOfThePaper) {
  for (const Case& one : cases()) {
    const NodeTopology topology = NodeTopology::fromMap(one.node);
    const auto patterns = KomvosTest::patternsFromNeeds(one.owner, one.needs);
    const GlobalIndices index(one);
    const auto plans = threeStepPlans(topology, patterns);
    const PlanSimulation simulation(plans, patterns, topology);
    EXPECT_EQ("", simulation.problems()) << one.name;
    const Messages& messages = simulation.messages();
    const auto [gathered, local] = gatheredAndLocal(plans, messages, index);
    expectNodeLevel(one, messages, index);
    expectSame(one, "G", messagesOf(1, messages, index), setsOf(one.reference.at("G")));
    expectSame(one, "scatter", messagesOf(2, messages, index), setsOf(one.reference.at("scatter")));
    expectSame(one, "gather", gathered, setsOf(one.reference.at("gather")));
    expectSame(one, "local", local, setsOf(one.reference.at("local")));
    // What the paper sends in two messages to one process travels in one, each value once.
    const Sets merged = unite(setsOf(one.reference.at("gather")), setsOf(one.reference.at("local")));
    expectSame(one, "gather and local", messagesOf(0, messages, index), merged);

    const Traffic traffic = trafficOf(plans);
    const json& inter = one.reference.at("count").at("node_aware").at("inter");
    const json& intra = one.reference.at("count").at("node_aware").at("intra");
    EXPECT_EQ(inter.at("max_messages").get<long>(), traffic.max.interNodeMessages) << one.name;
    EXPECT_EQ(inter.at("total_messages").get<long>(), traffic.total.interNodeMessages) << one.name;
    EXPECT_EQ(inter.at("max_values").get<long>(), traffic.max.interNodeValues) << one.name;
    EXPECT_EQ(inter.at("total_values").get<long>(), traffic.total.interNodeValues) << one.name;
    const Sets scatter = setsOf(one.reference.at("scatter"));
    EXPECT_EQ(static_cast<long>(merged.size() + scatter.size()), traffic.total.onNodeMessages) << one.name;
    EXPECT_EQ(sizeOf(merged) + sizeOf(scatter), traffic.total.onNodeValues) << one.name;
    EXPECT_LE(traffic.total.onNodeMessages, intra.at("total_messages").get<long>()) << one.name;
    EXPECT_LE(traffic.total.onNodeValues, intra.at("total_values").get<long>()) << one.name;
    EXPECT_LE(traffic.max.onNodeMessages, intra.at("max_messages").get<long>()) << one.name;
    EXPECT_LE(traffic.max.onNodeValues, intra.at("max_values").get<long>()) << one.name;
  }
}

TEST(ReferenceCases, MergingGatherAndLocalSavesMessages) {
  long saved = 0;
  for (const Case& one : cases()) {
    const auto plans =
        threeStepPlans(NodeTopology::fromMap(one.node), KomvosTest::patternsFromNeeds(one.owner, one.needs));
    saved += one.reference.at("count").at("node_aware").at("intra").at("total_messages").get<long>() -
             trafficOf(plans).total.onNodeMessages;
  }
  EXPECT_GT(saved, 100);
}

// --- pairings --------------------------------------------------------------------------------------------------------

/// (from node, to node) -> ((sender, receiver), values).
struct PairOfNodes {
  int sender, receiver;
  std::vector<ValueId> values;
};
std::map<std::pair<int, int>, PairOfNodes> pairsOf(const Messages& messages, const NodeTopology& topology) {
  std::map<std::pair<int, int>, PairOfNodes> pairs;
  for (const auto& [key, values] : messages) {
    const auto& [stage, from, to] = key;
    if (stage == 1) {
      pairs[{topology.nodeOf(from), topology.nodeOf(to)}] = {from, to, values};
    }
  }
  return pairs;
}

TEST(Pairings, AllGiveValidPlansOnAllCases) {
  for (const Case& one : cases()) {
    const NodeTopology topology = NodeTopology::fromMap(one.node);
    const auto patterns = KomvosTest::patternsFromNeeds(one.owner, one.needs);
    const long pairs = static_cast<long>(setsOf(one.reference.at("E")).size());
    for (const Pairing pairing : allPairings()) {
      const auto plans = threeStepPlans(topology, patterns, pairing);
      EXPECT_EQ("", PlanSimulation(plans, patterns, topology).problems()) << one.name << ", " << toString(pairing);
      EXPECT_EQ(pairs, trafficOf(plans).total.interNodeMessages) << one.name << ", " << toString(pairing);
    }
  }
}

TEST(Pairings, ByVolumeGivesEachProcessTheSameNumberOfMessagesButOne) {
  for (const Case& one : cases()) {
    const NodeTopology topology = NodeTopology::fromMap(one.node);
    const auto patterns = KomvosTest::patternsFromNeeds(one.owner, one.needs);
    const auto plans = threeStepPlans(topology, patterns);
    const PlanSimulation simulation(plans, patterns, topology);
    std::vector<int> sends(one.node.size(), 0);
    std::vector<int> receives(one.node.size(), 0);
    for (const auto& entry : pairsOf(simulation.messages(), topology)) {
      ++sends[entry.second.sender];
      ++receives[entry.second.receiver];
    }
    for (int a = 0; a < topology.numRanks(); ++a) {
      for (int b = a + 1; b < topology.numRanks(); ++b) {
        if (topology.sameNode(a, b)) {
          EXPECT_TRUE(sends[a] == sends[b] || sends[a] == sends[b] + 1) << one.name << ", ranks " << a << ", " << b;
          EXPECT_TRUE(receives[b] == receives[a] || receives[b] == receives[a] + 1) << one.name;
        }
      }
    }
  }
}

TEST(Pairings, LeastLoadedKeepsToTheBoundOfGreedyScheduling) {
  for (const Case& one : cases()) {
    const NodeTopology topology = NodeTopology::fromMap(one.node);
    const auto patterns = KomvosTest::patternsFromNeeds(one.owner, one.needs);
    const auto plans = threeStepPlans(topology, patterns, Pairing::leastLoaded);
    const PlanSimulation simulation(plans, patterns, topology);
    for (const bool sending : {true, false}) {
      std::vector<long> load(one.node.size(), 0);
      std::vector<long> total(topology.numNodes(), 0);
      std::vector<long> largest(topology.numNodes(), 0);
      for (const auto& [nodes, pair] : pairsOf(simulation.messages(), topology)) {
        const long volume = static_cast<long>(pair.values.size());
        const int node = sending ? nodes.first : nodes.second;
        load[sending ? pair.sender : pair.receiver] += volume;
        total[node] += volume;
        largest[node] = std::max(largest[node], volume);
      }
      for (int rank = 0; rank < topology.numRanks(); ++rank) {
        const int node = topology.nodeOf(rank);
        // The process that ends with the most had at most the mean when its last, at most the largest, was added.
        EXPECT_LE(load[rank] * topology.numRanksOn(node), total[node] + largest[node] * topology.numRanksOn(node))
            << one.name << ", rank " << rank << (sending ? " sending" : " receiving");
      }
    }
  }
}

TEST(Pairings, MajorityTakesTheProcessesWithTheLargestShares) {
  for (const Case& one : cases()) {
    const NodeTopology topology = NodeTopology::fromMap(one.node);
    const auto patterns = KomvosTest::patternsFromNeeds(one.owner, one.needs);
    const auto plans = threeStepPlans(topology, patterns, Pairing::majority);
    const PlanSimulation simulation(plans, patterns, topology);
    for (const auto& [nodes, pair] : pairsOf(simulation.messages(), topology)) {
      std::map<int, int> owned;  // rank -> how many of the values
      std::map<int, int> needed;
      for (const ValueId& value : pair.values) {
        ++owned[value.owner];
      }
      for (int local = 0; local < topology.numRanksOn(nodes.second); ++local) {
        const int rank = topology.rankOn(nodes.second, local);
        std::set<ValueId> wanted;
        for (const Pattern::Receive& receive : patterns[rank].receives) {
          if (topology.nodeOf(receive.value.owner) == nodes.first) {
            wanted.insert(receive.value);
          }
        }
        needed[rank] = static_cast<int>(wanted.size());
      }
      for (const auto& [rank, share] : owned) {  // ties: the lowest
        EXPECT_TRUE(share < owned[pair.sender] || (share == owned[pair.sender] && rank >= pair.sender))
            << one.name << ": rank " << rank << " owns " << share << ", sender " << pair.sender;
      }
      for (const auto& [rank, share] : needed) {  // ties: the highest
        EXPECT_TRUE(share < needed[pair.receiver] || (share == needed[pair.receiver] && rank <= pair.receiver))
            << one.name << ": rank " << rank << " needs " << share << ", receiver " << pair.receiver;
      }
    }
  }
}

TEST(Pairings, MajorityMovesFewerValuesInsideNodesThanByVolume) {
  long byVolume = 0;
  long majority = 0;
  for (const Case& one : cases()) {
    const NodeTopology topology = NodeTopology::fromMap(one.node);
    const auto patterns = KomvosTest::patternsFromNeeds(one.owner, one.needs);
    byVolume += trafficOf(threeStepPlans(topology, patterns)).total.onNodeValues;
    majority += trafficOf(threeStepPlans(topology, patterns, Pairing::majority)).total.onNodeValues;
  }
  EXPECT_LT(majority, byVolume);
}

TEST(Pairings, HaveNamesThatReadBack) {
  for (const Pairing pairing : allPairings()) {
    EXPECT_EQ(pairing, Komvos::parsePairing(toString(pairing)));
  }
  EXPECT_THROW(Komvos::parsePairing("By-Volume"), BadInput);
  EXPECT_THROW(Komvos::parsePairing(""), BadInput);
  EXPECT_EQ(Komvos::RouteChoice::standard, Komvos::parseRoute("standard"));
  EXPECT_EQ(Komvos::RouteChoice::threeStep, Komvos::parseRoute("three-step"));
  EXPECT_EQ(Komvos::RouteChoice::automatic, Komvos::parseRoute("auto"));
  EXPECT_THROW(Komvos::parseRoute("threestep"), BadInput);
}

// --- schedules -------------------------------------------------------------------------------------------------------

TEST(Schedules, GiveTheSameResultInWhateverOrderMessagesArrive) {
  Random random(11);
  for (int numRanks = 1; numRanks <= 11; ++numRanks) {
    for (const NamedTopology& where : topologiesFor(numRanks)) {
      for (const NamedPatterns& what : patternsFor(numRanks, 100 + numRanks)) {
        for (const bool threeStep : {true, false}) {
          const auto plans =
              threeStep ? threeStepPlans(where.topology, what.patterns) : standardPlans(where.topology, what.patterns);
          ASSERT_EQ("", PlanSimulation(plans, what.patterns, where.topology).problems()) << where.name << what.name;
          std::vector<Komvos::Impl::Schedule> forward, reverse;
          std::vector<std::vector<double>> owned, ghosts, summed;
          for (const ExchangePlan& plan : plans) {
            forward.push_back(Komvos::Impl::forwardSchedule(plan));
            reverse.push_back(Komvos::Impl::reverseSchedule(plan));
            owned.emplace_back(plan.numOwned);
            for (double& value : owned.back()) {
              value = random.unit();
            }
            ghosts.emplace_back(plan.numTarget, 0.0);
            summed.emplace_back(plan.numOwned, 0.0);
          }
          EXPECT_EQ("", runSchedules(forward, owned, ghosts, false, random)) << where.name << what.name;
          for (const Pattern& pattern : what.patterns) {
            for (const Pattern::Receive& r : pattern.receives) {
              EXPECT_EQ(owned[r.value.owner][r.value.local], ghosts[pattern.rank][r.target]) << where.name << what.name;
            }
          }
          EXPECT_EQ("", runSchedules(reverse, ghosts, summed, true, random)) << where.name << what.name;
          std::vector<std::vector<double>> expected(numRanks);
          for (int rank = 0; rank < numRanks; ++rank) {
            expected[rank].assign(plans[rank].numOwned, 0.0);
          }
          for (const Pattern& pattern : what.patterns) {
            for (const Pattern::Receive& r : pattern.receives) {
              expected[r.value.owner][r.value.local] += ghosts[pattern.rank][r.target];
            }
          }
          for (int rank = 0; rank < numRanks; ++rank) {
            for (int i = 0; i < plans[rank].numOwned; ++i) {
              EXPECT_NEAR(expected[rank][i], summed[rank][i], 1e-14 * 2 * numRanks);
            }
          }
          auto again = std::vector<std::vector<double>>(numRanks);
          for (int rank = 0; rank < numRanks; ++rank) {
            again[rank].assign(plans[rank].numOwned, 0.0);
          }
          EXPECT_EQ("", runSchedules(reverse, ghosts, again, true, random));
          EXPECT_EQ(summed, again) << "sums depend on the order of messages: " << where.name << ", " << what.name;
        }
      }
    }
  }
}

/// All messages of a node as if they went through shared memory.
Komvos::Impl::CopiedMessages allCopied(const ExchangePlan& plan) {
  Komvos::Impl::CopiedMessages copied;
  for (const PlanMessage& message : plan.receives) {
    copied.receives.push_back(message.onNode);
    copied.picked.push_back(false);
  }
  for (const PlanMessage& message : plan.sends) {
    const auto first = plan.sendSource.begin() + message.first;
    copied.sendsReadInPlace.push_back(message.onNode &&
                                      std::all_of(first, first + message.count, [](int source) { return source < 0; }));
  }
  return copied;
}

TEST(Schedules, PutValuesOfScatteredMessagesWhereverTheyBelong) {
  long scatteredToSends = 0, relays = 0;
  for (int numRanks = 2; numRanks <= 11; ++numRanks) {
    for (const NamedTopology& where : topologiesFor(numRanks)) {
      for (const NamedPatterns& what : patternsFor(numRanks, 300 + numRanks)) {
        for (const ExchangePlan& plan : threeStepPlans(where.topology, what.patterns)) {
          const auto schedule = Komvos::Impl::forwardSchedule(plan, allCopied(plan));
          std::multiset<std::pair<int, int>> delivered, passedOn;  // (position, target), (position, send position)
          for (const auto& message : schedule.receives) {
            const auto add = [&](const Komvos::Impl::Schedule::Scatter& list, auto& pairs) {
              for (int i = 0; i < list.count; ++i) {
                const int value = list.from >= 0 ? schedule.scatterSources[list.from + i] : i;
                pairs.emplace(message.first + value, schedule.scatterTargets[list.to + i]);
              }
            };
            if (message.isScattered) {
              add(message.toVector, delivered);
              add(message.toSends, passedOn);
            }
            for (int i = 0; message.contiguousTarget >= 0 && i < message.count; ++i) {
              delivered.emplace(message.first + i, message.contiguousTarget + i);
            }
          }
          scatteredToSends += static_cast<long>(passedOn.size());
          for (const auto* list : {&schedule.unpackBuffered.onNode, &schedule.unpackBuffered.rest}) {
            for (int row = 0; row < list->size(); ++row) {
              delivered.emplace(list->from[row], list->to[row]);
            }
          }
          const auto& left = schedule.scattersToSends ? schedule.relayBuffered : schedule.relay;
          for (int row = 0; row < left.size(); ++row) {
            passedOn.emplace(left.from[row], left.to[row]);
          }
          std::multiset<std::pair<int, int>> toDeliver, toPassOn;
          for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
            toDeliver.emplace(delivery.position, delivery.target);
          }
          for (int p = 0; p < plan.sendLength(); ++p) {
            if (plan.sendSource[p] < 0) {
              toPassOn.emplace(~plan.sendSource[p], p);
            }
          }
          relays += static_cast<long>(toPassOn.size());
          EXPECT_EQ(toDeliver, delivered) << where.name << what.name;
          EXPECT_EQ(toPassOn, passedOn) << where.name << what.name;
        }
      }
    }
  }
  // On its way a value is relayed by the leader that sends it, and by the one that receives it.
  EXPECT_GT(3 * scatteredToSends, relays) << "leaders copy into the receive buffer";
}

// --- input that cannot be used ---------------------------------------------------------------------------------------

/// Two ranks, rank 0 sends its value 1 to rank 1.
std::vector<Pattern> smallPatterns() { return KomvosTest::patternsFromNeeds({0, 0, 1}, {{}, {1}}); }

template <class Change>
std::string checkError(const Change& change) {
  std::vector<Pattern> patterns = smallPatterns();
  change(patterns);
  try {
    for (const Pattern& pattern : patterns) {
      pattern.check(2);
    }
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(PatternCheck, NamesRankAndNumbers) {
  using Patterns = std::vector<Pattern>;
  EXPECT_EQ("no error", checkError([](Patterns&) {}));
  EXPECT_EQ("pattern of rank 0: sends to rank 2 of 2", checkError([](Patterns& p) { p[0].sends[0].destination = 2; }));
  EXPECT_EQ("pattern of rank 0: sends to rank -1 of 2",
            checkError([](Patterns& p) { p[0].sends[0].destination = -1; }));
  EXPECT_EQ("pattern of rank 0: sends to itself", checkError([](Patterns& p) { p[0].sends[0].destination = 0; }));
  EXPECT_EQ("pattern of rank 0: sends owned value 2 of 2", checkError([](Patterns& p) { p[0].sends[0].local = 2; }));
  EXPECT_EQ("pattern of rank 0: sends owned value -1 of 2", checkError([](Patterns& p) { p[0].sends[0].local = -1; }));
  EXPECT_EQ("pattern of rank 1: receives from rank 2 of 2",
            checkError([](Patterns& p) { p[1].receives[0].value.owner = 2; }));
  EXPECT_EQ("pattern of rank 1: receives from rank -3 of 2",
            checkError([](Patterns& p) { p[1].receives[0].value.owner = -3; }));
  EXPECT_EQ("pattern of rank 1: receives from itself",
            checkError([](Patterns& p) { p[1].receives[0].value.owner = 1; }));
  EXPECT_EQ("pattern of rank 1: fills target 1 of 1", checkError([](Patterns& p) { p[1].receives[0].target = 1; }));
  EXPECT_EQ("pattern of rank 1: fills target -1 of 1", checkError([](Patterns& p) { p[1].receives[0].target = -1; }));
  EXPECT_EQ("pattern of rank 1: fills target 0 twice",
            checkError([](Patterns& p) { p[1].receives.push_back(p[1].receives[0]); }));
}

TEST(PatternCheck, RefusesListsThatAreNotSorted) {
  Pattern pattern;
  pattern.numOwned = pattern.numTarget = 3;
  pattern.sends = {{1, 0}, {2, 0}, {1, 1}};
  pattern.receives = {{{2, 1}, 0}, {{1, 0}, 1}, {{1, 0}, 2}};
  for (const bool sends : {true, false}) {
    Pattern one = pattern;
    (sends ? one.receives.clear() : one.sends.clear());
    EXPECT_THROW(one.check(3), BadInput);
    one.normalize();
    EXPECT_NO_THROW(one.check(3));
  }
}

TEST(PatternCheck, PatternsFromNeedsIgnoreOwnValuesAndKeepSeveralTargets) {
  const auto patterns = KomvosTest::patternsFromNeeds({0, 1, 0, 1}, {{0, 1, 1, 3}, {3}});
  EXPECT_EQ(2, patterns[0].numOwned);
  EXPECT_EQ(3, patterns[0].numTarget);
  EXPECT_EQ(0, patterns[1].numTarget);
  ASSERT_EQ(3u, patterns[0].receives.size());
  EXPECT_EQ((ValueId{1, 0}), patterns[0].receives[0].value);
  EXPECT_EQ((ValueId{1, 0}), patterns[0].receives[1].value);
  EXPECT_EQ((ValueId{1, 1}), patterns[0].receives[2].value);
  EXPECT_EQ(2u, patterns[1].sends.size());
  EXPECT_TRUE(patterns[0].sends.empty());
}

/// Every rank a node of its own.
template <class Change>
std::string planError(bool threeStep, const Change& change) {
  Needs halo = allToAll(4, 2);
  std::vector<Pattern> patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  change(patterns);
  const NodeTopology topology = NodeTopology::uniform(4, 1);
  try {
    threeStep ? threeStepPlans(topology, patterns) : standardPlans(topology, patterns);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(PlanErrors, InconsistentPatternsAreRefusedOnBothRoutes) {
  for (const bool threeStep : {false, true}) {
    EXPECT_EQ("no error", planError(threeStep, [](std::vector<Pattern>&) {}));
    // Rank 3 waits for a value of rank 0 that is not sent: one value, then all of them.
    EXPECT_NE("no error", planError(threeStep, [](std::vector<Pattern>& p) { p[0].sends.pop_back(); })) << threeStep;
    EXPECT_NE("no error", planError(threeStep, [](std::vector<Pattern>& p) { p[0].sends.clear(); })) << threeStep;
    EXPECT_NE("no error", planError(threeStep, [](std::vector<Pattern>& p) { p[2].receives.pop_back(); })) << threeStep;
    EXPECT_NE("no error", planError(threeStep, [](std::vector<Pattern>& p) { p[2].receives.clear(); })) << threeStep;
    EXPECT_NE("no error", planError(threeStep, [](std::vector<Pattern>& p) { p[2].rank = 1; })) << threeStep;
    EXPECT_NE("no error", planError(threeStep, [](std::vector<Pattern>& p) { p.pop_back(); })) << threeStep;
  }
  const std::string missing = planError(false, [](std::vector<Pattern>& p) { p[0].sends.pop_back(); });
  EXPECT_NE(missing.find("plan of rank 3, route standard: value 1 of rank 0 is needed"), std::string::npos) << missing;
}

/// What is sent and what is needed differ, but not in number, nor in the sums of owners and indices.
TEST(PlanErrors, PatternsThatDifferInWhichValuesTravelAreRefused) {
  for (const bool threeStep : {false, true}) {
    std::vector<Pattern> patterns(4);
    for (int rank = 0; rank < 4; ++rank) {
      patterns[rank].rank = rank;
      patterns[rank].numOwned = patterns[rank].numTarget = 6;
    }
    const auto error = [&] { return planError(threeStep, [&](std::vector<Pattern>& p) { p = patterns; }); };
    patterns[0].sends = {{2, 1}};
    patterns[1].sends = {{2, 1}};
    patterns[2].receives = {{{0, 1}, 0}, {{1, 1}, 1}};
    EXPECT_EQ("no error", error());
    patterns[0].sends = {{2, 2}};
    patterns[1].sends = {{2, 0}};
    EXPECT_NE("no error", error());
    patterns[0].sends = {{2, 1}, {2, 2}};  // two of the one, none of the other
    patterns[1].sends = {};
    EXPECT_NE("no error", error());
    patterns[0].sends = {{1, 1}};
    patterns[1].sends = {{2, 1}};
    EXPECT_NE("no error", error()) << "to another rank";
  }
}

TEST(PlanErrors, AValueThatNobodyNeedsIsNamedAsSuch) {
  // Rank 2 drops the first of the values it gets: the rest is still needed and sent.
  const std::string text =
      planError(false, [](std::vector<Pattern>& p) { p[2].receives.erase(p[2].receives.begin()); });
  EXPECT_NE(text.find("6 values arrive, but 5 are needed"), std::string::npos) << text;
}

TEST(PlanErrors, ATopologyOfAnotherSizeIsRefused) {
  const auto patterns = smallPatterns();
  InMemorySetupTransport transport(2);
  StandardRoute route;
  EXPECT_THROW(buildPlans(transport, NodeTopology::uniform(3, 1), route, patterns), BadInput);
}

/// Sends everything one rank to the right, which is not far enough.
class LosingRoute : public StandardRoute {
 public:
  bool isDirect() const override { return false; }
  int hop(int, int here, int, int) const override { return (here + 1) % 3; }
};

TEST(PlanErrors, ARouteThatLosesAValueIsRefused) {
  const auto patterns = KomvosTest::patternsFromNeeds({0, 1, 2}, {{1}, {}, {}});
  InMemorySetupTransport transport(3);
  LosingRoute route;
  EXPECT_THROW(buildPlans(transport, NodeTopology::uniform(3, 1), route, patterns), BadInput);
}

// --- cost of set-up --------------------------------------------------------------------------------------------------

TEST(StandardPlans, AreMadeWithoutAMessage) {
  const NodeTopology topology = NodeTopology::uniform(12, 4);
  const auto patterns =
      KomvosTest::patternsFromNeeds({0, 0, 3, 7, 11}, std::vector<std::vector<int>>(12, {0, 1, 3, 4}));
  CountingTransport transport(12);
  StandardRoute route;
  const auto plans = buildPlans(transport, topology, route, patterns);
  EXPECT_EQ(0, transport.total());
  EXPECT_EQ("", PlanSimulation(plans, patterns, topology).problems());
}

/// As the standard route, but nobody knows that.
class StandardByMessages : public StandardRoute {
 public:
  bool isDirect() const override { return false; }
};

TEST(StandardPlans, AreWhatMessagesWouldMakeOfThem) {
  Random random(8);
  const int numRanks = 9;
  for (int turn = 0; turn < 20; ++turn) {
    Needs halo;
    halo.needs.resize(numRanks);
    for (int i = 0; i < 30; ++i) {
      halo.owner.push_back(random.below(numRanks));
    }
    std::sort(halo.owner.begin(), halo.owner.end());
    for (auto& needs : halo.needs) {
      for (int k = random.below(12); k > 0; --k) {
        needs.push_back(random.below(30));  // some twice
      }
    }
    const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
    const NodeTopology topology = NodeTopology::uniform(numRanks, 2);
    InMemorySetupTransport transport(numRanks);
    StandardRoute direct;
    StandardByMessages told;
    const auto a = buildPlans(transport, topology, direct, patterns);
    const auto b = buildPlans(transport, topology, told, patterns);
    for (int rank = 0; rank < numRanks; ++rank) {
      EXPECT_EQ(describe(b[rank]), describe(a[rank]));
    }
  }
}

TEST(LargeMachine, SetUpMessagesDoNotGrowWithTheMachine) {
  const int numRanks = 4096;
  const int ppn = 16;
  Random random(5);
  Needs halo;
  halo.needs.resize(numRanks);
  for (int i = 0; i < 4 * numRanks; ++i) {
    halo.owner.push_back(i / 4);
  }
  for (int rank = 0; rank < numRanks; ++rank) {
    for (int k = 0; k < 20; ++k) {
      const int near = (rank + numRanks - 40 + random.below(81)) % numRanks;
      halo.needs[rank].push_back(4 * near + random.below(4));
    }
    halo.needs[rank].push_back(random.below(4 * numRanks));
    std::sort(halo.needs[rank].begin(), halo.needs[rank].end());
    halo.needs[rank].erase(std::unique(halo.needs[rank].begin(), halo.needs[rank].end()), halo.needs[rank].end());
  }
  const auto patterns = KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
  const NodeTopology topology = NodeTopology::uniform(numRanks, ppn);
  std::size_t neighbours = 0;
  std::vector<std::set<int>> nodes(topology.numNodes());
  for (const Pattern& pattern : patterns) {
    std::set<int> destinations;
    for (const Pattern::Send& send : pattern.sends) {
      destinations.insert(send.destination);
      nodes[topology.nodeOf(pattern.rank)].insert(topology.nodeOf(send.destination));
      nodes[topology.nodeOf(send.destination)].insert(topology.nodeOf(pattern.rank));
    }
    neighbours = std::max(neighbours, destinations.size());
  }
  std::size_t bound = std::max<std::size_t>(neighbours, ppn);
  for (const std::set<int>& partners : nodes) {
    bound = std::max(bound, partners.size());
  }
  for (const Pairing pairing : allPairings()) {
    CountingTransport transport(numRanks);
    ThreeStepRoute route(topology, pairing);
    const auto plans = buildPlans(transport, topology, route, patterns);
    EXPECT_LE(transport.mostOfARankAtOnce(), static_cast<int>(bound) + 1) << toString(pairing);
    EXPECT_LT(transport.mostOfARankAtOnce(), 100) << toString(pairing);
    EXPECT_EQ("", PlanSimulation(plans, patterns, topology).problems()) << toString(pairing);
    std::size_t bytes = 0;
    for (const ExchangePlan& plan : plans) {
      bytes = std::max(bytes, plan.memoryBytes());
    }
    EXPECT_LT(bytes, numRanks * sizeof(int)) << "a plan as long as the machine";
  }
}

}  // namespace
