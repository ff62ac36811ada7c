#include "Komvos_HaloPlanner.hpp"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "Komvos_CandidateChoice.hpp"
#include "Komvos_CandidateTimer.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HaloTuner.hpp"
#include "Komvos_Precedent.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_RouteCandidates.hpp"
#include "Komvos_RouteForecast.hpp"
#include "Komvos_TuningCache.hpp"

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

/// Where nothing is measured before the first use: what is best for a similar halo; else the standard route, and shared
/// memory on the nodes where it can be had, which is seldom slower.
void takeFirstGuess(Impl::ResolvedOptions& options, const std::optional<TuningDecision>& similar) {
  if (similar && options.route == RouteChoice::automatic) {
    options.route = similar->route;
    options.pairing = similar->pairing;
  }
  if (similar && options.intraNode == IntraNode::automatic) {
    options.intraNode = similar->intraNode;
  }
  if (options.route == RouteChoice::automatic) {
    options.route = RouteChoice::standard;
  }
  if (options.intraNode == IntraNode::automatic) {
    options.intraNode = Impl::canShareMemory(options) ? IntraNode::sharedMemory : IntraNode::messages;
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

}  // namespace

PlannedHalo planHalo(MPI_Comm comm, Pattern pattern, const ExchangeOptions& options) {
  const double start = MPI_Wtime();
  const std::shared_ptr<Impl::PrivateComm> ours = Impl::PrivateComm::of(comm);
  Impl::ResolvedOptions resolved = Impl::resolveOptions(*ours, options);
  resolved.startedAt = start;
  pattern.normalize();
  Impl::ResolvedOptions asked = resolved;
  const bool reverseIsOpen = asked.route == RouteChoice::automatic;
  Impl::Precedent precedent(comm, pattern, resolved, options.record);
  const bool tunesLater = asked.leavesOpen() && !precedent.fromTuningCache() && asked.tuning == Tuning::online;
  const bool measures = resolved.leavesOpen() && asked.tuning == Tuning::exhaustive;
  bool beganAsSimilar = false;
  const auto decide = [&](const HaloCounts& counts) {
    precedent.describe(counts);
    if (resolved.leavesOpen() && !measures) {
      const std::optional<TuningDecision> similar = precedent.ofSimilar();
      beganAsSimilar = similar.has_value();
      takeFirstGuess(resolved, similar);
    }
  };

  const Impl::CandidateTimer timer(comm, pattern.numOwned, pattern.numTarget, resolved.mpiIsGpuAware,
                                   resolved.forceStaging);
  std::vector<Impl::Candidate> candidates = Impl::planCandidates(comm, pattern, resolved, decide);
  asked.pairing = resolved.pairing;
  const HaloCounts counts = candidates.front().counts;
  const std::size_t chosen = Impl::chooseCandidate(candidates, resolved, timer);

  PlannedHalo halo;
  halo.plan = candidates[chosen].plan;
  halo.intraNode = candidates[chosen].report.intraNode;
  halo.columns = resolved.columns;
  halo.mpiIsGpuAware = resolved.mpiIsGpuAware;
  halo.forceStaging = resolved.forceStaging;
  const TuningDecision decision{candidates[chosen].report.route, resolved.pairing, halo.intraNode};
  precedent.keep(decision, precedent.lost());
  const RouteChoice reverse = reverseIsOpen ? Impl::reverseRoute(counts, *resolved.topology.nodes) : decision.route;
  std::vector<Impl::Candidate> planned = onePerRoute(candidates);
  halo.report = reportOf(candidates, chosen, resolved.pairing);
  halo.report.reverseRoute = toString(reverse);
  halo.report.decisionReused = precedent.reused();
  halo.report.beganAsSimilar = beganAsSimilar;
  halo.report.fromTuningCache = precedent.fromTuningCache();
  halo.report.tuningCacheNote = precedent.tuningCacheNote();
  halo.report.setupSeconds = candidates.back().secondsOfAll;
  if (measures) {
    halo.report.setupSeconds = MPI_Wtime() - start;
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &halo.report.setupSeconds, 1, MPI_DOUBLE, MPI_MAX, ours->get()),
             "MPI_Allreduce");
  }
  if (tunesLater || reverse != decision.route) {
    halo.tuner = std::make_shared<Impl::HaloTuner>(comm, std::move(pattern), asked, std::move(planned), decision,
                                                   reverse, std::move(precedent));
  }
  if (tunesLater) {
    halo.tuner->tuneOnline(counts, halo.report.setupSeconds);
  }
  return halo;
}

}  // namespace Komvos
