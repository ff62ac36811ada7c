/// \file Komvos_HaloSurvey.hpp
/// What all ranks must know of halos before a route is chosen, found out for any number of them in one round.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "Komvos_HaloCounts.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_RouteCandidates.hpp"

namespace Komvos::Impl {

/// A halo as all ranks know it, and the plan of its standard route.
struct SurveyedHalo {
  std::uint64_t patterns = 0;  ///< a hash over the patterns of all ranks
  HaloCounts counts;           ///< the most on any rank
  Candidate standard;
  double seconds = 0;       ///< of set-up so far, its share of them, the most on any rank
  double workSeconds = 0;   ///< of that, what its own size took, and ranks that share cores
  double roundSeconds = 0;  ///< that a collective operation takes
};

/// \param patterns of this rank, normalized; one for each halo
/// \note Collective on `comm`: one reduction, for all halos together.
/// \throws BadInput on all ranks if a pattern of one is inconsistent, or what ranks send is not what others need
std::vector<SurveyedHalo> surveyHalos(MPI_Comm comm, const ResolvedOptions& options,
                                      const std::vector<Pattern>& patterns);

}  // namespace Komvos::Impl
