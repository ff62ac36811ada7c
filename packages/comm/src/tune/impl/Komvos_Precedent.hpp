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

  /// Whether the tuning cache had the decision.
  bool fromTuningCache() const { return fromTuningCache_; }
  /// Why it had not; empty if it had, or if there is none.
  const std::string& tuningCacheNote() const { return note_; }
  /// Whether a halo of the same pattern was decided earlier in this run.
  bool reused() const { return reused_; }
  /// Variants that lost against it then, with vectors of this width class.
  const std::vector<TuningDecision>& lost(int widthClass) const { return lost_[widthClass]; }

  /// How the most similar halo was decided, in the tuning cache or after a trial in this run, if its route can be had
  /// here.
  std::optional<TuningDecision> ofSimilar() const;

  /// Before it was used.
  void keep(const TuningDecision& decision);
  /// \param lost variants that lost against it with vectors of this width class
  void keep(const TuningDecision& decision, int widthClass, const std::vector<TuningDecision>& lost);

 private:
  struct Earlier;

  std::optional<TuningDecision> nearestHere() const;

  bool remembers_;
  bool reused_ = false;
  bool fromTuningCache_ = false;
  std::string note_;
  std::shared_ptr<const TuningCache> tuningCache_;  // that had no decision
  ResolvedTopology topology_;
  HaloKey key_;
  std::uint64_t options_ = 0;  // their fingerprint
  std::array<std::vector<TuningDecision>, numWidthClasses> lost_;
  std::shared_ptr<Earlier> earlier_;
  std::shared_ptr<TuningCache> record_;
};

}  // namespace Komvos::Impl
