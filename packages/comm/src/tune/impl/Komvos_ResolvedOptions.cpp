#include "Komvos_ResolvedOptions.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DetectedTopology.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_GpuAwareMpi.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_Overlap.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Settings.hpp"
#include "Komvos_TuningCache.hpp"

// How this works. resolveOptions() goes from local to collective:
// 1. resolveLocally() reads the options and the environment of this rank. What it throws is agreed on, so that nobody
//    enters step 2 alone.
// 2. detectMissing() and loadFiles() ask MPI and hwloc for the topology and read the files named by the environment.
//    Both are collective, hence allOrNone() first makes sure that all ranks do it, or none.
// 3. requireSame() compares what all ranks have now.
namespace Komvos::Impl {

namespace {

std::uint64_t hashOf(const std::string& text) { return std::hash<std::string>()(text); }

/// Ranks that route differently would wait for each other for ever. \throws BadInput on all ranks
void requireSame(const PrivateComm& comm, const ResolvedOptions& options) {
  const ResolvedTopology& topology = options.topology;
  const std::vector<std::pair<const char*, std::uint64_t>> mine{
      {"route", hashOf(toString(options.route))},
      {"pairing", static_cast<std::uint64_t>(options.pairing)},
      {"intra-node communication", static_cast<std::uint64_t>(options.intraNode)},
      {"number of columns in shared memory", static_cast<std::uint64_t>(options.columns)},
      {"GPU-awareness of MPI (KOMVOS_GPU_AWARE_MPI)", options.mpiIsGpuAware ? 1 : 0},
      {"staging of messages (KOMVOS_STAGED)", options.forceStaging ? 1 : 0},
      {"topology", topology.nodes->fingerprint()},
      {"socket topology", topology.sockets ? topology.sockets->fingerprint() : 0},
      {"machine model", options.machine ? hashOf(machineToJson(*options.machine)) : 0},
      {"tuning cache", options.tuningCache ? hashOf(options.tuningCache->toText()) : 0}};
  std::vector<std::uint64_t> bounds;  // largest, and complement of smallest
  for (const auto& [name, value] : mine) {
    bounds.push_back(value);
    bounds.push_back(~value);
  }
  mpiCheck(
      MPI_Allreduce(MPI_IN_PLACE, bounds.data(), static_cast<int>(bounds.size()), MPI_UINT64_T, MPI_MAX, comm.get()),
      "MPI_Allreduce");
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (bounds[2 * i] != ~bounds[2 * i + 1]) {
      throw BadInput(std::string("the ") + mine[i].first + " of a halo must be the same on all ranks, and is not");
    }
  }
}

/// \return `wanted` \throws BadInput on all ranks if it differs between them
bool allOrNone(const PrivateComm& comm, bool wanted, const char* what) {
  int any = wanted ? 1 : 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, comm.get()), "MPI_Allreduce");
  throwOnAllIfAny(comm.get(), any != 0 && !wanted ? std::string(what) + " on some ranks only" : "");
  return wanted;
}

void requireSize(const char* what, const NodeTopology& topology, int numRanks) {
  if (topology.numRanks() != numRanks) {
    throw BadInput(std::string("the ") + what + " has " + std::to_string(topology.numRanks()) +
                   " ranks, the communicator " + std::to_string(numRanks));
  }
}

/// Nodes from the environment if none are given. \throws BadInput on this rank
void resolveLocally(ResolvedTopology& topology, const Settings& settings, int numRanks) {
  if (!topology.nodes && settings.ranksPerNode) {
    topology.nodes = std::make_shared<const NodeTopology>(NodeTopology::parse(*settings.ranksPerNode, numRanks));
  }
  topology.detected = !topology.nodes;
  if (topology.nodes) {
    requireSize("topology", *topology.nodes, numRanks);
  }
  if (topology.sockets) {
    requireSize("socket topology", *topology.sockets, numRanks);
  }
}

/// \note Collective on `comm`.
void detectMissing(ResolvedTopology& topology, PrivateComm& comm) {
  if (allOrNone(comm, topology.detected, "a topology is given")) {
    topology.nodes = detectedTopology(comm);
    if (allOrNone(comm, !topology.sockets, "a socket topology is given")) {
      topology.sockets = detectedSockets(comm);
    }
  }
}

/// Whether the environment says how a halo is exchanged.
bool decides(const Settings& settings) {
  return settings.pairing || settings.route.value_or("auto") != "auto" || settings.intraNode.value_or("auto") != "auto";
}

/// All but what needs the other ranks: detected topologies and files. Values in the environment are checked even
/// where an option replaces them. \return the file of KOMVOS_TUNING_CACHE if it is to be consulted
std::optional<std::string> resolveLocally(ResolvedOptions& resolved, const ExchangeOptions& options,
                                          const Settings& settings, int numRanks) {
  resolved.route = options.route.value_or(settings.route ? parseRoute(*settings.route) : resolved.route);
  resolved.pairing = options.pairing.value_or(settings.pairing ? parsePairing(*settings.pairing) : resolved.pairing);
  resolved.intraNode =
      options.intraNode.value_or(settings.intraNode ? parseIntraNode(*settings.intraNode) : resolved.intraNode);
  resolveOverlap(options.overlap);  // for its error only: no halo depends on it
  resolved.columns = std::max(1, options.columns);
  resolved.mpiIsGpuAware = gpuAwareMpi();
  resolved.forceStaging = settings.staged.value_or(false);
  resolved.machine = options.machine;
  resolved.topology = {options.topology, options.sockets};
  resolveLocally(resolved.topology, settings, numRanks);
  if (options.route || options.pairing || options.intraNode) {
    return {};
  }
  if (options.tuningCache) {
    resolved.tuningCache = options.tuningCache;
    const ResolvedOptions defaults;
    resolved.route = defaults.route;
    resolved.pairing = defaults.pairing;
    resolved.intraNode = defaults.intraNode;
    return {};
  }
  return decides(settings) ? std::nullopt : settings.tuningCache;
}

/// \note Collective on `comm`.
void loadFiles(ResolvedOptions& resolved, const PrivateComm& comm, const std::optional<std::string>& machine,
               const std::optional<std::string>& tuningCache) {
  if (allOrNone(comm, !resolved.machine && machine.has_value(), "KOMVOS_MACHINE is set")) {
    resolved.machine = std::make_shared<const MachineModel>(machineByNameOrFile(comm.get(), *machine));
  }
  if (allOrNone(comm, tuningCache.has_value(), "KOMVOS_TUNING_CACHE is to be consulted")) {
    resolved.tuningCache = std::make_shared<const TuningCache>(TuningCache::load(comm.get(), *tuningCache));
  }
}

}  // namespace

ResolvedTopology resolveTopology(PrivateComm& comm, std::shared_ptr<const NodeTopology> nodes,
                                 std::shared_ptr<const NodeTopology> sockets) {
  ResolvedTopology topology{std::move(nodes), std::move(sockets)};
  std::string error;
  try {
    resolveLocally(topology, readSettings(), comm.size());
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm.get(), error);
  detectMissing(topology, comm);
  return topology;
}

ResolvedOptions resolveOptions(PrivateComm& comm, const ExchangeOptions& options) {
  ResolvedOptions resolved;
  Settings settings;
  std::optional<std::string> tuningCache;
  std::string error;
  try {
    settings = readSettings();
    tuningCache = resolveLocally(resolved, options, settings, comm.size());
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm.get(), error);
  detectMissing(resolved.topology, comm);
  loadFiles(resolved, comm, settings.machine, tuningCache);
  requireSame(comm, resolved);
  return resolved;
}

ExchangeOptions ResolvedOptions::toOptions() const {
  ExchangeOptions options;
  if (!tuningCache) {
    options.route = route;
    options.pairing = pairing;
    options.intraNode = intraNode;
  }
  options.columns = columns;
  options.topology = topology.nodes;
  options.sockets = topology.sockets;
  options.machine = machine;
  options.tuningCache = tuningCache;
  return options;
}

}  // namespace Komvos::Impl
