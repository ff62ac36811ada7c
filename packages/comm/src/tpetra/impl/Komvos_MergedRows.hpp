/// \file Komvos_MergedRows.hpp
/// From rows with global columns, in any order and repeated, to the structure of a Tpetra::CrsMatrix.
#pragma once

#include <Teuchos_RCP.hpp>
#include <Tpetra_Map.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_GlobalIdTable.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_LargeArray.hpp"
#include "Komvos_SortRuns.hpp"
#include "Komvos_TpetraShim.hpp"

// How this works. Columns become local in one pass over the entries: those of the domain map on this rank by the map,
// all others by a hash table, sorted by owner and global id as Tpetra does. Where the columns of all rows increase
// then, as in rows that stay on their rank, that is all. Else each row is sorted by local column, unless it is; entries
// of the same column become neighbours, and keep the order that they had.
namespace Komvos::Impl {

template <class LO, class GO, class Node>
struct MergedRows {
  using map_type = Tpetra::Map<LO, GO, Node>;
  using device_type = typename Node::device_type;
  using memory_space = typename BufferSpace<typename device_type::execution_space>::type;
  Teuchos::RCP<const map_type> columnMap;
  Kokkos::View<std::size_t*, device_type> rowOffset;
  Kokkos::View<LO*, device_type> columns;
  bool inOrder = false;  ///< entries are the given ones, one by one; source is empty
  /// Else entry e is the sum of given entries source(sourceOffset(e)), ...; without offsets, of source(e) alone.
  Kokkos::View<int*, memory_space> sourceOffset, source;
};

/// Local columns of what the domain map has here, -1 for others, which are counted; marks which are used.
template <class GlobalView, class LocalView, class UsedView, class LocalMap>
struct LocalizeColumns {
  GlobalView global;
  LocalView local;
  UsedView used;
  LocalMap domain;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& remote) const {
    const auto lid = domain.getLocalElement(global(i));
    const bool here = lid >= 0 && lid < static_cast<decltype(lid)>(used.extent(0));
    local(i) = here ? lid : -1;
    remote += here ? 0 : 1;
    if (here && used(lid) == 0) {
      Kokkos::atomic_exchange(&used(lid), 1);
    }
  }
};

/// Domain indices to column indices, where the column map leaves some out.
template <class LocalView, class NewIndexView>
struct RenumberColumns {
  LocalView local;
  NewIndexView newIndex;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    if (local(i) >= 0) {
      local(i) = newIndex(local(i));
    }
  }
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

/// Remote columns of `global` (those with local < 0) get indices from `firstIndex` on, sorted by owner and id.
/// \param remote how many entries have such a column, on this rank
/// \return their global ids, in that order
/// \note Collective. \throws BadInput on all ranks if the domain map lacks a column
template <class LO, class GO, class Node, class GlobalView, class LocalView>
std::vector<GO> numberRemoteColumns(MPI_Comm comm, const Tpetra::Map<LO, GO, Node>& domain, const GlobalView& global,
                                    const LocalView& local, std::int64_t remote, LO firstIndex) {
  using Space = Kokkos::HostSpace;
  const std::int64_t entries = remote > 0 ? static_cast<std::int64_t>(global.extent(0)) : 0;
  const auto wanted = std::make_pair(std::int64_t(0), entries);
  const auto globalOnHost = Kokkos::create_mirror_view_and_copy(Space(), Kokkos::subview(global, wanted));
  const auto localHere = Kokkos::subview(local, wanted);
  const auto localOnHost = Kokkos::create_mirror_view_and_copy(Space(), localHere);
  GlobalIdTable<GO> table;
  for (std::int64_t i = 0; i < entries; ++i) {
    if (localOnHost(i) < 0) {
      localOnHost(i) = -1 - table.insert(globalOnHost(i));  // ~place, until all are known
    }
  }
  const std::vector<GO>& ids = table.ids();
  Teuchos::Array<int> owners(ids.size(), -1);
  domain.getRemoteIndexList(Teuchos::ArrayView<const GO>(ids.data(), static_cast<Teuchos::Ordinal>(ids.size())),
                            owners());
  std::string error;
  for (std::size_t i = 0; i < ids.size() && error.empty(); ++i) {
    if (owners[i] < 0) {
      error = "RowTransfer: the domain map has no index " + std::to_string(ids[i]) +
              ", which is a column of a row (rank " + std::to_string(domain.getComm()->getRank()) + ")";
    }
  }
  throwOnAllIfAny(comm, error);
  std::vector<int> order(ids.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int>(i);
  }
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return owners[a] != owners[b] ? owners[a] < owners[b] : ids[a] < ids[b]; });
  std::vector<GO> sorted;
  std::vector<LO> indexOf(ids.size());
  for (const int place : order) {
    indexOf[place] = firstIndex + static_cast<LO>(sorted.size());
    sorted.push_back(ids[place]);
  }
  for (std::int64_t i = 0; i < entries; ++i) {
    if (localOnHost(i) < 0) {
      localOnHost(i) = indexOf[-1 - localOnHost(i)];
    }
  }
  Kokkos::deep_copy(localHere, localOnHost);
  return sorted;
}

/// \param offset entries of row i: [offset(i), offset(i + 1)), on the device \param global their columns
/// \note Collective. \throws BadInput on all ranks if the domain map lacks a column
template <class LO, class GO, class Node, class OffsetView, class GlobalView>
MergedRows<LO, GO, Node> mergeRows(MPI_Comm comm, const Teuchos::RCP<const Tpetra::Map<LO, GO, Node>>& domain,
                                   const OffsetView& offset, const GlobalView& global) {
  using Result = MergedRows<LO, GO, Node>;
  using Device = typename Result::device_type;
  using Space = typename Device::execution_space;
  using Kokkos::view_alloc;
  using Kokkos::WithoutInitializing;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  const Space& space = defaultSpace<Space>();
  const std::int64_t entries = static_cast<std::int64_t>(global.extent(0));
  const int rows = static_cast<int>(offset.extent(0)) - 1;
  Result result;

  const auto local = largeArray<Kokkos::View<LO*, Device>>("Komvos::RowTransfer::local", entries);
  Kokkos::View<int*, Device> used("Komvos::RowTransfer::used", localLength(*domain));
  const auto domainMap = domain->getLocalMap();
  using Localize = LocalizeColumns<GlobalView, Kokkos::View<LO*, Device>, decltype(used), decltype(domainMap)>;
  std::int64_t remoteEntries = 0;
  Kokkos::parallel_reduce("Komvos::RowTransfer::localize", Range(space, 0, entries),
                          Localize{global, local, used, domainMap}, remoteEntries);
  // The column map has what is used of the domain map, in its order, then the others.
  const auto usedOnHost = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), used);
  std::vector<GO> ids;
  std::vector<LO> newIndex(usedOnHost.extent(0));
  for (std::size_t i = 0; i < newIndex.size(); ++i) {
    newIndex[i] = static_cast<LO>(ids.size());
    if (usedOnHost(i) != 0) {
      ids.push_back(domain->getGlobalElement(static_cast<LO>(i)));
    }
  }
  if (ids.size() < newIndex.size()) {
    const auto onDevice = deviceList<typename Device::memory_space>("Komvos::RowTransfer::newIndex", newIndex);
    Kokkos::parallel_for("Komvos::RowTransfer::renumber", Range(space, 0, entries),
                         RenumberColumns<Kokkos::View<LO*, Device>, decltype(onDevice)>{local, onDevice});
    fence(space, "Komvos::RowTransfer: columns are numbered");
  }
  const std::vector<GO> remote =
      numberRemoteColumns<LO, GO, Node>(comm, *domain, global, local, remoteEntries, static_cast<LO>(ids.size()));
  ids.insert(ids.end(), remote.begin(), remote.end());
  using Map = typename Result::map_type;
  result.columnMap =
      Teuchos::rcp(new Map(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                           Teuchos::ArrayView<const GO>(ids.data(), static_cast<Teuchos::Ordinal>(ids.size())),
                           domain->getIndexBase(), domain->getComm()));

  using Sorted = SortedRows<OffsetView, Kokkos::View<LO*, Device>, decltype(result.source)>;
  result.rowOffset = decltype(result.rowOffset)(view_alloc("rowOffset", WithoutInitializing), rows + 1);
  int disordered = 0;
  Kokkos::parallel_reduce("Komvos::RowTransfer::disordered", range(space, 0, rows),
                          CountDisordered<Sorted>{Sorted{offset, local, {}}}, disordered);
  if (disordered == 0) {
    Kokkos::parallel_for("Komvos::RowTransfer::offsets", range(space, 0, rows + 1),
                         CopyOffsets<OffsetView, decltype(result.rowOffset)>{offset, result.rowOffset});
    fence(space, "Komvos::RowTransfer: rows are in order");
    result.columns = local;
    result.inOrder = true;
    return result;
  }
  result.source = largeArray<decltype(result.source)>("Komvos::RowTransfer::source", entries);
  sortRows(space, Sorted{offset, local, result.source}, rows, entries);
  std::size_t merged = 0;
  using Count = CountMerged<OffsetView, decltype(result.source), decltype(result.rowOffset)>;
  Kokkos::parallel_scan("Komvos::RowTransfer::count", range(space, 0, rows + 1),
                        Count{offset, result.source, result.rowOffset}, merged);
  const bool merges = static_cast<std::int64_t>(merged) < entries;
  result.columns = largeArray<decltype(result.columns)>("columns", merged);
  if (merges) {
    result.sourceOffset = decltype(result.sourceOffset)("sourceOffset", merged + 1);
    Kokkos::deep_copy(Kokkos::subview(result.sourceOffset, merged), static_cast<int>(entries));
  }
  using Fill = FillMerged<OffsetView, Kokkos::View<LO*, Device>, decltype(result.rowOffset), decltype(result.columns),
                          decltype(result.source)>;
  Kokkos::parallel_for(
      "Komvos::RowTransfer::fill", range(space, 0, rows),
      Fill{offset, local, result.rowOffset, result.columns, result.sourceOffset, result.source, merges});
  fence(space, "Komvos::RowTransfer: rows are merged");
  return result;
}

}  // namespace Komvos::Impl
