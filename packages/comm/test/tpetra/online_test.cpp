// Online tuning of real halos: every use moves the same values, whichever variant it takes.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Tpetra_Import.hpp>
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloReport.hpp"
#include "Komvos_MachineModel.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_TuningCache.hpp"
#include "support/matrix_support.hpp"
#include "support/mpi_counter.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::ExchangeOptions;
using Komvos::HaloReport;
using Komvos::IntraNode;
using Komvos::NodeAwareCrsMatrix;
using Komvos::NodeAwareImport;
using Komvos::NodeTopology;
using Komvos::PlanMismatch;
using Komvos::RouteChoice;
using Komvos::Tuning;
using Import = Tpetra::Import<>;

ExchangeOptions tuned(const NodeTopology& nodes, Tuning tuning = Tuning::online) {
  ExchangeOptions options;
  options.topology = std::make_shared<const NodeTopology>(nodes);
  options.sockets = std::make_shared<const NodeTopology>(nodes);
  options.tuning = tuning;
  options.reuseDecisions = false;
  options.calibrate = false;  // halos begin along the standard route: what messages take today decides nothing here
  return options;
}

/// A halo in which everybody needs everything, and vectors for it.
struct DenseHalo {
  explicit DenseHalo(MapPair m = makeMaps(mapKinds()[6], 5, Tpetra::getDefaultComm())) : maps(std::move(m)) {}

  MapPair maps;
  Import import{maps.owned, maps.overlapping};
  MultiVector<double> source{maps.owned, 1};
  MultiVector<double> expected{maps.overlapping, 1};
  MultiVector<double> target{maps.overlapping, 1};

  void newValues(unsigned seed) {
    fill(source, seed);
    expected.putScalar(-1);
    target.putScalar(-1);
    expected.doImport(source, import, Tpetra::INSERT);
  }
  bool isRight() const {
    const auto x = expected.getLocalViewHost(Tpetra::Access::ReadOnly);
    const auto y = target.getLocalViewHost(Tpetra::Access::ReadOnly);
    for (std::size_t i = 0; i < x.extent(0); ++i) {
      if (x(i, 0) != y(i, 0)) {
        return false;
      }
    }
    return true;
  }
};

/// Imports with times that are made up: `fast` takes a third of all others. \return what was used
std::vector<std::string> importMany(const NodeAwareImport<>& halo, DenseHalo& data, const std::string& fast, int uses,
                                    double unit = 1, int columns = 1) {
  using Device = NodeAwareImport<>::device_type;
  std::vector<std::string> used;
  for (int use = 0; use < uses; ++use) {
    data.newValues(use);
    auto& exchange = halo.selectForward<double>();
    const std::string name = exchange.plan().route;
    {
      const auto x = data.source.getLocalViewDevice(Tpetra::Access::ReadOnly);
      const auto y = data.target.getLocalViewDevice(Tpetra::Access::ReadWrite);
      const auto ghosts = Kokkos::subview(y, std::make_pair<std::size_t>(halo.numSame(), y.extent(0)), Kokkos::ALL());
      const Device::execution_space space;
      exchange.forward(space, x, ghosts);
      space.fence();
    }
    {
      const auto wanted = data.expected.getLocalViewHost(Tpetra::Access::ReadOnly);
      const auto found = data.target.getLocalViewHost(Tpetra::Access::ReadOnly);
      for (const auto& one : exchange.plan().deliveries) {  // the exchange leaves entries of this rank alone
        const std::size_t i = halo.numSame() + static_cast<std::size_t>(one.target);
        EXPECT_EQ(wanted(i, 0), found(i, 0)) << name << ", use " << use;
      }
    }
    used.push_back(name);
    const double seconds = unit * (name == fast ? 1 : 3);
    halo.recordUse(seconds, seconds, columns);
  }
  return used;
}

/// Split comes to the same as three steps here, and so is not in use for any number of columns.
TEST(OnlineTuning, ReportsTheRouteInUseAfterOtherNumbersOfColumns) {
  for (const NamedTopology& where : topologiesFor(Tpetra::getDefaultComm()->getSize())) {
    for (const char* fast : {"standard", "three-step", "two-step"}) {
      DenseHalo data;
      const NodeAwareImport<> halo(data.import, tuned(where.topology));
      importMany(halo, data, "none", 300);
      const std::vector<std::string> used = importMany(halo, data, fast, 300, 1, 4);
      const HaloReport report = halo.report();
      EXPECT_EQ(used.back(), report.route) << where.name << ", " << fast;
      EXPECT_NE("split", report.route) << where.name << ", " << fast;
    }
  }
}

TEST(OnlineTuning, FindsWhateverRouteIsFastestAndMovesTheSameMeanwhile) {
  const auto comm = Tpetra::getDefaultComm();
  const int size = comm->getSize();
  DenseHalo data;
  for (const NamedTopology& where : topologiesFor(size)) {
    std::set<std::string> all;
    const NodeAwareImport<> first(data.import, tuned(where.topology));
    for (const std::string& name : importMany(first, data, "none", 600)) {
      all.insert(name);
    }
    EXPECT_EQ(1u, all.count("standard")) << where.name;
    const bool combines = where.topology.numNodes() > 1 && where.topology.numNodes() < size;
    EXPECT_TRUE(!combines || all.size() > 1) << where.name;
    EXPECT_TRUE(where.topology.numNodes() > 1 || all.size() == 1) << where.name;
    for (const std::string& fast : all) {
      SCOPED_TRACE(where.name + ", " + fast);
      const NodeAwareImport<> halo(data.import, tuned(where.topology));
      EXPECT_EQ("standard", halo.report().route);
      const std::vector<std::string> used = importMany(halo, data, fast, 600);
      const HaloReport& report = halo.report();
      EXPECT_EQ(fast, used.back());
      EXPECT_EQ(fast, report.route);
      EXPECT_EQ(fast, halo.plan().route);
      EXPECT_EQ(600, report.uses);
      EXPECT_TRUE(report.online);
      EXPECT_TRUE(all.size() == 1 || !report.trials.empty());
      if (!report.trials.empty()) {
        EXPECT_GE(report.trials.front().firstUse, 4);
        EXPECT_LE(report.trials.back().lastUse, 600);
      }
    }
  }
}

/// Messages between nodes take a second each, those on the nodes nearly nothing.
std::shared_ptr<const Komvos::MachineModel> slowNetwork() {
  Komvos::MachineModel machine = Komvos::blueWaters();
  for (auto& one : machine.offNode->parameters) {
    one.latency = 1;
  }
  return std::make_shared<const Komvos::MachineModel>(machine);
}

TEST(OnlineTuning, BeginsWithARouteThatPromisesMuch) {
  const int size = Tpetra::getDefaultComm()->getSize();
  DenseHalo data;
  for (const int ppn : {1, 2, 3}) {
    SCOPED_TRACE(std::to_string(ppn) + " a node");
    ExchangeOptions options = tuned(NodeTopology::uniform(size, ppn));
    options.machine = slowNetwork();
    const NodeAwareImport<> kept(data.import, options);
    const std::string begun = kept.report().route;
    EXPECT_EQ(begun != "standard", kept.report().beganAsForecast);
    EXPECT_TRUE(begun != "standard" || ppn == 1 || size <= ppn) << "one message instead of several";
    const std::vector<std::string> used = importMany(kept, data, begun, 60);
    EXPECT_EQ(begun, kept.report().route);
    EXPECT_GE(std::count(used.begin(), used.end(), begun), 45);
    EXPECT_TRUE(begun == "standard" || std::count(used.begin(), used.end(), "standard") == 0) << "kept its promise";
    for (const Komvos::HaloTrial& trial : kept.report().trials) {
      EXPECT_NE("faster", trial.outcome) << toString(trial.route);
    }
    const NodeAwareImport<> broken(data.import, options);
    importMany(broken, data, "standard", 60, 100);
    EXPECT_EQ("standard", broken.report().route);
    const std::vector<Komvos::HaloTrial> trials = broken.report().trials;
    EXPECT_EQ(begun != "standard", std::any_of(trials.begin(), trials.end(), [](const Komvos::HaloTrial& trial) {
                return trial.route == RouteChoice::standard && trial.outcome == "faster";
              }));
    options.tuning = Tuning::off;
    EXPECT_EQ("standard", NodeAwareImport<>(data.import, options).report().route);
  }
}

TEST(OnlineTuning, ImportsAreRightInEveryUse) {
  const int size = Tpetra::getDefaultComm()->getSize();
  DenseHalo data;
  for (const NamedTopology& where : topologiesFor(size)) {
    SCOPED_TRACE(where.name);
    const NodeAwareImport<> halo(data.import, tuned(where.topology));
    for (int use = 0; use < 80; ++use) {
      data.newValues(use);
      halo.doImport(data.source, data.target, Tpetra::INSERT);
      EXPECT_TRUE(data.isRight()) << use;
    }
  }
}

/// One rank abandons some uses, in any phase of tuning.
TEST(OnlineTuning, ARankThatAbandonsAUseLeavesNobodyWaiting) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  DenseHalo data;
  const NodeAwareImport<> halo(data.import, tuned(NodeTopology::uniform(size, 2)));
  for (int use = 1; use <= 120; ++use) {
    data.newValues(use);
    const bool fails = use % 7 == 3;
    const int guilty = use % size;
    if (fails && rank == guilty) {
      halo.abandonForward<double>();
    } else if (fails) {
      try {  // whoever needs no value of the guilty rank sees nothing
        halo.doImport(data.source, data.target, Tpetra::INSERT);
      } catch (const PlanMismatch&) {
      }
    } else {
      halo.doImport(data.source, data.target, Tpetra::INSERT);
      EXPECT_TRUE(data.isRight()) << use;
    }
  }
  EXPECT_EQ(120, halo.report().uses);
}

/// A vector of the wrong shape on one rank: it throws before it has asked for an exchange.
TEST(OnlineTuning, AWrongVectorOnOneRankCountsAsAUse) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  DenseHalo data;
  const NodeAwareImport<> halo(data.import, tuned(NodeTopology::uniform(size, 2)));
  MultiVector<double> wrong(data.maps.overlapping, 2);
  for (int use = 1; use <= 60; ++use) {
    data.newValues(use);
    try {
      halo.doImport(data.source, use % 5 == 0 && rank == 0 ? wrong : data.target, Tpetra::INSERT);
      EXPECT_FALSE(use % 5 == 0 && rank == 0) << use << ": a wrong vector was taken";
      EXPECT_TRUE(use % 5 == 0 || data.isRight()) << use;
    } catch (const PlanMismatch&) {
      EXPECT_EQ(0, use % 5);
    }
  }
  EXPECT_EQ(60, halo.report().uses);
}

/// A halo that is tuned may be destroyed on one rank while others still use theirs, in any phase.
TEST(OnlineTuning, IsDestroyedWithoutWaitingForTheOtherRanks) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  DenseHalo data;
  for (const int uses : {1, 3, 4, 9, 12}) {
    auto halo = std::make_unique<NodeAwareImport<>>(data.import, tuned(NodeTopology::uniform(size, 2)));
    for (int use = 0; use < uses; ++use) {
      data.newValues(use);
      halo->doImport(data.source, data.target, Tpetra::INSERT);
      EXPECT_TRUE(data.isRight());
    }
    if (rank % 2 == 0) {
      halo.reset();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/// A matrix whose ranks need values of most others.
RCP<Matrix> irregularMatrix() {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 60 * comm->getSize();
  const auto matrix = rcp(new Matrix(rowsOf(n, true, false, 3, comm), 12));
  fillRows(*matrix, randomEntries(n, 5));
  matrix->fillComplete();
  return matrix;
}

/// Whatever the tuner does, products and transposed products are the same bits, from one run to the next. With several
/// threads a rank's own transposed product is not: Kokkos Kernels adds with atomics there, with Tpetra alone too.
TEST(OnlineTuning, ProductsAndTransposedProductsAreTheSameBitsWithAnyTuning) {
  const int size = Tpetra::getDefaultComm()->getSize();
  const bool threaded = Komvos::DefaultNode::execution_space().concurrency() > 1;
  const auto matrix = irregularMatrix();
  for (const int ppn : {1, 2, 3}) {
    std::map<std::pair<int, bool>, std::vector<double>> firstSeen;
    for (const Tuning tuning : {Tuning::online, Tuning::off, Tuning::exhaustive, Tuning::online}) {
      SCOPED_TRACE(std::to_string(ppn) + " a node, " + toString(tuning));
      const NodeAwareCrsMatrix<> ours(*matrix, tuned(NodeTopology::uniform(size, ppn), tuning));
      for (int use = 0; use < 40; ++use) {
        for (const bool transposed : {false, true}) {
          for (const std::size_t columns : {1, 3}) {
            MultiVector<double> x(matrix->getDomainMap(), columns), y(matrix->getRangeMap(), columns);
            fill(x, 3);
            ours.apply(x, y, transposed ? Teuchos::TRANS : Teuchos::NO_TRANS);
            const auto view = y.getLocalViewHost(Tpetra::Access::ReadOnly);
            std::vector<double> values;
            for (std::size_t j = 0; j < columns; ++j) {
              for (std::size_t i = 0; i < view.extent(0); ++i) {
                values.push_back(view(i, j));
              }
            }
            const auto [first, isNew] = firstSeen.emplace(std::pair(static_cast<int>(columns), transposed), values);
            if (!threaded || !transposed) {
              EXPECT_EQ(first->second, values) << "use " << use << ", transposed " << transposed;
              continue;
            }
            ASSERT_EQ(first->second.size(), values.size());
            for (std::size_t i = 0; i < values.size(); ++i) {
              EXPECT_NEAR(first->second[i], values[i], 1e-10) << "use " << use << ", entry " << i;
            }
          }
        }
      }
    }
  }
}

/// Uses in which nothing is planned or made send the messages of their route, and nothing blocks.
TEST(OnlineTuning, AddsNothingToExchangesButReductionsThatDoNotWait) {
  const int size = Tpetra::getDefaultComm()->getSize();
  const auto matrix = irregularMatrix();
  const NodeAwareCrsMatrix<> ours(*matrix, tuned(NodeTopology::uniform(size, 2)));
  if (ours.importHalo() == nullptr) {
    return;
  }
  MultiVector<double> x(matrix->getDomainMap(), 1), y(matrix->getRangeMap(), 1);
  fill(x, 1);
  int quiet = 0;
  long reductions = 0;
  const int uses = 300;
  for (int use = 0; use < uses; ++use) {
    const std::size_t planned = ours.importHalo()->report().candidates.size();
    startCounting();
    ours.apply(x, y);
    const Counts counts = stopCounting();
    reductions += counts.reductionsStarted;
    const bool plans = ours.importHalo()->report().candidates.size() > planned;
    if (!plans && counts.requestsCreated == 0) {  // requests are made for an exchange that is new
      ++quiet;
      EXPECT_EQ(0, counts.collectives + counts.gathers) << use;
      EXPECT_EQ(0, counts.communicators) << use;
      EXPECT_LE(counts.reductionsStarted, 1) << use;
      const auto isPersistent = [](const SentMessage& one) { return one.persistent; };
      EXPECT_TRUE(std::all_of(counts.sent.begin(), counts.sent.end(), isPersistent)) << use;
    }
  }
  EXPECT_GT(quiet, uses - 60);
  EXPECT_LT(reductions, 40);
  EXPECT_GT(reductions, 0) << "nothing was tuned";
}

TEST(OnlineTuning, FreesWhatLost) {
  const int size = Tpetra::getDefaultComm()->getSize();
  DenseHalo data;
  const NodeTopology nodes = NodeTopology::uniform(size, 2);
  const auto bytesOf = [&](const NodeAwareImport<>& halo) { return halo.exchange<double>().memoryBytes(); };
  const NodeAwareImport<> halo(data.import, tuned(nodes));
  importMany(halo, data, "three-step", 600);
  ASSERT_EQ(size > 2 ? "three-step" : "standard", halo.report().route);
  if (size <= 2) {
    return;  // nothing to combine
  }
  ExchangeOptions fixed = tuned(nodes);
  fixed.route = RouteChoice::threeStep;
  fixed.intraNode = halo.report().intraNode;
  const NodeAwareImport<> twin(data.import, fixed);
  twin.doImport(data.source, data.target, Tpetra::INSERT);
  EXPECT_EQ(bytesOf(twin), bytesOf(halo));
}

TEST(OnlineTuning, ANewHaloOfTheSamePatternGoesOnWhereTheOldOneEnded) {
  const int size = Tpetra::getDefaultComm()->getSize();
  DenseHalo data;
  ExchangeOptions options = tuned(NodeTopology::uniform(size, 2));
  options.reuseDecisions = true;
  const NodeAwareImport<> first(data.import, options);
  importMany(first, data, "three-step", 1500);
  EXPECT_EQ(size > 2 ? "three-step" : "standard", first.report().route);
  EXPECT_TRUE(size <= 2 || !first.report().trials.empty());
  const NodeAwareImport<> second(data.import, options);
  EXPECT_TRUE(second.report().decisionReused);
  EXPECT_EQ(first.report().route, second.report().route);
  EXPECT_EQ(first.report().intraNode, second.report().intraNode);
  importMany(second, data, "none", 100);
  EXPECT_TRUE(second.report().trials.empty()) << "they lost before";
  EXPECT_EQ(first.report().route, second.report().route);
}

ExchangeOptions recorded() {
  ExchangeOptions options = tuned(NodeTopology::uniform(Tpetra::getDefaultComm()->getSize(), 2));
  options.record = std::make_shared<Komvos::TuningCache>();
  return options;
}

/// What is decided for the vectors that are used most shall not be lost when a few of another width are used at the
/// end.
TEST(OnlineTuning, ATuningCacheKeepsWhatIsSettled) {
  DenseHalo data;
  ExchangeOptions options = recorded();
  const NodeAwareImport<> halo(data.import, options);
  importMany(halo, data, "three-step", 400);
  ASSERT_EQ(1u, options.record->size());
  const std::string decided = options.record->toText();
  EXPECT_EQ(0u, options.record->numGuesses());
  const std::string entry = decided.substr(0, decided.find("\"columns_from\": 1"));
  int uses = 0;  // until it is seen how wide vectors are
  for (; options.record->size() == 1 && uses < 3000; uses += 10) {
    importMany(halo, data, "two-step", 10, 1, 4);
    EXPECT_EQ(entry, options.record->toText().substr(0, entry.size()));
  }
  EXPECT_EQ(2u, options.record->size()) << "for one column, and for four";
  importMany(halo, data, "two-step", 400, 1, 4);
  EXPECT_EQ(entry, options.record->toText().substr(0, entry.size()));
  EXPECT_EQ(0u, options.record->numGuesses());
}

std::shared_ptr<const Komvos::TuningCache> reread(const Komvos::TuningCache& cache) {
  return std::make_shared<const Komvos::TuningCache>(Komvos::TuningCache::parse(cache.toText(), "the file"));
}

/// With one column three steps are fastest, with four the standard route. The next run knows both. That vectors have
/// another width is seen some time later, hence so many uses.
TEST(OnlineTuning, ATuningCacheHasADecisionForEachWidth) {
  const int size = Tpetra::getDefaultComm()->getSize();
  DenseHalo data;
  ExchangeOptions options = recorded();
  const NodeAwareImport<> first(data.import, options);
  const std::string narrow = importMany(first, data, "three-step", 400).back();
  const std::string wide = importMany(first, data, "standard", 2500, 1, 4).back();
  EXPECT_EQ("standard", wide);
  EXPECT_EQ(size > 2 ? "three-step" : "standard", narrow);
  ASSERT_EQ(2u, options.record->size());
  EXPECT_EQ(0u, options.record->numGuesses());
  const std::string decided = options.record->toText();

  ExchangeOptions again = recorded();
  again.tuningCache = reread(*options.record);
  const NodeAwareImport<> second(data.import, again);
  EXPECT_TRUE(second.report().fromTuningCache);
  EXPECT_TRUE(second.report().tuningCacheNote.empty()) << second.report().tuningCacheNote;
  EXPECT_EQ(decided, again.record->toText());
  for (const std::string& used : importMany(second, data, "none", 200)) {
    EXPECT_EQ(narrow, used);
  }
  EXPECT_TRUE(second.report().trials.empty()) << "all was decided";
  EXPECT_EQ(wide, importMany(second, data, "standard", 800, 1, 4).back());
  for (const Komvos::HaloTrial& trial : second.report().trials) {
    EXPECT_EQ(wide, toString(trial.route)) << "what won before";
  }
  EXPECT_EQ(narrow, importMany(second, data, "none", 2500).back());
  EXPECT_EQ(decided, again.record->toText());

  again.requireTuningCache = true;
  again.record = std::make_shared<Komvos::TuningCache>();
  const NodeAwareImport<> strict(data.import, again);
  EXPECT_EQ(decided, again.record->toText()) << "nothing is lost where a file is written again";
  for (const int columns : {1, 4, 2}) {
    for (const std::string& used : importMany(strict, data, "two-step", 60, 1, columns)) {
      EXPECT_EQ(narrow, used) << columns << " columns";
    }
  }
}

/// The next run finds out by itself what is fastest for vectors of another width.
TEST(OnlineTuning, ATuningCacheLeavesOtherWidthsOpen) {
  DenseHalo data;
  ExchangeOptions options = recorded();
  const NodeAwareImport<> first(data.import, options);
  const std::string narrow = importMany(first, data, "three-step", 400).back();
  const std::string decided = options.record->toText();
  options.tuningCache = reread(*options.record);
  const NodeAwareImport<> second(data.import, options);
  const std::vector<std::string> used = importMany(second, data, "standard", 600, 1, 4);
  EXPECT_EQ(narrow, used.front());
  EXPECT_EQ("standard", used.back());
  EXPECT_EQ(2u, options.record->size());
  const std::string entry = decided.substr(0, decided.find("\"columns_from\": 1"));
  EXPECT_EQ(entry, options.record->toText().substr(0, entry.size()));
}

/// Everybody owns so many entries, and needs all.
MapPair denseMaps(int perRank) {
  const auto comm = Tpetra::getDefaultComm();
  std::vector<GO> owned, overlapping;
  for (GO k = 0; k < perRank * comm->getSize(); ++k) {
    (k / perRank == comm->getRank() ? owned : overlapping).push_back(k);
  }
  overlapping.insert(overlapping.begin(), owned.begin(), owned.end());
  return {std::to_string(perRank) + " entries a rank", makeMap(owned, comm), makeMap(overlapping, comm)};
}

/// As with the next matrix of a sequence, refined a little.
TEST(OnlineTuning, ASimilarHaloBeginsWithTheWinnerOfTheOther) {
  const int size = Tpetra::getDefaultComm()->getSize();
  ExchangeOptions options = tuned(NodeTopology::uniform(size, 2));
  options.reuseDecisions = true;
  options.pairing = Komvos::Pairing::leastLoaded;  // as in no other test: these decisions are its own
  const auto startsWith = [&](int perRank) {
    const MapPair maps = denseMaps(perRank);
    return NodeAwareImport<>(Import(maps.owned, maps.overlapping), options).report();
  };
  EXPECT_FALSE(startsWith(22).beganAsSimilar) << "nothing was tried yet";
  {
    DenseHalo data(denseMaps(20));
    const NodeAwareImport<> first(data.import, options);
    importMany(first, data, "three-step", 1500);
    ASSERT_EQ(size > 2 ? "three-step" : "standard", first.report().route);
    if (size <= 2) {
      return;  // nothing to combine
    }
  }
  EXPECT_EQ("three-step", startsWith(23).route);
  EXPECT_TRUE(startsWith(17).beganAsSimilar);
  EXPECT_EQ("standard", startsWith(41).route) << "more than twice as much";
  EXPECT_FALSE(startsWith(9).beganAsSimilar);

  DenseHalo other(denseMaps(25));
  const NodeAwareImport<> second(other.import, options);
  EXPECT_FALSE(second.report().decisionReused);
  EXPECT_EQ("three-step", second.report().route);
  importMany(second, other, "standard", 1500);
  EXPECT_FALSE(second.report().trials.empty()) << "a guess is not a decision";
  EXPECT_EQ("standard", second.report().route);
}

}  // namespace
