/// \file Komvos_Precedent.hpp
/// How a halo was decided before.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_HaloUse.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_TuningCache.hpp"

namespace Komvos::Impl {

struct SurveyedHalo;

/// How a halo was decided before, in a tuning cache or earlier on this communicator, and where to keep how it is now.
class Precedent {
 public:
  /// Takes a decision over into the options, as if it had been given there. Where their tuning cache has none, it is
  /// taken out of them.
  /// \note Collective on `comm` the first time.
  /// \throws BadInput on all ranks if a tuning cache has no decision but must
  Precedent(MPI_Comm comm, const SurveyedHalo& halo, ResolvedOptions& options);

  /// Whether the tuning cache had a decision.
  bool fromTuningCache() const { return fromTuningCache_; }
  /// Whether that is the decision for vectors of any width, so that nothing is left to tune.
  bool isForAllWidths() const { return isForAllWidths_; }
  /// Why it had not; empty if it had, or if there is none.
  const std::string& tuningCacheNote() const { return note_; }
  /// Whether a halo of the same pattern was decided earlier in this run.
  bool reused() const { return reused_; }
  /// How it was decided for vectors of a width class; nothing if it was not.
  struct OfClass {
    TuningDecision chosen;
    std::vector<TuningDecision> lost = {};  ///< against it
    bool allLost = false;                   ///< all others did, whatever they are
  };
  const std::optional<OfClass>& ofClass(int widthClass) const { return ofClass_[widthClass]; }
  /// Whether the decision that is followed was settled; nothing if none is.
  const std::optional<bool>& settled() const { return settled_; }

  /// How this halo was guessed in the tuning cache, or how the most similar one was decided there or after a trial in
  /// this run, if its route can be had here.
  std::optional<TuningDecision> ofSimilar() const;

  /// Before it was used.
  void keep(const TuningDecision& decision);
  /// The tuning cache keeps the last decision for each width class that is settled, if there is one.
  /// \param lost variants that lost against it with vectors of this width class
  void keep(const TuningDecision& decision, int widthClass, const std::vector<TuningDecision>& lost);

 private:
  struct Earlier;

  bool takeFrom(const TuningCache& cache, ResolvedOptions& options);
  void record(TuningDecision decision, int widthClass);
  std::optional<TuningDecision> nearestHere() const;

  bool remembers_;
  bool reused_ = false;
  bool fromTuningCache_ = false;
  bool isForAllWidths_ = false;
  std::string note_;
  std::shared_ptr<const TuningCache> tuningCache_;  // that had no decision
  ResolvedTopology topology_;
  HaloKey key_;
  std::uint64_t options_ = 0;  // their fingerprint
  std::array<std::optional<OfClass>, numWidthClasses> ofClass_;
  std::optional<bool> settled_;
  std::vector<TuningDecision> ofTuningCache_;  // for this halo, if they are followed
  std::optional<TuningDecision> guess_;        // of the tuning cache for this very halo
  std::shared_ptr<Earlier> earlier_;
  std::shared_ptr<TuningCache> record_;
  std::array<bool, numWidthClasses> recordsSettled_ = {};
  int columns_;  // of vectors, as far as that is known
};

}  // namespace Komvos::Impl
