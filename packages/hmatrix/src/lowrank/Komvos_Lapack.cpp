/// \file Komvos_Lapack.cpp
#include "Komvos_Lapack.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>

#include "Komvos_BlasThreads.hpp"
#include "Komvos_Error.hpp"

extern "C" {
#define KOMVOS_DECLARE(letter, T)                                                                                      \
  void letter##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork, int* info); \
  void letter##gemm_(const char* transA, const char* transB, const int* m, const int* n, const int* k, const T* alpha, \
                     const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc);     \
  void letter##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);                       \
  void letter##getrs_(const char* trans, const int* n, const int* columns, const T* lu, const int* lda,                \
                      const int* pivots, T* b, const int* ldb, int* info);                                             \
  void letter##getri_(const int* n, T* lu, const int* lda, const int* pivots, T* work, const int* lwork, int* info);
KOMVOS_DECLARE(s, float)
KOMVOS_DECLARE(d, double)
KOMVOS_DECLARE(z, std::complex<double>)
#undef KOMVOS_DECLARE
#define KOMVOS_DECLARE(name, T)                                                                       \
  void name##_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work, \
               const int* lwork, int* info);
KOMVOS_DECLARE(sorgqr, float)
KOMVOS_DECLARE(dorgqr, double)
KOMVOS_DECLARE(zungqr, std::complex<double>)
#undef KOMVOS_DECLARE
#define KOMVOS_DECLARE(letter, T)                                                                                 \
  void letter##gesvd_(const char* jobU, const char* jobV, const int* m, const int* n, T* a, const int* lda, T* s, \
                      T* u, const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, int* info);
KOMVOS_DECLARE(s, float)
KOMVOS_DECLARE(d, double)
#undef KOMVOS_DECLARE
void zgesvd_(const char* jobU, const char* jobV, const int* m, const int* n, std::complex<double>* a, const int* lda,
             double* s, std::complex<double>* u, const int* ldu, std::complex<double>* vt, const int* ldvt,
             std::complex<double>* work, const int* lwork, double* realWork, int* info);
}

namespace Komvos::Impl {
namespace {

template <class Scalar>
struct Routines;
template <>
struct Routines<float> {
  static constexpr auto geqrf = sgeqrf_;
  static constexpr auto ungqr = sorgqr_;
  static constexpr auto gemm = sgemm_;
  static constexpr auto getrf = sgetrf_;
  static constexpr auto getrs = sgetrs_;
  static constexpr auto getri = sgetri_;
};
template <>
struct Routines<double> {
  static constexpr auto geqrf = dgeqrf_;
  static constexpr auto ungqr = dorgqr_;
  static constexpr auto gemm = dgemm_;
  static constexpr auto getrf = dgetrf_;
  static constexpr auto getrs = dgetrs_;
  static constexpr auto getri = dgetri_;
};
template <>
struct Routines<std::complex<double>> {
  static constexpr auto geqrf = zgeqrf_;
  static constexpr auto ungqr = zungqr_;
  static constexpr auto gemm = zgemm_;
  static constexpr auto getrf = zgetrf_;
  static constexpr auto getrs = zgetrs_;
  static constexpr auto getri = zgetri_;
};

/// Held while LAPACK or the BLAS is called: empty, or a lock where they serve one thread only.
std::unique_lock<std::mutex> turnToCall() {
  static std::mutex one;
  return threadsMayCallBlas() ? std::unique_lock<std::mutex>() : std::unique_lock<std::mutex>(one);
}

void requireSuccess(int info, const char* routine, int m, int n) {
  if (info != 0) {
    throw Error("LAPACK's " + std::string(routine) + " failed with " + std::to_string(info) + " for a matrix of " +
                std::to_string(m) + " x " + std::to_string(n));
  }
}

}  // namespace

template <class Scalar>
std::vector<Scalar> qr(std::vector<Scalar> a, int m, int k, std::vector<Scalar>& r) {
  const int least = std::min(m, k), lwork = std::max(1, 32 * k);
  std::vector<Scalar> tau(least), work(lwork);
  int info = 0;
  const auto turn = turnToCall();
  Routines<Scalar>::geqrf(&m, &k, a.data(), &m, tau.data(), work.data(), &lwork, &info);
  requireSuccess(info, "geqrf", m, k);
  r.assign(static_cast<std::size_t>(least) * k, Scalar(0));
  for (int c = 0; c < k; ++c) {
    std::copy_n(a.data() + static_cast<std::size_t>(c) * m, std::min(c + 1, least),
                r.data() + static_cast<std::size_t>(c) * least);
  }
  Routines<Scalar>::ungqr(&m, &least, &least, a.data(), &m, tau.data(), work.data(), &lwork, &info);
  requireSuccess(info, "orgqr", m, least);
  a.resize(static_cast<std::size_t>(m) * least);
  return a;
}

template <class Scalar>
Svd<Scalar> svd(std::vector<Scalar> a, int m, int n) {
  for (const Scalar& value : a) {
    if (!std::isfinite(std::abs(value))) {
      throw Error("a block of " + std::to_string(m) + " x " + std::to_string(n) +
                  " has singular values that are not finite: an entry is not");
    }
  }
  const int least = std::min(m, n), lwork = std::max(1, 8 * (m + n));
  Svd<Scalar> result;
  result.values.resize(least);
  result.left.resize(static_cast<std::size_t>(m) * least);
  result.right.resize(static_cast<std::size_t>(least) * n);
  std::vector<Scalar> work(lwork);
  int info = 0;
  const auto turn = turnToCall();
  if constexpr (std::is_same_v<Scalar, std::complex<double>>) {
    std::vector<double> realWork(5 * static_cast<std::size_t>(least));
    zgesvd_("S", "S", &m, &n, a.data(), &m, result.values.data(), result.left.data(), &m, result.right.data(), &least,
            work.data(), &lwork, realWork.data(), &info);
  } else {
    constexpr auto gesvd = [] {
      if constexpr (std::is_same_v<Scalar, float>) {
        return sgesvd_;
      } else {
        return dgesvd_;
      }
    }();
    gesvd("S", "S", &m, &n, a.data(), &m, result.values.data(), result.left.data(), &m, result.right.data(), &least,
          work.data(), &lwork, &info);
  }
  requireSuccess(info, "gesvd", m, n);
  return result;
}

template <class Scalar>
std::vector<Scalar> product(int m, int n, int k, const Scalar* a, const Scalar* b, bool transposeB) {
  std::vector<Scalar> c(static_cast<std::size_t>(m) * n);
  const Scalar one(1), zero(0);
  const int ldb = transposeB ? n : k;
  if (m > 0 && n > 0 && k > 0) {
    const auto turn = turnToCall();
    Routines<Scalar>::gemm("N", transposeB ? "T" : "N", &m, &n, &k, &one, a, &m, b, &ldb, &zero, c.data(), &m);
  }
  return c;
}

template <class Scalar>
void addProduct(bool transposeA, int m, int n, int k, Scalar alpha, const Scalar* a, int lda, const Scalar* b, int ldb,
                Scalar beta, Scalar* c, int ldc) {
  if (m > 0 && n > 0 && k > 0) {
    const auto turn = turnToCall();
    Routines<Scalar>::gemm(transposeA ? "T" : "N", "N", &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
  }
}

template <class Scalar>
int factorLu(int n, Scalar* a, int* pivots) {
  if (n == 0) {
    return 0;
  }
  int info = 0;
  const auto turn = turnToCall();
  Routines<Scalar>::getrf(&n, &n, a, &n, pivots, &info);
  if (info < 0) {
    requireSuccess(info, "getrf", n, n);
  }
  return info;
}

template <class Scalar>
void solveLu(int n, const Scalar* lu, const int* pivots, bool transposed, Scalar* b, int columns) {
  if (n == 0 || columns == 0) {
    return;
  }
  int info = 0;
  const auto turn = turnToCall();
  Routines<Scalar>::getrs(transposed ? "T" : "N", &n, &columns, lu, &n, pivots, b, &n, &info);
  requireSuccess(info, "getrs", n, n);
}

template <class Scalar>
void invertLu(int n, Scalar* lu, const int* pivots) {
  if (n == 0) {
    return;
  }
  const int lwork = 64 * n;
  std::vector<Scalar> work(lwork);
  int info = 0;
  const auto turn = turnToCall();
  Routines<Scalar>::getri(&n, lu, &n, pivots, work.data(), &lwork, &info);
  requireSuccess(info, "getri", n, n);
}

#define KOMVOS_INSTANTIATE_LAPACK(S)                                                          \
  template std::vector<S> qr(std::vector<S>, int, int, std::vector<S>&);                      \
  template Svd<S> svd(std::vector<S>, int, int);                                              \
  template std::vector<S> product(int, int, int, const S*, const S*, bool);                   \
  template void addProduct(bool, int, int, int, S, const S*, int, const S*, int, S, S*, int); \
  template int factorLu(int, S*, int*);                                                       \
  template void solveLu(int, const S*, const int*, bool, S*, int);                            \
  template void invertLu(int, S*, const int*);
KOMVOS_INSTANTIATE_LAPACK(float)
KOMVOS_INSTANTIATE_LAPACK(double)
KOMVOS_INSTANTIATE_LAPACK(std::complex<double>)
#undef KOMVOS_INSTANTIATE_LAPACK

}  // namespace Komvos::Impl
