#include "Komvos_HaloPlanner.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "Komvos_CandidateChoice.hpp"
#include "Komvos_CandidateTimer.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HaloSurvey.hpp"
#include "Komvos_HaloTuner.hpp"
#include "Komvos_MessageCosts.hpp"
#include "Komvos_Precedent.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Reduction.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_RouteCandidates.hpp"
#include "Komvos_RouteForecast.hpp"
#include "Komvos_TuningCache.hpp"
#include "Komvos_VariantForecast.hpp"

namespace Komvos {

namespace {

/// \param candidates the first is the standard route by messages; their reports are moved from
HaloReport reportOf(std::vector<Impl::Candidate>& candidates, std::size_t chosen, Pairing pairing) {
  const HaloCandidate& standard = candidates.front().report;
  const HaloCandidate& best = candidates[chosen].report;
  HaloReport report;
  report.route = candidates[chosen].plan->route;
  report.pairing = pairing;
  report.intraNode = best.intraNode;
  report.standard = standard.traffic;
  report.chosen = best.traffic;
  report.standardSeconds = standard.measuredSeconds;
  report.chosenSeconds = best.measuredSeconds;
  for (Impl::Candidate& one : candidates) {
    report.candidates.push_back(std::move(one.report));
  }
  return report;
}

/// What messages cost here. \param halo gets the time it took, if it had to be measured
/// \note Collective on `comm` if there is no machine model.
Impl::MessageCosts messageCosts(MPI_Comm comm, const Impl::ResolvedOptions& options, Impl::SurveyedHalo& halo) {
  if (options.machine) {
    return Impl::costsOf(*options.machine);
  }
  if (!options.calibrates || options.route != RouteChoice::automatic || halo.counts.ranksOffNode == 0) {
    return {};
  }
  double seconds = 0;
  const Impl::MessageCosts costs =
      Impl::quickCalibration(*Impl::PrivateComm::of(comm), *options.topology.nodes, seconds);
  halo.seconds += seconds;
  return costs;
}

/// Where nothing is measured before the first use: what is best for a similar halo; else a route that promises much;
/// else the standard route. And shared memory on the nodes where it can be had, which is seldom slower.
void takeFirstGuess(Impl::ResolvedOptions& options, const std::optional<TuningDecision>& similar,
                    const Impl::VariantForecast& forecast) {
  if (similar && options.route == RouteChoice::automatic) {
    options.route = similar->route;
    options.pairing = similar->pairing;
  }
  if (similar && options.intraNode == IntraNode::automatic) {
    options.intraNode = similar->intraNode;
  }
  if (options.intraNode == IntraNode::automatic) {
    options.intraNode = Impl::canShareMemory(options) ? IntraNode::sharedMemory : IntraNode::messages;
  }
  if (options.route == RouteChoice::automatic) {
    const std::vector<RouteChoice> routes =
        Impl::combiningRoutes(*options.topology.nodes, options.topology.sockets.get());
    options.route = forecast.promising(routes, options.intraNode, std::max(1, options.columns))
                        .value_or(RouteChoice(RouteChoice::standard));
  }
}

/// \param candidates the same route may be there twice, by messages first
std::vector<Impl::Candidate> onePerRoute(const std::vector<Impl::Candidate>& candidates) {
  std::vector<Impl::Candidate> planned;
  for (const Impl::Candidate& one : candidates) {
    if (one.report.intraNode == IntraNode::messages) {
      planned.push_back(one);
    }
  }
  return planned;
}

/// From the survey on, by itself. \param pattern normalized
PlannedHalo planSurveyed(MPI_Comm comm, Pattern pattern, Impl::SurveyedHalo halo,
                         const Impl::ResolvedOptions& options) {
  Impl::ResolvedOptions asked = options;
  Impl::ResolvedOptions resolved = options;
  const bool reverseIsOpen = asked.route == RouteChoice::automatic;
  Impl::Precedent precedent(comm, halo, resolved);
  const bool tunesLater = asked.leavesOpen() && !precedent.isForAllWidths() && asked.tuning == Tuning::online;
  const bool measures = resolved.leavesOpen() && asked.tuning == Tuning::exhaustive;
  const bool guesses = resolved.leavesOpen() && !measures;
  const Impl::MessageCosts costs = tunesLater ? messageCosts(comm, resolved, halo) : Impl::MessageCosts();
  std::optional<TuningDecision> similar;
  if (guesses) {
    similar = precedent.ofSimilar();
    takeFirstGuess(resolved, similar, {halo, *resolved.topology.nodes, costs});
  }

  const double start = MPI_Wtime();
  const Impl::CandidateTimer timer(comm, pattern.numOwned, pattern.numTarget, resolved.mpiIsGpuAware,
                                   resolved.forceStaging);
  std::vector<Impl::Candidate> candidates = Impl::planCandidates(comm, halo.standard, pattern, resolved);
  asked.pairing = resolved.pairing;
  std::vector<Impl::Candidate> planned = onePerRoute(candidates);
  const std::size_t chosen = Impl::chooseCandidate(candidates, resolved, timer);
  double planning = 0;
  if (measures) {
    halo.seconds += MPI_Wtime() - start;
    Impl::Reduction most;
    most.maximum(halo.seconds);
    most.run(*Impl::PrivateComm::of(comm));
  } else {
    for (std::size_t i = 1; i < planned.size(); ++i) {
      planning += planned[i].report.buildSeconds;
    }
    halo.seconds += planning;
  }

  PlannedHalo made;
  made.plan = candidates[chosen].plan;
  made.intraNode = candidates[chosen].report.intraNode;
  made.columns = resolved.columns;
  made.mpiIsGpuAware = resolved.mpiIsGpuAware;
  made.forceStaging = resolved.forceStaging;
  const bool isGuess = tunesLater || guesses;
  const TuningDecision decision{candidates[chosen].report.route, resolved.pairing, made.intraNode,
                                precedent.settled().value_or(!isGuess)};
  precedent.keep(decision);
  const RouteChoice reverse =
      reverseIsOpen ? Impl::reverseRoute(halo.counts, *resolved.topology.nodes) : decision.route;
  made.report = reportOf(candidates, chosen, resolved.pairing);
  made.report.reverseRoute = toString(reverse);
  made.report.decisionReused = precedent.reused();
  made.report.beganAsSimilar = similar.has_value();
  made.report.beganAsForecast = guesses && !similar && resolved.route != RouteChoice::standard && reverseIsOpen;
  made.report.fromTuningCache = precedent.fromTuningCache();
  made.report.tuningCacheNote = precedent.tuningCacheNote();
  made.report.setupSeconds = halo.seconds;
  if (tunesLater || reverse != decision.route) {
    made.tuner = std::make_shared<Impl::HaloTuner>(comm, std::move(pattern), asked, std::move(planned), decision,
                                                   reverse, std::move(precedent));
  }
  if (tunesLater) {
    made.tuner->tuneOnline(halo, costs, planning);
  }
  return made;
}

}  // namespace

PlannedHalo planHalo(MPI_Comm comm, Pattern pattern, const ExchangeOptions& options) {
  return std::move(planHalos(comm, {std::move(pattern)}, options).front());
}

std::vector<PlannedHalo> planHalos(MPI_Comm comm, std::vector<Pattern> patterns, const ExchangeOptions& options) {
  return Impl::planHalos(
      comm, patterns.size(), {}, [&] { return std::move(patterns); }, options);
}

std::vector<PlannedHalo> Impl::planHalos(MPI_Comm comm, std::size_t numHalos, const std::string& error,
                                         const std::function<std::vector<Pattern>()>& makePatterns,
                                         const ExchangeOptions& options) {
  const ResolvedOptions resolved = resolveOptions(*PrivateComm::of(comm), options, numHalos, error);
  std::vector<Pattern> patterns = makePatterns();
  for (Pattern& one : patterns) {
    one.normalize();
  }
  std::vector<SurveyedHalo> surveyed = surveyHalos(comm, resolved, patterns);
  std::vector<PlannedHalo> halos;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    halos.push_back(planSurveyed(comm, std::move(patterns[i]), std::move(surveyed[i]), resolved));
  }
  return halos;
}

}  // namespace Komvos
