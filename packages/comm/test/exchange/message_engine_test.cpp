// The message engine on plain host memory, by MPI messages and by shared memory: right values on every route, fixed
// sums, and errors that leave nobody waiting. No Kokkos; exchange_test.cpp has the same for views.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Backoff.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_ProgressHook.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_SetupTransport.hpp"
#include "support/mpi_support.hpp"
#include "support/plain_exchange.hpp"
#include "support/test_patterns.hpp"
#include "support/victims.hpp"

namespace {

using namespace KomvosTest;
using Komvos::ExchangePlan;
using Komvos::NodeTopology;
using Komvos::Pairing;
using Komvos::Pattern;
using Komvos::PlanMismatch;
using Komvos::RouteChoice;
using Komvos::ValueId;

/// A halo of all ranks of MPI_COMM_WORLD, and the plan of this one.
class Halo {
 public:
  Halo(std::vector<Pattern> patterns, const NodeTopology& topology, const RouteChoice& choice)
      : rank_(worldRank()), patterns_(std::move(patterns)), topology_(topology), choice_(choice) {
    Komvos::MpiSetupTransport transport(MPI_COMM_WORLD);
    plan_ = std::make_shared<const ExchangePlan>(buildOver(transport, {patterns_[rank_]}).front());
  }

  std::string name() const { return plan_->route + " on " + topology_.describe(); }
  int rank() const { return rank_; }
  const std::shared_ptr<const ExchangePlan>& plan() const { return plan_; }
  std::vector<ExchangePlan> plansOfAllRanks() const {
    Komvos::InMemorySetupTransport transport(topology_.numRanks());
    return buildOver(transport, patterns_);
  }

  template <class Value>
  std::vector<Value> owned(int columns, int salt) const {
    std::vector<Value> values;
    for (int i = 0; i < mine().numOwned; ++i) {
      for (int j = 0; j < columns; ++j) {
        values.push_back(valueOf<Value>({rank_, i}, j, salt));
      }
    }
    return values;
  }

  template <class Value>
  std::vector<Value> targets(int columns, Value background) const {
    return std::vector<Value>(static_cast<std::size_t>(mine().numTarget) * columns, background);
  }

  /// Targets after a forward exchange of owned(columns, salt), elsewhere `background`.
  template <class Value>
  std::vector<Value> filled(int columns, int salt, Value background) const {
    std::vector<Value> values = targets(columns, background);
    for (const Pattern::Receive& r : mine().receives) {
      for (int j = 0; j < columns; ++j) {
        values[static_cast<std::size_t>(r.target) * columns + j] = valueOf<Value>(r.value, j, salt);
      }
    }
    return values;
  }

  /// Numbers for the targets, to be summed into their owners.
  template <class Value>
  std::vector<Value> ghosts(int columns, int salt) const {
    std::vector<Value> values;
    for (int t = 0; t < mine().numTarget; ++t) {
      for (int j = 0; j < columns; ++j) {
        values.push_back(targetValue<Value>(rank_, t, j, salt));
      }
    }
    return values;
  }

  /// Owned values after a reverse exchange of ghosts(columns, salt) of all ranks onto `background`.
  template <class Value>
  std::vector<Value> summed(int columns, int salt, Value background) const {
    std::vector<Value> values(static_cast<std::size_t>(mine().numOwned) * columns, background);
    for (const Pattern& pattern : patterns_) {
      for (const Pattern::Receive& r : pattern.receives) {
        for (int j = 0; j < columns && r.value.owner == rank_; ++j) {
          values[static_cast<std::size_t>(r.value.local) * columns + j] +=
              targetValue<Value>(pattern.rank, r.target, j, salt);
        }
      }
    }
    return values;
  }

 private:
  const Pattern& mine() const { return patterns_[rank_]; }

  std::vector<ExchangePlan> buildOver(Komvos::SetupTransport& transport, const std::vector<Pattern>& patterns) const {
    const NodeTopology sockets = socketsOf(topology_, 2);
    const auto route = Komvos::makeRoute(choice_, topology_, Pairing::byVolume, &sockets);
    return buildPlans(transport, topology_, *route, patterns);
  }

  template <class Value>
  static Value valueOf(const ValueId& id, int column, int salt) {
    return static_cast<Value>(id.owner * 997 + id.local * 13 + column * 5 + salt);
  }
  template <class Value>
  static Value targetValue(int rank, int target, int column, int salt) {
    return static_cast<Value>(1 + rank * 31 + target * 3 + column + salt);
  }

  int rank_;
  std::vector<Pattern> patterns_;
  NodeTopology topology_;
  RouteChoice choice_;
  std::shared_ptr<const ExchangePlan> plan_;
};

Halo denseHalo(const RouteChoice& route, int ranksPerNode = 2) {
  const Needs halo = allToAll(worldSize(), 3);
  return Halo(KomvosTest::patternsFromNeeds(halo.owner, halo.needs), NodeTopology::uniform(worldSize(), ranksPerNode),
              route);
}

template <class Value>
void checkForward(const Halo& halo, PlainExchange<Value>& exchange, int columns, int salt, bool inPlace = false) {
  std::vector<Value> targets = halo.targets<Value>(columns, Value{-7});
  if (inPlace) {
    exchange.forwardInPlace(columns, halo.owned<Value>(columns, salt), targets);
  } else {
    exchange.forward(columns, halo.owned<Value>(columns, salt), targets);
  }
  EXPECT_EQ(halo.filled<Value>(columns, salt, Value{-7}), targets) << halo.name() << ", " << columns << " columns";
}

template <class Value>
void checkReverse(const Halo& halo, PlainExchange<Value>& exchange, int columns, int salt) {
  std::vector<Value> owned(halo.owned<Value>(columns, 0).size(), Value{100});
  exchange.reverse(columns, halo.ghosts<Value>(columns, salt), owned);
  EXPECT_EQ(halo.summed<Value>(columns, salt, Value{100}), owned) << halo.name() << ", " << columns << " columns";
}

/// \param columns that find room in shared memory; 0: everything goes by MPI messages
class MessageEngine : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(By, MessageEngine, testing::Values(0, 1, 4), [](const testing::TestParamInfo<int>& info) {
  return info.param == 0 ? std::string("Messages") : "SharedMemory" + std::to_string(info.param);
});

TEST_P(MessageEngine, BringsEveryValueAndSumsBackOnEveryRoute) {
  const int size = worldSize();
  std::size_t turn = 0;
  for (const NamedTopology& where : topologiesFor(size)) {
    const std::vector<NamedPatterns> all = patternsFor(size, 31);
    for (const RouteChoice& route : routesFor(size)) {  // each route meets every pattern, on one topology or another
      const NamedPatterns& what = all[turn++ % all.size()];
      SCOPED_TRACE(where.name + ", " + what.name);
      const Halo halo(what.patterns, where.topology, route);
      PlainExchange<long long> exchange(MPI_COMM_WORLD, halo.plan(), GetParam());
      const auto& sends = halo.plan()->sends;
      const auto onNode = std::count_if(sends.begin(), sends.end(), [](const auto& send) { return send.onNode; });
      EXPECT_EQ(GetParam() > 0, exchange.sharesMemory()) << "all ranks of a test share it";
      EXPECT_EQ(GetParam() > 0 ? static_cast<int>(onNode) : 0, exchange.numSharedMessages());
      for (const int columns : {1, 3, 5, 1}) {
        checkForward(halo, exchange, columns, 10 * columns);
        checkForward(halo, exchange, columns, 11 * columns, true);
        checkReverse(halo, exchange, columns, columns);
      }
      PlainExchange<int> narrow(MPI_COMM_WORLD, halo.plan(), GetParam());
      checkForward(halo, narrow, 1, 3, true);
      checkReverse(halo, narrow, 1, 4);
    }
  }
}

TEST_P(MessageEngine, KeepsManyRoundsApart) {
  for (const char* const route : {"standard", "three-step", "split:1"}) {
    const Halo halo = denseHalo(Komvos::parseRoute(route));
    PlainExchange<long long> exchange(MPI_COMM_WORLD, halo.plan(), GetParam());
    Random common(5);
    Random delays(100 + static_cast<unsigned>(halo.rank()));
    for (int round = 0; round < 60; ++round) {
      if (delays.below(8) == 0) {
        usleep(static_cast<useconds_t>(delays.below(300)));
      }
      const int columns = 1 + common.below(3);
      if (common.below(2) == 0) {
        checkForward(halo, exchange, columns, round, common.below(2) == 0);
      } else {
        checkReverse(halo, exchange, columns, round);
      }
    }
  }
}

TEST_P(MessageEngine, ProgressAloneBringsAllValues) {
  for (const RouteChoice& route : routesFor(worldSize())) {
    const Halo halo = denseHalo(route);
    PlainExchange<long long> exchange(MPI_COMM_WORLD, halo.plan(), GetParam());
    std::vector<long long> targets = halo.targets(1, -7LL);
    exchange.begin(Direction::forward, 1, halo.owned<long long>(1, 2));
    while (!exchange.progress()) {
    }
    MPI_Barrier(MPI_COMM_WORLD);  // nobody needs end() of another rank to get there
    exchange.end(targets, false);
    EXPECT_EQ(halo.filled(1, 2, -7LL), targets) << halo.name();
  }
}

TEST_P(MessageEngine, WaitsForNothingOnceAllHasArrivedAlsoUnderAHook) {
  Komvos::Impl::ProgressHook hook([] {});
  hook.switchOn(true);
  for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
    const Halo halo = denseHalo(route);
    PlainExchange<long long> exchange(MPI_COMM_WORLD, halo.plan(), GetParam());
    std::vector<long long> targets = halo.targets<long long>(1, -7);
    exchange.begin(Direction::forward, 1, halo.owned<long long>(1, 3));
    while (!exchange.progress()) {
    }
    exchange.waitForMore();
    exchange.end(targets, false);
    EXPECT_EQ(halo.filled<long long>(1, 3, -7), targets) << halo.name();
  }
}

TEST_P(MessageEngine, SeveralInFlightAtOnceDoNotMix) {
  const Halo halo = denseHalo(RouteChoice::threeStep);
  const int count = 4;
  std::vector<std::unique_ptr<PlainExchange<long long>>> exchanges;
  for (int k = 0; k < count; ++k) {
    exchanges.push_back(std::make_unique<PlainExchange<long long>>(MPI_COMM_WORLD, halo.plan(), GetParam()));
  }
  for (int round = 0; round < 5; ++round) {
    std::vector<std::vector<long long>> targets(count, halo.targets(1, -7LL));
    for (int k = 0; k < count; ++k) {  // in another order on every other rank
      const int turn = halo.rank() % 2 == 0 ? k : count - 1 - k;
      exchanges[turn]->begin(Direction::forward, 1, halo.owned<long long>(1, 1000 * turn + round));
    }
    for (int k = 0; k < count; ++k) {
      exchanges[k]->end(targets[k], false);
      EXPECT_EQ(halo.filled(1, 1000 * k + round, -7LL), targets[k]) << "exchange " << k;
    }
  }
}

TEST_P(MessageEngine, ReverseGivesTheSameBitsWhateverArrivesFirst) {
  const Halo halo = denseHalo(RouteChoice::threeStep);
  PlainExchange<double> exchange(MPI_COMM_WORLD, halo.plan(), GetParam());
  Random values(static_cast<unsigned>(halo.rank()));
  Random delays(77 + static_cast<unsigned>(halo.rank()));
  std::vector<double> ghosts = halo.targets(1, 0.0);
  std::generate(ghosts.begin(), ghosts.end(), [&] { return values.unit() * (1 << values.below(20)); });
  std::vector<double> first;
  for (int repeat = 0; repeat < 10; ++repeat) {
    std::vector<double> owned(halo.owned<double>(1, 0).size(), 0.1);
    usleep(static_cast<useconds_t>(delays.below(400)));
    exchange.begin(Direction::reverse, 1, ghosts);
    usleep(static_cast<useconds_t>(delays.below(400)));
    exchange.end(owned, true);
    first = repeat == 0 ? owned : first;
    EXPECT_EQ(first, owned) << "repeat " << repeat;
  }
}

/// The error of `work`, or "no error".
template <class Work>
std::string mismatchOf(const Work& work) {
  try {
    work();
  } catch (const PlanMismatch& error) {
    return error.what();
  }
  return "no error";
}

/// Lets each rank in turn be guilty: `guiltyPart` does its part of one exchange. Those that cannot have got their
/// values throw, those that do not depend on it have the right ones, and the next exchanges work.
template <class GuiltyPart>
void checkGuilty(const Halo& halo, Direction direction, const GuiltyPart& guiltyPart) {
  const bool reverse = direction == Direction::reverse;
  const std::vector<ExchangePlan> plans = halo.plansOfAllRanks();
  PlainExchange<long long> exchange(MPI_COMM_WORLD, halo.plan(), MessageEngine::GetParam());
  const int size = worldSize();
  for (int guilty = 0; guilty < size; guilty += std::max(1, size / 3)) {
    const std::string where =
        halo.name() + (reverse ? ", reverse" : ", forward") + ", guilty " + std::to_string(guilty);
    if (halo.rank() == guilty) {
      guiltyPart(exchange);
    } else {
      const Victims victims = victimsOf(plans, guilty, reverse);
      std::vector<long long> target = reverse ? halo.owned<long long>(1, 0) : halo.targets(1, -7LL);
      const std::string text = mismatchOf([&] {
        exchange.begin(direction, 1, reverse ? halo.ghosts<long long>(1, 6) : halo.owned<long long>(1, 6));
        exchange.end(target, reverse);
      });
      if (victims.sure.count(halo.rank()) != 0) {
        EXPECT_NE(std::string::npos, text.find("abandoned")) << where << ": " << text;
        EXPECT_NE(std::string::npos, text.find("(rank " + std::to_string(halo.rank()) + ")")) << where << ": " << text;
      } else if (victims.possible.count(halo.rank()) == 0) {
        EXPECT_EQ("no error", text) << where;
        EXPECT_TRUE(reverse || target == halo.filled(1, 6, -7LL)) << where;
      }
    }
    checkForward(halo, exchange, 3, guilty);
    checkReverse(halo, exchange, 1, guilty);
  }
}

TEST_P(MessageEngine, ARankThatCannotTakePartIsAnErrorWhereItMattersAndNobodyWaits) {
  for (const RouteChoice& route : routesFor(worldSize())) {
    const Halo halo = denseHalo(route);
    for (const Direction direction : Komvos::Impl::bothDirections) {
      checkGuilty(halo, direction, [&](PlainExchange<long long>& exchange) { exchange.abandon(direction); });
    }
  }
}

TEST_P(MessageEngine, ARankThatFailsToPackIsAnErrorWhereItMattersAndNobodyWaits) {
  for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
    const Halo halo = denseHalo(route);
    checkGuilty(halo, Direction::forward, [&](PlainExchange<long long>& exchange) {
      std::vector<long long> targets = halo.targets(1, -7LL);
      const std::string text = mismatchOf([&] {
        exchange.beginWithoutValues(Direction::forward, 1);
        exchange.end(targets, false);
      });
      EXPECT_NE(std::string::npos, text.find("on purpose")) << text;
    });
  }
}

/// Messages that are too short, and too long, for the receives that were posted.
TEST_P(MessageEngine, AnotherWidthOnOneRankIsAnErrorThereAndNextToItAndNobodyWaits) {
  const int size = worldSize();
  for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
    const Halo halo = denseHalo(route);
    PlainExchange<long long> exchange(MPI_COMM_WORLD, halo.plan(), GetParam());
    for (const int columns : {1, 2, 4, 5}) {
      const int guilty = columns % size;
      const int mine = halo.rank() == guilty ? columns : 3;
      std::vector<long long> targets = halo.targets(mine, -7LL);
      const std::string text = mismatchOf([&] { exchange.forward(mine, halo.owned<long long>(mine, 8), targets); });
      const auto& receives = halo.plan()->receives;
      const bool direct = std::any_of(receives.begin(), receives.end(), [&](const Komvos::PlanMessage& m) {
        return m.peer == guilty || halo.rank() == guilty;
      });
      if (direct) {
        EXPECT_NE("no error", text) << halo.name() << ", " << columns << " columns";
      }
      if (columns > 3 && size > 1 && halo.rank() != guilty && route == RouteChoice::standard && GetParam() == 0) {
        EXPECT_NE(std::string::npos, text.find("too many values")) << text;
      }
      checkForward(halo, exchange, 3, columns);
      checkReverse(halo, exchange, 2, columns);
    }
  }
}

/// Destroyed after MPI_Finalize, with requests and shared memory of its own: it must leave them alone.
TEST_P(MessageEngine, MayOutliveMpi) {
  static std::vector<std::unique_ptr<PlainExchange<long long>>> kept;
  const Halo halo = denseHalo(RouteChoice::twoStep);
  kept.push_back(std::make_unique<PlainExchange<long long>>(MPI_COMM_WORLD, halo.plan(), GetParam()));
  checkForward(halo, *kept.back(), 1, 1);
  checkReverse(halo, *kept.back(), 2, 1);
}

/// Rank 0 needs nothing; every other rank needs so many values of rank 0 that MPI does not buffer them.
std::vector<Pattern> oneSource(int size, int values) {
  std::vector<Pattern> patterns(size);
  for (int rank = 0; rank < size; ++rank) {
    Pattern& pattern = patterns[rank];
    pattern.rank = rank;
    pattern.numOwned = rank == 0 ? values : 0;
    pattern.numTarget = rank == 0 ? 0 : values;
    for (int i = 0; i < values; ++i) {
      if (rank > 0) {
        pattern.receives.push_back({{0, i}, i});
      }
      for (int to = 1; rank == 0 && to < size; ++to) {
        pattern.sends.push_back({to, i});
      }
    }
  }
  for (Pattern& pattern : patterns) {
    pattern.normalize();
  }
  return patterns;
}

/// Through ctest, with the setting on and off. A hand-made run without it leaves the choice to mpirun.
TEST(Backoff, KnowsWhetherMpiYields) {
#ifdef OPEN_MPI
  const char* const set = std::getenv("OMPI_MCA_mpi_yield_when_idle");
  if (set == nullptr) {
    GTEST_SKIP() << "OMPI_MCA_mpi_yield_when_idle is not set";
  }
  EXPECT_EQ(std::string(set) == "1", Komvos::Impl::mpiYieldsWhenIdle());
#else
  EXPECT_FALSE(Komvos::Impl::mpiYieldsWhenIdle());
#endif
}

/// The others begin only when rank 0 has ended: if it waited for its sends, nobody would go on.
TEST(LatePartner, DoesNotHoldUpARankThatHasWhatItNeeds) {
  const int size = worldSize();
  for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
    const Halo halo(oneSource(size, 100000), NodeTopology::uniform(size, 2), route);
    for (const int roomFor : {0, 1}) {
      PlainExchange<double> exchange(MPI_COMM_WORLD, halo.plan(), roomFor);
      EXPECT_EQ(roomFor > 0, exchange.sharesMemory());
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<double> targets = halo.targets<double>(1, -7);
        if (halo.rank() > 0) {
          MPI_Barrier(MPI_COMM_WORLD);
        }
        exchange.forward(1, halo.owned<double>(1, repeat), targets);
        if (halo.rank() == 0) {
          MPI_Barrier(MPI_COMM_WORLD);
        }
        EXPECT_EQ(halo.filled<double>(1, repeat, -7), targets) << halo.name() << ", room for " << roomFor;
        // The other direction receives into what this one still sends from.
        std::vector<double> owned(halo.owned<double>(1, 0).size(), 100);
        exchange.reverse(1, halo.ghosts<double>(1, repeat), owned);
        EXPECT_EQ(halo.summed<double>(1, repeat, 100), owned) << halo.name() << ", room for " << roomFor;
      }
    }
  }
}

}  // namespace
