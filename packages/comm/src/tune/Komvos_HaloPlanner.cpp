#include "Komvos_HaloPlanner.hpp"

#include <utility>
#include <vector>

#include "Komvos_CandidateChoice.hpp"
#include "Komvos_CandidateTimer.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_RouteCandidates.hpp"
#include "Komvos_TuningCache.hpp"

namespace Komvos {

namespace {

/// From here on the decision is followed as if it had been given as options.
void follow(const TuningDecision& decision, Impl::ResolvedOptions& options) {
  options.route = decision.route;
  options.pairing = decision.pairing;
  options.intraNode = decision.intraNode;
}

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

}  // namespace

PlannedHalo planHalo(MPI_Comm comm, Pattern pattern, const ExchangeOptions& options) {
  const double start = MPI_Wtime();
  const std::shared_ptr<Impl::PrivateComm> ours = Impl::PrivateComm::of(comm);
  Impl::ResolvedOptions resolved = Impl::resolveOptions(*ours, options);
  pattern.normalize();
  HaloKey key;
  if (resolved.tuningCache || resolved.someRankRecords) {
    key = makeHaloKey(ours->get(), pattern, *resolved.topology.nodes);
  }
  if (resolved.tuningCache) {
    follow(resolved.tuningCache->find(key), resolved);
  }

  const Impl::CandidateTimer timer(comm, pattern.numOwned, pattern.numTarget, resolved.mpiIsGpuAware,
                                   resolved.forceStaging);
  std::vector<Impl::Candidate> candidates = Impl::planCandidates(comm, std::move(pattern), resolved);
  const std::size_t chosen = Impl::chooseCandidate(candidates, resolved, timer);

  PlannedHalo halo;
  halo.plan = candidates[chosen].plan;
  halo.intraNode = candidates[chosen].report.intraNode;
  halo.columns = resolved.columns;
  halo.mpiIsGpuAware = resolved.mpiIsGpuAware;
  halo.forceStaging = resolved.forceStaging;
  if (options.record) {
    options.record->add(key, {candidates[chosen].report.route, resolved.pairing, halo.intraNode});
  }
  halo.report = reportOf(candidates, chosen, resolved.pairing);
  halo.report.setupSeconds = MPI_Wtime() - start;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &halo.report.setupSeconds, 1, MPI_DOUBLE, MPI_MAX, ours->get()),
           "MPI_Allreduce");
  return halo;
}

}  // namespace Komvos
