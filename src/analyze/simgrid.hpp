/// \file simgrid.hpp
/// Times of exchanges, simulated by SimGrid: writes its input and runs smpirun.
#pragma once

#include <string>
#include <vector>

#include "Komvos_ReplayTrace.hpp"

namespace Komvos::Program {

/// A network of equal nodes, in the smallest regular shape that holds them. The parameters with defaults trade the
/// accuracy of SimGrid's simulation for its speed; the defaults favour accuracy.
struct SimulatedNetwork {
  std::string kind;  ///< "torus" or "fat-tree"
  int numNodes;
  int ranksPerNode;  ///< the largest number on one node: cores of a host

  /// Messages that may share a link at the same time, further ones wait; 0: no limit. SimGrid's work for each message
  /// grows with the number of messages in flight. With too small a limit links idle.
  int maxFlowsPerLink = 0;

  /// Seconds. Events that are closer together happen at the same time, which shortens every wait by up to half of
  /// it. Must be small compared with the 350 ns that a message costs its ranks.
  double timeStep = 1e-8;

  /// Sends of one rank in flight, see ReplayTrace::writeActions; 0: all of a stage. Limits the messages in flight, and
  /// with them SimGrid's work.
  int maxConcurrentSends = 0;

  std::string describe() const;     ///< shape and parameters, for people
  std::string platformXml() const;  ///< the platform file of SimGrid
};

/// A lower bound for the time of a replay: the processor of the busiest rank handles its sends and receives one after
/// the other. For exchanges with too many messages to be replayed.
class LeastReplayTime {
 public:
  explicit LeastReplayTime(int numRanks) : seconds_(numRanks, 0) {}
  void add(int from, int to, long bytes);
  double seconds() const;

 private:
  std::vector<double> seconds_;  // by rank
};

/// Whether smpirun is in the PATH.
bool simgridIsInstalled();

/// Writes platform.xml, hosts, actions and list into `folder`, which is created, and replay.sh, which replays them.
/// \return the command in replay.sh \throws BadInput if the folder cannot be written
std::string writeReplay(const std::string& folder, const SimulatedNetwork& network, const ReplayTrace& trace);

/// Runs a command of writeReplay. \return simulated seconds \throws Error with SimGrid's message if there are none
double runReplay(const std::string& command);

}  // namespace Komvos::Program
