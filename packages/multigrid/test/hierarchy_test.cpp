// A node-aware MueLu hierarchy gives the numbers of an ordinary one, and sends nothing by itself.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Ifpack2_Chebyshev.hpp>
#include <Ifpack2_Relaxation.hpp>
#include <MueLu_CreateTpetraPreconditioner.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Tpetra_Core.hpp>
#include <Xpetra_CrsMatrixWrap.hpp>
#include <Xpetra_TpetraCrsMatrix.hpp>
#include <Xpetra_TpetraMap.hpp>
#include <Xpetra_TpetraMultiVector.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_LevelSmoothers.hpp"
#include "Komvos_MueLuLevels.hpp"
#include "Komvos_MueLuPreconditioner.hpp"
#include "Komvos_NodeAwareHierarchy.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_RebalancedTransfer.hpp"
#include "support/failing_kokkos.hpp"
#include "support/grid_support.hpp"
#include "support/matrix_support.hpp"
#include "support/mpi_counter.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::ExchangeOptions;
using Komvos::LevelExchange;
using Komvos::NodeAwareHierarchy;
using Komvos::NodeTopology;
using Komvos::RouteChoice;
using Komvos::Tuning;
using TpetraOperator = MueLu::TpetraOperator<double, Komvos::DefaultLocalOrdinal, GO, Komvos::DefaultNode>;

constexpr GO edge = 40;

int worldSize() { return Tpetra::getDefaultComm()->getSize(); }

/// One smoother, as the parameters of MueLu say it.
struct SmootherCase {
  std::string name, type;
  Teuchos::ParameterList parameters;
  bool isSymmetric;  ///< good for CG
};

std::vector<SmootherCase> smoothers() {
  const auto relaxation = [](const std::string& type, int sweeps) {
    Teuchos::ParameterList parameters;
    parameters.set("relaxation: type", type);
    parameters.set("relaxation: sweeps", sweeps);
    parameters.set("relaxation: damping factor", 0.8);
    return parameters;
  };
  Teuchos::ParameterList chebyshev, factors, schwarz;
  chebyshev.set("chebyshev: degree", 3);
  chebyshev.set("chebyshev: ratio eigenvalue", 7.0);
  factors.set("fact: iluk level-of-fill", 0);
  schwarz.set("schwarz: overlap level", 0);
  schwarz.set("subdomain solver name", "ILUT");
  return {{"Chebyshev", "CHEBYSHEV", chebyshev, true},
          {"Jacobi", "RELAXATION", relaxation("Jacobi", 2), true},
          {"Gauss-Seidel", "RELAXATION", relaxation("Gauss-Seidel", 1), false},
          {"symmetric Gauss-Seidel", "RELAXATION", relaxation("Symmetric Gauss-Seidel", 2), true},
          {"ILU", "RILUK", factors, false},
          {"Schwarz without overlap", "SCHWARZ", schwarz, false}};
}

/// How MueLu moves levels to fewer ranks.
enum class Rebalance { none, inTransfers, byImporter };

Teuchos::ParameterList parametersOf(const SmootherCase& smoother, bool implicitTranspose, Rebalance rebalance) {
  Teuchos::ParameterList parameters;
  parameters.set("coarse: max size", 60);
  parameters.set("smoother: type", smoother.type);
  parameters.set("smoother: params", smoother.parameters);
  parameters.set("transpose: use implicit", implicitTranspose);
  if (rebalance != Rebalance::none) {
    parameters.set("repartition: enable", true);
    parameters.set("repartition: partitioner", "zoltan2");
    parameters.set("repartition: start level", 1);
    parameters.set("repartition: min rows per proc", 100);
    parameters.set("repartition: rebalance P and R", rebalance == Rebalance::inTransfers);
  }
  return parameters;
}

/// With threads MueLu's aggregates differ from one hierarchy to the next of the same matrix.
bool hierarchiesAreReproducible() { return Komvos::DefaultNode::execution_space().concurrency() == 1; }

/// For comparisons of two hierarchies: estimates of the largest eigenvalue begin with a random vector.
Teuchos::ParameterList withGivenSpectrum(Teuchos::ParameterList parameters) {
  if (parameters.get<std::string>("smoother: type") == "CHEBYSHEV") {
    parameters.sublist("smoother: params").set("chebyshev: max eigenvalue", 2.0);
  }
  return parameters;
}

/// Nodes of two ranks, all exchanges along a route that combines messages, nothing tuned.
ExchangeOptions threeStepOnPairs() {
  ExchangeOptions options;
  options.topology = std::make_shared<const NodeTopology>(NodeTopology::uniform(worldSize(), 2));
  options.route = RouteChoice::threeStep;
  options.intraNode = Komvos::IntraNode::messages;
  return options;
}

RCP<TpetraOperator> muelu(const RCP<Operator>& preconditioner) {
  return Teuchos::rcp_dynamic_cast<TpetraOperator>(preconditioner, true);
}

/// \param coarse of the coarse solver's exchanges, which are ours from the start. Not tuned unless a test wants that: a
/// new route sends messages that are not persistent, once, in whichever cycle it is taken.
RCP<TpetraOperator> stock(const RCP<Matrix>& matrix, const Teuchos::ParameterList& parameters,
                          const ExchangeOptions& coarse = threeStepOnPairs()) {
  return muelu(
      Komvos::createMueLuPreconditioner(matrix, parameters, {}, gridPoints(matrix->getRowMap(), edge), {}, coarse));
}

/// Largest difference, of the largest entry of `a`.
double differenceOf(const Vector& a, const Vector& b) {
  Vector difference(a, Teuchos::Copy);
  difference.update(-1.0, b, 1.0);
  const std::vector<double> norm = largestEntries(difference), largest = largestEntries(a);
  double most = 0;
  for (std::size_t j = 0; j < norm.size(); ++j) {
    most = norm[j] > 0 ? largerOf(most, norm[j] / largest[j]) : most;
  }
  return most;
}

/// Messages of this rank in one cycle: those of our exchanges, which are persistent, and others.
std::pair<long, long> messagesOf(const Operator& preconditioner, const Vector& b, Vector& x) {
  startCounting();
  preconditioner.apply(b, x);
  const Counts counts = stopCounting();
  const auto ours =
      std::count_if(counts.sent.begin(), counts.sent.end(), [](const auto& one) { return one.persistent; });
  std::pair<long, long> messages{ours, static_cast<long>(counts.sent.size()) - ours};
  return messages;
}

/// Of all ranks.
long sum(long mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return mine;
}

void checkCycles(const SmootherCase& smoother, bool implicitTranspose, Rebalance rebalance,
                 const ExchangeOptions& options) {
  SCOPED_TRACE(smoother.name + (implicitTranspose ? ", implicit transposes" : "") +
               (rebalance == Rebalance::none          ? ""
                : rebalance == Rebalance::inTransfers ? ", rebalanced"
                                                      : ", rebalanced by importers"));
  const auto matrix = grid(edge, smoother.isSymmetric ? 0.0 : 0.2);
  const auto preconditioner = stock(matrix, parametersOf(smoother, implicitTranspose, rebalance));
  for (const std::size_t columns : {1, 3}) {
    Vector b(matrix->getRangeMap(), columns), expected(matrix->getDomainMap(), columns);
    b.randomize();
    preconditioner->apply(b, expected);
    const std::string solver = smoother.isSymmetric ? "CG" : "GMRES";
    Vector x(matrix->getDomainMap(), columns);
    const int iterations = iterationsOf(solver, matrix, preconditioner, b, x);
    EXPECT_GT(iterations, 0);

    const NodeAwareHierarchy ours = Komvos::makeNodeAware(*preconditioner, options);
    EXPECT_EQ(0u, ours.kept.size()) << ours.kept.front();
    Vector y(matrix->getDomainMap(), columns);
    preconditioner->apply(b, y);
    EXPECT_LT(differenceOf(expected, y), 1e-13);
    const auto [persistent, others] = messagesOf(*preconditioner, b, y);
    EXPECT_EQ(0, others);
    EXPECT_TRUE(worldSize() == 1 || sum(persistent) > 0);
    x.putScalar(0.0);
    EXPECT_EQ(iterations, iterationsOf(solver, Komvos::makeNodeAware(matrix, options), preconditioner, b, x));
    EXPECT_LT(relativeResidual(*matrix, x, b), 1e-6);
  }
}

TEST(NodeAwareHierarchy, CyclesAreTheSameAndSendNothingByThemselves) {
  for (const SmootherCase& smoother : smoothers()) {
    for (const bool implicitTranspose : {false, true}) {
      checkCycles(smoother, implicitTranspose, Rebalance::none, threeStepOnPairs());
    }
  }
}

TEST(NodeAwareHierarchy, LevelsOnFewRanksToo) {
  for (const Rebalance rebalance : {Rebalance::inTransfers, Rebalance::byImporter}) {
    for (const bool implicitTranspose : {false, true}) {
      checkCycles(smoothers()[0], implicitTranspose, rebalance, threeStepOnPairs());
    }
    checkCycles(smoothers()[3], false, rebalance, threeStepOnPairs());
    checkCycles(smoothers()[4], false, rebalance, threeStepOnPairs());
  }
}

TEST(NodeAwareHierarchy, NamesAllExchangesAndTellsThoseOfImporters) {
  const auto matrix = grid(edge, 0.0);
  const auto namesOf = [&](Rebalance rebalance) {
    const auto preconditioner = stock(matrix, parametersOf(smoothers()[0], false, rebalance));
    std::multiset<std::string> names;
    for (const LevelExchange& one : Komvos::makeNodeAware(*preconditioner, threeStepOnPairs()).exchanges) {
      EXPECT_EQ(one.name == "Importer", one.matrix.is_null());
      EXPECT_EQ(one.name == "Importer", one.transfer != nullptr);
      EXPECT_TRUE(one.level > 0 || one.name == "A");
      names.insert(one.name);
    }
    return names;
  };
  const std::multiset<std::string> plain = namesOf(Rebalance::none);
  EXPECT_GE(plain.count("A"), 2u);
  EXPECT_EQ(plain.count("A"), plain.count("P")) << "but that of the coarsest level, which is solved";
  EXPECT_EQ(plain.count("P"), plain.count("R"));
  EXPECT_EQ(0u, plain.count("Importer"));
  EXPECT_EQ(0u, namesOf(Rebalance::inTransfers).count("Importer"));
  const long importers = sum(static_cast<long>(namesOf(Rebalance::byImporter).count("Importer")));
  EXPECT_EQ(worldSize() > 1, importers > 0);
}

TEST(NodeAwareHierarchy, TakesNoMoreCollectivesForMoreLevels) {
  const auto matrix = grid(edge, 0.0);
  // What a message costs is measured once in a process.
  Komvos::makeNodeAware(*stock(matrix, parametersOf(smoothers()[0], false, Rebalance::none)));
  for (const SmootherCase& smoother : smoothers()) {
    SCOPED_TRACE(smoother.name);
    Teuchos::ParameterList parameters = parametersOf(smoother, false, Rebalance::none);
    parameters.set("coarse: max size", 20);
    std::vector<std::size_t> exchanges;
    std::vector<long> collectives;
    for (const int levels : {2, 4}) {
      parameters.set("max levels", levels);
      const auto preconditioner = stock(matrix, parameters);
      startCounting();
      exchanges.push_back(Komvos::makeNodeAware(*preconditioner).exchanges.size());
      const Counts counts = stopCounting();
      collectives.push_back(counts.collectives + counts.reductionsStarted + counts.gathers);
    }
    EXPECT_GT(exchanges[1], exchanges[0]);
    EXPECT_EQ(collectives[0], collectives[1]);
  }
}

TEST(NodeAwareHierarchy, IsTunedWhileItIsUsed) {
  const auto matrix = grid(edge, 0.0);
  const auto preconditioner = stock(matrix, parametersOf(smoothers()[0], false, Rebalance::none), {});
  Vector b(matrix->getRangeMap(), 1), expected(matrix->getDomainMap(), 1), x(matrix->getDomainMap(), 1);
  b.randomize();
  preconditioner->apply(b, expected);
  ExchangeOptions options;
  options.topology = std::make_shared<const NodeTopology>(NodeTopology::uniform(worldSize(), 2));
  options.reuseDecisions = false;
  const NodeAwareHierarchy ours = Komvos::makeNodeAware(*preconditioner, options);
  Vector first(matrix->getDomainMap(), 1);
  preconditioner->apply(b, first);
  EXPECT_LT(differenceOf(expected, first), 1e-13);
  for (int cycle = 0; cycle < 60; ++cycle) {
    preconditioner->apply(b, x);
    ASSERT_EQ(0.0, differenceOf(first, x)) << "cycle " << cycle << ": the same bits along every route";
  }
  for (const LevelExchange& one : ours.exchanges) {
    if (one.matrix->importHalo() != nullptr) {
      EXPECT_GE(one.matrix->importHalo()->report().uses, 60) << one.level << " " << one.name;
    }
  }
}

TEST(NodeAwareHierarchy, ASecondCallChangesNothing) {
  const auto matrix = grid(edge, 0.0);
  for (const SmootherCase& smoother : smoothers()) {
    SCOPED_TRACE(smoother.name);
    const auto preconditioner = stock(matrix, parametersOf(smoother, false, Rebalance::byImporter));
    const NodeAwareHierarchy first = Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
    Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
    b.randomize();
    preconditioner->apply(b, x);
    const NodeAwareHierarchy second = Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
    EXPECT_EQ(0u, second.kept.size());
    preconditioner->apply(b, y);
    EXPECT_EQ(0.0, differenceOf(x, y));
    for (const LevelExchange& one : second.exchanges) {
      const auto isSame = [&](const LevelExchange& other) {
        return other.level == one.level && other.name == one.name && other.matrix == one.matrix;
      };
      EXPECT_TRUE(std::any_of(first.exchanges.begin(), first.exchanges.end(), isSame)) << one.level << " " << one.name;
    }
    EXPECT_EQ(first.exchanges.size(), second.exchanges.size());
  }
}

TEST(NodeAwareHierarchy, ASolveByBelosSendsNothingBesideOurExchanges) {
  for (const SmootherCase& smoother : smoothers()) {
    SCOPED_TRACE(smoother.name);
    const auto plain = grid(edge, 0.0);
    const auto matrix = Komvos::makeNodeAware(plain, threeStepOnPairs());
    const auto parameters = withGivenSpectrum(parametersOf(smoother, false, Rebalance::none));
    const auto preconditioner = stock(matrix, parameters);
    Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
    Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
    b.randomize();
    preconditioner->apply(b, x);  // makes what the first cycle makes
    matrix->apply(b, y);
    x.putScalar(0.0);
    y.putScalar(0.0);
    const int expected = iterationsOf("BLOCK GMRES", plain, stock(plain, parameters), b, y);
    startCounting();
    const int iterations = iterationsOf("BLOCK GMRES", matrix, preconditioner, b, x);
    const Counts counts = stopCounting();
    EXPECT_GT(iterations, 0);
    EXPECT_TRUE(!hierarchiesAreReproducible() || iterations == expected);
    EXPECT_TRUE(std::all_of(counts.sent.begin(), counts.sent.end(), [](const auto& one) { return one.persistent; }));
    EXPECT_TRUE(worldSize() == 1 || largest(*matrix->getComm(), static_cast<int>(counts.sent.size())) > 0);
  }
}

/// Another prolongator for corrections, which MueLu prefers to P where a level has one.
TEST(NodeAwareHierarchy, ProlongsByPbarWhereALevelHasOne) {
  const auto matrix = grid(edge, 0.1);
  const auto parameters = withGivenSpectrum(parametersOf(smoothers()[0], false, Rebalance::none));
  const auto ordinary = stock(matrix, parameters), ours = stock(matrix, parameters);
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  ordinary->apply(b, y);
  for (const auto& preconditioner : {ordinary, ours}) {
    const auto hierarchy = preconditioner->GetHierarchy();
    const auto P = Komvos::Impl::MueLuLevels(*hierarchy).matrix(1, "P");
    const auto scaled = rcp(new Matrix(*P, Teuchos::Copy));
    const auto values = scaled->getLocalMatrixHost().values;
    for (std::size_t k = 0; k < values.extent(0); ++k) {
      values(k) *= 0.875;
    }
    using CrsWrap = Xpetra::CrsMatrixWrap<double, Komvos::DefaultLocalOrdinal, GO, Komvos::DefaultNode>;
    using TpetraWrap = Xpetra::TpetraCrsMatrix<double, Komvos::DefaultLocalOrdinal, GO, Komvos::DefaultNode>;
    using Base = Xpetra::CrsMatrix<double, Komvos::DefaultLocalOrdinal, GO, Komvos::DefaultNode>;
    using XpetraMatrix = Xpetra::Matrix<double, Komvos::DefaultLocalOrdinal, GO, Komvos::DefaultNode>;
    hierarchy->GetLevel(1)->Set<RCP<XpetraMatrix>>("Pbar", rcp(new CrsWrap(RCP<Base>(rcp(new TpetraWrap(scaled))))));
  }
  const NodeAwareHierarchy made = Komvos::makeNodeAware(*ours, threeStepOnPairs());
  EXPECT_EQ(1, std::count_if(made.exchanges.begin(), made.exchanges.end(),
                             [](const LevelExchange& one) { return one.level == 1 && one.name == "Pbar"; }));
  ordinary->apply(b, x);
  EXPECT_GT(differenceOf(x, y), 1e-3) << "Pbar is not used";
  ours->apply(b, y);
  EXPECT_TRUE(!hierarchiesAreReproducible() || differenceOf(x, y) < 1e-13);
  EXPECT_EQ(0, messagesOf(*ours, b, y).second);
}

TEST(NodeAwareHierarchy, SharesAMatrixThatIsNodeAwareAlready) {
  const RCP<Matrix> matrix = Komvos::makeNodeAware(grid(edge, 0.0), threeStepOnPairs());
  const auto preconditioner = stock(matrix, parametersOf(smoothers()[0], false, Rebalance::none));
  const NodeAwareHierarchy ours = Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
  EXPECT_EQ(matrix.get(), ours.exchanges.front().matrix.get());
}

/// Which objects the exchanges are.
std::vector<std::tuple<int, std::string, const void*, const void*, const void*>> objectsOf(
    const NodeAwareHierarchy& made) {
  std::vector<std::tuple<int, std::string, const void*, const void*, const void*>> objects;
  for (const LevelExchange& one : made.exchanges) {
    const bool isMatrix = !one.matrix.is_null();
    objects.emplace_back(one.level, one.name, isMatrix ? one.matrix->importHalo() : nullptr,
                         isMatrix ? one.matrix->exportHalo() : nullptr, one.transfer.get());
  }
  return objects;
}
using Objects = decltype(objectsOf(NodeAwareHierarchy()));

/// makeNodeAware() after a set-up that has kept all maps.
NodeAwareHierarchy makeNodeAwareAgain(TpetraOperator& preconditioner, const ExchangeOptions& options,
                                      const Objects& before) {
  startCounting();
  NodeAwareHierarchy again = Komvos::makeNodeAware(preconditioner, options);
  const Counts counts = stopCounting();
  EXPECT_EQ(before, objectsOf(again));
  EXPECT_EQ(0u, counts.sent.size());
  EXPECT_EQ(0, counts.receivesPosted);
  EXPECT_EQ(0, counts.reductionsStarted);
  EXPECT_EQ(0, counts.gathers);
  return again;
}

/// A hierarchy on the same graph with other values, set up again by MueLu as far as `reuse: type` says.
TEST(NodeAwareHierarchy, IsReusedAsAnOrdinaryOneIs) {
  for (const char* const reuse : {"full", "RP", "tP", "S"}) {
    if (std::string(reuse) == "S" && !hierarchiesAreReproducible()) {
      continue;  // MueLu 13.2 itself then hangs, now and then, on several ranks
    }
    for (const SmootherCase& smoother : smoothers()) {
      SCOPED_TRACE(std::string(reuse) + ", " + smoother.name);
      Teuchos::ParameterList parameters = withGivenSpectrum(parametersOf(smoother, false, Rebalance::none));
      parameters.set("reuse: type", reuse);
      parameters.set("coarse: type", "RELAXATION");
      const auto matrix = grid(edge, 0.1), next = grid(edge, 0.15);
      const auto ordinary = stock(matrix, parameters), ours = stock(matrix, parameters);
      Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
      b.randomize();
      ordinary->apply(b, x);  // MueLu cannot set up again what was never used
      const Objects first = objectsOf(Komvos::makeNodeAware(*ours, threeStepOnPairs()));
      ours->apply(b, y);
      MueLu::ReuseTpetraPreconditioner(next, *ordinary);
      MueLu::ReuseTpetraPreconditioner(next, *ours);
      Vector before(matrix->getDomainMap(), 1);
      ours->apply(b, before);  // with what MueLu has made anew
      const NodeAwareHierarchy again = makeNodeAwareAgain(*ours, threeStepOnPairs(), first);
      EXPECT_EQ(0u, again.kept.size());
      ordinary->apply(b, x);
      ours->apply(b, y);
      EXPECT_LT(differenceOf(before, y), 1e-13);
      EXPECT_TRUE(!hierarchiesAreReproducible() || differenceOf(x, y) < 1e-13);
      EXPECT_EQ(0, messagesOf(*ours, b, y).second);
    }
  }
}

TEST(NodeAwareHierarchy, IsReusedWhereAnImporterCarriesVectorsToFewerRanks) {
  for (const char* const reuse : {"RAP", "full", "RP", "tP"}) {
    SCOPED_TRACE(reuse);
    Teuchos::ParameterList parameters = withGivenSpectrum(parametersOf(smoothers()[0], false, Rebalance::byImporter));
    parameters.set("reuse: type", reuse);
    parameters.set("coarse: type", "RELAXATION");
    const auto matrix = grid(edge, 0.1), next = grid(edge, 0.15);
    const auto ordinary = stock(matrix, parameters), ours = stock(matrix, parameters);
    Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
    b.randomize();
    ordinary->apply(b, x);
    const auto importersOf = [](const NodeAwareHierarchy& made) {
      return std::count_if(made.exchanges.begin(), made.exchanges.end(),
                           [](const LevelExchange& one) { return one.name == "Importer"; });
    };
    NodeAwareHierarchy made = Komvos::makeNodeAware(*ours, threeStepOnPairs());
    const auto importers = importersOf(made);
    const Objects first = objectsOf(made);
    made = {};
    ours->apply(b, y);
    EXPECT_TRUE(!hierarchiesAreReproducible() || differenceOf(x, y) < 1e-13);
    for (const auto& values : {next, matrix, next}) {
      MueLu::ReuseTpetraPreconditioner(values, *ordinary);
      MueLu::ReuseTpetraPreconditioner(values, *ours);
      EXPECT_EQ(importers, importersOf(makeNodeAwareAgain(*ours, threeStepOnPairs(), first)));
      ordinary->apply(b, x);
      ours->apply(b, y);
      EXPECT_TRUE(!hierarchiesAreReproducible() || differenceOf(x, y) < 1e-13);
      EXPECT_EQ(0, messagesOf(*ours, b, y).second);
    }
  }
}

Teuchos::ParameterList parametersToReuse() {
  Teuchos::ParameterList parameters = parametersOf(smoothers()[1], false, Rebalance::none);
  parameters.set("reuse: type", "RP");
  parameters.set("coarse: type", "RELAXATION");
  return parameters;
}

TEST(NodeAwareHierarchy, GoesOnTuningWhenItIsReused) {
  const auto matrix = grid(edge, 0.1), next = grid(edge, 0.15);
  const auto preconditioner = stock(matrix, parametersToReuse());
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  ExchangeOptions options = threeStepOnPairs();
  options.route = RouteChoice::automatic;
  options.intraNode = Komvos::IntraNode::automatic;
  options.tuning = Tuning::online;
  NodeAwareHierarchy made = Komvos::makeNodeAware(*preconditioner, options);
  const Objects first = objectsOf(made);
  long uses = 0;
  for (int step = 0; step < 5; ++step) {
    for (int cycle = 0; cycle < 7; ++cycle) {
      preconditioner->apply(b, x);
    }
    MueLu::ReuseTpetraPreconditioner(step % 2 == 0 ? next : matrix, *preconditioner);
    preconditioner->apply(b, x);
    made = makeNodeAwareAgain(*preconditioner, options, first);
    preconditioner->apply(b, y);
    EXPECT_LT(differenceOf(x, y), 1e-13);
    if (const auto* const halo = made.exchanges.front().matrix->importHalo()) {
      EXPECT_GT(halo->report().uses, uses + 6);
      uses = halo->report().uses;
    }
  }
}

TEST(NodeAwareHierarchy, PlansAnewWithOtherOptionsOrIfDecisionsAreNotReused) {
  const auto matrix = grid(edge, 0.1), next = grid(edge, 0.15);
  const auto preconditioner = stock(matrix, parametersToReuse());
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  ExchangeOptions standard = threeStepOnPairs();
  standard.route = RouteChoice::standard;
  ExchangeOptions forgetful = standard;
  forgetful.reuseDecisions = false;
  NodeAwareHierarchy before = Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
  preconditioner->apply(b, x);
  for (const ExchangeOptions& options : {standard, forgetful, forgetful}) {
    MueLu::ReuseTpetraPreconditioner(next, *preconditioner);
    preconditioner->apply(b, x);
    NodeAwareHierarchy again = Komvos::makeNodeAware(*preconditioner, options);
    EXPECT_EQ(before.exchanges.size(), again.exchanges.size());
    EXPECT_TRUE(worldSize() == 1 || objectsOf(before) != objectsOf(again));
    preconditioner->apply(b, y);
    EXPECT_LT(differenceOf(x, y), 1e-13);
    before = std::move(again);
  }
}

TEST(NodeAwareHierarchy, PlansAnewWhereOneRankNeedsOtherGhosts) {
  const auto matrix = grid(edge, 0.1);
  const auto next = rcp(new Matrix(matrix->getRowMap(), 6));
  for (std::size_t k = 0; k < Komvos::Impl::localLength(*matrix->getRowMap()); ++k) {
    const GO row = matrix->getRowMap()->getGlobalElement(static_cast<int>(k));
    Matrix::nonconst_global_inds_host_view_type columns("columns", 5);
    Matrix::nonconst_values_host_view_type values("values", 5);
    std::size_t count = 0;
    matrix->getGlobalRowCopy(row, columns, values, count);
    next->insertGlobalValues(row, static_cast<int>(count), values.data(), columns.data());
  }
  if (matrix->getRowMap()->isNodeGlobalElement(edge * edge - 1)) {  // one row of one rank
    const GO column = 0;
    const double value = -0.01;
    next->insertGlobalValues(edge * edge - 1, 1, &value, &column);
  }
  next->fillComplete();
  Teuchos::ParameterList parameters = withGivenSpectrum(parametersOf(smoothers()[0], false, Rebalance::none));
  parameters.set("reuse: type", "full");
  parameters.set("coarse: type", "RELAXATION");
  const auto ordinary = stock(matrix, parameters), ours = stock(matrix, parameters);
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  ordinary->apply(b, x);
  const NodeAwareHierarchy first = Komvos::makeNodeAware(*ours, threeStepOnPairs());
  ours->apply(b, y);
  MueLu::ReuseTpetraPreconditioner(next, *ordinary);
  MueLu::ReuseTpetraPreconditioner(next, *ours);
  const NodeAwareHierarchy again = Komvos::makeNodeAware(*ours, threeStepOnPairs());
  // Two ranks have all columns already.
  EXPECT_TRUE(worldSize() < 3 || objectsOf(first) != objectsOf(again));
  ordinary->apply(b, x);
  ours->apply(b, y);
  EXPECT_TRUE(!hierarchiesAreReproducible() || differenceOf(x, y) < 1e-13);
  EXPECT_EQ(0, messagesOf(*ours, b, y).second);
}

TEST(NodeAwareHierarchy, NobodyWaitsWhereARouteFitsTheFinestLevelOnly) {
  const auto matrix = grid(edge, 0.0);
  ExchangeOptions options;
  options.route = Komvos::parseRoute("axis:1," + std::to_string(worldSize()) + ",1,1");
  const auto preconditioner = stock(matrix, parametersOf(smoothers()[0], false, Rebalance::byImporter));
  long refused = 0;
  try {
    Komvos::makeNodeAware(*preconditioner, options);
  } catch (const Komvos::Error& error) {
    EXPECT_NE(std::string::npos, std::string(error.what()).find("axis")) << error.what();
    refused = 1;
  }
  const long ranks = sum(refused);
  EXPECT_TRUE(ranks == 0 || ranks == worldSize()) << ranks;
  if (worldSize() >= 4) {  // the next level has fewer ranks
    EXPECT_EQ(worldSize(), ranks);
  }
}

// The communicator of a level that has fewer ranks is freed with the last object on it.
TEST(NodeAwareHierarchy, ARankThatDropsItWaitsForNobody) {
  RCP<Matrix> matrix = grid(edge, 0.0);
  auto preconditioner = stock(matrix, parametersOf(smoothers()[0], false, Rebalance::byImporter));
  NodeAwareHierarchy made = Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
  {
    Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
    b.randomize();
    preconditioner->apply(b, x);
  }
  const bool hasLevels = std::any_of(made.exchanges.begin(), made.exchanges.end(),
                                     [](const LevelExchange& one) { return one.name == "A" && one.level > 0; });
  const int mine = matrix->getComm()->getRank();
  int first = hasLevels ? mine : worldSize();
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  const auto drop = [&] {
    made = {};
    preconditioner = Teuchos::null;
    matrix = Teuchos::null;
  };
  if (mine == first) {
    drop();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  drop();
}

TEST(RebalancedTransfer, LeavesNobodyWaitingWhereOneRankHasNoMemory) {
  const RCP<Matrix> matrix = Komvos::makeNodeAware(grid(edge, 0.2), threeStepOnPairs());
  const auto others = rowsOf(static_cast<GO>(matrix->getGlobalNumRows()), true, false, 41, matrix->getComm());
  const auto exchange = std::make_shared<const Komvos::NodeAwareImport<>>(
      Tpetra::Import<>(matrix->getDomainMap(), others), threeStepOnPairs());
  const Tpetra::Import<> import(matrix->getDomainMap(), others);
  for (const bool restricts : {false, true}) {
    const Komvos::Impl::RebalancedTransfer transfer(matrix, exchange, restricts);
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      for (const double alpha : {1.0, 2.0}) {
        SCOPED_TRACE(std::string(restricts ? "R" : "P") + (mode == Teuchos::TRANS ? ", transposed" : ""));
        const bool forward = mode == Teuchos::NO_TRANS;
        const auto from = forward ? transfer.getDomainMap() : transfer.getRangeMap();
        const auto to = forward ? transfer.getRangeMap() : transfer.getDomainMap();
        std::size_t columns = 3;
        RCP<Vector> x, y;
        const auto renew = [&] {  // other vectors each time
          columns = 5 - columns;
          x = rcp(new Vector(from, columns));
          y = rcp(new Vector(to, columns));
          x->putScalar(1.0);
        };
        const auto apply = [&] { transfer.apply(*x, *y, mode, alpha); };
        const auto check = [&](Thrown) {
          apply();
          Vector middle(matrix->getDomainMap(), columns), expected(to, columns);
          if (restricts == forward) {
            matrix->apply(*x, middle, mode);
            expected.doImport(middle, import, Tpetra::INSERT);
          } else {
            middle.doExport(*x, import, Tpetra::INSERT);
            matrix->apply(middle, expected, mode);
          }
          expected.scale(alpha);
          EXPECT_LT(differenceOf(expected, *y), 1e-13);
          renew();
        };
        renew();
        EXPECT_GT(failInTurn(worldSize() / 2, "", apply, check), 0);
      }
    }
  }
}

/// What a cycle calls on a level, where one rank has no memory: nobody waits, and that rank's result is NaN.
TEST(NodeAwareHierarchy, NobodyWaitsInACycleForAMatrixOrATransferThatFails) {
  using XpetraOperator = Xpetra::Operator<double, Komvos::DefaultLocalOrdinal, GO, Komvos::DefaultNode>;
  const auto matrix = grid(edge, 0.2);
  const int guilty = worldSize() / 2;
  for (const Rebalance rebalance : {Rebalance::none, Rebalance::byImporter}) {
    const auto preconditioner = stock(matrix, parametersOf(smoothers()[0], false, rebalance));
    Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
    const auto& hierarchy = preconditioner->GetHierarchy();
    for (const auto& [level, name] : {std::pair(0, "A"), std::pair(1, "P"), std::pair(1, "R")}) {
      if (!hierarchy->GetLevel(level)->IsAvailable(name)) {
        continue;  // rebalancing has left this rank without a part of it, or there is one level
      }
      SCOPED_TRACE(std::string(name) + (rebalance == Rebalance::none ? "" : ", rebalanced"));
      const auto op = hierarchy->GetLevel(level)->Get<RCP<XpetraOperator>>(name);
      for (const bool isResidual : {false, true}) {
        if (isResidual && std::string(name) != "A") {
          continue;
        }
        const std::size_t columns = isResidual ? 5 : 3;  // that it has no vectors for
        const auto tpetraX = rcp(new Vector(Xpetra::toTpetra(op->getDomainMap()), columns));
        const auto tpetraB = rcp(new Vector(Xpetra::toTpetra(op->getRangeMap()), columns));
        const auto tpetraY = rcp(new Vector(tpetraB->getMap(), columns)), expected = rcp(new Vector(*tpetraY));
        const auto x = Xpetra::toXpetra(tpetraX), b = Xpetra::toXpetra(tpetraB), y = Xpetra::toXpetra(tpetraY);
        tpetraX->randomize();
        tpetraB->randomize();
        const auto run = [&, &op = op] { isResidual ? op->residual(*x, *b, *y) : op->apply(*x, *y); };
        if (worldSize() == 1) {
          const FailingKokkos failing(0);
          EXPECT_THROW(run(), KokkosFailure);
          continue;
        }
        if (matrix->getComm()->getRank() == guilty) {
          const FailingKokkos failing(0);
          EXPECT_NO_THROW(run());
        } else {
          EXPECT_NO_THROW(run());
        }
        if (matrix->getComm()->getRank() == guilty && tpetraY->getLocalLength() > 0) {
          EXPECT_TRUE(std::isnan(tpetraY->getLocalViewHost(Tpetra::Access::ReadOnly)(0, 0)));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        run();
        std::vector<double> norms(columns);
        tpetraY->norm2(Teuchos::ArrayView<double>(norms));
        EXPECT_TRUE(std::all_of(norms.begin(), norms.end(), [](double norm) { return std::isfinite(norm); }));
      }
    }
  }
}

/// An error on one rank is one on all, and the hierarchy still is what it was. Where memory lacks for the vectors of a
/// cycle alone, there is none, and the next cycle makes them.
TEST(NodeAwareHierarchy, IsLeftAsItWasWhereOneRankHasNoMemory) {
  const auto matrix = grid(edge, 0.2);
  for (const std::size_t number : {1, 3}) {  // Jacobi and symmetric Gauss-Seidel of two sweeps, made again for one
    Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
    b.randomize();
    RCP<TpetraOperator> preconditioner;
    const auto renew = [&] {
      preconditioner = stock(matrix, parametersOf(smoothers()[number], false, Rebalance::byImporter));
      preconditioner->apply(b, x);
    };
    for (const int guilty : {0, worldSize() - 1}) {
      SCOPED_TRACE(guilty);
      int errors = 0;
      renew();
      const int failures = failInTurn(
          guilty, "", [&] { Komvos::makeNodeAware(*preconditioner, threeStepOnPairs()); },
          [&](Thrown thrown) {
            const bool isError = expectErrorOnAllOrNone(thrown);
            errors += isError ? 1 : 0;
            preconditioner->apply(b, y);
            EXPECT_LT(differenceOf(x, y), 1e-13);
            if (!isError) {  // it is node-aware now
              renew();
            }
          });
      EXPECT_GT(errors, 0);
      EXPECT_GE(failures, errors + (worldSize() > 1 ? 1 : 0)) << "failures that are no errors, where vectors travel";
    }
  }
}

/// A smoother of MueLu's as makeNodeAware() finds it.
Komvos::Impl::MueLuSmoother ordinarySmoother(const RCP<const Matrix>& matrix, const std::string& type,
                                             const Teuchos::ParameterList& parameters) {
  using RowMatrix = Tpetra::RowMatrix<>;
  RCP<Komvos::Impl::Ifpack2Preconditioner> smoother;
  if (type == "CHEBYSHEV") {
    smoother = rcp(new Ifpack2::Chebyshev<RowMatrix>(matrix));
  } else {
    smoother = rcp(new Ifpack2::Relaxation<RowMatrix>(matrix));
  }
  smoother->setParameters(parameters);
  smoother->initialize();
  smoother->compute();
  return {smoother.get(), false, type, 0, smoother, parameters, matrix};
}

TEST(LevelSmoother, LeavesNobodyWaitingWhereOneRankHasNoMemory) {
  const RCP<Komvos::NodeAwareCrsMatrix<>> matrix = Komvos::makeNodeAware(grid(edge, 0.2), threeStepOnPairs());
  Teuchos::ParameterList jacobi, chebyshev;
  jacobi.set("relaxation: type", "Jacobi");
  jacobi.set("relaxation: sweeps", 3);
  chebyshev.set("chebyshev: degree", 3);
  chebyshev.set("chebyshev: max eigenvalue", 2.0);
  for (const auto& [type, parameters] :
       {std::make_pair("RELAXATION", jacobi), std::make_pair("CHEBYSHEV", chebyshev)}) {
    const auto replaced = Komvos::Impl::replaceSmoother(ordinarySmoother(matrix, type, parameters), matrix);
    ASSERT_TRUE(replaced.smoother) << replaced.whyKept;
    const auto expected = Komvos::Impl::replaceSmoother(ordinarySmoother(matrix, type, parameters), matrix).smoother;
    for (const bool zeroGuess : {true, false}) {
      std::size_t columns = 2;
      for (int passes = 0, failed = 1; failed != 0; ++passes, columns = 5 - columns) {  // other vectors each time
        SCOPED_TRACE(std::string(type) + ", " + std::to_string(passes) + (zeroGuess ? ", from 0" : ""));
        Vector b(matrix->getRangeMap(), columns), x(matrix->getDomainMap(), columns), y(x.getMap(), columns);
        b.randomize();
        failed = 0;
        if (matrix->getComm()->getRank() == worldSize() / 2) {
          const FailingKokkos failing(passes);
          try {
            replaced.smoother->apply(x, b, zeroGuess);
          } catch (const std::exception&) {
            failed = 1;
          }
        } else {
          try {
            replaced.smoother->apply(x, b, zeroGuess);
          } catch (const std::exception&) {  // who would have got its values
          }
        }
        failed = largest(*matrix->getComm(), failed);
        EXPECT_TRUE(failed != 0 || passes > 0) << "nothing was refused";
        x.putScalar(0.5);
        y.putScalar(0.5);
        replaced.smoother->apply(x, b, zeroGuess);
        expected->apply(y, b, zeroGuess);
        EXPECT_LT(differenceOf(y, x), 1e-13);
      }
    }
  }
}

/// Throws on one rank, as one without memory does.
class FailsOnOneRank : public Komvos::Impl::LevelSmoother {
 public:
  explicit FailsOnOneRank(int guilty) : guilty_(guilty) {}
  void apply(Vector& x, const Vector&, bool zeroGuess) const override {
    if (Tpetra::getDefaultComm()->getRank() == guilty_) {
      throw std::bad_alloc();
    }
    if (zeroGuess) {
      x.putScalar(0.0);
    }
  }
  std::size_t complexity() const override { return 0; }

 private:
  int guilty_;
};

TEST(LevelSmoother, NobodyWaitsInACycleForOneThatFails) {
  const auto matrix = grid(edge, 0.0);
  SmootherCase jacobi{"Jacobi", "RELAXATION", {}, false};
  const auto preconditioner = stock(matrix, parametersOf(jacobi, false, Rebalance::none));
  Komvos::Impl::MueLuLevels levels(*preconditioner->GetHierarchy());
  for (const int guilty : {0, worldSize() - 1}) {
    levels.setSmoother(0, "PreSmoother", std::make_shared<FailsOnOneRank>(guilty))();
    Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
    b.randomize();
    if (worldSize() == 1) {
      EXPECT_THROW(preconditioner->apply(b, x), std::bad_alloc);
    } else {
      preconditioner->apply(b, x);
      const bool isHere = matrix->getComm()->getRank() == guilty;
      const int rows = largest(*matrix->getComm(), isHere ? static_cast<int>(x.getLocalLength()) : 0);
      EXPECT_EQ(rows > 0, std::isnan(x.getVector(0)->norm2())) << "all ranks have to see it";
    }
  }
}

TEST(NodeAwareHierarchy, KeepsWhatItDoesNotKnowAndSaysSo) {
  const auto matrix = grid(edge, 0.0);
  SmootherCase schwarz{"Schwarz", "SCHWARZ", {}, false};
  schwarz.parameters.set("schwarz: overlap level", 1);
  schwarz.parameters.set("subdomain solver name", "RILUK");
  const Teuchos::ParameterList parameters = parametersOf(schwarz, false, Rebalance::none);
  const auto preconditioner = stock(matrix, parameters);
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  preconditioner->apply(b, x);
  const NodeAwareHierarchy ours = Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
  preconditioner->apply(b, y);
  EXPECT_LT(differenceOf(x, y), 1e-13);
  if (worldSize() > 1) {
    ASSERT_FALSE(ours.kept.empty());
    EXPECT_EQ(0u, ours.kept.front().find("level 0, PreSmoother: ")) << ours.kept.front();
    EXPECT_NE(std::string::npos, ours.kept.front().find("overlaps")) << ours.kept.front();
  }
}

TEST(NodeAwareHierarchy, SaysThatACoarseSolverOfMueLusExchangesByItself) {
  const auto matrix = grid(edge, 0.0);
  Teuchos::ParameterList parameters = parametersOf(smoothers()[0], false, Rebalance::none);
  parameters.set("verbosity", "none");
  const auto preconditioner = MueLu::CreateTpetraPreconditioner(RCP<Operator>(matrix), parameters);  // by Amesos2
  const NodeAwareHierarchy ours = Komvos::makeNodeAware(*preconditioner, threeStepOnPairs());
  const std::string coarsest = "level " + std::to_string(ours.exchanges.back().level) + ", PreSmoother: ";
  ASSERT_EQ(1u, ours.kept.size());
  EXPECT_EQ(0u, ours.kept.front().find(coarsest)) << ours.kept.front();
}

TEST(NodeAwareHierarchy, OptionsThatCannotBeUsedAreAnErrorOnAllRanksAndItStillWorks) {
  const auto matrix = grid(edge, 0.0);
  const auto preconditioner = stock(matrix, parametersOf(smoothers()[0], false, Rebalance::inTransfers));
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  preconditioner->apply(b, x);
  ExchangeOptions options = threeStepOnPairs();
  options.route = Komvos::parseRoute("axis:" + std::to_string(worldSize() + 1) + ",1,1,1");
  if (worldSize() > 1) {  // else there is nothing to exchange
    EXPECT_THROW(Komvos::makeNodeAware(*preconditioner, options), Komvos::BadInput);
  }
  preconditioner->apply(b, y);
  EXPECT_LT(differenceOf(x, y), 1e-13);
}

/// The way in for users: entries of MueLu's own parameter list, or of its XML file.
TEST(MueLuParameters, SayThatAHierarchyIsNodeAware) {
  const auto matrix = grid(edge, 0.0);
  const auto points = gridPoints(matrix->getRowMap(), edge);
  Teuchos::ParameterList parameters = withGivenSpectrum(parametersOf(smoothers()[0], false, Rebalance::none));
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  const auto ordinary = stock(matrix, parameters);
  ordinary->apply(b, x);
  EXPECT_TRUE(worldSize() == 1 || sum(messagesOf(*ordinary, b, y).second) > 0) << "Tpetra's, without the entry";

  parameters.set("use node-aware", true);
  parameters.set("node-aware: route", "three-step");
  parameters.set("node-aware: on node", "messages");
  parameters.set("node-aware: tuning", "off");
  NodeAwareHierarchy made;
  const auto ours = Komvos::createMueLuPreconditioner(matrix, parameters, {}, points, {}, {}, &made);
  ours->apply(b, y);
  EXPECT_TRUE(!hierarchiesAreReproducible() || differenceOf(x, y) < 1e-13);
  EXPECT_EQ(0, messagesOf(*ours, b, y).second);
  ASSERT_FALSE(made.exchanges.empty());
  const auto* const halo = made.exchanges.front().matrix->importHalo();
  EXPECT_TRUE(halo == nullptr || halo->report().route == "three-step");

  parameters.set("use node-aware", 1);
  EXPECT_THROW(Komvos::createMueLuPreconditioner(matrix, parameters), Komvos::BadInput);
  parameters.set("use node-aware", true);
  parameters.set("node-aware: route", "four-step");
  EXPECT_THROW(Komvos::createMueLuPreconditioner(matrix, parameters), Komvos::BadInput);
}

/// With Komvos' coarse solver, which factors the new coarsest matrix.
TEST(MueLuParameters, HoldWhenAPreconditionerIsReused) {
  for (const char* const reuse : {"none", "S", "tP", "RP"}) {
    if (std::string(reuse) == "S" && !hierarchiesAreReproducible()) {
      continue;  // as above
    }
    int ordinary = 0;
    for (const bool nodeAware : {false, true}) {
      SCOPED_TRACE(std::string(reuse) + (nodeAware ? ", node-aware" : ""));
      Teuchos::ParameterList parameters = withGivenSpectrum(parametersOf(smoothers()[0], false, Rebalance::none));
      parameters.set("reuse: type", reuse);
      parameters.set("use node-aware", nodeAware);
      const auto matrix = grid(edge, 0.0), next = grid(edge, 0.3);
      const auto points = gridPoints(matrix->getRowMap(), edge);
      const auto preconditioner = Komvos::createMueLuPreconditioner(matrix, parameters, {}, points);
      Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
      b.putScalar(1.0);
      EXPECT_GT(iterationsOf("CG", matrix, preconditioner, b, x), 0);
      const NodeAwareHierarchy made = Komvos::reuseMueLuPreconditioner(next, *preconditioner);
      EXPECT_EQ(nodeAware, !made.exchanges.empty());
      x.putScalar(0.0);
      const int iterations = iterationsOf("GMRES", next, preconditioner, b, x);
      EXPECT_GT(iterations, 0);
      EXPECT_LE(iterations, 30);
      EXPECT_TRUE(!nodeAware || !hierarchiesAreReproducible() || iterations == ordinary)
          << iterations << " instead of " << ordinary;
      ordinary = iterations;
      EXPECT_LT(relativeResidual(*next, x, b), 1e-7);
      EXPECT_TRUE(!nodeAware || messagesOf(*preconditioner, b, x).second == 0);
    }
  }
  const auto matrix = grid(edge, 0.0);
  Teuchos::ParameterList quiet;
  quiet.set("verbosity", "none");
  const auto stranger = MueLu::CreateTpetraPreconditioner(RCP<Operator>(matrix), quiet);
  EXPECT_THROW(Komvos::reuseMueLuPreconditioner(matrix, *stranger), Komvos::BadInput);
}

TEST(MueLuParameters, SayWhichRanksSolveTheCoarsestLevel) {
  const auto matrix = grid(edge, 0.0);
  Vector b(matrix->getRangeMap(), 1), expected(matrix->getDomainMap(), 1), x(matrix->getDomainMap(), 1);
  b.randomize();
  Teuchos::ParameterList parameters = withGivenSpectrum(parametersOf(smoothers()[0], false, Rebalance::none));
  stock(matrix, parameters)->apply(b, expected);
  for (const char* const solvers : {"auto", "one", "each node"}) {
    parameters.set("node-aware: coarse solvers", std::string(solvers));
    stock(matrix, parameters)->apply(b, x);
    if (hierarchiesAreReproducible()) {
      EXPECT_LT(differenceOf(expected, x), 1e-13) << solvers;
    }
  }
  parameters.set("node-aware: coarse solvers", std::string("some"));
  EXPECT_THROW(stock(matrix, parameters), Komvos::BadInput);
  for (const int solvers : {0, -1}) {
    parameters.set("node-aware: coarse solvers", solvers);
    EXPECT_THROW(stock(matrix, parameters), Komvos::BadInput) << solvers;
  }
  parameters.set("node-aware: coarse solvers", 2.0);
  EXPECT_THROW(stock(matrix, parameters), Komvos::BadInput);
  parameters.set("node-aware: coarse solvers", std::string("one"));
  parameters.set("coarse: type", "RELAXATION");
  EXPECT_THROW(Komvos::createMueLuPreconditioner(matrix, parameters), Komvos::BadInput) << "not of our coarse solver";
}

TEST(MueLuParameters, ComeFromXmlToo) {
  const std::string file = ownFile("hierarchy_test");
  const auto comm = Tpetra::getDefaultComm();
  if (comm->getRank() == 0) {
    std::ofstream(file) << R"(<ParameterList name="MueLu">
  <Parameter name="coarse: max size" type="int" value="60"/>
  <Parameter name="use node-aware" type="bool" value="true"/>
  <Parameter name="node-aware: route" type="string" value="two-step"/>
</ParameterList>
)";
  }
  comm->barrier();
  const auto matrix = grid(edge, 0.0);
  NodeAwareHierarchy made;
  const auto ours = Komvos::createMueLuPreconditioner(matrix, file, {}, {}, {}, &made);
  ASSERT_FALSE(made.exchanges.empty());
  const auto* const halo = made.exchanges.front().matrix->importHalo();
  EXPECT_TRUE(halo == nullptr || halo->report().route == "two-step");
  comm->barrier();
  if (comm->getRank() == 0) {
    std::ofstream(file) << "<ParameterList";
  }
  comm->barrier();
  commonError("no XML", [&] { Komvos::createMueLuPreconditioner(matrix, file); });
  comm->barrier();
  if (comm->getRank() == 0) {
    std::remove(file.c_str());
  }
  comm->barrier();
  commonError("a directory", [&] { Komvos::createMueLuPreconditioner(matrix, "."); });
  const std::string error = commonError("no file", [&] { Komvos::createMueLuPreconditioner(matrix, file); });
  EXPECT_NE(std::string::npos, error.find(file)) << error;
}

TEST(NodeAwareHierarchy, IsNoneWithoutAHierarchy) {
  TpetraOperator none(RCP<MueLu::Hierarchy<double, Komvos::DefaultLocalOrdinal, GO, Komvos::DefaultNode>>{});
  EXPECT_THROW(Komvos::makeNodeAware(none), Komvos::BadInput);
}

}  // namespace
