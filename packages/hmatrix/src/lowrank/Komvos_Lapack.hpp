/// \file Komvos_Lapack.hpp
/// LAPACK and BLAS for real and complex values. Teuchos has the complex ones only where Trilinos was built for them,
/// and Debian's was not.
#pragma once

#include <complex>
#include <vector>

namespace Komvos::Impl {

template <class Scalar>
struct RealOf {
  using type = Scalar;
};
template <class Real>
struct RealOf<std::complex<Real>> {
  using type = Real;
};

/// a = q r, for a [m x k], column by column. \param r [min(m, k) x k] \return q [m x min(m, k)]
/// \throws Error if LAPACK fails
template <class Scalar>
std::vector<Scalar> qr(std::vector<Scalar> a, int m, int k, std::vector<Scalar>& r);

/// Singular values of a [m x n], the largest first. With l = min(m, n):
template <class Scalar>
struct Svd {
  std::vector<typename RealOf<Scalar>::type> values;  ///< [l]
  std::vector<Scalar> left;                           ///< [m x l], column by column
  std::vector<Scalar> right;                          ///< [l x n], column by column: already (conjugated) transposed
};
/// \throws Error if LAPACK fails, as where a value is not finite
template <class Scalar>
Svd<Scalar> svd(std::vector<Scalar> a, int m, int n);

/// a b, or a b^T without conjugation. \param a [m x k] \param b [k x n], or [n x k] \return [m x n]
template <class Scalar>
std::vector<Scalar> product(int m, int n, int k, const Scalar* a, const Scalar* b, bool transposeB);

/// c = alpha op(a) b + beta c, op(a) [m x k] \param lda, ldb, ldc from one column to the next
template <class Scalar>
void addProduct(bool transposeA, int m, int n, int k, Scalar alpha, const Scalar* a, int lda, const Scalar* b, int ldb,
                Scalar beta, Scalar* c, int ldc);

/// a = p l u in place, for a [n x n], column by column. \param pivots [n], for the functions below
/// \return 0, or the number of the first pivot that is zero, from 1 on
template <class Scalar>
int factorLu(int n, Scalar* a, int* pivots);
/// b = a^-1 b, or a^-T b without conjugation. \param b [n x columns]
template <class Scalar>
void solveLu(int n, const Scalar* lu, const int* pivots, bool transposed, Scalar* b, int columns);
/// lu = a^-1
template <class Scalar>
void invertLu(int n, Scalar* lu, const int* pivots);

}  // namespace Komvos::Impl
