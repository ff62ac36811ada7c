/// \file Komvos_SocketBinding.hpp
/// Where on its node this process runs, by hwloc.
#pragma once

namespace Komvos::Impl {

/// The number, on this node, of the one socket to which this process is bound: of its package, or of its NUMA node
/// where the node has a single package. Negative if it is bound to several, or hwloc cannot say.
int socketOfThisProcess();

}  // namespace Komvos::Impl
