/// \file Komvos_SocketBinding.hpp
/// Where on its node a thread runs.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace Komvos {
class NodeTopology;
}

namespace Komvos::Impl {

/// The numbers, on this node, of the one package and of the one NUMA node to which a thread is bound. Negative if it is
/// bound to several, or the system does not say.
struct SocketBinding {
  int package = -1, numaNode = -1;
};

/// Of a thread that may use these processors.
/// \param system where Linux describes processors and NUMA nodes
SocketBinding bindingOf(const std::vector<int>& processors, const std::string& system = "/sys/devices/system");

/// Of the calling thread. Other threads do not count: MPI libraries start helpers, and it is the calling thread that
/// will exchange halos.
SocketBinding bindingOfThisThread();

/// Ranks that share a socket: a package, or a NUMA node where all ranks of a node are on one package. Where one rank of
/// a node is bound to several sockets, the whole node counts as one.
/// \param mine of this rank \note Collective on `comm`. In Komvos_NodeTopology.cpp, beside the search for nodes.
NodeTopology socketsFrom(MPI_Comm comm, const SocketBinding& mine);

}  // namespace Komvos::Impl
