// The machine model: equations, exchanges, the fit, and machines as files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangeModel.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_MachineFit.hpp"
#include "Komvos_MachineModel.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_ThreeStepRoute.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace KomvosTest;
using Komvos::BadInput;
using Komvos::blueWaters;
using Komvos::ExchangePlan;
using Komvos::MachineModel;
using Komvos::MeasuredSeries;
using Komvos::NodeTopology;
using Komvos::OffNodeModel;
using Komvos::Pattern;
using Komvos::PlanMessage;
using Komvos::Protocol;
using Komvos::ProtocolLimits;
using nlohmann::ordered_json;

const double infinity = std::numeric_limits<double>::infinity();

std::string messageOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::vector<ExchangePlan> plansOf(Komvos::Route& route, const NodeTopology& topology,
                                  const std::vector<Pattern>& patterns) {
  Komvos::InMemorySetupTransport transport(topology.numRanks());
  return Komvos::buildPlans(transport, topology, route, patterns);
}

// --- equations -------------------------------------------------------------------------------------------------------

TEST(MachineModel, SizesOfBlueWatersTakeTheProtocolsOfItsMpi) {
  const ProtocolLimits limits = blueWaters().onNode.limits;
  EXPECT_EQ(Protocol::shortMessage, limits.of(0));
  EXPECT_EQ(Protocol::shortMessage, limits.of(512));
  EXPECT_EQ(Protocol::eager, limits.of(513));
  EXPECT_EQ(Protocol::eager, limits.of(8192));
  EXPECT_EQ(Protocol::rendezvous, limits.of(8193));
}

TEST(MachineModel, MessagesOnANodeFollowEquation12) {
  const Komvos::OnNodeModel model = blueWaters().onNode;
  EXPECT_DOUBLE_EQ(1.3e-6, model.time(0));
  EXPECT_NEAR(1.909524e-6, model.time(256), 1e-12);      // 1.3e-6 + 256 / 4.2e8
  EXPECT_NEAR(7.135135e-6, model.time(4096), 1e-12);     // 1.6e-6 + 4096 / 7.4e8
  EXPECT_NEAR(3.424503e-4, model.time(1 << 20), 1e-10);  // 4.2e-6 + 1048576 / 3.1e9
}

TEST(MachineModel, OneSenderFollowsThePostalModelOfEquation11) {
  const OffNodeModel model = blueWaters().needOffNode();
  EXPECT_NEAR(4.406349e-6, model.time(256), 1e-12);      // 4e-6 + 256 / 6.3e8
  EXPECT_NEAR(1.3409412e-5, model.time(4096), 1e-11);    // 1.1e-5 + 4096 / 1.7e9
  EXPECT_NEAR(3.112711e-4, model.time(1 << 20), 1e-10);  // 2e-5 + 1048576 / 3.6e9
}

TEST(MachineModel, SeveralSendersFollowTheMaxRateModelOfEquation10) {
  const OffNodeModel model = blueWaters().needOffNode();
  EXPECT_NEAR(1.537778e-5, model.time(256, 16), 1e-11);                      // 4e-6 + 16 * 256 / (6.3e8 - 15 * 1.8e7)
  EXPECT_NEAR(1.1e-5 + 65536 / 2.63e9, model.time(4096, 16), 1e-15);         // 1.7e9 + 15 * 6.2e7
  EXPECT_NEAR(2e-5 + 2 * 1048576 / 4.21e9, model.time(1 << 20, 2), 1e-13);   // 3.6e9 + 6.1e8 < 5.5e9
  EXPECT_NEAR(2e-5 + 16 * 1048576 / 5.5e9, model.time(1 << 20, 16), 1e-12);  // the network card
}

TEST(MachineModel, MoreSendersThanMeasuredShareTheRateOfThoseMeasured) {
  const OffNodeModel model = blueWaters().needOffNode();
  EXPECT_DOUBLE_EQ(3.6e8, model.jointRate(Protocol::shortMessage, 16));
  EXPECT_DOUBLE_EQ(3.6e8, model.jointRate(Protocol::shortMessage, 40));  // B_inj < 0 would make it negative
}

TEST(MachineModel, AMachineOfOneNodeRefusesQuestionsAboutTwo) {
  MachineModel machine = blueWaters();
  machine.name = "laptop";
  machine.offNode.reset();
  EXPECT_NE(std::string::npos, messageOf([&] { machine.needOffNode(); }).find("machine 'laptop'"));
  Komvos::ModelAccumulator model(machine, NodeTopology::uniform(4, 2), 1);
  model.add(0, 0, 1, 100);
  EXPECT_THROW(model.add(0, 0, 2, 100), BadInput);
  EXPECT_DOUBLE_EQ(machine.onNode.time(100), model.time());
}

// --- exchanges -------------------------------------------------------------------------------------------------------

/// Example 2.1 of the paper: six ranks with a value each, on three nodes; ranks t with an entry in column i, by
/// table 2.
std::vector<Pattern> example21() {
  return KomvosTest::patternsFromNeeds({0, 1, 2, 3, 4, 5}, {{1, 3, 5}, {4}, {3}, {0, 1, 2}, {0, 2}, {0}});
}

TEST(ExchangeModel, TheStandardExchangeOfExample21IsAsByHand) {
  // Nodes {0, 1}, {2, 3}, {4, 5}. Values of 8 bytes are short, latency 4e-6 off node, 1.3e-6 on it. Off node the ranks
  // send 3, 1 | 1, 1 | 1, 1 messages, on node 0, 1 | 1, 1 | 0, 0: rank 0 sends 24 bytes of node 0's 32, two ranks send.
  // Rank 0: 3 * 4e-6 + max(24 / 6.3e8, 32 / (6.3e8 - 1.8e7)).
  const NodeTopology topology = NodeTopology::uniform(6, 2);
  Komvos::StandardRoute route;
  const std::vector<ExchangePlan> plans = plansOf(route, topology, example21());
  EXPECT_NEAR(12e-6 + 32 / 6.12e8, modelledExchangeTime(blueWaters(), plans, topology, 8), 1e-18);
  const auto timeOf = [&](int rank, int other) {
    return Komvos::stageTimesOnNode(blueWaters(), {Komvos::stageLoads(blueWaters(), plans[rank], 8),
                                                   Komvos::stageLoads(blueWaters(), plans[other], 8)})
        .front();
  };
  EXPECT_NEAR(12e-6 + 32 / 6.12e8, timeOf(1, 0), 1e-18);
  // Rank 3 receives from 2 on its node, and from 0 and 1 off it, where rank 2 receives nothing.
  EXPECT_NEAR(1.3e-6 + 8 / 4.2e8 + 8e-6 + 16 / 6.3e8, timeOf(2, 3), 1e-18);
  // Rank 4 receives from 0 and 2, rank 5 from 0.
  EXPECT_NEAR(8e-6 + 24 / 6.12e8, timeOf(4, 5), 1e-18);
}

TEST(ExchangeModel, LoadsOfARankAreItsMessagesByStagePlaceAndProtocol) {
  ExchangePlan plan;
  plan.numStages = 2;
  plan.sends = {{1, 0, 0, 64, true}, {2, 0, 64, 65, false}, {3, 0, 129, 10, false}, {2, 1, 139, 2000, false}};
  plan.receives = {{1, 0, 0, 3, true}, {3, 1, 3, 64, false}, {2, 1, 67, 1, false}};
  const std::vector<Komvos::StageLoad> loads = Komvos::stageLoads(blueWaters(), plan, 8);
  const auto text = [](const std::array<Komvos::MessageLoad::Count, 3>& by) {
    std::string all;
    for (const Komvos::MessageLoad::Count& load : by) {
      all += std::to_string(load.messages) + "x" + std::to_string(load.bytes) + " ";
    }
    return all;
  };
  ASSERT_EQ(2u, loads.size());
  EXPECT_EQ("1x512 0x0 0x0 ", text(loads[0].sent.onNode));
  EXPECT_EQ("1x80 1x520 0x0 ", text(loads[0].sent.offNode));
  EXPECT_EQ("0x0 0x0 0x0 ", text(loads[1].sent.onNode));
  EXPECT_EQ("0x0 0x0 1x16000 ", text(loads[1].sent.offNode));
  EXPECT_EQ("1x24 0x0 0x0 ", text(loads[0].received.onNode));
  EXPECT_EQ("0x0 0x0 0x0 ", text(loads[0].received.offNode));
  EXPECT_EQ("0x0 0x0 0x0 ", text(loads[1].received.onNode));
  EXPECT_EQ("2x520 0x0 0x0 ", text(loads[1].received.offNode));
}

TEST(ExchangeModel, EqualSendersOfANodeTakeTheTimeOfEquation10) {
  const NodeTopology topology = NodeTopology::uniform(32, 16);
  for (const long bytes : {100, 5000, 100000}) {
    Komvos::ModelAccumulator model(blueWaters(), topology, 2);
    for (int rank = 0; rank < 16; ++rank) {
      model.add(1, rank, 16 + rank, bytes);
    }
    EXPECT_DOUBLE_EQ(blueWaters().needOffNode().time(bytes, 16), model.time());
    EXPECT_DOUBLE_EQ(0, model.stageTimes()[0]);
  }
}

TEST(ExchangeModel, AGatherTakesAsLongAsTheRankThatReceivesAll) {
  // Ranks 2 to 7, of other nodes, send rank 0 a value each: one message to each sender, six to the receiver, which is
  // the only one of its node.
  const NodeTopology topology = NodeTopology::uniform(8, 2);
  Komvos::ModelAccumulator gather(blueWaters(), topology, 1), scatter(blueWaters(), topology, 1);
  for (int rank = 2; rank < 8; ++rank) {
    gather.add(0, rank, 0, 8);
    scatter.add(0, 0, rank, 8);
  }
  EXPECT_NEAR(6 * 4e-6 + 48 / 6.3e8, gather.time(), 1e-18);
  EXPECT_DOUBLE_EQ(gather.time(), scatter.time());
}

TEST(ExchangeModel, ARankThatSendsMoreThanItsNeighboursIsNoFasterThanAlone) {
  const NodeTopology topology = NodeTopology::uniform(4, 2);
  Komvos::ModelAccumulator model(blueWaters(), topology, 1);
  model.add(0, 0, 2, 4000);
  model.add(0, 1, 3, 520);
  EXPECT_NEAR(1.1e-5 + std::max(4000 / 1.7e9, 4520 / 1.762e9), model.time(), 1e-15);
  model.add(0, 1, 2, 1);  // of another protocol: the card is not shared
  EXPECT_NEAR(1.1e-5 + 4520 / 1.762e9 + 4e-6 + 1 / 6.3e8, model.time(), 1e-15);
}

/// The model written as one reads it, message by message.
double plainTime(const MachineModel& machine, const std::vector<ExchangePlan>& plans, const NodeTopology& topology,
                 int bytesPerValue) {
  std::map<int, double> slowest;  // stage
  for (const auto oneWay : {&ExchangePlan::sends, &ExchangePlan::receives}) {
    std::map<std::tuple<int, int, int>, long> ofRank;         // stage, rank, protocol -> bytes off node
    std::map<std::tuple<int, int, int>, long> ofNode;         // stage, node, protocol
    std::map<std::tuple<int, int, int>, std::set<int>> busy;  // stage, node, protocol
    std::map<std::pair<int, int>, double> times;              // stage, rank
    for (const ExchangePlan& plan : plans) {
      for (const PlanMessage& message : plan.*oneWay) {
        const long bytes = static_cast<long>(message.count) * bytesPerValue;
        double& time = times[{message.stage, plan.rank}];
        if (topology.sameNode(plan.rank, message.peer)) {
          time += machine.onNode.time(bytes);
          continue;
        }
        const Protocol protocol = machine.offNode->limits.of(bytes);
        const int node = topology.nodeOf(plan.rank);
        time += machine.offNode->of(protocol).latency;
        ofRank[{message.stage, plan.rank, static_cast<int>(protocol)}] += bytes;
        ofNode[{message.stage, node, static_cast<int>(protocol)}] += bytes;
        busy[{message.stage, node, static_cast<int>(protocol)}].insert(plan.rank);
      }
    }
    for (const auto& [key, bytes] : ofRank) {
      const auto& [stage, rank, p] = key;
      const std::tuple<int, int, int> node{stage, topology.nodeOf(rank), p};
      const Protocol protocol = static_cast<Protocol>(p);
      times[{stage, rank}] +=
          std::max(bytes / machine.offNode->of(protocol).rate,
                   ofNode[node] / machine.offNode->jointRate(protocol, static_cast<int>(busy[node].size())));
    }
    for (const auto& [key, time] : times) {
      slowest[key.first] = std::max(slowest[key.first], time);
    }
  }
  double sum = 0;
  for (const auto& [stage, time] : slowest) {
    sum += time;
  }
  return sum;
}

TEST(ExchangeModel, PlansAndStreamsAgreeWithThePlainModel) {
  Random random(3);
  int compared = 0;
  for (const int numRanks : {1, 2, 7, 11, 12}) {
    for (const NamedTopology& where : topologiesFor(numRanks)) {
      for (const NamedPatterns& halo : patternsFor(numRanks, 17)) {
        SCOPED_TRACE(where.name + ", " + halo.name);
        Komvos::StandardRoute standard;
        Komvos::ThreeStepRoute threeStep(where.topology, Komvos::Pairing::byVolume);
        for (Komvos::Route* route : {static_cast<Komvos::Route*>(&standard), static_cast<Komvos::Route*>(&threeStep)}) {
          const std::vector<ExchangePlan> plans = plansOf(*route, where.topology, halo.patterns);
          for (const int bytesPerValue : {8, 800, 8000}) {  // of each protocol
            struct Message {
              int stage, from, to;
              long bytes;
            };
            std::vector<Message> messages;
            for (const ExchangePlan& plan : plans) {
              for (const PlanMessage& send : plan.sends) {
                messages.push_back({send.stage, plan.rank, send.peer, static_cast<long>(send.count) * bytesPerValue});
              }
            }
            random.shuffle(messages);
            Komvos::ModelAccumulator stream(blueWaters(), where.topology, route->numStages());
            for (const Message& message : messages) {
              stream.add(message.stage, message.from, message.to, message.bytes);
            }
            const double plain = plainTime(blueWaters(), plans, where.topology, bytesPerValue);
            EXPECT_NEAR(plain, stream.time(), 1e-12 * plain);
            EXPECT_DOUBLE_EQ(stream.time(), modelledExchangeTime(blueWaters(), plans, where.topology, bytesPerValue));
            compared += plain > 0;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 400);
}

// --- fit -------------------------------------------------------------------------------------------------------------

MeasuredSeries synthetic(const MachineModel& machine, bool onNode, int pairs, double noise = 0) {
  MeasuredSeries series{onNode, pairs, {}};
  Random random(static_cast<unsigned>(pairs));
  for (long bytes = 8; bytes <= 8 << 20; bytes *= 2) {
    for (const long size : {bytes, bytes + bytes / 2}) {
      const double time = onNode ? machine.onNode.time(size) : machine.needOffNode().time(size, pairs);
      series.points.push_back({size, time * (1 + noise * random.unit())});
    }
  }
  return series;
}

std::vector<MeasuredSeries> offNodeSeries(const MachineModel& machine, const std::vector<int>& pairs,
                                          double noise = 0) {
  std::vector<MeasuredSeries> all;
  for (const int count : pairs) {
    all.push_back(synthetic(machine, false, count, noise));
  }
  return all;
}

TEST(MachineFit, FindsLimitsLatenciesAndRatesOnANode) {
  const Komvos::OnNodeModel truth = blueWaters().onNode;
  const Komvos::OnNodeModel found = Komvos::fitOnNode(synthetic(blueWaters(), true, 1));
  EXPECT_EQ(truth.limits.shortMax, found.limits.shortMax);
  EXPECT_EQ(truth.limits.eagerMax, found.limits.eagerMax);
  for (int p = 0; p < 3; ++p) {
    EXPECT_NEAR(truth.parameters[p].latency, found.parameters[p].latency, 1e-9 * truth.parameters[p].latency);
    EXPECT_NEAR(truth.parameters[p].rate, found.parameters[p].rate, 1e-6 * truth.parameters[p].rate);
  }
}

TEST(MachineFit, FindsTheFourParametersOfTheMaxRateModel) {
  const OffNodeModel truth = blueWaters().needOffNode();
  const OffNodeModel found = Komvos::fitOffNode(offNodeSeries(blueWaters(), {16, 1, 3, 2, 8, 4}));
  EXPECT_EQ(truth.limits.shortMax, found.limits.shortMax);
  EXPECT_EQ(truth.limits.eagerMax, found.limits.eagerMax);
  EXPECT_EQ(16, found.measuredSenders);
  for (int p = 0; p < 3; ++p) {
    SCOPED_TRACE(p);
    const OffNodeModel::Parameters& t = truth.parameters[p];
    const OffNodeModel::Parameters& f = found.parameters[p];
    EXPECT_NEAR(t.latency, f.latency, 1e-8 * t.latency);
    EXPECT_NEAR(t.rate, f.rate, 1e-6 * t.rate);
    EXPECT_NEAR(t.addedRate, f.addedRate, 1e-5 * std::abs(t.addedRate));
    EXPECT_EQ(std::isfinite(t.nodeRate), std::isfinite(f.nodeRate));
    if (std::isfinite(t.nodeRate)) {
      EXPECT_NEAR(t.nodeRate, f.nodeRate, 1e-5 * t.nodeRate);
    }
  }
}

TEST(MachineFit, NoiseOfTwoPercentMovesTimesByLittle) {
  const MachineModel truth = blueWaters();
  const std::vector<int> pairs{1, 2, 3, 4, 8, 16};
  const Komvos::OnNodeModel onNode = Komvos::fitOnNode(synthetic(truth, true, 1, 0.02));
  const OffNodeModel offNode = Komvos::fitOffNode(offNodeSeries(truth, pairs, 0.02));
  for (const MeasuredSeries::Point& point : synthetic(truth, true, 1).points) {
    EXPECT_NEAR(1, onNode.time(point.bytes) / point.seconds, 0.05) << point.bytes;
  }
  for (const int count : pairs) {
    for (const MeasuredSeries::Point& point : synthetic(truth, false, count).points) {
      EXPECT_NEAR(1, offNode.time(point.bytes, count) / point.seconds, 0.05) << point.bytes << ", " << count;
    }
  }
}

TEST(MachineFit, PairsThatStartLaterDoNotSpoilTheRates) {
  const MachineModel truth = blueWaters();
  std::vector<MeasuredSeries> measured = offNodeSeries(truth, {1, 2, 4, 8});
  for (MeasuredSeries& series : measured) {
    for (MeasuredSeries::Point& point : series.points) {
      point.seconds += 1e-5 * (series.pairs - 1);
    }
  }
  const OffNodeModel found = Komvos::fitOffNode(measured);
  for (int p = 0; p < 3; ++p) {
    const OffNodeModel::Parameters& expected = truth.offNode->parameters[p];
    EXPECT_NEAR(expected.latency, found.parameters[p].latency, 1e-6 * expected.latency);
    EXPECT_NEAR(expected.addedRate, found.parameters[p].addedRate, 1e-4 * std::abs(expected.addedRate));
  }
}

TEST(MachineFit, GivenLimitsStay) {
  const ProtocolLimits limits{512, 8192};
  const auto measured = synthetic(blueWaters(), true, 1, 0.3);
  EXPECT_EQ(512, Komvos::fitOnNode(measured, limits).limits.shortMax);
  EXPECT_EQ(8192, Komvos::fitOnNode(measured, limits).limits.eagerMax);
}

TEST(MachineFit, LatenciesArePositiveAndRatesNotNegativeWhateverIsMeasured) {
  Random random(11);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<MeasuredSeries> all;
    for (const int pairs : {1, 2, 3, 4}) {
      all.push_back({false, pairs, {}});
      for (long bytes = 8; bytes <= 1 << 16; bytes *= 2) {
        all.back().points.push_back({bytes, 1e-6 * std::pow(10, random.unit())});
      }
    }
    MachineModel machine = blueWaters();
    machine.offNode = Komvos::fitOffNode(all);
    machine.onNode = Komvos::fitOnNode(all[0]);
    machine.measured = all;
    const std::string text = Komvos::machineToJson(machine);
    EXPECT_EQ(text, Komvos::machineToJson(Komvos::machineFromJson(text, "fitted")));  // reading refuses what is wrong
  }
}

TEST(MachineFit, TimesThatDoNotGrowHaveARateWithoutLimit) {
  MeasuredSeries flat{true, 1, {}};
  for (long bytes = 8; bytes <= 1 << 16; bytes *= 2) {
    flat.points.push_back({bytes, 1e-6 - 1e-12 * bytes});
  }
  const Komvos::OnNodeModel model = Komvos::fitOnNode(flat);
  EXPECT_EQ(infinity, model.parameters[0].rate);
  EXPECT_NEAR(1e-6, model.time(1 << 16), 1e-7);
}

TEST(MachineFit, TooFewSizesAreRefused) {
  MeasuredSeries few{true, 1, {}};
  for (long bytes = 8; bytes <= 1024; bytes *= 2) {
    few.points.push_back({bytes, 1e-6 + 1e-9 * bytes});
  }
  EXPECT_NE(std::string::npos, messageOf([&] { Komvos::fitOnNode(few); }).find("8 sizes were measured, 9 are needed"));
  const std::string text = messageOf([&] { Komvos::fitOnNode(few, ProtocolLimits{512, 8192}); });
  EXPECT_NE(std::string::npos, text.find("up to 1024 bytes")) << text;
  EXPECT_NE(std::string::npos, text.find("end at 512 and 8192")) << text;
  EXPECT_NE(std::string::npos, messageOf([&] { Komvos::fitOffNode({}); }).find("no series of one pair"));
}

// --- files -----------------------------------------------------------------------------------------------------------

MachineModel measuredMachine() {
  MachineModel machine = blueWaters();
  machine.name = "\"quoted\", \xc3\xa9";
  machine.date = "2026-11-21";
  machine.onNode.parameters[0].latency = 1.0 / 3.0 * 1e-6;
  machine.onNode.parameters[0].rate = infinity;
  machine.measured = {synthetic(machine, true, 1, 0.1), synthetic(machine, false, 2, 0.1)};
  return machine;
}

TEST(MachineFile, EveryDigitComesBack) {
  const MachineModel machine = measuredMachine();
  const MachineModel read = Komvos::machineFromJson(Komvos::machineToJson(machine), "text");
  EXPECT_EQ(machine.name, read.name);
  EXPECT_EQ(machine.date, read.date);
  EXPECT_EQ(machine.host, read.host);
  EXPECT_EQ(machine.onNode.limits.shortMax, read.onNode.limits.shortMax);
  EXPECT_EQ(machine.onNode.limits.eagerMax, read.onNode.limits.eagerMax);
  EXPECT_EQ(machine.offNode->limits.shortMax, read.offNode->limits.shortMax);
  EXPECT_EQ(machine.offNode->limits.eagerMax, read.offNode->limits.eagerMax);
  EXPECT_EQ(machine.offNode->measuredSenders, read.offNode->measuredSenders);
  for (int p = 0; p < 3; ++p) {
    EXPECT_EQ(machine.onNode.parameters[p].latency, read.onNode.parameters[p].latency);
    EXPECT_EQ(machine.onNode.parameters[p].rate, read.onNode.parameters[p].rate);
    EXPECT_EQ(machine.offNode->parameters[p].latency, read.offNode->parameters[p].latency);
    EXPECT_EQ(machine.offNode->parameters[p].rate, read.offNode->parameters[p].rate);
    EXPECT_EQ(machine.offNode->parameters[p].addedRate, read.offNode->parameters[p].addedRate);
    EXPECT_EQ(machine.offNode->parameters[p].nodeRate, read.offNode->parameters[p].nodeRate);
  }
  ASSERT_EQ(2u, read.measured.size());
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(machine.measured[s].onNode, read.measured[s].onNode);
    EXPECT_EQ(machine.measured[s].pairs, read.measured[s].pairs);
    ASSERT_EQ(machine.measured[s].points.size(), read.measured[s].points.size());
    for (std::size_t i = 0; i < read.measured[s].points.size(); ++i) {
      EXPECT_EQ(machine.measured[s].points[i].bytes, read.measured[s].points[i].bytes);
      EXPECT_EQ(machine.measured[s].points[i].seconds, read.measured[s].points[i].seconds);
    }
  }
}

TEST(MachineFile, AMachineWithoutMessagesBetweenNodesSaysNull) {
  MachineModel machine = measuredMachine();
  machine.offNode.reset();
  const std::string text = Komvos::machineToJson(machine);
  EXPECT_TRUE(ordered_json::parse(text).at("off_node").is_null());
  EXPECT_FALSE(Komvos::machineFromJson(text, "text").offNode);
}

TEST(MachineFile, AMachineIsFoundByNameOrFile) {
  EXPECT_EQ(Komvos::machineToJson(blueWaters()), Komvos::machineToJson(Komvos::machineByNameOrFile("blue-waters")));
  const std::string path = testing::TempDir() + "komvos-model-test-" + std::to_string(getpid()) + ".json";
  std::ofstream(path) << Komvos::machineToJson(measuredMachine());
  EXPECT_EQ(measuredMachine().name, Komvos::machineByNameOrFile(path).name);
  std::ofstream(path) << "{";
  EXPECT_NE(std::string::npos, messageOf([&] { Komvos::machineByNameOrFile(path); }).find(path));
  std::remove(path.c_str());
  for (const std::string& missing : {path, testing::TempDir(), std::string("Blue-Waters"), std::string()}) {
    const std::string text = messageOf([&] { Komvos::machineByNameOrFile(missing); });
    EXPECT_NE(std::string::npos, text.find("machine '" + missing + "': neither a file")) << text;
  }
}

TEST(MachineFile, ATextThatIsBrokenOffAnywhereIsRefused) {
  const std::string text = Komvos::machineToJson(blueWaters());
  for (std::size_t length = 0; length + 2 < text.size(); length += 7) {
    const std::string error = messageOf([&] { Komvos::machineFromJson(text.substr(0, length), "half.json"); });
    EXPECT_EQ(0u, error.find("half.json: no JSON, or broken off")) << length << ": " << error;
  }
}

/// The error of a machine in which one value is another.
std::string errorWith(const std::string& pointer, const ordered_json& value) {
  ordered_json json = ordered_json::parse(Komvos::machineToJson(measuredMachine()));
  json.at(ordered_json::json_pointer(pointer)) = value;
  return messageOf([&] { Komvos::machineFromJson(json.dump(), "m.json"); });
}

std::string keyOf(std::string pointer) {
  pointer.erase(0, 1);
  std::string key;
  for (const char c : pointer) {
    key += c == '/' ? '.' : c;
  }
  return key;
}

TEST(MachineFile, EveryParameterThatIsNoPositiveNumberIsRefusedByName) {
  std::vector<std::string> pointers;
  for (const std::string where : {"/on_node", "/off_node"}) {
    for (const std::string protocol : {"/short", "/eager", "/rendezvous"}) {
      pointers.push_back(where + protocol + "/latency_s");
      pointers.push_back(where + protocol + "/bytes_per_s");
      if (where == "/off_node") {
        pointers.push_back(where + protocol + "/bytes_per_s_of_node");
      }
    }
  }
  for (const std::string& pointer : pointers) {
    for (const ordered_json& bad : {ordered_json(0), ordered_json(-1e-6), ordered_json("1e-6"), ordered_json(true)}) {
      EXPECT_EQ("m.json: '" + keyOf(pointer) + "' is " + bad.dump() + ", must be a number above 0",
                errorWith(pointer, bad));
    }
  }
  EXPECT_NE(std::string::npos,
            errorWith("/off_node/eager/latency_s", nullptr).find("off_node.eager.latency_s' is null"));
}

TEST(MachineFile, EveryOtherBadValueIsRefusedByNameToo) {
  const std::vector<std::tuple<std::string, ordered_json, std::string>> cases{
      {"/format", "komvos-report", "'format' is \"komvos-report\", must be \"komvos-machine\""},
      {"/version", 2, "'version' is 2, must be 1"},
      {"/version", 1.5, "'version' is 1.5"},
      {"/name", 7, "'name' is 7, must be a text"},
      {"/on_node", nullptr, "'on_node' is null, must be an object"},
      {"/off_node", 3, "'off_node' is 3, must be an object"},
      {"/on_node/short_max_bytes", -1, "'on_node.short_max_bytes' is -1"},
      {"/on_node/short_max_bytes", 18446744073709551615ull, "'on_node.short_max_bytes' is 18446744073709551615"},
      {"/off_node/eager_max_bytes", 100, "'off_node.eager_max_bytes' is 100, must be at least short_max_bytes, 512"},
      {"/off_node/measured_senders_per_node", 0, "'off_node.measured_senders_per_node' is 0"},
      {"/off_node/measured_senders_per_node", 4294967297, "'off_node.measured_senders_per_node' is 4294967297"},
      {"/off_node/short/bytes_per_s_added_by_each_sender", "1", "added_by_each_sender' is \"1\""},
      {"/off_node/short/bytes_per_s_added_by_each_sender", 6.4e8,
       "added_by_each_sender' is 640000000.0, must be at most"},
      {"/off_node/short/bytes_per_s_added_by_each_sender", -4.3e7, "16 senders would send nothing"},
      {"/off_node/rendezvous/bytes_per_s_of_node", 1e9, "'off_node.rendezvous.bytes_per_s_of_node' is 1000000000.0"},
      {"/measured", 1, "'measured' is 1, must be a list"},
      {"/measured/1/between", "moons", "'measured[1].between' is \"moons\""},
      {"/measured/0/pairs", 0, "'measured[0].pairs' is 0"},
      {"/measured/0/points/2/bytes", -8, "'measured[0].points[2].bytes' is -8"},
      {"/measured/0/points/2/seconds", 0, "'measured[0].points[2].seconds' is 0"},
  };
  for (const auto& [pointer, value, words] : cases) {
    const std::string error = errorWith(pointer, value);
    EXPECT_EQ(0u, error.find("m.json: ")) << error;
    EXPECT_NE(std::string::npos, error.find(words)) << error;
  }
}

TEST(MachineFile, NumbersThatJsonDoesNotKnowAreRefused) {
  const std::string good = Komvos::machineToJson(blueWaters());
  const std::string number = "1.3e-06";
  const std::size_t at = good.find(number);
  ASSERT_NE(std::string::npos, at);
  for (const std::string bad : {"NaN", "-inf", "1e999"}) {
    const std::string text = good.substr(0, at) + bad + good.substr(at + number.size());
    EXPECT_EQ(0u, messageOf([&] { Komvos::machineFromJson(text, "m.json"); }).find("m.json: ")) << bad;
  }
}

/// Calls `work` while `here` is without one key, for each key of each object in it.
void withoutEachKey(ordered_json& here, const std::string& path, const std::function<void(const std::string&)>& work) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : here.items()) {
    keys.push_back(key);
  }
  for (const std::string& key : keys) {
    const ordered_json kept = here[key];
    here.erase(key);
    work(path + key);
    here[key] = kept;
    if (kept.is_object()) {
      withoutEachKey(here[key], path + key + ".", work);
    }
  }
}

TEST(MachineFile, EveryMissingKeyIsNamed) {
  ordered_json json = ordered_json::parse(Komvos::machineToJson(measuredMachine()));
  int keys = 0;
  withoutEachKey(json, "", [&](const std::string& key) {
    ++keys;
    EXPECT_EQ("m.json: '" + key + "' is missing", messageOf([&] { Komvos::machineFromJson(json.dump(), "m.json"); }));
  });
  EXPECT_EQ(37, keys);
  for (const std::string text : {"[]", "3", "null", "\"komvos-machine\""}) {
    EXPECT_NE(std::string::npos, messageOf([&] { Komvos::machineFromJson(text, "m.json"); }).find("the text is"))
        << text;
  }
}

}  // namespace
