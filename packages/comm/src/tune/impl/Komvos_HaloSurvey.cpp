#include "Komvos_HaloSurvey.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Reduction.hpp"
#include "Komvos_RouteForecast.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_TuningCache.hpp"

// How this works. Each rank plans the standard route by itself, on trust, and counts. Then one reduction says whether a
// rank found an error and whether the patterns fit each other (balanceOf), and brings the counts together. If something
// is wrong, the plans are dropped, and only then messages are sent to find out what.
namespace Komvos::Impl {

namespace {

/// What one halo needs of the round.
struct Entry {
  std::uint64_t balance = 0;

  /// On this rank alone. \throws BadInput
  void begin(SurveyedHalo& halo, const Pattern& pattern, const NodeTopology& nodes, const PrivateComm& comm) {
    if (pattern.rank != comm.rank()) {
      throw BadInput("the patterns given are not those of the ranks at hand (rank " + std::to_string(comm.rank()) +
                     ")");
    }
    const double start = MPI_Wtime();
    auto plan = std::make_shared<const ExchangePlan>(standardPlan(pattern, nodes, comm.size()));
    halo.standard.report.buildSeconds = MPI_Wtime() - start;
    balance = balanceOf(pattern);
    halo.patterns = hashOf(pattern);
    halo.counts = countsOfRank(pattern, nodes);
    const RankTraffic mine = trafficOf(*plan);
    halo.standard.report.traffic = {mine, mine};
    halo.standard.report.planBytes = static_cast<long>(plan->memoryBytes());
    halo.standard.report.route = RouteChoice::standard;
    halo.standard.plan = std::move(plan);
  }

  void addTo(Reduction& round, SurveyedHalo& halo) {
    round.sum(balance);
    round.sum(halo.patterns);
    for (long HaloCounts::*const count :
         {&HaloCounts::ranksOffNode, &HaloCounts::valuesOffNode, &HaloCounts::nodes, &HaloCounts::valuesOfNodes,
          &HaloCounts::ranksOnNode, &HaloCounts::valuesOnNode}) {
      round.maximum(halo.counts.*count);
    }
    round.maximum(halo.standard.report.buildSeconds);
    round.maximum(halo.standard.report.planBytes);
    reduceWith(round, halo.standard.report.traffic);
  }
};

}  // namespace

std::vector<SurveyedHalo> surveyHalos(MPI_Comm userComm, const ResolvedOptions& options,
                                      const std::vector<Pattern>& patterns) {
  const std::shared_ptr<PrivateComm> ours = PrivateComm::of(userComm);
  PrivateComm& comm = *ours;
  std::vector<SurveyedHalo> halos(patterns.size());
  std::vector<Entry> entries(patterns.size());
  std::string error;
  try {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      entries[i].begin(halos[i], patterns[i], *options.topology.nodes, comm);
    }
  } catch (...) {
    error = Impl::textOf(std::current_exception());
  }
  Reduction round;
  std::uint64_t anyError = error.empty() ? 0 : 1;
  double roundSeconds = options.roundSeconds;
  round.maximum(anyError);
  round.minimum(roundSeconds);
  for (std::size_t i = 0; i < halos.size(); ++i) {
    entries[i].addTo(round, halos[i]);
  }
  double seconds = (MPI_Wtime() - options.startedAt) / static_cast<double>(std::max<std::size_t>(1, halos.size()));
  round.maximum(seconds);
  round.run(comm);
  if (anyError != 0) {
    throwOnAllIfAny(comm.get(), error);
  }
  MpiSetupTransport transport(userComm);
  const double work = std::max(0.0, seconds * static_cast<double>(halos.size()) - roundSeconds);
  const double buildSeconds = std::accumulate(halos.begin(), halos.end(), 0.0, [](double sum, const SurveyedHalo& one) {
    return sum + one.standard.report.buildSeconds;
  });
  for (std::size_t i = 0; i < halos.size(); ++i) {
    if (entries[i].balance != 0) {
      throwMisfit(transport, *options.topology.nodes, {patterns[i]});
    }
    halos[i].seconds = seconds;
    halos[i].roundSeconds = roundSeconds;
    halos[i].workSeconds = buildSeconds > 0 ? work * halos[i].standard.report.buildSeconds / buildSeconds : 0;
    addModel(comm, transport, options, halos[i].standard);
  }
  return halos;
}

}  // namespace Komvos::Impl
