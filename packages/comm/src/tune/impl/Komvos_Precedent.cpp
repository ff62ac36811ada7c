#include "Komvos_Precedent.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_HaloSurvey.hpp"
#include "Komvos_Hash.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Route.hpp"

// How this works. A decision for the same halo is looked for in the tuning cache, then among those of this
// communicator. Failing that, the decision for the most similar halo is a first guess, from the tuning cache if it has
// one. All of that is the same on all ranks, and so is what comes out.
namespace Komvos::Impl {

/// What was decided on a communicator, the same on all its ranks: by a hash of pattern and options. The oldest ones go
/// where a program has ever new halos.
struct Precedent::Earlier {
  static constexpr std::size_t most = 1024;
  struct Decision {
    HaloKey halo;
    std::uint64_t options;
    TuningDecision chosen;
    std::vector<TuningDecision> lost;
    std::uint64_t turn;
  };
  std::map<std::uint64_t, Decision> byHalo;
  std::uint64_t turns = 0;

  void keep(std::uint64_t hash, Decision decision) {
    decision.turn = turns++;
    byHalo[hash] = std::move(decision);
    if (byHalo.size() > most) {
      byHalo.erase(std::min_element(byHalo.begin(), byHalo.end(),
                                    [](const auto& a, const auto& b) { return a.second.turn < b.second.turn; }));
    }
  }
};

Precedent::Precedent(MPI_Comm comm, const SurveyedHalo& halo, ResolvedOptions& options)
    : remembers_(options.reuseDecisions && options.leavesOpen()), topology_(options.topology), record_(options.record) {
  const auto follow = [&options](const TuningDecision& decision) {
    options.route = decision.route;
    options.pairing = decision.pairing;
    options.intraNode = decision.intraNode;
  };
  if (options.tuningCache || options.someRankRecords || remembers_) {
    key_ = makeHaloKey(comm, halo.patterns, halo.counts, *options.topology.nodes);
  }
  if (options.tuningCache) {
    const TuningDecision* const decision = options.tuningCache->find(key_);
    if (decision != nullptr) {
      follow(*decision);
      fromTuningCache_ = true;
      remembers_ = false;
      return;
    }
    note_ = options.tuningCache->whyNone(key_);
    if (options.requireTuningCache) {
      throw BadInput(note_);
    }
    tuningCache_ = std::move(options.tuningCache);
  }
  if (remembers_) {
    struct Holder {
      std::shared_ptr<Earlier> earlier = std::make_shared<Earlier>();
    };
    earlier_ = PrivateComm::of(comm)->attached<Holder>([] { return std::make_shared<Holder>(); }).earlier;
    options_ = options.fingerprint();
    const auto found = earlier_->byHalo.find(mix(key_.pattern, options_));
    if (found != earlier_->byHalo.end()) {
      reused_ = true;
      lost_ = found->second.lost;
      follow(found->second.chosen);
    }
  }
}

/// Of those decisions of this run that were compared with others.
std::optional<TuningDecision> Precedent::nearestHere() const {
  std::optional<TuningDecision> nearest;
  double least = HUGE_VAL;
  for (const auto& [hash, one] : earlier_->byHalo) {
    const std::optional<double> here = difference(one.halo, key_);
    if (here && *here < least && one.options == options_ && !one.lost.empty()) {
      least = *here;
      nearest = one.chosen;
    }
  }
  return nearest;
}

std::optional<TuningDecision> Precedent::ofSimilar() const {
  std::optional<TuningDecision> similar;
  if (tuningCache_ && tuningCache_->findSimilar(key_) != nullptr) {
    similar = *tuningCache_->findSimilar(key_);
  } else if (remembers_) {
    similar = nearestHere();
  }
  if (similar) {
    try {
      makeRoute(similar->route, *topology_.nodes, similar->pairing, topology_.sockets.get());
    } catch (const BadInput&) {  // a grid of other ranks
      similar.reset();
    }
  }
  return similar;
}

void Precedent::keep(const TuningDecision& decision, const std::vector<TuningDecision>& lost) {
  if (record_) {
    record_->add(key_, decision);
  }
  if (remembers_) {
    earlier_->keep(mix(key_.pattern, options_), {key_, options_, decision, lost, 0});
  }
}

}  // namespace Komvos::Impl
