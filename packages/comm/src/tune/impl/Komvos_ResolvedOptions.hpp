/// \file Komvos_ResolvedOptions.hpp
/// ExchangeOptions after the environment and the defaults have been taken into account.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "Komvos_ExchangeOptions.hpp"

namespace Komvos::Impl {

class PrivateComm;

/// Which ranks share nodes and sockets.
struct ResolvedTopology {
  std::shared_ptr<const NodeTopology> nodes;
  std::shared_ptr<const NodeTopology> sockets;  ///< null: not known, or one on each node
  bool detected = false;                        ///< the nodes are what MPI says
};

/// The nodes and sockets that are given; else the nodes in KOMVOS_RANKS_PER_NODE; else the nodes that MPI reports and,
/// if none are given, the sockets that Linux reports.
/// \note Collective on `comm`. \throws BadInput on all ranks
ResolvedTopology resolveTopology(PrivateComm& comm, std::shared_ptr<const NodeTopology> nodes,
                                 std::shared_ptr<const NodeTopology> sockets);

/// Options with nothing left open, but for route and intraNode: there `automatic` means to be measured.
struct ResolvedOptions {
  RouteChoice route = RouteChoice::automatic;
  Pairing pairing = Pairing::byVolume;
  IntraNode intraNode = IntraNode::automatic;
  Tuning tuning = Tuning::online;
  int columns = 0;             ///< as in ExchangeOptions
  bool mpiIsGpuAware = false;  ///< from the environment or Tpetra only, see gpuAwareMpi()
  bool forceStaging = false;   ///< from the environment only, see stagingForced()
  bool reuseDecisions = true;
  bool requireTuningCache = false;
  double startedAt = 0;                 ///< MPI_Wtime() when resolveOptions() began
  double roundSeconds = 0;              ///< of its collective operation, on this rank
  bool someRankRecords = false;         ///< has ExchangeOptions::record
  std::shared_ptr<TuningCache> record;  ///< of this rank; may be null
  ResolvedTopology topology;
  std::shared_ptr<const MachineModel> machine;  ///< may be null
  bool calibrates = true;                       ///< where there is no machine: whether a quick calibration may stand in
  std::shared_ptr<const TuningCache> tuningCache;  ///< null unless it is to be consulted for the three at the top

  /// Whether something is left to be measured.
  bool leavesOpen() const { return route == RouteChoice::automatic || intraNode == IntraNode::automatic; }
  /// Of all that a decision depends on, the pattern excepted.
  std::uint64_t fingerprint() const;

  /// Options that resolve to the same, whatever the environment says. They read no file and detect nothing.
  ExchangeOptions toOptions() const;
};

/// Options, then environment, then defaults, as the documentation of ExchangeOptions says.
/// \param numHalos that are to be planned with them together
/// \param error    that this rank has found before, or nothing
/// \note Collective on `comm`.
/// \throws BadInput on all ranks, also if the ranks come to different results
ResolvedOptions resolveOptions(PrivateComm& comm, const ExchangeOptions& options, std::size_t numHalos = 1,
                               const std::string& error = {});

}  // namespace Komvos::Impl
