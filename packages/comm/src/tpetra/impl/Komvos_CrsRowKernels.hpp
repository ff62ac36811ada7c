/// \file Komvos_CrsRowKernels.hpp
/// Row lists by what rows need, and the product over a list of rows.
#pragma once

#include "Komvos_GatherKernels.hpp"

namespace Komvos::Impl {

/// What the columns of a row, or one column, need.
enum class RowClass {
  local,   ///< owned values in place
  onNode,  ///< also ghosts that come straight from this node, or owned values that are permuted
  offNode  ///< also other ghosts
};
constexpr RowClass rowClasses[] = {RowClass::local, RowClass::onNode, RowClass::offNode};
constexpr int index(RowClass rowClass) { return static_cast<int>(rowClass); }

/// The class of a row is the highest of its columns.
template <class GhostClasses, class RowMap, class Columns, class ClassList>
struct ClassifyRows {
  GhostClasses ghostClasses;
  RowMap rowMap;
  Columns columns;
  ClassList rowClassOf;
  int numSame;
  KOKKOS_INLINE_FUNCTION void operator()(int row) const {
    RowClass highest = RowClass::local;
    for (std::size_t k = rowMap(row); k < rowMap(row + 1); ++k) {
      const int column = columns(k);
      const RowClass needed = column < numSame ? RowClass::local : ghostClasses(column - numSame);
      highest = needed > highest ? needed : highest;
    }
    rowClassOf(row) = highest;
  }
};

/// Writes the rows of one class, ascending, in a parallel_scan.
template <class ClassList, class RowList>
struct CompactRows {
  ClassList rowClassOf;
  RowList rows;
  RowClass wanted;
  KOKKOS_INLINE_FUNCTION void operator()(int row, int& position, bool final) const {
    if (rowClassOf(row) == wanted) {
      if (final) {
        rows(position) = row;
      }
      ++position;
    }
  }
};

template <class ClassList>
struct CountRows {
  ClassList rowClassOf;
  RowClass wanted;
  KOKKOS_INLINE_FUNCTION void operator()(int row, int& count) const { count += rowClassOf(row) == wanted ? 1 : 0; }
};

/// Entries of x by column index: one vector for all of them.
template <class Scalar>
struct OneVector {
  VectorAccess<const Scalar> x;

  struct Column {
    const Scalar* x;
    KOKKOS_FORCEINLINE_FUNCTION Scalar operator()(int entry) const { return x[entry]; }
  };
  KOKKOS_FORCEINLINE_FUNCTION Column column(int j) const { return {&x(0, j)}; }
};

/// Owned entries in place, ghosts in an array of their own.
template <class Scalar>
struct OwnedAndGhosts {
  VectorAccess<const Scalar> owned;
  VectorAccess<const Scalar> ghosts;
  int numSame;

  struct Column {
    const Scalar* owned;
    const Scalar* ghosts;
    int numSame;
    KOKKOS_FORCEINLINE_FUNCTION Scalar operator()(int entry) const {
      return entry < numSame ? owned[entry] : ghosts[entry - numSame];
    }
  };
  KOKKOS_FORCEINLINE_FUNCTION Column column(int j) const { return {&owned(0, j), &ghosts(0, j), numSame}; }
};

/// sum_k value(k) x(column(k)) over one row. Four partial sums, since one alone would wait for the latency of its
/// additions; added in the order Kokkos Kernels adds them on the host, so that results there are the same bits.
template <class Scalar, class Index, class Column>
KOKKOS_FORCEINLINE_FUNCTION Scalar multiplyRow(const Scalar* values, const Index* columns, int count, const Column& x) {
  Scalar sum0{}, sum1{}, sum2{}, sum3{};
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    sum0 += values[k] * x(columns[k]);
    sum1 += values[k + 1] * x(columns[k + 1]);
    sum2 += values[k + 2] * x(columns[k + 2]);
    sum3 += values[k + 3] * x(columns[k + 3]);
  }
  for (; k < count; ++k) {
    sum0 += values[k] * x(columns[k]);
  }
  return sum0 + sum1 + sum2 + sum3;
}

/// The same for four columns of x at once: the matrix is read once.
template <class Scalar, class Index, class Column>
KOKKOS_FORCEINLINE_FUNCTION void multiplyRow(const Scalar* values, const Index* columns, int count,
                                             const Column (&x)[4], Scalar (&sum)[4]) {
  for (int k = 0; k < count; ++k) {
    for (int w = 0; w < 4; ++w) {
      sum[w] += values[k] * x[w](columns[k]);
    }
  }
}

/// The local part of a matrix by rows, in device memory.
template <class Scalar, class Offset, class Index>
struct LocalMatrix {
  const Offset* rowMap;  ///< rows + 1
  const Index* entries;  ///< local column indices
  const Scalar* values;
};

/// y(row) = beta b(row) + alpha (A x)(row) for row = rows(firstRow + i), or firstRow + i if the list is empty, `Width`
/// columns of the vectors at a time. beta == 0 does not read b.
template <class Scalar, class Matrix, class RowList, class Source, int Width>
struct MultiplyRows {
  static_assert(Width == 1 || Width == 4);
  Matrix matrix;
  RowList rows;
  Source x;
  VectorAccess<const Scalar> b;
  VectorAccess<Scalar> y;
  Scalar alpha, beta;
  int firstRow, firstColumn;

  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    multiply(rows.extent(0) == 0 ? firstRow + i : rows(firstRow + i));
  }

  KOKKOS_FORCEINLINE_FUNCTION void multiply(int row) const {
    const std::size_t begin = matrix.rowMap[row];
    const int count = static_cast<int>(matrix.rowMap[row + 1] - begin);
    const Scalar* const values = matrix.values + begin;
    const auto* const columns = matrix.entries + begin;
    Scalar sum[Width] = {};
    if constexpr (Width == 1) {
      sum[0] = multiplyRow(values, columns, count, x.column(firstColumn));
    } else {
      const typename Source::Column four[4] = {x.column(firstColumn), x.column(firstColumn + 1),
                                               x.column(firstColumn + 2), x.column(firstColumn + 3)};
      multiplyRow(values, columns, count, four, sum);
    }
    for (int w = 0; w < Width; ++w) {
      Scalar& out = y(row, firstColumn + w);
      const Scalar scaled = alpha * sum[w];
      out = beta == Scalar{} ? scaled : beta * b(row, firstColumn + w) + scaled;
    }
  }
};

/// Consecutive rows of one class.
struct RowInterval {
  int first, count;
};

/// MultiplyRows for the rows of intervals, one interval after the other: on the host, where a row has little work and
/// its index costs as much as an entry.
template <class Rows, class IntervalList>
struct MultiplyIntervals {
  Rows rows;
  IntervalList intervals;
  int firstInterval;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    const RowInterval interval = intervals(firstInterval + i);
    for (int row = interval.first; row < interval.first + interval.count; ++row) {
      rows.multiply(row);
    }
  }
};

/// Entries of the matrix in the rows of a list.
template <class RowMap, class RowList>
struct CountEntries {
  RowMap rowMap;
  RowList rows;
  KOKKOS_INLINE_FUNCTION void operator()(int i, std::size_t& count) const {
    count += rowMap(rows(i) + 1) - rowMap(rows(i));
  }
};

}  // namespace Komvos::Impl
