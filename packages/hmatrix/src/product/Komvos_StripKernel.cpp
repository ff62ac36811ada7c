/// \file Komvos_StripKernel.cpp
/// How it works: sums of up to 64 rows stay in registers while all columns of the strip go by. Rows are taken in
/// vectors of 64 bytes. The last one of a column may reach into the next column; the sums of what is there are thrown
/// away, which costs less than a shorter vector. One vector alone would wait for its own last sum in each column, so
/// columns are dealt out to several sets of sums where rows are few. The code is compiled three times, and which one
/// runs is found out at run time: Debian compiles for the oldest CPUs.
#include "Komvos_StripKernel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "Komvos_Panels.hpp"

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define KOMVOS_HAVE_VECTOR_UNITS
#endif

namespace Komvos::Impl {

#ifdef KOMVOS_HAVE_VECTOR_UNITS
#define KOMVOS_INLINE __attribute__((always_inline)) inline

namespace {

template <class Real>
struct Vector {
  static constexpr int length = 64 / sizeof(Real);
  typedef Real type __attribute__((vector_size(64)));
};

/// Columns are dealt out to Sets sets of sums, for `Parts` vectors of rows and N right-hand sides.
template <class Real, int Parts, int Sets, int N>
KOMVOS_INLINE void addRows(const Real* values, int rows, const PanelRun* runs, int numRuns, const Real* input,
                           Real* sums, int usedRows) {
  using V = typename Vector<Real>::type;
  constexpr int length = Vector<Real>::length;
  V acc[Sets][Parts][N];
  for (int s = 0; s < Sets; ++s) {
    for (int p = 0; p < Parts; ++p) {
      for (int q = 0; q < N; ++q) {
        acc[s][p][q] = V{};
      }
    }
  }
  const Real* column = values;
  for (int run = 0; run < numRuns; ++run) {
    const Real* z = input + static_cast<std::ptrdiff_t>(runs[run].input) * N;
    const Real* const end = z + static_cast<std::ptrdiff_t>(runs[run].columns) * N;
    for (; z + Sets * N <= end; z += Sets * N) {
      for (int s = 0; s < Sets; ++s, column += rows) {
        for (int p = 0; p < Parts; ++p) {
          V a;
          std::memcpy(&a, column + p * length, sizeof a);
          for (int q = 0; q < N; ++q) {
            acc[s][p][q] += a * z[s * N + q];
          }
        }
      }
    }
    for (; z < end; z += N, column += rows) {
      for (int p = 0; p < Parts; ++p) {
        V a;
        std::memcpy(&a, column + p * length, sizeof a);
        for (int q = 0; q < N; ++q) {
          acc[0][p][q] += a * z[q];
        }
      }
    }
  }
  for (int s = 1; s < Sets; ++s) {
    for (int p = 0; p < Parts; ++p) {
      for (int q = 0; q < N; ++q) {
        acc[0][p][q] += acc[s][p][q];
      }
    }
  }
  for (int r = 0; r < usedRows; ++r) {
    for (int q = 0; q < N; ++q) {
      sums[r * N + q] += acc[0][r / length][q][r % length];
    }
  }
}

/// The number of vectors of rows, at most P, as a constant.
template <class Real, int N, int P>
KOMVOS_INLINE void addParts(int parts, const Real* values, int rows, const PanelRun* runs, int numRuns,
                            const Real* input, Real* sums, int usedRows) {
  if (parts == P) {
    constexpr int sets = N > 4 ? 1 : P * N <= 2 ? 4 : P * N <= 4 ? 2 : 1;
    addRows<Real, P, sets, N>(values, rows, runs, numRuns, input, sums, usedRows);
  } else if constexpr (P > 1) {
    addParts<Real, N, P - 1>(parts, values, rows, runs, numRuns, input, sums, usedRows);
  }
}

/// All rows of a strip, as many at a time as registers hold.
template <class Real, int N>
KOMVOS_INLINE void addStripRows(const Real* values, int rows, const PanelRun* runs, int numRuns, const Real* input,
                                Real* sums) {
  constexpr int length = Vector<Real>::length, most = std::min(8, 16 / N);
  for (int row = 0; row < rows; row += most * length) {
    const int used = std::min(rows - row, most * length);
    addParts<Real, N, most>((used + length - 1) / length, values + row, rows, runs, numRuns, input, sums + row * N,
                            used);
  }
}

template <class Real, int N>
void plainStrip(const Real* values, int rows, const PanelRun* runs, int numRuns, const Real* input, Real* sums) {
  addStripRows<Real, N>(values, rows, runs, numRuns, input, sums);
}
template <class Real, int N>
__attribute__((target("avx2,fma"))) void avx2Strip(const Real* values, int rows, const PanelRun* runs, int numRuns,
                                                   const Real* input, Real* sums) {
  addStripRows<Real, N>(values, rows, runs, numRuns, input, sums);
}
template <class Real, int N>
__attribute__((target("avx512f,fma"))) void avx512Strip(const Real* values, int rows, const PanelRun* runs, int numRuns,
                                                        const Real* input, Real* sums) {
  addStripRows<Real, N>(values, rows, runs, numRuns, input, sums);
}

template <class Real, int N>
StripKernel<Real> kernelOf(VectorUnit unit) {
  return unit == VectorUnit::Avx512 ? avx512Strip<Real, N>
         : unit == VectorUnit::Avx2 ? avx2Strip<Real, N>
                                    : plainStrip<Real, N>;
}

}  // namespace

VectorUnit widestVectorUnit() {
  return __builtin_cpu_supports("avx512f")                                      ? VectorUnit::Avx512
         : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") != 0 ? VectorUnit::Avx2
                                                                                : VectorUnit::Plain;
}

template <class Value>
StripKernel<Value> stripKernel(VectorUnit unit, int numVectors) {
  unit = std::min(unit, widestVectorUnit());
  switch (numVectors) {
    case 1:
      return kernelOf<Value, 1>(unit);
    case 2:
      return kernelOf<Value, 2>(unit);
    case 4:
      return kernelOf<Value, 4>(unit);
    case 8:
      return kernelOf<Value, 8>(unit);
    default:
      return kernelOf<Value, 16>(unit);
  }
}
#else

VectorUnit widestVectorUnit() { return VectorUnit::Plain; }

template <class Value>
StripKernel<Value> stripKernel(VectorUnit, int) {
  return nullptr;
}
#endif

template StripKernel<float> stripKernel(VectorUnit, int);
template StripKernel<double> stripKernel(VectorUnit, int);

}  // namespace Komvos::Impl
