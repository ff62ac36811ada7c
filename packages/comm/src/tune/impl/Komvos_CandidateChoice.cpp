#include "Komvos_CandidateChoice.hpp"

#include <algorithm>
#include <string>

#include "Komvos_Statistics.hpp"

// How this works. The contenders are a list of candidates that becomes shorter; who leaves it gets a reason:
// 1. selectAllowed(): what the options allow. Its first entry is the baseline, which never leaves: the standard route
// by
//    messages where it is allowed.
// 2. pruneByModel(): with a machine model, candidates that cannot win are not measured.
// 3. A short round of measurements, of which keepFastest() keeps three, and a long one.
// 4. fastest(): the baseline unless another one is clearly faster.
// All of it rests on numbers that are the same on all ranks.
namespace Komvos::Impl {

namespace {

using Contenders = std::vector<Candidate*>;  // the baseline first

constexpr double clearGain = 0.9;       // of the baseline's time: above that, noise may have decided
constexpr double hopelessFactor = 4.0;  // the max-rate model is rarely off by more
constexpr int shortRound = 5;           // repeats
constexpr int longRound = 25;
constexpr std::size_t finalists = 3;  // beside the baseline

bool isAllowedRoute(const HaloCandidate& one, const ResolvedOptions& options) {
  return options.route == RouteChoice::automatic || one.route == options.route;
}

/// Where nothing travels on the nodes, any of the values of intraNode means the same.
bool isAllowed(const HaloCandidate& one, const ResolvedOptions& options) {
  return isAllowedRoute(one, options) && (options.intraNode == IntraNode::automatic ||
                                          one.intraNode == options.intraNode || one.traffic.total.onNodeMessages == 0);
}

Contenders selectAllowed(std::vector<Candidate>& candidates, const ResolvedOptions& options) {
  Contenders contenders;
  for (Candidate& one : candidates) {
    if (isAllowed(one.report, options)) {
      contenders.push_back(&one);
    } else {
      one.report.rejectionReason = "not asked for";
    }
  }
  if (contenders.empty()) {  // shared memory was asked for, and cannot be had
    contenders.push_back(&*std::find_if(candidates.begin(), candidates.end(),
                                        [&](const Candidate& one) { return isAllowedRoute(one.report, options); }));
  }
  return contenders;
}

void pruneByModel(Contenders& contenders) {
  // Compare its lower bound with the best upper bound. With shared memory the bounds differ: hops on the node take no
  // time at least, and at most that of messages. Otherwise both are the modelled time.
  double bestUpperBound = contenders.front()->modelled.all;
  for (const Candidate* one : contenders) {
    bestUpperBound = std::min(bestUpperBound, one->modelled.all);
  }
  const auto isHopeless = [&](Candidate* one) {
    const double lowerBound = one->report.modelledSeconds;
    if (lowerBound <= hopelessFactor * bestUpperBound) {
      return false;
    }
    one->report.rejectionReason = "the model says " + std::to_string(lowerBound / bestUpperBound) + " times the best";
    return true;
  };
  contenders.erase(std::remove_if(contenders.begin() + 1, contenders.end(), isHopeless), contenders.end());
}

void keepFastest(Contenders& contenders) {
  std::stable_sort(contenders.begin() + 1, contenders.end(), [](const Candidate* a, const Candidate* b) {
    return a->report.measuredSeconds < b->report.measuredSeconds;
  });
  for (std::size_t k = 1 + finalists; k < contenders.size(); ++k) {
    contenders[k]->report.rejectionReason = "slower in a first round";
  }
  contenders.resize(std::min(contenders.size(), 1 + finalists));
}

/// By the median of the ratios to the baseline, repeat by repeat: what disturbs a repeat hits both.
Candidate* fastest(const Contenders& contenders) {
  Candidate* const baseline = contenders.front();
  Candidate* best = baseline;
  double bestRatio = clearGain;
  for (Candidate* const one : contenders) {
    if (one != baseline) {
      const double ratio = median(ratios(one->seconds, baseline->seconds));
      if (ratio < bestRatio) {
        best = one;
        bestRatio = ratio;
      }
    }
  }
  for (Candidate* const one : contenders) {
    if (one != best) {
      one->report.rejectionReason = best == baseline ? "not clearly faster" : "slower";
    }
  }
  return best;
}

}  // namespace

std::size_t chooseCandidate(std::vector<Candidate>& candidates, const ResolvedOptions& options,
                            const CandidateTimer& timer) {
  Contenders contenders = selectAllowed(candidates, options);
  if (options.machine) {
    pruneByModel(contenders);
  }
  if (contenders.size() > 1) {
    timer.measure(contenders, shortRound);
    keepFastest(contenders);
    timer.measure(contenders, longRound);
  }
  Candidate* const chosen = fastest(contenders);
  chosen->report.rejectionReason.clear();
  return static_cast<std::size_t>(chosen - candidates.data());
}

}  // namespace Komvos::Impl
