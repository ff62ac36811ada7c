/// \file Komvos_SocketBinding.hpp
/// Where on its node a thread runs, by hwloc.
#pragma once

namespace Komvos::Impl {

/// The number, on this node, of the one socket to which the calling thread is bound: of its package, or of its NUMA
/// node where the node has a single package. Negative if it is bound to several, or hwloc cannot say. Other threads do
/// not count: MPI libraries start helpers, and it is the calling thread that will exchange halos.
int socketOfThisThread();

}  // namespace Komvos::Impl
