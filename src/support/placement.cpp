#include "support/placement.hpp"

#include "Komvos_Error.hpp"
#include "Komvos_Settings.hpp"

namespace Komvos::Program {

Placement placementOf(MPI_Comm comm, const std::string& ranksPerNode, int ranksPerSocket) {
  int size = 0;
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  Placement result;
  std::string error;
  try {
    const Settings settings = readSettings();
    const std::string text = !ranksPerNode.empty() ? ranksPerNode : settings.ranksPerNode.value_or("");
    if (!text.empty()) {
      result.nodes = std::make_shared<const NodeTopology>(NodeTopology::parse(text, size));
      result.given = true;
    }
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm, error);
  if (!result.given) {
    result.nodes = std::make_shared<const NodeTopology>(NodeTopology::detect(comm));
  }
  if (ranksPerSocket > 0) {
    result.sockets = std::make_shared<const NodeTopology>(result.nodes->sockets(ranksPerSocket));
  } else if (!result.given) {
    result.sockets = std::make_shared<const NodeTopology>(NodeTopology::detectSockets(comm));
  }
  return result;
}

}  // namespace Komvos::Program
