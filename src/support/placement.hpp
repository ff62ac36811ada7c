/// \file placement.hpp
/// Which ranks share nodes and sockets, for the subcommands that run under MPI.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "Komvos_NodeTopology.hpp"

namespace Komvos::Program {

struct Placement {
  std::shared_ptr<const NodeTopology> nodes;
  std::shared_ptr<const NodeTopology> sockets;  ///< null where the nodes were given, and sockets were not
  bool given = false;                           ///< by option or environment
};

/// The option --ranks-per-node, then KOMVOS_RANKS_PER_NODE, then what MPI and Linux say.
/// \param ranksPerSocket the option --ranks-per-socket; 0 if it was not given
/// \note Collective. \throws BadInput on all ranks, also for anything else wrong in the environment
Placement placementOf(MPI_Comm comm, const std::string& ranksPerNode, int ranksPerSocket = 0);

}  // namespace Komvos::Program
