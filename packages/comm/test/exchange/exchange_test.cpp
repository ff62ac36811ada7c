// The exchange on plain views: right values, fixed sums, errors that leave nobody waiting.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_RouteChoice.hpp"
#include "exchange/halo_support.hpp"
#include "support/victims.hpp"

namespace {

using namespace KomvosTest;
using Komvos::MpiSetupTransport;
using Komvos::PlanMismatch;
using Komvos::Impl::TagRange;

/// How an exchange is made: what travels on a node by what, and with room for how many columns.
struct Making {
  IntraNode onNode;
  int columns;
};

class ExchangeTest : public testing::TestWithParam<Making> {};
class ExchangeMisuse : public ExchangeTest {};

const auto makings = testing::Values(Making{IntraNode::messages, 1}, Making{IntraNode::sharedMemory, 1},
                                     Making{IntraNode::sharedMemory, 4});
std::string nameOf(const testing::TestParamInfo<Making>& info) {
  return (info.param.onNode == IntraNode::messages ? "Messages" : "SharedMemory") + std::to_string(info.param.columns);
}
INSTANTIATE_TEST_SUITE_P(Exchange, ExchangeTest, makings, nameOf);
INSTANTIATE_TEST_SUITE_P(Exchange, ExchangeMisuse, makings, nameOf);

TEST_P(ExchangeTest, BringsEveryValueAndSumsBackForAnyNumberOfColumnsInAnyOrder) {
  onHalos([](const Halo& halo) {
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    int salt = 0;
    for (const int columns : {1, 3, 2, 5, 1, 3}) {
      checkForward(halo, exchange, columns, ++salt);
      checkReverse(halo, exchange, columns);
    }
  });
}

TEST_P(ExchangeTest, WorksForEveryScalarType) {
  onHalos(
      [](const Halo& halo) {
        const auto check = [&](auto zero) {
          using Scalar = decltype(zero);
          Exchange<Scalar, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
          checkForward(halo, exchange, 2, 3);
          checkReverse(halo, exchange, 1);
        };
        check(float{});
        check(int{});
        check(0LL);
      },
      9);
}

TEST_P(ExchangeTest, WorksWithEveryPairing) {
  const int size = sizeOf(MPI_COMM_WORLD);
  for (const NamedTopology& where : topologiesFor(size)) {
    for (const Pairing pairing : allPairings()) {
      const Halo halo(MPI_COMM_WORLD, patternsFor(size, 21).front().patterns, where.topology, RouteChoice::threeStep,
                      pairing);
      Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
      checkForward(halo, exchange, 2, 5);
      checkReverse(halo, exchange, 2);
    }
  }
}

TEST_P(ExchangeTest, WorksOnEveryRoute) {
  const int size = sizeOf(MPI_COMM_WORLD);
  MpiSetupTransport transport(MPI_COMM_WORLD);
  std::size_t turn = 0;
  for (const NamedTopology& where : topologiesFor(size)) {
    const NodeTopology sockets = socketsOf(where.topology, 2);
    const std::vector<NamedPatterns> all = patternsFor(size, 31);
    for (const RouteChoice& spec : routesFor(size)) {  // each route meets every pattern, on one topology or another
      const NamedPatterns& what = all[turn++ % all.size()];
      SCOPED_TRACE(where.name + ", " + what.name);
      Halo halo(MPI_COMM_WORLD, what.patterns, where.topology, RouteChoice::standard);
      const auto route = makeRoute(spec, where.topology, Pairing::byVolume, &sockets);
      halo.plan =
          std::make_shared<const ExchangePlan>(buildPlans(transport, where.topology, *route, {halo.mine()}).front());
      Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
      checkForward(halo, exchange, 2, 5);
      checkReverse(halo, exchange, 2);
      checkForward(halo, exchange, 1, 6);
      checkReverse(halo, exchange, 1);
      const auto ghosts = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, -7)));
      exchange.begin(Space(), toDevice(halo.owned<double>(1, 7)), ghosts);
      EXPECT_NE(messagesAreStaged(), exchange.finishOnNode(Space(), ghosts));
      exchange.end(Space(), ghosts);
      EXPECT_EQ(halo.filled<double>(1, 7, -7), get(ghosts)) << halo.name();
    }
  }
}

TEST_P(ExchangeTest, ReverseGivesTheSameBitsWhateverArrivesFirst) {
  const int size = sizeOf(MPI_COMM_WORLD);
  for (const NamedTopology& where : topologiesFor(size)) {
    const Halo halo(MPI_COMM_WORLD, patternsFor(size, 17).at(1).patterns, where.topology, RouteChoice::threeStep);
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    Random values(static_cast<unsigned>(halo.rank));
    Random delays(static_cast<unsigned>(halo.rank) + 77);
    HostVector<double> numbers(2, std::vector<double>(halo.mine().numTarget));
    for (auto& column : numbers) {
      for (double& number : column) {
        number = values.unit() * (1 << values.below(20));
      }
    }
    const auto ghosts = toDevice(numbers);
    HostVector<double> first;
    for (int repeat = 0; repeat < 20; ++repeat) {
      const auto owned = toDevice(HostVector<double>(2, std::vector<double>(halo.mine().numOwned, 0.1)));
      usleep(static_cast<useconds_t>(delays.below(400)));
      exchange.beginReverse(Space(), ghosts);
      usleep(static_cast<useconds_t>(delays.below(400)));
      exchange.endReverse(Space(), owned);
      const HostVector<double> result = get(owned);
      first = repeat == 0 ? result : first;
      for (int j = 0; j < 2 && halo.mine().numOwned > 0; ++j) {
        EXPECT_EQ(0, std::memcmp(first[j].data(), result[j].data(), result[j].size() * sizeof(double)))
            << where.name << ", repeat " << repeat;
      }
    }
  }
}

TEST_P(ExchangeTest, AddsWhereAskedAndReplacesOtherwise) {
  onHalos([](const Halo& halo) {
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    const auto owned = toDevice(halo.owned<double>(2, 1));
    const auto ghosts = toDevice(HostVector<double>(2, std::vector<double>(halo.mine().numTarget, 1000)));
    exchange.forward(Space(), owned, ghosts, Combine::add);
    EXPECT_EQ(halo.filled<double>(2, 1, 1000, true), get(ghosts)) << halo.name();
    exchange.forward(Space(), owned, ghosts, Combine::insert);
    EXPECT_EQ(halo.filled<double>(2, 1, 1000, false), get(ghosts)) << halo.name();
    put(HostVector<double>(2, std::vector<double>(halo.mine().numTarget, -20)), ghosts);
    exchange.forward(Space(), owned, ghosts, Combine::absMax);
    HostVector<double> expected = halo.filled<double>(2, 1, -20);
    for (const ExchangePlan::Delivery& d : halo.plan->deliveries) {
      for (std::vector<double>& column : expected) {
        column[d.target] = std::max(20.0, column[d.target]);
      }
    }
    EXPECT_EQ(expected, get(ghosts)) << halo.name();
  });
}

TEST_P(ExchangeTest, FinishesValuesOfTheNodeFirstAndEachOnce) {
  onHalos([](const Halo& halo) {
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    for (const bool progressFirst : {false, true}) {
      const auto owned = toDevice(halo.owned<double>(1, 4));
      const auto ghosts = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 1000)));
      exchange.begin(Space(), owned);
      put(HostVector<double>(1, std::vector<double>(halo.mine().numOwned, -1)), owned);  // reusable on return
      while (progressFirst && !exchange.progress()) {
      }
      const bool finished = exchange.finishOnNode(Space(), ghosts, Combine::add);
      EXPECT_NE(messagesAreStaged(), finished);
      EXPECT_EQ(finished, exchange.finishOnNode(Space(), ghosts, Combine::add)) << "nothing is left to do";
      const HostVector<double> middle = get(ghosts);
      const HostVector<double> expected = halo.filled<double>(1, 4, 1000, true);
      for (const ExchangePlan::Delivery& d : halo.plan->deliveries) {
        const double now = d.onNode && finished ? expected[0][d.target] : 1000;
        EXPECT_EQ(now, middle[0][d.target]) << halo.name() << ", target " << d.target;
      }
      exchange.end(Space(), ghosts, Combine::add);
      EXPECT_EQ(expected, get(ghosts)) << halo.name();
    }
  });
}

TEST_P(ExchangeTest, ProgressAloneBringsAllValues) {
  onHalos([](const Halo& halo) {
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    const auto owned = toDevice(halo.owned<double>(1, 2));
    const auto ghosts = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 0)));
    EXPECT_TRUE(exchange.progress()) << "nothing is in flight";
    exchange.begin(Space(), owned);
    while (!exchange.progress()) {
    }
    MPI_Barrier(halo.comm);  // nobody needs end() of another rank to get there
    exchange.end(Space(), ghosts);
    EXPECT_EQ(halo.filled<double>(1, 2, 0), get(ghosts)) << halo.name();
    exchange.beginReverse(Space(), ghosts);
    while (!exchange.progress()) {
    }
    MPI_Barrier(halo.comm);
    exchange.endReverse(Space(), owned);
  });
}

TEST_P(ExchangeTest, MessagesMayArriveInTheTargetVector) {
  const int size = sizeOf(MPI_COMM_WORLD);
  for (const NamedTopology& where : topologiesFor(size)) {
    for (const NamedPatterns& what : patternsFor(size, 5)) {
      for (const bool gaps : {false, true}) {
        for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
          const Halo halo(MPI_COMM_WORLD, what.patterns, where.topology, route, Pairing::byVolume, gaps);
          Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
          const auto a = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, -7)));
          const auto b = toDevice(HostVector<double>(2, std::vector<double>(halo.mine().numTarget, -7)));
          for (int repeat = 0; repeat < 3; ++repeat) {
            exchange.begin(Space(), toDevice(halo.owned<double>(1, repeat)), a);
            if (repeat > 0) {
              exchange.progress();
              EXPECT_NE(messagesAreStaged(), exchange.finishOnNode(Space(), a));
            }
            exchange.end(Space(), a);
            EXPECT_EQ(halo.filled<double>(1, repeat, -7), get(a)) << halo.name() << ", " << what.name;
            exchange.begin(Space(), toDevice(halo.owned<double>(2, repeat)), b);
            exchange.end(Space(), b);
            EXPECT_EQ(halo.filled<double>(2, repeat, -7), get(b)) << halo.name() << ", " << what.name;
            checkForward(halo, exchange, 1, 50 + repeat);
            checkReverse(halo, exchange, 1);
          }
        }
      }
    }
  }
}

TEST_P(ExchangeTest, TwoInFlightAtOnceDoNotMix) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> a(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  Exchange<double, Device> b(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  Exchange<int, Device> c(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  const auto none = HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 0));
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto ownedA = toDevice(halo.owned<double>(1, 10 + repeat));
    const auto ownedB = toDevice(halo.owned<double>(1, 500 + repeat));
    const auto ownedC = toDevice(halo.owned<int>(1, 900 + repeat));
    const auto ghostsA = toDevice(none);
    const auto ghostsB = toDevice(none);
    const auto ghostsC = toDevice(HostVector<int>(1, std::vector<int>(halo.mine().numTarget, 0)));
    a.begin(Space(), ownedA);
    b.begin(Space(), ownedB);
    c.begin(Space(), ownedC);
    b.end(Space(), ghostsB);
    c.end(Space(), ghostsC);
    a.end(Space(), ghostsA);
    EXPECT_EQ(halo.filled<double>(1, 10 + repeat, 0), get(ghostsA));
    EXPECT_EQ(halo.filled<double>(1, 500 + repeat, 0), get(ghostsB));
    EXPECT_EQ(halo.filled<int>(1, 900 + repeat, 0), get(ghostsC));
  }
}

TEST_P(ExchangeTest, MessagesOfTheUserDoNotMeetOurs) {
  const Halo halo = denseHalo(2);
  const int size = sizeOf(halo.comm);
  Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  int token = -1;
  MPI_Request request;
  MPI_Irecv(&token, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, halo.comm, &request);
  checkForward(halo, exchange, 1, 1);
  const int mine = 4711;
  MPI_Send(&mine, 1, MPI_INT, (halo.rank + 1) % size, 1, halo.comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(4711, token);
}

TEST_P(ExchangeTest, CanBeMoved) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> first(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  checkForward(halo, first, 2, 1);
  Exchange<double, Device> second(std::move(first));
  checkForward(halo, second, 2, 2);
  checkReverse(halo, second, 3);
  Exchange<double, Device> third(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  third = std::move(second);
  checkForward(halo, third, 1, 3);
  EXPECT_EQ(halo.plan.get(), &third.plan());
}

TEST_P(ExchangeTest, CarriesLongMessages) {
  const int size = sizeOf(MPI_COMM_WORLD);
  const Halo halo = denseHalo(2, 40000 / (size * size) * 3);
  Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  checkForward(halo, exchange, 3, 1);
  const auto owned = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numOwned, 0)));
  const auto ghosts = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 1)));
  exchange.reverse(Space(), ghosts, owned);
  const std::vector<double> sums(halo.mine().numOwned, size - 1);
  EXPECT_EQ(sums, get(owned)[0]);
}

TEST_P(ExchangeTest, TakesViewsWithAStride) {
  onHalos([](const Halo& halo) {
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    const int numOwned = halo.mine().numOwned;
    const int numTarget = halo.mine().numTarget;
    const Vector<double> wideOwned("wide owned", numOwned + 5, 3);
    const Vector<double> wideGhosts("wide ghosts", numTarget + 4, 3);
    const auto owned = Kokkos::subview(wideOwned, std::make_pair(2, 2 + numOwned), Kokkos::ALL());
    const auto ghosts = Kokkos::subview(wideGhosts, std::make_pair(1, 1 + numTarget), Kokkos::ALL());
    const Vector<double> plain = toDevice(halo.owned<double>(3, 6));
    Kokkos::deep_copy(owned, plain);
    Kokkos::deep_copy(wideGhosts, -3.0);
    exchange.forward(Space(), owned, ghosts);
    const HostVector<double> expected = halo.filled<double>(3, 6, -3);
    const HostVector<double> found = get(wideGhosts);
    for (int j = 0; j < 3; ++j) {
      EXPECT_EQ(-3, found[j][0]);
      EXPECT_EQ(expected[j], std::vector<double>(found[j].begin() + 1, found[j].begin() + 1 + numTarget))
          << halo.name();
      EXPECT_EQ(std::vector<double>(3, -3.0), std::vector<double>(found[j].begin() + 1 + numTarget, found[j].end()));
    }
  });
}

TEST_P(ExchangeTest, WorksOnPartsOfTheWorld) {
  const int rank = rankIn(MPI_COMM_WORLD);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  for (const int ppn : {1, 2}) {
    const Halo halo = denseHalo(ppn, 2, half);
    Exchange<double, Device> exchange(half, halo.plan, GetParam().columns, GetParam().onNode);
    checkForward(halo, exchange, 2, 1 + rank % 2);
    checkReverse(halo, exchange, 2);
  }
  MPI_Comm_free(&half);
  const Halo alone = denseHalo(1, 2, MPI_COMM_SELF);
  Exchange<double, Device> exchange(MPI_COMM_SELF, alone.plan, GetParam().columns, GetParam().onNode);
  checkForward(alone, exchange, 2, 1);
  checkReverse(alone, exchange, 2);
}

TEST_P(ExchangeTest, OutlivesTheCommunicatorItWasMadeOn) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  const Halo halo = denseHalo(2, 2, mine);
  Exchange<double, Device> exchange(mine, halo.plan, GetParam().columns, GetParam().onNode);
  MPI_Comm_free(&mine);
  checkForward(halo, exchange, 2, 1);
  checkReverse(halo, exchange, 1);
}

/// As where one rank throws and the others go on with what they have.
TEST_P(ExchangeTest, IsDestroyedWithoutWaitingForTheOtherRanks) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  const Halo halo = denseHalo(2, 2, mine);
  auto exchange = std::make_unique<Exchange<double, Device>>(mine, halo.plan, GetParam().columns, GetParam().onNode);
  checkForward(halo, *exchange, 1, 1);
  MPI_Comm_free(&mine);
  int token = 0;
  if (halo.rank == 0) {
    exchange.reset();
  }
  MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
  exchange.reset();
}

TEST_P(ExchangeTest, SharesMemoryWhereItWasAskedTo) {
  const Halo halo = denseHalo(2);
  const Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  const bool possible = Exchange<double, Device>::canShareMemory();  // the tests run on one machine
  EXPECT_EQ(possible ? GetParam().onNode : IntraNode::messages, exchange.intraNode());
}

TEST_P(ExchangeTest, SaysWhatItHolds) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  const std::size_t values = halo.plan->sendLength() + halo.plan->receiveLength();
  const std::size_t room = GetParam().onNode == IntraNode::messages ? 1 : GetParam().columns;
  const std::size_t before = exchange.memoryBytes();
  EXPECT_GE(before, halo.plan->memoryBytes() + room * values * sizeof(double));
  checkForward(halo, exchange, 1, 1);
  const std::size_t forward = exchange.memoryBytes();
  EXPECT_GE(forward, before + values * sizeof(int)) << "at least an index for each value it packs and unpacks";
  checkReverse(halo, exchange, 1);
  EXPECT_GT(exchange.memoryBytes(), forward);
  checkForward(halo, exchange, 7, 1);  // needs more room than was asked for
  const std::size_t wide = exchange.memoryBytes();
  EXPECT_GE(wide, halo.plan->memoryBytes() + 7 * values * sizeof(double));
  checkForward(halo, exchange, 7, 1);
  EXPECT_EQ(exchange.memoryBytes(), wide);
}

TEST_P(ExchangeTest, ManyOnOneCommunicatorComeAndGo) {
  const Halo halo = denseHalo(3, 1);
  std::vector<std::unique_ptr<Exchange<double, Device>>> live(7);
  for (int k = 0; k < 40; ++k) {
    live[k % 7] =
        std::make_unique<Exchange<double, Device>>(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    checkForward(halo, *live[(k / 2) % (k < 7 ? k + 1 : 7)], 1, k);
  }
}

/// Takes all tags of a communicator but `count`.
std::vector<TagRange> leaveTags(Komvos::Impl::PrivateComm& comm, int count) {
  const TagRange room = comm.takeTags(count);
  std::vector<TagRange> taken;
  for (int part = 1 << 30; part > 0; part /= 2) {
    try {
      taken.push_back(comm.takeTags(part));
    } catch (const Komvos::Error&) {  // fewer are left
    }
  }
  return taken;
}

/// Begins all exchanges, in the opposite order on odd ranks, and looks at what arrives in each.
void checkAllAtOnce(const Halo& halo, const std::vector<Exchange<double, Device>*>& exchanges) {
  const int count = static_cast<int>(exchanges.size());
  std::vector<Vector<double>> owned;
  std::vector<Vector<double>> ghosts;
  for (int k = 0; k < count; ++k) {
    owned.push_back(toDevice(halo.owned<double>(1, 1000 * k)));
    ghosts.push_back(toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, -7))));
  }
  for (int k = 0; k < count; ++k) {
    const int turn = halo.rank % 2 == 0 ? k : count - 1 - k;
    exchanges[turn]->begin(Space(), owned[turn]);
  }
  for (int k = 0; k < count; ++k) {
    exchanges[k]->end(Space(), ghosts[k]);
    EXPECT_EQ(halo.filled<double>(1, 1000 * k, -7), get(ghosts[k])) << "exchange " << k;
  }
}

TEST_P(ExchangeTest, KeepsItsTagsWhileOthersComeAndGoInAnotherOrderOnEachRank) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  {
    const Halo halo = denseHalo(2, 2, mine);
    const auto make = [&] {
      return std::make_unique<Exchange<double, Device>>(mine, halo.plan, GetParam().columns, GetParam().onNode);
    };
    const auto kept = make();
    const auto ours = Komvos::Impl::PrivateComm::of(mine);
    const int roomFor = 4;
    const std::vector<TagRange> others = leaveTags(*ours, roomFor * 2 * halo.plan->numStages);
    std::unique_ptr<Exchange<double, Device>> live[3] = {make(), make(), make()};
    for (int round = 0; round < 12; ++round) {
      const int early = (round + halo.rank) % 2;
      live[early].reset();
      auto another = make();
      live[1 - early].reset();
      checkAllAtOnce(halo, {kept.get(), another.get(), live[2].get()});
      live[0] = std::move(another);
      live[1] = make();
    }
    const auto last = make();
    EXPECT_THROW(make(), Komvos::Error) << "all tags are in use";
    checkAllAtOnce(halo, {live[0].get(), kept.get(), live[1].get(), live[2].get(), last.get()});
  }
  MPI_Comm_free(&mine);
}

// --- misuse ----------------------------------------------------------------------------------------------------------

template <class ErrorType, class Work>
std::string errorOf(const Work& work) {
  try {
    work();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "no error";
}

TEST_P(ExchangeMisuse, CallsOutOfOrderAreRefusedAndDoNoHarm) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  const auto owned = toDevice(halo.owned<double>(1, 8));
  const auto ghosts = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 0)));
  using Komvos::Error;
  const std::string who = "(rank " + std::to_string(halo.rank) + ")";
  EXPECT_NE(std::string::npos, errorOf<Error>([&] { exchange.end(Space(), ghosts); }).find(who));
  EXPECT_NE(std::string::npos, errorOf<Error>([&] { exchange.endReverse(Space(), owned); }).find(who));
  const auto finishOnNode = [&] { static_cast<void>(exchange.finishOnNode(Space(), ghosts)); };
  EXPECT_NE(std::string::npos, errorOf<Error>(finishOnNode).find(who));
  exchange.begin(Space(), owned);
  EXPECT_NE(std::string::npos, errorOf<Error>([&] { exchange.begin(Space(), owned); }).find("in flight"));
  EXPECT_NE(std::string::npos, errorOf<Error>([&] { exchange.beginReverse(Space(), ghosts); }).find("in flight"));
  EXPECT_NE(std::string::npos, errorOf<Error>([&] { exchange.endReverse(Space(), owned); }).find(who));
  exchange.end(Space(), ghosts);
  EXPECT_EQ(halo.filled<double>(1, 8, 0), get(ghosts));
  EXPECT_NE(std::string::npos, errorOf<Error>([&] { exchange.end(Space(), ghosts); }).find(who));
  exchange.beginReverse(Space(), ghosts);
  EXPECT_NE(std::string::npos, errorOf<Error>(finishOnNode).find(who));
  exchange.endReverse(Space(), owned);
  checkForward(halo, exchange, 1, 3);
}

TEST_P(ExchangeMisuse, ATargetOfAnotherShapeIsRefusedAfterTheMessagesArrived) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  const int numTarget = halo.mine().numTarget;
  const auto owned = toDevice(halo.owned<double>(2, 8));
  const auto shorter = Vector<double>("shorter", numTarget - 1, 2);
  const auto narrower = Vector<double>("narrower", numTarget, 1);
  exchange.begin(Space(), owned);
  const std::string text = errorOf<PlanMismatch>([&] { exchange.end(Space(), shorter); });
  const std::string numbers = "the vector is " + std::to_string(numTarget - 1) + " x 2, this exchange needs " +
                              std::to_string(numTarget) + " x 2 (rank " + std::to_string(halo.rank) + ")";
  EXPECT_NE(std::string::npos, text.find(numbers)) << text;
  exchange.begin(Space(), owned);
  EXPECT_THROW(exchange.end(Space(), narrower), PlanMismatch);
  exchange.begin(Space(), owned);
  EXPECT_THROW(static_cast<void>(exchange.finishOnNode(Space(), shorter)), PlanMismatch);
  checkForward(halo, exchange, 2, 3);
}

TEST_P(ExchangeMisuse, ValuesThatArriveInPlaceMustBeTakenThere) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  const auto owned = toDevice(halo.owned<double>(1, 8));
  const auto ghosts = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 0)));
  const auto others = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 0)));
  if (messagesAreStaged()) {
    GTEST_SKIP() << "no value arrives in place";
  }
  exchange.begin(Space(), owned, ghosts);
  EXPECT_NE("no error", errorOf<PlanMismatch>([&] { static_cast<void>(exchange.finishOnNode(Space(), others)); }));
  EXPECT_NE("no error", errorOf<Komvos::Error>([&] { exchange.end(Space(), others); })) << "it is over";
  exchange.begin(Space(), owned, ghosts);
  EXPECT_NE("no error", errorOf<PlanMismatch>([&] { exchange.end(Space(), others); }));
  exchange.begin(Space(), owned, ghosts);
  EXPECT_NE("no error", errorOf<PlanMismatch>([&] { exchange.end(Space(), ghosts, Combine::add); }));
  exchange.begin(Space(), owned, ghosts);
  exchange.end(Space(), ghosts);
  EXPECT_EQ(halo.filled<double>(1, 8, 0), get(ghosts));
  checkForward(halo, exchange, 1, 3);
}

TEST_P(ExchangeMisuse, AVectorToFillOfTheWrongLengthIsRefusedBeforeAMessageArrivesInIt) {
  const Halo halo = denseHalo(2);
  Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
  const auto owned = toDevice(halo.owned<double>(1, 8));
  const auto longer = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget + 1, 0)));
  const std::string error = errorOf<PlanMismatch>([&] { exchange.begin(Space(), owned, longer); });
  EXPECT_NE(std::string::npos,
            error.find("the vector to fill is " + std::to_string(halo.mine().numTarget + 1) + " x 1"))
      << error;
  checkForward(halo, exchange, 1, 3);
}

/// Runs `work(isGuilty)` for each guilty rank and checks who throws; then the exchange must work again.
template <class Work>
void checkAbandoned(const Halo& halo, Exchange<double, Device>& exchange, bool reverse, const Work& work) {
  const auto plans = halo.allPlans();
  const int size = static_cast<int>(plans.size());
  for (int guilty = 0; guilty < size; guilty += std::max(1, size / 3)) {
    const Victims victims = victimsOf(plans, guilty, reverse);
    const std::string text = errorOf<PlanMismatch>([&] { work(halo.rank == guilty); });
    const std::string where = halo.name() + ", guilty rank " + std::to_string(guilty) + ": " + text;
    if (halo.rank == guilty) {
      EXPECT_NE("no error", text) << where;
    } else if (victims.sure.count(halo.rank) != 0) {
      EXPECT_NE(std::string::npos, text.find("abandoned")) << where;
      EXPECT_NE(std::string::npos, text.find("(rank " + std::to_string(halo.rank) + ")")) << where;
    } else if (victims.possible.count(halo.rank) == 0) {
      EXPECT_EQ("no error", text) << where;
    }
    checkForward(halo, exchange, 3, guilty);
    checkReverse(halo, exchange, 3);
  }
}

TEST_P(ExchangeMisuse, AVectorOfAnotherShapeOnOneRankIsAnErrorWhereItMattersAndNobodyWaits) {
  onHalos([](const Halo& halo) {
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    const auto owned = toDevice(halo.owned<double>(3, 8));
    const auto ghosts = toDevice(HostVector<double>(3, std::vector<double>(halo.mine().numTarget, 0)));
    checkAbandoned(halo, exchange, false, [&](bool guilty) {
      exchange.begin(Space(), guilty ? Vector<double>("too long", halo.mine().numOwned + 1, 3) : owned);
      exchange.end(Space(), ghosts);
      EXPECT_EQ(halo.filled<double>(3, 8, 0), get(ghosts)) << halo.name();
    });
    checkAbandoned(halo, exchange, true, [&](bool guilty) {
      exchange.beginReverse(Space(), guilty ? Vector<double>("too long", halo.mine().numTarget + 1, 3) : ghosts);
      exchange.endReverse(Space(), owned);
    });
  });
}

TEST_P(ExchangeMisuse, AnAbandonedExchangeIsAnErrorWhereItMattersOnEveryRoute) {
  for (const RouteChoice& route : routesFor(sizeOf(MPI_COMM_WORLD))) {
    const Halo halo = denseHalo(2, 3, MPI_COMM_WORLD, route);
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    const auto owned = toDevice(halo.owned<double>(1, 8));
    const auto ghosts = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 0)));
    checkAbandoned(halo, exchange, false, [&](bool guilty) {
      if (guilty) {
        exchange.abandonForward();
        throw PlanMismatch("abandoned on purpose");
      }
      exchange.forward(Space(), owned, ghosts);
    });
    checkAbandoned(halo, exchange, true, [&](bool guilty) {
      if (guilty) {
        exchange.abandonReverse();
        throw PlanMismatch("abandoned on purpose");
      }
      exchange.reverse(Space(), ghosts, owned);
    });
  }
}

TEST_P(ExchangeMisuse, ARankThatThrowsBetweenBeginAndEndStillLetsTheOthersHaveTheirs) {
  const int size = sizeOf(MPI_COMM_WORLD);
  for (const RouteChoice& route : routesFor(size)) {
    const Halo halo = denseHalo(2, 3, MPI_COMM_WORLD, route);
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    for (int guilty = 0; guilty < size; guilty += std::max(1, size / 3)) {
      const auto owned = toDevice(halo.owned<double>(1, guilty));
      const auto ghosts = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numTarget, 0)));
      exchange.begin(Space(), owned);
      if (halo.rank == guilty) {
        exchange.abandonForward();
        EXPECT_NE("no error", errorOf<Komvos::Error>([&] { exchange.end(Space(), ghosts); })) << "it is over";
      } else {
        exchange.end(Space(), ghosts);
        EXPECT_EQ(halo.filled<double>(1, guilty, 0), get(ghosts)) << halo.name();
      }
      const auto sums = toDevice(HostVector<double>(1, std::vector<double>(halo.mine().numOwned, 100)));
      exchange.beginReverse(Space(), toDevice(halo.ghosts<double>(1)));
      if (halo.rank == guilty) {
        exchange.abandonReverse();
      } else {
        exchange.endReverse(Space(), sums);
        EXPECT_EQ(halo.combined<double>(1, 100, Combine::add), get(sums)) << halo.name();
      }
      checkForward(halo, exchange, 3, 5);
      checkReverse(halo, exchange, 3);
    }
  }
}

TEST_P(ExchangeMisuse, AnExchangeThatIsDestroyedInFlightIsCompletedFirst) {
  const int size = sizeOf(MPI_COMM_WORLD);
  for (const RouteChoice& route : routesFor(size)) {
    const Halo halo = denseHalo(2, 3, MPI_COMM_WORLD, route);
    for (int guilty = 0; guilty < size; guilty += std::max(1, size / 3)) {
      const auto owned = toDevice(halo.owned<double>(2, guilty));
      const auto ghosts = toDevice(HostVector<double>(2, std::vector<double>(halo.mine().numTarget, 0)));
      {
        Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
        exchange.begin(Space(), owned);
        if (halo.rank != guilty) {
          exchange.end(Space(), ghosts);
          EXPECT_EQ(halo.filled<double>(2, guilty, 0), get(ghosts)) << halo.name();
        }
      }
      Exchange<double, Device> next(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
      checkForward(halo, next, 2, 5);
      checkReverse(halo, next, 1);
    }
  }
}

TEST_P(ExchangeMisuse, AnotherNumberOfColumnsOnOneRankIsAnErrorAndNobodyWaits) {
  onHalos([](const Halo& halo) {
    Exchange<double, Device> exchange(halo.comm, halo.plan, GetParam().columns, GetParam().onNode);
    const int size = sizeOf(halo.comm);
    for (const int columns : {1, 2, 4}) {
      const int guilty = columns % size;
      const int mine = halo.rank == guilty ? columns : 3;
      const auto owned = toDevice(halo.owned<double>(mine, 8));
      const auto ghosts = toDevice(HostVector<double>(mine, std::vector<double>(halo.mine().numTarget, 0)));
      const std::string text = errorOf<PlanMismatch>([&] { exchange.forward(Space(), owned, ghosts); });
      bool direct = false;  // gets a message straight from the guilty rank, or is it and gets one at all
      for (const PlanMessage& m : halo.plan->receives) {
        direct = direct || m.peer == guilty || halo.rank == guilty;
      }
      if (direct) {
        EXPECT_NE("no error", text) << halo.name() << ", " << columns << " columns";
      }
      checkForward(halo, exchange, 3, columns);
    }
  });
}

}  // namespace
