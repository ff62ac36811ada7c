#include "Komvos_RouteCandidates.hpp"

#include <Tpetra_Details_DefaultTypes.hpp>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ModelledSeconds.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Reduction.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_TuningCache.hpp"

// How this works. The standard route is planned; planCandidates() adds what the options ask for: one route, or those of
// combiningRoutes() as long as they promise something. Each plan is made by buildPlansAgain(), counted, and given to
// the model if there is one; that communicates, so all ranks plan the same routes in the same order. addSharedMemory()
// then doubles the list: these candidates share the plans of the first ones.
namespace Komvos::Impl {

namespace {

using DefaultDevice = Tpetra::Details::DefaultTypes::node_type::device_type;

bool sendsLess(const Traffic& combined, const Traffic& standard) {
  return combined.max.interNodeMessages < standard.max.interNodeMessages ||
         combined.max.interNodeValues < standard.max.interNodeValues ||
         combined.total.interNodeMessages < standard.total.interNodeMessages ||
         combined.total.interNodeValues < standard.total.interNodeValues;
}

/// Plans candidates one after the other, all by the same transport.
class CandidatePlanner {
 public:
  CandidatePlanner(MPI_Comm comm, Candidate standard, Pattern pattern, const ResolvedOptions& options)
      : comm_(PrivateComm::of(comm)),
        transport_(comm),
        options_(options),
        patterns_{std::move(pattern)},
        candidates_{std::move(standard)} {}

  void addChosenRoute() {
    try {
      candidates_.push_back(plan(options_.route));
    } catch (const BadInput& error) {  // on all ranks: the choice and the topology are the same
      throw options_.tuningCache ? BadInput("tuning cache " + options_.tuningCache->name() + ": " + error.what())
                                 : error;
    }
  }

  /// Where nothing crosses the network there is nothing to combine. Where three steps send no fewer messages and no
  /// fewer values between nodes, nothing that combines messages does.
  void addPromisingRoutes() {
    const Traffic standard = candidates_.front().report.traffic;
    if (standard.total.interNodeMessages == 0) {
      return;
    }
    const ResolvedTopology& topology = options_.topology;
    long threeStepMessages = 0;
    for (const RouteChoice& route : combiningRoutes(*topology.nodes, topology.sockets.get())) {
      candidates_.push_back(plan(route));
      const Traffic& traffic = candidates_.back().report.traffic;
      if (route == RouteChoice::threeStep) {
        threeStepMessages = traffic.total.interNodeMessages;
        if (!sendsLess(traffic, standard)) {
          return;
        }
      } else if (route == RouteChoice::split && traffic.total.interNodeMessages == threeStepMessages) {
        candidates_.pop_back();  // the same as three steps: no pair of nodes has enough values to share
      }
    }
  }

  /// Each route once more, by shared memory on the nodes.
  void addSharedMemory() {
    const std::size_t numRoutes = candidates_.size();
    for (std::size_t i = 0; i < numRoutes; ++i) {
      if (candidates_[i].report.traffic.total.onNodeMessages > 0) {
        candidates_.push_back(candidates_[i]);
        candidates_.back().report.intraNode = IntraNode::sharedMemory;
        candidates_.back().report.modelledSeconds = candidates_[i].modelled.betweenNodes;
      }
    }
  }

  std::vector<Candidate> take() { return std::move(candidates_); }

 private:
  Candidate plan(const RouteChoice& choice) { return planCandidate(*comm_, transport_, options_, patterns_, choice); }

  std::shared_ptr<PrivateComm> comm_;
  MpiSetupTransport transport_;
  const ResolvedOptions& options_;
  std::vector<Pattern> patterns_;  // of this rank
  std::vector<Candidate> candidates_;
};

}  // namespace

Candidate planCandidate(PrivateComm& comm, MpiSetupTransport& transport, const ResolvedOptions& options,
                        const std::vector<Pattern>& patterns, const RouteChoice& choice) {
  const ResolvedTopology& topology = options.topology;
  const std::unique_ptr<Route> route = makeRoute(choice, *topology.nodes, options.pairing, topology.sockets.get());
  Candidate candidate;
  HaloCandidate& report = candidate.report;
  const double start = MPI_Wtime();
  const long sentBefore = transport.messagesSent();
  candidate.plan = std::make_shared<const ExchangePlan>(
      std::move(buildPlansAgain(transport, *topology.nodes, *route, patterns).front()));
  report.route = choice;
  report.buildSeconds = MPI_Wtime() - start;
  report.buildMessages = transport.messagesSent() - sentBefore;
  report.planBytes = static_cast<long>(candidate.plan->memoryBytes());
  const RankTraffic mine = trafficOf(*candidate.plan);
  report.traffic = {mine, mine};
  Reduction costs;
  costs.maximum(report.buildSeconds);
  costs.maximum(report.buildMessages);
  costs.maximum(report.planBytes);
  reduceWith(costs, report.traffic);
  costs.run(comm);
  addModel(comm, transport, options, candidate);
  return candidate;
}

void addModel(const PrivateComm& comm, MpiSetupTransport& transport, const ResolvedOptions& options,
              Candidate& candidate) {
  if (options.machine) {
    candidate.modelled =
        modelledSeconds(comm.get(), transport, *options.machine, *options.topology.nodes, *candidate.plan);
    candidate.report.modelledSeconds = candidate.modelled.all;
  }
}

bool canShareMemory(const ResolvedOptions& options) {
  return Exchange<double, DefaultDevice>::canShareMemory(options.mpiIsGpuAware, options.forceStaging);
}

std::vector<RouteChoice> combiningRoutes(const NodeTopology& nodes, const NodeTopology* sockets) {
  std::vector<RouteChoice> routes;
  if (nodes.numNodes() > 1) {
    routes = {RouteChoice::threeStep, RouteChoice::twoStep, RouteChoice::split};
    if (AxisFactors::fitting(nodes).c * nodes.numNodes() == nodes.numRanks()) {  // groups are nodes
      routes.push_back(RouteChoice::axis);
    }
  }
  if (sockets != nullptr && sockets->numNodes() > nodes.numNodes()) {
    routes.push_back(RouteChoice::sockets);
  }
  return routes;
}

std::vector<Candidate> planCandidates(MPI_Comm comm, Candidate standard, Pattern pattern,
                                      const ResolvedOptions& options) {
  CandidatePlanner planner(comm, std::move(standard), std::move(pattern), options);
  if (options.route == RouteChoice::automatic) {
    planner.addPromisingRoutes();
  } else if (options.route != RouteChoice::standard) {
    planner.addChosenRoute();
  }
  if (options.intraNode != IntraNode::messages && canShareMemory(options)) {
    planner.addSharedMemory();
  }
  return planner.take();
}

}  // namespace Komvos::Impl
