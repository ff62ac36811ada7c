#include "Komvos_HaloPlanner.hpp"

#include <Tpetra_Details_DefaultTypes.hpp>
#include <algorithm>
#include <cstdint>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Settings.hpp"
#include "Komvos_ThreeStepRoute.hpp"

namespace Komvos {

RouteChoice parseRoute(const std::string& text) {
  if (text == "standard") {
    return RouteChoice::standard;
  }
  if (text == "three-step") {
    return RouteChoice::threeStep;
  }
  if (text == "auto") {
    return RouteChoice::automatic;
  }
  throw BadInput("route '" + text + "' is not one of standard, three-step, auto");
}

std::unique_ptr<Route> makeRoute(RouteChoice choice, const NodeTopology& topology, Pairing pairing) {
  if (choice == RouteChoice::threeStep) {
    return std::make_unique<ThreeStepRoute>(topology, pairing);
  }
  return std::make_unique<StandardRoute>();
}

namespace {

struct Wishes {
  RouteChoice route;
  Pairing pairing;
  std::shared_ptr<const NodeTopology> topology;
};

/// Ranks that route differently would wait for each other for ever. \throws BadInput on all ranks
void requireSame(const Impl::PrivateComm& comm, const Wishes& wishes) {
  const std::uint64_t mine[3] = {static_cast<std::uint64_t>(wishes.route), static_cast<std::uint64_t>(wishes.pairing),
                                 wishes.topology->fingerprint()};
  const char* const names[3] = {"route", "pairing", "topology"};
  std::uint64_t bounds[6];  // largest, and complement of smallest
  for (int i = 0; i < 3; ++i) {
    bounds[i] = mine[i];
    bounds[i + 3] = ~mine[i];
  }
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, bounds, 6, MPI_UINT64_T, MPI_MAX, comm.get()), "MPI_Allreduce");
  for (int i = 0; i < 3; ++i) {
    if (bounds[i] != ~bounds[i + 3]) {
      throw BadInput(std::string("the ") + names[i] + " of a halo must be the same on all ranks, and is not");
    }
  }
}

/// Options, then environment, then defaults; any error is agreed on.
Wishes resolve(Impl::PrivateComm& comm, const ExchangeOptions& options) {
  Wishes wishes{RouteChoice::automatic, Pairing::byVolume, options.topology};
  std::string error;
  bool detect = false;
  try {
    const Settings settings = readSettings();
    wishes.route = options.route.value_or(settings.route ? parseRoute(*settings.route) : RouteChoice::automatic);
    wishes.pairing = options.pairing.value_or(settings.pairing ? parsePairing(*settings.pairing) : Pairing::byVolume);
    if (!wishes.topology && settings.ranksPerNode) {
      wishes.topology = std::make_shared<const NodeTopology>(NodeTopology::parse(*settings.ranksPerNode, comm.size()));
    }
    detect = !wishes.topology;
    if (!detect && wishes.topology->numRanks() != comm.size()) {
      error = "the topology has " + std::to_string(wishes.topology->numRanks()) + " ranks, the communicator " +
              std::to_string(comm.size());
    }
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  agreeOnError(comm.get(), error);
  int anyDetects = detect ? 1 : 0;  // detecting is collective: all or none
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &anyDetects, 1, MPI_INT, MPI_MAX, comm.get()), "MPI_Allreduce");
  agreeOnError(comm.get(), anyDetects != 0 && !detect ? "a topology is given on some ranks only" : "");
  if (detect) {
    wishes.topology = comm.detectedTopology();
  }
  requireSame(comm, wishes);
  return wishes;
}

ExchangePlan build(MpiTransport& transport, const Wishes& wishes, RouteChoice choice,
                   const std::vector<Pattern>& pattern) {
  const std::unique_ptr<Route> route = makeRoute(choice, *wishes.topology, wishes.pairing);
  return std::move(buildPlans(transport, *wishes.topology, *route, pattern).front());
}

using DefaultDevice = Tpetra::Details::DefaultTypes::node_type::device_type;

/// Runs each plan in turn on vectors of its own, `repeats` times. \return the median over repeats of the maximum over
/// ranks, for each plan.
std::vector<double> measure(MPI_Comm comm, const std::vector<std::shared_ptr<const ExchangePlan>>& plans, int repeats) {
  using Run = Exchange<double, DefaultDevice>;
  using Vector = Kokkos::View<double**, Kokkos::LayoutLeft, DefaultDevice>;
  const typename Run::execution_space space;
  const Vector owned("Komvos::measure::owned", plans.front()->numOwned, 1);
  const Vector ghosts("Komvos::measure::ghosts", plans.front()->numTarget, 1);
  std::vector<Run> runs;
  for (const auto& plan : plans) {
    runs.emplace_back(comm, plan);
  }
  const int warmUp = 2;
  std::vector<std::vector<double>> seconds(plans.size(), std::vector<double>(warmUp + repeats));
  for (int repeat = 0; repeat < warmUp + repeats; ++repeat) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      mpiCheck(MPI_Barrier(comm), "MPI_Barrier");
      const double start = MPI_Wtime();
      runs[i].forward(space, owned, ghosts);
      Impl::fence(space, "Komvos::measure: unpacked before the clock is read");
      seconds[i][repeat] = MPI_Wtime() - start;
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& one : seconds) {
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, one.data(), static_cast<int>(one.size()), MPI_DOUBLE, MPI_MAX, comm),
             "MPI_Allreduce");
    std::nth_element(one.begin() + warmUp, one.begin() + warmUp + repeats / 2, one.end());
    medians.push_back(one[warmUp + repeats / 2]);
  }
  return medians;
}

}  // namespace

PlannedHalo planHalo(MPI_Comm userComm, Pattern pattern, const ExchangeOptions& options) {
  const double start = MPI_Wtime();
  const std::shared_ptr<Impl::PrivateComm> shared = Impl::PrivateComm::of(userComm);
  const MPI_Comm comm = shared->get();
  const Wishes wishes = resolve(*shared, options);
  pattern.normalize();
  const std::vector<Pattern> patterns{std::move(pattern)};
  MpiTransport transport(shared);

  PlannedHalo result;
  result.onNode = options.onNode.value_or(OnNodeHops::messages);
  HaloReport& report = result.report;
  const auto standard = std::make_shared<const ExchangePlan>(build(transport, wishes, RouteChoice::standard, patterns));
  report.standard = reduceTraffic(comm, trafficOf(*standard));
  report.chosen = report.standard;
  result.plan = standard;
  // Where nothing crosses the network there is nothing to choose.
  const bool choose = wishes.route == RouteChoice::automatic && report.standard.total.interNodeMessages > 0;
  if (wishes.route == RouteChoice::threeStep || choose) {
    const auto threeStep =
        std::make_shared<const ExchangePlan>(build(transport, wishes, RouteChoice::threeStep, patterns));
    bool take = true;
    if (choose) {
      const int repeats = 15;
      const double clearGain = 0.9;  // of the standard time: below that, noise decides
      const std::vector<double> seconds = measure(comm, {standard, threeStep}, repeats);
      report.standardSeconds = seconds[0];
      take = seconds[1] < clearGain * seconds[0];
      report.chosenSeconds = seconds[take ? 1 : 0];
    }
    if (take) {
      result.plan = threeStep;
      report.chosen = reduceTraffic(comm, trafficOf(*threeStep));
    }
  }
  report.route = result.plan->route;
  report.setupSeconds = MPI_Wtime() - start;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &report.setupSeconds, 1, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
  return result;
}

}  // namespace Komvos
