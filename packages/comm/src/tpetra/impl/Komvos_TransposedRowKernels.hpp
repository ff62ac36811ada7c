/// \file Komvos_TransposedRowKernels.hpp
/// Products with the transposed rows of a rank, on one thread of the host.
#pragma once

#include <Kokkos_Complex.hpp>
#include <cstddef>
#include <utility>

#include "Komvos_HostRowKernels.hpp"

// How this works. Each row adds to the sums of its columns: those of owned entries in place, in y, those of ghosts in
// an array that then travels to their owners. A block of rows with the same columns adds to a sum once. Several threads
// would write to the same sums; they are not for this.
namespace Komvos::Impl {

/// Sums of the columns of the matrix: the first numSame are owned, the others ghosts, as in ProductInput. The columns
/// of several vectors follow one another.
template <class Scalar>
struct ColumnSums {
  VectorAccess<Scalar> owned, ghosts;
  int numSame;
};

template <class Scalar>
Scalar conjugate(const Scalar& value) {
  return value;
}
template <class Real>
Kokkos::complex<Real> conjugate(const Kokkos::complex<Real>& value) {
  return Kokkos::conj(value);
}

/// sums += alpha A^T x, or A^H, over intervals of units, for `Width` columns of x. Intervals are called in order.
/// \tparam Conjugates whether it is A^H
template <class Scalar, class Index, int Width, bool Conjugates>
struct AddTransposedIntervals {
  const RowInterval* intervals;
  const int* units;
  const Index* columns;
  const Scalar* values;
  VectorAccess<const Scalar> x;
  Scalar alpha;
  ColumnSums<Scalar> sums;
  int firstColumn;               ///< of x and of the sums
  PrefetchX<Index> prefetchesX;  ///< of the sums of the first column, if it is on

  void operator()(int i) const {
    if (prefetchesX.isOn()) {
      add(intervals[i], prefetchesX);
    } else {
      add(intervals[i], NoPrefetch());
    }
  }

 private:
  struct Owned {
    Scalar* first;
    std::size_t stride;
    Scalar* at(int entry) const { return first + entry; }
    std::size_t strideAt(int) const { return stride; }
  };
  struct OwnedOrGhost {
    Scalar *owned, *ghosts;
    std::size_t ownedStride, ghostStride;
    int numSame;
    Scalar* at(int entry) const { return entry < numSame ? owned + entry : ghosts + (entry - numSame); }
    std::size_t strideAt(int entry) const { return entry < numSame ? ownedStride : ghostStride; }
  };

  static Scalar entryOf(const Scalar& value) { return Conjugates ? conjugate(value) : value; }

  template <class Ahead>
  void add(const RowInterval& interval, const Ahead& ahead) const {
    Scalar* const owned = sums.owned.columnAt(firstColumn);
    if (interval.needsGhosts) {
      addTo(OwnedOrGhost{owned, sums.ghosts.columnAt(firstColumn), sums.owned.stride, sums.ghosts.stride, sums.numSame},
            interval, ahead);
    } else {
      addTo(Owned{owned, sums.owned.stride}, interval, ahead);
    }
  }

  template <class Targets, class Ahead>
  void addTo(const Targets& targets, const RowInterval& interval, const Ahead& ahead) const {
    const Scalar* value = values + interval.firstEntry;
    const Index* index = columns + interval.firstIndex;
    const VectorAccess<const Scalar> source{x.columnAt(firstColumn), x.stride};
    const Scalar factor = alpha;
    int row = interval.firstRow;
    for (const int *unit = units + interval.firstUnit, *end = unit + interval.count; unit < end; ++unit) {
      const int count = columnsOfUnit(*unit), rows = rowsOfUnit(*unit);
      const auto addUnit = [&](auto numRows) {
        constexpr int n = decltype(numRows)::value + 1;
        if (n != rows) {
          return false;
        }
        addRows<n>(value, index, count, source, row, factor, targets, ahead.from(index - columns));
        return true;
      };
      firstThatFits(std::make_integer_sequence<int, maxRowsOfUnit>(), addUnit);
      value += static_cast<std::ptrdiff_t>(rows) * count;
      index += count;
      row += rows;
    }
  }

  template <int Rows, class Targets, class Ahead>
  static void addRows(const Scalar* value, const Index* index, int count, const VectorAccess<const Scalar>& x, int row,
                      const Scalar& factor, const Targets& targets, const Ahead& ahead) {
    constexpr std::make_integer_sequence<int, Rows> rows;
    Scalar scaled[Rows][Width];
    forEachRow(rows, [&](auto r) {
      for (int w = 0; w < Width; ++w) {
        scaled[r][w] = factor * x(row + r, w);
      }
    });
    const auto addColumn = [&](int k) KOMVOS_ALWAYS_INLINE {
      Scalar sum[Width] = {};
      forEachRow(rows, [&](auto r) {
        const Scalar entry = entryOf(value[static_cast<std::ptrdiff_t>(r) * count + k]);
        for (int w = 0; w < Width; ++w) {
          sum[w] += entry * scaled[r][w];
        }
      });
      Scalar* const target = targets.at(index[k]);
      const std::size_t stride = targets.strideAt(index[k]);
      for (int w = 0; w < Width; ++w) {
        target[w * stride] += sum[w];
      }
    };
    int k = 0;
    for (; k + 4 <= count; k += 4) {
      prefetchValues<Rows>(value + static_cast<std::ptrdiff_t>(Rows) * k);
      ahead.template ask<4, 1>(targets, k);
      addColumn(k);
      addColumn(k + 1);
      addColumn(k + 2);
      addColumn(k + 3);
    }
    for (; k < count; ++k) {
      ahead.template ask<1, 1>(targets, k);
      addColumn(k);
    }
  }
};

}  // namespace Komvos::Impl
