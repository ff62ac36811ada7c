#pragma once

#include <Teuchos_Assert.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "Komvos_BiCGStabIteration.hpp"
#include "Komvos_BiCGStabKernels.hpp"
#include "Komvos_DetectedTopology.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_TpetraShim.hpp"

// How this works. iterate() asks the status test, which looks at the norms of the recursive residuals and prints them,
// then does a step. As soon as a column seems to have converged, check() computes its true residual; if that meets the
// tolerance too, the column is frozen, else it goes on from the true residual. A column that breaks down asks for a
// restart. prepareStep() does what steps need after either, for the columns that need it; so a solve that ends with a
// check pays for one product. A column that restarts, more digits or more iterations do not help is given up: it is
// left as it is, and the others go on.
namespace Komvos::Impl {

namespace {

/// Restarts of a column in a row without the residual falling by a tenth, each soon after the one before; or true
/// residuals that are not smaller by a tenth than the smallest of them: then nothing will help it.
const int maxVain = 5, soon = 10;
const double enoughProgress = 0.9;

/// Where a true residual is so many times the smallest that rounding allows, its tolerance will not be met if it is
/// below that: BiCGStab seldom comes closer.
const double nearRounding = 10;
/// A residual by the recurrence that is smaller than the true one by such a factor consists of rounding errors.
const double farFromTruth = 10;

}  // namespace

template <class S, class L, class G, class N>
BiCGStabIteration<S, L, G, N>::BiCGStabIteration(const Teuchos::RCP<problem_type>& problem,
                                                 const Teuchos::RCP<Belos::OutputManager<S>>& printer,
                                                 const Teuchos::RCP<status_test_type>& test,
                                                 const Teuchos::RCP<residual_test_type>& residualTest,
                                                 const BiCGStabOptions& options,
                                                 std::shared_ptr<const replicated_type> replicated)
    : options_(options),
      problem_(problem),
      printer_(printer),
      test_(test),
      residualTest_(residualTest),
      replicated_(std::move(replicated)) {
  const auto& A = *problem_->getOperator();
  const bool square = A.getDomainMap()->isSameAs(*A.getRangeMap());
  TEUCHOS_TEST_FOR_EXCEPTION(!square, std::invalid_argument,
                             "Komvos::PipelinedBiCGStab: the operator's domain map ("
                                 << A.getDomainMap()->getGlobalNumElements() << " elements) and range map ("
                                 << A.getRangeMap()->getGlobalNumElements() << ") are not the same");
  localRows_ = static_cast<int>(localLength(isReplicated() ? *replicated_->wholeMap() : *A.getDomainMap()));
  if (isReplicated()) {
    wholeOperator_ = dynamic_cast<const WholeVectorOperator<S, L, G, N>*>(&A);
  }
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::initialize() {
  const auto solution = problem_->getLHS();
  numColumns_ = static_cast<int>(solution->getNumVectors());
  columns_.assign(numColumns_, Column::active);
  const std::string error = errorIn([&] {
    if (isReplicated()) {
      x_ = newVectors();
      wholeB_ = newVectors();
      own_ = newDistributedVectors(numColumns_);
      partialDots_ = PartialDots<impl_scalar_type, typename N::device_type>(localRows_);
    } else {  // kernels want columns at equal distances
      x_ = solution->isConstantStride() ? solution : Teuchos::rcp(new multivector_type(*solution, Teuchos::Copy));
    }
    if (problem_->isLeftPrec() && problem_->isRightPrec()) {
      between_ = newDistributedVectors(numColumns_);
    }
  });
  allocate(error);
  if (isReplicated()) {
    replicated_->gather(*solution, *x_, {});
    replicated_->gather(*problem_->getRHS(), *wholeB_, {});
  }
  restartIsAsked_.assign(numColumns_, true);
  failures_.assign(numColumns_, BiCGStabStop::none);
  for (auto* counts : {&vainRestarts_, &quickRestarts_, &restartedAt_, &vainResiduals_, &leastNormAt_}) {
    counts->assign(numColumns_, 0);
  }
  norms_.assign(numColumns_, 0);
  normWhereLost_.assign(numColumns_, 0);
  toleratedNorms_.assign(numColumns_, 0);
  stop_ = BiCGStabStop::none;
  counts_ = BiCGStabCounts{};
  numIters_ = 0;
  residualIsTrue_.assign(numColumns_, false);
  isReady_.assign(numColumns_, false);
  takeTrueResiduals(active());
  normAtRestart_ = leastTrueNorm_ = leastNorm_ = norms_;
  initialized_ = true;
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::iterate() {
  if (!initialized_) {
    initialize();
  }
  while (stop_ == BiCGStabStop::none) {
    if (!normsAreNumbers()) {
      giveUp(BiCGStabStop::notANumber, "a residual is not a number");
      return;
    }
    if (x_.get() != problem_->getLHS().get()) {
      finish();  // a status test may look at the solution
    }
    if (!askResidualTest()) {
      giveUp(BiCGStabStop::notANumber, "the initial residual, or what residuals are divided by, is not a number");
      return;
    }
    learnToleratedNorms();
    noticeStagnation();
    if (stop_ == BiCGStabStop::notANumber || (asksForMore_ ? stopsByStricterTest() : stopsByTolerance())) {
      return;
    }
    prepareStep();
    if (stop_ != BiCGStabStop::none) {
      return;
    }
    residualIsTrue_.assign(numColumns_, false);
    workOn(active());
    step();
    ++numIters_;
  }
}

/// The beginning, too, is a restart of all columns.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::prepareStep() {
  bool begins = numIters_ == 0;
  while (true) {
    std::vector<bool> unready = active();
    for (int j = 0; j < numColumns_; ++j) {
      unready[j] = unready[j] && (!isReady_[j] || restartIsAsked_[j]);
    }
    if (std::find(unready.begin(), unready.end(), true) == unready.end()) {
      return;
    }
    if (restartsAskedFor() && !begins) {
      takeTrueResiduals(restartIsAsked_);
      requireProgress();
      if (stop_ != BiCGStabStop::none) {
        if (options_.checkTrueResidual) {
          testAgain();
        }
        return;
      }
      counts_.restarts += restartsAskedFor() ? 1 : 0;
    }
    begins = false;
    for (int j = 0; j < numColumns_; ++j) {
      unready[j] = unready[j] && isActive(j);
      isReady_[j] = isReady_[j] || unready[j];
    }
    workOn(unready);
    continueFromResiduals();
  }
}

template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::takeTrueResiduals(const std::vector<bool>& columns) {
  std::vector<bool> needed = active();
  for (int j = 0; j < numColumns_; ++j) {
    needed[j] = needed[j] && columns[j] && !residualIsTrue_[j];
  }
  if (std::find(needed.begin(), needed.end(), true) == needed.end()) {
    return false;
  }
  workOn(needed);
  const std::vector<double> before = norms_;
  computeResiduals();
  for (int j = 0; j < numColumns_; ++j) {
    if (needed[j] && numIters_ > 0 && norms_[j] > farFromTruth * before[j]) {
      normWhereLost_[j] = norms_[j];
    }
    residualIsTrue_[j] = residualIsTrue_[j] || needed[j];
    isReady_[j] = isReady_[j] && !needed[j];
  }
  return true;
}

template <class S, class L, class G, class N>
std::vector<bool> BiCGStabIteration<S, L, G, N>::active() const {
  std::vector<bool> columns(numColumns_);
  for (int j = 0; j < numColumns_; ++j) {
    columns[j] = isActive(j);
  }
  return columns;
}

/// Where the residual of a column is small enough, its true residual is looked at, before the tests are asked; and
/// those of all, where the user's test has passed instead.
template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::stopsByTolerance() {
  const bool meets = anyNewlyMeets(), checks = meets && options_.checkTrueResidual;
  if (meets && !checks) {
    leaveConvergedAlone();
  }
  if (checks) {
    std::vector<bool> claims(numColumns_);
    for (int j = 0; j < numColumns_; ++j) {
      claims[j] = isActive(j) && meetsTolerance(j);
    }
    check(claims, Teuchos::null);
    if (stop_ == BiCGStabStop::notANumber) {
      return true;
    }
  }
  const bool ended = debugTestPasses();
  bool stops = test_->checkStatus(this) == Belos::Passed || ended || stop_ != BiCGStabStop::none;
  disproved_ = false;
  if (!combinedTest_.is_null() && combinedTest_->getStatus() == Belos::Passed && options_.checkTrueResidual &&
      residualTest_->getStatus() != Belos::Passed) {
    check(active(), combinedTest_);
    stops = ended || stop_ != BiCGStabStop::none || numIters_ >= options_.maxIterations || !disproved_;
  } else if (stops && !checks) {
    reportTrueResidual();
  }
  return stops;
}

/// Where a test of the user may ask for more, the tests are asked first, once; true residuals are looked at where all
/// have passed.
template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::stopsByStricterTest() {
  const bool ended = debugTestPasses();
  const bool passed = test_->checkStatus(this) == Belos::Passed;
  const bool converged = combinedTest_->getStatus() == Belos::Passed;
  disproved_ = false;
  const bool checks = converged && options_.checkTrueResidual;
  if (checks) {
    check(active(), combinedTest_);
  }
  const bool stops =
      ended || stop_ != BiCGStabStop::none || numIters_ >= options_.maxIterations || (converged ? !disproved_ : passed);
  if (stops && !checks && stop_ != BiCGStabStop::notANumber) {
    reportTrueResidual();
  }
  return stops;
}

template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::debugTestPasses() {
  return !debugTest_.is_null() && debugTest_->checkStatus(this) == Belos::Passed;
}

/// Asks Belos' tests of residuals again, which remember that they have passed, also in combinations. Others are asked
/// once an iteration: what they said last counts.
template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::agreesOnTrueResidual(const Teuchos::RCP<status_test_type>& test) {
  using ResidualTest = Belos::StatusTestResNorm<S, multivector_type, operator_type>;
  using Combination = Belos::StatusTestCombo<S, multivector_type, operator_type>;
  if (const auto combination = Teuchos::rcp_dynamic_cast<Combination>(test); !combination.is_null()) {
    const bool any = combination->getComboType() == Combination::OR;
    for (const auto& part : combination->getStatusTests()) {
      if (agreesOnTrueResidual(part) == any) {
        return any;
      }
    }
    return !any;
  }
  if (Teuchos::rcp_dynamic_cast<ResidualTest>(test).is_null()) {
    return test->getStatus() == Belos::Passed;
  }
  test->reset();
  return test->checkStatus(this) == Belos::Passed;
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::finish() {
  const auto solution = problem_->getLHS();
  if (initialized_ && x_.get() != solution.get()) {
    Tpetra::deep_copy(*solution, *distributed(*x_));
  }
}

template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::meetsTolerance(int j) const {
  const auto* values = residualTest_->getTestValue();
  return (*values)[j] <= residualTest_->getTolerance();
}

template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::normsAreNumbers() const {
  return std::all_of(norms_.begin(), norms_.end(), [](double norm) { return std::isfinite(norm); });
}

/// Asks the test of the tolerance alone. \return whether what it divides norms by is a number, on all ranks: it throws
/// if that is NaN, and its value is zero if that is infinite, as where a sum of squares overflows
template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::askResidualTest() {
  try {
    if (asksForMore_ && residualTest_->getStatus() == Belos::Passed) {
      residualTest_->reset();  // or it would keep the norms that it passed with
    }
    residualTest_->checkStatus(this);
  } catch (const Belos::StatusTestError&) {
    return false;
  }
  const auto& values = *residualTest_->getTestValue();
  const double largerThanQuotientsLost = std::sqrt(static_cast<double>(std::numeric_limits<magnitude_type>::min()));
  for (int j = 0; j < numColumns_; ++j) {
    if (values[j] == 0 && norms_[j] > largerThanQuotientsLost) {
      return false;
    }
  }
  return true;
}

/// The status test keeps its scaling to itself, but its value is the norm divided by it.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::learnToleratedNorms() {
  const auto& values = *residualTest_->getTestValue();
  for (int j = 0; j < numColumns_; ++j) {
    if (toleratedNorms_[j] == 0 && values[j] > 0) {
      toleratedNorms_[j] = norms_[j] * static_cast<double>(residualTest_->getTolerance() / values[j]);
    }
  }
}

/// Gives up columns whose residual has come as far down as rounding allows, or has not fallen for a long time: for a
/// window of iterations, and for as many as it took to come so far. So at most half of the iterations are in vain, or
/// those of the window.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::noticeStagnation() {
  std::vector<bool> standsStill(numColumns_, false);
  for (int j = 0; j < numColumns_; ++j) {
    if (!isActive(j) || norms_[j] <= toleratedNorms_[j]) {
      continue;
    }
    const double attainable = attainableNorm(j);
    if (residualIsTrue_[j] && numIters_ > 0 && norms_[j] <= nearRounding * attainable &&
        toleratedNorms_[j] < attainable) {
      countVainResidual(j);
      continue;
    }
    if (norms_[j] < enoughProgress * leastNorm_[j] || (residualIsTrue_[j] && norms_[j] > leastNorm_[j])) {
      leastNormAt_[j] = norms_[j] < leastNorm_[j] ? numIters_ : leastNormAt_[j];
      leastNorm_[j] = norms_[j];  // of a true residual, in place of what the recurrence has promised
    }
    standsStill[j] = options_.stagnationWindow > 0 &&
                     numIters_ - leastNormAt_[j] > std::max(options_.stagnationWindow, leastNormAt_[j]);
  }
  if (std::find(standsStill.begin(), standsStill.end(), true) == standsStill.end()) {
    return;
  }
  takeTrueResiduals(standsStill);
  if (!normsAreNumbers()) {
    giveUp(BiCGStabStop::notANumber, "a residual is not a number");
    return;
  }
  for (int j = 0; j < numColumns_; ++j) {
    if (standsStill[j]) {
      std::ostringstream text;
      text << "no progress in " << numIters_ - leastNormAt_[j] << " iterations; the smallest residual norm was "
           << leastNorm_[j] << ", the true one is " << norms_[j];
      giveUpColumn(j, BiCGStabStop::stagnation, text.str());
    }
  }
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::countVainResidual(int j) {
  vainResiduals_[j] = norms_[j] < enoughProgress * leastTrueNorm_[j] ? 0 : vainResiduals_[j] + 1;
  leastTrueNorm_[j] = std::min(leastTrueNorm_[j], norms_[j]);
  if (vainResiduals_[j] >= maxVain) {
    std::ostringstream text;
    text << "the true residual stays at " << norms_[j] << "; rounding errors allow no more";
    giveUpColumn(j, BiCGStabStop::rounding, text.str());
  }
}

template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::anyNewlyMeets() const {
  for (int j = 0; j < numColumns_; ++j) {
    if (isActive(j) && meetsTolerance(j)) {
      return true;
    }
  }
  return false;
}

/// At the end without convergence, so that what is reported as achieved is true.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::reportTrueResidual() {
  if (options_.checkTrueResidual && takeTrueResiduals(active())) {
    testAgain();
  }
}

/// With the norms as they are now: the test keeps those that it has passed with.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::testAgain() {
  residualTest_->reset();
  if (!askResidualTest()) {
    giveUp(BiCGStabStop::notANumber, "a residual is not a number");
  }
}

/// Replaces recursive residuals by true ones, where columns claim that they are small enough, and freezes the columns
/// that have converged while others have not.
/// \param combined the user's test, with that of the tolerance, which has passed; or null
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::check(const std::vector<bool>& claims,
                                          const Teuchos::RCP<status_test_type>& combined) {
  ++counts_.checks;
  takeTrueResiduals(claims);
  residualTest_->reset();  // or it would not look at these columns again, once all have passed
  if (!normsAreNumbers() || !askResidualTest()) {
    giveUp(BiCGStabStop::notANumber, "a residual is not a number");
    return;
  }
  const bool passed = !combined.is_null() && agreesOnTrueResidual(combined);
  disproved_ = !combined.is_null() && !passed;
  for (int j = 0; j < numColumns_; ++j) {
    if (claims[j] && !passed && (asksForMore_ || !meetsTolerance(j))) {
      countVainResidual(j);
    }
  }
  leaveConvergedAlone();
}

/// Freezes the columns that have converged, unless all have: then the test ends the solve; or a test may ask for more.
/// Where a column was given up, the test does not pass: the solve ends when no other goes on.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::leaveConvergedAlone() {
  if (asksForMore_) {
    return;
  }
  bool freezes = firstFailure() != BiCGStabStop::none;
  for (int j = 0; j < numColumns_; ++j) {
    freezes = freezes || (isActive(j) && !meetsTolerance(j));
  }
  for (int j = 0; j < numColumns_ && freezes; ++j) {
    if (isActive(j) && meetsTolerance(j)) {
      columns_[j] = Column::frozen;
      restartIsAsked_[j] = false;
    }
  }
  if (!anyActive()) {
    stop_ = firstFailure();
  }
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::askForRestart(int column, const std::string& why) {
  if (restartIsAsked_[column]) {
    return;
  }
  printer_->stream(Belos::Warnings) << "Komvos::PipelinedBiCGStab: iteration " << numIters_ + 1 << ", column " << column
                                    << ": " << why << "; starts again with a new shadow residual" << std::endl;
  restartIsAsked_[column] = true;
}

template <class S, class L, class G, class N>
std::vector<bool> BiCGStabIteration<S, L, G, N>::takeRestarts() {
  std::vector<bool> taken(numColumns_, false);
  taken.swap(restartIsAsked_);
  return taken;
}

template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::restartsAskedFor() const {
  return std::find(restartIsAsked_.begin(), restartIsAsked_.end(), true) != restartIsAsked_.end();
}

/// Of each column that asks for a restart, since its last one, or this one is in vain.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::requireProgress() {
  for (int j = 0; j < numColumns_; ++j) {
    if (!restartIsAsked_[j]) {
      continue;
    }
    const bool vain = !(norms_[j] < enoughProgress * normAtRestart_[j]);
    vainRestarts_[j] = vain ? vainRestarts_[j] + 1 : 0;
    quickRestarts_[j] = vain && numIters_ - restartedAt_[j] <= soon ? quickRestarts_[j] + 1 : 0;
    normAtRestart_[j] = norms_[j];
    restartedAt_[j] = numIters_;
    if (quickRestarts_[j] >= maxVain) {
      std::ostringstream text;
      text << maxVain << " restarts after breakdowns have not made the residual, " << norms_[j] << ", smaller";
      giveUpColumn(j, BiCGStabStop::breakdown, text.str());
    }
  }
}

template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::anyActive() const {
  return std::find(columns_.begin(), columns_.end(), Column::active) != columns_.end();
}

template <class S, class L, class G, class N>
BiCGStabStop BiCGStabIteration<S, L, G, N>::firstFailure() const {
  const auto failed = std::find_if(failures_.begin(), failures_.end(),
                                   [](BiCGStabStop failure) { return failure != BiCGStabStop::none; });
  return failed == failures_.end() ? BiCGStabStop::none : *failed;
}

template <class S, class L, class G, class N>
bool BiCGStabIteration<S, L, G, N>::hasLostAccuracy() const {
  return std::find(failures_.begin(), failures_.end(), BiCGStabStop::rounding) != failures_.end();
}

/// Its residual has just been computed anew. If it was found far above that of the recurrence, now or before, and has
/// not become far smaller since, it is because of rounding that nothing comes of going on. Where a test may ask for
/// more of all columns, nothing is left to do.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::giveUpColumn(int column, BiCGStabStop why, std::string text) {
  const bool isLost = normWhereLost_[column] > 0 && farFromTruth * norms_[column] > normWhereLost_[column];
  if (isLost && why != BiCGStabStop::rounding) {
    why = BiCGStabStop::rounding;
    text += "; rounding errors allow no more";
  }
  failures_[column] = why;
  columns_[column] = Column::frozen;
  restartIsAsked_[column] = false;
  if (asksForMore_ || !anyActive()) {
    giveUp(firstFailure(), text);
    return;
  }
  printer_->stream(Belos::Warnings) << "Komvos::PipelinedBiCGStab: gives up column " << column << " after " << numIters_
                                    << " iterations: " << text << std::endl;
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::giveUp(BiCGStabStop stop, const std::string& text) {
  stop_ = stop;
  printer_->stream(Belos::Warnings) << "Komvos::PipelinedBiCGStab: gives up after " << numIters_
                                    << " iterations: " << text << std::endl;
}

template <class S, class L, class G, class N>
auto BiCGStabIteration<S, L, G, N>::getNativeResiduals(std::vector<magnitude_type>* norms) const
    -> Teuchos::RCP<const multivector_type> {
  if (norms != nullptr) {
    norms->assign(norms_.begin(), norms_.end());
  }
  return Teuchos::null;
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::setBlockSize(int size) {
  TEUCHOS_TEST_FOR_EXCEPTION(
      size != numColumns_, std::invalid_argument,
      "Komvos::PipelinedBiCGStab: solves all " << numColumns_ << " columns at once, not " << size);
}

template <class S, class L, class G, class N>
auto BiCGStabIteration<S, L, G, N>::newDistributedVectors(int columns) const -> Teuchos::RCP<multivector_type> {
  return Teuchos::rcp(new multivector_type(problem_->getOperator()->getDomainMap(), columns));
}

template <class S, class L, class G, class N>
auto BiCGStabIteration<S, L, G, N>::newVectors(int columns) const -> Teuchos::RCP<multivector_type> {
  return isReplicated() ? Teuchos::rcp(new multivector_type(replicated_->wholeMap(), columns))
                        : newDistributedVectors(columns);
}

template <class S, class L, class G, class N>
auto BiCGStabIteration<S, L, G, N>::distributed(const multivector_type& vectors) const
    -> Teuchos::RCP<const multivector_type> {
  return isReplicated() ? replicated_->own(vectors) : Teuchos::rcpFromRef(vectors);
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::applyOperator(const multivector_type& in, multivector_type& out,
                                                  const std::function<void()>& whileGathered) const {
  const auto apply = [this](const multivector_type& from, multivector_type& to) { problem_->applyOp(from, to); };
  if (!isReplicated()) {
    applyToColumns(in, out, apply);
    return;
  }
  const auto compute = [&] {
    if (wholeOperator_ != nullptr) {
      applyToColumns(in, *own_, [this](const multivector_type& from, multivector_type& to) {
        wholeOperator_->applyToWhole(from, to);
      });
    } else {
      applyToColumns(*distributed(in), *own_, apply);
    }
  };
  computeAndGather(compute, out, whileGathered);
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::applyOperatorToOne(const multivector_type& in, multivector_type& out) const {
  if (!isReplicated()) {
    problem_->applyOp(in, out);
    return;
  }
  const auto own = own_->getVectorNonConst(0);
  computeOrAbandon([&] {
    wholeOperator_ != nullptr ? wholeOperator_->applyToWhole(in, *own) : problem_->applyOp(*distributed(in), *own);
  });
  replicated_->gather(*own, out, {});
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::computeOrAbandon(const std::function<void()>& compute) const {
  try {
    compute();
  } catch (...) {
    replicated_->template abandon<S>();
    throw;
  }
}

/// Columns that do not stand side by side go in several gathers: one would copy them, and might find no memory.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::computeAndGather(const std::function<void()>& compute, multivector_type& out,
                                                     const std::function<void()>& whileGathered) const {
  computeOrAbandon(compute);
  if (worksOnAll()) {
    replicated_->gather(*own_, out, whileGathered);
    return;
  }
  bool isFirst = true;
  for (int j = 0; j < numColumns_; ++j) {
    const int begin = j;
    while (j < numColumns_ && worksOn(j)) {
      ++j;
    }
    if (j > begin) {
      const Teuchos::Range1D range(begin, j - 1);
      replicated_->gather(*own_->subView(range), *out.subViewNonConst(range),
                          isFirst ? whileGathered : std::function<void()>());
      isFirst = false;
    }
  }
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::precondition(const multivector_type& in, multivector_type& out) const {
  const auto apply = [this](const multivector_type& from, multivector_type& to) { preconditionDistributed(from, to); };
  if (!isReplicated()) {
    applyToColumns(in, out, apply);
    return;
  }
  computeAndGather([&] { applyToColumns(*distributed(in), *own_, apply); }, out, {});
}

template <class S, class L, class G, class N>
Teuchos::Array<std::size_t> BiCGStabIteration<S, L, G, N>::columnsOfWork() const {
  Teuchos::Array<std::size_t> columns;
  for (int j = 0; j < numColumns_; ++j) {
    if (worksOn(j)) {
      columns.push_back(static_cast<std::size_t>(j));
    }
  }
  return columns;
}

/// Preconditioners need not know vectors whose columns are scattered: these are copied.
template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::applyToColumns(
    const multivector_type& in, multivector_type& out,
    const std::function<void(const multivector_type&, multivector_type&)>& apply) const {
  if (worksOnAll()) {
    apply(in, out);
    return;
  }
  const Teuchos::Array<std::size_t> columns = columnsOfWork();
  if (columns.empty()) {
    return;
  }
  const auto from = in.subView(columns());
  const auto to = out.subViewNonConst(columns());
  if (to->isConstantStride()) {
    apply(*from, *to);
    return;
  }
  const Packed& copies = packed(in, out);
  const Teuchos::Range1D used(0, columns.size() - 1);
  const auto packedIn = copies.in->subViewNonConst(used), packedOut = copies.out->subViewNonConst(used);
  Tpetra::deep_copy(*packedIn, *from);
  apply(*packedIn, *packedOut);
  Tpetra::deep_copy(*to, *packedOut);
}

/// Few solves need it, and all ranks at the same time: so it is allocated then, on all ranks or on none.
template <class S, class L, class G, class N>
auto BiCGStabIteration<S, L, G, N>::packed(const multivector_type& in, const multivector_type& out) const -> Packed& {
  Packed& packed = packed_[isReplicated() && in.getMap() == replicated_->wholeMap() ? 1 : 0];
  if (packed.out.is_null()) {
    const std::string error = errorIn([&] {
      packed.in = Teuchos::rcp(new multivector_type(in.getMap(), numColumns_));
      packed.out = Teuchos::rcp(new multivector_type(out.getMap(), numColumns_));
    });
    throwOnAllIfAny(PrivateComm::of(Tpetra::Details::extractMpiCommFromTeuchos(*out.getMap()->getComm()))->get(),
                    error);
  }
  return packed;
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::preconditionDistributed(const multivector_type& in, multivector_type& out) const {
  if (problem_->isLeftPrec() && problem_->isRightPrec()) {
    const auto between = between_->subViewNonConst(Teuchos::Range1D(0, in.getNumVectors() - 1));
    problem_->applyLeftPrec(in, *between);
    problem_->applyRightPrec(*between, out);
  } else if (problem_->isLeftPrec()) {
    problem_->applyLeftPrec(in, out);
  } else {
    problem_->applyRightPrec(in, out);
  }
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::computeResidual(multivector_type& r) const {
  const S one = Teuchos::ScalarTraits<S>::one();
  const multivector_type& b = isReplicated() ? *wholeB_ : *problem_->getRHS();
  applyOperator(*x_, r);
  if (worksOnAll()) {
    r.update(one, b, -one);
    return;
  }
  for (const std::size_t j : columnsOfWork()) {
    r.getVectorNonConst(j)->update(one, *b.getVector(j), -one);
  }
}

template <class S, class L, class G, class N>
void BiCGStabIteration<S, L, G, N>::takeShadow(multivector_type& r, int j, multivector_type& shadow) const {
  Kokkos::deep_copy(column(shadow, j), column(r, j));
  if (vainRestarts_[j] > 0) {
    const double size = norms_[j] / std::sqrt(static_cast<double>(problem_->getRHS()->getGlobalLength()));
    addSigns(execution_space(), r.getMap()->getLocalMap(), column(shadow, j),
             impl_scalar_type(static_cast<magnitude_type>(size)), vainRestarts_[j]);
  }
}

template <class S, class L, class G, class N>
template <class Row>
std::array<typename Row::scalar, Row::dots> BiCGStabIteration<S, L, G, N>::run(const std::string& label,
                                                                               const Row& row) {
  const execution_space space;
  return isReplicated() ? runRowsInOrder(space, label, localRows_, row, partialDots_)
                        : runRows(space, label, localRows_, row);
}

template <class S, class L, class G, class N>
template <class Row, class RowOf>
void BiCGStabIteration<S, L, G, N>::dotColumns(const ColumnDots<Row>& dots, const std::string& label,
                                               const RowOf& rowOf) {
  for (int j = 0; j < numColumns_; ++j) {
    dots.set(j, worksOn(j) ? run(label, rowOf(j)) : std::array<typename Row::scalar, Row::dots>{});
  }
}

template <class S, class L, class G, class N>
auto BiCGStabIteration<S, L, G, N>::column(multivector_type& vectors, int j) -> vector_view {
  const auto view = vectors.getLocalViewDevice(Tpetra::Access::ReadWrite);
  return vector_view(view.data() + static_cast<std::size_t>(j) * view.stride(1), view.extent(0));
}

template <class S, class L, class G, class N>
auto BiCGStabIteration<S, L, G, N>::columnOfSide(int j) const -> vector_view {
  if (isReplicated()) {
    return column(*wholeB_, j);
  }
  const auto view = problem_->getRHS()->getVector(j)->getLocalViewDevice(Tpetra::Access::ReadOnly);
  return vector_view(const_cast<impl_scalar_type*>(view.data()), view.extent(0));
}

template <class S, class L, class G, class N>
auto BiCGStabIteration<S, L, G, N>::newSum(int capacity, const std::string& error) const
    -> std::unique_ptr<NonBlockingSum<magnitude_type>> {
  const auto& comm = *problem_->getOperator()->getDomainMap()->getComm();
  const auto own = PrivateComm::of(Tpetra::Details::extractMpiCommFromTeuchos(comm));
  if (isReplicated()) {
    throwOnAllIfAny(own->get(), error);
    return std::make_unique<NonBlockingSum<magnitude_type>>(PrivateComm::of(MPI_COMM_SELF), capacity, nullptr);
  }
  const auto topology = detectedTopology(*own);
  return std::make_unique<NonBlockingSum<magnitude_type>>(own, capacity,
                                                          options_.nodeAwareSums ? topology.get() : nullptr, error);
}

template <class S, class L, class G, class N>
double BiCGStabIteration<S, L, G, N>::magnitude(const impl_scalar_type& value) {
  if constexpr (std::is_floating_point_v<impl_scalar_type>) {
    return std::abs(static_cast<double>(value));
  } else {
    return std::hypot(static_cast<double>(value.real()), static_cast<double>(value.imag()));
  }
}

}  // namespace Komvos::Impl
