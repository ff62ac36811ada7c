/// \file Komvos_HaloPlanner.hpp
/// From a pattern and options to a plan: which route, on which topology, and what carries values on the node.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloReport.hpp"
#include "Komvos_Pattern.hpp"

namespace Komvos {

namespace Impl {
class HaloTuner;
}  // namespace Impl

/// All that an Exchange needs, and how it was chosen.
struct PlannedHalo {
  std::shared_ptr<const ExchangePlan> plan;
  IntraNode intraNode = IntraNode::messages;
  int columns = 0;             ///< as in ExchangeOptions
  bool mpiIsGpuAware = false;  ///< agreed among the ranks
  bool forceStaging = false;   ///< for tests, agreed among the ranks
  HaloReport report;
  /// Null where nothing is left to decide: all exchanges go along `plan`.
  std::shared_ptr<Impl::HaloTuner> tuner;
};

/// Plans a halo. What the options leave open is decided as earlier, where there is a tuning cache or such a halo was
/// tuned before (ExchangeOptions::reuseDecisions). Else it depends on ExchangeOptions::tuning. Online: the plan is that
/// of the standard route, and others are tried while the halo is used. Exhaustive: the machine model rejects candidates
/// that cannot win, the others are timed on this halo, in turn, and the standard route by messages is kept unless
/// another candidate is clearly faster.
/// \param pattern need not be normalized
/// \note Collective on `comm`.
/// \throws BadInput on all ranks if a pattern, topology, option or tuning cache on one of them cannot be used.
PlannedHalo planHalo(MPI_Comm comm, Pattern pattern, const ExchangeOptions& options);

/// Several halos of one communicator, such as those of a multigrid level: ranks agree on all of them in two collective
/// operations, which one halo takes as well.
/// \param patterns one for each halo, equally many on all ranks \note Collective, and throws, as planHalo()
std::vector<PlannedHalo> planHalos(MPI_Comm comm, std::vector<Pattern> patterns, const ExchangeOptions& options);

namespace Impl {
/// The same for `numHalos` patterns that ranks make together, once they have agreed that none has an error.
/// \param error that this rank has found before, or nothing \param makePatterns may be collective
std::vector<PlannedHalo> planHalos(MPI_Comm comm, std::size_t numHalos, const std::string& error,
                                   const std::function<std::vector<Pattern>()>& makePatterns,
                                   const ExchangeOptions& options);
}  // namespace Impl

}  // namespace Komvos
