/// \file Komvos_DetectedTopology.hpp
/// Nodes and sockets as this machine reports them, asked once for each communicator.
#pragma once

#include <memory>

#include "Komvos_NodeTopology.hpp"

namespace Komvos::Impl {

class PrivateComm;

/// Which ranks share a node, as MPI says. \note Collective the first time.
std::shared_ptr<const NodeTopology> detectedTopology(PrivateComm& comm);

/// Which ranks share a socket, as Linux says. \note Collective the first time.
std::shared_ptr<const NodeTopology> detectedSockets(PrivateComm& comm);

}  // namespace Komvos::Impl
