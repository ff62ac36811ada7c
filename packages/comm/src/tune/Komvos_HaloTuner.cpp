#include "Komvos_HaloTuner.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_HaloReport.hpp"
#include "Komvos_HaloSurvey.hpp"
#include "Komvos_OnlineChoice.hpp"
#include "Komvos_PendingMaximum.hpp"
#include "Komvos_Precedent.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_RouteCandidates.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_VariantForecast.hpp"

// How this works. OnlineChoice says whose turn it is; here its numbers get a meaning. Variants are listed when tuning
// begins, with a forecast each (VariantForecast), and planned when they challenge for the first time. forward() takes
// what a reduction has found (PendingMaximum), asks OnlineChoice for the next variant, and plans it if need be;
// record() hands the time on and starts the next reduction.
//
// Exchanges belong to the owner of the halo: it makes one for a variant and scalar type when it needs it, and drops
// those that isInUse() no longer names. The pattern is kept, since any use may be the one that another route is planned
// in.
namespace Komvos::Impl {

struct HaloTuner::State {
  struct Variant {
    RouteChoice route;
    IntraNode intraNode;
    std::shared_ptr<const ExchangePlan> plan = nullptr;  // null: not planned yet
    bool isWithdrawn = false;                            // for all numbers of columns
  };

  std::shared_ptr<PrivateComm> comm;  // the user may free his own while this is tuned
  std::vector<Pattern> patterns;  // of this rank
  ResolvedOptions options;
  Precedent precedent;
  std::vector<Candidate> candidates;  // routes that are planned
  RouteChoice reverseRoute;
  PendingMaximum pending;
  std::vector<Variant> variants = {};
  std::size_t start = 0;
  std::optional<std::size_t> reverse = {};
  std::optional<OnlineChoice> choice = {};
  bool inUse = false;  // forward() was called, record() or abandon() not yet
  long generation = 0;

  HaloVariant variant(std::size_t number) const { return {number, variants[number].plan, variants[number].intraNode}; }
  std::size_t variantOf(const RouteChoice& route, IntraNode intraNode);
  const Candidate* findPlanned(const RouteChoice& route) const;
  const Candidate& planRoute(const RouteChoice& route);
  void addContenders(const HaloCounts& counts);
  void planChallenger();
  bool isThreeStepAgain(const Candidate& candidate) const;
  TuningDecision decisionOf(std::size_t number) const;
  void remember();
  void endUse();
};

HaloTuner::HaloTuner(MPI_Comm comm, Pattern pattern, const ResolvedOptions& options,
                     const std::vector<Candidate>& candidates, const TuningDecision& start, const RouteChoice& reverse,
                     const Precedent& precedent)
    : state_(new State{PrivateComm::of(comm),
                       {std::move(pattern)},
                       options,
                       precedent,
                       candidates,
                       reverse,
                       PendingMaximum(PrivateComm::of(comm))}) {
  state_->start = state_->variantOf(start.route, start.intraNode);
}

HaloTuner::~HaloTuner() = default;

/// Its number; a new one if it was not there.
std::size_t HaloTuner::State::variantOf(const RouteChoice& route, IntraNode intraNode) {
  const auto found = std::find_if(variants.begin(), variants.end(),
                                  [&](const Variant& one) { return one.route == route && one.intraNode == intraNode; });
  if (found != variants.end()) {
    return static_cast<std::size_t>(found - variants.begin());
  }
  const Candidate* const planned = findPlanned(route);
  variants.push_back({route, intraNode, planned != nullptr ? planned->plan : nullptr});
  return variants.size() - 1;
}

const Candidate* HaloTuner::State::findPlanned(const RouteChoice& route) const {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Candidate& one) { return one.report.route == route; });
  return found != candidates.end() ? &*found : nullptr;
}

/// \note Collective if it is not planned yet.
const Candidate& HaloTuner::State::planRoute(const RouteChoice& route) {
  const Candidate* const planned = findPlanned(route);
  if (planned != nullptr) {
    return *planned;
  }
  MpiSetupTransport transport(comm->get());
  candidates.push_back(planCandidate(*comm, transport, options, patterns, route));
  for (Variant& one : variants) {
    if (one.route == route) {
      one.plan = candidates.back().plan;
    }
  }
  return candidates.back();
}

/// What may be tried: each route by what carries values on the node best as a rule, and the standard one, or the only
/// one, by both.
void HaloTuner::State::addContenders(const HaloCounts& counts) {
  const bool routeIsOpen = options.route == RouteChoice::automatic;
  const RouteChoice first = routeIsOpen ? RouteChoice::standard : options.route;
  const bool asksForMessages = options.intraNode == IntraNode::messages;
  const IntraNode usual = asksForMessages || !canShareMemory(options) ? IntraNode::messages : IntraNode::sharedMemory;
  if (options.intraNode == IntraNode::automatic && usual == IntraNode::sharedMemory && counts.ranksOnNode > 0) {
    variantOf(first, IntraNode::messages);
    variantOf(first, IntraNode::sharedMemory);
  }
  if (routeIsOpen && counts.ranksOffNode > 0) {
    variantOf(RouteChoice::standard, counts.ranksOnNode > 0 ? usual : variants[start].intraNode);
    for (const RouteChoice& route : combiningRoutes(*options.topology.nodes, options.topology.sockets.get())) {
      variantOf(route, usual);
    }
  }
}

void HaloTuner::tuneOnline(const SurveyedHalo& halo, const MessageCosts& costs, double planning) {
  State& state = *state_;
  state.addContenders(halo.counts);
  const VariantForecast forecast(halo, *state.options.topology.nodes, costs);
  std::vector<Forecast> forecasts;
  OnlineChoice::Known known;
  for (int i = 0; i < numWidthClasses; ++i) {
    if (const auto& before = state.precedent.ofClass(i)) {
      known[i].incumbent = state.variantOf(before->chosen.route, before->chosen.intraNode);
    }
  }
  for (const State::Variant& one : state.variants) {
    forecasts.push_back(forecast.of(one.route, one.intraNode, one.plan != nullptr));
    for (int i = 0; i < numWidthClasses; ++i) {
      const auto& before = state.precedent.ofClass(i);
      const auto isThis = [&](const TuningDecision& other) {
        return other.route == one.route && other.intraNode == one.intraNode;
      };
      known[i].lost.push_back(before &&
                              (before->allLost || std::any_of(before->lost.begin(), before->lost.end(), isThis)));
    }
  }
  state.choice.emplace(std::move(forecasts), state.start, halo.seconds, std::move(known));
  state.choice->addPlanning(planning);
}

HaloVariant HaloTuner::forward() {
  State& state = *state_;
  if (!state.choice) {
    return state.variant(state.start);
  }
  if (!state.inUse && state.choice->resultDue()) {
    state.choice->decide(state.pending.finish());
    state.planChallenger();
    state.remember();
    ++state.generation;
  }
  state.inUse = true;
  return state.variant(state.choice->next());
}

/// A route that cannot be planned, or that comes to the same as three steps, is withdrawn. All ranks come to the same
/// result.
void HaloTuner::State::planChallenger() {
  while (choice->inTrial() && !variants[choice->challenger()].plan) {
    Variant& challenger = variants[choice->challenger()];
    if (!challenger.isWithdrawn) {
      try {
        const Candidate& planned = planRoute(challenger.route);
        choice->addPlanning(planned.report.buildSeconds);
        if (!isThreeStepAgain(planned)) {
          return;
        }
        candidates.pop_back();
        challenger.plan = nullptr;
      } catch (const BadInput&) {
      }
      challenger.isWithdrawn = true;
    }
    choice->withdraw();
  }
}

/// Split is the same as three steps where no pair of nodes has enough values to share.
bool HaloTuner::State::isThreeStepAgain(const Candidate& candidate) const {
  const Candidate* const threeStep = findPlanned(RouteChoice::threeStep);
  return candidate.report.route == RouteChoice::split && threeStep != nullptr &&
         candidate.report.traffic.total.interNodeMessages == threeStep->report.traffic.total.interNodeMessages;
}

void HaloTuner::record(const HaloUse& use) {
  if (state_->choice) {
    state_->choice->record(use);
    state_->endUse();
  }
}

void HaloTuner::abandon() {
  if (state_->choice) {
    state_->choice->abandon();
    state_->endUse();
  }
}

void HaloTuner::State::endUse() {
  inUse = false;
  if (choice->windowFull()) {
    pending.start(choice->window());
  }
}

bool HaloTuner::wantsTimes() const { return state_->choice && !state_->choice->isSettled(); }
bool HaloTuner::isSampling() const {
  return state_->choice && (state_->choice->isTimed() || state_->choice->inTrial());
}
long HaloTuner::generation() const { return state_->generation; }

HaloVariant HaloTuner::incumbent() const {
  return state_->variant(state_->choice ? state_->choice->incumbent() : state_->start);
}

HaloVariant HaloTuner::reverse() {
  State& state = *state_;
  if (!state.reverse) {
    state.planRoute(state.reverseRoute);
    // As the forward direction begins: where their routes are the same, they share an exchange.
    state.reverse = state.variantOf(state.reverseRoute, state.variants[state.start].intraNode);
  }
  return state.variant(*state.reverse);
}

bool HaloTuner::isInUse(std::size_t number) const {
  const State& state = *state_;
  const bool forward = state.choice ? state.choice->isInUse(number) : number == state.start;
  return forward || (state.reverse && number == *state.reverse);
}

TuningDecision HaloTuner::State::decisionOf(std::size_t number) const {
  return {variants[number].route, options.pairing, variants[number].intraNode};
}

/// What was decided earlier stands until it was tried here.
void HaloTuner::State::remember() {
  if (choice->hasEarlierWinner()) {
    return;
  }
  std::vector<TuningDecision> lost;
  for (std::size_t number = 0; number < choice->tried().size(); ++number) {
    if (choice->tried()[number] && number != choice->incumbent()) {
      lost.push_back(decisionOf(number));
    }
  }
  TuningDecision decision = decisionOf(choice->incumbent());
  decision.settled = choice->isSettled();
  precedent.keep(decision, choice->classInUse(), lost);
}

void HaloTuner::update(HaloReport& report) const {
  const State& state = *state_;
  report.reverseRoute = toString(state.reverseRoute);
  if (!state.choice) {
    return;
  }
  const OnlineChoice& choice = *state.choice;
  const State::Variant& now = state.variants[choice.incumbent()];
  report.route = now.plan->route;
  report.intraNode = now.intraNode;
  report.chosen = state.findPlanned(now.route)->report.traffic;
  report.online = true;
  report.uses = choice.uses();
  report.settledAt = choice.settledAt();
  report.tuningSeconds = choice.cost();
  report.trials.clear();
  for (const Trial& one : choice.trials()) {
    const State::Variant& tried = state.variants[one.variant];
    const char* const outcome = one.outcome == Trial::Outcome::faster     ? "faster"
                                : one.outcome == Trial::Outcome::slower   ? "not clearly faster"
                                : one.outcome == Trial::Outcome::hopeless ? "given up"
                                                                          : "broken off";
    report.trials.push_back({tried.route, tried.intraNode, one.columnsFrom, one.firstUse, one.lastUse, one.seconds,
                             one.rivalSeconds, outcome});
  }
  report.candidates.clear();
  for (const Candidate& one : state.candidates) {
    report.candidates.push_back(one.report);
    HaloCandidate& last = report.candidates.back();
    const bool isInUse = last.route == now.route;
    for (const HaloTrial& trial : report.trials) {
      last.intraNode = trial.route == last.route ? trial.intraNode : last.intraNode;
    }
    last.intraNode = isInUse ? now.intraNode : last.intraNode;
    last.rejectionReason = isInUse ? "" : "not in use";
  }
}

std::size_t HaloTuner::memoryBytes() const {
  std::size_t bytes = 0;
  for (const Pattern& one : state_->patterns) {
    bytes += one.sends.capacity() * sizeof(Pattern::Send) + one.receives.capacity() * sizeof(Pattern::Receive);
  }
  for (const Candidate& one : state_->candidates) {
    bytes += one.plan->memoryBytes();
  }
  return bytes;
}

}  // namespace Komvos::Impl
