/// \file Komvos_CrsRowKernels.hpp
/// Row lists by what rows need, and the product over a list of rows.
#pragma once

#include "Komvos_GatherKernels.hpp"

namespace Komvos::Impl {

/// What a column needs: 0 an owned value in place, 1 a ghost that comes straight from this node (or a permuted owned
/// value), 2 any other ghost.
template <class IndexView, class RowMap, class Columns, class RowClass>
struct ClassifyRows {
  IndexView ghostClass;
  RowMap rowMap;
  Columns columns;
  RowClass rowClass;
  int numSame;
  KOKKOS_INLINE_FUNCTION void operator()(int row) const {
    int needs = 0;
    for (std::size_t k = rowMap(row); k < rowMap(row + 1); ++k) {
      const int column = columns(k);
      const int c = column < numSame ? 0 : ghostClass(column - numSame);
      needs = c > needs ? c : needs;
    }
    rowClass(row) = needs;
  }
};

/// Writes the rows of one class, ascending, in a parallel_scan.
template <class RowClass, class RowList>
struct CompactRows {
  RowClass rowClass;
  RowList rows;
  int wanted;
  KOKKOS_INLINE_FUNCTION void operator()(int row, int& position, bool final) const {
    if (rowClass(row) == wanted) {
      if (final) {
        rows(position) = row;
      }
      ++position;
    }
  }
};

template <class RowClass>
struct CountRows {
  RowClass rowClass;
  int wanted;
  KOKKOS_INLINE_FUNCTION void operator()(int row, int& count) const { count += rowClass(row) == wanted ? 1 : 0; }
};

/// Entries of x by column: one vector for all columns.
template <class Scalar>
struct OneVector {
  VectorAccess<const Scalar> x;
  KOKKOS_INLINE_FUNCTION Scalar operator()(int column, int j) const { return x(column, j); }
};

/// Owned entries in place, ghosts in an array of their own.
template <class Scalar>
struct OwnedAndGhosts {
  VectorAccess<const Scalar> owned;
  VectorAccess<const Scalar> ghosts;
  int numSame;
  KOKKOS_INLINE_FUNCTION Scalar operator()(int column, int j) const {
    return column < numSame ? owned(column, j) : ghosts(column - numSame, j);
  }
};

/// y(row) = beta b(row) + alpha sum_k value(k) x(column(k)) for row = rows(firstRow + i), `Width` columns of the
/// vectors at a time. beta == 0 does not read b.
template <class Scalar, class Matrix, class RowList, class Source, int Width>
struct MultiplyRows {
  Matrix matrix;
  RowList rows;
  Source x;
  VectorAccess<const Scalar> b;
  VectorAccess<Scalar> y;
  Scalar alpha, beta;
  int firstRow, firstColumn;

  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    const int row = rows(firstRow + i);
    Scalar sum[Width] = {};
    const auto end = matrix.graph.row_map(row + 1);
    for (auto k = matrix.graph.row_map(row); k < end; ++k) {
      const int column = matrix.graph.entries(k);
      const Scalar value = matrix.values(k);
      for (int w = 0; w < Width; ++w) {
        sum[w] += value * x(column, firstColumn + w);
      }
    }
    for (int w = 0; w < Width; ++w) {
      Scalar& out = y(row, firstColumn + w);
      const Scalar scaled = alpha * sum[w];
      out = beta == Scalar{} ? scaled : beta * b(row, firstColumn + w) + scaled;
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
