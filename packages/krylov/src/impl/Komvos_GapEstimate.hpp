/// \file Komvos_GapEstimate.hpp
/// How far the recurrences of pipelined BiCGStab have drifted from what they stand for.
#pragma once

#include <array>
#include <complex>

namespace Komvos::Impl {

/// Expected norms of the gaps between recursively computed vectors and their definitions, for one right-hand side.
///
/// Pipelined BiCGStab computes r, s, w and z by recurrences, where r = b - A x, s = A p^, w = A r^ and z = A s^ hold in
/// exact arithmetic (p^, r^, s^: preconditioned). In finite precision they differ by gaps, which obey the same
/// recurrences, with the same scalars, plus a rounding error at each step. Neither A nor the preconditioner acts on
/// them. So the 6 x 6 covariance of the gaps (f, g, h, k) = (b - Ax - r, A p^ - s, A r^ - w, A s^ - z) and of the
/// errors of the last products (A w^ - t, A z^ - v) is known as soon as the variances of the rounding errors are: these
/// are taken as independent, of the size that rounding to nearest gives. Cools, Cornelis and Vanroose bound the same
/// recurrences for pipelined CG with norms; bounds grow without cancellation, and ask for replacement far too often
/// here.
///
/// Costs scalars only. The norms come with reductions that the method does anyway.
class GapEstimate {
 public:
  using Number = std::complex<double>;

  /// 2-norms over all ranks. A hat means preconditioned.
  struct Directions {
    double p, s, sHat, z, wHat;  ///< p^, s, s^, z after the first half of a step, and w^ before it
  };
  struct Residuals {
    double x, r, rHat, w, zHat;  ///< after the second half of a step, and z^ before it
  };

  /// \param roundoff          half the distance of 1 to the next number
  /// \param operatorNorm      ||A||_F / sqrt(n), the norm of a typical row
  /// \param rightHandSide     ||b||
  GapEstimate(double roundoff, double operatorNorm, double rightHandSide);

  /// All vectors were computed from their definitions: gaps are the rounding errors of these products.
  void reset(const Residuals& norms);

  /// Takes the first half of a step: p^, s, s^ and z have been updated with these scalars.
  void advanceDirections(Number beta, Number omega, const Directions& norms);
  /// Takes the second half: x, r, r^ and w have been updated with these scalars.
  void advanceResiduals(Number alpha, Number omega, const Residuals& norms);

  /// Expected norm of b - A x - r.
  double ofResidual() const { return deviation(0); }
  /// Expected norm of A r^ - w.
  double ofProduct() const { return deviation(2); }
  /// What ofResidual() is right after a replacement: no replacement makes it smaller.
  double least(double normX) const { return roundoff_ * (operatorNorm_ * normX + rightHandSide_); }

 private:
  static constexpr int size = 6;
  using Matrix = std::array<std::array<Number, size>, size>;

  double deviation(int i) const;
  void propagate(const Matrix& step);
  void add(int i, double error);
  void renew(int i, double error);

  double roundoff_, operatorNorm_, rightHandSide_;
  Matrix covariance_{};  // of f, g, h, k, A w^ - t, A z^ - v
  Directions directions_{};
  Residuals residuals_{};
};

}  // namespace Komvos::Impl
