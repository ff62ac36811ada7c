/// \file simgrid.hpp
/// Times of exchanges by SimGrid: platforms, and a run of smpirun.
#pragma once

#include <string>
#include <vector>

#include "Komvos_ReplayTrace.hpp"

namespace Komvos::Program {

/// A network of equal nodes, with the smallest regular shape that holds them.
struct SimulatedNetwork {
  std::string kind;  ///< "torus" or "fat-tree"
  int numNodes;
  int ranksPerNode;  ///< the most on one node: cores of a host

  /// The most messages that share a link at once, the others wait for it; 0: all share it. SimGrid's work for each
  /// message grows with those under way: with 128 ranks that all send to each other, 64 takes a fifth of the time of 0.
  /// What it changes: nothing there on a torus, 4 % on a fat tree. With 16 three steps on 2,048 ranks take 6 % more
  /// than with 64, on 8,192 ranks 9 % more (torus) and 1 % less (fat tree) than with 0; fewer is too few: links idle.
  int maxFlowsPerLink = 0;

  /// Seconds; what happens closer together happens at once, and is worked on once: half of it is lost wherever a rank
  /// waits. Small against the 350 ns that a message costs its ranks: with 3e-7 three steps on 8,192 ranks, 780 bytes
  /// a message, take 7 % less than with 3e-8, and on 32,768 ranks less than their ranks are busy.
  double timeStep = 1e-8;

  /// As for ReplayTrace::writeActions; bounds the messages under way, and with them SimGrid's work for each. With 4, 8
  /// and all 32 sends of a rank three steps on 8,192 ranks take 406, 397 and 402 us; in the order of ranks, 8 would
  /// take 459.
  int maxConcurrentSends = 0;

  std::string describe() const;  ///< shape and parameters, for people
  std::string platformXml() const;
};

/// What a replay takes at least: the processor of the busiest rank starts its sends and takes up what it receives, one
/// after the other. Says something of exchanges with too many messages to be replayed.
class LeastReplayTime {
 public:
  explicit LeastReplayTime(int numRanks) : seconds_(numRanks, 0) {}
  void add(int from, int to, long bytes);
  double seconds() const;

 private:
  std::vector<double> seconds_;  // by rank
};

/// Whether smpirun can be run here.
bool simgridIsInstalled();

/// Writes platform.xml, hosts, actions and list into `folder`, which is made, and the command that replays them.
/// \return that command \throws BadInput if the folder cannot be written
std::string writeReplay(const std::string& folder, const SimulatedNetwork& network, const ReplayTrace& trace);

/// Runs a command of writeReplay. \return seconds of the simulated machine \throws Error with SimGrid's words
double runReplay(const std::string& command);

}  // namespace Komvos::Program
