#include "Komvos_MessageCosts.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_MachineModel.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Reduction.hpp"

// How this works. The ranks with the same local rank form a line from node to node, and those of a node another one;
// both are closed to a ring where the ends can see each other. All ranks send along it at once, as in an exchange, and
// wait for what comes: one message that is not timed, for it may open a connection, then two short ones together, then
// a long one. Each is timed once, for the user waits; the mean over ranks makes up for some of the noise.
namespace Komvos::Impl {

namespace {

constexpr int burst = 2;  // short messages that travel together
constexpr int shortBytes = 8;
constexpr int longBytes = 32 * 1024;  // eager with most MPI libraries

/// Whom a rank sends to, and who sends to it.
struct Partners {
  int next = MPI_PROC_NULL, previous = MPI_PROC_NULL;
  bool any() const { return next != MPI_PROC_NULL || previous != MPI_PROC_NULL; }
};

/// The rank with the same local rank on the nodes beside that of `rank`, as far as there is one.
Partners betweenNodes(const NodeTopology& nodes, int rank) {
  const int node = nodes.nodeOf(rank), local = nodes.localRankOf(rank), count = nodes.numNodes();
  const auto rankOn = [&](int other) {
    return other != node && local < nodes.numRanksOn(other) ? nodes.rankOn(other, local) : MPI_PROC_NULL;
  };
  return {rankOn((node + 1) % count), rankOn((node + count - 1) % count)};
}

Partners onNode(const NodeTopology& nodes, int rank) {
  const int node = nodes.nodeOf(rank), local = nodes.localRankOf(rank), count = nodes.numRanksOn(node);
  if (count == 1) {
    return {};
  }
  return {nodes.rankOn(node, (local + 1) % count), nodes.rankOn(node, (local + count - 1) % count)};
}

class Messages {
 public:
  Messages(const PrivateComm& comm, const Partners& partners) : comm_(comm), partners_(partners) {}

  /// Seconds until `count` messages have come and gone.
  double send(int count, int bytes) {
    std::array<MPI_Request, 2 * burst> requests;
    const int tag = PrivateComm::knownSetupTag;
    const double start = MPI_Wtime();
    int posted = 0;
    for (int i = 0; i < count; ++i) {
      mpiCheck(MPI_Irecv(received_.data() + i * longBytes, bytes, MPI_BYTE, partners_.previous, tag, comm_.get(),
                         &requests[posted++]),
               "MPI_Irecv");
    }
    for (int i = 0; i < count; ++i) {
      mpiCheck(MPI_Isend(sent_.data(), bytes, MPI_BYTE, partners_.next, tag, comm_.get(), &requests[posted++]),
               "MPI_Isend");
    }
    mpiCheck(MPI_Waitall(posted, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    return MPI_Wtime() - start;
  }

 private:
  const PrivateComm& comm_;
  const Partners partners_;
  const std::vector<char> sent_ = std::vector<char>(longBytes);
  std::vector<char> received_ = std::vector<char>(burst * longBytes);
};

/// The sum over ranks that have partners, in nanoseconds.
struct Measured {
  long count = 0, latency = 0, rest = 0;  // rest: what a long message takes longer

  void measure(const PrivateComm& comm, const Partners& partners) {
    if (!partners.any()) {
      return;
    }
    Messages messages(comm, partners);
    messages.send(1, shortBytes);
    const double each = messages.send(burst, shortBytes) / burst;
    count = 1;
    latency = std::lround(1e9 * each);
    rest = std::lround(1e9 * std::max(0.0, messages.send(1, longBytes) - each));
  }

  void addTo(Reduction& round) {
    round.sum(count);
    round.sum(latency);
    round.sum(rest);
  }

  double meanLatency() const { return 1e-9 * static_cast<double>(std::max(1L, latency)) / static_cast<double>(count); }
  double meanPerByte() const {
    return 1e-9 * static_cast<double>(rest) / static_cast<double>(count) / (longBytes - shortBytes);
  }
};

/// What this process knows, from whatever communicator.
std::optional<MessageCosts>& known() {
  static std::optional<MessageCosts> costs;
  return costs;
}

/// The mean of what the ranks know, if all know something. \note Collective on `comm`.
std::optional<MessageCosts> takeOver(PrivateComm& comm) {
  constexpr double scale = 1e15;
  const auto whole = [](double number) { return std::lround(scale * number); };
  const MessageCosts mine = known().value_or(MessageCosts{0, 0, 0, 0});
  long ranks = known() ? 1 : 0;
  std::array<long, 4> sums{whole(mine.latency), whole(mine.perByte), whole(mine.onNodeLatency),
                           whole(mine.onNodePerByte)};
  Reduction round;
  round.sum(ranks);
  for (long& one : sums) {
    round.sum(one);
  }
  round.run(comm);
  if (ranks < comm.size()) {
    return {};
  }
  const auto mean = [&](int i) { return static_cast<double>(sums[i]) / scale / static_cast<double>(ranks); };
  return MessageCosts{mean(0), mean(1), mean(2), mean(3), true};
}

}  // namespace

MessageCosts costsOf(const MachineModel& machine) {
  MessageCosts costs;
  if (machine.offNode) {
    const OffNodeModel::Parameters& off = machine.offNode->of(Protocol::eager);
    const OnNodeModel::Parameters& on = machine.onNode.of(Protocol::eager);
    const auto perByte = [](double rate) { return std::isfinite(rate) ? 1 / rate : 0; };
    costs = {off.latency, perByte(off.rate), on.latency, perByte(on.rate), true};
  }
  return costs;
}

MessageCosts measureMessageCosts(PrivateComm& comm, const NodeTopology& nodes, double& seconds) {
  const double start = MPI_Wtime();
  Measured between, within;
  between.measure(comm, betweenNodes(nodes, comm.rank()));
  within.measure(comm, onNode(nodes, comm.rank()));
  seconds = MPI_Wtime() - start;
  Reduction round;
  between.addTo(round);
  within.addTo(round);
  round.maximum(seconds);
  round.run(comm);
  MessageCosts costs;
  if (between.count == 0) {
    return costs;
  }
  const double unit = between.meanLatency();
  costs.inSeconds = true;
  costs.latency = unit;
  costs.perByte = between.meanPerByte();
  costs.onNodeLatency = within.count > 0 ? within.meanLatency() : unit * costs.onNodeLatency;
  costs.onNodePerByte = within.count > 0 ? within.meanPerByte() : unit * costs.onNodePerByte;
  return costs;
}

MessageCosts quickCalibration(PrivateComm& comm, const NodeTopology& nodes, double& seconds) {
  struct Holder {
    std::map<std::uint64_t, MessageCosts> byTopology;
  };
  seconds = 0;
  auto& kept = comm.attached<Holder>([] { return std::make_shared<Holder>(); }).byTopology;
  const auto found = kept.find(nodes.fingerprint());
  if (found != kept.end()) {
    return found->second;
  }
  std::optional<MessageCosts> costs = takeOver(comm);
  if (!costs) {
    costs = measureMessageCosts(comm, nodes, seconds);
    if (costs->inSeconds) {
      known() = costs;
    }
  }
  kept.emplace(nodes.fingerprint(), *costs);
  return *costs;
}

}  // namespace Komvos::Impl
