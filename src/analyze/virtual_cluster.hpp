/// \file virtual_cluster.hpp
/// A hypothetical cluster, and what halo exchanges would cost there along several routes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_MachineModel.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_VirtualMessages.hpp"
#include "analyze/simgrid.hpp"

namespace Komvos::Program {

struct ClusterOptions {
  int ranks = 0;
  std::string ranksPerNode;         ///< as NodeTopology::parse
  int ranksPerSocket = 0;           ///< 0: unknown
  std::vector<std::string> routes;  ///< to compare
  std::string pairing = "by-volume";
  std::string machine = "blue-waters";
  std::vector<std::string> platforms;  ///< simulated by SimGrid: "torus", "fat-tree"
  int maxFlowsPerLink = 0;             ///< as SimulatedNetwork::maxFlowsPerLink
  double timeStep = 1e-8;              ///< as SimulatedNetwork::timeStep
  int maxConcurrentSends = 0;          ///< as SimulatedNetwork::maxConcurrentSends
  bool setUp = false;                  ///< also plan, and count what that takes; needs the patterns of all ranks
  std::string traceFolder;             ///< keeps the traces, for both platforms if none is simulated; else empty
};

/// What planning sends, once. Reductions of a few numbers, and barriers, are counted, and take no time in the model.
struct SetUpTraffic {
  int rounds = 0;        ///< of messages, one after the other
  int agreements = 0;    ///< reductions, and rounds that end with a barrier, for receivers do not know their senders
  long messages = 0;     ///< of all ranks
  long messagesMax = 0;  ///< that a rank sends
  long bytes = 0;
  double modelledSeconds = 0;  ///< as ModelAccumulator, each round a stage
};

/// One route of one halo. Values are doubles.
struct RouteResult {
  std::string route;
  Traffic sent;
  Traffic received;
  double modelledSeconds = 0;                      ///< as ModelAccumulator
  std::map<std::string, double> simulatedSeconds;  ///< by kind of network
  std::optional<SetUpTraffic> setUp;               ///< if it is asked for
};

/// Counts, models and simulates the messages of halos. One process, no MPI.
class VirtualCluster {
 public:
  using Progress = std::function<void(const std::string&)>;

  /// \throws BadInput if ranks, nodes, routes or machine are invalid or do not fit each other, or if SimGrid is needed
  /// and not installed
  explicit VirtualCluster(const ClusterOptions& options);

  const NodeTopology& topology() const { return topology_; }
  const MachineModel& machine() const { return machine_; }
  const std::vector<SimulatedNetwork>& networks() const { return networks_; }

  /// A result for each route. \param label names the halo in progress messages and trace directories
  std::vector<RouteResult> compare(const VirtualHalo& halo, const std::string& label, const Progress& progress) const;

  /// Writes the traces of one exchange and, if asked to, replays them on every network; adds to
  /// result.simulatedSeconds.
  void simulate(const std::vector<VirtualMessage>& messages, const std::string& label, const Progress& progress,
                RouteResult& result) const;

 private:
  RouteResult follow(const VirtualHalo& halo, const Route& route, const std::string& label,
                     const Progress& progress) const;
  SetUpTraffic setUpOf(Route& route, const std::vector<Pattern>& patterns) const;

  ClusterOptions options_;
  NodeTopology topology_;
  std::unique_ptr<NodeTopology> sockets_;
  Pairing pairing_;
  MachineModel machine_;
  std::vector<RouteChoice> routes_;
  std::vector<SimulatedNetwork> networks_;
};

}  // namespace Komvos::Program
