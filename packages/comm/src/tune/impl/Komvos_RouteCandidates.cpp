#include "Komvos_RouteCandidates.hpp"

#include <Tpetra_Details_DefaultTypes.hpp>
#include <array>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ModelledSeconds.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_TuningCache.hpp"

// How this works. planCandidates() plans the standard route, then what the options ask for: one route, or those of
// combiningRoutes() as long as they promise something. Each plan is made by buildPlans(), counted, and given to the
// model if there is one; that communicates, so all ranks plan the same routes in the same order. addSharedMemory() then
// doubles the list: these candidates share the plans of the first ones.
namespace Komvos::Impl {

namespace {

using DefaultDevice = Tpetra::Details::DefaultTypes::node_type::device_type;

/// What it took to make a plan, the most on any rank, its traffic, and the counts of the halo, in one round.
/// \param seconds of the plan, and since planHalo() began
/// \note Collective on `comm`.
void reduceCost(MPI_Comm comm, double seconds, double secondsOfAll, long messages, const ExchangePlan& plan,
                const HaloCounts& mine, Candidate& candidate) {
  std::array<double, 10> most{seconds,
                              static_cast<double>(messages),
                              static_cast<double>(plan.memoryBytes()),
                              secondsOfAll,
                              static_cast<double>(mine.ranksOffNode),
                              static_cast<double>(mine.valuesOffNode),
                              static_cast<double>(mine.nodes),
                              static_cast<double>(mine.valuesOfNodes),
                              static_cast<double>(mine.ranksOnNode),
                              static_cast<double>(mine.valuesOnNode)};
  MPI_Request request = MPI_REQUEST_NULL;
  mpiCheck(
      MPI_Iallreduce(MPI_IN_PLACE, most.data(), static_cast<int>(most.size()), MPI_DOUBLE, MPI_MAX, comm, &request),
      "MPI_Iallreduce");
  HaloCandidate& report = candidate.report;
  report.traffic = reduceTraffic(comm, trafficOf(plan));
  mpiCheck(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
  report.buildSeconds = most[0];
  report.buildMessages = static_cast<long>(most[1]);
  report.planBytes = static_cast<long>(most[2]);
  candidate.secondsOfAll = most[3];
  const auto count = [&most](int i) { return static_cast<long>(most[i]); };
  candidate.counts = {count(4), count(5), count(6), count(7), count(8), count(9)};
}

bool sendsLess(const Traffic& combined, const Traffic& standard) {
  return combined.max.interNodeMessages < standard.max.interNodeMessages ||
         combined.max.interNodeValues < standard.max.interNodeValues ||
         combined.total.interNodeMessages < standard.total.interNodeMessages ||
         combined.total.interNodeValues < standard.total.interNodeValues;
}

/// Plans candidates one after the other, all by the same transport.
class CandidatePlanner {
 public:
  CandidatePlanner(MPI_Comm comm, Pattern pattern, const ResolvedOptions& options)
      : comm_(PrivateComm::of(comm)), transport_(comm), options_(options), patterns_{std::move(pattern)} {
    candidates_.push_back(plan(RouteChoice::standard));
  }

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

  const HaloCounts& counts() const { return candidates_.front().counts; }

  std::vector<Candidate> take() { return std::move(candidates_); }

 private:
  Candidate plan(const RouteChoice& choice) {
    return planCandidate(*comm_, transport_, options_, patterns_, choice, !candidates_.empty());
  }

  std::shared_ptr<PrivateComm> comm_;
  MpiSetupTransport transport_;
  const ResolvedOptions& options_;
  std::vector<Pattern> patterns_;  // of this rank
  std::vector<Candidate> candidates_;
};

}  // namespace

Candidate planCandidate(const PrivateComm& comm, MpiSetupTransport& transport, const ResolvedOptions& options,
                        const std::vector<Pattern>& patterns, const RouteChoice& choice, bool again) {
  const ResolvedTopology& topology = options.topology;
  const std::unique_ptr<Route> route = makeRoute(choice, *topology.nodes, options.pairing, topology.sockets.get());
  Candidate candidate;
  const double start = MPI_Wtime();
  const long sentBefore = transport.messagesSent();
  const auto build = again ? buildPlansAgain : buildPlans;
  candidate.plan =
      std::make_shared<const ExchangePlan>(std::move(build(transport, *topology.nodes, *route, patterns).front()));
  const double end = MPI_Wtime();
  reduceCost(comm.get(), end - start, end - options.startedAt, transport.messagesSent() - sentBefore, *candidate.plan,
             countsOfRank(patterns.front(), *topology.nodes), candidate);
  candidate.report.route = choice;
  if (options.machine) {
    candidate.modelled = modelledSeconds(comm.get(), transport, *options.machine, *topology.nodes, *candidate.plan);
    candidate.report.modelledSeconds = candidate.modelled.all;
  }
  return candidate;
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

std::vector<Candidate> planCandidates(MPI_Comm comm, Pattern pattern, const ResolvedOptions& options,
                                      const std::function<void(const HaloCounts&)>& decide) {
  CandidatePlanner planner(comm, std::move(pattern), options);
  decide(planner.counts());
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
