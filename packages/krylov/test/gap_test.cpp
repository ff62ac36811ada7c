// The estimate of how far recurrences drift, against recurrences that are computed in single precision beside exact
// ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "Komvos_GapEstimate.hpp"
#include "support/largest.hpp"

namespace {

using Komvos::Impl::GapEstimate;
using Exact = std::vector<double>;

double norm(const Exact& a) {
  double sum = 0;
  for (const double x : a) {
    sum += x * x;
  }
  return std::sqrt(sum);
}

/// The recurrences of pipelined BiCGStab for a diagonal matrix, rounded to float after each operation, with scalars
/// that are given. M = 1.
struct Recurrences {
  Exact diagonal, b, x, r, w, p, s, z, t, v;

  static double rounded(double value) { return static_cast<double>(static_cast<float>(value)); }
  Exact product(const Exact& a) const {
    Exact result(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      result[i] = rounded(diagonal[i] * a[i]);
    }
    return result;
  }

  explicit Recurrences(int n) : diagonal(n), b(n), x(n), p(n), s(n), z(n), v(n) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> some(0.5, 1.5);
    for (int i = 0; i < n; ++i) {
      diagonal[i] = rounded(some(random));
      b[i] = rounded(some(random) - 1);
    }
    r = b;
    w = product(r);
    t = product(w);
  }

  void directions(double beta, double omega) {
    for (std::size_t i = 0; i < r.size(); ++i) {
      const double oldS = s[i], oldZ = z[i];
      const auto next = [&](double a, double old, double older) {
        return rounded(a + rounded(beta * rounded(old - rounded(omega * older))));
      };
      p[i] = next(r[i], p[i], oldS);
      s[i] = next(w[i], oldS, oldZ);
      z[i] = next(t[i], oldZ, v[i]);
    }
    v = product(z);
  }

  void residuals(double alpha, double omega) {
    for (std::size_t i = 0; i < r.size(); ++i) {
      const auto less = [&](double a, double scalar, double c) { return rounded(a - rounded(scalar * c)); };
      const double q = less(r[i], alpha, s[i]), y = less(w[i], alpha, z[i]);
      x[i] = rounded(x[i] + rounded(rounded(alpha * p[i]) + rounded(omega * q)));
      r[i] = less(q, omega, y);
      w[i] = less(y, omega, less(t[i], alpha, v[i]));
    }
    t = product(w);
  }

  double gapOfResidual() const {
    Exact gap(r.size());
    for (std::size_t i = 0; i < r.size(); ++i) {
      gap[i] = b[i] - diagonal[i] * x[i] - r[i];
    }
    return norm(gap);
  }
  double gapOfProduct() const {
    Exact gap(r.size());
    for (std::size_t i = 0; i < r.size(); ++i) {
      gap[i] = diagonal[i] * r[i] - w[i];
    }
    return norm(gap);
  }
};

/// The largest factor between estimate and truth, either way, over so many steps.
double worstFactor(double beta, double growth) {
  Recurrences vectors(2000);
  const double roundoff = std::ldexp(1.0, -24);
  GapEstimate gap(roundoff, norm(vectors.diagonal) / std::sqrt(2000.0), norm(vectors.b));
  gap.reset({norm(vectors.x), norm(vectors.r), norm(vectors.r), norm(vectors.w), 0});
  double worst = 1;
  for (int step = 0; step < 25; ++step) {
    const double alpha = 0.6 * growth, omega = 0.7, normW = norm(vectors.w);
    vectors.directions(step == 0 ? 0 : beta, step == 0 ? 0 : omega);
    gap.advanceDirections(step == 0 ? 0 : beta, step == 0 ? 0 : omega,
                          {norm(vectors.p), norm(vectors.s), norm(vectors.s), norm(vectors.z), normW});
    vectors.residuals(alpha, omega);
    gap.advanceResiduals(alpha, omega,
                         {norm(vectors.x), norm(vectors.r), norm(vectors.r), norm(vectors.w), norm(vectors.z)});
    if (step > 2) {
      for (const double ratio :
           {gap.ofResidual() / vectors.gapOfResidual(), gap.ofProduct() / vectors.gapOfProduct()}) {
        worst = KomvosTest::largerOf(worst, KomvosTest::largerOf(ratio, 1 / ratio));
      }
    }
  }
  return worst;
}

TEST(GapEstimate, IsWithinAFactorOfTenOfTheTruthWhereRecurrencesShrink) { EXPECT_LT(worstFactor(0.2, 1), 10); }

TEST(GapEstimate, IsWithinAFactorOfTenOfTheTruthWhereRecurrencesGrow) { EXPECT_LT(worstFactor(-1.1, 2.5), 10); }

TEST(GapEstimate, ForgetsWhatWasBeforeAReplacement) {
  GapEstimate gap(1e-16, 2, 3);
  gap.reset({1, 1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(gap.least(1), gap.ofResidual());
  EXPECT_DOUBLE_EQ(1e-16 * (2 * 1 + 3), gap.least(1));
  for (int step = 0; step < 10; ++step) {
    gap.advanceDirections(5, 1, {1, 1, 1, 1, 1});
    gap.advanceResiduals(1, 1, {1, 1, 1, 1, 1});
  }
  EXPECT_GT(gap.ofResidual(), 1e3 * gap.least(1));
  gap.reset({1, 1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(gap.least(1), gap.ofResidual());
}

}  // namespace
