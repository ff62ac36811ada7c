/// \file Komvos_PipelinedIteration.hpp
/// Pipelined BiCGStab: two reductions a step, each hidden behind a product and a preconditioner.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "Komvos_BiCGStabIteration.hpp"
#include "Komvos_BiCGStabKernels.hpp"
#include "Komvos_GapEstimate.hpp"

namespace Komvos::Impl {

/// The method of Cools and Vanroose, "The communication-hiding pipelined BiCGStab method for the parallel solution of
/// large unsymmetric linear systems", Parallel Computing 65 (2017), with preconditioning; also Figure 2(b) of Yamazaki
/// et al., "Analyzing Performance of BiCGStab with Hierarchical Matrix on GPU Clusters", IPDPS 2018, whose line 21 must
/// read t := A f. One step, for each column (hat: preconditioned):
///
///     p^ = r^ + beta (p^ - omega s^)      s = w + beta (s - omega z)
///     s^ = w^ + beta (s^ - omega z^)      z = t + beta (z - omega v)
///     q = r - alpha s    q^ = r^ - alpha s^    y = w - alpha z
///     reduce (y, q), (y, y)                   || z^ = M z,  v = A z^
///     omega = (y, q) / (y, y)             x += alpha p^ + omega q^
///     r = q - omega y    r^ = q^ - omega (w^ - alpha z^)    w = y - omega (t - alpha v)
///     reduce (r*, r), (r*, w), (r*, s), (r*, z), (r, r)   || w^ = M w,  t = A w^
///     beta = (alpha / omega) (r*, r) / (r*, r)_old
///     alpha = (r*, r) / ((r*, w) + beta (r*, s) - beta omega (r*, z))
///
/// The updates before each reduction are one kernel: 32 vectors are read or written in a step, 22 without a
/// preconditioner, the least if each half reads what it needs once. q, q^ and y are never stored: 12 vectors, 8
/// without. The same kernels give the norms that GapEstimate needs. Where it finds that r has drifted, or w, all
/// vectors are computed anew from x and p^: 8 products (counting those of a step), and two reductions more.
template <class S, class L, class G, class N>
class PipelinedIteration : public BiCGStabIteration<S, L, G, N> {
 public:
  using base_type = BiCGStabIteration<S, L, G, N>;
  using base_type::base_type;
  using typename base_type::impl_scalar_type;
  using typename base_type::magnitude_type;
  using typename base_type::multivector_type;

 private:
  using typename base_type::Vectors;
  struct Scalars {
    impl_scalar_type alpha{}, beta{}, rho{};  // of the next step
    impl_scalar_type lastAlpha{}, lastRho{}, omega{};
    double normW = 0, normZ = 0, normRHat = 0, normX = 0;
  };

  void step() override;
  void computeResiduals() override;
  void continueFromResiduals() override;
  void allocate(const std::string& error) override;
  void estimateNorms();
  void startDirections(RowWork work);
  void chooseOmega();
  void startResiduals(RowWork work);
  void takeResiduals(bool computed, const std::vector<bool>& restarted);
  std::vector<bool> driftedColumns() const;
  double attainableNorm(int j) const override { return gaps_[j].least(scalars_[j].normX); }
  void chooseAlpha(int column, bool restarted);
  /// out^ = M in, out = A out^, letting the sum that is under way go on in between.
  /// \param whileGathered for replicated vectors only
  void preconditionAndApply(const multivector_type& in, multivector_type& hat, multivector_type& out,
                            const std::function<void()>& whileGathered = {});

  Vectors r_, rHat_, w_, wHat_, p_, s_, sHat_, z_, zHat_, t_, v_, shadow_;
  Vectors signs_, product_;  // of one column, until the norm of the operator is known
  std::unique_ptr<NonBlockingSum<magnitude_type>> sum_;
  std::vector<Scalars> scalars_;
  std::vector<GapEstimate> gaps_;
  double operatorNorm_ = 0;
};

}  // namespace Komvos::Impl
