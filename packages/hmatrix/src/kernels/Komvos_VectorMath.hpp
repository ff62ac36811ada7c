/// \file Komvos_VectorMath.hpp
/// Functions of vectors of doubles, for compilers with GCC's vector extension. All elements go through the same
/// operations without branches, so a value does not depend on its place or on its neighbours. Errors are a few units of
/// the last place.
#pragma once

#include <cstdint>

#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define KOMVOS_HAVE_VECTORS
#define KOMVOS_INLINE __attribute__((always_inline)) inline

// Vectors are passed only to functions that are inlined: how others would get them does not matter.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace Komvos::Impl {

template <int Bytes>
struct Vectors {
  typedef double Real __attribute__((vector_size(Bytes)));
  typedef std::int64_t Integer __attribute__((vector_size(Bytes)));
  static constexpr int length = Bytes / 8;

  static KOMVOS_INLINE Real all(double value) { return Real{} + value; }

  /// mask ? a : b, where an element of the mask is 0 or -1
  static KOMVOS_INLINE Real select(const Integer& mask, const Real& a, const Real& b) {
    return reinterpret_cast<Real>((reinterpret_cast<Integer>(a) & mask) | (reinterpret_cast<Integer>(b) & ~mask));
  }

  /// 1 / sqrt(x) for x > 0; finite for x = 0.
  static KOMVOS_INLINE Real reciprocalSqrt(const Real& x) {
    // The exponent is halved, as in C. Lomont, 2003. Steps: with e = 1 - x y^2, y (1 + e / 2 + 3 e^2 / 8), whose error
    // is 5 e^3 / 16; the last one without its third term.
    typedef std::uint64_t Unsigned __attribute__((vector_size(Bytes)));
    Real y = reinterpret_cast<Real>(0x5FE6EB50C7B537A9ULL - (reinterpret_cast<Unsigned>(x) >> 1));
    for (int step = 0; step < 2; ++step) {
      const Real e = 1.0 - x * y * y;
      y += y * e * (0.375 * e + 0.5);
    }
    const Real e = 1.0 - x * y * y;
    return y + 0.5 * y * e;
  }

  /// exp(value) for value <= 0; 2e-300 where it is smaller than that.
  static KOMVOS_INLINE Real exponential(const Real& value) {
    // x = n log 2 + f, |f| < 0.35
    const Real least = all(-690.0);
    const Real x = select(reinterpret_cast<Integer>(value > least), value, least);
    const Real shifted = x * 1.44269504088896341 + rounding;
    const Real n = shifted - rounding;
    const Real f = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    Real sum = all(1.0 / 6227020800.0);
    sum = sum * f + 1.0 / 479001600.0;
    sum = sum * f + 1.0 / 39916800.0;
    sum = sum * f + 1.0 / 3628800.0;
    sum = sum * f + 1.0 / 362880.0;
    sum = sum * f + 1.0 / 40320.0;
    sum = sum * f + 1.0 / 5040.0;
    sum = sum * f + 1.0 / 720.0;
    sum = sum * f + 1.0 / 120.0;
    sum = sum * f + 1.0 / 24.0;
    sum = sum * f + 1.0 / 6.0;
    sum = sum * f + 0.5;
    sum = sum * f + 1.0;
    sum = sum * f + 1.0;
    // 2^n goes to the exponent; the last bits of `shifted` are n.
    return reinterpret_cast<Real>(reinterpret_cast<Integer>(sum) + (reinterpret_cast<Integer>(shifted) << 52));
  }

  /// For 0 <= x < 1e6.
  static KOMVOS_INLINE void sineAndCosine(const Real& x, Real& sine, Real& cosine) {
    // x = n pi / 2 + f, |f| < 0.79; pi / 2 in three parts (W. J. Cody and W. Waite, 1980), of 33 bits each
    const Real shifted = x * 0.636619772367581343 + rounding;
    const Real n = shifted - rounding;
    const Real f =
        ((x - n * 1.57079632673412561417e+00) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
    const Real g = f * f;
    Real s = all(1.0 / 355687428096000.0);
    s = s * g - 1.0 / 1307674368000.0;
    s = s * g + 1.0 / 6227020800.0;
    s = s * g - 1.0 / 39916800.0;
    s = s * g + 1.0 / 362880.0;
    s = s * g - 1.0 / 5040.0;
    s = s * g + 1.0 / 120.0;
    s = s * g - 1.0 / 6.0;
    s = f + f * g * s;
    Real c = all(1.0 / 20922789888000.0);
    c = c * g - 1.0 / 87178291200.0;
    c = c * g + 1.0 / 479001600.0;
    c = c * g - 1.0 / 3628800.0;
    c = c * g + 1.0 / 40320.0;
    c = c * g - 1.0 / 720.0;
    c = c * g + 1.0 / 24.0;
    c = c * g - 0.5;
    c = 1.0 + c * g;
    // Sines and cosines change places in odd quarters; sines change sign in quarters 2 and 3, cosines in 1 and 2.
    const Integer quarter = reinterpret_cast<Integer>(shifted);
    const Integer isOdd = -(quarter & 1);
    const Integer signOfSine = (quarter & 2) << 62, signOfCosine = ((quarter + 1) & 2) << 62;
    sine = reinterpret_cast<Real>(reinterpret_cast<Integer>(select(isOdd, c, s)) ^ signOfSine);
    cosine = reinterpret_cast<Real>(reinterpret_cast<Integer>(select(isOdd, s, c)) ^ signOfCosine);
  }

 private:
  static constexpr double rounding = 0x1.8p52;  ///< adding it rounds to an integer, which the last bits then hold
};

}  // namespace Komvos::Impl
#endif
