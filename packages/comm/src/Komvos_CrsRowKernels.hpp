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

/// y(row) = beta b(row) + alpha sum_k value(k) x(column(k)) for rows(first + i), `Width` columns of the vectors at a time.
/// Owned entries of x are read in place, ghosts from an array of their own. beta == 0 does not read b.
template <class Scalar, class Matrix, class RowList, int Width>
struct MultiplyRows {
  Matrix matrix;
  RowList rows;
  VectorAccess<const Scalar> owned;
  VectorAccess<const Scalar> ghosts;
  VectorAccess<const Scalar> b;
  VectorAccess<Scalar> y;
  Scalar alpha, beta;
  int firstRow, firstColumn, numSame;

  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    const int row = rows(firstRow + i);
    Scalar sum[Width] = {};
    const auto end = matrix.graph.row_map(row + 1);
    for (auto k = matrix.graph.row_map(row); k < end; ++k) {
      const int column = matrix.graph.entries(k);
      const Scalar value = matrix.values(k);
      const bool inPlace = column < numSame;
      const VectorAccess<const Scalar>& x = inPlace ? owned : ghosts;
      const int entry = inPlace ? column : column - numSame;
      for (int w = 0; w < Width; ++w) {
        sum[w] += value * x(entry, firstColumn + w);
      }
    }
    for (int w = 0; w < Width; ++w) {
      Scalar& out = y(row, firstColumn + w);
      const Scalar scaled = alpha * sum[w];
      out = beta == Scalar{} ? scaled : beta * b(row, firstColumn + w) + scaled;
    }
  }
};

}  // namespace Komvos::Impl
