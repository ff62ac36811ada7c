/// \file Komvos_HaloPlanner.hpp
/// From a pattern and options to a plan: which route, on which topology, and what carries values on the node.
#pragma once

#include <mpi.h>

#include <memory>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloReport.hpp"
#include "Komvos_Pattern.hpp"

namespace Komvos {

namespace Impl {
class HaloTuner;
}

/// All that an Exchange needs, and how it was chosen.
struct PlannedHalo {
  std::shared_ptr<const ExchangePlan> plan;
  IntraNode intraNode = IntraNode::messages;
  int columns = 1;
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
/// another candidate is clearly faster. \param pattern need not be normalized \note Collective on `comm`. \throws
/// BadInput on all ranks if a pattern, topology, option or tuning cache on one of them cannot be used.
PlannedHalo planHalo(MPI_Comm comm, Pattern pattern, const ExchangeOptions& options);

}  // namespace Komvos
