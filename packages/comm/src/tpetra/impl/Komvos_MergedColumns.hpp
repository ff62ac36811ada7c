/// \file Komvos_MergedColumns.hpp
/// From rows with local columns, in any order and repeated, to rows whose columns increase.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_LargeArray.hpp"
#include "Komvos_SortRuns.hpp"

// How this works. Where the columns of all rows increase, as in rows that stay on their rank, nothing is to be done.
// Else each row is sorted, unless it is; entries of the same column become neighbours, and keep the order that they
// had. A scan counts what remains, and a last kernel writes it.
namespace Komvos::Impl {

template <class LO, class Device>
struct MergedColumns {
  using memory_space = typename BufferSpace<typename Device::execution_space>::type;
  Kokkos::View<std::size_t*, Device> rowOffset;
  Kokkos::View<LO*, Device> columns;
  bool inOrder = false;  ///< entries are the given ones, one by one; source is empty
  /// Else entry e is the sum of given entries source(sourceOffset(e)), ...; without offsets, of source(e) alone.
  Kokkos::View<int*, memory_space> sourceOffset, source;
};

/// Sorts keys upwards, in place.
KOKKOS_INLINE_FUNCTION void heapSort(std::uint64_t* keys, std::int64_t n) {
  const auto sift = [keys](std::int64_t root, std::int64_t end) {
    for (std::int64_t child = 2 * root + 1; child < end; child = 2 * root + 1) {
      child += child + 1 < end && keys[child] < keys[child + 1] ? 1 : 0;
      if (keys[root] >= keys[child]) {
        return;
      }
      const std::uint64_t swap = keys[root];
      keys[root] = keys[child];
      keys[child] = swap;
      root = child;
    }
  };
  for (std::int64_t root = n / 2 - 1; root >= 0; --root) {
    sift(root, n);
  }
  for (std::int64_t end = n - 1; end > 0; --end) {
    const std::uint64_t largest = keys[0];
    keys[0] = keys[end];
    keys[end] = largest;
    sift(0, end);
  }
}

/// Sorts the entries of each row by column, then by place: source(k) becomes the place in its row of what is k-th, or
/// ~place if its column is that of the entry before.
template <class OffsetView, class LocalView, class IndexView>
struct SortedRows {
  OffsetView offset;
  LocalView local;
  IndexView source;

  KOKKOS_INLINE_FUNCTION std::int64_t first(int row) const { return offset(row); }
  KOKKOS_INLINE_FUNCTION std::int64_t length(int row) const { return offset(row + 1) - offset(row); }
  /// Whether columns increase.
  KOKKOS_INLINE_FUNCTION bool isInOrder(int row) const {
    const std::int64_t begin = first(row), n = length(row);
    for (std::int64_t k = 1; k < n; ++k) {
      if (local(begin + k - 1) >= local(begin + k)) {
        return false;
      }
    }
    return true;
  }
  KOKKOS_INLINE_FUNCTION void keepOrder(int row) const {
    for (std::int64_t k = 0; k < length(row); ++k) {
      source(first(row) + k) = static_cast<int>(k);
    }
  }
  KOKKOS_INLINE_FUNCTION void setKeys(std::uint64_t* mine, int row) const {
    for (std::int64_t k = 0; k < length(row); ++k) {
      mine[k] = static_cast<std::uint64_t>(local(first(row) + k)) << 32 | static_cast<std::uint64_t>(k);
    }
  }
  KOKKOS_INLINE_FUNCTION void setPlaces(const std::uint64_t* mine, int row) const {
    for (std::int64_t k = 0; k < length(row); ++k) {
      const int place = static_cast<int>(mine[k] & 0xffffffffULL);
      source(first(row) + k) = k > 0 && mine[k] >> 32 == mine[k - 1] >> 32 ? ~place : place;
    }
  }
};

template <class Rows>
struct CountDisordered {
  Rows rows;
  KOKKOS_INLINE_FUNCTION void operator()(int row, int& disordered) const { disordered += rows.isInOrder(row) ? 0 : 1; }
};

/// With room of its own for each thread. Not for devices. A row that another rank has sent is in the order of that
/// rank's columns: a few runs, each in order here, too.
template <class Rows>
struct SortOnHost {
  Rows rows;

  void operator()(int row) const {
    static thread_local std::vector<std::uint64_t> keys;
    static thread_local RunSorter<std::uint64_t> sorter;
    if (rows.isInOrder(row)) {
      rows.keepOrder(row);
    } else {
      const auto n = static_cast<std::size_t>(rows.length(row));
      keys.resize(std::max(keys.size(), n));
      rows.setKeys(keys.data(), row);
      sorter.sort(keys.data(), n);
      rows.setPlaces(keys.data(), row);
    }
  }
};

template <class Rows, class KeyView>
struct SortOnDevice {
  Rows rows;
  KeyView keys;  ///< room for all entries

  KOKKOS_INLINE_FUNCTION void operator()(int row) const {
    if (rows.isInOrder(row)) {
      rows.keepOrder(row);
    } else {
      std::uint64_t* const mine = keys.data() + rows.first(row);
      rows.setKeys(mine, row);
      heapSort(mine, rows.length(row));
      rows.setPlaces(mine, row);
    }
  }
};

template <class ExecutionSpace, class Rows>
void sortRows(const ExecutionSpace& space, const Rows& rows, int numRows, std::int64_t entries) {
  const Kokkos::RangePolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>> all(space, 0, numRows);
  if constexpr (runsOnHost<ExecutionSpace>()) {
    Kokkos::parallel_for("Komvos::RowTransfer::sort", all, SortOnHost<Rows>{rows});
  } else {
    using Keys = Kokkos::View<std::uint64_t*, typename BufferSpace<ExecutionSpace>::type>;
    const Keys keys(Kokkos::view_alloc("Komvos::RowTransfer::keys", Kokkos::WithoutInitializing), entries);
    Kokkos::parallel_for("Komvos::RowTransfer::sort", all, SortOnDevice<Rows, Keys>{rows, keys});
    fence(space, "Komvos::RowTransfer: keys are read");
  }
}

template <class OffsetView, class RowView>
struct CopyOffsets {
  OffsetView offset;
  RowView rowOffset;
  KOKKOS_INLINE_FUNCTION void operator()(int row) const { rowOffset(row) = static_cast<std::size_t>(offset(row)); }
};

/// Exclusive sums of the different columns of each row.
template <class OffsetView, class IndexView, class RowView>
struct CountMerged {
  OffsetView offset;
  IndexView source;
  RowView rowOffset;  // rows + 1

  KOKKOS_INLINE_FUNCTION void operator()(int row, std::size_t& sum, bool final) const {
    if (final) {
      rowOffset(row) = sum;
    }
    if (row + 1 == static_cast<int>(rowOffset.extent(0))) {
      return;
    }
    for (std::int64_t k = offset(row); k < offset(row + 1); ++k) {
      sum += source(k) >= 0 ? 1 : 0;
    }
  }
};

/// Columns, and where each entry comes from.
template <class OffsetView, class LocalView, class RowView, class ColumnView, class IndexView>
struct FillMerged {
  OffsetView offset;
  LocalView local;
  RowView rowOffset;
  ColumnView columns;
  IndexView sourceOffset, source;
  bool merges;

  KOKKOS_INLINE_FUNCTION void operator()(int row) const {
    const int first = static_cast<int>(offset(row));
    std::size_t e = rowOffset(row);
    for (int k = first; k < static_cast<int>(offset(row + 1)); ++k) {
      const bool begins = source(k) >= 0;
      const int place = first + (begins ? source(k) : ~source(k));
      if (begins) {
        columns(e) = local(place);
        if (merges) {
          sourceOffset(e) = k;
        }
        ++e;
      }
      source(k) = place;
    }
  }
};

/// \param offset entries of row i: [offset(i), offset(i + 1)), on the device; their number is less than 2^31
/// \param local their columns; the result may keep this array
template <class LO, class Device, class OffsetView>
MergedColumns<LO, Device> mergeColumns(const OffsetView& offset, const Kokkos::View<LO*, Device>& local) {
  using Result = MergedColumns<LO, Device>;
  using Locals = Kokkos::View<LO*, Device>;
  using RowOffset = decltype(Result::rowOffset);
  using Source = decltype(Result::source);
  const auto& space = defaultSpace<typename Device::execution_space>();
  const std::int64_t entries = static_cast<std::int64_t>(local.extent(0));
  const int rows = static_cast<int>(offset.extent(0)) - 1;
  Result result;
  result.rowOffset = RowOffset(Kokkos::view_alloc("rowOffset", Kokkos::WithoutInitializing), rows + 1);
  using Sorted = SortedRows<OffsetView, Locals, Source>;
  int disordered = 0;
  Kokkos::parallel_reduce("Komvos::RowTransfer::disordered", range(space, 0, rows),
                          CountDisordered<Sorted>{Sorted{offset, local, {}}}, disordered);
  if (disordered == 0) {
    Kokkos::parallel_for("Komvos::RowTransfer::offsets", range(space, 0, rows + 1),
                         CopyOffsets<OffsetView, RowOffset>{offset, result.rowOffset});
    fence(space, "Komvos::RowTransfer: rows are in order");
    result.columns = local;
    result.inOrder = true;
    return result;
  }
  result.source = largeArray<Source>("Komvos::RowTransfer::source", entries);
  sortRows(space, Sorted{offset, local, result.source}, rows, entries);
  std::size_t merged = 0;
  Kokkos::parallel_scan("Komvos::RowTransfer::count", range(space, 0, rows + 1),
                        CountMerged<OffsetView, Source, RowOffset>{offset, result.source, result.rowOffset}, merged);
  const bool merges = static_cast<std::int64_t>(merged) < entries;
  result.columns = largeArray<Locals>("columns", merged);
  if (merges) {
    result.sourceOffset = Source("sourceOffset", merged + 1);
    Kokkos::deep_copy(Kokkos::subview(result.sourceOffset, merged), static_cast<int>(entries));
  }
  Kokkos::parallel_for(
      "Komvos::RowTransfer::fill", range(space, 0, rows),
      FillMerged<OffsetView, Locals, RowOffset, Locals, Source>{offset, local, result.rowOffset, result.columns,
                                                                result.sourceOffset, result.source, merges});
  fence(space, "Komvos::RowTransfer: rows are merged");
  return result;
}

}  // namespace Komvos::Impl
