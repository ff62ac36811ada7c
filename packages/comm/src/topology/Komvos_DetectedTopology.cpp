#include "Komvos_DetectedTopology.hpp"

#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

namespace {

struct Detected {
  std::shared_ptr<const NodeTopology> nodes, sockets;
};

Detected& detectedOn(PrivateComm& comm) {
  return comm.attached<Detected>([] { return std::make_shared<Detected>(); });
}

}  // namespace

std::shared_ptr<const NodeTopology> detectedTopology(PrivateComm& comm) {
  std::shared_ptr<const NodeTopology>& nodes = detectedOn(comm).nodes;
  if (!nodes) {
    nodes = std::make_shared<const NodeTopology>(NodeTopology::detect(comm.get()));
  }
  return nodes;
}

std::shared_ptr<const NodeTopology> detectedSockets(PrivateComm& comm) {
  std::shared_ptr<const NodeTopology>& sockets = detectedOn(comm).sockets;
  if (!sockets) {
    sockets = std::make_shared<const NodeTopology>(NodeTopology::detectSockets(comm.get()));
  }
  return sockets;
}

}  // namespace Komvos::Impl
