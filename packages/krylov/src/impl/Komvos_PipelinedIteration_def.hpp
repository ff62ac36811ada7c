#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>

#include "Komvos_BiCGStabIteration_def.hpp"
#include "Komvos_BiCGStabKernels.hpp"
#include "Komvos_ColumnDots.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_PipelinedIteration.hpp"

// How this works. A step is: kernel of the directions, reduction 1 behind z^ = M z and v = A z^, omega; kernel of the
// residuals, reduction 2 behind w^ = M w and t = A w^, then beta and alpha of the next step. Of replicated vectors, the
// kernels update only, and leave the dots for the time in which v and t are gathered; a "reduction" is then none.
// continueFromResiduals() computes w, s, z and v from their definitions and ends as a step does; it is the beginning,
// the end of a residual replacement or of a check that failed, and a restart, in which shadow residuals become r and
// beta becomes 0.
namespace Komvos::Impl {

namespace {

/// Labels of kernels, made once, so that a step allocates nothing for them.
const std::string normsLabel = "Komvos::PipelinedBiCGStab: norms";
const std::string directionsLabel = "Komvos::PipelinedBiCGStab: directions";
const std::string residualsLabel = "Komvos::PipelinedBiCGStab: residuals";

}  // namespace

template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::allocate(const std::string& error) {
  const std::string failed = errorIn([&] {
    for (Vectors* vectors : {&r_, &w_, &p_, &s_, &z_, &t_, &v_, &shadow_}) {
      *vectors = this->newVectors();
    }
    const bool hats = this->isPreconditioned();
    rHat_ = hats ? Vectors(this->newVectors()) : r_;
    wHat_ = hats ? Vectors(this->newVectors()) : w_;
    sHat_ = hats ? Vectors(this->newVectors()) : s_;
    zHat_ = hats ? Vectors(this->newVectors()) : z_;
    if (this->options_.replaceResiduals) {
      signs_ = this->newVectors(1);
      product_ = this->newVectors(1);
    }
  });
  using Dots = PipelinedResiduals<typename base_type::vector_view>;
  sum_ = this->newSum(ColumnDots<Dots>::numbers(this->numColumns()), error.empty() ? failed : error);
  scalars_.assign(this->numColumns(), Scalars());
  gaps_.assign(this->numColumns(), GapEstimate(this->roundoff(), 0, 0));
}

/// What GapEstimate needs: ||A||_F / sqrt(n), from the product with a random vector of signs, whose expected square it
/// is; and ||b||.
template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::estimateNorms() {
  addSigns(typename base_type::execution_space(), (*signs_).getMap()->getLocalMap(), signs_.column(0),
           impl_scalar_type(1), 0);
  this->applyOperatorToOne(*signs_, *product_);
  using Row = MergedShadowDots<typename base_type::vector_view>;
  const ColumnDots<Row> dots(*sum_);
  this->dotColumns(dots, "Komvos::PipelinedBiCGStab: norms of A and b", [&](int j) {
    return Row{product_.column(0), this->columnOfSide(j)};
  });
  sum_->run(dots.numbers(this->numColumns()));
  const double rows = static_cast<double>((*product_).getGlobalLength());
  for (int j = 0; j < this->numColumns(); ++j) {
    const double square = this->magnitude(dots.get(j, Row::shadowShadow));
    operatorNorm_ = rows > 0 ? std::sqrt(square / rows) : 0;
    gaps_[j] = GapEstimate(this->roundoff(), operatorNorm_, std::sqrt(this->magnitude(dots.get(j, Row::ss))));
  }
  signs_ = product_ = Vectors();
}

template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::preconditionAndApply(const multivector_type& in, multivector_type& hat,
                                                          multivector_type& out,
                                                          const std::function<void()>& whileGathered) {
  if (this->isPreconditioned()) {
    this->precondition(in, hat);
    sum_->progress();
  }
  this->applyOperator(hat, out, whileGathered);
}

template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::computeResiduals() {
  if (!signs_.isNull()) {
    estimateNorms();
  }
  this->computeResidual(*r_);
  using Row = MergedShadowDots<typename base_type::vector_view>;
  const ColumnDots<Row> dots(*sum_);
  this->dotColumns(dots, normsLabel, [&](int j) {
    const auto r = r_.column(j);
    return Row{r, r};
  });
  sum_->run(dots.numbers(this->numColumns()));
  for (int j = 0; j < this->numColumns(); ++j) {
    if (this->worksOn(j)) {
      this->norms_[j] = std::sqrt(this->magnitude(dots.get(j, Row::ss)));
    }
  }
}

template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::continueFromResiduals() {
  const std::vector<bool> restart = this->takeRestarts();
  preconditionAndApply(*r_, *rHat_, *w_);
  for (int j = 0; j < this->numColumns(); ++j) {
    if (restart[j]) {
      this->takeShadow(*r_, j, *shadow_);
      Kokkos::deep_copy(p_.column(j), impl_scalar_type(0));
    }
  }
  bool someGoOn = false;
  for (int j = 0; j < this->numColumns(); ++j) {
    someGoOn = someGoOn || (this->worksOn(j) && !restart[j]);
  }
  if (someGoOn) {
    this->applyOperator(*p_, *s_);
    preconditionAndApply(*s_, *sHat_, *z_);
    preconditionAndApply(*z_, *zHat_, *v_);
  }
  startResiduals(RowWork::dots);
  preconditionAndApply(*w_, *wHat_, *t_);
  takeResiduals(true, restart);
}

template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::step() {
  for (Scalars& now : scalars_) {
    now.lastAlpha = now.alpha;
    now.lastRho = now.rho;
  }
  if (this->isReplicated()) {
    startDirections(RowWork::updates);
    preconditionAndApply(*z_, *zHat_, *v_, [this] { startDirections(RowWork::dots); });
    chooseOmega();
    startResiduals(RowWork::updates);
    preconditionAndApply(*w_, *wHat_, *t_, [this] { startResiduals(RowWork::dots); });
  } else {
    startDirections(RowWork::updatesAndDots);
    preconditionAndApply(*z_, *zHat_, *v_);
    chooseOmega();
    startResiduals(RowWork::updatesAndDots);
    preconditionAndApply(*w_, *wHat_, *t_);
  }
  takeResiduals(false, std::vector<bool>(this->numColumns(), false));
  if (this->options_.replaceResiduals && !this->restartsAskedFor() && this->takeTrueResiduals(driftedColumns())) {
    ++this->counts_.replacements;
  }
}

template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::startDirections(RowWork work) {
  using View = typename base_type::vector_view;
  using Row = PipelinedDirections<View>;
  const ColumnDots<Row> dots(*sum_);
  this->dotColumns(dots, directionsLabel, [&](int j) {
    const auto at = [j](const Vectors& vectors) { return vectors.column(j); };
    return Row{at(p_),
               at(s_),
               at(sHat_),
               at(z_),
               at(r_),
               at(rHat_),
               at(w_),
               at(wHat_),
               at(zHat_),
               at(t_),
               at(v_),
               scalars_[j].alpha,
               scalars_[j].beta,
               scalars_[j].omega,
               this->isPreconditioned(),
               work};
  });
  if (work != RowWork::updates) {
    sum_->start(dots.numbers(this->numColumns()));
  }
}

/// Waits for the sums of the directions.
template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::chooseOmega() {
  using Row = PipelinedDirections<typename base_type::vector_view>;
  const ColumnDots<Row> dots(*sum_);
  sum_->wait();
  for (int j = 0; j < this->numColumns(); ++j) {
    if (!this->worksOn(j)) {
      continue;
    }
    const auto norm = [&](int dot) { return std::sqrt(this->magnitude(dots.get(j, dot))); };
    const double s = norm(Row::ss), hatOfS = this->isPreconditioned() ? norm(Row::sHatsHat) : s;
    const double wHat = this->isPreconditioned() ? norm(Row::wHatwHat) : scalars_[j].normW;
    gaps_[j].advanceDirections(std::complex<double>(scalars_[j].beta), std::complex<double>(scalars_[j].omega),
                               {norm(Row::pp), s, hatOfS, norm(Row::zz), wHat});
    scalars_[j].normZ = norm(Row::zz);
    const impl_scalar_type qy = dots.get(j, Row::qy), yy = dots.get(j, Row::yy);
    const double q = norm(Row::qq), y = norm(Row::yy);
    scalars_[j].omega = y > 0 ? impl_scalar_type(qy / yy) : impl_scalar_type(0);
    if (q > 0 && this->magnitude(qy) <= 2 * this->roundoff() * q * y) {
      this->askForRestart(j, "omega is zero but for rounding");
    }
  }
}

template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::startResiduals(RowWork work) {
  using View = typename base_type::vector_view;
  using Row = PipelinedResiduals<View>;
  const ColumnDots<Row> dots(*sum_);
  this->dotColumns(dots, residualsLabel, [&](int j) {
    const auto at = [j](const Vectors& vectors) { return vectors.column(j); };
    return Row{base_type::column(this->x(), j),
               at(r_),
               at(rHat_),
               at(w_),
               at(p_),
               at(s_),
               at(sHat_),
               at(z_),
               at(wHat_),
               at(zHat_),
               at(t_),
               at(v_),
               at(shadow_),
               scalars_[j].lastAlpha,
               scalars_[j].omega,
               this->isPreconditioned(),
               work};
  });
  if (work != RowWork::updates) {
    sum_->start(dots.numbers(this->numColumns()));
  }
}

/// Waits for the sums of the residuals; then norms_ are those of the new ones.
template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::takeResiduals(bool computed, const std::vector<bool>& restarted) {
  using Row = PipelinedResiduals<typename base_type::vector_view>;
  const ColumnDots<Row> dots(*sum_);
  sum_->wait();
  for (int j = 0; j < this->numColumns(); ++j) {
    if (!this->worksOn(j)) {
      continue;
    }
    const auto norm = [&](int dot) { return std::sqrt(this->magnitude(dots.get(j, dot))); };
    const double r = norm(Row::rr), w = norm(Row::ww), z = norm(Row::zHatzHat);
    const GapEstimate::Residuals norms{norm(Row::xx), r, this->isPreconditioned() ? norm(Row::rHatrHat) : r, w,
                                       this->isPreconditioned() ? z : scalars_[j].normZ};
    if (computed) {
      gaps_[j].reset(norms);
    } else {
      gaps_[j].advanceResiduals(std::complex<double>(scalars_[j].lastAlpha), std::complex<double>(scalars_[j].omega),
                                norms);
    }
    this->norms_[j] = r;
    scalars_[j].normW = w;
    scalars_[j].normRHat = norms.rHat;
    scalars_[j].normX = norms.x;
    chooseAlpha(j, restarted[j]);
  }
}

/// beta = (alpha / omega) (r*, r) / (r*, r)_old,  alpha = (r*, r) / ((r*, w) + beta (r*, s) - beta omega (r*, z))
template <class S, class L, class G, class N>
void PipelinedIteration<S, L, G, N>::chooseAlpha(int j, bool restarted) {
  using Row = PipelinedResiduals<typename base_type::vector_view>;
  const ColumnDots<Row> dots(*sum_);
  const impl_scalar_type zero(0);
  Scalars& now = scalars_[j];
  now.rho = dots.get(j, Row::shadowR);
  const bool first = restarted || now.lastAlpha == zero || now.omega == zero || now.lastRho == zero;
  now.beta = first ? zero : impl_scalar_type((now.lastAlpha / now.omega) * (now.rho / now.lastRho));
  const impl_scalar_type shadowW = dots.get(j, Row::shadowW);
  const impl_scalar_type shadowS = first ? zero : impl_scalar_type(now.beta * dots.get(j, Row::shadowS));
  const impl_scalar_type shadowZ = first ? zero : impl_scalar_type(now.beta * now.omega * dots.get(j, Row::shadowZ));
  const impl_scalar_type denominator = shadowW + shadowS - shadowZ;
  const double shadow = std::sqrt(this->magnitude(dots.get(j, Row::shadowShadow)));
  const double rounding = 2 * this->roundoff();
  now.alpha = zero;
  if (this->norms_[j] == 0) {
    return;  // solved
  }
  if (this->magnitude(now.rho) <= rounding * shadow * this->norms_[j]) {
    this->askForRestart(j, "(r*, r) is zero but for rounding");
  } else if (this->magnitude(denominator) <= rounding * shadow * now.normW) {
    this->askForRestart(j, "(r*, A p) is zero but for rounding");
  } else {
    now.alpha = now.rho / denominator;
  }
}

/// Whose r is so far from b - A x that the solution would be missed, or w so far from A r^ that convergence would
/// suffer, where computing them anew helps. Replacing r earlier, or more often, was not found to save steps.
template <class S, class L, class G, class N>
std::vector<bool> PipelinedIteration<S, L, G, N>::driftedColumns() const {
  const double relative = std::sqrt(std::sqrt(2 * this->roundoff()));  // of the vector's own norm
  const double harmless = 0.1;                                         // of the norm that meets the tolerance
  const double worthwhile = 4;                                         // times what it will be afterwards
  std::vector<bool> drifted(this->numColumns());
  for (int j = 0; j < this->numColumns(); ++j) {
    const GapEstimate& gap = gaps_[j];
    const Scalars& now = scalars_[j];
    const double ofResidual = gap.ofResidual(), ofProduct = gap.ofProduct();
    const bool residual = ofResidual > relative * this->norms_[j] && ofResidual > harmless * this->toleratedNorm(j) &&
                          ofResidual > worthwhile * gap.least(now.normX);
    const bool product =
        ofProduct > relative * now.normW && ofProduct > worthwhile * this->roundoff() * operatorNorm_ * now.normRHat;
    drifted[j] = this->worksOn(j) && (residual || product);
  }
  return drifted;
}

}  // namespace Komvos::Impl
