#include "Komvos_HaloPlanner.hpp"

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "Komvos_CandidateChoice.hpp"
#include "Komvos_CandidateTimer.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Hash.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_RouteCandidates.hpp"
#include "Komvos_TuningCache.hpp"

namespace Komvos {

namespace {

/// What was measured on a communicator, the same on all its ranks: by a hash of pattern and options.
struct EarlierDecisions {
  std::unordered_map<std::uint64_t, TuningDecision> byHalo;
};

/// How a halo was decided before, in a tuning cache or earlier on this communicator, and where to keep how it is now.
class Precedent {
 public:
  /// Takes a decision over into the options, as if it had been given there. \note Collective on `comm`.
  Precedent(MPI_Comm comm, const Pattern& pattern, Impl::ResolvedOptions& options)
      : remembers_(options.reuseDecisions && !options.tuningCache && options.leavesOpen()) {
    if (options.tuningCache || options.someRankRecords || remembers_) {
      key_ = makeHaloKey(comm, pattern, *options.topology.nodes);
    }
    if (options.tuningCache) {
      follow(options.tuningCache->find(key_), options);
    } else if (remembers_) {
      earlier_ =
          &Impl::PrivateComm::of(comm)->attached<EarlierDecisions>([] { return std::make_shared<EarlierDecisions>(); });
      hash_ = Impl::mix(key_.pattern, options.fingerprint());
      const auto found = earlier_->byHalo.find(hash_);
      if (found != earlier_->byHalo.end()) {
        reused_ = true;
        follow(found->second, options);
      }
    }
  }

  bool reused() const { return reused_; }

  /// \param cache may be null
  void keep(const TuningDecision& decision, TuningCache* cache) {
    if (cache != nullptr) {
      cache->add(key_, decision);
    }
    if (remembers_) {
      earlier_->byHalo[hash_] = decision;
    }
  }

 private:
  static void follow(const TuningDecision& decision, Impl::ResolvedOptions& options) {
    options.route = decision.route;
    options.pairing = decision.pairing;
    options.intraNode = decision.intraNode;
  }

  bool remembers_;
  bool reused_ = false;
  HaloKey key_;
  std::uint64_t hash_ = 0;
  EarlierDecisions* earlier_ = nullptr;
};

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
  Precedent precedent(comm, pattern, resolved);

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
  precedent.keep({candidates[chosen].report.route, resolved.pairing, halo.intraNode}, options.record.get());
  halo.report = reportOf(candidates, chosen, resolved.pairing);
  halo.report.decisionReused = precedent.reused();
  halo.report.setupSeconds = MPI_Wtime() - start;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &halo.report.setupSeconds, 1, MPI_DOUBLE, MPI_MAX, ours->get()),
           "MPI_Allreduce");
  return halo;
}

}  // namespace Komvos
