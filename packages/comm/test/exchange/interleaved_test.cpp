// Ghosts with interleaved columns: they arrive in place, for any number of columns, and are the same as others.
#include <gtest/gtest.h>

#include "Komvos_Error.hpp"
#include "exchange/halo_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::Combine;
using Komvos::PlanMismatch;

using InterleavedVector = Kokkos::View<double**, Kokkos::LayoutRight, Device>;
using Interleaved = Exchange<double, Device>::Interleaved;

InterleavedVector interleaved(const HostVector<double>& values) {
  const InterleavedVector view("interleaved test vector", values.empty() ? 0 : values[0].size(), values.size());
  put(values, view);
  return view;
}

Interleaved toFill(const InterleavedVector& view) { return {view.data(), view.extent(0), view.extent(1)}; }

HostVector<double> background(const Halo& halo, int columns) {
  return HostVector<double>(columns, std::vector<double>(halo.mine().numTarget, -7));
}

/// Calls work(halo, columns, onNode) for all topologies and patterns, with targets in a row and with gaps.
template <class Work>
void onInterleavedHalos(const Work& work) {
  const int size = sizeOf(MPI_COMM_WORLD);
  int turn = 0;
  for (const NamedTopology& where : topologiesFor(size)) {
    for (const NamedPatterns& what : patternsFor(size, 5)) {
      for (const bool gaps : {false, true}) {
        for (const IntraNode onNode : {IntraNode::messages, IntraNode::sharedMemory}) {
          const RouteChoice route = ++turn % 2 == 0 ? RouteChoice::standard : RouteChoice::threeStep;
          SCOPED_TRACE(where.name + ", " + what.name + ", " + toString(onNode));
          const Halo halo(MPI_COMM_WORLD, what.patterns, where.topology, route, Pairing::byVolume, gaps);
          work(halo, onNode);
        }
      }
    }
  }
}

TEST(InterleavedGhosts, AreThoseOfSeparateColumns) {
  onInterleavedHalos([](const Halo& halo, IntraNode onNode) {
    Exchange<double, Device> exchange(halo.comm, halo.plan, 3, onNode);
    const bool canShare = Exchange<double, Device>::canShareMemory();
    EXPECT_EQ(canShare ? onNode : IntraNode::messages, exchange.intraNode());
    int salt = 0;
    for (const int columns : {1, 3, 8, 2}) {  // 8 go by messages: memory was asked for 3
      const auto known = interleaved(background(halo, columns));
      const auto later = interleaved(background(halo, columns));
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto owned = toDevice(halo.owned<double>(columns, ++salt));
        exchange.begin(Space(), owned, toFill(known));
        if (repeat > 0) {
          exchange.progress();
          EXPECT_NE(messagesAreStaged(), exchange.finishOnNode(Space(), toFill(known)));
        }
        exchange.end(Space(), toFill(known));
        EXPECT_EQ(halo.filled<double>(columns, salt, -7), get(known)) << halo.name() << ", " << columns << " columns";
        // Not known when messages arrive; in turn with separate columns.
        exchange.begin(Space(), owned);
        exchange.end(Space(), toFill(later));
        EXPECT_EQ(get(known), get(later)) << halo.name() << ", " << columns << " columns";
        checkForward(halo, exchange, columns, 50 + salt);
      }
    }
  });
}

TEST(InterleavedGhosts, AreAddedWhereAsked) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> exchange(halo.comm, halo.plan, 2);
  const auto ghosts = interleaved(background(halo, 2));
  exchange.begin(Space(), toDevice(halo.owned<double>(2, 1)));
  exchange.end(Space(), toFill(ghosts), Combine::add);
  EXPECT_EQ(halo.filled<double>(2, 1, -7, true), get(ghosts));
}

template <class Call>
bool isRefused(const Call& call) {
  try {
    call();
  } catch (const PlanMismatch&) {
    return true;
  }
  return false;
}

TEST(InterleavedGhosts, OfAnotherShapeAreRefused) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> exchange(halo.comm, halo.plan, 2);
  const auto owned = toDevice(halo.owned<double>(2, 1));
  const auto ghosts = interleaved(background(halo, 2));
  const auto others = toDevice(background(halo, 2));
  Interleaved wrong = toFill(ghosts);
  ++wrong.columns;
  EXPECT_TRUE(isRefused([&] { exchange.begin(Space(), owned, wrong); }));
  exchange.begin(Space(), owned);
  EXPECT_TRUE(isRefused([&] { exchange.end(Space(), wrong); }));
  if (!messagesAreStaged()) {
    exchange.begin(Space(), owned, toFill(ghosts));
    EXPECT_TRUE(isRefused([&] { exchange.end(Space(), others); })) << "they arrived in place elsewhere";
  }
  exchange.begin(Space(), owned, toFill(ghosts));
  exchange.end(Space(), toFill(ghosts));
  EXPECT_EQ(halo.filled<double>(2, 1, -7), get(ghosts));
}

}  // namespace
