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
//
// A tuning cache may have decisions for some width classes only, or different ones. Then the halo begins with that for
// the vectors it is made for, or for the narrowest ones, and is tuned for vectors that none is for. What was decided in
// this run goes before what the tuning cache has then, as it rests on that.
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

namespace {

void follow(ResolvedOptions& options, const TuningDecision& decision) {
  options.route = decision.route;
  options.pairing = decision.pairing;
  options.intraNode = decision.intraNode;
}

bool isSameVariant(const TuningDecision& a, const TuningDecision& b) {
  return a.route == b.route && a.pairing == b.pairing && a.intraNode == b.intraNode;
}

}  // namespace

/// \return whether there was a decision to follow
bool Precedent::takeFrom(const TuningCache& cache, ResolvedOptions& options) {
  const auto isUsable = [&](const TuningDecision* decision) {
    return decision != nullptr && (decision->settled || options.requireTuningCache);
  };
  const TuningDecision* start = cache.find(key_, columns_);
  std::array<const TuningDecision*, numWidthClasses> found = {};
  for (int i = 0; i < numWidthClasses; ++i) {
    found[i] = cache.find(key_, columnsOfClass(i));
    start = isUsable(start) ? start : found[i];
  }
  if (!isUsable(start)) {
    return false;
  }
  follow(options, *start);
  settled_ = start->settled;
  fromTuningCache_ = true;
  isForAllWidths_ = options.requireTuningCache || std::all_of(found.begin(), found.end(), [&](const auto* one) {
                      return isUsable(one) && isSameVariant(*one, *start);
                    });
  for (int i = 0; i < numWidthClasses; ++i) {
    if (isUsable(found[i]) && found[i]->pairing == start->pairing) {  // a halo has one pairing
      ofClass_[i] = OfClass{*found[i], {}, true};
    }
    if (found[i] != nullptr && std::none_of(ofTuningCache_.begin(), ofTuningCache_.end(), [&](const auto& one) {
          return one.columnsFrom == found[i]->columnsFrom;
        })) {
      ofTuningCache_.push_back(*found[i]);
    }
  }
  return true;
}

Precedent::Precedent(MPI_Comm comm, const SurveyedHalo& halo, ResolvedOptions& options)
    : remembers_(options.reuseDecisions && options.leavesOpen()),
      topology_(options.topology),
      record_(options.record),
      columns_(std::max(1, options.columns)) {
  if (options.tuningCache || options.someRankRecords || remembers_) {
    key_ = makeHaloKey(comm, halo.patterns, halo.counts, *options.topology.nodes);
    options_ = options.fingerprint();
  }
  if (options.tuningCache) {
    const TuningDecision* const decision = options.tuningCache->find(key_);
    if (takeFrom(*options.tuningCache, options)) {
      remembers_ = remembers_ && !isForAllWidths_;
    } else {
      note_ = decision == nullptr ? options.tuningCache->whyNone(key_)
                                  : "tuning cache " + options.tuningCache->name() +
                                        ": the run that saved it was too short to decide, it is a first guess";
      guess_ = decision != nullptr ? std::optional<TuningDecision>(*decision) : std::nullopt;
      if (options.requireTuningCache) {
        throw BadInput(note_);
      }
      tuningCache_ = std::move(options.tuningCache);
    }
  }
  if (remembers_) {
    struct Holder {
      std::shared_ptr<Earlier> earlier = std::make_shared<Earlier>();
    };
    earlier_ = PrivateComm::of(comm)->attached<Holder>([] { return std::make_shared<Holder>(); }).earlier;
    const auto found = earlier_->byHalo.find(mix(key_.pattern, options_));
    if (found != earlier_->byHalo.end()) {
      reused_ = true;
      const Earlier::Decision& decision = found->second;
      for (int i = 0; i < numWidthClasses; ++i) {
        ofClass_[i] = decision.ofClass[i] ? decision.ofClass[i] : ofClass_[i];
      }
      settled_ = decision.chosen.settled;
      follow(options, decision.chosen);
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
  } else if (tuningCache_ && tuningCache_->findSimilar(key_, columns_) != nullptr) {
    similar = *tuningCache_->findSimilar(key_, columns_);
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
  bool isKnown = false;  // for some width class
  for (const TuningDecision& one : ofTuningCache_) {
    isKnown = true;
    if (one.columnsFrom != 0) {
      record(one, widthClass(one.columnsFrom));
    } else if (record_) {
      record_->add(key_, one);
    }
  }
  for (int i = 0; i < numWidthClasses; ++i) {
    if (ofClass_[i] && !ofClass_[i]->allLost) {  // decided in this run
      isKnown = true;
      record(ofClass_[i]->chosen, i);
    }
  }
  if (record_ && !isKnown) {
    record_->add(key_, decision);
  }
  if (remembers_) {
    earlier_->keep(mix(key_.pattern, options_), key_, options_, decision);
  }
}

void Precedent::keep(const TuningDecision& decision, int widthClass, const std::vector<TuningDecision>& lost) {
  record(decision, widthClass);
  if (remembers_) {
    earlier_->keep(mix(key_.pattern, options_), key_, options_, decision);
    earlier_->byHalo.at(mix(key_.pattern, options_)).ofClass[widthClass] = OfClass{decision, lost};
  }
}

void Precedent::record(TuningDecision decision, int widthClass) {
  if (record_ && (decision.settled || !recordsSettled_[widthClass])) {
    decision.columnsFrom = columnsOfClass(widthClass);
    record_->add(key_, decision);
    recordsSettled_[widthClass] = decision.settled;
  }
}

}  // namespace Komvos::Impl
