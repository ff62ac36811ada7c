/// \file Komvos_BiCGStabKernels.hpp
/// The vector work of BiCGStab, fused: each kernel reads and writes every vector once.
///
/// Kernels work on one column; all views are [rows]. Dots are (a, b) = sum of conj(a_i) b_i over the rows of this rank,
/// in an order that depends on the number of threads alone.
#pragma once

#include <Kokkos_Core.hpp>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "Komvos_KokkosShim.hpp"

namespace Komvos::Impl {

/// conj(a) b
template <class Value>
KOKKOS_INLINE_FUNCTION Value product(const Value& a, const Value& b) {
  if constexpr (std::is_floating_point_v<Value>) {
    return a * b;
  } else {
    return Kokkos::conj(a) * b;
  }
}

/// Calls `row(i, sums)` for all rows; `sums` are Row::dots numbers to which it adds. On the host the sums of a few rows
/// stay in registers.
template <class Row, class ExecutionSpace>
struct RowsWithDots {
  using execution_space = ExecutionSpace;
  using scalar = typename Row::scalar;
  using value_type = scalar[];
  using size_type = int;
  static constexpr int rowsAtOnce = runsOnHost<ExecutionSpace>() ? 256 : 1;

  Row row;
  int numRows;
  unsigned value_count = Row::dots;

  KOKKOS_INLINE_FUNCTION void operator()(int chunk, scalar* result) const {
    scalar sums[Row::dots];
    for (int d = 0; d < Row::dots; ++d) {
      sums[d] = scalar(0);
    }
    const int begin = chunk * rowsAtOnce;
    const int end = begin + rowsAtOnce < numRows ? begin + rowsAtOnce : numRows;
    for (int i = begin; i < end; ++i) {
      row(i, sums);
    }
    for (int d = 0; d < Row::dots; ++d) {
      result[d] += sums[d];
    }
  }
};

/// Runs the rows, waits for them, and returns the dots of this rank.
template <class Row, class ExecutionSpace>
std::array<typename Row::scalar, Row::dots> runRows(const ExecutionSpace& space, const std::string& label, int numRows,
                                                    const Row& row) {
  using Functor = RowsWithDots<Row, ExecutionSpace>;
  std::array<typename Row::scalar, Row::dots> sums{};
  const int chunks = (numRows + Functor::rowsAtOnce - 1) / Functor::rowsAtOnce;
  Kokkos::View<typename Row::scalar*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> result(sums.data(), Row::dots);
  Kokkos::parallel_reduce(label, range(space, 0, chunks), Functor{row, numRows}, result);
  fence(space, "Komvos::BiCGStab: dots are needed on the host");
  return sums;
}

/// As runRows(), in an order that does not depend on the number of threads either: where each rank computes the dots of
/// whole vectors, all must get the same bits. \param partial scratch, made as large as needed
template <class Row, class ExecutionSpace, class Device>
std::array<typename Row::scalar, Row::dots> runRowsInOrder(const ExecutionSpace& space, const std::string& label,
                                                           int numRows, const Row& row,
                                                           Kokkos::View<typename Row::scalar*, Device>& partial) {
  using scalar = typename Row::scalar;
  constexpr bool onHost = runsOnHost<ExecutionSpace>();
  const int rowsAtOnce = 1024;
  const int chunks = (numRows + rowsAtOnce - 1) / rowsAtOnce;
  const auto size = static_cast<std::size_t>(chunks) * Row::dots;
  if (partial.extent(0) < size) {
    partial = Kokkos::View<scalar*, Device>("Komvos::BiCGStab: dots of chunks", size);
  }
  const auto parts = partial;
  Kokkos::parallel_for(
      label, range(space, 0, chunks), KOKKOS_LAMBDA(int chunk) {
        scalar sums[Row::dots];
        for (int d = 0; d < Row::dots; ++d) {
          sums[d] = scalar(0);
        }
        // On a device neighbouring threads take neighbouring rows.
        const int begin = onHost ? chunk * rowsAtOnce : chunk, step = onHost ? 1 : chunks;
        const int end = onHost && begin + rowsAtOnce < numRows ? begin + rowsAtOnce : numRows;
        for (int i = begin; i < end; i += step) {
          row(i, sums);
        }
        for (int d = 0; d < Row::dots; ++d) {
          parts(chunk * Row::dots + d) = sums[d];
        }
      });
  fence(space, "Komvos::BiCGStab: dots are needed on the host");
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), parts);
  std::array<scalar, Row::dots> sums{};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int d = 0; d < Row::dots; ++d) {
      sums[d] += host(chunk * Row::dots + d);
    }
  }
  return sums;
}

/// values(i) += scale * sign, where signs depend on the global index and the seed alone: the same on any number of
/// ranks.
template <class ExecutionSpace, class LocalMap, class Vector>
void addSigns(const ExecutionSpace& space, const LocalMap& map, const Vector& values,
              const typename Vector::non_const_value_type& scale, std::uint64_t seed) {
  Kokkos::parallel_for(
      "Komvos::PipelinedBiCGStab: random signs", range(space, 0, static_cast<int>(values.extent(0))),
      KOKKOS_LAMBDA(int i) {
        auto bits = static_cast<std::uint64_t>(map.getGlobalElement(i)) + (seed + 1) * 0x9e3779b97f4a7c15U;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;  // splitmix64
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
        if (((bits >> 40) & 1U) != 0) {
          values(i) += scale;
        } else {
          values(i) -= scale;
        }
      });
  fence(space, "Komvos::PipelinedBiCGStab: the vector is used as a whole");
}

/// What a kernel of the pipelined method does: its dots can come after its updates, to hide something behind them.
enum class RowWork { updatesAndDots, updates, dots };

/// First half of a pipelined step. Reads 11 vectors, writes 4; 7 and 3 if there is no preconditioner (preconditioned
/// vectors are then the same views).
template <class Vector>
struct PipelinedDirections {
  using scalar = typename Vector::non_const_value_type;
  enum Dot { qy, yy, qq, pp, ss, sHatsHat, zz, wHatwHat, dots };

  Vector p, s, sHat, z;  ///< updated
  Vector r, rHat, w, wHat, zHat, t, v;
  scalar alpha, beta, omega;
  bool preconditioned;
  RowWork work;

  KOKKOS_INLINE_FUNCTION void operator()(int i, scalar* sums) const {
    const scalar wHatI = preconditioned ? wHat(i) : w(i);
    scalar pI, sI, sHatI, zI;
    if (work == RowWork::dots) {
      pI = p(i);
      sI = s(i);
      sHatI = preconditioned ? sHat(i) : sI;
      zI = z(i);
    } else {
      pI = preconditioned ? rHat(i) : r(i);
      sI = w(i);
      sHatI = wHatI;
      zI = t(i);
      if (beta != scalar(0)) {                                            // else the old directions may hold anything
        pI += beta * (p(i) - omega * (preconditioned ? sHat(i) : s(i)));  // p^ = r^ + beta (p^ - omega s^)
        sI += beta * (s(i) - omega * z(i));                               // s = w + beta (s - omega z)
        if (preconditioned) {
          sHatI += beta * (sHat(i) - omega * zHat(i));  // s^ = w^ + beta (s^ - omega z^)
        }
        zI += beta * (z(i) - omega * v(i));  // z = t + beta (z - omega v)
      }
      p(i) = pI;
      s(i) = sI;
      z(i) = zI;
      if (preconditioned) {
        sHat(i) = sHatI;
      }
      if (work == RowWork::updates) {
        return;
      }
    }
    const scalar q = r(i) - alpha * sI, y = w(i) - alpha * zI;
    if (preconditioned) {
      sums[sHatsHat] += product(sHatI, sHatI);
      sums[wHatwHat] += product(wHatI, wHatI);
    }
    sums[qy] += product(y, q);
    sums[yy] += product(y, y);
    sums[qq] += product(q, q);
    sums[pp] += product(pI, pI);
    sums[ss] += product(sI, sI);
    sums[zz] += product(zI, zI);
  }
};

/// Second half of a pipelined step. Reads 13 vectors, writes 4; 9 and 3 if there is no preconditioner. The dots
/// alone are also for vectors that were computed from their definitions.
template <class Vector>
struct PipelinedResiduals {
  using scalar = typename Vector::non_const_value_type;
  enum Dot { shadowR, shadowW, shadowS, shadowZ, rr, xx, rHatrHat, ww, zHatzHat, shadowShadow, dots };

  Vector x, r, rHat, w;  ///< updated
  Vector p, s, sHat, z, wHat, zHat, t, v, shadow;
  scalar alpha, omega;
  bool preconditioned;
  RowWork work;

  KOKKOS_INLINE_FUNCTION void operator()(int i, scalar* sums) const {
    scalar xI = x(i), rI = r(i), wI = w(i);
    scalar rHatI = preconditioned ? rHat(i) : rI;
    if (work != RowWork::dots) {
      const scalar q = rI - alpha * s(i), y = wI - alpha * z(i);
      const scalar qHat = preconditioned ? rHatI - alpha * sHat(i) : q;
      xI += alpha * p(i) + omega * qHat;                                         // x += alpha p^ + omega q^
      rI = q - omega * y;                                                        // r = q - omega y
      rHatI = preconditioned ? qHat - omega * (wHat(i) - alpha * zHat(i)) : rI;  // r^ = q^ - omega (w^ - alpha z^)
      wI = y - omega * (t(i) - alpha * v(i));                                    // w = y - omega (t - alpha v)
      x(i) = xI;
      r(i) = rI;
      w(i) = wI;
      if (preconditioned) {
        rHat(i) = rHatI;
      }
      if (work == RowWork::updates) {
        return;
      }
    }
    sums[shadowR] += product(shadow(i), rI);
    sums[shadowW] += product(shadow(i), wI);
    sums[shadowS] += product(shadow(i), s(i));
    sums[shadowZ] += product(shadow(i), z(i));
    sums[shadowShadow] += product(shadow(i), shadow(i));
    sums[rr] += product(rI, rI);
    sums[xx] += product(xI, xI);
    sums[ww] += product(wI, wI);
    if (preconditioned) {
      sums[rHatrHat] += product(rHatI, rHatI);
      sums[zHatzHat] += product(zHat(i), zHat(i));
    }
  }
};

/// Merged, not pipelined: after s = A p^. Reads 2 vectors.
template <class Vector>
struct MergedShadowDots {
  using scalar = typename Vector::non_const_value_type;
  enum Dot { shadowS, ss, dots };

  Vector shadow, s;

  KOKKOS_INLINE_FUNCTION void operator()(int i, scalar* sums) const {
    sums[shadowS] += product(shadow(i), s(i));
    sums[ss] += product(s(i), s(i));
  }
};

/// q = r - alpha s. Reads 2 vectors, writes 1.
template <class Vector>
struct MergedHalfStep {
  using scalar = typename Vector::non_const_value_type;

  Vector r, s;
  scalar alpha;

  KOKKOS_INLINE_FUNCTION void operator()(int i) const { r(i) -= alpha * s(i); }
};

/// After y = A q^. Reads 3 vectors.
template <class Vector>
struct MergedStabilizerDots {
  using scalar = typename Vector::non_const_value_type;
  enum Dot { qy, yy, qq, shadowQ, shadowY, shadowShadow, dots };

  Vector q, y, shadow;

  KOKKOS_INLINE_FUNCTION void operator()(int i, scalar* sums) const {
    sums[qy] += product(y(i), q(i));
    sums[yy] += product(y(i), y(i));
    sums[qq] += product(q(i), q(i));
    sums[shadowQ] += product(shadow(i), q(i));
    sums[shadowY] += product(shadow(i), y(i));
    sums[shadowShadow] += product(shadow(i), shadow(i));
  }
};

/// The end of a step, and the direction of the next one. Reads 7 vectors, writes 3.
template <class Vector>
struct MergedUpdate {
  using scalar = typename Vector::non_const_value_type;

  Vector x, r, p;  ///< updated; r holds q before
  Vector pHat, qHat, s, y;
  scalar alpha, beta, omega;

  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    x(i) += alpha * pHat(i) + omega * qHat(i);
    const scalar rI = r(i) - omega * y(i);
    r(i) = rI;
    p(i) = rI + beta * (p(i) - omega * s(i));
  }
};

}  // namespace Komvos::Impl
