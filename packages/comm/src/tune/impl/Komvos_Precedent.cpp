#include "Komvos_Precedent.hpp"

#include <algorithm>
#include <array>
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
    std::uint64_t options = 0;
    TuningDecision chosen;  // last
    std::array<std::optional<OfClass>, numWidthClasses> ofClass = {};
    std::uint64_t turn = 0;

    bool wasCompared() const {
      return std::any_of(ofClass.begin(), ofClass.end(), [](const auto& one) { return one && !one->lost.empty(); });
    }
  };
  std::map<std::uint64_t, Decision> byHalo;
  std::uint64_t turns = 0;

  void keep(std::uint64_t hash, const HaloKey& halo, std::uint64_t options, const TuningDecision& chosen) {
    Decision& kept = byHalo[hash];
    kept.halo = halo;
    kept.options = options;
    kept.chosen = chosen;
    kept.turn = turns++;
    if (byHalo.size() > most) {  // the oldest is another one
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
    if (decision != nullptr && (decision->settled || options.requireTuningCache)) {
      follow(*decision);
      settled_ = decision->settled;
      fromTuningCache_ = true;
      remembers_ = false;
      return;
    }
    note_ = decision == nullptr ? options.tuningCache->whyNone(key_)
                                : "tuning cache " + options.tuningCache->name() +
                                      ": the run that saved it was too short to decide, it is a first guess";
    guess_ = decision != nullptr ? std::optional<TuningDecision>(*decision) : std::nullopt;
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
      const Earlier::Decision& decision = found->second;
      ofClass_ = decision.ofClass;
      settled_ = decision.chosen.settled;
      follow(decision.chosen);
    }
  }
}

/// Of those decisions of this run that were compared with others.
std::optional<TuningDecision> Precedent::nearestHere() const {
  std::optional<TuningDecision> nearest;
  double least = HUGE_VAL;
  for (const auto& [hash, one] : earlier_->byHalo) {
    const std::optional<double> here = difference(one.halo, key_);
    if (here && *here < least && one.options == options_ && one.wasCompared()) {
      least = *here;
      nearest = one.chosen;
    }
  }
  return nearest;
}

std::optional<TuningDecision> Precedent::ofSimilar() const {
  std::optional<TuningDecision> similar;
  if (guess_) {
    similar = guess_;
  } else if (tuningCache_ && tuningCache_->findSimilar(key_) != nullptr) {
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

void Precedent::keep(const TuningDecision& decision) {
  if (record_ && (decision.settled || !recordsSettled_)) {
    record_->add(key_, decision);
    recordsSettled_ = decision.settled;
  }
  if (remembers_) {
    earlier_->keep(mix(key_.pattern, options_), key_, options_, decision);
  }
}

void Precedent::keep(const TuningDecision& decision, int widthClass, const std::vector<TuningDecision>& lost) {
  keep(decision);
  if (remembers_) {
    earlier_->byHalo.at(mix(key_.pattern, options_)).ofClass[widthClass] = OfClass{decision, lost};
  }
}

}  // namespace Komvos::Impl
