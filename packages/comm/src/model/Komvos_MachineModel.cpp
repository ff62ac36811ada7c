#include "Komvos_MachineModel.hpp"

#include <algorithm>

#include "Komvos_Error.hpp"

namespace Komvos {

Protocol ProtocolLimits::of(long bytes) const {
  return bytes <= shortMax ? Protocol::shortMessage : bytes <= eagerMax ? Protocol::eager : Protocol::rendezvous;
}

double OnNodeModel::time(long bytes) const {
  const Parameters& p = of(limits.of(bytes));
  return p.latency + bytes / p.rate;
}

double OffNodeModel::jointRate(Protocol protocol, int senders) const {
  const Parameters& p = of(protocol);
  const int further = std::min(senders, measuredSenders) - 1;
  return std::min(p.nodeRate, p.rate + further * p.addedRate);
}

double OffNodeModel::time(long bytes) const { return time(bytes, 1); }

double OffNodeModel::time(long bytes, int senders) const {
  const Protocol protocol = limits.of(bytes);
  return of(protocol).latency + static_cast<double>(senders) * bytes / jointRate(protocol, senders);
}

const OffNodeModel& MachineModel::needOffNode() const {
  if (!offNode) {
    throw BadInput("machine '" + name + "' was calibrated on one node: it does not know messages between nodes");
  }
  return *offNode;
}

MachineModel blueWaters() {
  const ProtocolLimits limits{512, 8192};
  OffNodeModel offNode{limits, {}, 16};
  offNode.parameters = {{{4.0e-6, 6.3e8, -1.8e7}, {1.1e-5, 1.7e9, 6.2e7}, {2.0e-5, 3.6e9, 6.1e8, 5.5e9}}};
  MachineModel machine;
  machine.name = "blue-waters";
  machine.host = "Blue Waters, Cray XE, 16 cores a node, Gemini network";
  machine.onNode = {limits, {{{1.3e-6, 4.2e8}, {1.6e-6, 7.4e8}, {4.2e-6, 3.1e9}}}};
  machine.offNode = offNode;
  return machine;
}

}  // namespace Komvos
