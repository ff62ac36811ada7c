#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "Komvos_BiCGStabIteration_def.hpp"
#include "Komvos_BiCGStabKernels.hpp"
#include "Komvos_ColumnDots.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_MergedIteration.hpp"

namespace Komvos::Impl {

namespace {

/// A squared norm this many roundings of what it is the difference of has about two digits.
const double tooMuchCancellation = 200;

/// Labels of kernels, made once, so that a step allocates nothing for them.
const std::string mergedNormsLabel = "Komvos::BiCGStab: norms";
const std::string shadowLabel = "Komvos::BiCGStab: (r*, s)";
const std::string halfStepLabel = "Komvos::BiCGStab: q = r - alpha s";
const std::string stabilizerLabel = "Komvos::BiCGStab: (y, q)";
const std::string updateLabel = "Komvos::BiCGStab: x, r and p";

}  // namespace

template <class S, class L, class G, class N>
void MergedIteration<S, L, G, N>::allocate(const std::string& error) {
  const std::string failed = errorIn([&] {
    for (Vectors* vectors : {&r_, &shadow_, &p_, &s_, &y_}) {
      *vectors = this->newVectors();
    }
    pHat_ = this->isPreconditioned() ? Vectors(this->newVectors()) : p_;
    qHat_ = this->isPreconditioned() ? Vectors(this->newVectors()) : r_;
  });
  using Dots = MergedStabilizerDots<typename base_type::vector_view>;
  sum_ = this->newSum(ColumnDots<Dots>::numbers(this->numColumns()), error.empty() ? failed : error);
  for (auto* scalars : {&rho_, &alpha_, &beta_, &omega_}) {
    scalars->assign(this->numColumns(), impl_scalar_type(0));
  }
  shadowNorms_.assign(this->numColumns(), 0);
}

template <class S, class L, class G, class N>
void MergedIteration<S, L, G, N>::computeResiduals() {
  this->computeResidual(*r_);
  sumNorms();
}

template <class S, class L, class G, class N>
void MergedIteration<S, L, G, N>::continueFromResiduals() {
  const std::vector<bool> restart = this->takeRestarts();
  for (int j = 0; j < this->numColumns(); ++j) {
    if (restart[j]) {
      this->takeShadow(*r_, j, *shadow_);
      Kokkos::deep_copy(p_.column(j), r_.column(j));
    }
  }
  if (std::find(restart.begin(), restart.end(), true) != restart.end()) {
    sumNorms();
  }
  for (int j = 0; j < this->numColumns(); ++j) {
    if (this->worksOn(j) && !restart[j]) {
      restartIfShadowIsLost(j);
    }
  }
}

template <class S, class L, class G, class N>
void MergedIteration<S, L, G, N>::restartIfShadowIsLost(int j) {
  if (this->norms_[j] > 0 && this->magnitude(rho_[j]) <= 2 * this->roundoff() * shadowNorms_[j] * this->norms_[j]) {
    this->askForRestart(j, "(r*, r) is zero but for rounding");
  }
}

template <class S, class L, class G, class N>
void MergedIteration<S, L, G, N>::sumNorms() {
  using Row = MergedShadowDots<typename base_type::vector_view>;
  const ColumnDots<Row> dots(*sum_);
  this->dotColumns(dots, mergedNormsLabel, [&](int j) { return Row{shadow_.column(j), r_.column(j)}; });
  sum_->run(dots.numbers(this->numColumns()));
  for (int j = 0; j < this->numColumns(); ++j) {
    if (this->worksOn(j)) {
      rho_[j] = dots.get(j, Row::shadowS);
      this->norms_[j] = std::sqrt(this->magnitude(dots.get(j, Row::ss)));
      shadowNorms_[j] = std::sqrt(this->magnitude(dots.get(j, Row::shadowShadow)));
    }
  }
}

template <class S, class L, class G, class N>
void MergedIteration<S, L, G, N>::step() {
  if (this->isPreconditioned()) {
    this->precondition(*p_, *pHat_);
  }
  this->applyOperator(*pHat_, *s_);
  chooseAlpha();
  if (this->isPreconditioned()) {
    this->precondition(*r_, *qHat_);
  }
  this->applyOperator(*qHat_, *y_);
  chooseOmega();
}

/// alpha = rho / (r*, s), and q = r - alpha s in place of r
template <class S, class L, class G, class N>
void MergedIteration<S, L, G, N>::chooseAlpha() {
  using View = typename base_type::vector_view;
  using Row = MergedShadowDots<View>;
  const typename base_type::execution_space space;
  const ColumnDots<Row> dots(*sum_);
  this->dotColumns(dots, shadowLabel, [&](int j) { return Row{shadow_.column(j), s_.column(j)}; });
  sum_->run(dots.numbers(this->numColumns()));
  for (int j = 0; j < this->numColumns(); ++j) {
    const impl_scalar_type shadowS = dots.get(j, Row::shadowS);
    const double s = std::sqrt(this->magnitude(dots.get(j, Row::ss)));
    alpha_[j] = impl_scalar_type(0);
    if (!this->worksOn(j) || this->norms_[j] == 0) {
      continue;  // frozen, or solved: a residual of zero is no breakdown
    }
    if (this->magnitude(shadowS) <= 2 * this->roundoff() * s * shadowNorms_[j]) {
      this->askForRestart(j, "(r*, A p) is zero but for rounding");
      continue;
    }
    alpha_[j] = rho_[j] / shadowS;
    const View q = r_.column(j), from = s_.column(j);
    runUpdates(space, halfStepLabel, this->localRows(), MergedHalfStep<View>{q, from, alpha_[j]});
  }
}

template <class S, class L, class G, class N>
void MergedIteration<S, L, G, N>::chooseOmega() {
  using View = typename base_type::vector_view;
  using Row = MergedStabilizerDots<View>;
  const typename base_type::execution_space space;
  const ColumnDots<Row> dots(*sum_);
  this->dotColumns(dots, stabilizerLabel, [&](int j) { return Row{r_.column(j), y_.column(j), shadow_.column(j)}; });
  sum_->run(dots.numbers(this->numColumns()));
  bool cancels = false;
  for (int j = 0; j < this->numColumns(); ++j) {
    if (!this->worksOn(j) || alpha_[j] == impl_scalar_type(0)) {
      continue;  // frozen, or broken down: x and r stay
    }
    const impl_scalar_type qy = dots.get(j, Row::qy);
    const double q2 = this->magnitude(dots.get(j, Row::qq)), y2 = this->magnitude(dots.get(j, Row::yy));
    omega_[j] = y2 > 0 ? impl_scalar_type(qy / impl_scalar_type(y2)) : impl_scalar_type(0);
    const impl_scalar_type rho = dots.get(j, Row::shadowQ) - omega_[j] * dots.get(j, Row::shadowY);
    const double norm2 = q2 - (y2 > 0 ? std::pow(this->magnitude(qy), 2) / y2 : 0);
    this->norms_[j] = std::sqrt(norm2 >= 0 || std::isnan(norm2) ? norm2 : 0.0);
    cancels = cancels || norm2 < tooMuchCancellation * this->roundoff() * q2;
    if (q2 > 0 && this->magnitude(qy) <= 2 * this->roundoff() * std::sqrt(q2 * y2)) {
      this->askForRestart(j, "omega is zero but for rounding");
    }
    beta_[j] = omega_[j] == impl_scalar_type(0) ? impl_scalar_type(0) : (rho / rho_[j]) * (alpha_[j] / omega_[j]);
    rho_[j] = rho;
    runUpdates(space, updateLabel, this->localRows(),
               MergedUpdate<View>{this->column(this->x(), j), r_.column(j), p_.column(j), pHat_.column(j),
                                  qHat_.column(j), s_.column(j), y_.column(j), alpha_[j], beta_[j], omega_[j]});
  }
  if (cancels) {
    sumNorms();
  }
  for (int j = 0; j < this->numColumns(); ++j) {
    if (this->worksOn(j) && alpha_[j] != impl_scalar_type(0)) {
      restartIfShadowIsLost(j);
    }
  }
}

}  // namespace Komvos::Impl
