// NodeAwareDistributor: what arrives, from whom, in which order, and back again.
#include <gtest/gtest.h>

#include <Tpetra_Distributor.hpp>
#include <algorithm>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_NodeAwareDistributor.hpp"
#include "support/mpi_support.hpp"
#include "support/tpetra_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::ExchangeOptions;
using Komvos::NodeAwareDistributor;
using Komvos::PlanMismatch;
using Komvos::RouteChoice;
/// With plain device memory: Tpetra's distributor refuses managed memory.
using Space = Komvos::DefaultNode::execution_space;
using Device = Kokkos::Device<Space, Komvos::Impl::BufferSpace<Space>::type>;

/// An odd size, so that nothing but bytes can be copied; it says where it comes from.
struct Packet {
  char from, export_, number;
};

/// Destinations at random, in any order; some exports stay here, some go nowhere, some ranks export nothing.
std::vector<int> destinations(int rank, int size, bool sorted) {
  Random random(91 + 7 * static_cast<unsigned>(rank));
  std::vector<int> to;
  for (int i = rank % 4 == 3 ? 0 : 5 + random.below(20); i > 0; --i) {
    to.push_back(random.below(size + 1) - (sorted ? 0 : 1));
    to.back() = std::min(to.back(), size - 1);
  }
  if (sorted) {
    std::sort(to.begin(), to.end());
  }
  return to;
}

/// Of each import: who sends it, as which export.
struct Expected {
  int from, export_;
};
std::vector<Expected> importsOf(int rank, int size, bool sorted) {
  std::vector<Expected> imports;
  for (int from = 0; from < size; ++from) {
    const std::vector<int> to = destinations(from, size, sorted);
    for (int i = 0; i < static_cast<int>(to.size()); ++i) {
      if (to[i] == rank) {
        imports.push_back({from, i});
      }
    }
  }
  return imports;
}

template <class T>
Kokkos::View<T*, Device> onDevice(const std::vector<T>& values) {
  const Kokkos::View<T*, Device> view("values", values.size());
  const auto host = Kokkos::create_mirror_view(view);
  std::copy(values.begin(), values.end(), host.data());
  Kokkos::deep_copy(view, host);
  return view;
}
template <class T>
std::vector<T> onHost(const Kokkos::View<T*, Device>& view) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return {host.data(), host.data() + host.size()};
}

template <class T>
Teuchos::ArrayView<const T> viewOf(const std::vector<T>& list) {
  return {list.data(), static_cast<Teuchos::Ordinal>(list.size())};
}

void onRoutes(const TeuchosComm& comm, const std::function<void(const ExchangeOptions&)>& work) {
  for (const NamedTopology& where : topologiesFor(comm->getSize())) {
    for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep, RouteChoice::axis}) {
      SCOPED_TRACE(where.name + ", " + toString(route));
      work(optionsFor(where, route));
    }
  }
}

/// Packets of an export, from 0 to 4.
std::size_t packetsOf(int from, int export_) { return static_cast<std::size_t>((from + 3 * export_) % 5); }

TEST(NodeAwareDistributor, BringsWhatWasSentInTheOrderOfRanks) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  for (const bool sorted : {true, false}) {
    const std::vector<int> to = destinations(rank, size, sorted);
    const std::vector<Expected> expected = importsOf(rank, size, sorted);
    onRoutes(comm, [&](const ExchangeOptions& options) {
      NodeAwareDistributor<> distributor(comm, options);
      ASSERT_EQ(expected.size(), distributor.createFromSends(viewOf(to)));
      EXPECT_EQ(expected.size(), distributor.getTotalReceiveLength());
      const auto from = distributor.getProcsFrom();
      EXPECT_TRUE(std::is_sorted(from.begin(), from.end()));
      for (const int number : {1, 3}) {
        std::vector<Packet> packets;
        for (int i = 0; i < static_cast<int>(to.size()); ++i) {
          for (int k = 0; k < number; ++k) {
            packets.push_back({static_cast<char>(rank), static_cast<char>(i), static_cast<char>(k)});
          }
        }
        const auto exports = onDevice(packets);
        const auto imports = onDevice(std::vector<Packet>(expected.size() * static_cast<std::size_t>(number)));
        distributor.doPostsAndWaits(exports, static_cast<std::size_t>(number), imports);
        const std::vector<Packet> arrived = onHost(imports);
        for (std::size_t i = 0; i < arrived.size(); ++i) {
          const Expected& one = expected[i / static_cast<std::size_t>(number)];
          EXPECT_EQ(one.from, arrived[i].from);
          EXPECT_EQ(one.export_, arrived[i].export_);
          EXPECT_EQ(static_cast<int>(i) % number, arrived[i].number);
        }
        // And back, where those that went nowhere are left alone.
        const auto back = onDevice(std::vector<Packet>(packets.size(), Packet{77, 77, 77}));
        distributor.doReversePostsAndWaits(imports, static_cast<std::size_t>(number), back);
        const std::vector<Packet> returned = onHost(back);
        for (std::size_t i = 0; i < returned.size(); ++i) {
          const bool went = to[i / static_cast<std::size_t>(number)] >= 0;
          EXPECT_EQ(went ? rank : 77, returned[i].from);
          EXPECT_EQ(went ? packets[i].export_ : 77, returned[i].export_);
          EXPECT_EQ(went ? packets[i].number : 77, returned[i].number);
        }
      }
    });
  }
}

TEST(NodeAwareDistributor, BringsAsManyPacketsOfEachAsThereAre) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  const std::vector<int> to = destinations(rank, size, false);
  const std::vector<Expected> expected = importsOf(rank, size, false);
  std::vector<std::size_t> exportNumbers, importNumbers;
  std::vector<std::complex<double>> packets, wanted;
  const auto value = [](int from, int export_, std::size_t k) {
    return std::complex<double>(from + 0.5 * static_cast<double>(k), export_);
  };
  for (int i = 0; i < static_cast<int>(to.size()); ++i) {
    exportNumbers.push_back(packetsOf(rank, i));
    for (std::size_t k = 0; k < exportNumbers.back(); ++k) {
      packets.push_back(value(rank, i, k));
    }
  }
  for (const Expected& one : expected) {
    importNumbers.push_back(packetsOf(one.from, one.export_));
    for (std::size_t k = 0; k < importNumbers.back(); ++k) {
      wanted.push_back(value(one.from, one.export_, k));
    }
  }
  onRoutes(comm, [&](const ExchangeOptions& options) {
    NodeAwareDistributor<> distributor(comm, options);
    distributor.createFromSends(viewOf(to));
    for (int turn = 0; turn < 2; ++turn) {
      const auto imports = onDevice(std::vector<std::complex<double>>(wanted.size()));
      distributor.doPostsAndWaits(onDevice(packets), viewOf(exportNumbers), imports, viewOf(importNumbers));
      EXPECT_EQ(wanted, onHost(imports));
      auto back = std::vector<std::complex<double>>(packets.size(), {99, 99});
      const auto returned = onDevice(back);
      distributor.doReversePostsAndWaits(imports, viewOf(importNumbers), returned, viewOf(exportNumbers));
      back = onHost(returned);
      for (std::size_t i = 0, k = 0; i < to.size(); ++i) {
        for (std::size_t j = 0; j < exportNumbers[i]; ++j, ++k) {
          EXPECT_EQ(to[i] >= 0 ? packets[k] : std::complex<double>(99, 99), back[k]);
        }
      }
    }
  });
}

TEST(NodeAwareDistributor, FindsOutWhatOthersNeed) {
  constexpr GO base = GO(1) << (sizeof(GO) > sizeof(int) ? 40 : 20);  // more than an int holds, if GO does
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  std::vector<GO> ids;
  std::vector<int> owners;
  Random random(5 + static_cast<unsigned>(rank));
  for (int owner = 0; owner < size; ++owner) {
    for (int k = random.below(4); k > 0; --k) {
      ids.push_back(base + 100 * owner + k);
      owners.push_back(owner);
    }
  }
  onRoutes(comm, [&](const ExchangeOptions& options) {
    NodeAwareDistributor<> distributor(comm, options);
    std::vector<GO> exportIds;
    std::vector<int> exportRanks;
    distributor.createFromRecvs(viewOf(ids), viewOf(owners), exportIds, exportRanks);
    ASSERT_EQ(exportIds.size(), exportRanks.size());
    EXPECT_TRUE(std::is_sorted(exportRanks.begin(), exportRanks.end()));
    for (const GO id : exportIds) {
      EXPECT_EQ(rank, (id - base) / 100);
    }
    const auto imports = onDevice(std::vector<GO>(ids.size()));
    distributor.doPostsAndWaits(onDevice(exportIds), 1, imports);
    EXPECT_EQ(ids, onHost(imports));
  });
}

TEST(NodeAwareDistributor, DoesWhatTpetrasDoes) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  const std::vector<int> to = destinations(rank, size, true);
  Tpetra::Distributor theirs(comm);
  NodeAwareDistributor<> ours(comm);
  ASSERT_EQ(theirs.createFromSends(viewOf(to)), ours.createFromSends(viewOf(to)));
  EXPECT_EQ(theirs.getNumSends(), ours.getNumSends());
  EXPECT_EQ(theirs.getNumReceives(), ours.getNumReceives());
  EXPECT_EQ(theirs.hasSelfMessage(), ours.hasSelfMessage());
  EXPECT_EQ(theirs.getTotalReceiveLength(), ours.getTotalReceiveLength());
  const auto sorted = [](const auto& list) {
    std::vector<int> copy(list.begin(), list.end());
    std::sort(copy.begin(), copy.end());
    return copy;
  };
  EXPECT_EQ(sorted(theirs.getProcsTo()), sorted(ours.getProcsTo()));
  EXPECT_EQ(sorted(theirs.getProcsFrom()), sorted(ours.getProcsFrom()));
  std::vector<double> values(2 * to.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 100 * rank + static_cast<double>(i);
  }
  const std::size_t imports = 2 * ours.getTotalReceiveLength();
  const Kokkos::View<double*, Device> mine("ours", imports);
  ours.doPostsAndWaits(Kokkos::View<const double*, Device>(onDevice(values)), 2, mine);
  std::vector<double> a = onHost(mine), b(imports);
  // On the host: Tpetra's hands MPI what it is given, and not every MPI can read the memory of a device.
  using HostList = Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  theirs.doPostsAndWaits(Kokkos::View<const double*, Kokkos::HostSpace>(HostList(values.data(), values.size())), 2,
                         HostList(b.data(), b.size()));
  // The ranks in Tpetra's order are those of getProcsFrom(), which is another only where it does not sort them.
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  EXPECT_EQ(b, a);
}

/// With the types of Trilinos, as code for Tpetra::Distributor has them.
TEST(NodeAwareDistributor, TakesTheArraysOfTeuchos) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  Teuchos::Array<GO> ids, exportIds;
  Teuchos::Array<int> owners, exportRanks;
  for (int owner = 0; owner < size; owner += 1 + rank % 2) {
    ids.push_back(1000 * owner + rank);
    owners.push_back(owner);
  }
  NodeAwareDistributor<> distributor(comm);
  distributor.createFromRecvs(Teuchos::ArrayView<const GO>(ids), Teuchos::ArrayView<const int>(owners), exportIds,
                              exportRanks);
  ASSERT_EQ(exportIds.size(), exportRanks.size());
  ASSERT_GT(exportIds.size(), 0) << "rank 0 asks all";
  // One number of each export, then as many as its rank says.
  Teuchos::Array<GO> arrived(ids.size(), -1), returned(exportIds.size(), -1);
  distributor.doPostsAndWaits(Teuchos::ArrayView<const GO>(exportIds), 1, arrived());
  EXPECT_EQ(ids, arrived);
  distributor.doReversePostsAndWaits(Teuchos::ArrayView<const GO>(arrived), 1, returned());
  EXPECT_EQ(exportIds, returned);
  Teuchos::Array<std::size_t> numExports, numImports;
  std::vector<GO> packets, expected;
  for (int i = 0; i < static_cast<int>(exportIds.size()); ++i) {
    numExports.push_back(static_cast<std::size_t>((rank + exportRanks[i]) % 3));
    packets.insert(packets.end(), numExports.back(), exportIds[i]);
  }
  for (int i = 0; i < static_cast<int>(ids.size()); ++i) {
    numImports.push_back(static_cast<std::size_t>((rank + owners[i]) % 3));
    expected.insert(expected.end(), numImports.back(), ids[i]);
  }
  std::vector<GO> found(expected.size(), -1), back(packets.size(), -1);
  distributor.doPostsAndWaits(viewOf(packets), Teuchos::ArrayView<const std::size_t>(numExports),
                              Teuchos::arrayViewFromVector(found), Teuchos::ArrayView<const std::size_t>(numImports));
  EXPECT_EQ(expected, found);
  distributor.doReversePostsAndWaits(viewOf(found), Teuchos::ArrayView<const std::size_t>(numImports),
                                     Teuchos::arrayViewFromVector(back),
                                     Teuchos::ArrayView<const std::size_t>(numExports));
  EXPECT_EQ(packets, back);
}

/// Exports may change once they are posted, and both directions be under way at once.
TEST(NodeAwareDistributor, WaitsLaterForWhatItHasPosted) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  const std::vector<int> to = destinations(rank, size, false);
  const std::vector<Expected> expected = importsOf(rank, size, false);
  onRoutes(comm, [&](const ExchangeOptions& options) {
    NodeAwareDistributor<> distributor(comm, options);
    distributor.createFromSends(viewOf(to));
    distributor.doWaits();  // nothing is under way
    distributor.doReverseWaits();
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<int> values, wanted, wantedBack;
      for (int i = 0; i < static_cast<int>(to.size()); ++i) {
        values.push_back(1000 * rank + 10 * i + repeat);
        wantedBack.push_back(to[i] >= 0 ? -(1000 * rank + i) : 7);
      }
      std::vector<int> valuesBack;
      for (const Expected& one : expected) {
        wanted.push_back(1000 * one.from + 10 * one.export_ + repeat);
        valuesBack.push_back(-(1000 * one.from + one.export_));
      }
      const auto exports = onDevice(values), imports = onDevice(std::vector<int>(wanted.size()));
      const auto reverseExports = onDevice(valuesBack), reverseImports = onDevice(std::vector<int>(to.size(), 7));
      distributor.doPosts(exports, 1, imports);
      distributor.doReversePosts(reverseExports, 1, reverseImports);
      Kokkos::deep_copy(exports, -77);
      Kokkos::deep_copy(reverseExports, -77);
      EXPECT_THROW(distributor.doPosts(exports, 1, imports), Komvos::Error);
      EXPECT_THROW(distributor.doReversePosts(reverseExports, 1, reverseImports), Komvos::Error);
      EXPECT_THROW(distributor.createFromSends(viewOf(to)), Komvos::Error);
      distributor.doWaits();
      EXPECT_EQ(wanted, onHost(imports));
      EXPECT_THROW(distributor.createFromSends(viewOf(to)), Komvos::Error) << "the way back is under way";
      distributor.doReverseWaits();
      EXPECT_EQ(wantedBack, onHost(reverseImports));
    }
    EXPECT_EQ(expected.size(), distributor.createFromSends(viewOf(to)));
  });
}

TEST(NodeAwareDistributor, RefusesOnAllRanksWhatOneGetsWrong) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  NodeAwareDistributor<> distributor(comm);
  std::vector<int> wanted{1, 2}, owners{0}, exportIds, exportRanks;
  owners.resize(rank == size - 1 ? 1 : 2);
  const std::string error =
      commonError("ids", [&] { distributor.createFromRecvs(viewOf(wanted), viewOf(owners), exportIds, exportRanks); });
  EXPECT_NE(std::string::npos, error.find("2 ids of 1 owners")) << error;
  const std::vector<int> nobody{rank == 0 ? size : 0};
  commonError("of " + std::to_string(size), [&] { distributor.createFromSends(viewOf(nobody)); });
  const std::vector<int> next{(rank + 1) % size};
  distributor.createFromSends(viewOf(next));
  const Kokkos::View<double*, Device> exports("exports", 2), imports("imports", 2), shorter("imports", 1);
  EXPECT_THROW(distributor.doPostsAndWaits(exports, 2, rank == 0 ? shorter : imports), PlanMismatch);
  const std::vector<std::size_t> two{2}, one{1};
  EXPECT_THROW(distributor.doPostsAndWaits(exports, viewOf(two), imports, viewOf(rank == 0 ? one : two)), PlanMismatch);
  distributor.doPostsAndWaits(exports, viewOf(two), imports, viewOf(two));
}

TEST(NodeAwareDistributor, MovesNothingBeforeItKnowsWhere) {
  const auto comm = Tpetra::getDefaultComm();
  NodeAwareDistributor<> distributor(comm);
  const Kokkos::View<double*, Device> none("none", 0);
  EXPECT_THROW(distributor.doPostsAndWaits(none, 1, none), Komvos::Error);
  EXPECT_THROW(distributor.doReversePostsAndWaits(none, 1, none), Komvos::Error);
}

TEST(NodeAwareDistributor, TakesNoRouteFromATuningCache) {
  const Variable file("KOMVOS_TUNING_CACHE", "no such file");
  const Variable strict("KOMVOS_REQUIRE_TUNING_CACHE", "1");
  const auto comm = Tpetra::getDefaultComm();
  NodeAwareDistributor<> distributor(comm);
  const std::vector<int> next{(comm->getRank() + 1) % comm->getSize()};
  EXPECT_EQ(1u, distributor.createFromSends(viewOf(next)));
}

/// On the way back exports that went nowhere have a place, too.
TEST(NodeAwareDistributor, RefusesAViewOfThoseAloneThatComeBack) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  NodeAwareDistributor<> distributor(comm);
  const std::vector<int> to{-1, -1, (rank + 1) % size};
  ASSERT_EQ(1u, distributor.createFromSends(viewOf(to)));
  const Kokkos::View<double*, Device> imports("imports", 3), back("back", 9), shorter("back", 3);
  EXPECT_THROW(distributor.doReversePostsAndWaits(imports, 3, rank == 0 ? shorter : back), PlanMismatch);
  const std::vector<std::size_t> three{3}, ofAll{3, 3, 3};
  EXPECT_THROW(distributor.doReversePostsAndWaits(imports, viewOf(three), back, viewOf(rank == 0 ? three : ofAll)),
               PlanMismatch);
  distributor.doReversePostsAndWaits(imports, viewOf(three), back, viewOf(ofAll));
}

}  // namespace
