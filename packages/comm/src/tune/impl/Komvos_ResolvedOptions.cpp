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
#include "Komvos_Hash.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_Overlap.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Reduction.hpp"
#include "Komvos_Settings.hpp"
#include "Komvos_TuningCache.hpp"

// How this works. resolveOptions() goes from local to collective:
// 1. resolveLocally() reads the options and the environment of this rank.
// 2. Agreement: one reduction finds out whether a rank has an error, and whether all say the same.
// 3. detectMissing() and loadFiles() ask MPI and Linux for the topology and read the files named by the environment.
//    Both are collective, and by now all ranks do it, or none.
namespace Komvos::Impl {

namespace {

/// What must be alike on all ranks, compared in one reduction.
class Agreement {
 public:
  /// All ranks do it, or none. \param what a sentence; a literal
  void allOrNone(const char* what, bool wanted) { add("", what, " on some ranks only", wanted); }

  /// Ranks that route differently would wait for each other for ever. \param name a literal
  void same(const char* name, std::uint64_t value) {
    add("the ", name, " of a halo must be the same on all ranks, and is not", value);
  }

  /// \param error of this rank, or nothing \param wish a question of its own
  /// \return whether a rank has that wish
  /// \note Collective. \throws BadInput on all ranks: the error of one, else what is not alike and was named first
  bool reach(PrivateComm& comm, const std::string& error, bool wish = false) {
    std::uint64_t anyError = error.empty() ? 0 : 1;
    std::uint64_t anyWish = wish ? 1 : 0;
    std::uint64_t anyAbandoned = PrivateComm::someAreAbandoned() ? 1 : 0;
    Reduction round;
    round.maximum(anyError);
    round.maximum(anyWish);
    round.maximum(anyAbandoned);
    for (Entry& one : entries_) {
      round.minimum(one.least);
      round.maximum(one.most);
    }
    round.run(comm);
    if (anyAbandoned != 0) {
      comm.freeAbandoned();
    }
    if (anyError != 0) {
      throwOnAllIfAny(comm.get(), error);
    }
    for (const Entry& one : entries_) {
      if (one.least != one.most) {
        throw BadInput(std::string(one.before) + one.name + one.after);
      }
    }
    return anyWish != 0;
  }

 private:
  struct Entry {
    const char *before, *name, *after;  // of the error
    std::uint64_t least, most;
  };

  void add(const char* before, const char* name, const char* after, std::uint64_t value) {
    entries_.push_back({before, name, after, value, value});
  }

  std::vector<Entry> entries_;
};

/// Files that the environment names, and that are to be read.
struct Files {
  std::optional<std::string> machine, tuningCache;
};

void addTo(Agreement& agreement, const ResolvedTopology& topology) {
  agreement.allOrNone("a topology is given", !topology.detected);
  agreement.allOrNone("a socket topology is given", topology.detected && topology.sockets);
}

Agreement agreementOn(const ResolvedOptions& options, const Files& files) {
  const ResolvedTopology& topology = options.topology;
  Agreement all;
  addTo(all, topology);
  all.allOrNone("KOMVOS_MACHINE is set", files.machine.has_value());
  all.allOrNone("KOMVOS_TUNING_CACHE is to be consulted", files.tuningCache.has_value());
  all.same("route", hashOf(toString(options.route)));
  all.same("pairing", static_cast<std::uint64_t>(options.pairing));
  all.same("intra-node communication", static_cast<std::uint64_t>(options.intraNode));
  all.same("tuning", static_cast<std::uint64_t>(options.tuning));
  all.same("number of columns in shared memory", static_cast<std::uint64_t>(options.columns));
  all.same("GPU-awareness of MPI (KOMVOS_GPU_AWARE_MPI)", options.mpiIsGpuAware ? 1 : 0);
  all.same("staging of messages (KOMVOS_STAGED)", options.forceStaging ? 1 : 0);
  all.same("reuse of decisions", options.reuseDecisions ? 1 : 0);
  all.same("strictness about the tuning cache (KOMVOS_REQUIRE_TUNING_CACHE)", options.requireTuningCache ? 1 : 0);
  all.same("wish for a quick calibration (KOMVOS_CALIBRATE)", options.calibrates ? 1 : 0);
  all.same("topology", topology.nodes ? topology.nodes->fingerprint() : 0);
  all.same("socket topology", topology.sockets ? topology.sockets->fingerprint() : 0);
  all.same("machine model", options.machine ? hashOf(machineToJson(*options.machine)) : 0);
  all.same("tuning cache", options.tuningCache ? hashOf(options.tuningCache->toText()) : 0);
  return all;
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

/// \param needsSockets also on one node, where none but their own route takes notice of them
/// \note Collective on `comm`, with a topology that is detected on all ranks, or on none.
void detectMissing(ResolvedTopology& topology, PrivateComm& comm, bool needsSockets) {
  if (!topology.detected) {
    return;
  }
  topology.nodes = detectedTopology(comm);
  if (!topology.sockets && (needsSockets || topology.nodes->numNodes() > 1)) {
    topology.sockets = detectedSockets(comm);
  }
}

/// Whether the environment says how a halo is exchanged.
bool decides(const Settings& settings) {
  return settings.pairing || settings.route.value_or("auto") != "auto" || settings.intraNode.value_or("auto") != "auto";
}

/// All but what needs the other ranks: detected topologies and files. Values in the environment are checked even where
/// an option replaces them.
/// \return files to be read
Files resolveLocally(ResolvedOptions& resolved, const ExchangeOptions& options, const Settings& settings,
                     int numRanks) {
  resolved.route = options.route.value_or(parsedOr("KOMVOS_ROUTE", settings.route, parseRoute, resolved.route));
  resolved.pairing =
      options.pairing.value_or(parsedOr("KOMVOS_PAIRING", settings.pairing, parsePairing, resolved.pairing));
  resolved.intraNode =
      options.intraNode.value_or(parsedOr("KOMVOS_ON_NODE", settings.intraNode, parseIntraNode, resolved.intraNode));
  resolved.tuning = options.tuning.value_or(parsedOr("KOMVOS_TUNING", settings.tuning, parseTuning, resolved.tuning));
  resolveOverlap(options.overlap);  // for its error only: no halo depends on it
  resolved.columns = std::max(0, options.columns);
  resolved.mpiIsGpuAware = gpuAwareMpi();
  resolved.forceStaging = settings.staged.value_or(false);
  resolved.reuseDecisions = options.reuseDecisions;
  resolved.requireTuningCache = options.requireTuningCache.value_or(settings.requireTuningCache.value_or(false));
  resolved.machine = options.machine;
  resolved.calibrates = options.calibrate.value_or(settings.calibrate.value_or(true));
  resolved.topology = {options.topology, options.sockets};
  resolveLocally(resolved.topology, settings, numRanks);
  Files files;
  if (!resolved.machine) {
    files.machine = settings.machine;
  }
  if (options.route || options.pairing || options.intraNode) {
    return files;
  }
  if (options.tuningCache) {
    // A copy of what grows: this rank may record in the same object while several halos are planned, others not.
    resolved.tuningCache = options.tuningCache == options.record
                               ? std::make_shared<const TuningCache>(*options.tuningCache)
                               : options.tuningCache;
    const ResolvedOptions defaults{};
    resolved.route = defaults.route;
    resolved.pairing = defaults.pairing;
    resolved.intraNode = defaults.intraNode;
  } else if (!decides(settings)) {
    files.tuningCache = settings.tuningCache;
  }
  return files;
}

/// The files that rank 0 names. \note Collective on `comm`, with files on all ranks, or on none.
void loadFiles(ResolvedOptions& resolved, const PrivateComm& comm, const Files& files) {
  if (files.machine) {
    resolved.machine = std::make_shared<const MachineModel>(machineByNameOrFile(comm.get(), *files.machine));
  }
  if (files.tuningCache) {
    resolved.tuningCache = std::make_shared<const TuningCache>(TuningCache::load(comm.get(), *files.tuningCache));
  }
}

}  // namespace

ResolvedTopology resolveTopology(PrivateComm& comm, std::shared_ptr<const NodeTopology> nodes,
                                 std::shared_ptr<const NodeTopology> sockets) {
  ResolvedTopology topology{std::move(nodes), std::move(sockets)};
  const std::string error = errorIn([&] { resolveLocally(topology, readSettings(), comm.size()); });
  Agreement agreement;
  addTo(agreement, topology);
  agreement.reach(comm, error);
  detectMissing(topology, comm, true);
  return topology;
}

ResolvedOptions resolveOptions(PrivateComm& comm, const ExchangeOptions& options, std::size_t numHalos,
                               const std::string& earlierError) {
  ResolvedOptions resolved;
  resolved.startedAt = MPI_Wtime();
  resolved.record = options.record;
  Files files;
  const std::string ours = errorIn([&] { files = resolveLocally(resolved, options, readSettings(), comm.size()); });
  const std::string& error = earlierError.empty() ? ours : earlierError;
  Agreement agreement = agreementOn(resolved, files);
  agreement.same("number of those planned together", numHalos);
  const double start = MPI_Wtime();
  resolved.someRankRecords = agreement.reach(comm, error, options.record != nullptr);
  resolved.roundSeconds = MPI_Wtime() - start;
  detectMissing(resolved.topology, comm, resolved.route == RouteChoice::sockets);
  loadFiles(resolved, comm, files);
  return resolved;
}

std::uint64_t ResolvedOptions::fingerprint() const {
  std::uint64_t hash = mix(hashOf(toString(route)), static_cast<std::uint64_t>(pairing));
  for (const std::uint64_t value :
       {static_cast<std::uint64_t>(intraNode), static_cast<std::uint64_t>(tuning), static_cast<std::uint64_t>(columns),
        static_cast<std::uint64_t>(mpiIsGpuAware), static_cast<std::uint64_t>(forceStaging),
        topology.nodes->fingerprint(), topology.sockets ? topology.sockets->fingerprint() : 0,
        machine ? hashOf(machineToJson(*machine)) : 0}) {
    hash = mix(hash, value);
  }
  return hash;
}

ExchangeOptions ResolvedOptions::toOptions() const {
  ExchangeOptions options;
  if (!tuningCache) {
    options.route = route;
    options.pairing = pairing;
    options.intraNode = intraNode;
  }
  options.tuning = tuning;
  options.columns = columns;
  options.reuseDecisions = reuseDecisions;
  options.requireTuningCache = requireTuningCache;
  options.topology = topology.nodes;
  options.sockets = topology.sockets;
  options.machine = machine;
  options.calibrate = calibrates;
  options.tuningCache = tuningCache;
  return options;
}

}  // namespace Komvos::Impl
