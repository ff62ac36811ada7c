// NodeAwareImport against Tpetra's doImport and doExport.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <Tpetra_Distributor.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_GpuAwareMpi.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_Settings.hpp"
#include "support/mpi_support.hpp"
#include "support/tpetra_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::BadInput;
using Komvos::ExchangeOptions;
using Komvos::IntraNode;
using Komvos::NodeAwareImport;
using Komvos::NodeTopology;
using Komvos::PlanMismatch;
using Komvos::RouteChoice;
using Import = Tpetra::Import<>;
using Export = Tpetra::Export<>;

/// Multivectors over the same map, one for Tpetra and one for Komvos, with the same entries.
template <class Scalar>
struct Twins {
  MultiVector<Scalar> theirs, ours;
  Twins(const RCP<const Map>& map, std::size_t columns, unsigned seed) : theirs(map, columns), ours(map, columns) {
    fill(theirs, seed);
    Tpetra::deep_copy(ours, theirs);
  }
};

const std::vector<std::size_t>& columnCounts() {
  static const std::vector<std::size_t> counts{1, 3, 4, 7};
  return counts;
}

/// A halo along a route, and by what on the node.
struct Method {
  RouteChoice route;
  IntraNode onNode;
};

/// The two routes everybody uses, and shared memory.
const std::vector<Method>& someMethods() {
  static const std::vector<Method> some{{RouteChoice::standard, IntraNode::messages},
                                        {RouteChoice::threeStep, IntraNode::messages},
                                        {RouteChoice::threeStep, IntraNode::sharedMemory}};
  return some;
}

std::vector<Method> oneInTurn(const NodeTopology&, std::size_t turn) {
  return {someMethods()[turn % someMethods().size()]};
}

/// Every route, by messages and some by shared memory.
std::vector<Method> allMethods(const NodeTopology& topology, std::size_t) {
  using Komvos::AxisFactors;
  std::vector<Method> methods;
  for (const RouteChoice& route :
       {RouteChoice::standard, RouteChoice::twoStep, RouteChoice::threeStep, RouteChoice::split, RouteChoice::axis}) {
    methods.push_back({route, IntraNode::messages});
  }
  methods[3].route.splitValues = 3;
  const std::vector<AxisFactors> grids = AxisFactors::all(topology.numRanks());
  RouteChoice axis = RouteChoice::axis;
  axis.factors = grids[grids.size() / 2];
  methods.push_back({axis, IntraNode::sharedMemory});
  methods.push_back({RouteChoice::standard, IntraNode::sharedMemory});
  methods.push_back({RouteChoice::threeStep, IntraNode::sharedMemory});
  methods.push_back({RouteChoice::sockets, IntraNode::messages});
  return methods;
}

/// Calls work(maps, options) for every kind of maps, topology and method.
void onHalos(const TeuchosComm& comm, std::vector<Method> (*methods)(const NodeTopology&, std::size_t turn),
             const std::function<void(const MapPair&, const ExchangeOptions&)>& work) {
  unsigned seed = 0;
  std::size_t turn = 0;
  for (const MapKind& kind : mapKinds()) {
    const MapPair maps = makeMaps(kind, ++seed, comm);
    for (const NamedTopology& where : topologiesFor(comm->getSize())) {
      for (const Method& method : methods(where.topology, ++turn)) {
        SCOPED_TRACE(maps.name + ", " + where.name + ", " + toString(method.route) + ", " + toString(method.onNode));
        auto options = optionsFor(where, method.route, method.onNode);
        options.sockets = std::make_shared<const NodeTopology>(socketsOf(where.topology, 2));
        work(maps, options);
      }
    }
  }
}

using CombineModes = std::vector<Tpetra::CombineMode>;

const CombineModes& allModes() {
  static const CombineModes modes{Tpetra::INSERT,     Tpetra::REPLACE, Tpetra::ADD,
                                  Tpetra::ADD_ASSIGN, Tpetra::ABSMAX,  Tpetra::ZERO};
  return modes;
}

/// Copies towards the overlapping map must be the same bits as Tpetra's.
template <class Scalar, class Transfer>
void checkCopies(const NodeAwareImport<>& halo, const Transfer& transfer, std::size_t columns,
                 const CombineModes& modes = allModes()) {
  for (const Tpetra::CombineMode mode : modes) {
    MultiVector<Scalar> source(halo.getOwnedMap(), columns);
    fill(source, 1);
    Twins<Scalar> target(halo.getOverlappingMap(), columns, 2);
    target.theirs.doImport(source, transfer, mode);
    halo.doImport(source, target.ours, mode);
    EXPECT_TRUE(sameBits(entries(target.theirs), entries(target.ours)))
        << "mode " << mode << ", " << columns << " columns, difference "
        << difference(entries(target.theirs), entries(target.ours), 1);
  }
}

bool onOneThread() { return Komvos::DefaultNode::execution_space().concurrency() == 1; }

/// Which of several copies Tpetra inserts, it leaves open; with one thread it is the last in its lists. And with
/// several it may lose one of two additions to an entry that a rank names twice: they are not atomic there.
template <class Transfer>
bool tpetraIsSure(Tpetra::CombineMode mode, const Transfer& transfer) {
  const bool chooses = mode == Tpetra::INSERT || mode == Tpetra::REPLACE;
  const bool addsHere = mode == Tpetra::ADD_ASSIGN && transfer.getNumPermuteIDs() > 0;
  return onOneThread() || !(chooses || addsHere);
}

/// What goes to the owned map must be Tpetra's, sums but for rounding, and always the same bits.
template <class Scalar, class Transfer>
void checkSums(const NodeAwareImport<>& halo, const Transfer& transfer, std::size_t columns,
               const CombineModes& modes = allModes()) {
  Random delays(static_cast<unsigned>(halo.plan().rank));
  for (const Tpetra::CombineMode mode : modes) {
    MultiVector<Scalar> source(halo.getOverlappingMap(), columns);
    fill(source, 3);
    Twins<Scalar> target(halo.getOwnedMap(), columns, 4);
    target.theirs.doExport(source, transfer, mode);
    const MultiVector<Scalar> start(target.ours, Teuchos::Copy);
    halo.doExport(source, target.ours, mode);
    const auto first = entries(target.ours);
    const double scale = 1000.0 * halo.plan().numRanks;  // of a sum of numbers up to 1000
    const bool sums = mode == Tpetra::ADD || mode == Tpetra::ADD_ASSIGN;
    if (tpetraIsSure(mode, transfer)) {
      EXPECT_LE(difference(entries(target.theirs), first, scale), sums ? 1e-14 : 0)
          << "mode " << mode << ", " << columns << " columns";
    }
    Tpetra::deep_copy(target.ours, start);
    usleep(static_cast<useconds_t>(delays.below(200)));
    halo.doExport(source, target.ours, mode);
    EXPECT_TRUE(sameBits(first, entries(target.ours))) << "mode " << mode << ", another run, other sums";
  }
}

TEST(NodeAwareImport, MovesWhatTpetrasImportMoves) {
  bool all[4] = {};  // same, permuted, remote, exported: seen together
  std::size_t turn = 0;
  onHalos(Tpetra::getDefaultComm(), allMethods, [&](const MapPair& maps, const ExchangeOptions& options) {
    const Import import(maps.owned, maps.overlapping);
    const NodeAwareImport<> halo(import, options);
    EXPECT_TRUE(halo.getOwnedMap()->isSameAs(*maps.owned));
    EXPECT_TRUE(halo.getOverlappingMap()->isSameAs(*maps.overlapping));
    EXPECT_EQ(static_cast<int>(import.getNumSameIDs()), halo.numSame());
    EXPECT_EQ(import.getNumRemoteIDs(), halo.plan().deliveries.size());
    EXPECT_EQ(0u, halo.report().route.find(toString(*options.route).substr(0, 4)));
    const bool canShare = Komvos::Exchange<double, NodeAwareImport<>::device_type>::canShareMemory() &&
                          halo.report().chosen.total.onNodeMessages > 0;
    EXPECT_EQ(canShare ? *options.intraNode : IntraNode::messages, halo.report().intraNode);
    EXPECT_EQ(halo.report().intraNode, halo.exchange<double>().intraNode());
    if (import.getNumSameIDs() > 0 && import.getNumPermuteIDs() > 0) {
      all[0] = all[1] = true;
      all[2] = all[2] || import.getNumRemoteIDs() > 0;
      all[3] = all[3] || import.getNumExportIDs() > 0;
    }
    const std::size_t columns = columnCounts()[turn++ % 4];
    if (turn / 4 % 2 == 0) {  // each method and number of columns meets all modes: there are nine methods
      checkCopies<double>(halo, import, columns, {Tpetra::INSERT, Tpetra::ADD, Tpetra::ZERO});
      checkSums<double>(halo, import, columns, {Tpetra::ADD, Tpetra::REPLACE, Tpetra::ABSMAX});
    } else {
      checkCopies<double>(halo, import, columns, {Tpetra::REPLACE, Tpetra::ADD_ASSIGN, Tpetra::ABSMAX});
      checkSums<double>(halo, import, columns, {Tpetra::ADD_ASSIGN, Tpetra::INSERT, Tpetra::ZERO});
    }
  });
  int seen = all[0] && all[1] && (Tpetra::getDefaultComm()->getSize() == 1 || (all[2] && all[3])) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &seen, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_EQ(1, seen) << "no maps had same, permuted, remote and exported entries at once";
}

TEST(NodeAwareImport, CallsWorkOnceWhileMessagesTravelAndKeepsRanksInStepIfItThrows) {
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[6], 3, comm);  // everybody needs everything
  const Import import(maps.owned, maps.overlapping);
  const NodeAwareImport<> halo(import, ExchangeOptions());
  MultiVector<double> source(maps.owned, 1), target(maps.overlapping, 1), expected(maps.overlapping, 1);
  fill(source, 1);
  expected.doImport(source, import, Tpetra::INSERT);
  for (int round = 0; round < 3; ++round) {
    int calls = 0;
    target.putScalar(-1);
    halo.doImport(source, target, Tpetra::INSERT, [&] {
      ++calls;
      for (int i = 0; i < halo.numSame(); ++i) {
        EXPECT_EQ(entries(expected)[i], entries(target)[i]) << "an entry of this rank is not there yet";
      }
    });
    EXPECT_EQ(1, calls);
    EXPECT_TRUE(sameBits(entries(expected), entries(target)));
  }
  const bool throws = comm->getRank() == 0;
  try {
    halo.doImport(source, target, Tpetra::INSERT, [&] {
      if (throws) {
        throw std::runtime_error("work of rank 0");
      }
    });
    EXPECT_FALSE(throws);
  } catch (const PlanMismatch&) {
    EXPECT_FALSE(throws);
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ("work of rank 0", error.what());
  }
  halo.doImport(source, target, Tpetra::INSERT);
  EXPECT_TRUE(sameBits(entries(expected), entries(target)));
}

TEST(NodeAwareImport, MovesTheSameAlongTheAxesOfEveryGrid) {
  const auto comm = Tpetra::getDefaultComm();
  const int size = comm->getSize();
  const MapPair maps = makeMaps(mapKinds()[6], 3, comm);  // everybody needs everything
  const Import import(maps.owned, maps.overlapping);
  for (const int ppn : {2, 4}) {
    const NamedTopology where{std::to_string(ppn) + " per node", NodeTopology::uniform(size, ppn)};
    for (const auto& factors : Komvos::AxisFactors::all(size)) {
      RouteChoice route = RouteChoice::axis;
      route.factors = factors;
      SCOPED_TRACE(where.name + ", " + toString(route));
      const NodeAwareImport<> halo(import, optionsFor(where, route));
      EXPECT_EQ(toString(route), halo.report().route);
      checkCopies<double>(halo, import, 1);
      checkSums<double>(halo, import, 1);
    }
  }
}

TEST(NodeAwareImport, MovesWhatTpetrasExportMoves) {
  onHalos(Tpetra::getDefaultComm(), oneInTurn, [&](const MapPair& maps, const ExchangeOptions& options) {
    const Export exporter(maps.overlapping, maps.owned);
    const NodeAwareImport<> halo(exporter, options);
    EXPECT_TRUE(halo.getOwnedMap()->isSameAs(*maps.owned));
    EXPECT_TRUE(halo.getOverlappingMap()->isSameAs(*maps.overlapping));
    checkSums<double>(halo, exporter, 1);
    checkSums<double>(halo, exporter, 3);
    checkCopies<double>(halo, exporter, 3);
  });
}

/// The same, but a rank names some entries twice in the overlapping map: its own, or also those of others.
MapPair untidyMaps(const MapPair& maps, unsigned seed, const TeuchosComm& comm, bool alsoOfOthers = false) {
  Random random(77 * seed + static_cast<unsigned>(comm->getRank()));
  std::vector<GO> overlapping = globalIds(*maps.overlapping);
  for (std::size_t i = 0, before = overlapping.size(); i < before; ++i) {
    if ((alsoOfOthers || maps.owned->isNodeGlobalElement(overlapping[i])) && random.below(4) == 0) {
      overlapping.push_back(GO(overlapping[i]));
    }
  }
  return {maps.name + ", untidy", maps.owned, makeMap(overlapping, comm)};
}

TEST(NodeAwareImport, CombinesAsTpetraDoesWhereRanksNameTheirOwnEntriesTwice) {
  const auto comm = Tpetra::getDefaultComm();
  bool permutedTwice = false;
  unsigned seed = 0;
  onHalos(comm, oneInTurn, [&](const MapPair& tidy, const ExchangeOptions& options) {
    const MapPair maps = untidyMaps(tidy, ++seed, comm);
    const Import import(maps.owned, maps.overlapping);
    const Export exporter(maps.overlapping, maps.owned);
    const NodeAwareImport<> ofImport(import, options);
    const NodeAwareImport<> ofExport(exporter, options);
    std::vector<LO> from(import.getPermuteFromLIDs().begin(), import.getPermuteFromLIDs().end());
    std::sort(from.begin(), from.end());
    permutedTwice = permutedTwice || std::adjacent_find(from.begin(), from.end()) != from.end();
    checkCopies<double>(ofImport, import, 2);
    checkSums<double>(ofImport, import, 1);
    checkSums<double>(ofExport, exporter, 2);
    checkCopies<double>(ofExport, exporter, 1);
  });
  EXPECT_TRUE(permutedTwice || comm->getRank() > 0) << "no entry was permuted to two places";
}

/// Whether the lists of a transfer lack entries on some rank, as Tpetra's may where a rank names those of others twice.
template <class Transfer>
bool tpetraLosesEntries(const Transfer& transfer, bool isImport) {
  std::size_t travelling = 0;
  if (isImport) {
    for (const std::size_t length : transfer.getDistributor().getLengthsFrom()) {
      travelling += length;
    }
  } else {
    const auto ranks = transfer.getExportPIDs();
    travelling = std::count_if(ranks.begin(), ranks.end(), [](int rank) { return rank >= 0; });
  }
  int loses = travelling != (isImport ? transfer.getNumRemoteIDs() : transfer.getNumExportIDs()) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &loses, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return loses == 1;
}

TEST(NodeAwareImport, CopiesEntriesNamedTwiceOrRefusesWhereTpetraLosesThem) {
  const auto comm = Tpetra::getDefaultComm();
  int refused = 0, moved = 0;
  unsigned seed = 0;
  onHalos(comm, oneInTurn, [&](const MapPair& tidy, const ExchangeOptions& options) {
    const MapPair maps = untidyMaps(tidy, ++seed, comm, true);
    const Import import(maps.owned, maps.overlapping);
    const Export exporter(maps.overlapping, maps.owned);
    if (tpetraLosesEntries(import, true)) {
      const std::string error = commonError(maps.name, [&] { NodeAwareImport<>(import, options); });
      EXPECT_NE(std::string::npos, error.find("only once")) << error;
      ++refused;
    } else {
      const NodeAwareImport<> halo(import, options);
      checkCopies<double>(halo, import, 2);
      checkSums<double>(halo, import, 1);
      ++moved;
    }
    if (tpetraLosesEntries(exporter, false)) {
      const std::string error = commonError(maps.name, [&] { NodeAwareImport<>(exporter, options); });
      EXPECT_NE(std::string::npos, error.find("only once")) << error;
    } else {
      const NodeAwareImport<> halo(exporter, options);
      checkSums<double>(halo, exporter, 2);
      checkCopies<double>(halo, exporter, 1);
    }
  });
  EXPECT_GT(moved, 0);
  EXPECT_TRUE(refused > 0 || comm->getSize() == 1) << "Tpetra lost no entries: say so in the guide";
}

TEST(NodeAwareImport, LeavesEntriesThatNobodyOwns) {
  const auto comm = Tpetra::getDefaultComm();
  onHalos(comm, oneInTurn, [&](const MapPair& complete, const ExchangeOptions& options) {
    std::vector<GO> overlapping = globalIds(*complete.overlapping);
    overlapping.insert(overlapping.begin() + static_cast<std::ptrdiff_t>(overlapping.size() / 2),
                       complete.owned->getMaxAllGlobalIndex() + 1);
    const MapPair maps{complete.name, complete.owned, makeMap(overlapping, comm)};
    const Import import(maps.owned, maps.overlapping);
    const Export exporter(maps.overlapping, maps.owned);
    const NodeAwareImport<> ofImport(import, options);
    const NodeAwareImport<> ofExport(exporter, options);
    checkCopies<double>(ofImport, import, 2);
    checkSums<double>(ofImport, import, 1);
    checkSums<double>(ofExport, exporter, 2);
    checkCopies<double>(ofExport, exporter, 1);
  });
}

/// Nothing is communicated, so nothing collective is done either: a rank that throws keeps nobody waiting.
TEST(NodeAwareImport, MakesNoExchangeForZero) {
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[1], 3, comm);
  const Import import(maps.owned, maps.overlapping);
  for (const auto onNode : {Komvos::IntraNode::sharedMemory, Komvos::IntraNode::messages}) {
    const NodeAwareImport<> halo(
        import, optionsFor({"one", Komvos::NodeTopology::uniform(comm->getSize(), 64)}, RouteChoice::standard, onNode));
    MultiVector<double> owned(maps.owned, 1), overlapping(maps.overlapping, 1), back(maps.owned, 1);
    MultiVector<double> wrong(maps.owned, 2);
    fill(owned, 1);
    if (comm->getRank() == 0) {
      EXPECT_THROW(halo.doImport(owned, wrong, Tpetra::ZERO), PlanMismatch);
      EXPECT_THROW(halo.doExport(overlapping, wrong, Tpetra::ZERO), PlanMismatch);
    } else {
      halo.doImport(owned, overlapping, Tpetra::ZERO);
      halo.doExport(overlapping, back, Tpetra::ZERO);
    }
    checkCopies<double>(halo, import, 2);
    checkSums<double>(halo, import, 1);
  }
}

TEST(NodeAwareImport, TakesAnEntryOfSeveralRanksFromWhomTpetraTakesIt) {
  const auto comm = Tpetra::getDefaultComm();
  unsigned seed = 0;
  onHalos(comm, oneInTurn, [&](const MapPair& maps, const ExchangeOptions& options) {
    Random random(55 * ++seed + static_cast<unsigned>(comm->getRank()));
    std::vector<GO> owned = globalIds(*maps.owned);
    for (const GO entry : globalIds(*maps.overlapping)) {
      if (!maps.owned->isNodeGlobalElement(entry) && random.below(3) == 0) {
        owned.push_back(GO(entry));
      }
    }
    const Import import(makeMap(owned, comm), maps.overlapping);
    const NodeAwareImport<> halo(import, options);
    checkCopies<double>(halo, import, 2);
    checkSums<double>(halo, import, 1);
  });
}

TEST(NodeAwareImport, MovesToReplicatedMapsAndBack) {
  const auto comm = Tpetra::getDefaultComm();
  const RCP<const Map> owned = rcp(new Map(11, 0, comm));
  const auto local = Tpetra::createLocalMapWithNode<LO, GO, Komvos::DefaultNode>(11, comm);
  const NamedTopology pairs{"pairs", NodeTopology::uniform(comm->getSize(), 2)};
  const Import import(owned, local);
  for (const Method& method : someMethods()) {
    const NodeAwareImport<> halo(import, optionsFor(pairs, method.route, method.onNode));
    checkCopies<double>(halo, import, 2);
  }
}

TEST(NodeAwareImport, ImportsAgainAndAgainToTheSameVectorAndToOthers) {
  onHalos(Tpetra::getDefaultComm(), oneInTurn, [&](const MapPair& maps, const ExchangeOptions& options) {
    const Import import(maps.owned, maps.overlapping);
    const NodeAwareImport<> halo(import, options);
    MultiVector<double> source(maps.owned, 1), theirs(maps.overlapping, 1);
    MultiVector<double> first(maps.overlapping, 1), second(maps.overlapping, 1);
    unsigned seed = 0;
    for (MultiVector<double>* target : {&first, &first, &first, &second, &first, &second, &second, &second, &first}) {
      fill(source, ++seed);
      fill(*target, 100);
      Tpetra::deep_copy(theirs, *target);
      const Tpetra::CombineMode mode = seed == 8 ? Tpetra::ADD : Tpetra::INSERT;  // one that cannot arrive in place
      theirs.doImport(source, import, mode);
      halo.doImport(source, *target, mode);
      EXPECT_TRUE(sameBits(entries(theirs), entries(*target))) << "import " << seed;
    }
    for (int k = 0; k < 20; ++k) {  // more vectors than bindings are kept
      MultiVector<double> other(maps.overlapping, 1);
      halo.doImport(source, other, Tpetra::INSERT);
      halo.doImport(source, other, Tpetra::INSERT);
      theirs.doImport(source, import, Tpetra::INSERT);
      other.update(-1, theirs, 1);
      EXPECT_EQ(0, difference(entries(other), std::vector<double>(other.getLocalLength()), 1));
    }
  });
}

TEST(NodeAwareImport, ImportsIntoTheVectorItComesFrom) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 10 * comm->getSize();
  std::vector<GO> mine, all;
  for (GO i = 0; i < n; ++i) {
    (i / 10 == comm->getRank() ? mine : all).push_back(i);
  }
  all.insert(all.begin(), mine.begin(), mine.end());
  const auto owned = makeMap(mine, comm);
  const auto overlapping = makeMap(all, comm);
  const Import import(owned, overlapping);
  const NamedTopology pairs{"pairs", NodeTopology::uniform(comm->getSize(), 2)};
  for (const Method& method : someMethods()) {
    const NodeAwareImport<> halo(import, optionsFor(pairs, method.route, method.onNode));
    for (int k = 0; k < 3; ++k) {
      MultiVector<double> ours(overlapping, 1), theirs(overlapping, 1), source(owned, 1);
      fill(ours, 10);
      fill(source, 10);
      theirs.doImport(source, import, Tpetra::INSERT);
      const auto first = ours.offsetView(owned, 0);
      halo.doImport(*first, ours, Tpetra::INSERT);
      EXPECT_TRUE(sameBits(entries(theirs), entries(ours))) << "import " << k;
    }
  }
}

TEST(NodeAwareImport, MovesWholeNumbers) {
  onHalos(Tpetra::getDefaultComm(), oneInTurn, [&](const MapPair& maps, const ExchangeOptions& options) {
    const Import import(maps.owned, maps.overlapping);
    const NodeAwareImport<> halo(import, options);
    checkCopies<int>(halo, import, 2);
    checkSums<int>(halo, import, 2);
    checkCopies<GO>(halo, import, 1);
    checkSums<GO>(halo, import, 1);
    checkCopies<double>(halo, import, 2);  // the plan is shared by all types
  });
}

/// Columns 0, 3, 5 of a vector of seven: no constant stride.
template <class Scalar>
auto someColumns(MultiVector<Scalar>& wide) {
  Teuchos::Array<std::size_t> columns(3);
  columns[0] = 0;
  columns[1] = 3;
  columns[2] = 5;
  return wide.subViewNonConst(columns());
}

TEST(NodeAwareImport, TakesScatteredAndConsecutiveColumnsOfLargerVectors) {
  onHalos(Tpetra::getDefaultComm(), oneInTurn, [&](const MapPair& maps, const ExchangeOptions& options) {
    const Import import(maps.owned, maps.overlapping);
    const NodeAwareImport<> halo(import, options);
    MultiVector<double> owned(maps.owned, 7);
    fill(owned, 5);
    Twins<double> wide(maps.overlapping, 7, 6);
    someColumns(wide.theirs)->doImport(*someColumns(owned), import, Tpetra::INSERT);
    halo.doImport(*someColumns(owned), *someColumns(wide.ours), Tpetra::INSERT);
    EXPECT_TRUE(sameBits(entries(wide.theirs), entries(wide.ours))) << "scattered columns";
    const Teuchos::Range1D range(2, 4);
    wide.theirs.subViewNonConst(range)->doImport(*owned.subView(range), import, Tpetra::ADD_ASSIGN);
    halo.doImport(*owned.subView(range), *wide.ours.subViewNonConst(range), Tpetra::ADD_ASSIGN);
    EXPECT_TRUE(sameBits(entries(wide.theirs), entries(wide.ours))) << "consecutive columns";
    Twins<double> back(maps.owned, 7, 7);
    someColumns(back.theirs)->doExport(*someColumns(wide.theirs), import, Tpetra::ADD);
    halo.doExport(*someColumns(wide.ours), *someColumns(back.ours), Tpetra::ADD);
    EXPECT_LE(difference(entries(back.theirs), entries(back.ours), 1000.0 * halo.plan().numRanks), 1e-14);
  });
}

TEST(NodeAwareImport, OutlivesTheImportAndCanBeMoved) {
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[1], 5, comm);
  const NamedTopology where{"two", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  auto import = rcp(new Import(maps.owned, maps.overlapping));
  NodeAwareImport<> first(*import, optionsFor(where, RouteChoice::threeStep));
  import = Teuchos::null;
  NodeAwareImport<> second(std::move(first));
  const Import again(maps.owned, maps.overlapping);
  checkCopies<double>(second, again, 2);
  NodeAwareImport<> third(again, optionsFor(where, RouteChoice::standard));
  third = std::move(second);
  checkSums<double>(third, again, 2);
}

TEST(NodeAwareImport, WorksOnPartsOfTheWorld) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  {
    const TeuchosComm comm = rcp(new Teuchos::MpiComm<int>(half));
    onHalos(comm, oneInTurn, [&](const MapPair& maps, const ExchangeOptions& options) {
      const Import import(maps.owned, maps.overlapping);
      const NodeAwareImport<> halo(import, options);
      checkCopies<double>(halo, import, 2);
      checkSums<double>(halo, import, 1);
    });
  }
  MPI_Comm_free(&half);
}

// Exchanges of other types, and routes that are tried, are made later.
TEST(NodeAwareImport, IsUsedOnWhenTheUsersCommunicatorIsFreed) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  const auto comm = rcp(new Teuchos::MpiComm<int>(mine));
  const MapPair maps = makeMaps(mapKinds()[6], 5, comm);
  ExchangeOptions options;
  options.topology = std::make_shared<const NodeTopology>(NodeTopology::uniform(comm->getSize(), 2));
  options.tuning = Komvos::Tuning::online;
  options.reuseDecisions = false;
  options.calibrate = false;
  const Import import(maps.owned, maps.overlapping);
  const NodeAwareImport<> halo(import, options);
  Twins<double> from(maps.owned, 1, 1), to(maps.overlapping, 1, 2);
  Twins<int> wholeFrom(maps.owned, 1, 1), wholeTo(maps.overlapping, 1, 2);
  to.theirs.doImport(from.theirs, import, Tpetra::INSERT);
  wholeTo.theirs.doImport(wholeFrom.theirs, import, Tpetra::INSERT);
  MPI_Comm_free(&mine);
  halo.doImport(wholeFrom.ours, wholeTo.ours, Tpetra::INSERT);
  EXPECT_EQ(entries(wholeTo.theirs), entries(wholeTo.ours));
  halo.doImport(from.ours, to.ours, Tpetra::INSERT);
  EXPECT_EQ(entries(to.theirs), entries(to.ours));
  std::set<std::string> routes;
  for (int use = 0; use < 300; ++use) {
    auto& exchange = halo.selectForward<double>();
    routes.insert(exchange.plan().route);
    to.ours.putScalar(std::nan(""));
    {
      const auto x = from.ours.getLocalViewDevice(Tpetra::Access::ReadOnly);
      const auto y = to.ours.getLocalViewDevice(Tpetra::Access::ReadWrite);
      const auto ghosts = Kokkos::subview(y, std::make_pair<std::size_t>(halo.numSame(), y.extent(0)), Kokkos::ALL());
      const NodeAwareImport<>::device_type::execution_space space;
      exchange.forward(space, x, ghosts);
      space.fence();
    }
    const std::vector<double> wanted = entries(to.theirs), found = entries(to.ours);
    std::size_t arrived = 0, right = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      arrived += std::isnan(found[i]) ? 0 : 1;
      right += found[i] == wanted[i] ? 1 : 0;
    }
    EXPECT_EQ(exchange.plan().deliveries.size(), arrived) << use;
    EXPECT_EQ(arrived, right) << use;
    halo.recordUse(1, 1, 1);  // made up: there is always something to gain
  }
  EXPECT_EQ(comm->getSize() > 2, routes.size() > 1);
  halo.doExport(to.ours, from.ours, Tpetra::ADD);
}

/// Nothing is decided but the nodes, and all is measured: some topologies are the same.
ExchangeOptions choiceOf(const NamedTopology& where) {
  ExchangeOptions options;
  options.reuseDecisions = false;
  options.tuning = Komvos::Tuning::exhaustive;
  options.topology = std::make_shared<const NodeTopology>(where.topology);
  return options;
}

TEST(NodeAwareImport, ChoosesARouteByMeasuringAndMovesTheSame) {
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[1], 9, comm);
  const Import import(maps.owned, maps.overlapping);
  for (const NamedTopology& where : topologiesFor(comm->getSize())) {
    const NodeAwareImport<> halo(import, choiceOf(where));
    EXPECT_EQ(halo.report().candidates.size() > 1, halo.report().standardSeconds > 0);
    const auto& all = halo.report().candidates;
    EXPECT_EQ(1, std::count_if(all.begin(), all.end(), [](const auto& one) { return one.rejectionReason.empty(); }));
    EXPECT_FALSE(describe(halo.report()).empty());
    checkCopies<double>(halo, import, 1);
  }
}

// --- what users see
// ---------------------------------------------------------------------------------------------------

/// What describe() prints, on rank 0.
std::string described(const Teuchos::Describable& object, Teuchos::EVerbosityLevel level) {
  std::ostringstream text;
  Teuchos::FancyOStream out(Teuchos::rcpFromRef(text));
  out.setOutputToRootOnly(0);
  object.describe(out, level);
  return text.str();
}

TEST(NodeAwareImportDescription, SaysMoreTheMoreIsAsked) {
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[6], 5, comm);  // everybody needs everything
  const NamedTopology pairs{"pairs", NodeTopology::uniform(comm->getSize(), 2)};
  const NodeAwareImport<> halo(Import(maps.owned, maps.overlapping), optionsFor(pairs, RouteChoice::threeStep));
  const auto& total = halo.report().chosen.total;
  EXPECT_NE(std::string::npos, halo.description().find("route three-step")) << halo.description();
  EXPECT_NE(std::string::npos,
            halo.description().find(std::to_string(total.interNodeMessages) + " messages between nodes"));
  EXPECT_EQ("", described(halo, Teuchos::VERB_NONE));
  const std::string low = described(halo, Teuchos::VERB_LOW);
  const std::string high = described(halo, Teuchos::VERB_HIGH);
  const std::string extreme = described(halo, Teuchos::VERB_EXTREME);
  if (comm->getRank() == 0) {
    EXPECT_EQ(low, described(halo, Teuchos::VERB_DEFAULT).substr(0, low.size()));
    EXPECT_NE(std::string::npos, low.find("Route: three-step"));
    EXPECT_NE(std::string::npos, low.find(std::to_string(total.neighbours) + " neighbours"));
    EXPECT_EQ(std::string::npos, low.find("rank 0:"));
    for (int rank = 0; rank < comm->getSize(); ++rank) {
      EXPECT_NE(std::string::npos, high.find("rank " + std::to_string(rank) + ": ")) << high;
    }
    EXPECT_NE(std::string::npos, high.find(" bytes"));
    EXPECT_EQ(std::string::npos, high.find("stage 0"));
    EXPECT_EQ(comm->getSize() > 1, extreme.find("stage 0 to rank") != std::string::npos) << extreme;
  } else {
    described(halo, Teuchos::VERB_DEFAULT);
  }
}

// --- misuse ----------------------------------------------------------------------------------------------------------

/// One more than Tpetra has.
const auto noMode = static_cast<Tpetra::CombineMode>(7);

/// Runs `work` and returns its error, or nothing.
template <class ErrorType>
std::string errorOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return {};
}

TEST(NodeAwareImportMisuse, AVectorOverAnotherMapOnOneRankIsAnErrorAndNobodyWaits) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank();
  const MapPair maps = makeMaps(mapKinds()[6], 5, comm);  // everybody needs everything
  const Import import(maps.owned, maps.overlapping);
  std::vector<GO> longer = globalIds(*maps.owned);
  longer.push_back(100000 + rank);
  const auto wrongOwned = makeMap(longer, comm);
  for (const NamedTopology& where : topologiesFor(comm->getSize())) {
    for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
      const NodeAwareImport<> halo(import, optionsFor(where, route));
      for (int guilty = 0; guilty < comm->getSize(); ++guilty) {
        MultiVector<double> source(rank == guilty ? wrongOwned : maps.owned, 2);
        MultiVector<double> target(maps.overlapping, 2);
        fill(source, 1);
        const std::string text = errorOf<PlanMismatch>([&] { halo.doImport(source, target, Tpetra::INSERT); });
        // A rank needs values of the guilty one if that owns any.
        std::size_t ownedByGuilty = Komvos::Impl::localLength(*maps.owned);
        MPI_Bcast(&ownedByGuilty, static_cast<int>(sizeof ownedByGuilty), MPI_BYTE, guilty, MPI_COMM_WORLD);
        EXPECT_TRUE(!text.empty() || (rank != guilty && ownedByGuilty == 0))
            << where.name << ", guilty rank " << guilty;
        if (rank == guilty) {
          const std::string rows = "source is " + std::to_string(longer.size()) + " x 2";
          EXPECT_NE(std::string::npos, text.find(rows)) << text;
        }
        MultiVector<double> sums(rank == guilty ? wrongOwned : maps.owned, 2);
        const std::string back = errorOf<PlanMismatch>([&] { halo.doExport(target, sums, Tpetra::ADD); });
        EXPECT_TRUE(!back.empty() || rank != guilty) << where.name << ", guilty rank " << guilty;
        checkCopies<double>(halo, import, 2);
        checkSums<double>(halo, import, 1);
      }
    }
  }
}

TEST(NodeAwareImportMisuse, OtherNumbersOfColumnsAndModesAreRefused) {
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[0], 5, comm);
  const Import import(maps.owned, maps.overlapping);
  const NodeAwareImport<> halo(import, optionsFor(topologiesFor(comm->getSize()).front(), RouteChoice::threeStep));
  MultiVector<double> owned(maps.owned, 2);
  MultiVector<double> narrow(maps.overlapping, 1);
  MultiVector<double> good(maps.overlapping, 2);
  EXPECT_NE("", errorOf<PlanMismatch>([&] { halo.doImport(owned, narrow, Tpetra::INSERT); }));
  EXPECT_NE("", errorOf<PlanMismatch>([&] { halo.doExport(narrow, owned, Tpetra::ADD); }));
  EXPECT_NE("", errorOf<BadInput>([&] { halo.doImport(owned, good, noMode); }));
  EXPECT_NE("", errorOf<BadInput>([&] { halo.doExport(good, owned, noMode); }));
  checkCopies<double>(halo, import, 2);
  checkSums<double>(halo, import, 2);
}

/// A rank's own code throws before it takes part, or it asks for a mode that does not exist: nobody waits, whoever
/// needs its values hears of it, and the next exchange is as if nothing had happened.
void checkARankThatCannotTakePart(const std::function<void(const NodeAwareImport<>&)>& insteadOfImport,
                                  const std::function<void(const NodeAwareImport<>&)>& insteadOfExport) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank();
  const int size = comm->getSize();
  const MapPair maps = makeMaps(mapKinds()[6], 5, comm);  // everybody needs everything
  const Import import(maps.owned, maps.overlapping);
  const auto ownedByMe = static_cast<int>(Komvos::Impl::localLength(*maps.owned));
  std::vector<int> owned(size);
  MPI_Allgather(&ownedByMe, 1, MPI_INT, owned.data(), 1, MPI_INT, MPI_COMM_WORLD);
  const NamedTopology pairs{"pairs", NodeTopology::uniform(size, 2)};
  for (const Method& method : someMethods()) {
    for (int guilty = 0; guilty < size; ++guilty) {
      SCOPED_TRACE(toString(method.route) + ", " + toString(method.onNode) + ", guilty rank " + std::to_string(guilty));
      const NodeAwareImport<> halo(import, optionsFor(pairs, method.route, method.onNode));
      MultiVector<double> source(maps.owned, 1);
      MultiVector<double> target(maps.overlapping, 1);
      fill(source, 1);
      if (rank == guilty) {
        insteadOfImport(halo);
      } else {
        const std::string text = errorOf<PlanMismatch>([&] { halo.doImport(source, target, Tpetra::INSERT); });
        EXPECT_EQ(owned[guilty] > 0, text.find("abandoned") != std::string::npos) << text;
      }
      checkCopies<double>(halo, import, 1);
      if (rank == guilty) {
        insteadOfExport(halo);
      } else {
        const std::string text = errorOf<PlanMismatch>([&] { halo.doExport(target, source, Tpetra::ADD); });
        EXPECT_EQ(owned[rank] > 0, text.find("abandoned") != std::string::npos) << text;
      }
      checkSums<double>(halo, import, 1);
    }
  }
}

TEST(NodeAwareImportMisuse, ARankThatThrowsBeforeCanLetTheOthersFinish) {
  checkARankThatCannotTakePart([](const NodeAwareImport<>& halo) { halo.abandonForward<double>(); },
                               [](const NodeAwareImport<>& halo) { halo.abandonReverse<double>(); });
}

TEST(NodeAwareImportMisuse, AModeThatDoesNotExistOnOneRankLeavesNobodyWaiting) {
  const auto refused = [](const NodeAwareImport<>& halo, bool isImport) {
    MultiVector<double> owned(halo.getOwnedMap(), 1);
    MultiVector<double> overlapping(halo.getOverlappingMap(), 1);
    const std::string text = errorOf<BadInput>(
        [&] { isImport ? halo.doImport(owned, overlapping, noMode) : halo.doExport(overlapping, owned, noMode); });
    EXPECT_NE(std::string::npos, text.find("CombineMode")) << text;
  };
  checkARankThatCannotTakePart([&](const NodeAwareImport<>& halo) { refused(halo, true); },
                               [&](const NodeAwareImport<>& halo) { refused(halo, false); });
}

// --- environment -----------------------------------------------------------------------------------------------------

std::string settingsError() {
  return errorOf<BadInput>([] { Komvos::readSettings(); });
}

TEST(Environment, IsReadAndUnknownOrBadVariablesAreRefused) {
  EXPECT_EQ("", settingsError());
  {
    const Variable typo("KOMVOS_RUOTE", "standard");
    EXPECT_NE(std::string::npos, settingsError().find("KOMVOS_RUOTE"));
  }
  for (const char* bad : {"2", "yes", "", "-1", "01"}) {
    for (const char* name : {"KOMVOS_GPU_AWARE_MPI", "KOMVOS_STAGED"}) {
      const Variable variable(name, bad);
      EXPECT_NE(std::string::npos, settingsError().find(name)) << bad;
    }
  }
  const Variable gpu("KOMVOS_GPU_AWARE_MPI", "1");
  const Variable staged("KOMVOS_STAGED", "1");
  const Variable route("KOMVOS_ROUTE", "three-step");
  EXPECT_TRUE(Komvos::gpuAwareMpi());
  EXPECT_TRUE(Komvos::stagingForced());
  EXPECT_EQ("three-step", Komvos::readSettings().route.value_or(""));
  EXPECT_FALSE(Komvos::readSettings().pairing.has_value());
}

/// One rank has a variable the others do not have.
TEST(Environment, ABadValueOnOneRankIsTheSameErrorOnAllRanks) {
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[0], 5, comm);
  const Import import(maps.owned, maps.overlapping);
  const std::vector<std::pair<std::string, std::string>> bad{
      {"KOMVOS_ROUTE", "four-step"},       {"KOMVOS_PAIRING", "none"},       {"KOMVOS_RANKS_PER_NODE", "many"},
      {"KOMVOS_RANKS_PER_NODE", "77,1"},   {"KOMVOS_GPU_AWARE_MPI", "both"}, {"KOMVOS_SOMETHING", "1"},
      {"KOMVOS_RANKS_PER_NODE", "@/none"},
  };
  for (const auto& [name, value] : bad) {
    std::unique_ptr<Variable> variable;
    if (comm->getRank() == comm->getSize() - 1) {
      variable = std::make_unique<Variable>(name, value);
    }
    const std::string text = errorOf<BadInput>([&] { const NodeAwareImport<> halo(import); });
    EXPECT_NE(std::string::npos, text.find(value == "1" ? name : value.substr(value.front() == '@' ? 1 : 0)))
        << name << "=" << value << ": " << text;
  }
}

TEST(Environment, GivesTheDefaultsOfOptions) {
  const auto comm = Tpetra::getDefaultComm();
  const int size = comm->getSize();
  const MapPair maps = makeMaps(mapKinds()[6], 5, comm);
  const Import import(maps.owned, maps.overlapping);
  const Variable route("KOMVOS_ROUTE", "three-step");
  const Variable topology("KOMVOS_RANKS_PER_NODE", "1");
  const Variable pairing("KOMVOS_PAIRING", "majority");
  const NodeAwareImport<> halo(import);
  EXPECT_EQ("three-step", halo.report().route);
  EXPECT_EQ(0, halo.report().chosen.total.onNodeMessages);
  EXPECT_EQ(size > 1, halo.report().chosen.total.interNodeMessages > 0);
  checkCopies<double>(halo, import, 1);
  const NamedTopology one{"one node", Komvos::NodeTopology::uniform(size, size)};
  const NodeAwareImport<> other(import, optionsFor(one, RouteChoice::standard));
  EXPECT_EQ("standard", other.report().route) << "an option must win against the environment";
  EXPECT_EQ(0, other.report().chosen.total.interNodeMessages);
}

/// Rank r owns r + 2 entries; the last rank wants all of them, in order of ranks.
NodeAwareImport<>::PatternTransfer allToLast(const TeuchosComm& comm) {
  const int rank = comm->getRank(), last = comm->getSize() - 1;
  const auto mapOf = [&](int local) {
    return rcp(new const Map(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(), static_cast<std::size_t>(local),
                             0, comm));
  };
  const int mine = rank + 2;
  int all = 0;
  NodeAwareImport<>::PatternTransfer transfer{mapOf(mine), {}, {}, {}, {}};
  transfer.pattern.rank = rank;
  transfer.pattern.numOwned = mine;
  for (int owner = 0; owner <= last && rank == last; ++owner) {
    for (int i = 0; i < owner + 2; ++i, ++all) {
      if (owner == rank) {
        transfer.staysFrom.push_back(i);
        transfer.staysTo.push_back(all);
      } else {
        transfer.pattern.receives.push_back({{owner, i}, all});
      }
    }
  }
  for (int i = 0; i < mine && rank != last; ++i) {
    transfer.pattern.sends.push_back({last, i});
  }
  transfer.pattern.numTarget = all;
  transfer.overlapping = mapOf(all);
  return transfer;
}

TEST(NodeAwareImport, FollowsAPattern) {
  const auto comm = Tpetra::getDefaultComm();
  for (const NamedTopology& where : topologiesFor(comm->getSize())) {
    for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
      const auto halos =
          NodeAwareImport<>::several(MPI_COMM_WORLD, {allToLast(comm), allToLast(comm)}, optionsFor(where, route));
      ASSERT_EQ(2u, halos.size());
      for (const auto& halo : halos) {
        MultiVector<double> source(halo->getOwnedMap(), 2), target(halo->getOverlappingMap(), 2);
        for (const std::size_t column : {0, 1}) {
          for (std::size_t i = 0; i < source.getLocalLength(); ++i) {
            source.replaceLocalValue(static_cast<int>(i), column,
                                     static_cast<double>(source.getMap()->getGlobalElement(static_cast<int>(i))) +
                                         1000.0 * static_cast<double>(column));
          }
        }
        target.putScalar(-1.0);
        halo->doImport(source, target, Tpetra::INSERT);
        const auto view = target.getLocalViewHost(Tpetra::Access::ReadOnly);
        EXPECT_EQ(comm->getRank() + 1 == comm->getSize() ? halo->getOwnedMap()->getGlobalNumElements() : 0,
                  view.extent(0));
        for (std::size_t i = 0; i < view.extent(0); ++i) {
          EXPECT_EQ(static_cast<double>(i), view(i, 0));
          EXPECT_EQ(static_cast<double>(i) + 1000.0, view(i, 1));
        }
      }
    }
  }
}

TEST(NodeAwareImport, RefusesAPatternThatDoesNotFitItsMapsOnAllRanks) {
  const auto comm = Tpetra::getDefaultComm();
  const auto refused = [&](const char* words, const std::function<void(NodeAwareImport<>::PatternTransfer&)>& spoil) {
    auto transfer = allToLast(comm);
    if (comm->getRank() + 1 == comm->getSize()) {
      spoil(transfer);
    }
    const std::string error =
        commonError(words, [&] { NodeAwareImport<>::several(MPI_COMM_WORLD, {transfer}, ExchangeOptions()); });
    EXPECT_NE(std::string::npos, error.find(words)) << error;
  };
  refused("for maps of", [](auto& transfer) { ++transfer.pattern.numTarget; });
  refused("for maps of", [](auto& transfer) { --transfer.pattern.numOwned; });
  refused("an entry that stays is outside of its map", [](auto& transfer) { transfer.staysTo.front() = -1; });
  refused("an entry that stays is outside of its map", [](auto& transfer) { transfer.staysFrom.front() += 1000; });
  refused("entries stay, at", [](auto& transfer) { transfer.staysTo.pop_back(); });
  if (comm->getSize() > 1) {
    refused("its owner does not send it", [](auto& transfer) { transfer.pattern.receives.front().value.local = 1000; });
  }
}

}  // namespace
