/// \file Komvos_Precedent.hpp
/// How a halo was decided before.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "Komvos_Pattern.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_TuningCache.hpp"

namespace Komvos::Impl {

/// How a halo was decided before, in a tuning cache or earlier on this communicator, and where to keep how it is now.
class Precedent {
 public:
  /// Takes a decision over into the options, as if it had been given there.
  /// \param cache where decisions are kept, too; may be null, and may be given on some ranks only
  /// \note Collective on `comm`.
  Precedent(MPI_Comm comm, const Pattern& pattern, ResolvedOptions& options, std::shared_ptr<TuningCache> cache);

  /// Whether a halo of the same pattern was decided earlier in this run.
  bool reused() const { return reused_; }
  /// Variants that lost against it then.
  const std::vector<TuningDecision>& lost() const { return lost_; }

  /// \param lost variants that lost against it
  void keep(const TuningDecision& decision, const std::vector<TuningDecision>& lost);

 private:
  struct Earlier;

  bool remembers_;
  bool reused_ = false;
  HaloKey key_;
  std::uint64_t hash_ = 0;
  std::vector<TuningDecision> lost_;
  std::shared_ptr<Earlier> earlier_;
  std::shared_ptr<TuningCache> cache_;
};

}  // namespace Komvos::Impl
