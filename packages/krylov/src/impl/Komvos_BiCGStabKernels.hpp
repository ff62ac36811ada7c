/// \file Komvos_BiCGStabKernels.hpp
/// The vector work of BiCGStab, fused: each kernel reads and writes every vector once.
///
/// Kernels work on one column; all views are [rows], contiguous. Dots are (a, b) = sum of conj(a_i) b_i over the rows
/// of this rank, in an order that depends on the number of threads alone.
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "Komvos_KokkosShim.hpp"

// How this works. A kernel is a struct with `rows(at, sums)`, the work of one row or of several at once: `at(vector)`
// reads it there, `at.write(vector, value)` writes it, and `sums` are the dots, of which each row adds to its own. On
// the host, rows of real numbers are worked on 16 bytes at a time: compilers make vectors of several rows, but not of
// sums whose order they must keep, and a sum in one number would wait for each addition before the next.
namespace Komvos::Impl {

/// conj(a) b
template <class Value>
KOKKOS_INLINE_FUNCTION Value product(const Value& a, const Value& b) {
  return a * b;
}
template <class Real>
KOKKOS_INLINE_FUNCTION Kokkos::complex<Real> product(const Kokkos::complex<Real>& a, const Kokkos::complex<Real>& b) {
  return Kokkos::conj(a) * b;
}

/// One row.
template <class Scalar>
struct OneRow {
  using value = Scalar;
  static constexpr int count = 1;
  int row;
  template <class Vector>
  KOKKOS_INLINE_FUNCTION Scalar operator()(const Vector& vector) const {
    return vector(row);
  }
  template <class Vector>
  KOKKOS_INLINE_FUNCTION void write(const Vector& vector, const Scalar& number) const {
    vector(row) = number;
  }
  static KOKKOS_INLINE_FUNCTION Scalar sum(const Scalar& one) { return one; }
};

#if defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
/// Rows on the host, as many as fit into the vectors that every x86 processor has: of longer ones the sums would not
/// fit into its registers.
template <class Real>
struct SomeRows {
  typedef Real value __attribute__((vector_size(16)));
  static constexpr int count = 16 / sizeof(Real);
  int row;
  template <class Vector>
  value operator()(const Vector& vector) const {
    value numbers;
    std::memcpy(&numbers, vector.data() + row, sizeof(numbers));
    return numbers;
  }
  template <class Vector>
  void write(const Vector& vector, const value& numbers) const {
    std::memcpy(vector.data() + row, &numbers, sizeof(numbers));
  }
  static Real sum(const value& numbers) {
    Real all = numbers[0];
    for (int i = 1; i < count; ++i) {
      all += numbers[i];
    }
    return all;
  }
};

/// Rows that are worked on at once.
template <class Scalar, bool OnHost, class = void>
struct RowsAtOnceOf {
  using type = OneRow<Scalar>;
};
template <class Real>
struct RowsAtOnceOf<Real, true, std::enable_if_t<std::is_same_v<Real, float> || std::is_same_v<Real, double>>> {
  using type = SomeRows<Real>;
};
template <class Scalar, bool OnHost>
using RowsAtOnce = typename RowsAtOnceOf<Scalar, OnHost>::type;
#else
template <class Scalar, bool>
using RowsAtOnce = OneRow<Scalar>;
#endif

/// Rows begin, begin + step, ... before `end`, by as many as `At` has at once. Adds to `sums` and returns the first row
/// that is left.
template <class At, class Row>
KOKKOS_INLINE_FUNCTION int runWhole(const Row& row, int begin, int end, int step, typename Row::scalar* sums) {
  constexpr int numSums = Row::dots > 0 ? static_cast<int>(Row::dots) : 1;
  typename At::value parts[numSums] = {};
  int i = begin;
  for (; i + At::count <= end; i += At::count * step) {
    row.rows(At{i}, parts);
  }
  for (int d = 0; d < Row::dots; ++d) {
    sums[d] += At::sum(parts[d]);
  }
  return i;
}

/// All of them. \tparam OnHost if so, and step is 1, several at once
template <bool OnHost, class Row>
KOKKOS_INLINE_FUNCTION void runAll(const Row& row, int begin, int end, int step, typename Row::scalar* sums) {
  using scalar = typename Row::scalar;
  if constexpr (OnHost) {
    if (step == 1) {
      begin = runWhole<RowsAtOnce<scalar, OnHost>>(row, begin, end, 1, sums);
    }
  }
  runWhole<OneRow<scalar>>(row, begin, end, step, sums);
}

/// Runs `row` over all rows, with dots. On the host those of a few rows stay in registers.
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
    runAll<runsOnHost<ExecutionSpace>()>(row, begin, end, 1, sums);
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

/// Runs the rows of a kernel without dots.
template <class Row, class ExecutionSpace>
struct RowsWithoutDots {
  static constexpr int rowsAtOnce = runsOnHost<ExecutionSpace>() ? 256 : 1;
  Row row;
  int numRows;
  KOKKOS_INLINE_FUNCTION void operator()(int chunk) const {
    const int begin = chunk * rowsAtOnce;
    const int end = begin + rowsAtOnce < numRows ? begin + rowsAtOnce : numRows;
    runAll<runsOnHost<ExecutionSpace>()>(row, begin, end, 1, static_cast<typename Row::scalar*>(nullptr));
  }
};

template <class Row, class ExecutionSpace>
void runUpdates(const ExecutionSpace& space, const std::string& label, int numRows, const Row& row) {
  using Functor = RowsWithoutDots<Row, ExecutionSpace>;
  const int chunks = (numRows + Functor::rowsAtOnce - 1) / Functor::rowsAtOnce;
  Kokkos::parallel_for(label, range(space, 0, chunks), Functor{row, numRows});
}

constexpr int rowsOfChunk = 1024;

/// Dots of the rows of a chunk: by one thread of a host, or by a team of a device, whose lanes take each every so
/// many-th row and are added up in their order.
template <class Row, class ExecutionSpace>
struct DotsOfChunk {
  using scalar = typename Row::scalar;
  using team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using scratch = Kokkos::View<scalar*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int rowsAtOnce = rowsOfChunk, lanes = 128, groups = 16;

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
    runAll<runsOnHost<ExecutionSpace>()>(row, begin, end, step, sums);
  }
};

/// Scratch for runRowsInOrder(): dots of chunks. Made before ranks depend on each other, as it may find no memory.
template <class Scalar, class Device>
struct PartialDots {
  using view = Kokkos::View<Scalar*, Device>;
  static constexpr int mostDots = 10;  ///< of any kernel

  PartialDots() = default;
  explicit PartialDots(int numRows)
      : parts("Komvos::BiCGStab: dots of chunks", (numRows + rowsOfChunk - 1) / rowsOfChunk * std::size_t(mostDots)),
        onHost(Kokkos::create_mirror_view(parts)) {}

  view parts;
  decltype(Kokkos::create_mirror_view(std::declval<const view&>())) onHost;
};

/// As runRows(), in an order that does not depend on the number of threads either: where each rank computes the dots of
/// whole vectors, all must get the same bits.
/// \param partial for as many rows
template <class Row, class ExecutionSpace, class Device>
std::array<typename Row::scalar, Row::dots> runRowsInOrder(const ExecutionSpace& space, const std::string& label,
                                                           int numRows, const Row& row,
                                                           const PartialDots<typename Row::scalar, Device>& partial,
                                                           bool byTeams = !runsOnHost<ExecutionSpace>()) {
  using scalar = typename Row::scalar;
  using Chunk = DotsOfChunk<Row, ExecutionSpace>;
  static_assert(Row::dots <= PartialDots<scalar, Device>::mostDots);
  const int chunks = (numRows + Chunk::rowsAtOnce - 1) / Chunk::rowsAtOnce;
  const auto size = static_cast<std::size_t>(chunks) * Row::dots;
  const Chunk chunk{row, numRows, partial.parts.data()};
  if (!byTeams) {
    Kokkos::parallel_for(label, range(space, 0, chunks), chunk);
  } else if (chunks > 0) {
    const int teamSize = runsOnHost<ExecutionSpace>() ? 1 : static_cast<int>(Chunk::lanes);
    Kokkos::parallel_for(label,
                         Kokkos::TeamPolicy<ExecutionSpace>(space, chunks, teamSize)
                             .set_scratch_size(0, Kokkos::PerTeam(Chunk::scratchBytes())),
                         chunk);
  }
  std::array<scalar, Row::dots> sums{};
  if constexpr (Row::dots > 0) {
    const auto used = std::make_pair(std::size_t(0), size);
    Kokkos::deep_copy(space, Kokkos::subview(partial.onHost, used), Kokkos::subview(partial.parts, used));
    fence(space, "Komvos::BiCGStab: dots are needed on the host");
    for (int chunkIndex = 0; chunkIndex < chunks; ++chunkIndex) {
      for (int d = 0; d < Row::dots; ++d) {
        sums[d] += partial.onHost(chunkIndex * Row::dots + d);
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

  template <class At, class Value>
  KOKKOS_FORCEINLINE_FUNCTION void rows(const At& at, Value* sums) const {
    const Value wHatI = preconditioned ? at(wHat) : at(w);
    Value pI, sI, sHatI, zI;
    if (work == RowWork::dots) {
      pI = at(p);
      sI = at(s);
      sHatI = preconditioned ? at(sHat) : sI;
      zI = at(z);
    } else {
      pI = preconditioned ? at(rHat) : at(r);
      sI = at(w);
      sHatI = wHatI;
      zI = at(t);
      if (beta != scalar(0)) {                                            // else the old directions may hold anything
        pI += beta * (at(p) - omega * (preconditioned ? at(sHat) : at(s)));  // p^ = r^ + beta (p^ - omega s^)
        sI += beta * (at(s) - omega * at(z));                                // s = w + beta (s - omega z)
        if (preconditioned) {
          sHatI += beta * (at(sHat) - omega * at(zHat));  // s^ = w^ + beta (s^ - omega z^)
        }
        zI += beta * (at(z) - omega * at(v));  // z = t + beta (z - omega v)
      }
      at.write(p, pI);
      at.write(s, sI);
      at.write(z, zI);
      if (preconditioned) {
        at.write(sHat, sHatI);
      }
      if (work == RowWork::updates) {
        return;
      }
    }
    const Value q = at(r) - alpha * sI, y = at(w) - alpha * zI;
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

  template <class At, class Value>
  KOKKOS_FORCEINLINE_FUNCTION void rows(const At& at, Value* sums) const {
    Value xI = at(x), rI = at(r), wI = at(w);
    Value rHatI = preconditioned ? at(rHat) : rI;
    if (work != RowWork::dots) {
      const Value q = rI - alpha * at(s), y = wI - alpha * at(z);
      const Value qHat = preconditioned ? rHatI - alpha * at(sHat) : q;
      xI += alpha * at(p) + omega * qHat;                                          // x += alpha p^ + omega q^
      rI = q - omega * y;                                                          // r = q - omega y
      rHatI = preconditioned ? qHat - omega * (at(wHat) - alpha * at(zHat)) : rI;  // r^ = q^ - omega (w^ - alpha z^)
      wI = y - omega * (at(t) - alpha * at(v));                                    // w = y - omega (t - alpha v)
      at.write(x, xI);
      at.write(r, rI);
      at.write(w, wI);
      if (preconditioned) {
        at.write(rHat, rHatI);
      }
      if (work == RowWork::updates) {
        return;
      }
    }
    const Value shadowI = at(shadow);
    sums[shadowR] += product(shadowI, rI);
    sums[shadowW] += product(shadowI, wI);
    sums[shadowS] += product(shadowI, at(s));
    sums[shadowZ] += product(shadowI, at(z));
    sums[shadowShadow] += product(shadowI, shadowI);
    sums[rr] += product(rI, rI);
    sums[xx] += product(xI, xI);
    sums[ww] += product(wI, wI);
    if (preconditioned) {
      sums[rHatrHat] += product(rHatI, rHatI);
      sums[zHatzHat] += product(at(zHat), at(zHat));
    }
  }
};

/// Merged, not pipelined: after s = A p^; and of a residual that was computed anew, in the place of s. Reads 2 vectors.
template <class Vector>
struct MergedShadowDots {
  using scalar = typename Vector::non_const_value_type;
  enum Dot { shadowS, ss, shadowShadow, dots };

  Vector shadow, s;

  template <class At, class Value>
  KOKKOS_FORCEINLINE_FUNCTION void rows(const At& at, Value* sums) const {
    const Value sI = at(s), shadowI = at(shadow);
    sums[shadowS] += product(shadowI, sI);
    sums[ss] += product(sI, sI);
    sums[shadowShadow] += product(shadowI, shadowI);
  }
};

/// q = r - alpha s. Reads 2 vectors, writes 1.
template <class Vector>
struct MergedHalfStep {
  using scalar = typename Vector::non_const_value_type;
  static constexpr int dots = 0;

  Vector r, s;
  scalar alpha;

  template <class At, class Value>
  KOKKOS_FORCEINLINE_FUNCTION void rows(const At& at, Value*) const {
    at.write(r, at(r) - alpha * at(s));
  }
};

/// After y = A q^. Reads 3 vectors.
template <class Vector>
struct MergedStabilizerDots {
  using scalar = typename Vector::non_const_value_type;
  enum Dot { qy, yy, qq, shadowQ, shadowY, dots };

  Vector q, y, shadow;

  template <class At, class Value>
  KOKKOS_FORCEINLINE_FUNCTION void rows(const At& at, Value* sums) const {
    const Value qI = at(q), yI = at(y), shadowI = at(shadow);
    sums[qy] += product(yI, qI);
    sums[yy] += product(yI, yI);
    sums[qq] += product(qI, qI);
    sums[shadowQ] += product(shadowI, qI);
    sums[shadowY] += product(shadowI, yI);
  }
};

/// The end of a step, and the direction of the next one. Reads 7 vectors, writes 3.
template <class Vector>
struct MergedUpdate {
  using scalar = typename Vector::non_const_value_type;
  static constexpr int dots = 0;

  Vector x, r, p;  ///< updated; r holds q before
  Vector pHat, qHat, s, y;
  scalar alpha, beta, omega;

  template <class At, class Value>
  KOKKOS_FORCEINLINE_FUNCTION void rows(const At& at, Value*) const {
    at.write(x, at(x) + alpha * at(pHat) + omega * at(qHat));
    const Value rI = at(r) - omega * at(y);
    at.write(r, rI);
    at.write(p, rI + beta * (at(p) - omega * at(s)));
  }
};

}  // namespace Komvos::Impl
