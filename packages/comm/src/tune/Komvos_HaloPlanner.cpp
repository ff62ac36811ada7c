#include "Komvos_HaloPlanner.hpp"

#include <Tpetra_Details_DefaultTypes.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "Komvos_DetectedTopology.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_ExchangeModel.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Settings.hpp"

namespace Komvos {

namespace {

/// The options with nothing left empty that is needed; `onNode` empty: to be measured.
struct Wishes {
  RouteChoice route;
  Pairing pairing = Pairing::byVolume;
  std::optional<IntraNode> onNode;
  int columns = 1;
  std::shared_ptr<const NodeTopology> topology;
  std::shared_ptr<const NodeTopology> sockets;  // null: not known, or one on each node
  std::shared_ptr<const MachineModel> machine;
  std::shared_ptr<const TuningCache> decisions;
};

std::uint64_t hashOf(const std::string& text) { return std::hash<std::string>()(text); }

/// Ranks that route differently would wait for each other for ever. \throws BadInput on all ranks
void requireSame(const Impl::PrivateComm& comm, const Wishes& wishes) {
  const std::vector<std::pair<const char*, std::uint64_t>> mine{
      {"route", hashOf(toString(wishes.route))},
      {"pairing", static_cast<std::uint64_t>(wishes.pairing)},
      {"way of on-node hops", wishes.onNode ? 1 + static_cast<std::uint64_t>(*wishes.onNode) : 0},
      {"number of columns in shared memory", static_cast<std::uint64_t>(wishes.columns)},
      {"topology", wishes.topology->fingerprint()},
      {"socket topology", wishes.sockets ? wishes.sockets->fingerprint() : 0},
      {"machine model", wishes.machine ? hashOf(machineToJson(*wishes.machine)) : 0},
      {"set of saved decisions", wishes.decisions ? hashOf(wishes.decisions->toText()) : 0}};
  std::vector<std::uint64_t> bounds;  // largest, and complement of smallest
  for (const auto& [name, value] : mine) {
    bounds.push_back(value);
    bounds.push_back(~value);
  }
  mpiCheck(
      MPI_Allreduce(MPI_IN_PLACE, bounds.data(), static_cast<int>(bounds.size()), MPI_UINT64_T, MPI_MAX, comm.get()),
      "MPI_Allreduce");
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (bounds[2 * i] != ~bounds[2 * i + 1]) {
      throw BadInput(std::string("the ") + mine[i].first + " of a halo must be the same on all ranks, and is not");
    }
  }
}

/// Detecting is collective: all ranks or none. \throws BadInput on all ranks if it is asked for on some only
bool allOrNone(const Impl::PrivateComm& comm, bool wanted, const char* what) {
  int any = wanted ? 1 : 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, comm.get()), "MPI_Allreduce");
  throwOnAllIfAny(comm.get(), any != 0 && !wanted ? std::string(what) + " on some ranks only" : "");
  return wanted;
}

void requireSize(const char* what, const NodeTopology& topology, int numRanks) {
  if (topology.numRanks() != numRanks) {
    throw BadInput(std::string("the ") + what + " has " + std::to_string(topology.numRanks()) +
                   " ranks, the communicator " + std::to_string(numRanks));
  }
}

/// A wish that decisions cannot follow; empty if there is none.
std::string wishBesideDecisions(const ExchangeOptions& options) {
  return options.route.value_or(RouteChoice::automatic) != RouteChoice::automatic ? "route " + toString(*options.route)
         : options.pairing                       ? "pairing " + toString(*options.pairing)
         : options.onNode && options.onNode->way ? "on-node hops by " + toString(*options.onNode->way)
                                                 : std::string();
}

/// Options, then environment, then defaults; any error is agreed on.
Wishes resolve(Impl::PrivateComm& comm, const ExchangeOptions& options) {
  Wishes wishes;
  wishes.columns = std::max(1, options.columns);
  wishes.topology = options.topology;
  wishes.sockets = options.sockets;
  wishes.machine = options.machine;
  wishes.decisions = options.decisions;
  Settings settings;
  std::string error;
  try {
    settings = readSettings();
    wishes.route = options.route.value_or(settings.route ? parseRoute(*settings.route) : RouteChoice::automatic);
    wishes.pairing = options.pairing.value_or(settings.pairing ? parsePairing(*settings.pairing) : Pairing::byVolume);
    wishes.onNode =
        options.onNode.value_or(settings.onNode ? parseOnNodeWish(*settings.onNode) : OnNodeWish::automatic).way;
    if (const std::string wish = wishBesideDecisions(options); options.decisions && !wish.empty()) {
      throw BadInput("options of a halo: " + wish + " and decisions in " + options.decisions->name() +
                     "; only one of them can be followed");
    }
    if (!wishes.topology && settings.ranksPerNode) {
      wishes.topology = std::make_shared<const NodeTopology>(NodeTopology::parse(*settings.ranksPerNode, comm.size()));
    }
    if (wishes.topology) {
      requireSize("topology", *wishes.topology, comm.size());
    }
    if (wishes.sockets) {
      requireSize("socket topology", *wishes.sockets, comm.size());
    }
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm.get(), error);
  if (allOrNone(comm, !wishes.topology, "a topology is given")) {
    wishes.topology = Impl::detectedTopology(comm);
    if (allOrNone(comm, !wishes.sockets, "a socket topology is given")) {
      wishes.sockets = Impl::detectedSockets(comm);
    }
  }
  if (allOrNone(comm, !wishes.machine && settings.machine.has_value(), "KOMVOS_MACHINE is set")) {
    wishes.machine = std::make_shared<const MachineModel>(machineByNameOrFile(comm.get(), *settings.machine));
  }
  const bool open = !options.route && !options.pairing && !options.onNode;
  if (allOrNone(comm, !wishes.decisions && open && settings.decisions.has_value(),
                "KOMVOS_TUNING_CACHE is set, and route, pairing and on-node hops are open")) {
    wishes.decisions = std::make_shared<const TuningCache>(TuningCache::load(comm.get(), *settings.decisions));
  }
  requireSame(comm, wishes);
  return wishes;
}

using DefaultDevice = Tpetra::Details::DefaultTypes::node_type::device_type;

struct Candidate {
  HaloCandidate report;
  double modelledByMessages = 0;
  double modelledOffNode = 0;  // of what crosses the network: the least with shared memory, which no formula models
  std::shared_ptr<const ExchangePlan> plan;
  std::vector<double> seconds;  // one a repeat, maximum over ranks
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Everything one call of planHalo needs.
class Planner {
 public:
  Planner(MPI_Comm userComm, Pattern pattern, const ExchangeOptions& options)
      : userComm_(userComm),
        shared_(Impl::PrivateComm::of(userComm)),
        comm_(shared_->get()),
        options_(options),
        wishes_(resolve(*shared_, options)),
        transport_(userComm) {
    pattern.normalize();
    patterns_.push_back(std::move(pattern));
  }

  PlannedHalo plan() {
    const HaloKey here = identify(comm_, patterns_.front(), *wishes_.topology);
    if (wishes_.decisions) {
      const TuningDecision& decided = wishes_.decisions->find(here);
      wishes_.route = decided.route;
      wishes_.pairing = decided.pairing;
      wishes_.onNode = decided.onNode;
    }
    addRoute(RouteChoice::standard);
    if (wishes_.route != RouteChoice::standard && wishes_.route != RouteChoice::automatic) {
      addWishedRoute();
    } else if (wishes_.route == RouteChoice::automatic) {
      addPromisingRoutes();
    }
    addOnNodeVariants();
    PlannedHalo result;
    result.report.standard = candidates_.front().report.traffic;
    const std::size_t chosen = choose();
    const Candidate& best = candidates_[chosen];
    result.plan = best.plan;
    result.onNode = best.report.onNode;
    result.columns = wishes_.columns;
    result.report.route = best.plan->route;
    result.report.pairing = wishes_.pairing;
    result.report.onNode = best.report.onNode;
    result.report.chosen = best.report.traffic;
    result.report.standardSeconds = candidates_.front().report.measuredSeconds;
    result.report.chosenSeconds = best.report.measuredSeconds;
    if (options_.record) {
      options_.record->add(here, {best.report.route, wishes_.pairing, best.report.onNode});
    }
    for (Candidate& one : candidates_) {
      result.report.candidates.push_back(std::move(one.report));
    }
    result.report.setupSeconds = MPI_Wtime() - start_;
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &result.report.setupSeconds, 1, MPI_DOUBLE, MPI_MAX, comm_), "MPI_Allreduce");
    return result;
  }

 private:
  const Candidate& addRoute(const RouteChoice& choice) {
    const std::unique_ptr<Route> route = makeRoute(choice, *wishes_.topology, wishes_.pairing, wishes_.sockets.get());
    Candidate made;
    const double start = MPI_Wtime();
    const long sentBefore = transport_.messagesSent();
    made.plan = std::make_shared<const ExchangePlan>(
        std::move(buildPlans(transport_, *wishes_.topology, *route, patterns_).front()));
    double most[3] = {MPI_Wtime() - start, static_cast<double>(transport_.messagesSent() - sentBefore),
                      static_cast<double>(made.plan->memoryBytes())};
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_DOUBLE, MPI_MAX, comm_), "MPI_Allreduce");
    made.report.buildSeconds = most[0];
    made.report.buildMessages = static_cast<long>(most[1]);
    made.report.planBytes = static_cast<long>(most[2]);
    made.report.route = choice;
    made.report.traffic = reduceTraffic(comm_, trafficOf(*made.plan));
    if (wishes_.machine) {
      std::tie(made.modelledByMessages, made.modelledOffNode) = modelledSeconds(*made.plan);
      made.report.modelledSeconds = made.modelledByMessages;
    }
    candidates_.push_back(std::move(made));
    return candidates_.back();
  }

  /// Of all messages of one exchange, and of those between nodes. The first rank of each node learns what its ranks
  /// send and receive, for by (10) they share the rate of their node.
  std::pair<double, double> modelledSeconds(const ExchangePlan& plan) {
    static_assert(sizeof(StageLoad) % sizeof(int) == 0);
    std::vector<StageLoad> mine;
    std::string error;
    try {
      mine = stageLoads(*wishes_.machine, plan, sizeof(double));
    } catch (const BadInput& thrown) {  // a rank without messages off its node does not miss those parameters
      error = thrown.what();
    }
    throwOnAllIfAny(comm_, error);
    const std::size_t bytes = mine.size() * sizeof(StageLoad);
    const int leader = wishes_.topology->leaderOf(wishes_.topology->nodeOf(plan.rank));
    std::vector<SetupMessage> toLeader;
    if (plan.rank != leader) {
      toLeader.push_back({leader, std::vector<int>(bytes / sizeof(int))});
      std::memcpy(toLeader.back().data.data(), mine.data(), bytes);
    }
    std::vector<std::vector<StageLoad>> ofThisNode{mine};
    const std::vector<std::vector<SetupMessage>> arrived = transport_.exchange({std::move(toLeader)});
    for (const SetupMessage& packet : arrived.front()) {
      ofThisNode.emplace_back(mine.size());
      std::memcpy(static_cast<void*>(ofThisNode.back().data()), packet.data.data(), bytes);
    }
    std::vector<double> seconds(2 * plan.numStages);
    const auto offNode = seconds.begin() + plan.numStages;
    if (plan.rank == leader) {
      const std::vector<double> all = stageTimesOnNode(*wishes_.machine, ofThisNode);
      std::copy(all.begin(), all.end(), seconds.begin());
      for (std::vector<StageLoad>& loads : ofThisNode) {
        for (StageLoad& load : loads) {
          load.sent.onNode = load.received.onNode = {};
        }
      }
      const std::vector<double> some = stageTimesOnNode(*wishes_.machine, ofThisNode);
      std::copy(some.begin(), some.end(), offNode);
    }
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, seconds.data(), 2 * plan.numStages, MPI_DOUBLE, MPI_MAX, comm_),
             "MPI_Allreduce");
    return {std::accumulate(seconds.begin(), offNode, 0.0), std::accumulate(offNode, seconds.end(), 0.0)};
  }

  void addWishedRoute() {
    try {
      addRoute(wishes_.route);
    } catch (const BadInput& error) {  // on all ranks: the choice and the topology are the same
      throw wishes_.decisions ? BadInput("decisions in " + wishes_.decisions->name() + ": " + error.what()) : error;
    }
  }

  /// Where nothing crosses the network there is nothing to choose. Where three steps send no fewer messages and no
  /// fewer values between nodes, nothing that combines messages does.
  void addPromisingRoutes() {
    const Traffic standard = candidates_.front().report.traffic;
    if (standard.total.interNodeMessages == 0) {
      return;
    }
    const Traffic combined = addRoute(RouteChoice::threeStep).report.traffic;
    const bool helps = combined.max.interNodeMessages < standard.max.interNodeMessages ||
                       combined.max.interNodeValues < standard.max.interNodeValues ||
                       combined.total.interNodeMessages < standard.total.interNodeMessages ||
                       combined.total.interNodeValues < standard.total.interNodeValues;
    if (!helps) {
      return;
    }
    addRoute(RouteChoice::twoStep);
    const Candidate& split = addRoute(RouteChoice::split);
    if (split.report.traffic.total.interNodeMessages == combined.total.interNodeMessages) {
      candidates_.pop_back();  // no pair of nodes has enough values to share
    }
    const NodeTopology& nodes = *wishes_.topology;
    if (AxisFactors::fitting(nodes).c * nodes.numNodes() == nodes.numRanks()) {  // groups are nodes
      addRoute(RouteChoice::axis);
    }
    if (wishes_.sockets && wishes_.sockets->numNodes() > wishes_.topology->numNodes()) {
      addRoute(RouteChoice::sockets);
    }
  }

  /// Each route by messages and by shared memory, as the wishes allow. The first stays the standard route by messages.
  void addOnNodeVariants() {
    const bool possible = Exchange<double, DefaultDevice>::canShareMemory();
    const std::size_t routes = candidates_.size();
    for (std::size_t i = 0; i < routes; ++i) {
      const bool some = candidates_[i].report.traffic.total.onNodeMessages > 0;
      if (possible && some && wishes_.onNode != IntraNode::messages) {
        candidates_.push_back(candidates_[i]);
        candidates_.back().report.onNode = IntraNode::sharedMemory;
        candidates_.back().report.modelledSeconds = candidates_[i].modelledOffNode;
      }
    }
  }

  bool isWished(const HaloCandidate& one) const {
    if (wishes_.route != RouteChoice::automatic && one.route != wishes_.route) {
      return false;
    }
    return !wishes_.onNode || one.onNode == *wishes_.onNode || one.traffic.total.onNodeMessages == 0;
  }

  /// \return an index into candidates_
  std::size_t choose() {
    std::vector<std::size_t> contenders;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      HaloCandidate& one = candidates_[i].report;
      if (isWished(one)) {
        contenders.push_back(i);
      } else {
        one.rejectionReason = "not asked for";
      }
    }
    if (contenders.empty()) {  // shared memory was asked for, and cannot be had
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if (wishes_.route == RouteChoice::automatic || candidates_[i].report.route == wishes_.route) {
          contenders.push_back(i);
          break;
        }
      }
    }
    pruneByModel(contenders);
    // The one to beat: the standard route by messages if it may be chosen.
    const std::size_t baseline = contenders.front();
    if (contenders.size() > 1) {
      measure(contenders, 5);
      keepFastest(contenders, 3);
      measure(contenders, 25);
    }
    std::size_t best = baseline;
    double bestRatio = clearGain;
    for (const std::size_t i : contenders) {
      if (i != baseline) {
        const double ratio = medianRatio(candidates_[i], candidates_[baseline]);
        if (ratio < bestRatio) {
          best = i;
          bestRatio = ratio;
        }
      }
    }
    for (const std::size_t i : contenders) {
      if (i != best) {
        candidates_[i].report.rejectionReason = best == baseline ? "not clearly faster" : "slower";
      }
    }
    candidates_[best].report.rejectionReason.clear();
    return best;
  }

  /// A way is judged by the least it takes, against what others take at most: with shared memory that is nothing on the
  /// nodes, or as long as by messages.
  void pruneByModel(std::vector<std::size_t>& contenders) {
    if (!wishes_.machine) {
      return;
    }
    double least = candidates_[contenders.front()].modelledByMessages;
    for (const std::size_t i : contenders) {
      least = std::min(least, candidates_[i].modelledByMessages);
    }
    const auto hopeless = [&](std::size_t i) {
      HaloCandidate& one = candidates_[i].report;
      if (i == contenders.front() || one.modelledSeconds <= hopelessFactor * least) {
        return false;
      }
      one.rejectionReason = "the model says " + std::to_string(one.modelledSeconds / least) + " times the best";
      return true;
    };
    contenders.erase(std::remove_if(contenders.begin() + 1, contenders.end(), hopeless), contenders.end());
  }

  void keepFastest(std::vector<std::size_t>& contenders, std::size_t count) {
    std::stable_sort(contenders.begin() + 1, contenders.end(), [&](std::size_t a, std::size_t b) {
      return candidates_[a].report.measuredSeconds < candidates_[b].report.measuredSeconds;
    });
    for (std::size_t k = 1 + count; k < contenders.size(); ++k) {
      candidates_[contenders[k]].report.rejectionReason = "slower in a first round";
    }
    contenders.resize(std::min(contenders.size(), 1 + count));
  }

  static double medianRatio(const Candidate& one, const Candidate& baseline) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < one.seconds.size(); ++r) {
      ratios.push_back(one.seconds[r] / baseline.seconds[r]);
    }
    return median(std::move(ratios));
  }

  /// Runs the candidates in turn on vectors of their own. A repeat is as many exchanges as the clock needs.
  void measure(const std::vector<std::size_t>& contenders, int repeats) {
    using Run = Exchange<double, DefaultDevice>;
    using Vector = Kokkos::View<double**, Kokkos::LayoutLeft, DefaultDevice>;
    const typename Run::execution_space space;
    const Vector owned("Komvos::measure::owned", patterns_.front().numOwned, 1);
    const Vector ghosts("Komvos::measure::ghosts", patterns_.front().numTarget, 1);
    std::vector<Run> runs;
    for (const std::size_t i : contenders) {
      runs.emplace_back(userComm_, candidates_[i].plan, 1, candidates_[i].report.onNode);
    }
    const int warmUp = 2;
    std::vector<std::vector<double>> seconds(contenders.size(), std::vector<double>(warmUp + repeats));
    for (int repeat = 0; repeat < warmUp + repeats; ++repeat) {
      for (std::size_t k = 0; k < runs.size(); ++k) {
        const std::size_t turn = (k + repeat) % runs.size();
        mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
        const double start = MPI_Wtime();
        for (int again = 0; again < exchangesPerRepeat; ++again) {
          runs[turn].begin(space, owned, ghosts);
          runs[turn].end(space, ghosts);
        }
        Impl::fence(space, "Komvos::measure: unpacked before the clock is read");
        seconds[turn][repeat] = (MPI_Wtime() - start) / exchangesPerRepeat;
      }
    }
    for (std::size_t k = 0; k < contenders.size(); ++k) {
      std::vector<double>& mine = seconds[k];
      mpiCheck(MPI_Allreduce(MPI_IN_PLACE, mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, comm_),
               "MPI_Allreduce");
      Candidate& candidate = candidates_[contenders[k]];
      candidate.seconds.assign(mine.begin() + warmUp, mine.end());
      candidate.report.measuredSeconds = median(candidate.seconds);
    }
  }

  static constexpr double clearGain = 0.9;       // of the baseline's time: above that, noise may have decided
  static constexpr double hopelessFactor = 4.0;  // the max-rate model is rarely off by more
  static constexpr int exchangesPerRepeat = 2;

  double start_ = MPI_Wtime();  // before the wishes are resolved, which may ask MPI and hwloc
  MPI_Comm userComm_;
  std::shared_ptr<Impl::PrivateComm> shared_;
  MPI_Comm comm_;  // of shared_
  const ExchangeOptions& options_;
  Wishes wishes_;
  MpiSetupTransport transport_;
  std::vector<Pattern> patterns_;
  std::vector<Candidate> candidates_;
};

}  // namespace

PlannedHalo planHalo(MPI_Comm comm, Pattern pattern, const ExchangeOptions& options) {
  return Planner(comm, std::move(pattern), options).plan();
}

namespace {

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 1e6 * seconds);
  return seconds > 0 ? text : "-";
}

}  // namespace

std::string describe(const HaloReport& report) {
  std::string text =
      "  route               on node         messages between nodes   bytes between nodes   modelled    "
      "measured\n                                      most     total           most     total         us"
      "          us\n";
  for (const HaloCandidate& one : report.candidates) {
    char line[256];
    std::snprintf(line, sizeof line, "%c %-18s  %-13s %6ld  %8ld     %10ld  %8ld  %9s   %9s  %s\n",
                  one.rejectionReason.empty() ? '*' : ' ', toString(one.route).c_str(), toString(one.onNode).c_str(),
                  one.traffic.max.interNodeMessages, one.traffic.total.interNodeMessages,
                  8 * one.traffic.max.interNodeValues, 8 * one.traffic.total.interNodeValues,
                  microseconds(one.modelledSeconds).c_str(), microseconds(one.measuredSeconds).c_str(),
                  one.rejectionReason.c_str());
    text += line;
  }
  return text;
}

}  // namespace Komvos
