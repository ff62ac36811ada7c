// planHalo decides, remembers and refuses: candidates, the tuning cache and its file, options and the environment.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <Tpetra_Details_DefaultTypes.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Broadcast.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangeModel.hpp"
#include "Komvos_GpuAwareMpi.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_HaloTuner.hpp"
#include "Komvos_MachineModel.hpp"
#include "Komvos_NodeMemory.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_Settings.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_TuningCache.hpp"
#include "support/mpi_support.hpp"
#include "support/plan_simulation.hpp"
#include "support/test_patterns.hpp"

namespace {

namespace fs = std::filesystem;
using namespace KomvosTest;
using Komvos::BadInput;
using Komvos::ExchangeOptions;
using Komvos::HaloCandidate;
using Komvos::HaloKey;
using Komvos::HaloReport;
using Komvos::IntraNode;
using Komvos::Pairing;
using Komvos::PlannedHalo;
using Komvos::RouteChoice;
using Komvos::Tuning;
using Komvos::TuningCache;
using Komvos::TuningDecision;

/// A folder that all ranks know and rank 0 fills.
class SharedFolder {
 public:
  SharedFolder() {
    std::string made = (fs::temp_directory_path() / "komvos-tuner-XXXXXX").string();
    if (worldRank() == 0 && mkdtemp(made.data()) == nullptr) {
      throw std::runtime_error("cannot make a folder for the test");
    }
    path_ = textOfRankZero(made);
  }
  ~SharedFolder() {
    MPI_Barrier(MPI_COMM_WORLD);
    if (worldRank() == 0) {
      fs::remove_all(path_);
    }
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  /// \return the path of the file
  std::string write(const std::string& name, const std::string& text) const {
    if (worldRank() == 0) {
      std::ofstream(path(name), std::ios::binary) << text;
    }
    return path(name);
  }

 private:
  fs::path path_;
};

std::string contentOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

bool canShareMemory() {
  return Komvos::Exchange<double, Tpetra::Details::DefaultTypes::node_type::device_type>::canShareMemory();
}

/// Whether there is more than one candidate of any route, by any carrier.
bool hasChoice() { return worldSize() > 2 || (worldSize() > 1 && canShareMemory()); }

Pattern denseHalo(int valuesPerRank = 2) {
  const Needs halo = allToAll(worldSize(), valuesPerRank);
  return KomvosTest::patternsFromNeeds(halo.owner, halo.needs)[worldRank()];
}

std::shared_ptr<const NodeTopology> share(const NodeTopology& topology) {
  return std::make_shared<const NodeTopology>(topology);
}

/// Everything open, to be measured at once, on nodes of two ranks with a socket each.
ExchangeOptions onPairs() {
  ExchangeOptions options;
  options.topology = share(NodeTopology::uniform(worldSize(), 2));
  options.sockets = share(NodeTopology::uniform(worldSize(), 1));
  options.reuseDecisions = false;
  options.tuning = Tuning::exhaustive;
  return options;
}

ExchangeOptions onPairs(const RouteChoice& route, IntraNode onNode = IntraNode::messages) {
  ExchangeOptions options = onPairs();
  options.route = route;
  options.intraNode = onNode;
  return options;
}

PlannedHalo planDense(const ExchangeOptions& options) { return Komvos::planHalo(MPI_COMM_WORLD, denseHalo(), options); }

/// The halo planned along this route, with nothing to decide.
std::string planAlong(const RouteChoice& choice, const ExchangeOptions& where) {
  Komvos::MpiSetupTransport transport(MPI_COMM_WORLD);
  const auto route = makeRoute(choice, *where.topology, where.pairing.value_or(Pairing::byVolume), where.sockets.get());
  Pattern pattern = denseHalo();
  pattern.normalize();
  return describe(buildPlans(transport, *where.topology, *route, {pattern}).front());
}

const HaloCandidate& chosenOf(const HaloReport& report) {
  const auto isChosen = [](const HaloCandidate& one) { return one.rejectionReason.empty(); };
  EXPECT_EQ(1, std::count_if(report.candidates.begin(), report.candidates.end(), isChosen));
  return *std::find_if(report.candidates.begin(), report.candidates.end(), isChosen);
}

bool measuredAny(const HaloReport& report) {
  return std::any_of(report.candidates.begin(), report.candidates.end(),
                     [](const HaloCandidate& one) { return one.measuredSeconds > 0; });
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(std::string::npos, at) << from << " is not in\n" << text;
  text.replace(at, from.size(), to);
}

/// The value of the first `"key": "value"`.
std::string valueOf(const std::string& text, const std::string& key) {
  const std::string head = "\"" + key + "\": \"";
  const std::size_t first = text.find(head) + head.size();
  return text.substr(first, text.find('"', first) - first);
}

// --- choice ----------------------------------------------------------------------------------------------------------

TEST(Tuner, ChoosesOneCandidateAndSaysWhyNotTheOthers) {
  for (const IntraNode onNode : {IntraNode::messages, IntraNode::sharedMemory}) {
    ExchangeOptions options = onPairs();
    options.intraNode = onNode;
    const HaloReport report = planDense(options).report;
    const HaloCandidate& chosen = chosenOf(report);
    EXPECT_EQ(report.intraNode, chosen.intraNode);
    EXPECT_EQ(report.chosen.total.interNodeMessages, chosen.traffic.total.interNodeMessages);
    EXPECT_EQ(report.chosenSeconds, chosen.measuredSeconds);
    EXPECT_EQ(RouteChoice::standard, report.candidates.front().route);
    EXPECT_EQ(IntraNode::messages, report.candidates.front().intraNode);
    EXPECT_EQ(report.standardSeconds, report.candidates.front().measuredSeconds);
    for (const HaloCandidate& one : report.candidates) {
      EXPECT_EQ(0, one.modelledSeconds) << "there is no model";
      EXPECT_TRUE(one.rejectionReason != "not asked for" || one.measuredSeconds == 0);
    }
    const std::string text = describe(report);
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    EXPECT_EQ(2 + report.candidates.size(), lines) << text;
    EXPECT_EQ(1, std::count(text.begin(), text.end(), '*')) << text;
    EXPECT_NE(std::string::npos, text.find("\n* " + toString(chosen.route) + " ")) << text;
  }
}

TEST(Tuner, TriesEveryRouteThatMayHelp) {
  const Variable nodes("KOMVOS_RANKS_PER_NODE", "2");
  const Variable tuning("KOMVOS_TUNING", "exhaustive");
  const HaloReport report = planDense({}).report;
  chosenOf(report);
  const auto considers = [&](const RouteChoice& route, IntraNode onNode) {
    return std::any_of(report.candidates.begin(), report.candidates.end(),
                       [&](const HaloCandidate& one) { return one.route == route && one.intraNode == onNode; });
  };
  const int size = worldSize();
  EXPECT_TRUE(considers(RouteChoice::standard, IntraNode::messages));
  EXPECT_EQ(size > 1 && canShareMemory(), considers(RouteChoice::standard, IntraNode::sharedMemory));
  for (const RouteChoice& route : {RouteChoice::twoStep, RouteChoice::threeStep}) {
    EXPECT_EQ(size > 2, considers(route, IntraNode::messages)) << toString(route);
    EXPECT_EQ(size > 2 && canShareMemory(), considers(route, IntraNode::sharedMemory)) << toString(route);
  }
  EXPECT_EQ(size > 2 && size % 2 == 0, considers(RouteChoice::axis, IntraNode::messages));
  EXPECT_EQ(size > 1 && (size > 2 || canShareMemory()), measuredAny(report));
}

TEST(Tuner, MeasuresAHaloOnceOnACommunicator) {
  MPI_Comm fresh = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  ExchangeOptions options = onPairs();
  options.reuseDecisions = true;
  const auto plan = [&](const Pattern& pattern) { return Komvos::planHalo(fresh, pattern, options).report; };
  const Komvos::HaloReport first = plan(denseHalo());
  const Komvos::HaloReport again = plan(denseHalo());
  EXPECT_FALSE(first.decisionReused);
  EXPECT_TRUE(again.decisionReused);
  EXPECT_EQ(first.route, again.route);
  EXPECT_EQ(first.intraNode, again.intraNode);
  EXPECT_EQ(0, again.standardSeconds);
  EXPECT_EQ(0, again.chosenSeconds);
  EXPECT_LE(again.candidates.size(), 4u) << "the standard route and the one that was chosen, by both means";
  EXPECT_NE(std::string::npos, describe(again).find("decided when"));
  EXPECT_EQ(std::string::npos, describe(first).find("decided when"));
  EXPECT_FALSE(plan(denseHalo(5)).decisionReused) << "another pattern";
  Pattern oneMore = denseHalo();
  oneMore.numOwned += worldRank() == 0 ? 1 : 0;
  EXPECT_FALSE(plan(oneMore).decisionReused) << "on all ranks, though only rank 0 can see it";
  options.columns = 3;
  EXPECT_FALSE(plan(denseHalo()).decisionReused) << "other options";
  options.columns = 1;
  options.reuseDecisions = false;
  EXPECT_FALSE(plan(denseHalo()).decisionReused);
  MPI_Comm_free(&fresh);
}

// As when a hierarchy is made anew: its levels have communicators of their own, which no rank frees when others do.
TEST(Tuner, FreesWhatCommunicatorsOfTheUserHaveLeftWhereAHaloIsPlanned) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  const std::weak_ptr<Komvos::Impl::PrivateComm> ours = Komvos::Impl::PrivateComm::of(mine);
  const auto plan = [](MPI_Comm comm) { return Komvos::planHalo(comm, denseHalo(), onPairs(RouteChoice::threeStep)); };
  std::optional<PlannedHalo> planned = plan(mine);
  std::optional<Komvos::Exchange<double, Tpetra::Details::DefaultTypes::node_type::device_type>> exchange;
  exchange.emplace(mine, planned->plan, 1, planned->intraNode);
  if (worldRank() == 0) {
    MPI_Comm_free(&mine);
  }
  plan(MPI_COMM_WORLD);
  EXPECT_FALSE(ours.expired());
  if (worldRank() != 0) {
    MPI_Comm_free(&mine);
    exchange.reset();
    planned.reset();
  }
  plan(MPI_COMM_WORLD);
  EXPECT_FALSE(ours.expired()) << "rank 0 has an exchange";
  exchange.reset();
  planned.reset();
  plan(MPI_COMM_WORLD);
  EXPECT_TRUE(ours.expired());
}

TEST(Tuner, TakesTheRouteAndTheIntraNodeCommunicationThatAreAskedFor) {
  for (const RouteChoice& route : routesFor(worldSize())) {
    for (const IntraNode onNode : {IntraNode::messages, IntraNode::sharedMemory}) {
      SCOPED_TRACE(toString(route) + ", " + toString(onNode));
      const ExchangeOptions options = onPairs(route, onNode);
      const PlannedHalo halo = planDense(options);
      EXPECT_EQ(planAlong(route, options), describe(*halo.plan));
      EXPECT_EQ(halo.plan->route, halo.report.route);
      EXPECT_EQ(route, chosenOf(halo.report).route);
      const bool shared = onNode == IntraNode::sharedMemory && canShareMemory() && worldSize() > 1;
      EXPECT_EQ(shared ? IntraNode::sharedMemory : IntraNode::messages, halo.intraNode);
      EXPECT_EQ(halo.intraNode, halo.report.intraNode);
      EXPECT_FALSE(measuredAny(halo.report));
    }
  }
}

TEST(Tuner, RefusesRoutesThatDoNotFitOnAllRanksAlike) {
  const std::string ranks = std::to_string(worldSize());
  const std::string factors = std::to_string(worldSize()) + ",2,1,1";
  const std::string axis = commonError("axis", [&] { planDense(onPairs(Komvos::parseRoute("axis:" + factors))); });
  EXPECT_NE(std::string::npos, axis.find(factors)) << axis;
  EXPECT_NE(std::string::npos, axis.find("product " + ranks)) << axis;
  ExchangeOptions options = onPairs(RouteChoice::sockets);
  options.sockets = nullptr;
  const std::string sockets = commonError("sockets", [&] { planDense(options); });
  EXPECT_NE(std::string::npos, sockets.find("route sockets")) << sockets;
  options.sockets = share(NodeTopology::uniform(worldSize() + 1, 1));
  const std::string size = commonError("size", [&] { planDense(options); });
  EXPECT_NE(std::string::npos, size.find("the socket topology has " + std::to_string(worldSize() + 1))) << size;
}

/// Each rank of the first half needs many values of its partner in the second, and the reverse: to send them through
/// one rank of a node takes longer than to send them side by side.
/// \return the patterns of all ranks
std::vector<Pattern> partnersHalo(int ranksPerNode, int values = 20000) {
  const int size = worldSize();
  Needs halo;
  halo.needs.resize(size);
  for (int rank = 0; rank < size; ++rank) {
    const int partner = rank < ranksPerNode ? rank + ranksPerNode : rank - ranksPerNode;
    for (int i = 0; i < values; ++i) {
      halo.owner.push_back(rank);
      if (partner < size) {
        halo.needs[partner].push_back(rank * values + i);
      }
    }
  }
  return KomvosTest::patternsFromNeeds(halo.owner, halo.needs);
}

/// Seconds of one exchange, counted from the messages of all ranks.
double modelledByAllRanks(const Komvos::MachineModel& machine, const RouteChoice& choice, const NodeTopology& topology,
                          const NodeTopology& sockets, std::vector<Pattern> patterns) {
  for (Pattern& pattern : patterns) {
    pattern.normalize();
  }
  Komvos::InMemorySetupTransport transport(topology.numRanks());
  const auto route = makeRoute(choice, topology, Pairing::byVolume, &sockets);
  return Komvos::modelledExchangeTime(machine, buildPlans(transport, topology, *route, patterns), topology,
                                      sizeof(double));
}

TEST(Tuner, ModelsAnExchangeAsIfItKnewTheMessagesOfAllRanks) {
  const int size = worldSize();
  for (const NamedTopology& where : topologiesFor(size)) {
    const NodeTopology sockets = socketsOf(where.topology, 2);
    const Needs dense = allToAll(size, 2);
    for (const std::vector<Pattern>& patterns :
         {KomvosTest::patternsFromNeeds(dense.owner, dense.needs), partnersHalo((size + 1) / 2, 2000)}) {
      for (const RouteChoice& route : routesFor(size)) {
        ExchangeOptions options;
        options.topology = share(where.topology);
        options.sockets = share(sockets);
        options.route = route;
        options.intraNode = IntraNode::messages;
        options.machine = std::make_shared<const Komvos::MachineModel>(Komvos::blueWaters());
        const HaloReport report = Komvos::planHalo(MPI_COMM_WORLD, patterns[worldRank()], options).report;
        EXPECT_DOUBLE_EQ(modelledByAllRanks(*options.machine, route, where.topology, sockets, patterns),
                         chosenOf(report).modelledSeconds)
            << toString(route) << " on " << where.name;
      }
    }
  }
}

TEST(Tuner, NeverMeasuresOrTakesWhatTheModelCallsHopeless) {
  const int ranksPerNode = (worldSize() + 1) / 2;
  ExchangeOptions options;
  options.topology = share(NodeTopology::uniform(worldSize(), ranksPerNode));
  options.intraNode = IntraNode::messages;
  options.tuning = Tuning::exhaustive;
  Komvos::MachineModel machine = Komvos::blueWaters();
  for (Komvos::OnNodeModel::Parameters& onNode : machine.onNode.parameters) {
    onNode.rate /= 10;  // whatever takes hops on the node is slow
  }
  options.machine = std::make_shared<const Komvos::MachineModel>(machine);
  const HaloReport report = Komvos::planHalo(MPI_COMM_WORLD, partnersHalo(ranksPerNode)[worldRank()], options).report;
  double least = report.candidates.front().modelledSeconds;
  for (const HaloCandidate& one : report.candidates) {
    EXPECT_EQ(worldSize() > 1, one.modelledSeconds > 0) << toString(one.route);
    least = std::min(least, one.modelledSeconds);
  }
  int hopeless = 0;
  for (const HaloCandidate& one : report.candidates) {
    const bool rejected = one.rejectionReason.find("the model says ") == 0;
    EXPECT_EQ(one.route != RouteChoice::standard && one.modelledSeconds > 4 * least, rejected) << describe(report);
    EXPECT_TRUE(!rejected || one.measuredSeconds == 0) << describe(report);
    hopeless += rejected ? 1 : 0;
  }
  EXPECT_TRUE(worldSize() < 8 || hopeless > 0) << describe(report);
  EXPECT_LE(chosenOf(report).modelledSeconds, 4 * least);
}

/// No formula knows what a hop through shared memory takes: it is judged by what crosses the network.
TEST(Tuner, JudgesSharedMemoryByWhatCrossesTheNetwork) {
  if (!canShareMemory()) {
    GTEST_SKIP() << "vectors that the host does not reach";
  }
  const int ranksPerNode = (worldSize() + 1) / 2;
  const std::vector<Pattern> patterns = partnersHalo(ranksPerNode);
  ExchangeOptions options;
  options.topology = share(NodeTopology::uniform(worldSize(), ranksPerNode));
  options.tuning = Tuning::exhaustive;
  Komvos::MachineModel slow = Komvos::blueWaters();
  Komvos::MachineModel free = slow;
  for (int p = 0; p < Komvos::numProtocols; ++p) {
    slow.onNode.parameters[p].latency = 1;
    free.onNode.parameters[p] = {0, std::numeric_limits<double>::infinity()};
  }
  options.machine = std::make_shared<const Komvos::MachineModel>(slow);
  const HaloReport report = Komvos::planHalo(MPI_COMM_WORLD, patterns[worldRank()], options).report;
  int shared = 0;
  for (const HaloCandidate& one : report.candidates) {
    if (one.intraNode == IntraNode::sharedMemory) {
      ++shared;
      EXPECT_DOUBLE_EQ(modelledByAllRanks(free, one.route, *options.topology, *options.topology, patterns),
                       one.modelledSeconds);
      EXPECT_NE(0u, one.rejectionReason.find("the model says")) << describe(report);
    } else if (one.traffic.total.onNodeMessages > 0) {
      EXPECT_GE(one.modelledSeconds, 1);
      EXPECT_EQ(0u, one.rejectionReason.find("the model says")) << describe(report);
    }
  }
  EXPECT_TRUE(worldSize() < 4 || shared > 0) << describe(report);
}

// --- decisions -------------------------------------------------------------------------------------------------------

TuningCache cacheOf(ExchangeOptions options) {
  options.record = std::make_shared<TuningCache>();
  planDense(options);
  return *options.record;
}

std::shared_ptr<const TuningCache> reread(const TuningCache& cache) {
  return std::make_shared<const TuningCache>(TuningCache::parse(cache.toText(), "the file"));
}

TEST(TuningCache, AHaloIsPlannedAsItWasDecidedAndNothingIsMeasured) {
  std::vector<ExchangeOptions> all{onPairs()};
  for (const RouteChoice& route : routesFor(worldSize())) {
    all.push_back(onPairs(route));
    all.back().pairing = Pairing::leastLoaded;
  }
  all.push_back(onPairs(RouteChoice::threeStep, IntraNode::sharedMemory));
  for (ExchangeOptions& options : all) {
    options.record = std::make_shared<TuningCache>();
    const PlannedHalo first = planDense(options);
    EXPECT_EQ(1u, options.record->size());
    ExchangeOptions again = onPairs();
    again.tuningCache = reread(*options.record);
    const PlannedHalo second = planDense(again);
    SCOPED_TRACE(first.report.route + ", " + toString(first.intraNode));
    EXPECT_EQ(describe(*first.plan), describe(*second.plan));
    EXPECT_EQ(first.report.route, second.report.route);
    EXPECT_EQ(first.intraNode, second.intraNode);
    EXPECT_EQ(first.report.pairing, second.report.pairing);
    EXPECT_EQ(options.pairing.value_or(Pairing::byVolume), second.report.pairing);
    EXPECT_EQ(chosenOf(first.report).route, chosenOf(second.report).route);
    EXPECT_FALSE(measuredAny(second.report));
    EXPECT_EQ(0, second.report.chosenSeconds);
  }
}

TEST(TuningCache, ForOneHaloTheLastCountsAndHalosDoNotMix) {
  ExchangeOptions options = onPairs(RouteChoice::twoStep);
  options.record = std::make_shared<TuningCache>();
  planDense(options);
  options.route = RouteChoice::threeStep;
  planDense(options);
  EXPECT_EQ(1u, options.record->size());
  options.route = RouteChoice::standard;
  Komvos::planHalo(MPI_COMM_WORLD, denseHalo(5), options);
  EXPECT_EQ(2u, options.record->size());
  ExchangeOptions again = onPairs();
  again.tuningCache = reread(*options.record);
  EXPECT_EQ("three-step", planDense(again).report.route);
  EXPECT_EQ("standard", Komvos::planHalo(MPI_COMM_WORLD, denseHalo(5), again).report.route);
}

TEST(TuningCache, MayBeRecordedOnOneRankOnly) {
  ExchangeOptions options = onPairs(RouteChoice::twoStep);
  const std::string everywhere = cacheOf(options).toText();
  if (worldRank() == worldSize() - 1) {
    options.record = std::make_shared<TuningCache>();
  }
  planDense(options);
  EXPECT_EQ(everywhere, options.record ? options.record->toText() : everywhere);
}

/// As with the coarse levels of a rebalanced hierarchy, which some ranks have no rows of.
TEST(TuningCache, GetsTheDecisionsOfHalosThatSomeRanksHave) {
  const int size = worldSize(), rank = worldRank();
  TuningCache cache;
  const auto keyOf = [](int first, int count) {
    Komvos::HaloKey key;
    key.pattern = static_cast<std::uint64_t>(1000 * first + count);
    key.topologyText = std::to_string(count) + " ranks";
    return key;
  };
  std::vector<std::pair<int, int>> levels{{0, size}, {size / 2, size - size / 2}, {size - 1, 1}};  // first rank, ranks
  for (const auto& [first, count] : levels) {
    if (rank >= first && rank < first + count) {
      cache.add(keyOf(first, count), {first == 0 ? RouteChoice::twoStep : RouteChoice::threeStep});
    }
  }
  cache.addOfAllRanks(MPI_COMM_WORLD);
  for (const auto& [first, count] : levels) {
    const auto* const found = cache.find(keyOf(first, count));
    ASSERT_NE(nullptr, found) << first;
    EXPECT_EQ(first == 0 ? "two-step" : "three-step", toString(found->route));
  }
  EXPECT_EQ(size == 1 ? 1u : size == 2 ? 2u : 3u, cache.size());
  const std::string text = cache.toText();
  EXPECT_EQ(Komvos::Impl::broadcast(MPI_COMM_WORLD, text), text) << "the same everywhere";
  cache.addOfAllRanks(MPI_COMM_WORLD);
  EXPECT_EQ(text, cache.toText());
  TuningCache none;
  none.addOfAllRanks(MPI_COMM_WORLD);
  EXPECT_EQ(0u, none.size());
}

/// What one rank adds to it while several halos are planned is not there for the others.
TEST(TuningCache, MayBeTheRecordOfOneRankAsWell) {
  ExchangeOptions options = onPairs();
  options.calibrate = false;
  const auto cache = std::make_shared<TuningCache>();
  options.tuningCache = cache;
  if (worldRank() == 0) {
    options.record = cache;
  }
  options.reuseDecisions = false;
  const Pattern pattern = denseHalo(5);
  const auto halos = Komvos::planHalos(MPI_COMM_WORLD, {pattern, pattern, denseHalo(6)}, options);
  for (const PlannedHalo& halo : halos) {
    EXPECT_FALSE(halo.report.fromTuningCache);
    int tunes = halo.tuner != nullptr ? 1 : 0, all = 0;
    MPI_Allreduce(&tunes, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(worldSize() * tunes, all) << "all ranks, or none";
  }
  EXPECT_EQ(worldRank() == 0 ? 2u : 0u, cache->size());
}

/// A cache that does not fit is a note, and the halo is tuned as without one; with requireTuningCache it is an error.
TEST(TuningCache, ForAnotherPatternTopologyOrMachineIsNotedWithTheReason) {
  const TuningCache cache = cacheOf(onPairs(RouteChoice::threeStep));
  ExchangeOptions options = onPairs();
  const auto check = [&](const std::string& what, int valuesPerRank, const std::string& reason) {
    const std::string text = "tuning cache the file does not fit this halo: " + reason;
    ExchangeOptions here = options;
    const HaloReport report = Komvos::planHalo(MPI_COMM_WORLD, denseHalo(valuesPerRank), here).report;
    EXPECT_FALSE(report.fromTuningCache) << what;
    EXPECT_EQ(text, report.tuningCacheNote) << what;
    EXPECT_NE(std::string::npos, describe(report).find(text)) << what;
    here.requireTuningCache = true;
    const auto plan = [&] { Komvos::planHalo(MPI_COMM_WORLD, denseHalo(valuesPerRank), here); };
    EXPECT_EQ(text, commonError(what, plan)) << what;
  };
  options.tuningCache = reread(cache);
  check("pattern", 3, "none of its 1 decisions is for this pattern");
  EXPECT_EQ(hasChoice(), measuredAny(Komvos::planHalo(MPI_COMM_WORLD, denseHalo(3), options).report));

  if (worldSize() > 1) {
    const std::string before = options.topology->describe();
    options.topology = share(NodeTopology::uniform(worldSize(), 1));
    check("topology", 2, "made for other nodes: " + before + "; here: " + options.topology->describe());
    options.topology = onPairs().topology;
  }

  std::string text = cache.toText();
  const std::string here = valueOf(text, "machine");
  replace(text, here, "a computer of 1950, with valves");
  options.tuningCache = std::make_shared<const TuningCache>(TuningCache::parse(text, "the file"));
  check("machine", 2, "made on another machine: a computer of 1950, with valves; here: " + here);
}

/// What a halo starts with where nothing is measured beforehand.
TEST(TuningCache, ASimilarHaloBeginsAsTheOneThatWasDecided) {
  if (!hasChoice()) {
    GTEST_SKIP() << "needs a choice of routes";
  }
  const auto plan = [](int valuesPerRank, const ExchangeOptions& options) {
    return Komvos::planHalo(MPI_COMM_WORLD, denseHalo(valuesPerRank), options);
  };
  ExchangeOptions made = onPairs(RouteChoice::twoStep);
  made.record = std::make_shared<TuningCache>();
  plan(20, made);
  made.route = RouteChoice::threeStep;
  plan(90, made);
  for (const Tuning tuning : {Tuning::off, Tuning::online}) {
    ExchangeOptions options = onPairs();
    options.tuning = tuning;
    options.calibrate = false;  // what messages take today decides nothing here
    options.tuningCache = reread(*made.record);
    struct Case {
      int valuesPerRank;
      const char* route;
      bool isSimilar;
    };
    for (const Case& one : {Case{24, "two-step", true}, Case{12, "two-step", true}, Case{50, "three-step", true},
                            Case{179, "three-step", true}, Case{9, "standard", false}, Case{181, "standard", false}}) {
      SCOPED_TRACE(toString(tuning) + ", " + std::to_string(one.valuesPerRank) + " values");
      const PlannedHalo halo = plan(one.valuesPerRank, options);
      EXPECT_EQ(one.route, halo.report.route);
      EXPECT_EQ(one.isSimilar, halo.report.beganAsSimilar);
      EXPECT_FALSE(halo.report.fromTuningCache);
      EXPECT_FALSE(halo.report.tuningCacheNote.empty());
      if (canShareMemory()) {
        EXPECT_EQ(one.isSimilar, halo.intraNode == IntraNode::messages);
      }
      EXPECT_EQ(tuning == Tuning::online, halo.tuner != nullptr && halo.tuner->wantsTimes());
    }
  }
}

TEST(TuningCache, AGridThatDoesNotFitIsNoFirstGuess) {
  const int size = worldSize();
  if (size < 4 || size % 2 != 0) {
    GTEST_SKIP() << "needs an even number of nodes and another one";
  }
  ExchangeOptions made = onPairs(Komvos::parseRoute("axis:1," + std::to_string(size) + ",1,1"));
  made.record = std::make_shared<TuningCache>();
  Komvos::planHalo(MPI_COMM_WORLD, denseHalo(20), made);
  std::string text = made.record->toText();
  replace(text, "axis:1," + std::to_string(size) + ",1,1", "axis:1," + std::to_string(size + 1) + ",1,1");
  ExchangeOptions options = onPairs();
  options.tuning = Tuning::off;
  options.tuningCache = std::make_shared<const TuningCache>(TuningCache::parse(text, "the file"));
  const HaloReport report = Komvos::planHalo(MPI_COMM_WORLD, denseHalo(21), options).report;
  EXPECT_EQ("standard", report.route);
  EXPECT_FALSE(report.beganAsSimilar);
}

TEST(TuningCache, HalosDifferByPowersOfTwo) {
  const HaloKey one{1, 2, "nodes", "machine", 8, 4, {6, 600, 3, 300, 1, 100}};
  EXPECT_EQ(0, Komvos::difference(one, one).value());
  HaloKey other = one;
  other.pattern = other.topology = 7;
  EXPECT_EQ(0, Komvos::difference(one, other).value()) << "neither pattern nor nodes count";
  other.counts.valuesOffNode = 300;
  EXPECT_DOUBLE_EQ(1, Komvos::difference(one, other).value());
  EXPECT_DOUBLE_EQ(1, Komvos::difference(other, one).value());
  other.numRanks = 16;
  EXPECT_DOUBLE_EQ(2, Komvos::difference(one, other).value());
  other.numRanks = 17;
  EXPECT_FALSE(Komvos::difference(one, other).has_value());
  other = one;
  other.counts.ranksOnNode = 0;
  EXPECT_FALSE(Komvos::difference(one, other).has_value()) << "none against some";
  other = one;
  other.machine = "another";
  EXPECT_FALSE(Komvos::difference(one, other).has_value());
}

/// Files of version 1 do not say what their halos are like.
TEST(TuningCacheFile, OfVersionOneIsFollowedButHasNoSimilarHalos) {
  const std::string text = R"({"format": "komvos-tuning-cache", "version": 1, "decisions": [{
    "pattern": "0123456789abcdef", "topology": "fedcba9876543210", "topology_text": "4 ranks", "machine": "machine",
    "route": "three-step", "pairing": "by-volume", "on_node": "messages"}]})";
  const TuningCache cache = TuningCache::parse(text, "text");
  const HaloKey halo{0x0123456789abcdefu, 0xfedcba9876543210u, "4 ranks", "machine", 4, 2, {2, 20, 1, 10, 1, 10}};
  ASSERT_NE(nullptr, cache.find(halo));
  EXPECT_EQ(RouteChoice::threeStep, cache.find(halo)->route);
  EXPECT_EQ(nullptr, cache.findSimilar(halo));
}

TEST(TuningCache, AMachineHasAProcessorAndAnMpiLibrary) {
  const std::string machine = valueOf(cacheOf(onPairs(RouteChoice::standard)).toText(), "machine");
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(library, &length);
  const std::size_t comma = machine.rfind(", ");
  ASSERT_NE(std::string::npos, comma) << machine;
  EXPECT_EQ(0u, std::string(library).find(machine.substr(comma + 2))) << machine;
  EXPECT_EQ(textOfRankZero(machine), machine);
}

TEST(TuningCache, HasADecisionForEachWidthClassOrOneForAll) {
  const HaloKey halo{7, 8, "4 ranks", "machine"};
  const auto decide = [](const RouteChoice& route, int columnsFrom, bool settled = true) {
    return TuningDecision{route, Pairing::byVolume, IntraNode::messages, settled, columnsFrom};
  };
  TuningCache cache;
  const auto routeFor = [&](int columns) {
    const TuningDecision* const found = cache.find(halo, columns);
    return found != nullptr ? toString(found->route) : "none";
  };
  cache.add(halo, decide(RouteChoice::twoStep, 0, false));
  EXPECT_EQ("two-step", routeFor(1));
  EXPECT_EQ("two-step", routeFor(9));
  cache.add(halo, decide(RouteChoice::threeStep, 4));
  EXPECT_EQ(1u, cache.size()) << "in place of the guess";
  EXPECT_EQ("none", routeFor(1));
  EXPECT_EQ("three-step", routeFor(4));
  EXPECT_EQ("three-step", toString(cache.find(halo)->route));
  cache.add(halo, decide(RouteChoice::standard, 1));
  EXPECT_EQ(2u, cache.size());
  EXPECT_EQ("standard", routeFor(1));
  EXPECT_EQ("none", routeFor(3));
  EXPECT_EQ("three-step", routeFor(50));
  EXPECT_EQ("standard", toString(cache.find(halo)->route));
  EXPECT_EQ("standard", toString(cache.findSimilar(halo, 1)->route));
  EXPECT_EQ("three-step", toString(cache.findSimilar(halo, 6)->route));
  EXPECT_EQ(cache.toText(), TuningCache::parse(cache.toText(), "text").toText());
  TuningCache all = cache;
  all.addOfAllRanks(MPI_COMM_WORLD);
  EXPECT_EQ(cache.toText(), all.toText());
  cache.add(halo, decide(RouteChoice::split, 0));
  EXPECT_EQ(1u, cache.size());
  EXPECT_EQ("split", routeFor(1));
}

/// A cache with a decision of every kind.
TuningCache fullCache() {
  TuningCache cache;
  HaloKey halo{1, 0xfedcba9876543210u, "6 ranks on 3 nodes (2 each)", "a \"fast\" processor, an MPI\n\\"};
  for (const RouteChoice& route : routesFor(6)) {
    for (const Pairing pairing : allPairings()) {
      for (const IntraNode onNode : {IntraNode::messages, IntraNode::sharedMemory}) {
        halo.pattern = halo.pattern * 0x9e3779b97f4a7c15u + 1;
        const int columnsFrom = std::array{0, 1, 2, 4}[cache.size() % 4];
        cache.add(halo, {route, pairing, onNode, cache.size() % 3 != 0, columnsFrom});
      }
    }
  }
  return cache;
}

TEST(TuningCache, TextReadsBackExactly) {
  const TuningCache cache = fullCache();
  const TuningCache read = TuningCache::parse(cache.toText(), "text");
  EXPECT_EQ(cache.size(), read.size());
  EXPECT_EQ(cache.toText(), read.toText());
  std::size_t number = 0;
  HaloKey halo{1, 0xfedcba9876543210u, "not compared", "a \"fast\" processor, an MPI\n\\"};
  for (const RouteChoice& route : routesFor(6)) {
    for (const Pairing pairing : allPairings()) {
      for (const IntraNode onNode : {IntraNode::messages, IntraNode::sharedMemory}) {
        halo.pattern = halo.pattern * 0x9e3779b97f4a7c15u + 1;
        const TuningDecision* const found = read.find(halo);
        ASSERT_NE(nullptr, found);
        EXPECT_EQ(number % 3 != 0, found->settled);
        EXPECT_EQ((std::array{0, 1, 2, 4}[number++ % 4]), found->columnsFrom);
        EXPECT_EQ(route, found->route);
        EXPECT_EQ(pairing, found->pairing);
        EXPECT_EQ(onNode, found->intraNode);
      }
    }
  }
  EXPECT_EQ(0u, TuningCache::parse(TuningCache().toText(), "text").size());
}

TEST(TuningCache, ADecisionInAFileOfVersion2IsForAllWidths) {
  const HaloKey halo{7, 8, "4 ranks", "machine", 4, 2};
  TuningCache cache;
  cache.add(halo, {RouteChoice::threeStep});
  std::string text = cache.toText();
  replace(text, "\"version\": 3", "\"version\": 2");
  const TuningCache read = TuningCache::parse(text, "text");
  ASSERT_NE(nullptr, read.find(halo, 5));
  EXPECT_EQ(0, read.find(halo, 5)->columnsFrom);
  EXPECT_EQ(read.find(halo, 1), read.find(halo, 5));
  EXPECT_EQ(cache.toText(), read.toText());
}

/// A cache with one decision, and what may happen to its file.
std::string smallCache() {
  TuningCache cache;
  cache.add({0x0123456789abcdefu, 0xfedcba9876543210u, "4 ranks", "machine", 4, 2, {2, 20, 1, 10, 1, 10}},
            {RouteChoice::threeStep, Pairing::byVolume, IntraNode::messages, true, 4});
  return cache.toText();
}

struct Damage {
  std::string from, to, words;
};

std::vector<Damage> damages() {
  return {
      {"komvos-tuning-cache", "komvos-machine", "format is not komvos-tuning-cache, version 1 to 3"},
      {"\"version\": 3", "\"version\": 4", "format is not komvos-tuning-cache, version 1 to 3"},
      {"\"version\": 3", "\"version\": \"3\"", "format is not komvos-tuning-cache, version 1 to 3"},
      {"\"decisions\": [", "\"decision\": [", "decisions"},
      {"three-step", "auto", "decides nothing"},
      {"three-step", "four-step", "four-step"},
      {"three-step", "axis:1,2", "axis:1,2"},
      {"0123456789abcdef", "0123456789abcde", "16 hexadecimal digits"},
      {"0123456789abcdef", "0123456789abcdeg", "16 hexadecimal digits"},
      {"fedcba9876543210", "-edcba9876543210", "16 hexadecimal digits"},
      {"\"fedcba9876543210\"", "12", "damaged"},
      {"by-volume", "by-weight", "by-weight"},
      {"\"messages\"", "\"pigeons\"", "pigeons"},
      {"\"messages\"", "\"auto\"", "decides nothing"},
      {"\"messages\"", "null", "damaged"},
      {"\"pattern\"", "\"patern\"", "pattern"},
      {"\"topology\"", "\"topologie\"", "topology"},
      {"\"topology_text\"", "\"text\"", "topology_text"},
      {"\"machine\"", "\"computer\"", "machine"},
      {"\"route\"", "\"way\"", "route"},
      {"\"pairing\"", "\"pair\"", "pairing"},
      {"\"on_node\"", "\"on\"", "on_node"},
      {"\"ranks\": 4", "\"ranks\": -4", "ranks is -4"},
      {"\"ranks\": 4", "\"ranks\": \"4\"", "damaged"},
      {"\"nodes\"", "\"hosts\"", "nodes"},
      {"\"counts\"", "\"count\"", "counts"},
      {"\"values_of_nodes\": 10", "\"values_of_nodes\": -1", "values_of_nodes is -1"},
      {"\"ranks_off_node\"", "\"ranks_elsewhere\"", "ranks_off_node"},
      {"\"columns_from\": 4", "\"columns_from\": 3", "columns_from is 3, not 1, 2 or 4"},
      {"\"columns_from\": 4", "\"columns_from\": -4", "columns_from is -4, not 1, 2 or 4"},
      {"\"columns_from\": 4", "\"columns_from\": \"4\"", "damaged"},
  };
}

TEST(TuningCacheFile, IsReadByAllRanks) {
  const SharedFolder folder;
  const std::string file = folder.write("decisions.json", fullCache().toText());
  EXPECT_EQ(fullCache().toText(), TuningCache::load(MPI_COMM_WORLD, file).toText());
}

TEST(TuningCacheFile, DamageIsNamedWithTheFileOnAllRanks) {
  const SharedFolder folder;
  std::vector<std::pair<std::string, std::string>> cases{
      {"", "damaged"},
      {"Good morning\n", "damaged"},
      {"[]", "damaged"},
      {"null", "damaged"},
      {"{}", "format"},
      {smallCache() + "}", "damaged"},
      {R"({"format": "komvos-tuning-cache", "version": 3, "decisions": null})", "list"},
      {R"({"format": "komvos-tuning-cache", "version": 3, "decisions": {}})", "list"},
      {R"({"format": "komvos-tuning-cache", "version": 3, "decisions": [7]})", "damaged"},
      {std::string("\0\0\0", 3), "damaged"},
  };
  for (const Damage& damage : damages()) {
    std::string text = smallCache();
    replace(text, damage.from, damage.to);
    cases.emplace_back(text, damage.words);
  }
  int number = 0;
  for (const auto& [text, words] : cases) {
    const std::string file = folder.write("damaged" + std::to_string(++number), text);
    const std::string error = commonError(text, [&] { TuningCache::load(MPI_COMM_WORLD, file); });
    EXPECT_NE(std::string::npos, error.find("tuning cache " + file + ": ")) << text << "\n" << error;
    EXPECT_NE(std::string::npos, error.find(words)) << text << "\n" << error;
  }
}

TEST(TuningCacheFile, BrokenOffAnywhereIsRefused) {
  const std::string whole = smallCache();
  ASSERT_EQ("}\n", whole.substr(whole.size() - 2));
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    EXPECT_THROW(TuningCache::parse(whole.substr(0, length), "text"), BadInput) << length << " characters";
  }
  const SharedFolder folder;
  const std::string half = folder.write("half", whole.substr(0, whole.size() / 2));
  const std::string error = commonError("half a file", [&] { TuningCache::load(MPI_COMM_WORLD, half); });
  EXPECT_NE(std::string::npos, error.find(half)) << error;
}

TEST(TuningCacheFile, ThatCannotBeReadIsNamedOnAllRanks) {
  const SharedFolder folder;
  for (const std::string& path : {folder.path("none"), folder.path("none/at all"), folder.path(""), std::string()}) {
    const std::string error = commonError(path, [&] { TuningCache::load(MPI_COMM_WORLD, path); });
    EXPECT_EQ("cannot read tuning cache '" + path + "'", error);
  }
}

TEST(TuningCacheFile, IsReplacedAsAWholeOrNotAtAll) {
  if (worldRank() != 0) {
    GTEST_SKIP() << "one rank saves";
  }
  std::string made = (fs::temp_directory_path() / "komvos-save-XXXXXX").string();
  ASSERT_NE(nullptr, mkdtemp(made.data()));
  const fs::path folder = made;
  const auto files = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
  const std::string file = (folder / "decisions.json").string();
  std::ofstream(file) << "old";
  fullCache().save(file);
  EXPECT_EQ(fullCache().toText(), contentOf(file));
  EXPECT_EQ(1, files());

  // There is room for this name, and none for a longer one beside it.
  const std::string longName = (folder / std::string(255, 'x')).string();
  std::ofstream(longName) << "old";
  EXPECT_THROW(fullCache().save(longName), Komvos::Error);
  EXPECT_EQ("old", contentOf(longName));
  fs::create_directory(folder / "taken");
  for (const std::string& name : {(folder / "taken").string(), (folder / "none" / "decisions.json").string()}) {
    try {
      fullCache().save(name);
      ADD_FAILURE() << name;
    } catch (const Komvos::Error& error) {
      EXPECT_NE(std::string::npos, std::string(error.what()).find(name)) << error.what();
    }
  }
  EXPECT_EQ(3, files()) << "something was left behind";
  fs::remove_all(folder);
}

// --- options that differ ---------------------------------------------------------------------------------------------

TEST(TunerErrors, OptionsThatDifferBetweenRanksAreRefusedOnAll) {
  if (worldSize() == 1) {
    GTEST_SKIP() << "one rank has nobody to disagree with";
  }
  const bool odd = worldRank() == worldSize() - 1;
  const auto refused = [](const ExchangeOptions& options, const std::string& text) {
    EXPECT_EQ(text, commonError(text, [&] { planDense(options); }));
  };
  const auto differs = [&](const ExchangeOptions& options, const std::string& what) {
    refused(options, "the " + what + " of a halo must be the same on all ranks, and is not");
  };
  const auto cache = reread(cacheOf(onPairs(RouteChoice::standard)));
  const auto otherCache = reread(cacheOf(onPairs(RouteChoice::twoStep)));

  ExchangeOptions options = onPairs();
  options.intraNode = odd ? IntraNode::messages : IntraNode::sharedMemory;
  differs(options, "intra-node communication");
  options.intraNode = odd ? Komvos::IntraNode::automatic : IntraNode::messages;
  differs(options, "intra-node communication");
  options = onPairs(Komvos::parseRoute(odd ? "split:3" : "split:4"));
  differs(options, "route");
  options = onPairs();
  options.tuningCache = odd ? cache : nullptr;
  differs(options, "tuning cache");
  options.tuningCache = odd ? cache : otherCache;
  differs(options, "tuning cache");
  options.tuningCache = cache;
  options.pairing = odd ? std::optional(Pairing::byVolume) : std::nullopt;  // the default, but the cache is ignored
  differs(options, "tuning cache");
  options.route = odd ? std::optional(RouteChoice::standard) : std::nullopt;
  differs(options, "route");
  options = onPairs();
  options.machine = odd ? std::make_shared<const Komvos::MachineModel>(Komvos::blueWaters()) : nullptr;
  differs(options, "machine model");
  Komvos::MachineModel other = Komvos::blueWaters();
  other.onNode.parameters[0].latency *= odd ? 2 : 1;
  options.machine = std::make_shared<const Komvos::MachineModel>(other);
  differs(options, "machine model");
  options = onPairs();
  options.sockets = odd ? options.sockets : nullptr;
  differs(options, "socket topology");
  options.topology = nullptr;
  refused(options, "a socket topology is given on some ranks only");
}

/// Only rank 0 sends, and off its node: the others cannot see by themselves that the model lacks what it needs.
TEST(TunerErrors, AMachineThatKnowsOneNodeOnlyIsRefusedOnAllRanks) {
  if (worldSize() == 1) {
    GTEST_SKIP() << "one rank sends nothing";
  }
  Needs halo{{0}, std::vector<std::vector<int>>(worldSize())};
  halo.needs.back().push_back(0);
  ExchangeOptions options = onPairs();
  options.topology = share(NodeTopology::uniform(worldSize(), 1));
  auto machine = std::make_shared<Komvos::MachineModel>(Komvos::blueWaters());
  machine->offNode.reset();
  options.machine = machine;
  const Pattern mine = KomvosTest::patternsFromNeeds(halo.owner, halo.needs)[worldRank()];
  const std::string error = commonError("machine", [&] { Komvos::planHalo(MPI_COMM_WORLD, mine, options); });
  EXPECT_NE(std::string::npos, error.find("machine 'blue-waters' was calibrated on one node")) << error;
}

TEST(TunerErrors, AnExchangeIsNotMadeWithIntraNodeAutomatic) {
  const PlannedHalo halo = planDense(onPairs(RouteChoice::standard));
  try {
    const Komvos::Exchange<double, Tpetra::Details::DefaultTypes::node_type::device_type> exchange(
        MPI_COMM_WORLD, halo.plan, 1, IntraNode::automatic);
    ADD_FAILURE() << "no error";
  } catch (const BadInput& error) {
    EXPECT_EQ("Exchange: IntraNode::automatic stands for a choice, give messages or sharedMemory (rank " +
                  std::to_string(worldRank()) + ")",
              std::string(error.what()));
  }
}

// --- environment -----------------------------------------------------------------------------------------------------

TEST(TunerEnvironment, SaysByWhatOnTheNode) {
  const int size = worldSize();
  ExchangeOptions options = onPairs(RouteChoice::standard);
  options.intraNode = {};
  for (const IntraNode onNode : {IntraNode::messages, IntraNode::sharedMemory}) {
    const Variable variable("KOMVOS_ON_NODE", toString(onNode));
    const PlannedHalo halo = planDense(options);
    EXPECT_EQ(size > 1 && canShareMemory() ? onNode : IntraNode::messages, halo.intraNode);
    EXPECT_FALSE(measuredAny(halo.report));
    EXPECT_EQ(IntraNode::messages, planDense(onPairs(RouteChoice::standard)).intraNode) << "an option wins";
    ExchangeOptions either = options;
    either.intraNode = Komvos::IntraNode::automatic;
    EXPECT_EQ(size > 1 && canShareMemory(), measuredAny(planDense(either).report)) << "automatic is an option too";
  }
  {
    const Variable variable("KOMVOS_ON_NODE", "auto");
    EXPECT_EQ(size > 1 && canShareMemory(), measuredAny(planDense(options).report));
  }
  const Variable variable("KOMVOS_ON_NODE", "pigeons");
  const std::string error = commonError("pigeons", [&] { planDense(options); });
  EXPECT_NE(std::string::npos, error.find("'pigeons' is not one of messages, shared-memory")) << error;
}

TEST(TunerEnvironment, NamesAMachine) {
  const SharedFolder folder;
  const ExchangeOptions options = onPairs(RouteChoice::standard);
  {
    const Variable variable("KOMVOS_MACHINE", "blue-waters");
    EXPECT_EQ(worldSize() > 1, planDense(options).report.candidates.front().modelledSeconds > 0);
  }
  EXPECT_EQ(0, planDense(options).report.candidates.front().modelledSeconds);
  const std::string broken = folder.write("broken.json", R"({"format": "komvos-machine", "version": )");
  for (const std::string& name : {std::string("green-waters"), folder.path("none.json"), folder.path(""), broken}) {
    const Variable variable("KOMVOS_MACHINE", name);
    const std::string error = commonError(name, [&] { planDense(options); });
    EXPECT_NE(std::string::npos, error.find(name)) << error;
  }
}
TEST(TunerPrecedence, ATuningCacheIsIgnoredWhereAnOptionSaysHowTheHaloIsExchanged) {
  const auto twoStep = reread(cacheOf(onPairs(RouteChoice::twoStep)));
  ExchangeOptions options = onPairs();
  options.tuningCache = twoStep;
  EXPECT_EQ("two-step", planDense(options).report.route);
  EXPECT_FALSE(measuredAny(planDense(options).report));

  options.route = RouteChoice::standard;
  EXPECT_EQ("standard", planDense(options).report.route);
  EXPECT_EQ("standard", Komvos::planHalo(MPI_COMM_WORLD, denseHalo(3), options).report.route) << "not consulted";
  options.route = RouteChoice::automatic;
  EXPECT_EQ(hasChoice(), measuredAny(planDense(options).report)) << "automatic is an option too";
  options.route = {};
  options.pairing = Pairing::majority;
  EXPECT_EQ(hasChoice(), measuredAny(planDense(options).report));
  EXPECT_EQ(Pairing::majority, planDense(options).report.pairing);
  options.pairing = {};
  options.intraNode = IntraNode::messages;
  EXPECT_EQ(worldSize() > 2, measuredAny(planDense(options).report));
}

TEST(TunerPrecedence, ATuningCacheGivenAsOptionWinsOverTheEnvironment) {
  const SharedFolder folder;
  ExchangeOptions options = onPairs();
  options.tuningCache = reread(cacheOf(onPairs(RouteChoice::twoStep)));
  const std::vector<std::pair<std::string, std::string>> variables{{"KOMVOS_ROUTE", "standard"},
                                                                   {"KOMVOS_PAIRING", "majority"},
                                                                   {"KOMVOS_ON_NODE", "shared-memory"},
                                                                   {"KOMVOS_TUNING_CACHE", folder.path("none")}};
  for (const auto& [name, value] : variables) {
    const Variable variable(name, value);
    const HaloReport report = planDense(options).report;
    EXPECT_EQ("two-step", report.route) << name;
    EXPECT_EQ(Pairing::byVolume, report.pairing) << name;
    EXPECT_EQ(IntraNode::messages, report.intraNode) << name;
    EXPECT_FALSE(measuredAny(report)) << name;
  }
}

TEST(TunerEnvironment, NamesATuningCache) {
  const SharedFolder folder;
  const std::string file = folder.write("decisions.json", cacheOf(onPairs(RouteChoice::twoStep)).toText());
  {
    const Variable variable("KOMVOS_TUNING_CACHE", file);
    const Variable route("KOMVOS_ROUTE", "auto");
    const Variable intraNode("KOMVOS_ON_NODE", "auto");
    const HaloReport report = planDense(onPairs()).report;
    EXPECT_EQ("two-step", report.route);
    EXPECT_FALSE(measuredAny(report));
    const auto planOther = [] { return Komvos::planHalo(MPI_COMM_WORLD, denseHalo(3), onPairs()).report; };
    EXPECT_NE(std::string::npos, planOther().tuningCacheNote.find(file));
    const Variable strict("KOMVOS_REQUIRE_TUNING_CACHE", "1");
    const std::string error = commonError("pattern", planOther);
    EXPECT_NE(std::string::npos, error.find(file)) << error;
  }
  const Variable variable("KOMVOS_TUNING_CACHE", folder.path("none"));
  const std::string error = commonError("no file", [&] { planDense(onPairs()); });
  EXPECT_EQ("cannot read tuning cache '" + folder.path("none") + "'", error);
}

TEST(TunerPrecedence, ATuningCacheInTheEnvironmentIsIgnoredWhereAnythingElseIsGiven) {
  const SharedFolder folder;
  const Variable file("KOMVOS_TUNING_CACHE", folder.path("none"));
  EXPECT_EQ("standard", planDense(onPairs(RouteChoice::standard)).report.route);
  ExchangeOptions options = onPairs();
  options.pairing = Pairing::majority;
  EXPECT_EQ(hasChoice(), measuredAny(planDense(options).report));
  options = onPairs();
  options.route = RouteChoice::automatic;
  EXPECT_EQ(hasChoice(), measuredAny(planDense(options).report));
  {
    const Variable route("KOMVOS_ROUTE", "two-step");
    EXPECT_EQ("two-step", planDense(onPairs()).report.route);
  }
  {
    const Variable pairing("KOMVOS_PAIRING", "majority");
    EXPECT_EQ(Pairing::majority, planDense(onPairs()).report.pairing);
  }
  const Variable intraNode("KOMVOS_ON_NODE", "messages");
  EXPECT_EQ(IntraNode::messages, planDense(onPairs()).report.intraNode);
}

TEST(Tuner, GivesBackTheSharedMemoryThatItMeasuredIn) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  const auto ours = Komvos::Impl::PrivateComm::of(mine);
  const auto sharedBytes = [&] { return Komvos::Impl::NodeMemory::of(*ours).memoryBytes(); };
  EXPECT_EQ(0u, sharedBytes());
  {
    const PlannedHalo halo = Komvos::planHalo(mine, denseHalo(), onPairs());
    EXPECT_EQ(worldSize() > 1, measuredAny(halo.report));
    EXPECT_EQ(0u, sharedBytes());
    using DefaultDevice = Tpetra::Details::DefaultTypes::node_type::device_type;
    Komvos::Exchange<double, DefaultDevice> exchange(mine, halo.plan, 1, IntraNode::sharedMemory);
    const std::size_t kept = sharedBytes();
    EXPECT_EQ(canShareMemory(), kept > 0);
    Komvos::planHalo(mine, denseHalo(3000), onPairs());  // needs windows of its own
    EXPECT_EQ(kept, sharedBytes());
    Komvos::Exchange<double, DefaultDevice> another(mine, halo.plan, 1, IntraNode::sharedMemory);
    for (auto* one : {&exchange, &another}) {
      const Kokkos::View<double**, Kokkos::LayoutLeft, DefaultDevice> owned("owned", halo.plan->numOwned, 1);
      const Kokkos::View<double**, Kokkos::LayoutLeft, DefaultDevice> ghosts("ghosts", halo.plan->numTarget, 1);
      Kokkos::deep_copy(owned, 3.0);
      one->forward({}, owned, ghosts);
      const auto host = Kokkos::create_mirror_view(ghosts);
      Kokkos::deep_copy(host, ghosts);
      EXPECT_EQ(halo.plan->numTarget, std::count(host.data(), host.data() + host.extent(0), 3.0));
    }
  }
  MPI_Comm_free(&mine);
}

TEST(TunerPrecedence, ResolvedOptionsResolveToThemselvesWhateverTheEnvironmentSays) {
  const SharedFolder folder;
  const auto comm = Komvos::Impl::PrivateComm::of(MPI_COMM_WORLD);
  ExchangeOptions cached = onPairs();
  cached.tuningCache = reread(cacheOf(onPairs(RouteChoice::twoStep)));
  for (const ExchangeOptions& options : {ExchangeOptions(), onPairs(RouteChoice::split), cached}) {
    const auto once = Komvos::Impl::resolveOptions(*comm, options);
    const Variable route("KOMVOS_ROUTE", "axis");
    const Variable pairing("KOMVOS_PAIRING", "majority");
    const Variable intraNode("KOMVOS_ON_NODE", "shared-memory");
    const Variable nodes("KOMVOS_RANKS_PER_NODE", "1");
    const auto twice = Komvos::Impl::resolveOptions(*comm, once.toOptions());
    EXPECT_EQ(once.route, twice.route);
    EXPECT_EQ(once.pairing, twice.pairing);
    EXPECT_EQ(once.intraNode, twice.intraNode);
    EXPECT_EQ(once.topology.nodes, twice.topology.nodes);
    EXPECT_EQ(once.topology.sockets, twice.topology.sockets);
    EXPECT_EQ(once.tuningCache, twice.tuningCache);
  }
}

/// One test run starts with Tpetra's variable set.
TEST(TunerEnvironment, SaysWhetherMpiIsGpuAwareAndTpetraDoesWhereNothingIsSaid) {
  for (const bool aware : {false, true}) {
    const Variable variable("KOMVOS_GPU_AWARE_MPI", aware ? "1" : "0");
    EXPECT_EQ(aware, Komvos::gpuAwareMpi());
    EXPECT_EQ(aware, planDense(onPairs(RouteChoice::standard)).mpiIsGpuAware);
  }
  const char* const older = std::getenv("TPETRA_ASSUME_CUDA_AWARE_MPI");
  const char* const said = older != nullptr ? older : std::getenv("TPETRA_ASSUME_GPU_AWARE_MPI");
  if (said == nullptr || std::getenv("KOMVOS_GPU_AWARE_MPI") != nullptr) {
    GTEST_SKIP() << "Tpetra assumes what it was configured with, or the environment says it";
  }
  const bool expected = std::string(said) == "1";
  EXPECT_EQ(expected, Komvos::gpuAwareMpi());
  EXPECT_EQ(expected, planDense(onPairs(RouteChoice::standard)).mpiIsGpuAware);
}

TEST(TunerEnvironment, ThatDiffersBetweenRanksIsRefusedOnAll) {
  if (worldSize() == 1) {
    GTEST_SKIP() << "one rank has nobody to disagree with";
  }
  const SharedFolder folder;
  const std::string file = folder.write("decisions.json", smallCache());
  const std::vector<std::array<std::string, 3>> cases{
      {"KOMVOS_MACHINE", "blue-waters", "KOMVOS_MACHINE is set on some ranks only"},
      {"KOMVOS_TUNING_CACHE", file, "KOMVOS_TUNING_CACHE is to be consulted on some ranks only"},
      {"KOMVOS_CALIBRATE", "0",
       "the wish for a quick calibration (KOMVOS_CALIBRATE) of a halo must be the same on all ranks, and is not"},
      {"KOMVOS_GPU_AWARE_MPI", Komvos::gpuAwareMpi() ? "0" : "1",
       "the GPU-awareness of MPI (KOMVOS_GPU_AWARE_MPI) of a halo must be the same on all ranks, and is not"},
      {"KOMVOS_STAGED", Komvos::stagingForced() ? "0" : "1",
       "the staging of messages (KOMVOS_STAGED) of a halo must be the same on all ranks, and is not"},
      {"KOMVOS_ON_NODE", "messages",
       "the intra-node communication of a halo must be the same on all ranks, and is not"}};
  for (const auto& [name, value, text] : cases) {
    std::unique_ptr<Variable> variable;
    if (worldRank() == worldSize() - 1) {
      variable = std::make_unique<Variable>(name, value);
    }
    EXPECT_EQ(text, commonError(name, [&] { planDense(onPairs()); }));
  }
}

}  // namespace
