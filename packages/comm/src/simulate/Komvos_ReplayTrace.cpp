#include "Komvos_ReplayTrace.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

namespace Komvos {

namespace {

/// Orders the peers of a rank as if at random, the same in every run and differently on each rank.
std::uint64_t mixed(int rank, int peer) {
  std::uint64_t x = (static_cast<std::uint64_t>(rank) << 32U) + static_cast<std::uint64_t>(peer);
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;  // the last steps of splitmix64: one to one
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

}  // namespace

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

void ReplayTrace::writeSends(std::ostream& out, Actions sends, int maxConcurrentSends) {
  if (maxConcurrentSends > 0) {
    std::sort(sends.begin(), sends.end(),
              [](const Action& a, const Action& b) { return mixed(a.rank, a.peer) < mixed(b.rank, b.peer); });
  }
  auto oldest = sends.cbegin();
  const auto waitForOldest = [&] {
    out << oldest->rank << " wait " << oldest->rank << ' ' << oldest->peer << ' ' << oldest->stage << '\n';
    ++oldest;
  };
  for (auto send = sends.cbegin(); send != sends.cend(); ++send) {
    if (maxConcurrentSends > 0 && send - oldest == maxConcurrentSends) {
      waitForOldest();
    }
    out << send->rank << " isend " << send->peer << ' ' << send->stage << ' ' << send->bytes << '\n';
  }
  while (oldest != sends.cend()) {
    waitForOldest();
  }
}

void ReplayTrace::writeStage(std::ostream& out, Actions::const_iterator begin, Actions::const_iterator end,
                             const ReceiveCost& cost, int maxConcurrentSends) {
  const int rank = begin->rank;
  const int stage = begin->stage;
  const auto firstSend = std::find_if(begin, end, [](const Action& a) { return a.send; });
  double flops = 0;
  for (auto receive = begin; receive != firstSend; ++receive) {
    out << rank << " irecv " << receive->peer << ' ' << stage << ' ' << receive->bytes << '\n';
    flops += cost.flopsPerMessage + cost.flopsPerByte * static_cast<double>(receive->bytes);
  }
  writeSends(out, Actions(firstSend, end), maxConcurrentSends);
  for (auto receive = begin; receive != firstSend; ++receive) {
    out << rank << " wait " << receive->peer << ' ' << rank << ' ' << stage << '\n';
  }
  if (flops > 0) {
    out << rank << " compute " << std::llround(flops) << '\n';
  }
}

void ReplayTrace::writeActions(std::ostream& out, const ReceiveCost& cost, int maxConcurrentSends) const {
  auto action = actions_.begin();
  for (int rank = 0; rank < numActive(); ++rank) {
    out << rank << " init\n";
    while (action != actions_.end() && action->rank == rank) {
      const auto end = std::find_if(
          action, actions_.end(), [&](const Action& a) { return a.rank != action->rank || a.stage != action->stage; });
      writeStage(out, action, end, cost, maxConcurrentSends);
      action = end;
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
