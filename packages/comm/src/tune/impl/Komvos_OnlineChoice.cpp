#include "Komvos_OnlineChoice.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "Komvos_Statistics.hpp"

// How this works. There are three stages, each with windows of its own:
//
//   watching      the incumbent only; its time, and what of it is spent in the exchange, say what there is to gain
//   firstSamples  a challenger: one use that is not timed, for it allocates, and two that are; then one of the
//                 incumbent. Who is far behind the incumbent's worst is given up, who is far ahead of its best has won.
//   comparing     four uses of one, four of the other; twice that if it is not what the first samples said, and up to
//                 three times if they are close. The first two uses after a change take longer, and only the
//                 incumbent may happen to follow itself: so of four samples the second shortest counts.
//
// Uses are not alike: in a V-cycle a matrix is used several times, and the use after the coarser levels waits for the
// slowest rank there. Challenger and incumbent in turn would meet different uses wherever their number is even. Four
// after each other meet the same ones if there are 1, 2 or 4 in a cycle. If there are 3 or 5, they meet most of them,
// so that the fastest of four is fair, and the sixth of twelve. A challenger that is not faster by both does not win:
// the machine may have become slower or faster between the uses of one and of the other.
//
// chooseChallenger() ends each trial: it takes the variant with the best forecast that can still win and that pays. It
// pays if planning costs at most a small share of all the time that the user has waited so far, or if what the forecast
// promises pays it back within fewer uses than there have been: who has used a halo often is likely to use it as often
// again. Where no variant pays yet, the incumbent is watched for a while, longer each time; where no forecast promises
// anything, for long from the beginning, since reductions cost something, too. Where none can win, the halo is settled:
// from then on only the width of vectors is watched.
//
// A halo may begin with a variant that promises much (promisesMuch). If it breaks its promise, so that its exchange
// takes far longer than the forecast for one that needs no plan, that one is tried at once.
//
// A trial is broken off where its uses cannot be compared, because vectors have other numbers of columns meanwhile, or
// a rank fails again and again. It may be repeated when there have been twice as many uses: so however long that goes
// on, trials of a bad variant take a share of all uses that becomes ever smaller.
//
// Forecasts are rough: none is believed to gain less than exploration says, and a variant whose forecast is somewhat
// worse than that of the incumbent is not ruled out, but waits longer. One whose forecast is far worse waits until its
// trial is a trifle even if the forecast is right; the halo counts as settled meanwhile.
namespace Komvos::Impl {

namespace {

constexpr double farAhead = 0.75, farBehind = 1.5;            // of the incumbent's time
constexpr double clearlyFaster = 0.88, clearlySlower = 1.04;  // between these, samples of more windows decide
constexpr double faster = 0.96;                               // in the end; less may be noise
constexpr std::size_t mostWindows = 3;                        // of a comparison
constexpr double tooLow = 2;                                  // all forecasts may be, by so much
constexpr double farWorseForecast = 1.5;                      // than the incumbent's
constexpr double exploration = 0.15;              // of the exchange: what an unknown variant is believed to gain
constexpr double worthwhile = 0.02;               // of the product: less is not worth a trial
constexpr double shareOfWaiting = 0.01;           // what trials may cost in any case
constexpr long fewestToVary = 32;                 // uses before a trial of what promises nothing
constexpr double samplesOfTrial = 6;              // of a challenger
constexpr double paysBackShare = 0.65;            // of what the uses to come are believed to gain
constexpr double paysBackShareUnpromised = 0.15;  // the same where the forecast promises less than exploration says
constexpr long fewestUses = 18;                   // that any halo is believed to have, or to have again
constexpr std::size_t longestWatch = 64, longestSettled = 1024;
constexpr std::size_t unpromisedWatch = 126;      // before the first trial where no forecast promises anything

const double abandoned = HUGE_VAL;

/// The greatest of the lower half.
double lowerMedian(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>((numbers.size() - 1) / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace

bool promisesMuch(const Forecast& other, const Forecast& usual, int widthClass) {
  const double gain = usual.seconds[widthClass] - other.seconds[widthClass];
  return other.inSeconds && other.seconds[widthClass] < farAhead * usual.seconds[widthClass] &&
         other.planSeconds <= paysBackShare * gain * static_cast<double>(fewestUses);
}

OnlineChoice::OnlineChoice(std::vector<Forecast> forecasts, std::size_t start, double secondsBefore, Known known)
    : forecasts_(std::move(forecasts)), elapsed_(secondsBefore) {
  for (int i = numWidthClasses - 1; i >= 0; --i) {
    OfClass& one = ofClass_[i];
    const std::size_t best = known[i].incumbent.value_or(start);
    const bool isPlanned = best == start || forecasts_[best].planSeconds == 0;
    one.incumbent = isPlanned ? best : start;
    one.wonEarlier = isPlanned ? std::nullopt : std::optional<std::size_t>(best);
    one.known = known[i].incumbent.has_value();
    one.tried = std::move(known[i].lost);
    one.tried.resize(forecasts_.size(), false);
    one.notBefore.assign(forecasts_.size(), 0);
    one.tried[best] = false;  // who won earlier, but is not planned, has to pay for its plan as others do
    one.tried[one.incumbent] = true;
    one.settled = std::all_of(one.tried.begin(), one.tried.end(), [](bool was) { return was; });
    class_ = one.incumbent == start ? i : class_;  // the narrowest that begins with it
  }
  const bool allAlike =
      std::all_of(std::begin(ofClass_), std::end(ofClass_), [&](const OfClass& one) { return one.incumbent == start; });
  // How wide vectors are has to be seen soon, unless that makes no difference.
  watchLength_ = !allAlike ? 3 : isSettled() ? longestWatch : firstWatch();
  watch(watchLength_, isSettled() ? 0 : 2);
}

std::size_t OnlineChoice::next() const {
  if (position_ < order_.size()) {
    return order_[position_];
  }
  // While the result travels: who promises much is believed.
  const auto& seconds = [this](std::size_t variant) { return forecasts_[variant].seconds[class_]; };
  return inTrial() && seconds(challenger_) < farAhead * seconds(incumbent()) ? challenger_ : incumbent();
}

void OnlineChoice::startWindow(std::vector<std::size_t> order, std::size_t firstTimed) {
  order_ = std::move(order);
  firstTimed_ = firstTimed;
  position_ = 0;
  seconds_.assign(order_.size() - firstTimed, abandoned);
  exposed_ = seconds_;
  leastClass_ = numWidthClasses;
  mostClass_ = -1;
}

/// Before the first trial. Who began because of a promise has to keep it.
std::size_t OnlineChoice::firstWatch() const {
  bool somePromise = false;
  for (std::size_t variant = 0; variant < forecasts_.size(); ++variant) {
    somePromise = somePromise || (!ofClass_[class_].tried[variant] &&
                                  (forecastRatio(variant) < 1 ||
                                   promisesMuch(forecasts_[incumbent()], forecasts_[variant], class_)));
  }
  return somePromise ? 3 : unpromisedWatch;
}

/// The last `timed` of `uses` are timed.
void OnlineChoice::watch(std::size_t uses, std::size_t timed) {
  stage_ = Stage::watching;
  timed_.clear();
  startWindow(std::vector<std::size_t>(uses, incumbent()), uses - timed);
}

void OnlineChoice::watchLonger() {
  const bool settled = isSettled();
  watchLength_ = std::min(2 * watchLength_, settled ? longestSettled : longestWatch);
  watch(watchLength_, settled ? 0 : std::min<std::size_t>(4, watchLength_));
}

void OnlineChoice::challenge(std::size_t variant) {
  stage_ = Stage::firstSamples;
  challenger_ = variant;
  repeats_ = 0;
  trialBegan_ = uses_ + 1;
  timed_.clear();
  startWindow({variant, variant, variant, incumbent()}, 1);
}

void OnlineChoice::compare() {
  stage_ = Stage::comparing;
  const bool challengerFirst = timed_.size() % 16 == 8;  // in every other window, as the machine's speed may drift
  const std::size_t a = challengerFirst ? challenger_ : incumbent(), b = challengerFirst ? incumbent() : challenger_;
  startWindow({a, a, a, a, b, b, b, b}, 0);
}

void OnlineChoice::withdraw() {
  ofClass_[class_].tried[challenger_] = true;
  chooseChallenger();
}

bool OnlineChoice::hasEarlierWinner() const {
  const OfClass& now = ofClass_[class_];
  return now.wonEarlier && !now.tried[*now.wonEarlier];
}

bool OnlineChoice::isInUse(std::size_t variant) const {
  const bool isIncumbent = std::any_of(std::begin(ofClass_), std::end(ofClass_),
                                       [&](const OfClass& one) { return one.incumbent == variant; });
  return isIncumbent || (inTrial() && variant == challenger_);
}

void OnlineChoice::record(const HaloUse& use) {
  if (position_ < order_.size()) {
    if (position_ >= firstTimed_) {
      seconds_[position_ - firstTimed_] = use.seconds;
      exposed_[position_ - firstTimed_] = use.exposed;
    }
    leastClass_ = std::min(leastClass_, widthClass(use.columns));
    mostClass_ = std::max(mostClass_, widthClass(use.columns));
  }
  elapsed_ += use.seconds;
  abandon();
}

void OnlineChoice::abandon() {
  ++position_;
  ++uses_;
}

std::vector<double> OnlineChoice::window() const {
  std::vector<double> numbers = seconds_;
  numbers.insert(numbers.end(), exposed_.begin(), exposed_.end());
  numbers.push_back(mostClass_);
  numbers.push_back(-leastClass_);
  numbers.push_back(elapsed_);
  numbers.push_back(planning_);
  return numbers;
}

/// Whether all ranks have finished all timed uses, with vectors of one width class.
bool OnlineChoice::isWhole(const std::vector<double>& most) const {
  const std::size_t timed = seconds_.size();
  const bool finished =
      std::none_of(most.begin(), most.begin() + 2 * timed, [](double one) { return one == abandoned; });
  return finished && most[2 * timed] == -most[2 * timed + 1];
}

void OnlineChoice::decide(const std::vector<double>& most) {
  const std::size_t timed = seconds_.size();
  const double* const rest = most.data() + 2 * timed;
  if (isSettled() && rest[2] == timedOfAll_) {  // uses of a settled halo are not timed
    untimed_ += ofClass_[class_].seconds * static_cast<double>(order_.size() + lag);
  }
  timedOfAll_ = rest[2];
  const double planned = rest[3] - planningOfAll_;
  planningOfAll_ = rest[3];
  if (stage_ == Stage::firstSamples && forecasts_[challenger_].planSeconds > 0 && planned > 0) {
    const double factor = planned / forecasts_[challenger_].planSeconds;  // what the others will cost, too
    for (Forecast& one : forecasts_) {
      one.planSeconds *= factor;
    }
    forecasts_[challenger_].planSeconds = 0;
  }
  if (!inTrial() && planned > 0) {  // of the route that it began with: what the others will cost, too
    for (Forecast& one : forecasts_) {
      one.planSeconds = one.planSeconds > 0 ? planned : 0;
    }
  }
  if (!isWhole(most)) {
    if (inTrial() && repeats_ == 2) {
      breakOff();
      watch(watchLength_, std::min<std::size_t>(2, watchLength_));
    } else if (repeats_ == 2) {  // vectors of several widths in turn, perhaps for ever
      watchLonger();
    } else {
      ++repeats_;
      startWindow(std::move(order_), firstTimed_);
    }
    return;
  }
  repeats_ = 0;
  const int seen = static_cast<int>(rest[0]);
  if (seen != class_) {
    if (inTrial()) {
      breakOff();
    }
    if (!ofClass_[seen].known && ofClass_[seen].seconds == 0) {  // what was best so far is the best guess
      ofClass_[seen].incumbent = incumbent();
      std::fill(ofClass_[seen].tried.begin(), ofClass_[seen].tried.end(), false);
      ofClass_[seen].tried[incumbent()] = true;
      ofClass_[seen].settled = forecasts_.size() == 1;
    }
    class_ = seen;
    watchLength_ = 3;
    watch(watchLength_, isSettled() ? 0 : 2);
    return;
  }
  for (std::size_t i = 0; i < timed; ++i) {
    timed_.push_back({order_[firstTimed_ + i], most[i], most[timed + i]});
  }
  if (stage_ == Stage::firstSamples) {
    judgeFirstSamples();
  } else if (stage_ == Stage::comparing) {
    judgeComparison();
  } else if (isSettled()) {
    chooseChallenger();
  } else {
    knowIncumbent();
    chooseChallenger();
  }
}

std::vector<double> OnlineChoice::samplesOf(std::size_t variant) const {
  std::vector<double> seconds;
  for (const Timed& one : timed_) {
    if (one.variant == variant) {
      seconds.push_back(one.seconds);
    }
  }
  return seconds;
}

void OnlineChoice::judgeFirstSamples() {
  const std::vector<double> samples = samplesOf(challenger_);
  const double atThatTime = samplesOf(incumbent()).front();
  const double rival = std::min(ofClass_[class_].least, atThatTime);
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  if (*most < farAhead * rival) {
    endTrial(Trial::Outcome::faster);
  } else if (*least > farBehind * std::max(ofClass_[class_].most, atThatTime)) {
    endTrial(Trial::Outcome::hopeless);
  } else {
    firstRatio_ = median(samples) / rival;
    timed_.clear();
    compare();
  }
}

void OnlineChoice::judgeComparison() {
  const std::vector<double> samples = samplesOf(challenger_), rivals = samplesOf(incumbent());
  const double ratio = lowerMedian(samples) / lowerMedian(rivals);
  const double ofBest =
      *std::min_element(samples.begin(), samples.end()) / *std::min_element(rivals.begin(), rivals.end());
  const bool isClose = std::max(ratio, ofBest) > clearlyFaster && std::min(ratio, ofBest) < clearlySlower;
  const bool isContradictory = timed_.size() == order_.size() && (ratio < 1) != (firstRatio_ < 1);
  if ((isClose || isContradictory) && timed_.size() < mostWindows * order_.size()) {
    compare();  // once more, and judge all of them
  } else {
    endTrial(std::max(ratio, ofBest) < faster ? Trial::Outcome::faster : Trial::Outcome::slower);
  }
}

void OnlineChoice::endTrial(Trial::Outcome outcome) {
  OfClass& now = ofClass_[class_];
  const std::vector<double> samples = samplesOf(challenger_), rivals = samplesOf(now.incumbent);
  const double seconds = median(samples), rival = median(rivals);
  trials_.push_back({challenger_, columnsOfClass(class_), trialBegan_, uses_, seconds, rival, outcome});
  now.tried[challenger_] = true;
  if (outcome == Trial::Outcome::faster) {
    now.incumbent = challenger_;
    now.wonEarlier.reset();
  } else {
    lost_ += std::max(0.0, seconds - rival) * static_cast<double>(samples.size() + 1);
  }
  if (outcome != Trial::Outcome::hopeless) {  // else it was seen once
    knowIncumbent();
  }
  chooseChallenger();
}

void OnlineChoice::breakOff() {
  trials_.push_back({challenger_, columnsOfClass(class_), trialBegan_, uses_, 0, 0, Trial::Outcome::brokenOff});
  ofClass_[class_].notBefore[challenger_] = 2 * uses_;
}

/// What its samples say.
void OnlineChoice::knowIncumbent() {
  OfClass& now = ofClass_[class_];
  const std::vector<double> seconds = samplesOf(now.incumbent);
  std::vector<double> exposed;
  for (const Timed& one : timed_) {
    if (one.variant == now.incumbent) {
      exposed.push_back(one.exposed);
    }
  }
  now.least = *std::min_element(seconds.begin(), seconds.end());
  now.most = *std::max_element(seconds.begin(), seconds.end());
  now.seconds = median(seconds);
  now.exposed = median(std::move(exposed));
}

/// Of one exchange, as a share of what the incumbent's takes: by its forecast, or by what it took if it began because
/// of its promise. What forecasts do not know, as who else sends, makes all of them too low.
double OnlineChoice::forecastRatio(std::size_t variant) const {
  const double ofVariant = forecasts_[variant].seconds[class_], ofIncumbent = forecasts_[incumbent()].seconds[class_];
  const bool nothingWasCompared = std::all_of(
      trials_.begin(), trials_.end(), [](const Trial& one) { return one.outcome == Trial::Outcome::brokenOff; });
  const bool isDoubted = nothingWasCompared && forecasts_[variant].planSeconds == 0 &&
                         promisesMuch(forecasts_[incumbent()], forecasts_[variant], class_);
  return ofVariant / (isDoubted ? std::max(ofIncumbent, ofClass_[class_].exposed / tooLow) : ofIncumbent);
}

/// Of one use. \return 0 for a variant that was tried, or where there is little to gain
double OnlineChoice::expectedGain(std::size_t variant) const {
  const OfClass& now = ofClass_[class_];
  if (now.tried[variant]) {
    return 0;
  }
  const double gain = now.exposed * std::max(exploration, 1 - forecastRatio(variant));
  return gain < worthwhile * now.least ? 0 : gain;  // of the least, for an interruption may have met one of two
}

bool OnlineChoice::isFarWorse(std::size_t variant) const { return forecastRatio(variant) > farWorseForecast; }

bool OnlineChoice::isAffordable(std::size_t variant, double gain) const {
  if (uses_ < ofClass_[class_].notBefore[variant]) {
    return false;
  }
  const double plan = forecasts_[variant].planSeconds;
  const bool promises = forecastRatio(variant) < 1;
  if (!promises && uses_ < fewestToVary) {
    return false;
  }
  const bool isGainForecast = forecastRatio(variant) < 1 - exploration;  // else it is what exploration says
  const double share = isGainForecast ? paysBackShare : paysBackShareUnpromised;
  if (!isFarWorse(variant) && plan <= share * gain * static_cast<double>(std::max(fewestUses, uses_))) {
    return true;
  }
  // Samples cost something, too: a challenger that does as much worse as it is believed to do better, or as forecast.
  const double loss = std::max(gain, ofClass_[class_].exposed * (forecastRatio(variant) - 1));
  return cost() + plan + samplesOfTrial * loss <= shareOfWaiting * (timedOfAll_ + untimed_);
}

void OnlineChoice::chooseChallenger() {
  double bestForecast = HUGE_VAL;
  std::size_t best = forecasts_.size();
  bool somePromising = false;
  for (std::size_t variant = 0; variant < forecasts_.size(); ++variant) {
    const double gain = expectedGain(variant);
    somePromising = somePromising || (gain > 0 && !isFarWorse(variant));
    const double forecast = forecasts_[variant].seconds[class_];
    if (gain > 0 && forecast < bestForecast && isAffordable(variant, gain)) {
      best = variant;
      bestForecast = forecast;
    }
  }
  if (best < forecasts_.size()) {
    ofClass_[class_].settled = false;
    challenge(best);
    return;
  }
  if (!somePromising && !isSettled()) {
    ofClass_[class_].settled = true;
    settledAt_ = uses_;
    watchLength_ = longestWatch / 2;
  }
  watchLonger();
}

}  // namespace Komvos::Impl
