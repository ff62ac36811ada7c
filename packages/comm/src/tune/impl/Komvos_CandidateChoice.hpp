/// \file Komvos_CandidateChoice.hpp
/// The decision for one candidate.
#pragma once

#include <cstddef>
#include <vector>

#include "Komvos_CandidateTimer.hpp"
#include "Komvos_RouteCandidates.hpp"

namespace Komvos::Impl {

/// Chooses among the candidates that the options allow. Nothing is measured where one is left.
/// \param candidates the first is the standard route by messages; the rejectionReason of all others than the chosen
/// one is set
/// \return index of the chosen candidate, the same on all ranks
/// \note Collective on the communicator of the timer.
std::size_t chooseCandidate(std::vector<Candidate>& candidates, const ResolvedOptions& options,
                            const CandidateTimer& timer);

}  // namespace Komvos::Impl
