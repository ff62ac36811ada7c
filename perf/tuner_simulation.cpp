// How often does online tuning choose wrongly on many ranks, and what does that cost?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "Komvos_OnlineChoice.hpp"
#include "Komvos_Statistics.hpp"
#include "commit.hpp"
#include "support/text_format.hpp"

// How this works. No exchange is made: the tuner itself (OnlineChoice) gets times that are drawn. A use takes the true
// time of its variant, times one plus the noise of the slowest rank, plus what the operating system takes from some
// rank now and then. Both are maxima over so many ranks, drawn as one number each. Times and set-up are those that were
// measured on the virtual cluster (perf/HALOS.md), in microseconds; forecasts are off by a factor that is drawn for
// each variant, and all of a halo by another one. There may be periods in which all variants take longer by the same
// factor, as when other programs use the network; they begin and end by chance. A halo begins with the route that
// promises much, if there is one. A user compares with the standard route, and with the best variant known afterwards,
// which meet the same periods, and noise of their own.
namespace {

using namespace Komvos::Program;
using namespace Komvos::Impl;
using Json = nlohmann::ordered_json;

struct Halo {
  std::string name;
  std::vector<double> seconds;      // of one product, by variant; the first is the standard route
  std::vector<double> planSeconds;  // the first is there in any case
  double rest;                      // of the product, without the exchange
};

struct Noise {
  double mean;               // of the noise of one rank, as a share; exponential
  double spikeRate;          // on one rank, a use
  double spikeSeconds;       // mean, exponential
  double forecastFactor;     // forecasts are off by up to so much either way
  double calibrationFactor;  // and all together by up to so much
  double slowShare;          // of all uses, in periods when all variants are slower
  double slowUses;           // in such a period, mean
  double slowFactor;         // by so much
};

struct Outcome {
  double ofStandard, ofBest;  // total times
  bool wrong;                 // more than 5 % slower than the best, in the end
};

class Simulation {
 public:
  Simulation(const Halo& halo, const Noise& noise, double ranks, unsigned seed)
      : halo_(halo), noise_(noise), ranks_(ranks), random_(seed) {}

  Outcome run(long uses);

 private:
  /// The largest of so many exponential numbers.
  double largestOf(double count, double mean) {
    const double u = std::max(1e-300, uniform_(random_));
    return -mean * std::log1p(-std::exp(std::log(u) / count));
  }
  void beginUse() {
    if (noise_.slowShare > 0) {
      const double change = isSlow_ ? 1 : noise_.slowShare / (1 - noise_.slowShare);
      isSlow_ = (uniform_(random_) < change / noise_.slowUses) != isSlow_;
    }
  }
  double timeOf(std::size_t variant) {
    const double factor = isSlow_ ? noise_.slowFactor : 1;
    const double seconds = factor * halo_.seconds[variant] * (1 + largestOf(ranks_, noise_.mean));
    std::poisson_distribution<int> spikes(ranks_ * noise_.spikeRate);
    const int count = spikes(random_);
    return seconds + (count > 0 ? largestOf(count, noise_.spikeSeconds) : 0);
  }

  const Halo& halo_;
  const Noise& noise_;
  double ranks_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<> uniform_;
  bool isSlow_ = false;
};

Outcome Simulation::run(long uses) {
  std::vector<Forecast> forecasts;
  const double calibration = std::pow(noise_.calibrationFactor, 2 * uniform_(random_) - 1);
  for (std::size_t i = 0; i < halo_.seconds.size(); ++i) {
    const double factor = std::pow(noise_.forecastFactor, 2 * uniform_(random_) - 1);
    const double seconds = (halo_.seconds[i] - halo_.rest) * (i == 0 ? 1 : factor) * calibration;
    forecasts.push_back({{seconds, seconds, seconds}, halo_.planSeconds[i], true});
  }
  std::size_t start = 0;
  for (std::size_t i = 1; i < forecasts.size(); ++i) {
    if (promisesMuch(forecasts[i], forecasts[0], 0) && forecasts[i].seconds[0] < forecasts[start].seconds[0]) {
      start = i;
    }
  }
  std::vector<bool> planned(halo_.seconds.size(), false);
  planned[0] = planned[start] = true;
  forecasts[start].planSeconds = 0;
  OnlineChoice choice(forecasts, start, 0);
  choice.addPlanning(halo_.planSeconds[start]);
  std::vector<double> window;
  double total = halo_.planSeconds[start];
  std::vector<double> totalOf = halo_.planSeconds;  // of each variant, used by itself
  for (long use = 0; use < uses; ++use) {
    if (choice.resultDue()) {
      choice.decide(window);
      if (choice.inTrial() && !planned[choice.challenger()]) {
        planned[choice.challenger()] = true;
        choice.addPlanning(halo_.planSeconds[choice.challenger()]);
        total += halo_.planSeconds[choice.challenger()];
      }
    }
    beginUse();
    const double seconds = timeOf(choice.next());
    total += seconds;
    for (std::size_t i = 0; i < totalOf.size(); ++i) {
      totalOf[i] += timeOf(i);
    }
    choice.record({seconds, std::max(0.0, seconds - halo_.rest), 1});
    if (choice.windowFull()) {
      window = choice.window();
    }
  }
  const double best = *std::min_element(totalOf.begin(), totalOf.end());
  const double least = *std::min_element(halo_.seconds.begin(), halo_.seconds.end());
  return {total / totalOf[0], total / best, halo_.seconds[choice.incumbent()] > 1.05 * least};
}

/// Products of 16 ranks on the virtual cluster, at 9b0b44f399: standard, three-step, two-step, split, axis, all by
/// shared memory on the nodes. Plans have become cheaper since, as perf/SET_UP.md says: 0.42, 0.57, 0.40 and 0.44.
std::vector<Halo> halos() {
  return {
      {"nothing to gain", {497, 564, 561, 567, 647}, {0, 3800, 3800, 3600, 4500}, 300},
      {"three-step 1.4 times as fast", {839, 579, 708, 576, 676}, {0, 3600, 3900, 3800, 4300}, 250},
      {"axis 2.6 times as fast", {1013, 455, 570, 460, 390}, {0, 2400, 2600, 2400, 2600}, 40},
      {"axis 3.1 times as fast, expensive plans", {2057, 792, 954, 1109, 667}, {0, 15700, 12400, 12900, 16100}, 250}};
}

Json simulate(const Halo& halo, const Noise& noise, double ranks, long uses, int runs) {
  std::vector<double> ofStandard, ofBest;
  int wrong = 0;
  for (int run = 0; run < runs; ++run) {
    const Outcome outcome = Simulation(halo, noise, ranks, static_cast<unsigned>(run)).run(uses);
    ofStandard.push_back(outcome.ofStandard);
    ofBest.push_back(outcome.ofBest);
    wrong += outcome.wrong ? 1 : 0;
  }
  return {{"halo", halo.name},
          {"ranks", ranks},
          {"uses", uses},
          {"wrong", static_cast<double>(wrong) / runs},
          {"of_standard", median(ofStandard)},
          {"of_standard_95_percent", quantile(ofStandard, 0.95)},
          {"of_best", median(ofBest)},
          {"of_best_95_percent", quantile(ofBest, 0.95)}};
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 1000;
  std::string file = "-";
  Noise noise{0.02, 1e-5, 500, 1.5, 2, 0, 8, 2.5};
  CLI::App app("Simulates online tuning with noise");
  app.add_option("--runs", runs, "of each case")->check(CLI::PositiveNumber);
  app.add_option("--noise", noise.mean, "mean noise of a rank, as a share of the time");
  app.add_option("--spike-rate", noise.spikeRate, "interruptions of a rank in a use");
  app.add_option("--spike", noise.spikeSeconds, "their mean, in microseconds");
  app.add_option("--forecast-factor", noise.forecastFactor, "by which forecasts may be off");
  app.add_option("--calibration-factor", noise.calibrationFactor, "by which all forecasts may be off together");
  app.add_option("--slow-share", noise.slowShare, "of uses in periods when all is slower");
  app.add_option("--slow-uses", noise.slowUses, "uses in such a period, mean");
  app.add_option("--slow-factor", noise.slowFactor, "by which all is slower in them");
  app.add_option("--json", file, "file to write");
  CLI11_PARSE(app, argc, argv);
  Json report{{"benchmark", "tuner simulation"},
              {"commit", KOMVOS_COMMIT},
              {"runs", runs},
              {"noise", noise.mean},
              {"spike_rate", noise.spikeRate},
              {"spike_microseconds", noise.spikeSeconds},
              {"forecast_factor", noise.forecastFactor},
              {"calibration_factor", noise.calibrationFactor},
              {"slow_share", noise.slowShare},
              {"slow_uses", noise.slowUses},
              {"slow_factor", noise.slowFactor},
              {"results", Json::array()}};
  for (const Halo& halo : halos()) {
    for (const double ranks : {256.0, 1024.0, 4096.0}) {
      for (const long uses : {20L, 50L, 200L, 1000L}) {
        const Json one = simulate(halo, noise, ranks, uses, runs);
        report["results"].push_back(one);
        std::cout << format(
            "%-36s %5.0f ranks %5ld uses: wrong %.3f, of standard %.3f (95 %%: %.3f), of best %.3f "
            "(95 %%: %.3f)\n",
            halo.name.c_str(), ranks, uses, one["wrong"].get<double>(), one["of_standard"].get<double>(),
            one["of_standard_95_percent"].get<double>(), one["of_best"].get<double>(),
            one["of_best_95_percent"].get<double>());
      }
    }
  }
  if (file != "-") {
    std::ofstream out(file);
    out << report.dump(1) << "\n" << std::flush;
    if (!out) {
      std::cerr << "tuner_simulation: cannot write " << file << std::endl;
      return 1;
    }
  }
  return 0;
}
