/// \file Komvos_MergedIteration.hpp
/// BiCGStab with two blocking reductions a step instead of Belos' five.
#pragma once

#include "Komvos_BiCGStabIteration.hpp"

namespace Komvos::Impl {

/// One step, for each column (hat: preconditioned):
///
///     s = A p^                     reduce (r*, s), (s, s), (r*, r*)
///     alpha = rho / (r*, s)        q = r - alpha s,  y = A q^
///                                  reduce (y, q), (y, y), (q, q), (r*, q), (r*, y)
///     omega = (y, q) / (y, y)      x += alpha p^ + omega q^,  r = q - omega y
///     rho' = (r*, q) - omega (r*, y),  |r|^2 = |q|^2 - |(y, q)|^2 / |y|^2
///     beta = (rho' / rho)(alpha / omega),  p = r + beta (p - omega s)
///
/// The norm suffers from cancellation where omega reduces the residual a lot: where it would be mostly rounding, it is
/// computed from r in a third reduction.
template <class S, class L, class G, class N>
class MergedIteration : public BiCGStabIteration<S, L, G, N> {
 public:
  using base_type = BiCGStabIteration<S, L, G, N>;
  using base_type::base_type;
  using typename base_type::impl_scalar_type;
  using typename base_type::magnitude_type;
  using typename base_type::multivector_type;

 private:
  using typename base_type::Vectors;
  void step() override;
  void computeResiduals() override;
  void continueFromResiduals() override;
  void allocate(const std::string& error) override;
  void chooseAlpha();
  void chooseOmega();
  void restartIfShadowIsLost(int column);
  /// norms_ and rho, of the active columns. Not of the others: these keep the norm that they converged with.
  void sumNorms();

  Vectors r_, shadow_, p_, pHat_, s_, qHat_, y_;
  std::unique_ptr<NonBlockingSum<magnitude_type>> sum_;
  std::vector<impl_scalar_type> rho_, alpha_, beta_, omega_;
  std::vector<double> shadowNorms_;
};

}  // namespace Komvos::Impl
