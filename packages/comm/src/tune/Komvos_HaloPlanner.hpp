/// \file Komvos_HaloPlanner.hpp
/// From a pattern and some wishes to a plan: which route, on which topology, by what on the node, and what it changes.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_MachineModel.hpp"
#include "Komvos_NodePairing.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_Traffic.hpp"
#include "Komvos_TuningCache.hpp"

namespace Komvos {

/// Wishes for a halo. What is left empty comes from the environment (Komvos_Settings.hpp), then from the default.
struct ExchangeOptions {
  std::optional<RouteChoice> route;  ///< default: automatic
  std::optional<Pairing> pairing;    ///< default: byVolume
  std::optional<OnNodeWish> onNode;  ///< default: automatic, what is faster on this halo
  int columns = 1;  ///< vectors of up to so many columns find room in shared memory; wider ones go by messages
  std::shared_ptr<const NodeTopology> topology;  ///< default: what MPI says
  std::shared_ptr<const NodeTopology> sockets;   ///< default: where processes are bound, if `topology` is open too
  /// Drops routes that cannot win before they are measured. Default: none, all are measured.
  std::shared_ptr<const MachineModel> machine;
  /// Decisions of an earlier run: nothing is measured, and a halo without one is an error. Not together with a route, a
  /// pairing or a wish for on-node hops.
  std::shared_ptr<const TuningCache> decisions;
  /// Takes the decision that is made here; may be given on some ranks only.
  std::shared_ptr<TuningCache> record;
};

/// A way that was considered for a halo.
struct HaloCandidate {
  RouteChoice route;
  IntraNode onNode = IntraNode::messages;
  Traffic traffic;
  // What it took to make the plan of the route, the most on any rank.
  double buildSeconds = 0;
  long buildMessages = 0;
  long planBytes = 0;
  /// Of one exchange of one column of double; 0 without a model. With shared memory on the nodes: of what crosses the
  /// network only, for the model knows messages.
  double modelledSeconds = 0;
  /// Median of the maximum over ranks, of the last round it took part in; 0 if it was not measured.
  double measuredSeconds = 0;
  std::string rejectionReason;  ///< why it was not chosen; empty for the one that was
};

/// What was decided for one halo, over all ranks.
struct HaloReport {
  std::string route;                       ///< chosen
  Pairing pairing = Pairing::byVolume;     ///< of the chosen route
  IntraNode onNode = IntraNode::messages;  ///< a node without memory to share uses messages all the same
  Traffic standard;                        ///< of the standard route
  Traffic chosen;                          ///< of the route that was chosen
  double setupSeconds = 0;                 ///< of planHalo, maximum over ranks; measuring included
  /// Median seconds of one exchange of one column of double, maximum over ranks; 0 where nothing was measured. The
  /// first is that of the standard route by messages.
  double standardSeconds = 0;
  double chosenSeconds = 0;
  std::vector<HaloCandidate> candidates;
};

struct PlannedHalo {
  std::shared_ptr<const ExchangePlan> plan;
  IntraNode onNode = IntraNode::messages;
  int columns = 1;
  HaloReport report;
};

/// Plans a halo, and decides what the options leave open: the machine model drops what cannot win, the rest is timed on
/// this halo, in turn, and the standard route by messages is kept unless another way is clearly faster.
/// \note Collective on `comm`.
/// \throws BadInput on all ranks if a pattern, topology, option or decision on one of them cannot be used.
PlannedHalo planHalo(MPI_Comm comm, Pattern pattern, const ExchangeOptions& options);

/// For people: one line for each way that was considered, what it costs and why it was taken or not.
std::string describe(const HaloReport& report);

}  // namespace Komvos
