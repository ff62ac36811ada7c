#include "Komvos_ReplayTrace.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace Komvos {

ReplayTrace::ReplayTrace(const NodeTopology& topology, const std::vector<VirtualMessage>& messages, int valueBytes) {
  std::vector<int> active(topology.numRanks(), 0);
  for (const VirtualMessage& message : messages) {
    active[message.from] = active[message.to] = 1;
  }
  for (int rank = 0; rank < topology.numRanks(); ++rank) {
    if (active[rank] != 0) {
      active[rank] = numActive();
      nodeOf_.push_back(topology.nodeOf(rank));
    }
  }
  actions_.reserve(2 * messages.size());
  for (const VirtualMessage& message : messages) {
    const int from = active[message.from];
    const int to = active[message.to];
    const long bytes = message.values * valueBytes;
    actions_.push_back({to, message.stage, false, from, bytes});
    actions_.push_back({from, message.stage, true, to, bytes});
  }
  std::sort(actions_.begin(), actions_.end(), [](const Action& a, const Action& b) {
    return std::tie(a.rank, a.stage, a.send, a.peer) < std::tie(b.rank, b.stage, b.send, b.peer);
  });
}

void ReplayTrace::writeActions(std::ostream& out, const ReceiveCost& cost) const {
  auto action = actions_.begin();
  for (int rank = 0; rank < numActive(); ++rank) {
    out << rank << " init\n";
    while (action != actions_.end() && action->rank == rank) {
      const int stage = action->stage;
      double flops = 0;
      for (; action != actions_.end() && action->rank == rank && action->stage == stage; ++action) {
        out << rank << (action->send ? " isend " : " irecv ") << action->peer << ' ' << stage << ' ' << action->bytes
            << '\n';
        flops += action->send ? 0 : cost.flopsPerMessage + cost.flopsPerByte * static_cast<double>(action->bytes);
      }
      out << rank << " waitall\n";
      if (flops > 0) {
        out << rank << " compute " << std::llround(flops) << '\n';
      }
    }
    out << rank << " finalize\n";
  }
}

void ReplayTrace::writeHosts(std::ostream& out) const {
  for (const int node : nodeOf_) {
    out << 'n' << node << '\n';
  }
}

}  // namespace Komvos
