/// \file Komvos_HaloPlanner.hpp
/// From a pattern and some wishes to a plan: which route, on which topology, and what it changes.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_NodePairing.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_Traffic.hpp"

namespace Komvos {

/// Which route a halo takes.
enum class RouteChoice {
  standard,
  threeStep,
  automatic,  ///< measure the candidates on this halo, keep standard unless another is clearly faster
};

/// \throws BadInput unless `text` is one of "standard", "three-step", "auto".
RouteChoice parseRoute(const std::string& text);

/// Wishes for a halo. What is left empty comes from the environment (Komvos_Settings.hpp), then from the default.
struct ExchangeOptions {
  std::optional<RouteChoice> route;              ///< default: automatic
  std::optional<Pairing> pairing;                ///< default: byVolume
  std::optional<OnNodeHops> onNode;              ///< default: messages
  std::shared_ptr<const NodeTopology> topology;  ///< default: what MPI says
};

/// A route as chosen, not yet prepared. `choice` must not be automatic.
std::unique_ptr<Route> makeRoute(RouteChoice choice, const NodeTopology& topology, Pairing pairing);

/// What was decided for one halo, over all ranks.
struct HaloReport {
  std::string route;        ///< chosen
  Traffic standard;         ///< of the standard route
  Traffic chosen;           ///< of the route that was chosen
  double setupSeconds = 0;  ///< maximum over ranks, measuring included
  /// Median seconds of one exchange of one column of double, maximum over ranks; 0 where nothing was measured.
  double standardSeconds = 0;
  double chosenSeconds = 0;
};

struct PlannedHalo {
  std::shared_ptr<const ExchangePlan> plan;
  OnNodeHops onNode = OnNodeHops::messages;
  HaloReport report;
};

/// \note Collective on `comm`.
/// \throws BadInput on all ranks if a pattern, topology or option on one of them cannot be used.
PlannedHalo planHalo(MPI_Comm comm, Pattern pattern, const ExchangeOptions& options);

}  // namespace Komvos
