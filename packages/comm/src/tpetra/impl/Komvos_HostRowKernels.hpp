/// \file Komvos_HostRowKernels.hpp
/// Products of rows on the host, at the speed at which memory delivers the matrix.
#pragma once

#include <cstddef>
#include <utility>

#include "Komvos_CrsRowKernels.hpp"

// How this works. The least that must be read for an entry is its value, 8 bytes, and a column index, 4 bytes. Rows of
// systems (elasticity, flow) come in runs with the same columns, one row for each unknown of a mesh node. Such a block
// of up to four rows has one list of columns here, and is multiplied as one: an entry of x is loaded once for all its
// rows. The lists of all blocks are one array of their own. For a row the length is stored, not its offset.
//
// Blocks read their values in several short streams, which the processor does not predict, and runs of rows that
// alternate with others begin anew each time: the values to come are prefetched.
//
// A row is summed in four parts, since one alone would wait for the latency of its additions; they are added in the
// order in which Kokkos Kernels adds them on the host, so that results there are the same bits.
//
// Rows of stencils are short, and loops over their entries cost more than the entries: up to maxShortRow entries are
// written out, once for each length, and runs of rows of one length are multiplied without asking for it again.
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

inline void prefetch(const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
#else
  static_cast<void>(address);
#endif
}

#if defined(__GNUC__) && !defined(__CUDACC__)
#define KOMVOS_ALWAYS_INLINE __attribute__((always_inline))
#else
#define KOMVOS_ALWAYS_INLINE
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
inline void prefetchValues(const Scalar* values) {
  constexpr std::size_t distance = Rows == 1 ? 2048 : 4096;
  constexpr std::size_t bytes = 4 * Rows * sizeof(Scalar);
  const char* const address = reinterpret_cast<const char*>(values) + distance;
  for (std::size_t line = 0; line < bytes; line += 64) {
    prefetch(address + line);
  }
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
  Scalar total() const { return sum0 + sum1 + sum2 + sum3; }
};

/// `Rows` rows of the same `count` columns, whose values follow one another, by one column of x.
template <int Rows, class Scalar, class Index, class Source>
inline void multiplyByColumn(const Scalar* values, const Index* columns, int count, const Source& x,
                             const RowResult<Scalar>& result, int row, int column) {
  constexpr std::make_integer_sequence<int, Rows> rows;
  PartialSums<Scalar> sums[Rows];
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    prefetchValues<Rows>(values + static_cast<std::ptrdiff_t>(Rows) * k);
    const Scalar x0 = x(columns[k], 0), x1 = x(columns[k + 1], 0), x2 = x(columns[k + 2], 0), x3 = x(columns[k + 3], 0);
    forEachRow(rows, [&](auto r) { sums[r].add(values + static_cast<std::ptrdiff_t>(r) * count + k, x0, x1, x2, x3); });
  }
  for (; k < count; ++k) {
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

/// The same by `Width` columns of x at once.
template <int Rows, int Width, class Scalar, class Index>
inline void multiplyByColumns(const Scalar* values, const Index* columns, int count, const RowMajor<Scalar>& x,
                              const RowResult<Scalar>& result, int row, int column) {
  constexpr std::make_integer_sequence<int, Rows> rows;
  Scalar sums[Rows][Width] = {};
  const auto addEntry = [&](int k) {
    const Scalar* const entry = x.at(columns[k]);
    forEachRow(rows, [&](auto r) {
      const Scalar value = values[static_cast<std::ptrdiff_t>(r) * count + k];
      for (int w = 0; w < Width; ++w) {
        sums[r][w] += value * entry[w];
      }
    });
  };
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    prefetchValues<Rows>(values + static_cast<std::ptrdiff_t>(Rows) * k);
    addEntry(k);
    addEntry(k + 1);
    addEntry(k + 2);
    addEntry(k + 3);
  }
  for (; k < count; ++k) {
    addEntry(k);
  }
  forEachRow(rows, [&](auto r) {
    for (int w = 0; w < Width; ++w) {
      result.store(row + r, column + w, sums[r][w]);
    }
  });
}

/// Intervals of units. \tparam Blocks whether units have more than one row
template <class Scalar, class Index, class LocalSource, class GhostSource, int Width, bool Blocks>
struct MultiplyIntervals {
  const RowInterval* intervals;
  const int* units;
  const Index* columns;
  const Scalar* values;
  LocalSource local;       ///< for intervals without ghosts
  GhostSource withGhosts;  ///< for the others
  RowResult<Scalar> result;
  int firstColumn;

  void operator()(int i) const {
    const RowInterval interval = intervals[i];
    if (interval.needsGhosts) {
      multiply(interval, withGhosts);
    } else {
      multiply(interval, local);
    }
  }

 private:
  /// More columns leave no registers for several rows.
  static constexpr bool rowsTogether = Width < 4;

  template <class Source>
  void multiply(const RowInterval& interval, const Source& x) const {
    if constexpr (Width == 1 && !Blocks) {
      multiplySingleRows(interval, x);
    } else {
      multiplyUnits(interval, x);
    }
  }

  template <class Source>
  void multiplyUnits(const RowInterval& interval, const Source& x) const {
    const Scalar* value = values + interval.firstEntry;
    const Index* column = columns + interval.firstIndex;
    int row = interval.firstRow;
    for (const int *unit = units + interval.firstUnit, *end = unit + interval.count; unit < end; ++unit) {
      const int count = columnsOfUnit(*unit);
      const int rows = Blocks ? rowsOfUnit(*unit) : 1;
      multiplyUnit(value, column, count, x, row, rows);
      value += static_cast<std::ptrdiff_t>(rows) * count;
      column += count;
      row += rows;
    }
  }

  template <class Source>
  void multiplySingleRows(const RowInterval& interval, const Source& x) const {
    // Copies, which no result that is stored can change: they stay in registers.
    const RowResult<Scalar> toResult = result;
    const Source source = x;
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
          toResult.store(row, firstColumn, multiplyShortRow<n>(value, column, source));
          value += n;
          column += n;
          ++row;
        } while (++unit < end && *unit == length);
        return true;
      };
      if (!firstThatFits(std::make_integer_sequence<int, maxShortRow>(), multiplyRun)) {
        multiplyByColumn<1>(value, column, count, source, toResult, row, firstColumn);
        value += count;
        column += count;
        ++row;
        ++unit;
      }
    }
  }

  template <class Source>
  void multiplyUnit(const Scalar* value, const Index* column, int count, const Source& x, int row, int rows) const {
    if constexpr (Blocks && rowsTogether) {
      switch (rows) {
        case 1:
          return multiplyRows<1>(value, column, count, x, row);
        case 2:
          return multiplyRows<2>(value, column, count, x, row);
        case 3:
          return multiplyRows<3>(value, column, count, x, row);
        default:
          return multiplyRows<4>(value, column, count, x, row);
      }
    } else {
      for (int r = 0; r < rows; ++r, value += count) {
        multiplyRows<1>(value, column, count, x, row + r);
      }
    }
  }

  template <int Rows, class Source>
  void multiplyRows(const Scalar* value, const Index* column, int count, const Source& x, int row) const {
    if constexpr (Width == 1) {
      multiplyByColumn<Rows>(value, column, count, x, result, row, firstColumn);
    } else {
      multiplyByColumns<Rows, Width>(value, column, count, x, result, row, firstColumn);
    }
  }
};

}  // namespace Komvos::Impl
