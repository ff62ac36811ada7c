/// \file Komvos_HaloTuner.hpp
/// Which variant each exchange of a halo takes, and the plans of these variants.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloUse.hpp"
#include "Komvos_IntraNode.hpp"
#include "Komvos_Pattern.hpp"

namespace Komvos {

struct HaloReport;
struct RouteChoice;
struct TuningDecision;

namespace Impl {

struct Candidate;
class Precedent;
struct ResolvedOptions;
struct SurveyedHalo;
struct MessageCosts;

/// What an exchange needs of a variant.
struct HaloVariant {
  std::size_t number;  ///< in its halo
  std::shared_ptr<const ExchangePlan> plan;
  IntraNode intraNode;
};

/// One for each halo of which something is left to decide while it is used. Forward exchanges take the variant in use,
/// or the one whose turn it is. Exchanges in the reverse direction always take the same route.
///
/// Forward exchanges are counted, on all ranks alike: each is a forward(), then a record() or an abandon().
class HaloTuner {
 public:
  /// \param candidates the routes that are planned, by messages; the first is the standard route
  /// \param start      what forward exchanges take, or take at first; its route is planned
  /// \param reverse    the route of the reverse direction
  HaloTuner(MPI_Comm comm, Pattern pattern, const ResolvedOptions& options, const std::vector<Candidate>& candidates,
            const TuningDecision& start, const RouteChoice& reverse, const Precedent& precedent);
  ~HaloTuner();
  HaloTuner(const HaloTuner&) = delete;
  HaloTuner& operator=(const HaloTuner&) = delete;

  /// From now on forward exchanges are trials.
  /// \param planning seconds that went into the route it starts with
  void tuneOnline(const SurveyedHalo& halo, const MessageCosts& costs, double planning);

  /// For the next forward exchange, or the one that is not over yet.
  /// \note Collective: some exchanges begin with a plan, or with the result of a reduction that was started a few
  /// exchanges before.
  HaloVariant forward();
  /// The forward exchange is over; `use` as this rank saw it.
  void record(const HaloUse& use);
  /// The forward exchange is over, without a time.
  void abandon();
  /// Whether record() wants times.
  bool wantsTimes() const;
  /// Whether the next or present exchange is a sample, so that nothing else should be varied in it.
  bool isSampling() const;
  /// The variant in use but for trials.
  HaloVariant incumbent() const;

  /// For exchanges in the reverse direction. \note Collective the first time: it may plan.
  HaloVariant reverse();

  /// Whether an exchange along this variant should be kept.
  bool isInUse(std::size_t number) const;
  /// Changes where isInUse() may have changed.
  long generation() const;

  /// Brings a report up to date.
  void update(HaloReport& report) const;
  std::size_t memoryBytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Impl

}  // namespace Komvos
