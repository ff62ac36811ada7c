// Runs of words of any length along every route: on Tpetra's device, and on the test device.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "Komvos_VariableExchange.hpp"
#include "exchange/halo_support.hpp"
#include "support/failing_kokkos.hpp"

namespace {

using namespace KomvosTest;
using Runs = Komvos::Impl::VariableExchange<Device>;
using Word = Runs::word;

/// Words of a run, 1 to 6; not the same for all that one rank sends to another.
KOKKOS_INLINE_FUNCTION int lengthOf(int owner, int local, int salt) { return 1 + (3 * owner + local + salt) % 6; }
KOKKOS_INLINE_FUNCTION Word wordOf(int owner, int local, int salt, int k) {
  return ((static_cast<Word>(owner) * 1000 + local) * 1000 + salt) * 10 + k;
}

struct WriteRuns {
  decltype(Runs::runs_type::index) index;
  decltype(Runs::runs_type::first) first;
  Runs::buffer_view buffer;
  int rank, salt;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    for (int k = 0; k < lengthOf(rank, index(i), salt); ++k) {
      buffer(first(i) + k) = wordOf(rank, index(i), salt, k);
    }
  }
};

/// Sends all runs once and checks what arrives.
void checkRuns(const Halo& halo, Runs& runs, int salt) {
  const Space space;
  runs.begin(space, [&](const Runs::buffer_view& buffer) {
    const auto& departures = runs.departures();
    Kokkos::parallel_for(Kokkos::RangePolicy<Space>(space, 0, departures.size()),
                         WriteRuns{departures.index, departures.first, buffer, halo.rank, salt});
  });
  runs.end(space);
  const auto received = Kokkos::create_mirror(runs.received());
  Kokkos::deep_copy(received, runs.received());
  std::map<int, std::int64_t> firstOf;  // by target
  for (int i = 0; i < runs.arrivals().size(); ++i) {
    firstOf[runs.arrivals().hostIndex[i]] = runs.arrivals().hostFirst[i];
  }
  ASSERT_EQ(halo.mine().receives.size(), firstOf.size());
  for (const Pattern::Receive& r : halo.mine().receives) {
    for (int k = 0; k < lengthOf(r.value.owner, r.value.local, salt); ++k) {
      ASSERT_EQ(wordOf(r.value.owner, r.value.local, salt, k), received(firstOf.at(r.target) + k))
          << halo.name() << ", target " << r.target << ", word " << k;
    }
  }
}

std::vector<std::int64_t> ownedLengths(const Halo& halo, int salt) {
  std::vector<std::int64_t> owned;
  for (int i = 0; i < halo.mine().numOwned; ++i) {
    owned.push_back(lengthOf(halo.rank, i, salt));
  }
  return owned;
}

void setLengths(const Halo& halo, Runs& runs, int salt) {
  const std::vector<std::int64_t> owned = ownedLengths(halo, salt);
  runs.exchangeLengths(owned, [](std::int64_t count) { return count; });
}

TEST(VariableExchange, BringsRunsOfAnyLength) {
  onHalos([](const Halo& halo) {
    Runs runs(halo.comm, halo.plan, Komvos::gpuAwareMpi(), Komvos::stagingForced());
    for (const int salt : {0, 3}) {  // other lengths, in new buffers
      setLengths(halo, runs, salt);
      for (int repeat = 0; repeat < 3; ++repeat) {
        checkRuns(halo, runs, salt);
      }
    }
  });
}

TEST(VariableExchange, ARankThatCannotPackLeavesNobodyWaiting) {
  onHalos([](const Halo& halo) {
    Runs runs(halo.comm, halo.plan, Komvos::gpuAwareMpi(), Komvos::stagingForced());
    setLengths(halo, runs, 1);
    const auto pack = [&](const Runs::buffer_view&) {
      if (halo.rank == 0) {
        throw std::runtime_error("no more paper");
      }
    };
    try {
      runs.begin(Space(), pack);
      runs.end(Space());
      EXPECT_NE(0, halo.rank) << "its own error";
    } catch (const Komvos::PlanMismatch&) {
      EXPECT_NE(0, halo.rank) << "the error of others";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ("no more paper", error.what());
      EXPECT_EQ(0, halo.rank);
    }
    checkRuns(halo, runs, 1);
  });
}

bool onAnyRank(bool here, MPI_Comm comm) {
  int any = here ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, comm);
  return any == 1;
}

// At its first allocation or kernel, at its second, and so on, until nothing fails.
TEST(VariableExchange, ARankWithoutMemoryForLengthsIsAnErrorOnAll) {
  onHalos([](const Halo& halo) {
    Runs runs(halo.comm, halo.plan, Komvos::gpuAwareMpi(), Komvos::stagingForced());
    setLengths(halo, runs, 0);
    int passes = 0;
    for (bool failed = true; failed; ++passes) {
      const std::vector<std::int64_t> owned = ownedLengths(halo, 2);
      bool threw = false;
      try {
        std::unique_ptr<FailingKokkos> failing(halo.rank == 0 ? new FailingKokkos(passes) : nullptr);
        runs.exchangeLengths(owned, [](std::int64_t count) { return count; });
      } catch (const Komvos::BadInput&) {
        threw = true;
      }
      EXPECT_EQ(onAnyRank(threw, halo.comm), threw)
          << halo.name() << ", after " << passes << " allocations and kernels";
      failed = onAnyRank(halo.rank == 0 && FailingKokkos::hasFailed(), halo.comm);
    }
    EXPECT_GT(passes, 1) << halo.name();
    checkRuns(halo, runs, 2);
  });
}

// As counts would be that were damaged on their way.
TEST(VariableExchange, AnInvalidCountIsAnErrorOnAll) {
  onHalos([](const Halo& halo) {
    Runs runs(halo.comm, halo.plan, Komvos::gpuAwareMpi(), Komvos::stagingForced());
    setLengths(halo, runs, 0);
    for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{1} << 40, std::int64_t{1} << 62}) {
      std::vector<std::int64_t> owned = ownedLengths(halo, 2);
      const bool isWrong = !owned.empty() && halo.rank == 0;
      if (isWrong) {
        owned[0] = wrong;
      }
      bool threw = false;
      try {
        runs.exchangeLengths(owned, [](std::int64_t count) { return count; });
      } catch (const Komvos::BadInput&) {
        threw = true;
      }
      EXPECT_EQ(onAnyRank(isWrong, halo.comm), threw) << halo.name() << ", " << wrong;
      Runs::Counts counts = runs.exchangeLengths(ownedLengths(halo, 2), [](std::int64_t count) { return count; });
      const bool receivesWrong = !counts.received.empty() && halo.rank == 0;
      if (receivesWrong) {
        counts.received.back() = wrong;
      }
      threw = false;
      try {
        runs.setLengths(counts, [](std::int64_t count) { return count; });
      } catch (const Komvos::BadInput&) {
        threw = true;
      }
      EXPECT_EQ(onAnyRank(receivesWrong, halo.comm), threw) << halo.name() << ", " << wrong;
    }
    setLengths(halo, runs, 3);
    checkRuns(halo, runs, 3);
  });
}

/// Sends with values of others.
int messagesThatTravelOn(const ExchangePlan& plan) {
  return static_cast<int>(std::count_if(plan.sends.begin(), plan.sends.end(), [&](const Komvos::PlanMessage& send) {
    const auto first = plan.sendSource.begin() + send.first;
    return std::any_of(first, first + send.count, [](int source) { return source < 0; });
  }));
}

// As it packs, and as it copies what travels on, where that takes kernels.
TEST(VariableExchange, ARankWhoseKernelsFailLeavesNobodyWaiting) {
  onHalos([](const Halo& halo) {
    Runs runs(halo.comm, halo.plan, Komvos::gpuAwareMpi(), Komvos::stagingForced());
    setLengths(halo, runs, 4);
    const auto pack = [&](const Runs::buffer_view& buffer) {
      const auto& departures = runs.departures();
      Kokkos::parallel_for(Kokkos::RangePolicy<Space>(Space(), 0, departures.size()),
                           WriteRuns{departures.index, departures.first, buffer, halo.rank, 4});
    };
    int passes = 0;
    for (bool failed = true; failed; ++passes) {
      bool threw = false;
      try {
        std::unique_ptr<FailingKokkos> failing(halo.rank == 0 ? new FailingKokkos(passes) : nullptr);
        runs.begin(Space(), pack);
        runs.end(Space());
      } catch (const KokkosFailure&) {
        threw = true;
        EXPECT_EQ(0, halo.rank) << "its own error";
      } catch (const Komvos::PlanMismatch&) {
        EXPECT_NE(0, halo.rank) << "the error of others";
      }
      failed = onAnyRank(threw, halo.comm);
      checkRuns(halo, runs, 4);
    }
    if (halo.rank == 0 && !Komvos::Impl::hostCanAccessBuffers<Space>() && !messagesAreStaged()) {
      EXPECT_EQ(2 + messagesThatTravelOn(*halo.plan), passes) << halo.name() << ": packing, copies, and no failure";
    }
  });
}

}  // namespace
