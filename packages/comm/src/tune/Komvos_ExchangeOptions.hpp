/// \file Komvos_ExchangeOptions.hpp
/// What a caller may say about a halo, and what applies where nothing is said.
#pragma once

#include <memory>
#include <optional>

#include "Komvos_IntraNode.hpp"
#include "Komvos_Overlap.hpp"
#include "Komvos_Pairing.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_Tuning.hpp"

namespace Komvos {

class NodeTopology;
struct MachineModel;
class TuningCache;

/// Options of a halo; all of them may stay as they are.
///
/// \par Precedence
/// Each field by itself: the option given here, else the environment variable (Komvos_Settings.hpp), else the default.
/// `automatic` is a value like any other: given here, it wins over the environment.
///
/// A tuning cache says how a halo is exchanged, without tuning. So it is consulted only where nobody else says it:
/// - `tuningCache`, if `route`, `pairing` and `intraNode` are empty; it wins over the environment.
/// - the file in KOMVOS_TUNING_CACHE, if `tuningCache` is empty as well, KOMVOS_PAIRING is not set, and KOMVOS_ROUTE
///   and KOMVOS_ON_NODE are not set or "auto".
///
/// Otherwise it is ignored. Where it has no decision for this halo, the halo is tuned as if there were no cache, but
/// begins with the decision for the most similar one; HaloReport::tuningCacheNote says why. With `requireTuningCache`
/// that is an error.
///
/// The result must be the same on all ranks, `overlap` and `record` excepted; headers named after them hold the classes
/// used here.
struct ExchangeOptions {
  std::optional<RouteChoice> route;    ///< KOMVOS_ROUTE; default: automatic
  std::optional<Pairing> pairing;      ///< KOMVOS_PAIRING; default: byVolume
  std::optional<IntraNode> intraNode;  ///< KOMVOS_ON_NODE; default: automatic
  std::optional<Overlap> overlap;      ///< of matrices. KOMVOS_OVERLAP; default: automatic
  std::optional<Tuning> tuning;        ///< of what is automatic here. KOMVOS_TUNING; default: online
  /// Vectors of up to so many columns find room in shared memory; wider ones go by messages. 0: as many as cost little,
  /// 8, or fewer where that is more than 1 MiB for a rank.
  int columns = 0;
  std::shared_ptr<const NodeTopology> topology;  ///< KOMVOS_RANKS_PER_NODE; default: what MPI says
  std::shared_ptr<const NodeTopology> sockets;   ///< default: where processes are bound, if the nodes are detected too
  /// Says which routes promise most; with Tuning::exhaustive it rejects those that cannot win before they are measured.
  /// KOMVOS_MACHINE; default: none.
  std::shared_ptr<const MachineModel> machine;
  /// Whether, where there is no machine, a halo between nodes that is tuned online may ask for a quick calibration:
  /// each rank sends 8 messages, once for a communicator. KOMVOS_CALIBRATE; default: true.
  std::optional<bool> calibrate;
  std::shared_ptr<const TuningCache> tuningCache;  ///< KOMVOS_TUNING_CACHE; default: none
  std::optional<bool> requireTuningCache;          ///< KOMVOS_REQUIRE_TUNING_CACHE; default: false
  /// Whether a halo begins with what was decided on this communicator before, with the same options: for the same
  /// pattern, as in a hierarchy that is set up again on the same graph, or after a trial for a similar one. If so, a
  /// MueLu hierarchy that is set up again reuses its exchanges where maps are the same.
  bool reuseDecisions = true;
  /// Receives the decision that is made here, and again whenever online tuning changes it; may be given on some ranks
  /// only.
  std::shared_ptr<TuningCache> record;
};

}  // namespace Komvos
