#include "analyze/virtual_cluster.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangeModel.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_SetupTransport.hpp"

namespace Komvos::Program {

namespace {

namespace fs = std::filesystem;

const int valueBytes = sizeof(double);

bool needsPatterns(RouteChoice::Kind kind) {
  return kind == RouteChoice::Kind::threeStep || kind == RouteChoice::Kind::split || kind == RouteChoice::Kind::sockets;
}

int maxRanksPerNode(const NodeTopology& topology) {
  int max = 0;
  for (int node = 0; node < topology.numNodes(); ++node) {
    max = std::max(max, topology.numRanksOn(node));
  }
  return max;
}

/// A directory that is removed with this object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(fs::temp_directory_path() / ("komvos-replay-" + std::to_string(getpid()))) {}
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// Counts and models what planning sends.
class CountingTransport : public InMemorySetupTransport {
 public:
  CountingTransport(const MachineModel& machine, const NodeTopology& topology)
      : InMemorySetupTransport(topology.numRanks()), machine_(machine), topology_(topology), sent_(numRanks(), 0) {}

  std::vector<std::vector<SetupMessage>> exchange(std::vector<std::vector<SetupMessage>> outbox) override {
    ++traffic_.agreements;
    count(outbox);
    return InMemorySetupTransport::exchange(std::move(outbox));
  }
  std::vector<std::vector<SetupMessage>> exchangeKnown(std::vector<std::vector<SetupMessage>> outbox,
                                                       const std::vector<std::vector<int>>& sources) override {
    --traffic_.agreements;  // InMemorySetupTransport goes by way of exchange()
    return InMemorySetupTransport::exchangeKnown(std::move(outbox), sources);
  }
  std::vector<std::uint64_t> sum(std::vector<std::uint64_t> mine) override {
    ++traffic_.agreements;
    return InMemorySetupTransport::sum(std::move(mine));
  }
  void throwOnAllIfAny(const std::string& error) override {
    ++traffic_.agreements;
    InMemorySetupTransport::throwOnAllIfAny(error);
  }

  SetUpTraffic traffic() const {
    SetUpTraffic traffic = traffic_;
    traffic.messagesMax = *std::max_element(sent_.begin(), sent_.end());
    return traffic;
  }

 private:
  void count(const std::vector<std::vector<SetupMessage>>& outbox) {
    ModelAccumulator model(machine_, topology_, 1);
    for (int rank = 0; rank < numRanks(); ++rank) {
      for (const SetupMessage& message : outbox[rank]) {
        const long bytes = static_cast<long>(message.data.size() * sizeof(int));
        model.add(0, rank, message.peer, bytes);
        traffic_.bytes += bytes;
      }
      sent_[rank] += static_cast<long>(outbox[rank].size());
      traffic_.messages += static_cast<long>(outbox[rank].size());
    }
    ++traffic_.rounds;
    traffic_.modelledSeconds += model.time();
  }

  const MachineModel& machine_;
  const NodeTopology& topology_;
  std::vector<long> sent_;  // by rank
  SetUpTraffic traffic_;
};

}  // namespace

VirtualCluster::VirtualCluster(const ClusterOptions& options)
    : options_(options),
      topology_(NodeTopology::parse(options.ranksPerNode, options.ranks)),
      pairing_(parsePairing(options.pairing)),
      machine_(machineByNameOrFile(options.machine)) {
  machine_.needOffNode();
  if (options.ranksPerSocket > 0) {
    sockets_ = std::make_unique<NodeTopology>(topology_.sockets(options.ranksPerSocket));
  }
  for (const std::string& text : options.routes) {
    routes_.push_back(parseRoute(text));
    makeRoute(routes_.back(), topology_, pairing_, sockets_.get());  // throws now rather than after the work
  }
  if (!options.platforms.empty() && !simgridIsInstalled()) {
    throw BadInput("--simgrid needs SimGrid's smpirun, which is not in the PATH (Debian: libsimgrid-dev)");
  }
  std::vector<std::string> kinds = options.platforms;
  if (kinds.empty() && !options.traceFolder.empty()) {
    kinds = {"torus", "fat-tree"};
  }
  for (const std::string& kind : kinds) {
    networks_.push_back({kind, topology_.numNodes(), maxRanksPerNode(topology_), options.maxFlowsPerLink,
                         options.timeStep, options.maxConcurrentSends});
  }
}

std::vector<RouteResult> VirtualCluster::compare(const VirtualHalo& halo, const std::string& label,
                                                 const Progress& progress) const {
  std::vector<RouteResult> results;
  std::vector<Pattern> patterns;
  for (const RouteChoice& choice : routes_) {
    progress(label + ": " + toString(choice));
    const auto route = makeRoute(choice, topology_, pairing_, sockets_.get());
    if (patterns.empty() && (options_.setUp || needsPatterns(choice.kind))) {
      patterns = halo.patterns();
    }
    std::optional<SetUpTraffic> setUp;
    if (options_.setUp) {
      setUp = setUpOf(*route, patterns);  // prepares it, too
    } else if (needsPatterns(choice.kind)) {
      InMemorySetupTransport transport(topology_.numRanks());
      route->prepare(transport, patterns);
    }
    results.push_back(follow(halo, *route, label, progress));
    results.back().setUp = setUp;
  }
  return results;
}

SetUpTraffic VirtualCluster::setUpOf(Route& route, const std::vector<Pattern>& patterns) const {
  CountingTransport transport(machine_, topology_);
  buildPlans(transport, topology_, route, patterns);
  return transport.traffic();
}

RouteResult VirtualCluster::follow(const VirtualHalo& halo, const Route& route, const std::string& label,
                                   const Progress& progress) const {
  TrafficCounter counter(topology_);
  ModelAccumulator model(machine_, topology_, route.numStages());
  std::vector<VirtualMessage> messages;
  visitMessages(halo, route, [&](const VirtualMessage& message) {
    counter.add(message);
    model.add(message.stage, message.from, message.to, message.values * valueBytes);
    if (!networks_.empty()) {
      messages.push_back(message);
    }
  });
  RouteResult result{route.name(), counter.sent(), counter.received(), model.time(), {}, {}};
  if (!messages.empty()) {
    simulate(messages, label, progress, result);
  }
  return result;
}

void VirtualCluster::simulate(const std::vector<VirtualMessage>& messages, const std::string& label,
                              const Progress& progress, RouteResult& result) const {
  const ReplayTrace trace(topology_, messages, valueBytes);
  for (const SimulatedNetwork& network : networks_) {
    progress(label + ": " + result.route + ", " + network.kind + " of SimGrid");
    std::string name = "level-" + label + "-" + result.route + "-" + network.kind;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ' ' || c == ':' || c == ','; }, '-');
    const TemporaryDirectory temporary;
    const fs::path folder =
        options_.traceFolder.empty() ? fs::path(temporary.path()) : options_.traceFolder / fs::path(name);
    const std::string command = writeReplay(folder.string(), network, trace);
    if (!options_.platforms.empty()) {
      result.simulatedSeconds[network.kind] = runReplay(command);
    }
  }
}

}  // namespace Komvos::Program
