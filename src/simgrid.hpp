/// \file simgrid.hpp
/// Times of exchanges by SimGrid: platforms, and a run of smpirun.
#pragma once

#include <string>

#include "Komvos_ReplayTrace.hpp"

namespace Komvos::Program {

/// A network of equal nodes, with the smallest regular shape that holds them.
struct SimulatedNetwork {
  std::string kind;  ///< "torus" or "fat-tree"
  int numNodes;
  int ranksPerNode;  ///< the most on one node: cores of a host

  std::string describe() const;  ///< shape and parameters, for people
  std::string platformXml() const;
};

/// Whether smpirun can be run here.
bool simgridIsInstalled();

/// Writes platform.xml, hosts, actions and list into `folder`, which is made, and the command that replays them.
/// \return that command \throws BadInput if the folder cannot be written
std::string writeReplay(const std::string& folder, const SimulatedNetwork& network, const ReplayTrace& trace);

/// Runs a command of writeReplay. \return seconds of the simulated machine \throws Error with SimGrid's words
double runReplay(const std::string& command);

}  // namespace Komvos::Program
