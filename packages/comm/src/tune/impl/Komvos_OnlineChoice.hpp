/// \file Komvos_OnlineChoice.hpp
/// Which variant of a halo the next exchange takes, where the exchanges of the user's own work are the trials.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "Komvos_HaloUse.hpp"

namespace Komvos::Impl {

/// What is known of a variant before it was ever used.
struct Forecast {
  std::array<double, numWidthClasses> seconds;  ///< of one exchange, by width class; in any unit, the same for all
  double planSeconds = 0;                       ///< what it would cost now to plan it; 0: it is planned
  bool inSeconds = false;                       ///< the unit is a second; of all, or of none
};

/// Whether a halo should begin with `other` instead of `usual`, of which nothing was used yet: where it promises much,
/// and pays for its plan within as many uses as any halo is believed to have. Never if the unit is not a second.
bool promisesMuch(const Forecast& other, const Forecast& usual, int widthClass);

/// How a challenger did against the variant that was in use.
struct Trial {
  enum class Outcome {
    faster,    ///< in use from now on
    slower,    ///< or not clearly faster
    hopeless,  ///< given up after the first samples
    brokenOff  ///< its uses were none to compare: of other numbers of columns, or not finished on all ranks
  };
  std::size_t variant;
  int columnsFrom;         ///< the least columns of its width class
  long firstUse, lastUse;  ///< of the challenger or its rival in this trial, counted from 1
  double seconds;          ///< median over its samples of the maximum over ranks; 0 if broken off
  double rivalSeconds;     ///< the same of the variant in use
  Outcome outcome;
};

/// How it was decided before, for vectors of a width class.
struct DecidedBefore {
  std::optional<std::size_t> incumbent = {};  ///< nothing if it was not
  std::vector<bool> lost = {};                ///< against it, by number of variant; may be empty
};

/// The same decisions on all ranks, without a word between them but one reduction at times.
///
/// Uses come in windows. In a window each use is one of a given variant, and some are timed. After the last one, the
/// times are to be reduced by maximum over the ranks, and the result is to be handed in some uses later, when it is
/// long there. All decisions rest on reduced numbers and on counts of uses, so all ranks make the same ones.
///
///     if (choice.resultDue()) choice.decide(result of the reduction);
///     use(choice.next());
///     choice.record(use);   // or abandon()
///     if (choice.windowFull()) start the reduction of choice.window();
class OnlineChoice {
 public:
  /// Uses between the end of a window and its result.
  static constexpr int lag = 2;
  using Known = std::array<DecidedBefore, numWidthClasses>;

  /// \param forecasts      of all variants \param start is in use first
  /// \param secondsBefore  what the user has waited for before the first use: set-up
  /// \param known          from before; who won then and is planned is in use once vectors of that width are seen
  OnlineChoice(std::vector<Forecast> forecasts, std::size_t start, double secondsBefore, Known known = {});

  /// For the next use.
  std::size_t next() const;
  /// In use but for trials: `start`, or one that was planned.
  std::size_t incumbent() const { return ofClass_[class_].incumbent; }
  /// Whether the next use is a trial of another variant, so that nothing else should be tried in it.
  bool inTrial() const { return stage_ != Stage::watching; }
  /// The other variant of a trial. It must be planned before the next use, or withdrawn.
  std::size_t challenger() const { return challenger_; }
  /// The challenger cannot be used, or is another one by another name. \pre inTrial(), and its trial has not begun
  void withdraw();
  /// Whether nothing is left to try with vectors of the present width, so that uses need not be timed.
  bool isSettled() const { return ofClass_[class_].settled; }
  /// Whether the time of the next use counts.
  bool isTimed() const { return position_ >= firstTimed_ && position_ < order_.size(); }
  /// Whether some width class uses it, or it takes part in a trial.
  bool isInUse(std::size_t variant) const;

  void record(const HaloUse& use);
  /// A use that this rank did not finish.
  void abandon();
  /// Time that planning the challenger took.
  void addPlanning(double seconds) { planning_ += seconds; }

  bool windowFull() const { return position_ == order_.size(); }
  /// Of this rank, for a reduction by maximum; of the same length on all.
  std::vector<double> window() const;
  bool resultDue() const { return position_ == order_.size() + lag; }
  /// Says what comes next. \param most the reduced window
  void decide(const std::vector<double>& most);

  const std::vector<Trial>& trials() const { return trials_; }
  /// The use from which on nothing was tried any more; 0 if that is not so yet.
  long settledAt() const { return settledAt_; }
  /// Seconds lost by planning, and by challengers that were slower; maximum over ranks.
  double cost() const { return planningOfAll_ + lost_; }
  long uses() const { return uses_; }
  /// The width class of the vectors seen last.
  int classInUse() const { return class_; }
  /// Whether another variant won earlier, with vectors of the present width, and nothing was decided here since: it is
  /// not planned, and was not tried.
  bool hasEarlierWinner() const;
  /// Variants that lost against the one in use.
  const std::vector<bool>& tried() const { return ofClass_[class_].tried; }

 private:
  enum class Stage { watching, firstSamples, comparing };

  /// What is decided and known for one width class.
  struct OfClass {
    std::size_t incumbent = 0;
    std::vector<bool> tried;
    std::vector<long> notBefore;            // use from which a variant may be tried again whose trial was broken off
    std::optional<std::size_t> wonEarlier;  // if it is not what the halo began with, until something wins here
    double seconds = 0, exposed = 0;  // of the incumbent: medians
    double least = 0, most = 0;       // range of its seconds
    bool settled = false;
    bool known = false;  // it was decided before
  };

  std::size_t firstWatch() const;
  void watch(std::size_t uses, std::size_t timed);
  void watchLonger();
  void challenge(std::size_t variant);
  void compare();
  void startWindow(std::vector<std::size_t> order, std::size_t firstTimed);
  bool isWhole(const std::vector<double>& most) const;
  void judgeFirstSamples();
  void judgeComparison();
  void endTrial(Trial::Outcome outcome);
  void breakOff();
  void knowIncumbent();
  void chooseChallenger();
  double forecastRatio(std::size_t variant) const;
  double expectedGain(std::size_t variant) const;
  bool isFarWorse(std::size_t variant) const;
  bool isAffordable(std::size_t variant, double gain) const;
  std::vector<double> samplesOf(std::size_t variant) const;

  std::vector<Forecast> forecasts_;
  OfClass ofClass_[numWidthClasses];
  int class_ = 0;

  Stage stage_ = Stage::watching;
  std::vector<std::size_t> order_;  // variants of the window
  std::size_t firstTimed_ = 0;      // position in the window
  std::size_t position_ = 0;
  std::size_t watchLength_ = 0;
  std::size_t challenger_ = 0;
  int repeats_ = 0;         // of a window that could not be judged
  double firstRatio_ = 1;   // of the challenger's first samples and the incumbent's least

  // Of this rank, in this window.
  std::vector<double> seconds_, exposed_;
  int leastClass_ = numWidthClasses, mostClass_ = -1;
  double elapsed_;       // in all uses that were timed, and before
  double planning_ = 0;  // of all challengers so far

  // Of all ranks.
  struct Timed {
    std::size_t variant;
    double seconds, exposed;
  };
  std::vector<Timed> timed_;  // of the trial, or of the last window
  double timedOfAll_ = 0, untimed_ = 0;  // what they have waited for; what is not timed is estimated
  double planningOfAll_ = 0, lost_ = 0;
  long uses_ = 0, trialBegan_ = 0, settledAt_ = 0;
  std::vector<Trial> trials_;
};

}  // namespace Komvos::Impl
