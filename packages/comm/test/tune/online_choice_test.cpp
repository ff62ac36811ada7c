// Decisions of online tuning, with times that are made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "Komvos_OnlineChoice.hpp"

namespace {

using Komvos::Impl::Forecast;
using Komvos::Impl::HaloUse;
using Komvos::Impl::OnlineChoice;
using Komvos::Impl::promisesMuch;
using Komvos::Impl::Trial;
using Outcome = Komvos::Impl::Trial::Outcome;

/// Forecasts are as good as it gets: the same number for all widths.
std::vector<Forecast> forecastsOf(const std::vector<double>& seconds, double planSeconds = 0) {
  std::vector<Forecast> forecasts;
  for (const double one : seconds) {
    forecasts.push_back({{one, one, one}, forecasts.empty() ? 0 : planSeconds});
  }
  return forecasts;
}

/// Some ranks that use one halo. What a use of a variant takes is the sum of its exchange and of the rest of a product.
class Ranks {
 public:
  Ranks(int count, std::vector<double> exchange, double rest, const std::vector<Forecast>& forecasts,
        double secondsBefore = 0, std::size_t start = 0, const OnlineChoice::Known& known = {})
      : exchange_(std::move(exchange)), rest_(rest) {
    for (int rank = 0; rank < count; ++rank) {
      ranks_.emplace_back(forecasts, start, secondsBefore, known);
    }
  }

  /// Added to the time of a rank in a use; abandons the use where it is negative.
  std::function<double(std::size_t rank, long use)> disturbance = [](std::size_t, long) { return 0.0; };
  /// The same in what follows the exchange.
  std::function<double(std::size_t rank, long use)> disturbanceOfRest = [](std::size_t, long) { return 0.0; };
  /// What planning a variant really takes.
  double planSeconds = 0;

  /// Planning the variant that is in use first took so long.
  void planFirst(double seconds) {
    for (OnlineChoice& rank : ranks_) {
      rank.addPlanning(seconds);
    }
  }

  void use(int columns = 1) {
    ++uses_;
    if (ranks_.front().resultDue()) {
      for (OnlineChoice& rank : ranks_) {
        rank.decide(reduced_);
        plan(rank);
      }
    }
    const std::size_t variant = ranks_.front().next();
    used_.push_back(variant);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      EXPECT_EQ(variant, ranks_[r].next()) << "rank " << r << ", use " << uses_;
      const double late = disturbance(r, uses_);
      if (late < 0) {
        ranks_[r].abandon();
      } else if (ranks_[r].isSettled()) {  // no clock is read then
        ranks_[r].record({0, 0, columns});
      } else {
        const double lateAfterwards = disturbanceOfRest(r, uses_);
        ranks_[r].record({exchange_[variant] + rest_ + late + lateAfterwards, exchange_[variant] + late, columns});
      }
    }
    if (ranks_.front().windowFull()) {
      reduced_ = ranks_.front().window();
      for (const OnlineChoice& rank : ranks_) {
        const std::vector<double> window = rank.window();
        ASSERT_EQ(reduced_.size(), window.size());
        std::transform(window.begin(), window.end(), reduced_.begin(), reduced_.begin(),
                       [](double a, double b) { return std::max(a, b); });
      }
    }
    seconds += exchange_[variant] + rest_;
  }

  void use(long times, int columns) {
    for (long i = 0; i < times; ++i) {
      use(columns);
    }
  }

  const OnlineChoice& choice() const { return ranks_.front(); }
  /// Variants by use, from 0.
  const std::vector<std::size_t>& used() const { return used_; }
  long firstUseOf(std::size_t variant) const {
    const auto found = std::find(used_.begin(), used_.end(), variant);
    return found == used_.end() ? -1 : found - used_.begin() + 1;
  }
  double seconds = 0;  // that the user waited, planning included

 private:
  void plan(OnlineChoice& rank) {
    if (rank.inTrial() && isPlanned_.size() <= rank.challenger()) {
      isPlanned_.resize(rank.challenger() + 1, false);
    }
    if (rank.inTrial() && !isPlanned_[rank.challenger()]) {
      rank.addPlanning(planSeconds);
      if (&rank == &ranks_.back()) {
        isPlanned_[rank.challenger()] = true;
        seconds += planSeconds;
      }
    }
  }

  std::vector<OnlineChoice> ranks_;
  std::vector<double> exchange_;
  double rest_;
  std::vector<double> reduced_;
  std::vector<bool> isPlanned_;
  std::vector<std::size_t> used_;
  long uses_ = 0;
};

TEST(OnlineChoice, TakesTheFastestVariantAndSettles) {
  const std::vector<double> exchange{10, 9, 4, 3, 6};
  Ranks ranks(3, exchange, 5, forecastsOf(exchange));
  ranks.use(100, 1);
  EXPECT_EQ(3u, ranks.choice().incumbent());
  EXPECT_TRUE(ranks.choice().isSettled());
  EXPECT_GT(ranks.choice().settledAt(), 0);
  EXPECT_EQ(3u, ranks.used()[20]);
  for (long i = ranks.choice().settledAt(); i < 100; ++i) {
    EXPECT_EQ(3u, ranks.used()[i]);
  }
}

TEST(OnlineChoice, TakesTheFastestVariantThoughForecastsAreInReverseOrder) {
  Ranks ranks(2, {10, 5, 6, 7}, 5, forecastsOf({10, 9, 8, 7}));
  ranks.use(300, 1);
  EXPECT_EQ(1u, ranks.choice().incumbent());
  ASSERT_EQ(3u, ranks.choice().trials().size());
  EXPECT_EQ(3u, ranks.choice().trials()[0].variant);
  EXPECT_EQ(Outcome::faster, ranks.choice().trials()[2].outcome);
}

TEST(OnlineChoice, DecidesAlikeOnAllRanksWhoeverIsSlow) {
  for (const std::size_t slow : {0u, 1u, 2u}) {
    Ranks ranks(3, {10, 8, 12, 5}, 5, forecastsOf({10, 7, 9, 8}));
    std::mt19937 random(7);
    std::exponential_distribution<> noise(0.5);
    ranks.disturbance = [&](std::size_t rank, long) { return noise(random) + (rank == slow ? 3 : 0); };
    ranks.use(400, 1);  // use() compares the ranks
    EXPECT_EQ(3u, ranks.choice().incumbent());
  }
}

TEST(OnlineChoice, GivesUpAfterTheFirstSamplesWhoIsFarBehind) {
  Ranks ranks(2, {10, 40}, 5, forecastsOf({10, 5}));
  ranks.use(60, 1);
  EXPECT_EQ(0u, ranks.choice().incumbent());
  ASSERT_EQ(1u, ranks.choice().trials().size());
  EXPECT_EQ(Outcome::hopeless, ranks.choice().trials()[0].outcome);
  EXPECT_EQ(3 + OnlineChoice::lag, std::count(ranks.used().begin(), ranks.used().end(), 1u));
}

TEST(OnlineChoice, KeepsWhatItHasWhereTheDifferenceMayBeNoise) {
  Ranks ranks(2, {10, 9.8}, 5, forecastsOf({10, 9}));
  ranks.use(100, 1);
  EXPECT_EQ(0u, ranks.choice().incumbent());
  ASSERT_EQ(1u, ranks.choice().trials().size());
  EXPECT_EQ(Outcome::slower, ranks.choice().trials()[0].outcome);
}

/// As in a V-cycle: of `period` uses the one after the coarser levels takes three times as long.
TEST(OnlineChoice, IsNotDeceivedByUsesThatTakeLongerThanOthers) {
  for (const long period : {1, 2, 3, 4, 5, 6, 7, 8}) {
    for (long phase = 0; phase < period; ++phase) {
      const auto slowOnce = [&](std::size_t, long use) { return use % period == phase ? 30.0 : 0.0; };
      Ranks alike(2, {10, 10, 10, 10}, 5, forecastsOf({10, 8, 7, 6}));
      alike.disturbance = slowOnce;
      alike.use(600, 1);
      EXPECT_EQ(0u, alike.choice().incumbent()) << "period " << period << ", phase " << phase;
      Ranks different(2, {10, 10.5, 4, 12}, 5, forecastsOf({10, 8, 7, 6}));
      different.disturbance = slowOnce;
      different.use(600, 1);
      EXPECT_EQ(2u, different.choice().incumbent()) << "period " << period << ", phase " << phase;
    }
  }
}

/// As where other programs use the machine or the network for a while.
TEST(OnlineChoice, IsNotDeceivedByAPeriodInWhichAllIsSlower) {
  const auto winner = [](const std::vector<double>& exchange, long begin, long length) {
    Ranks ranks(2, exchange, 5, forecastsOf({10, 8}));
    ranks.disturbance = [&](std::size_t, long use) {
      return use >= begin && use < begin + length ? 1.5 * (exchange[ranks.used().back()] + 5) : 0.0;
    };
    ranks.use(100, 1);
    EXPECT_GE(ranks.choice().trials().size(), 1u);
    return ranks.choice().incumbent();
  };
  int periods = 0, missed = 0;
  for (long begin = 1; begin < 50; ++begin) {
    for (long length = 1; length < 30; ++length) {
      EXPECT_EQ(0u, winner({10, 12}, begin, length)) << "uses " << begin << " to " << begin + length - 1 << " slow";
      missed += winner({10, 7}, begin, length) != 1u;
      ++periods;
    }
  }
  EXPECT_LT(missed, periods / 12) << "who is slower is never taken, who is faster seldom missed";
}

TEST(OnlineChoice, TriesNothingWhereTheExchangeHardlyCounts) {
  Ranks ranks(2, {10, 5}, 1000, forecastsOf({10, 5}));
  ranks.use(300, 1);
  EXPECT_EQ(-1, ranks.firstUseOf(1));
  EXPECT_TRUE(ranks.choice().isSettled());
}

TEST(OnlineChoice, IsNotSettledByOneInterruption) {
  Ranks ranks(2, {0.3, 0.1}, 0.7, forecastsOf({10, 5}));
  ranks.disturbanceOfRest = [](std::size_t rank, long use) { return rank == 1 && use == 3 ? 19.0 : 0.0; };
  ranks.use(100, 1);
  EXPECT_EQ(1u, ranks.choice().incumbent());
}

/// A forecast may be wrong by any factor, and who uses a halo for long can afford to find out.
TEST(OnlineChoice, TriesWhatHasAFarWorseForecastWhenItCostsNextToNothing) {
  Ranks ranks(2, {10, 5}, 5, forecastsOf({10, 16}));
  ranks.use(300, 1);
  EXPECT_EQ(-1, ranks.firstUseOf(1));
  EXPECT_TRUE(ranks.choice().isSettled());
  ranks.use(1500, 1);
  EXPECT_EQ(1u, ranks.choice().incumbent());
  EXPECT_TRUE(ranks.choice().isSettled());
  EXPECT_GT(ranks.choice().settledAt(), 300);

  Ranks right(2, {10, 100}, 5, forecastsOf({10, 100}, 50));  // as bad as forecast
  right.planSeconds = 50;
  right.use(10000, 1);
  EXPECT_EQ(0u, right.choice().incumbent());
  EXPECT_GT(right.firstUseOf(1), 3000);
  EXPECT_LE(right.seconds, 1.011 * 10000 * 15);
}

TEST(OnlineChoice, PlansAtOnceWhatPaysSoonAndLaterWhatPaysLater) {
  const auto firstUse = [](double planSeconds) {
    Ranks ranks(2, {10, 5}, 5, forecastsOf({10, 5}, planSeconds));
    ranks.planSeconds = planSeconds;
    ranks.use(2000, 1);
    EXPECT_EQ(1u, ranks.choice().incumbent());
    return ranks.firstUseOf(1);
  };
  EXPECT_EQ(6, firstUse(20));    // four uses' gain
  EXPECT_GT(firstUse(200), 40);  // forty uses' gain
  EXPECT_LT(firstUse(200), 130);
  EXPECT_GT(firstUse(1000), 200);
  EXPECT_LT(firstUse(1000), 500);
}

/// A forecast may be off by more than it promises then.
TEST(OnlineChoice, PlansLateWhatPromisesLittle) {
  const auto firstUse = [](double forecast) {
    Ranks ranks(2, {10, 8}, 5, forecastsOf({10, forecast}, 50));
    ranks.planSeconds = 50;
    ranks.use(2000, 1);
    EXPECT_EQ(1u, ranks.choice().incumbent());
    return ranks.firstUseOf(1);
  };
  EXPECT_LT(firstUse(8), 60);
  EXPECT_GT(firstUse(9.5), 200);
  EXPECT_GT(firstUse(11), 200);
}

/// Whatever happens, a user must not wait much longer than without any tuning.
TEST(OnlineChoice, WaitsLongWhereNoForecastPromisesAnything) {
  const std::vector<double> exchange{10, 5};
  Ranks unpromised(2, exchange, 5, forecastsOf({10, 10}));
  unpromised.use(128, 1);
  EXPECT_EQ(-1, unpromised.firstUseOf(1)) << "a short solve is not to pay for a trial";
  unpromised.use(30, 1);
  EXPECT_EQ(129, unpromised.firstUseOf(1));
  EXPECT_EQ(1u, unpromised.choice().incumbent());
  Ranks promised(2, exchange, 5, forecastsOf({10, 9}));
  promised.use(30, 1);
  EXPECT_EQ(6, promised.firstUseOf(1));
  EXPECT_EQ(1u, promised.choice().incumbent());
}

TEST(OnlineChoice, CostsLittleWhereForecastsAreWrong) {
  for (const double worse : {10.5, 12.0, 20.0, 100.0}) {
    for (const double planSeconds : {0.0, 20.0, 100.0}) {
      Ranks ranks(2, {10, worse, worse}, 5, forecastsOf({10, 5, 7}, planSeconds));
      ranks.planSeconds = planSeconds;
      ranks.use(2000, 1);
      EXPECT_EQ(0u, ranks.choice().incumbent());
      const double added = 2 * planSeconds + 2 * (4 * (8 + OnlineChoice::lag)) * (worse - 10);
      EXPECT_LE(ranks.seconds, 2000 * 15 + added);
      EXPECT_NEAR(ranks.choice().cost(), ranks.seconds - 2000 * 15, 0.5 * added + 1);
    }
  }
}

TEST(OnlineChoice, LearnsWhatPlanningCosts) {
  Ranks ranks(2, {10, 8, 7}, 5, forecastsOf({10, 5, 6}, 1));
  ranks.planSeconds = 100;  // a hundred times as much as expected
  ranks.use(60, 1);
  EXPECT_LT(0, ranks.firstUseOf(1));
  EXPECT_EQ(-1, ranks.firstUseOf(2)) << "by now it is known to be dear";
}

TEST(OnlineChoice, LearnsFromTheRouteItBeganWithWhatPlanningCosts) {
  const auto firstUse = [](double planOfFirst) {
    Ranks ranks(2, {10, 5, 4}, 5, {{{10, 10, 10}, 0}, {{5, 5, 5}, 0}, {{4, 4, 4}, 1}}, 0, 1);
    ranks.planFirst(planOfFirst);
    ranks.planSeconds = 100;
    ranks.use(1000, 1);
    EXPECT_EQ(2u, ranks.choice().incumbent());
    return ranks.firstUseOf(2);
  };
  EXPECT_LT(firstUse(0), 20);
  EXPECT_GT(firstUse(100), 100 / 0.65) << "what it gains pays for the plan by now";
  EXPECT_LT(firstUse(100), 400);
}

/// As a change of variant costs: what it sends from and receives into is not in the caches, nor the matrix.
TEST(OnlineChoice, IsNotDeceivedByTheFirstUsesAfterAChange) {
  Ranks ranks(2, {10, 9}, 5, forecastsOf({10, 9}));
  ranks.disturbance = [&](std::size_t, long use) {
    const std::vector<std::size_t>& used = ranks.used();
    const auto changed = [&](long ago) { return use > ago + 1 && used[use - 1 - ago] != used[use - 2 - ago]; };
    return changed(0) ? 0.25 * 15 : changed(1) ? 0.08 * 15 : 0;
  };
  ranks.use(200, 1);
  EXPECT_EQ(1u, ranks.choice().incumbent());
}

TEST(OnlineChoice, RepeatsAWindowInWhichARankFailed) {
  for (const long failing : {1L, 2L, 3L, 6L, 7L, 9L, 13L}) {
    Ranks ranks(3, {10, 7}, 5, forecastsOf({10, 8}));
    ranks.disturbance = [&](std::size_t rank, long use) { return rank == 1 && use == failing ? -1.0 : 0.0; };
    ranks.use(100, 1);
    EXPECT_EQ(1u, ranks.choice().incumbent()) << failing;
  }
}

TEST(OnlineChoice, EndsATrialThatNeverSucceeds) {
  Ranks ranks(2, {10, 7}, 5, forecastsOf({10, 8}));
  ranks.disturbance = [](std::size_t rank, long use) { return rank == 0 && use > 3 ? -1.0 : 0.0; };
  ranks.use(500, 1);
  EXPECT_EQ(0u, ranks.choice().incumbent());
  const auto challengers = std::count(ranks.used().begin(), ranks.used().end(), 1u);
  EXPECT_LT(challengers, 30);
}

TEST(OnlineChoice, DecidesForEachWidthByItself) {
  // Wide vectors are twice as dear by variant 1, narrow ones half.
  std::vector<Forecast> forecasts{{{10, 10, 10}, 0}, {{5, 8, 9}, 0}};
  OnlineChoice choice(forecasts, 0, 0);
  std::vector<double> window;
  const auto use = [&](int columns) {
    if (choice.resultDue()) {
      choice.decide(window);
    }
    const double seconds = choice.next() == 0 ? 10 : columns == 1 ? 5 : 20;
    choice.record({seconds + 5, seconds, columns});
    if (choice.windowFull()) {
      window = choice.window();
    }
  };
  for (int i = 0; i < 200; ++i) {
    use(1);
  }
  EXPECT_EQ(1u, choice.incumbent());
  for (int i = 0; i < 600; ++i) {
    use(8);
  }
  EXPECT_EQ(0u, choice.incumbent());
  EXPECT_EQ(4, choice.trials().back().columnsFrom);
  EXPECT_TRUE(choice.isInUse(1)) << "by narrow vectors";
  for (int i = 0; i < 1200; ++i) {
    use(1);
  }
  EXPECT_EQ(1u, choice.incumbent()) << "as before";
  EXPECT_EQ(2u, choice.trials().size());
  for (int i = 0; i < 3000; ++i) {
    use(i % 2 == 0 ? 1 : 8);
  }
  EXPECT_EQ(1u, choice.incumbent()) << "no window is of one width";
  EXPECT_EQ(2u, choice.trials().size());
}

TEST(OnlineChoice, BeginsWithWhatWonEarlierAndDoesNotTryAgainWhatLost) {
  OnlineChoice::Known ofNarrow, ofWide;
  ofNarrow[0] = ofWide[2] = {1, {true, false, true}};
  const OnlineChoice narrow(forecastsOf({10, 5, 4}), 1, 0, ofNarrow);
  EXPECT_EQ(1u, narrow.next());
  EXPECT_TRUE(narrow.isSettled());

  Ranks wide(2, {10, 5, 4}, 5, forecastsOf({10, 5, 4}), 0, 1, ofWide);
  wide.use(300, 4);
  EXPECT_TRUE(wide.choice().isSettled());
  EXPECT_EQ(300, std::count(wide.used().begin(), wide.used().end(), 1u)) << "tried again what lost";
  wide.use(2000, 1);
  EXPECT_EQ(2u, wide.choice().incumbent()) << "what lost with wide vectors may win with narrow ones";

  OnlineChoice::Known ofBoth = ofWide;
  ofBoth[0] = {2, {true, true, false}};
  Ranks both(2, {10, 5, 4}, 5, forecastsOf({10, 5, 4}), 0, 1, ofBoth);
  both.use(100, 1);
  EXPECT_EQ(2u, both.choice().incumbent()) << "as it was decided for narrow vectors";
  both.use(2000, 4);
  EXPECT_EQ(1u, both.choice().incumbent());
  EXPECT_TRUE(both.choice().trials().empty());
  EXPECT_LE(both.firstUseOf(2), 10) << "vectors of another width than those seen last are noticed soon";
}

TEST(OnlineChoice, PlansWhatWonEarlierOnlyWhereItPays) {
  OnlineChoice::Known known;
  known[0] = {1, {true, false, true}};
  known[2] = {0, {false, true, true}};
  // 0 is what the halo starts with; 1, the best for narrow vectors, would have to be planned.
  Ranks dear(2, {10, 5, 12}, 5, forecastsOf({10, 5, 4}, 1000), 0, 0, known);
  dear.use(50, 1);
  EXPECT_TRUE(dear.choice().hasEarlierWinner()) << "what was decided earlier is not to be forgotten";
  EXPECT_EQ(50, std::count(dear.used().begin(), dear.used().end(), 0u)) << "gains 250 and costs 1000";
  Ranks cheap(2, {10, 5, 12}, 5, forecastsOf({10, 5, 4}, 20), 0, 0, known);
  cheap.use(50, 1);
  EXPECT_EQ(1u, cheap.choice().incumbent());
  EXPECT_FALSE(cheap.choice().hasEarlierWinner());
  EXPECT_EQ(-1, cheap.firstUseOf(2)) << "it lost earlier";
  Ranks slower(2, {10, 15, 12}, 5, forecastsOf({10, 5, 4}, 20), 0, 0, known);
  slower.use(200, 1);
  EXPECT_EQ(0u, slower.choice().incumbent());
  EXPECT_FALSE(slower.choice().hasEarlierWinner()) << "it lost here";
}

TEST(OnlineChoice, ReducesRarelyWhereNoWindowIsOfOneWidth) {
  OnlineChoice choice(forecastsOf({10, 9}, 100), 0, 0);
  std::vector<double> window;
  int reductions = 0;
  for (int i = 0; i < 2000; ++i) {
    if (choice.resultDue()) {
      choice.decide(window);
    }
    choice.record({15, 10, i % 2 == 0 ? 1 : 4});
    if (choice.windowFull()) {
      window = choice.window();
      ++reductions;
    }
  }
  EXPECT_LT(reductions, 50);
}

// A bad variant that needs no plan, and phases too short for a trial.
TEST(OnlineChoice, RepeatsRarelyATrialThatIsBrokenOff) {
  for (const long phase : {5L, 7L, 10L, 13L, 20L}) {
    Ranks ranks(2, {10, 30}, 5, forecastsOf({10, 9}));
    long uses = 0;
    const auto run = [&](long until) {
      for (; uses < until; ++uses) {
        ranks.use(uses / phase % 2 == 0 ? 1 : 4);
      }
      return std::count(ranks.used().begin(), ranks.used().end(), 1u);
    };
    const auto early = run(1000), late = run(8000);
    EXPECT_LT(early, 150) << "phases of " << phase;
    EXPECT_LT(late - early, 150) << "phases of " << phase;
    EXPECT_EQ(0u, ranks.choice().incumbent());
    EXPECT_GE(ranks.choice().trials().size(), 1u) << "all are counted";
  }
}

TEST(OnlineChoice, ComparesInTheEndWhatWasBrokenOff) {
  Ranks ranks(2, {10, 4}, 5, forecastsOf({10, 9}));
  for (int i = 0; i < 12; ++i) {
    ranks.use(7, i % 2 == 0 ? 1 : 4);
  }
  ranks.use(1000, 1);
  EXPECT_EQ(1u, ranks.choice().incumbent());
}

Forecast inSeconds(double exchange, double planSeconds) { return {{exchange, exchange, exchange}, planSeconds, true}; }

TEST(OnlineChoice, APromiseIsOfSecondsAndPaysForItsPlan) {
  const Forecast usual = inSeconds(10, 0);
  EXPECT_TRUE(promisesMuch(inSeconds(5, 50), usual, 0));
  EXPECT_FALSE(promisesMuch(inSeconds(5, 70), usual, 0)) << "18 uses are too few";
  EXPECT_FALSE(promisesMuch(inSeconds(8, 0), usual, 0)) << "little to gain";
  EXPECT_FALSE(promisesMuch({{5, 5, 5}, 50, false}, {{10, 10, 10}, 0, false}, 0)) << "of what unit?";
  EXPECT_FALSE(promisesMuch({{5, 5, 12}, 50, true}, usual, 2));
}

/// Variant 0 is the standard route, which needs no plan; 1 is what the halo begins with.
TEST(OnlineChoice, DoubtsAPromiseThatIsBroken) {
  const std::vector<Forecast> forecasts{inSeconds(6, 0), inSeconds(3, 0), inSeconds(4, 100)};
  Ranks kept(2, {12, 5, 7}, 5, forecasts, 0, 1);
  kept.use(60, 1);
  EXPECT_EQ(1u, kept.choice().incumbent());
  EXPECT_EQ(-1, kept.firstUseOf(0)) << "a trial of what is slower by forecast and promise kept";
  Ranks broken(2, {12, 15, 16}, 5, forecasts, 0, 1);
  broken.use(60, 1);
  EXPECT_EQ(0u, broken.choice().incumbent());
  EXPECT_EQ(6, broken.firstUseOf(0)) << "after three uses, and two in which their times travel";
  EXPECT_LT(std::count(broken.used().begin(), broken.used().end(), 1u), 15);
}

TEST(OnlineChoice, StillDoubtsABrokenPromiseWhenATrialWasBrokenOff) {
  // 1 promised much and takes longer than 0, which needs no plan; the first trial of 0 meets wide vectors.
  Ranks ranks(2, {10, 15}, 5, {inSeconds(5, 0), inSeconds(1, 0)}, 0, 1);
  ranks.use(5, 1);
  ranks.use(9, 4);  // too few for a trial of their own
  ranks.use(400, 1);
  ASSERT_FALSE(ranks.choice().trials().empty());
  EXPECT_EQ(Outcome::brokenOff, ranks.choice().trials().front().outcome);
  EXPECT_EQ(0u, ranks.choice().incumbent());
}

TEST(OnlineChoice, AVariantThatIsWithdrawnMakesRoomForTheNext) {
  OnlineChoice choice(forecastsOf({10, 4, 5}), 0, 0);
  while (!choice.resultDue()) {
    choice.record({15, 10, 1});
  }
  choice.decide(choice.window());
  ASSERT_TRUE(choice.inTrial());
  EXPECT_EQ(1u, choice.challenger());
  choice.withdraw();
  ASSERT_TRUE(choice.inTrial());
  EXPECT_EQ(2u, choice.challenger());
  choice.withdraw();
  EXPECT_FALSE(choice.inTrial());
  EXPECT_EQ(0u, choice.next());
}

}  // namespace
