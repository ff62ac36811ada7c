/// \file Komvos_HostRowKernels.hpp
/// Products of rows on the host, at the speed at which memory delivers the matrix.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_CrsRowKernels.hpp"

// How this works. The least that must be read for an entry is its value, 8 bytes, and a column index, 4 bytes. Rows of
// systems (elasticity, flow) come in runs with the same columns, one row for each unknown of a mesh node. Such a block
// of up to four rows has one list of columns here, and is multiplied as one: an entry of x is loaded once for all its
// rows. The lists of all blocks are one array of their own. For a row the length is stored, not its offset.
//
// Blocks read their values in several short streams, which the processor does not predict, and runs of rows that
// alternate with others begin anew each time: the values to come are prefetched.
//
// Where rows are numbered badly, so that each entry of x is in a cache line of its own, and x is larger than a cache,
// the processor waits for x: then entries of x are prefetched, too. Or, where rows are long, no rows are joined, and
// one or two columns of x are multiplied at a time, loops are not unrolled, which was found to be faster: on a Zen 4
// random rows of 25 entries take 0.85 to 0.9 of the time with prefetching. The reason may be that one instruction loads
// x, in the place of four.
//
// A row is summed in four parts, since one alone would wait for the latency of its additions; they are added in the
// order in which Kokkos Kernels adds them on the host, so that results there are the same bits.
//
// Several columns of x are multiplied in vectors. Processors with AVX2 have longer ones than all x86 processors have:
// for them there is a second copy of these kernels (WithAvx2), which adds in the same order and does not contract
// products and sums, so that results are the same bits.
//
// Rows of stencils are short, and loops over their entries cost more than the entries: up to maxShortRow entries are
// written out, once for each length, and runs of rows of one length are multiplied without asking for it again. There
// is a copy of these loops for y = A x, which most products are: to ask each row for alpha and beta costs a fifth of
// it.
namespace Komvos::Impl {

/// Consecutive units of one class, and where they begin.
struct RowInterval {
  int firstRow;
  int firstUnit;
  int count;  ///< units
  bool needsGhosts;
  std::size_t firstEntry;  ///< in the values of the matrix
  std::size_t firstIndex;  ///< in the column indices of the units
};

/// A unit is a block of 1 to 4 rows with the same columns, as one number.
constexpr int maxRowsOfUnit = 4;
constexpr std::size_t maxColumnsOfUnit = (1u << 29) - 1;
constexpr int toUnit(int rows, int columns) { return columns * maxRowsOfUnit + rows - 1; }
constexpr int rowsOfUnit(int unit) { return unit % maxRowsOfUnit + 1; }
constexpr int columnsOfUnit(int unit) { return unit / maxRowsOfUnit; }

#if defined(__GNUC__) && !defined(__CUDACC__)
#define KOMVOS_ALWAYS_INLINE __attribute__((always_inline))
#else
#define KOMVOS_ALWAYS_INLINE
#endif

#if defined(__clang__)
#define KOMVOS_NO_UNROLLING _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define KOMVOS_NO_UNROLLING _Pragma("GCC unroll 1")
#else
#define KOMVOS_NO_UNROLLING
#endif

/// To be inlined at once: GCC drops calls of functions that do nothing but prefetch.
KOMVOS_ALWAYS_INLINE inline void prefetch(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#else
  static_cast<void>(address);
#endif
}

#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && defined(__x86_64__)
#define KOMVOS_HAVE_AVX2_TWIN 1
inline bool cpuHasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

/// The same work, compiled for AVX2.
template <class Work>
struct WithAvx2 {
  Work work;
  __attribute__((target("avx2"), flatten)) void operator()(int i) const { work(i); }
};
#endif

/// `work(r)` for r = 0 to Rows - 1, without a loop: the compiler shall keep what belongs to a row in registers.
template <class Work, int... R>
inline void forEachRow(std::integer_sequence<int, R...>, const Work& work) {
  (work(std::integral_constant<int, R>()), ...);
}

/// `work(n)` for n = 0, 1, ... until it returns true. \return whether it did
template <class Work, int... N>
inline bool firstThatFits(std::integer_sequence<int, N...>, const Work& work) {
  return (work(std::integral_constant<int, N>()) || ...);
}

/// Values that will be read in about a microsecond: `Rows` rows for four entries read so many bytes.
template <int Rows, class Scalar>
KOMVOS_ALWAYS_INLINE inline void prefetchValues(const Scalar* values) {
  constexpr std::size_t distance = Rows == 1 ? 2048 : 4096;
  constexpr std::size_t bytes = 4 * Rows * sizeof(Scalar);
  const char* const address = reinterpret_cast<const char*>(values) + distance;
  for (std::size_t line = 0; line < bytes; line += 64) {
    prefetch(address + line);
  }
}

/// In the place of PrefetchX where entries of x are in the caches anyway: asking would cost a few percent.
struct NoPrefetch {
  NoPrefetch from(std::ptrdiff_t) const { return {}; }
  template <int Count, int Width, class Source>
  void ask(const Source&, std::ptrdiff_t) const {}
};

/// In the same place: loops are not unrolled, and nothing is asked for.
struct Rolled : NoPrefetch {
  Rolled from(std::ptrdiff_t) const { return {}; }
};

/// Asks for entries of x that will be needed soon.
template <class Index>
class PrefetchX {
 public:
  PrefetchX() = default;
  bool isOn() const { return columns_ != nullptr; }
  /// \param indices from here on to the end of the matrix
  PrefetchX(const Index* columns, std::ptrdiff_t indices) : columns_(columns), last_(indices - distance) {}
  PrefetchX from(std::ptrdiff_t first) const { return PrefetchX(columns_ + first, last_ - first, {}); }

  /// For the products of entries k to k + Count - 1.
  template <int Count, int Width, class Source>
  KOMVOS_ALWAYS_INLINE inline void ask(const Source& x, std::ptrdiff_t k) const {
    if (k + Count <= last_) {
      for (int i = 0; i < Count; ++i) {
        const auto* const entry = x.at(columns_[k + distance + i]);
        prefetch(entry);
        if constexpr (Width > 1) {
          prefetch(entry + Width - 1);
        }
      }
    }
  }

 private:
  static constexpr std::ptrdiff_t distance = 32;  // indices
  struct AsItIs {};
  PrefetchX(const Index* columns, std::ptrdiff_t last, AsItIs) : columns_(columns), last_(last) {}
  const Index* columns_ = nullptr;
  std::ptrdiff_t last_ = 0;
};

/// Whether rows are numbered so badly that most entries of x are in cache lines that were not used lately. From
/// samples: runs of indices, in each of which the lines are counted.
template <class Index>
bool isScattered(const Index* columns, std::ptrdiff_t count, std::size_t valueBytes) {
  constexpr std::ptrdiff_t run = 1024, runs = 64;
  constexpr unsigned places = 4096;  // so many that few lines share one
  const auto perLine = std::max<Index>(1, static_cast<Index>(64 / valueBytes));
  std::vector<Index> lineAt(places, -1);
  std::ptrdiff_t asked = 0, lines = 0;
  for (std::ptrdiff_t first = 0; first < count; first += std::max(run, count / runs)) {
    const std::ptrdiff_t last = std::min(count, first + run);
    for (std::ptrdiff_t k = first; k < last; ++k) {
      const Index line = columns[k] / perLine;
      Index& there = lineAt[static_cast<unsigned>(line) * 2654435769u >> 20];  // 12 bits
      lines += there != line ? 1 : 0;
      there = line;
    }
    asked += last - first;
  }
  return 4 * lines > asked;
}

template <class Scalar>
struct PartialSums {
  Scalar sum0{}, sum1{}, sum2{}, sum3{};
  void add(const Scalar* values, const Scalar& x0, const Scalar& x1, const Scalar& x2, const Scalar& x3) {
    sum0 += values[0] * x0;
    sum1 += values[1] * x1;
    sum2 += values[2] * x2;
    sum3 += values[3] * x3;
  }
  /// Adds to the first of the four, and moves on: after four calls each is in its place again.
  void addInTurn(const Scalar& product) {
    const Scalar next = sum0 + product;
    sum0 = sum1;
    sum1 = sum2;
    sum2 = sum3;
    sum3 = next;
  }
  Scalar total() const { return sum0 + sum1 + sum2 + sum3; }
};

/// A row by one column of x, without unrolling: the same bits as multiplyByColumn.
template <class Scalar, class Index, class Source>
inline void multiplyRolled(const Scalar* values, const Index* columns, int count, const Source& x,
                           const RowResult<Scalar>& result, int row, int column) {
  PartialSums<Scalar> sums;
  const int whole = count / 4 * 4;
  KOMVOS_NO_UNROLLING
  for (int k = 0; k < whole; ++k) {
    sums.addInTurn(values[k] * x(columns[k], 0));
  }
  KOMVOS_NO_UNROLLING
  for (int k = whole; k < count; ++k) {
    sums.sum0 += values[k] * x(columns[k], 0);
  }
  result.store(row, column, sums.total());
}

/// `Rows` rows of the same `count` columns, whose values follow one another, by one column of x.
template <int Rows, class Scalar, class Index, class Source, class Ahead = NoPrefetch>
inline void multiplyByColumn(const Scalar* values, const Index* columns, int count, const Source& x,
                             const RowResult<Scalar>& result, int row, int column, const Ahead& ahead = {}) {
  constexpr std::make_integer_sequence<int, Rows> rows;
  PartialSums<Scalar> sums[Rows];
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    prefetchValues<Rows>(values + static_cast<std::ptrdiff_t>(Rows) * k);
    ahead.template ask<4, 1>(x, k);
    const Scalar x0 = x(columns[k], 0), x1 = x(columns[k + 1], 0), x2 = x(columns[k + 2], 0), x3 = x(columns[k + 3], 0);
    forEachRow(rows, [&](auto r) { sums[r].add(values + static_cast<std::ptrdiff_t>(r) * count + k, x0, x1, x2, x3); });
  }
  for (; k < count; ++k) {
    ahead.template ask<1, 1>(x, k);
    const Scalar x0 = x(columns[k], 0);
    forEachRow(rows, [&](auto r) { sums[r].sum0 += values[static_cast<std::ptrdiff_t>(r) * count + k] * x0; });
  }
  forEachRow(rows, [&](auto r) { result.store(row + r, column, sums[r].total()); });
}

constexpr int maxShortRow = 9;

/// A row of `Count` entries by one column of x: the same bits as multiplyByColumn, whose sums begin with zero and so
/// are never -0.
template <int Count, class Scalar, class Index, class Source>
KOMVOS_ALWAYS_INLINE inline Scalar multiplyShortRow(const Scalar* values, const Index* columns, const Source& x) {
  static_assert(Count > 0 && Count < 12, "at most two entries in each of four parts, and what remains");
  // A call for each entry would take several times as long as its product.
  const auto term = [&](int k) KOMVOS_ALWAYS_INLINE -> Scalar { return values[k] * x(columns[k], 0); };
  Scalar sum = term(0);
  if constexpr (Count < 4) {
    for (int k = 1; k < Count; ++k) {
      sum += term(k);
    }
  } else {
    Scalar sum1 = term(1), sum2 = term(2), sum3 = term(3);
    if constexpr (Count >= 8) {
      sum += term(4);
      sum1 += term(5);
      sum2 += term(6);
      sum3 += term(7);
    }
    for (int k = Count / 4 * 4; k < Count; ++k) {
      sum += term(k);
    }
    sum = sum + sum1 + sum2 + sum3;
  }
  return sum + Scalar{};
}

/// A sum for each of `Width` columns. \tparam VectorBytes of a register
template <class Scalar, int Width, int VectorBytes, class = void>
class ColumnSum {
 public:
  KOMVOS_ALWAYS_INLINE inline void add(const Scalar& value, const Scalar* x) {
    for (int w = 0; w < Width; ++w) {
      sum_[w] += value * x[w];
    }
  }
  Scalar operator[](int w) const { return sum_[w]; }

 private:
  Scalar sum_[Width] = {};
};

#if defined(__GNUC__) && !defined(__CUDACC__)
/// As vectors, which the compiler does not always find by itself.
template <class Real, int Width, int VectorBytes>
class ColumnSum<Real, Width, VectorBytes,
                std::enable_if_t<std::is_floating_point_v<Real> && (Width & (Width - 1)) == 0>> {
  static constexpr int mostLanes = VectorBytes / static_cast<int>(sizeof(Real));
  static constexpr int lanes = Width < mostLanes ? Width : mostLanes, count = Width / lanes;
  typedef Real Vector __attribute__((vector_size(lanes * sizeof(Real))));

 public:
  KOMVOS_ALWAYS_INLINE inline void add(const Real& value, const Real* x) {
    for (int i = 0; i < count; ++i) {
      Vector entry;
      std::memcpy(&entry, x + i * lanes, sizeof(entry));
      sums_[i] += value * entry;
    }
  }
  Real operator[](int w) const { return sums_[w / lanes][w % lanes]; }

 private:
  Vector sums_[count] = {};
};

template <class Real, int VectorBytes>
class ColumnSum<Real, 3, VectorBytes, std::enable_if_t<std::is_floating_point_v<Real>>> {
 public:
  KOMVOS_ALWAYS_INLINE inline void add(const Real& value, const Real* x) {
    firstTwo_.add(value, x);
    last_ += value * x[2];
  }
  Real operator[](int w) const { return w < 2 ? firstTwo_[w] : last_; }

 private:
  ColumnSum<Real, 2, VectorBytes> firstTwo_;
  Real last_{};
};
#endif

/// The same by `Width` columns of x at once.
template <int Rows, int Width, int VectorBytes, class Scalar, class Index, class Ahead>
inline void multiplyByColumns(const Scalar* values, const Index* columns, int count, const RowMajor<Scalar>& x,
                              const RowResult<Scalar>& result, int row, int column, const Ahead& ahead) {
  constexpr std::make_integer_sequence<int, Rows> rows;
  ColumnSum<Scalar, Width, VectorBytes> sums[Rows];
  const auto addEntry = [&](int k) KOMVOS_ALWAYS_INLINE {
    const Scalar* const entry = x.at(columns[k]);
    forEachRow(rows, [&](auto r) { sums[r].add(values[static_cast<std::ptrdiff_t>(r) * count + k], entry); });
  };
  int k = 0;
  if constexpr (std::is_same_v<Ahead, Rolled>) {
    KOMVOS_NO_UNROLLING
    for (; k < count; ++k) {
      addEntry(k);
    }
  }
  for (; k + 4 <= count; k += 4) {
    prefetchValues<Rows>(values + static_cast<std::ptrdiff_t>(Rows) * k);
    ahead.template ask<4, Width>(x, k);
    addEntry(k);
    addEntry(k + 1);
    addEntry(k + 2);
    addEntry(k + 3);
  }
  for (; k < count; ++k) {
    ahead.template ask<1, Width>(x, k);
    addEntry(k);
  }
  forEachRow(rows, [&](auto r) {
    for (int w = 0; w < Width; ++w) {
      result.store(row + r, column + w, sums[r][w]);
    }
  });
}

/// Intervals of units. \tparam Blocks whether units have more than one row
/// \tparam VectorBytes of a register of the processor that it is compiled for
template <class Scalar, class Index, class LocalSource, class GhostSource, int Width, bool Blocks, int VectorBytes = 16>
struct MultiplyIntervals {
  const RowInterval* intervals;
  const int* units;
  const Index* columns;
  const Scalar* values;
  LocalSource local;       ///< for intervals without ghosts
  GhostSource withGhosts;  ///< for the others
  RowResult<Scalar> result;
  int firstColumn;
  PrefetchX<Index> prefetchesX = {};  ///< from the first index of the matrix on, if it is on
  bool rolls = false;                 ///< where that can be: see Rolled

  static constexpr bool canRoll = !Blocks && Width <= 2;

  void operator()(int i) const {
    if constexpr (canRoll) {
      if (rolls) {
        multiply(intervals[i], Rolled());
        return;
      }
    }
    if (prefetchesX.isOn()) {
      multiply(intervals[i], prefetchesX);
    } else {
      multiply(intervals[i], NoPrefetch());
    }
  }

 private:
  /// Whether the sums of a block fit into half of 16 registers.
  static constexpr bool rowsTogether = sizeof(Scalar) * Width * maxRowsOfUnit <= 8 * VectorBytes;

  template <class Ahead>
  void multiply(const RowInterval& interval, const Ahead& ahead) const {
    if (interval.needsGhosts) {
      multiplyBy(withGhosts, interval, ahead);
    } else {
      multiplyBy(local, interval, ahead);
    }
  }

  template <class Source, class Ahead>
  void multiplyBy(const Source& x, const RowInterval& interval, const Ahead& ahead) const {
    if constexpr (Width == 1 && !Blocks && !std::is_same_v<Ahead, Rolled>) {
      multiplySingleRows(interval, x, ahead);
    } else {
      multiplyUnits(interval, x, ahead);
    }
  }

  template <class Source, class Ahead>
  void multiplyUnits(const RowInterval& interval, const Source& x, const Ahead& ahead) const {
    const Scalar* value = values + interval.firstEntry;
    const Index* column = columns + interval.firstIndex;
    int row = interval.firstRow;
    for (const int *unit = units + interval.firstUnit, *end = unit + interval.count; unit < end; ++unit) {
      const int count = columnsOfUnit(*unit);
      const int rows = Blocks ? rowsOfUnit(*unit) : 1;
      multiplyUnit(value, column, count, x, row, rows, ahead.from(column - columns));
      value += static_cast<std::ptrdiff_t>(rows) * count;
      column += count;
      row += rows;
    }
  }

  template <class Source, class Ahead>
  void multiplySingleRows(const RowInterval& interval, const Source& x, const Ahead& ahead) const {
    // A copy, which no result that is stored can change: it stays in registers.
    const RowResult<Scalar> toResult = result;
    if (result.alpha == Scalar(1) && result.beta == Scalar{}) {
      Scalar* const y = result.y.columnAt(firstColumn);
      multiplyRuns(interval, x, ahead, [=](int row, const Scalar& sum) KOMVOS_ALWAYS_INLINE { y[row] = sum; });
    } else {
      multiplyRuns(interval, x, ahead, [=, column = firstColumn](int row, const Scalar& sum) KOMVOS_ALWAYS_INLINE {
        toResult.store(row, column, sum);
      });
    }
  }

  /// \param store (row, sum) sets the result of a row
  template <class Source, class Ahead, class Store>
  void multiplyRuns(const RowInterval& interval, const Source& x, const Ahead& ahead, const Store& store) const {
    const Source source = x;  // as above
    const Scalar* value = values + interval.firstEntry;
    const Index* column = columns + interval.firstIndex;
    int row = interval.firstRow;
    for (const int *unit = units + interval.firstUnit, *end = unit + interval.count; unit < end;) {
      const int length = *unit, count = columnsOfUnit(length);
      const auto multiplyRun = [&](auto shortCount) {
        constexpr int n = decltype(shortCount)::value + 1;
        if (n != count) {
          return false;
        }
        do {
          prefetchValues<1>(value);
          ahead.template ask<n, 1>(source, column - columns);
          store(row, multiplyShortRow<n>(value, column, source));
          value += n;
          column += n;
          ++row;
        } while (++unit < end && *unit == length);
        return true;
      };
      if (!firstThatFits(std::make_integer_sequence<int, maxShortRow>(), multiplyRun)) {
        multiplyByColumn<1>(value, column, count, source, result, row, firstColumn, ahead.from(column - columns));
        value += count;
        column += count;
        ++row;
        ++unit;
      }
    }
  }

  template <class Source, class Ahead>
  void multiplyUnit(const Scalar* value, const Index* column, int count, const Source& x, int row, int rows,
                    const Ahead& ahead) const {
    if constexpr (Blocks && rowsTogether) {
      switch (rows) {
        case 1:
          return multiplyRows<1>(value, column, count, x, row, ahead);
        case 2:
          return multiplyRows<2>(value, column, count, x, row, ahead);
        case 3:
          return multiplyRows<3>(value, column, count, x, row, ahead);
        default:
          return multiplyRows<4>(value, column, count, x, row, ahead);
      }
    } else {
      multiplyRows<1>(value, column, count, x, row, ahead);
      for (int r = 1; r < rows; ++r) {
        multiplyRows<1>(value + static_cast<std::ptrdiff_t>(r) * count, column, count, x, row + r, NoPrefetch());
      }
    }
  }

  template <int Rows, class Source, class Ahead>
  void multiplyRows(const Scalar* value, const Index* column, int count, const Source& x, int row,
                    const Ahead& ahead) const {
    if constexpr (Width == 1 && std::is_same_v<Ahead, Rolled>) {
      multiplyRolled(value, column, count, x, result, row, firstColumn);
    } else if constexpr (Width == 1) {
      multiplyByColumn<Rows>(value, column, count, x, result, row, firstColumn, ahead);
    } else {
      multiplyByColumns<Rows, Width, VectorBytes>(value, column, count, x, result, row, firstColumn, ahead);
    }
  }
};

}  // namespace Komvos::Impl
