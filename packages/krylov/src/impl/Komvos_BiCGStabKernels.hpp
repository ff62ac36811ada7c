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

/// Dots of 1,024 rows: by one thread of a host, or by a team of a device, whose lanes take each every so many-th row
/// and are added up in their order.
template <class Row, class ExecutionSpace>
struct DotsOfChunk {
  using scalar = typename Row::scalar;
  using team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using scratch = Kokkos::View<scalar*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int rowsAtOnce = 1024, lanes = 128, groups = 16;

  Row row;
  int numRows;
  scalar* parts;  ///< [chunks x dots]

  KOKKOS_INLINE_FUNCTION void operator()(int chunk) const {
    const int begin = chunk * rowsAtOnce, end = begin + rowsAtOnce < numRows ? begin + rowsAtOnce : numRows;
    scalar sums[Row::dots];
    add(begin, end, 1, sums);
    for (int d = 0; d < Row::dots; ++d) {
      parts[chunk * Row::dots + d] = sums[d];
    }
  }

  static std::size_t scratchBytes() { return scratch::shmem_size((lanes + groups) * Row::dots); }
  KOKKOS_INLINE_FUNCTION void operator()(const team& member) const {
    const int chunk = member.league_rank(), begin = chunk * rowsAtOnce;
    const int end = begin + rowsAtOnce < numRows ? begin + rowsAtOnce : numRows;
    const scratch memory(member.team_scratch(0), (lanes + groups) * Row::dots);
    scalar *const ofLanes = memory.data(), *const ofGroups = ofLanes + lanes * Row::dots;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, lanes), [&](int lane) {
      scalar sums[Row::dots];
      add(begin + lane, end, lanes, sums);
      for (int d = 0; d < Row::dots; ++d) {
        ofLanes[d * lanes + lane] = sums[d];
      }
    });
    member.team_barrier();
    constexpr int perGroup = lanes / groups;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, Row::dots * groups), [&](int i) {
      scalar sum = scalar(0);
      for (int k = 0; k < perGroup; ++k) {
        sum += ofLanes[i * perGroup + k];
      }
      ofGroups[i] = sum;
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, static_cast<int>(Row::dots)), [&](int d) {
      scalar sum = scalar(0);
      for (int k = 0; k < groups; ++k) {
        sum += ofGroups[d * groups + k];
      }
      parts[chunk * Row::dots + d] = sum;
    });
  }

  KOKKOS_INLINE_FUNCTION void add(int begin, int end, int step, scalar* sums) const {
    for (int d = 0; d < Row::dots; ++d) {
      sums[d] = scalar(0);
    }
    for (int i = begin; i < end; i += step) {
      row(i, sums);
    }
  }
};

/// As runRows(), in an order that does not depend on the number of threads either: where each rank computes the dots of
/// whole vectors, all must get the same bits. \param partial scratch, made as large as needed
template <class Row, class ExecutionSpace, class Device>
std::array<typename Row::scalar, Row::dots> runRowsInOrder(const ExecutionSpace& space, const std::string& label,
                                                           int numRows, const Row& row,
                                                           Kokkos::View<typename Row::scalar*, Device>& partial,
                                                           bool byTeams = !runsOnHost<ExecutionSpace>()) {
  using scalar = typename Row::scalar;
  using Chunk = DotsOfChunk<Row, ExecutionSpace>;
  const int chunks = (numRows + Chunk::rowsAtOnce - 1) / Chunk::rowsAtOnce;
  const auto size = static_cast<std::size_t>(chunks) * Row::dots;
  if (partial.extent(0) < size) {
    partial = Kokkos::View<scalar*, Device>("Komvos::BiCGStab: dots of chunks", size);
  }
  const Chunk chunk{row, numRows, partial.data()};
  if (!byTeams) {
    Kokkos::parallel_for(label, range(space, 0, chunks), chunk);
  } else if (chunks > 0) {
    const int teamSize = runsOnHost<ExecutionSpace>() ? 1 : static_cast<int>(Chunk::lanes);
    Kokkos::parallel_for(label,
                         Kokkos::TeamPolicy<ExecutionSpace>(space, chunks, teamSize)
                             .set_scratch_size(0, Kokkos::PerTeam(Chunk::scratchBytes())),
                         chunk);
  }
  fence(space, "Komvos::BiCGStab: dots are needed on the host");
  std::array<scalar, Row::dots> sums{};
  if constexpr (Row::dots > 0) {
    const auto used = Kokkos::subview(partial, std::make_pair(std::size_t(0), size));
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), used);
    for (int chunkIndex = 0; chunkIndex < chunks; ++chunkIndex) {
      for (int d = 0; d < Row::dots; ++d) {
        sums[d] += host(chunkIndex * Row::dots + d);
      }
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
