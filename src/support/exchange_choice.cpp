#include "support/exchange_choice.hpp"

#include <CLI/CLI.hpp>

#include "Komvos_Error.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_Settings.hpp"
#include "Komvos_TuningCache.hpp"
#include "support/output_file.hpp"
#include "support/placement.hpp"
#include "support/run_collectively.hpp"

namespace Komvos::Program {

namespace {

/// The command line as options of the library. \note Collective.
ExchangeOptions fromCommandLine(const ExchangeChoice& choice, MPI_Comm comm, const Placement& placement) {
  ExchangeOptions exchange;
  std::string error;
  try {
    if (!choice.route.empty()) {
      exchange.route = parseRoute(choice.route);
    }
    if (!choice.pairing.empty()) {
      exchange.pairing = parsePairing(choice.pairing);
    }
    if (!choice.intraNode.empty()) {
      exchange.intraNode = parseIntraNode(choice.intraNode);
    }
    if (!choice.tuning.empty()) {
      exchange.tuning = parseTuning(choice.tuning);
    }
    const bool consultsCache = !choice.tuningCacheFile.empty() || readSettings().tuningCache;
    if (choice.requireTuningCache && (!consultsCache || exchange.route || exchange.pairing || exchange.intraNode)) {
      throw BadInput("--require-tuning-cache needs --tuning-cache, and neither --route, --pairing nor --on-node");
    }
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm, error);
  exchange.topology = placement.nodes;
  exchange.sockets = placement.sockets;
  if (!choice.machine.empty()) {
    exchange.machine = std::make_shared<const MachineModel>(machineByNameOrFile(comm, choice.machine));
  }
  if (!choice.tuningCacheFile.empty()) {
    exchange.tuningCache = std::make_shared<const TuningCache>(TuningCache::load(comm, choice.tuningCacheFile));
  }
  if (choice.requireTuningCache) {
    exchange.requireTuningCache = true;
  }
  return exchange;
}

void record(const Placement& placement, const Impl::ResolvedOptions& resolved, ExchangeSummary& summary) {
  const NodeTopology& nodes = *placement.nodes;
  summary.ranks = nodes.numRanks();
  summary.topology = nodes.describe();
  summary.topologyGiven = placement.given;
  for (int node = 0; node < nodes.numNodes(); ++node) {
    summary.ranksPerNode.push_back(nodes.numRanksOn(node));
  }
  summary.fromTuningCache = resolved.tuningCache != nullptr;
  summary.route = toString(resolved.route);
  summary.pairing = summary.fromTuningCache ? "as in the tuning cache" : toString(resolved.pairing);
  summary.tuning = summary.fromTuningCache ? "as in the tuning cache" : toString(resolved.tuning);
  summary.intraNode = summary.fromTuningCache ? "as in the tuning cache" : toString(resolved.intraNode);
}

}  // namespace

void addExchangeOptions(CLI::App& command, ExchangeChoice& choice) {
  command
      .add_option("--ranks-per-node", choice.ranksPerNode,
                  "ranks on each node, on each in turn, or a node for each rank; default: as MPI says")
      ->type_name("K|K,K,...|@FILE");
  command
      .add_option("--ranks-per-socket", choice.ranksPerSocket,
                  "consecutive ranks on each socket; default: as they are bound, if the nodes are as MPI says")
      ->check(CLI::Range(1, 1 << 24));
  command.add_option(
      "--route", choice.route,
      "how halos travel: standard, two-step, three-step, split[:V], axis[:C,X,Y,Z], sockets or auto, what "
      "is fastest on each halo (default auto)");
  command.add_option("--pairing", choice.pairing, "which ranks carry what crosses nodes (default by-volume)")
      ->check(CLI::IsMember({"by-volume", "least-loaded", "majority"}));
  command.add_option("--on-node", choice.intraNode, "what carries values between ranks of a node (default auto)")
      ->check(CLI::IsMember({"messages", "shared-memory", "auto"}));
  command
      .add_option("--tuning", choice.tuning,
                  "when routes are compared: online, in the iterations; exhaustive, before them; off (default online)")
      ->check(CLI::IsMember({"online", "exhaustive", "off"}));
  command
      .add_option("--machine", choice.machine,
                  "try first what promises most on this machine, and nothing that cannot win: blue-waters, or a file "
                  "of `komvos calibrate`")
      ->type_name("NAME|FILE");
  command
      .add_option("--save-tuning-cache", choice.saveTuningCacheFile,
                  "write the decision for each halo, for --tuning-cache, and those that were read for other halos")
      ->type_name("FILE");
  command
      .add_option("--tuning-cache", choice.tuningCacheFile,
                  "follow the decisions in this file and tune only halos that it has none for; ignored beside --route, "
                  "--pairing or --on-node")
      ->type_name("FILE");
  command.add_flag("--require-tuning-cache", choice.requireTuningCache,
                   "it is an error if the tuning cache has no decision for a halo");
}

ExchangeOptions resolveExchange(const ExchangeChoice& choice, MPI_Comm comm, ExchangeSummary& summary) {
  const Placement placement = placementOf(comm, choice.ranksPerNode, choice.ranksPerSocket);
  const auto ours = Impl::PrivateComm::of(comm);
  const Impl::ResolvedOptions resolved = Impl::resolveOptions(*ours, fromCommandLine(choice, comm, placement));
  if (resolved.route != RouteChoice::automatic) {  // to see that it fits, also where there is no halo to route
    makeRoute(resolved.route, *placement.nodes, resolved.pairing, placement.sockets.get());
  }
  record(placement, resolved, summary);
  ExchangeOptions exchange = resolved.toOptions();
  if (!choice.saveTuningCacheFile.empty()) {
    exchange.record = std::make_shared<TuningCache>();
  }
  return exchange;
}

void saveTuningCache(const std::string& path, const ExchangeOptions& exchange, MPI_Comm comm) {
  onRankZero(comm, [&] {
    TuningCache all = exchange.tuningCache ? *exchange.tuningCache : TuningCache();
    all.add(*exchange.record);
    OutputFile file(path);
    file.stream() << all.toText();
    file.commit();
  });
}

}  // namespace Komvos::Program
