#include "solve/solve_exchange.hpp"

#include "Komvos_Error.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_TuningCache.hpp"
#include "support/placement.hpp"

namespace Komvos::Program {

namespace {

/// The command line as options of the library. \note Collective.
ExchangeOptions fromCommandLine(const SolveOptions& options, MPI_Comm comm, const Placement& placement) {
  ExchangeOptions exchange;
  std::string error;
  try {
    if (!options.route.empty()) {
      exchange.route = parseRoute(options.route);
    }
    if (!options.pairing.empty()) {
      exchange.pairing = parsePairing(options.pairing);
    }
    if (!options.intraNode.empty()) {
      exchange.intraNode = parseIntraNode(options.intraNode);
    }
    if (!options.tuning.empty()) {
      exchange.tuning = parseTuning(options.tuning);
    }
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm, error);
  exchange.topology = placement.nodes;
  exchange.sockets = placement.sockets;
  if (!options.machine.empty()) {
    exchange.machine = std::make_shared<const MachineModel>(machineByNameOrFile(comm, options.machine));
  }
  if (!options.tuningCacheFile.empty()) {
    exchange.tuningCache = std::make_shared<const TuningCache>(TuningCache::load(comm, options.tuningCacheFile));
  }
  if (options.requireTuningCache) {
    exchange.requireTuningCache = true;
  }
  return exchange;
}

void record(const Placement& placement, const Impl::ResolvedOptions& resolved, SolveReport& report) {
  const NodeTopology& nodes = *placement.nodes;
  report.ranks = nodes.numRanks();
  report.topology = nodes.describe();
  report.topologyGiven = placement.given;
  for (int node = 0; node < nodes.numNodes(); ++node) {
    report.ranksPerNode.push_back(nodes.numRanksOn(node));
  }
  report.fromTuningCache = resolved.tuningCache != nullptr;
  report.route = toString(resolved.route);
  report.pairing = report.fromTuningCache ? "as in the tuning cache" : toString(resolved.pairing);
  report.tuning = report.fromTuningCache ? "as in the tuning cache" : toString(resolved.tuning);
  report.intraNode = report.fromTuningCache ? "as in the tuning cache" : toString(resolved.intraNode);
}

}  // namespace

ExchangeOptions resolveExchange(const SolveOptions& options, MPI_Comm comm, SolveReport& report) {
  const Placement placement = placementOf(comm, options.ranksPerNode, options.ranksPerSocket);
  const auto ours = Impl::PrivateComm::of(comm);
  const Impl::ResolvedOptions resolved = Impl::resolveOptions(*ours, fromCommandLine(options, comm, placement));
  if (resolved.route != RouteChoice::automatic) {  // to see that it fits, also where there is no halo to route
    makeRoute(resolved.route, *placement.nodes, resolved.pairing, placement.sockets.get());
  }
  record(placement, resolved, report);
  ExchangeOptions exchange = resolved.toOptions();
  if (!options.saveTuningCacheFile.empty()) {
    exchange.record = std::make_shared<TuningCache>();
  }
  return exchange;
}

}  // namespace Komvos::Program
