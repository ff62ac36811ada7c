#include "support/placement.hpp"

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"

namespace Komvos::Program {

Placement placementOf(MPI_Comm comm, const std::string& ranksPerNode, int ranksPerSocket) {
  const auto ours = Impl::PrivateComm::of(comm);
  std::shared_ptr<const NodeTopology> nodes;
  std::string error;
  try {
    if (!ranksPerNode.empty()) {
      nodes = std::make_shared<const NodeTopology>(NodeTopology::parse(ranksPerNode, ours->size()));
    }
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm, error);
  Impl::ResolvedTopology topology = Impl::resolveTopology(*ours, nodes, nullptr);
  if (ranksPerSocket > 0) {
    topology.sockets = std::make_shared<const NodeTopology>(topology.nodes->sockets(ranksPerSocket));
  }
  return {topology.nodes, topology.sockets, !topology.detected};
}

}  // namespace Komvos::Program
