/// \file Komvos_RowKernels.hpp
/// The kernels that pack rows into messages, and unpack them, with parallelism over entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_RowFormat.hpp"

// How this works. Rows differ in length by orders of magnitude, so work is dealt out by entries. A work item is a few
// whole rows with about as many entries as any other item, or a piece of one row that is longer than that. A team works
// on an item: its threads on rows, their vector lanes on entries. Checks of whole rows are written, or compared, by who
// has the row; those of pieces are added up by atomics, of integers, so that the order does not matter.
namespace Komvos::Impl {

/// Some rows, [firstRow, lastRow); or entries [begin, end) of row firstRow, if it is a piece.
struct RowItem {
  int firstRow, lastRow;
  std::int64_t begin, end;
  KOKKOS_INLINE_FUNCTION bool isPiece() const { return end >= 0; }
};

/// Work items over rows with so many entries.
template <class MemorySpace>
struct RowItems {
  Kokkos::View<RowItem*, MemorySpace> items;
  Kokkos::View<int*, MemorySpace> longRows;  ///< those in pieces
  std::int64_t entries = 0;

  RowItems() = default;
  RowItems(const std::vector<std::int64_t>& lengths, std::int64_t entriesPerItem) {
    std::vector<RowItem> list;
    std::vector<int> cut;
    std::int64_t inItem = 0;
    const int rows = static_cast<int>(lengths.size());
    int first = 0;
    const auto close = [&](int end) {
      if (first < end) {
        list.push_back({first, end, 0, -1});
      }
      first = end;
      inItem = 0;
    };
    for (int row = 0; row < rows; ++row) {
      entries += lengths[row];
      if (lengths[row] > entriesPerItem) {
        close(row);
        cut.push_back(row);
        for (std::int64_t begin = 0; begin < lengths[row]; begin += entriesPerItem) {
          list.push_back({row, row + 1, begin, std::min(begin + entriesPerItem, lengths[row])});
        }
        first = row + 1;
        continue;
      }
      if (inItem + lengths[row] > entriesPerItem) {
        close(row);
      }
      inItem += lengths[row] + 1;  // an empty row is some work, too
    }
    close(rows);
    items = deviceList<MemorySpace>("Komvos::RowItems", list);
    longRows = deviceList<MemorySpace>("Komvos::RowItems::longRows", cut);
  }
  int size() const { return static_cast<int>(items.extent(0)); }
};

/// Entries of an item: some threads' work on the host, a team's on a device.
template <class ExecutionSpace>
constexpr std::int64_t entriesPerItem() {
  return runsOnHost<ExecutionSpace>() ? 8192 : 1024;
}

/// Calls body(member, row, begin, end, whole) for all rows of all items.
template <class Items, class Body>
struct ForRowItems {
  Items items;
  Body body;

  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const RowItem item = items.items(member.league_rank());
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, item.firstRow, item.lastRow), [&](const int row) {
      const bool whole = !item.isPiece();
      body(member, row, whole ? 0 : item.begin, whole ? body.length(row) : item.end, whole);
    });
  }
};

template <class ExecutionSpace, class MemorySpace, class Body>
void forRows(const ExecutionSpace& space, const std::string& label, const RowItems<MemorySpace>& items,
             const Body& body) {
  if (items.size() == 0) {
    return;
  }
  using Functor = ForRowItems<RowItems<MemorySpace>, Body>;
  const Functor functor{items, body};
  if constexpr (runsOnHost<ExecutionSpace>()) {
    Kokkos::parallel_for(label, Kokkos::TeamPolicy<ExecutionSpace>(space, items.size(), 1, 1), functor);
  } else {
    Kokkos::parallel_for(label, Kokkos::TeamPolicy<ExecutionSpace>(space, items.size(), Kokkos::AUTO, 32), functor);
  }
}

/// How many offsets of rows, and of the end of the last one, are not what they were.
template <class Rows, class Offsets>
struct CountMovedOffsets {
  Rows rows;
  Offsets offset;
  KOKKOS_INLINE_FUNCTION void operator()(int row, int& moved) const { moved += rows.begin(row) != offset(row) ? 1 : 0; }
};

/// The rows of a matrix on this rank, with global columns: those of a Tpetra::CrsMatrix, by its column map.
template <class Value, class LocalMap, class Offsets, class Columns>
struct MatrixRows {
  static constexpr bool areOfMatrix = true;
  Offsets offset;
  Columns columns;
  LocalMap columnMap;
  const Value* values;

  KOKKOS_INLINE_FUNCTION std::int64_t begin(int row) const { return static_cast<std::int64_t>(offset(row)); }
  KOKKOS_INLINE_FUNCTION std::int64_t length(int row) const {
    return static_cast<std::int64_t>(offset(row + 1) - offset(row));
  }
  KOKKOS_INLINE_FUNCTION std::int64_t column(std::int64_t at) const {
    return static_cast<std::int64_t>(columnMap.getGlobalElement(columns(at)));
  }
};

/// Rows with global columns.
template <class Value, class Offsets, class Columns>
struct ArrayRows {
  static constexpr bool areOfMatrix = false;
  Offsets offset;
  Columns columns;
  const Value* values;

  KOKKOS_INLINE_FUNCTION std::int64_t begin(int row) const { return static_cast<std::int64_t>(offset(row)); }
  KOKKOS_INLINE_FUNCTION std::int64_t length(int row) const {
    return static_cast<std::int64_t>(offset(row + 1) - offset(row));
  }
  KOKKOS_INLINE_FUNCTION std::int64_t column(std::int64_t at) const { return static_cast<std::int64_t>(columns(at)); }
};

/// Row `row(i)` of `rows` to word `first(i)` of a buffer.
template <class Value, class Rows, class RowMap, class MemorySpace>
struct PackRows {
  using word = std::uint64_t;
  using memory_space = MemorySpace;
  RowFormat<Value> format;
  Rows rows;
  RowMap rowMap;
  Kokkos::View<const int*, MemorySpace> row;
  Kokkos::View<const std::int64_t*, MemorySpace> first;
  word* buffer;

  KOKKOS_INLINE_FUNCTION std::int64_t length(int i) const { return rows.length(row(i)); }
  KOKKOS_INLINE_FUNCTION word label(int i) const {
    return format.label(static_cast<std::int64_t>(rowMap.getGlobalElement(row(i))), length(i));
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member, int i, std::int64_t begin, std::int64_t end,
                                         bool whole) const {
    const std::int64_t n = length(i), from = rows.begin(row(i));
    word* const run = buffer + first(i);
    Value* const values = reinterpret_cast<Value*>(run + format.valuesAt(n));
    const Value* const source = rows.values + from;
    word sum = 0;
    if (format.withColumns) {  // in two loops: the second is one that compilers vectorize
      word* const columns = run + format.header;
      word sumOfColumns = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(member, begin, end),
          [&](const std::int64_t k, word& part) {
            const word column = static_cast<word>(rows.column(from + k));
            columns[k] = column;
            part += column;
          },
          sumOfColumns);
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(member, begin, end),
          [&](const std::int64_t k, word& part) {
            const Value value = source[k];
            values[k] = value;
            part += format.bits(value);
          },
          sum);
      sum += sumOfColumns;
    } else {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, begin, end),
                           [&](const std::int64_t k) { values[k] = source[k]; });
    }
    Kokkos::single(Kokkos::PerThread(member), [&]() {
      if (whole) {
        run[0] = label(i) + sum;
        run[1] = static_cast<word>(n);
      } else if (format.withColumns) {
        Kokkos::atomic_add(run, sum);  // PackLabels has begun it
      }
      if (end == n) {
        pad(run, n);
      }
    });
  }

  /// No word leaves this rank that nobody has written.
  KOKKOS_INLINE_FUNCTION void pad(word* run, std::int64_t n) const {
    if (format.withColumns && n % 2 == 1) {
      run[format.header + n] = 0;
    }
    auto* const bytes = reinterpret_cast<unsigned char*>(run + format.valuesAt(n));
    for (std::int64_t b = n * sizeof(Value); b < format.valueWords(n) * 8; ++b) {
      bytes[b] = 0;
    }
  }
};

/// The headers of rows that are packed in pieces, before their pieces.
template <class Pack, class List>
struct PackLabels {
  Pack pack;
  List longRows;
  KOKKOS_INLINE_FUNCTION void operator()(int j) const {
    const int i = longRows(j);
    auto* const run = pack.buffer + pack.first(i);
    run[0] = pack.label(i);
    run[1] = static_cast<std::uint64_t>(pack.length(i));
  }
};

/// Runs a PackRows. \param items of the entries of each run
template <class ExecutionSpace, class Pack>
void packRows(const ExecutionSpace& space, const Pack& pack, const RowItems<typename Pack::memory_space>& items) {
  Kokkos::parallel_for("Komvos::RowTransfer::labels", range(space, 0, static_cast<int>(items.longRows.extent(0))),
                       PackLabels<Pack, decltype(items.longRows)>{pack, items.longRows});
  forRows(space, "Komvos::RowTransfer::pack", items, pack);
}

/// Runs of a buffer to arrays of global columns and values: run i to entries from `to(i)` on, nowhere if that is
/// negative. `wrong` becomes the smallest i whose run is not what was packed for row `rowId(i)`.
template <class Value, class GlobalOrdinal, class MemorySpace>
struct UnpackRows {
  using word = std::uint64_t;
  using memory_space = MemorySpace;
  RowFormat<Value> format;
  const word* buffer;
  Kokkos::View<const std::int64_t*, MemorySpace> first, lengths, to;
  Kokkos::View<const GlobalOrdinal*, MemorySpace> rowId;
  Kokkos::View<word*, MemorySpace> sums;  ///< of rows in pieces, zero at first
  GlobalOrdinal* columns;
  Value* values;
  Kokkos::View<int, MemorySpace> wrong;

  KOKKOS_INLINE_FUNCTION std::int64_t length(int i) const { return lengths(i); }
  KOKKOS_INLINE_FUNCTION bool fits(int i) const {
    return static_cast<std::int64_t>(buffer[first(i) + 1]) == lengths(i);
  }
  KOKKOS_INLINE_FUNCTION void compare(int i, word sum) const {
    if (!fits(i) || buffer[first(i)] != format.label(static_cast<std::int64_t>(rowId(i)), lengths(i)) + sum) {
      Kokkos::atomic_fetch_min(&wrong(), i);
    }
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member, int i, std::int64_t begin, std::int64_t end,
                                         bool whole) const {
    if (to(i) < 0) {
      return;
    }
    const word* const run = buffer + first(i);
    const std::int64_t n = lengths(i);
    const Value* const source = reinterpret_cast<const Value*>(run + format.valuesAt(n));
    GlobalOrdinal* const toColumns = columns + to(i);
    Value* const toValues = values + to(i);
    const word* const from = run + format.header;
    word sum = 0, sumOfColumns = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(member, begin, end),
        [&](const std::int64_t k, word& part) {
          const word column = from[k];
          toColumns[k] = static_cast<GlobalOrdinal>(column);
          part += column;
        },
        sumOfColumns);
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(member, begin, end),
        [&](const std::int64_t k, word& part) {
          const Value value = source[k];
          toValues[k] = value;
          part += format.bits(value);
        },
        sum);
    sum += sumOfColumns;
    Kokkos::single(Kokkos::PerThread(member), [&]() {
      if (whole) {
        compare(i, sum);
      } else {
        Kokkos::atomic_add(&sums(i), sum);
      }
    });
  }
};

/// Checks of rows that were unpacked in pieces, after all of them.
template <class Unpack, class List>
struct CompareSums {
  Unpack unpack;
  List longRows;
  KOKKOS_INLINE_FUNCTION void operator()(int j) const { unpack.compare(longRows(j), unpack.sums(longRows(j))); }
};

/// Runs an UnpackRows. \param lengths entries of each run that are wanted
template <class ExecutionSpace, class Unpack>
void unpackRows(const ExecutionSpace& space, const Unpack& unpack, const std::vector<std::int64_t>& lengths) {
  const RowItems<typename Unpack::memory_space> items(lengths, entriesPerItem<ExecutionSpace>());
  forRows(space, "Komvos::RowTransfer::unpack", items, unpack);
  Kokkos::parallel_for("Komvos::RowTransfer::compare", range(space, 0, static_cast<int>(items.longRows.extent(0))),
                       CompareSums<Unpack, decltype(items.longRows)>{unpack, items.longRows});
}

/// Where only values travel: the headers of all runs.
template <class Unpack>
struct CompareLabels {
  Unpack unpack;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const { unpack.compare(i, 0); }
};

/// Rows that stay on this rank, in runs of neighbours: `lengths(i)` entries from row `row(i)` of `rows` on, to entries
/// from `to(i)` on. Columns stay as they are: those of a matrix local ones of its column map.
template <class Value, class Column, class Rows, class MemorySpace>
struct CopyRowsHere {
  Rows rows;
  Kokkos::View<const int*, MemorySpace> row;
  Kokkos::View<const std::int64_t*, MemorySpace> lengths, to;
  Column* columns;
  Value* values;

  KOKKOS_INLINE_FUNCTION std::int64_t length(int i) const { return lengths(i); }
  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member, int i, std::int64_t begin, std::int64_t end,
                                         bool) const {
    const std::int64_t from = rows.begin(row(i));
    const auto* const sourceColumns = rows.columns.data() + from;
    const Value* const source = rows.values + from;
    Column* const toColumns = columns + to(i);
    Value* const toValues = values + to(i);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, begin, end),
                         [&](const std::int64_t k) { toColumns[k] = sourceColumns[k]; });
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, begin, end),
                         [&](const std::int64_t k) { toValues[k] = source[k]; });
  }
};

/// Marks which columns of the source these rows have.
template <class Copy, class UsedView>
struct MarkColumns {
  Copy copy;
  UsedView used;

  KOKKOS_INLINE_FUNCTION std::int64_t length(int i) const { return copy.lengths(i); }
  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member, int i, std::int64_t begin, std::int64_t end,
                                         bool) const {
    const std::int64_t from = copy.rows.begin(copy.row(i));
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, begin, end), [&](const std::int64_t k) {
      const auto column = copy.rows.columns(from + k);
      if (atomicLoad(&used(column)) == 0) {
        atomicStore(&used(column), 1);
      }
    });
  }
};

/// Entries of a matrix that come from neighbouring places, in a row: segment i is entries [to(i), to(i + 1)), from
/// source `from(i)` on, as in CombineValues. Worth it where segments are long: then no index is read for each entry.
template <class Value, class MemorySpace>
struct CopySegments {
  Kokkos::View<const int*, MemorySpace> to;  ///< segments + 1
  Kokkos::View<const int*, MemorySpace> from;
  const Value* here;
  const Value* arrived;
  Value* target;

  KOKKOS_INLINE_FUNCTION std::int64_t length(int i) const { return to(i + 1) - to(i); }
  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member, int i, std::int64_t begin, std::int64_t end,
                                         bool) const {
    const int first = from(i);
    const Value* const source = first >= 0 ? here + first : arrived + ~first;
    Value* const entries = target + to(i);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, begin, end),
                         [&](const std::int64_t k) { entries[k] = source[k]; });
  }
};

/// target(e) = the sum of its sources, in their order: index f >= 0 of `here`, or ~f of `arrived`
template <class Value, class MemorySpace>
struct CombineValues {
  Kokkos::View<const int*, MemorySpace> offset;  ///< empty: one source each
  Kokkos::View<const int*, MemorySpace> from;
  const Value* here;
  const Value* arrived;
  Value* target;

  KOKKOS_INLINE_FUNCTION Value source(int f) const { return f >= 0 ? here[f] : arrived[~f]; }
  KOKKOS_INLINE_FUNCTION void operator()(int e) const {
    if (offset.extent(0) == 0) {
      target[e] = source(from(e));
      return;
    }
    Value sum = source(from(offset(e)));
    for (int j = offset(e) + 1; j < offset(e + 1); ++j) {
      sum += source(from(j));
    }
    target[e] = sum;
  }
};

/// Where each value of a matrix comes from, and the kernel that brings them there: as CopySegments where that is worth
/// it, else as CombineValues.
template <class MemorySpace>
class ValueSources {
 public:
  ValueSources() = default;
  /// \param sourceOffset on the device; see CombineValues \param source of each value, or of each summand
  ValueSources(const Kokkos::View<int*, MemorySpace>& sourceOffset, const std::vector<int>& source,
               std::int64_t entriesInItem)
      : offset_(sourceOffset) {
    std::vector<int> to, from;
    for (std::size_t e = 0; e < source.size(); ++e) {
      const bool goesOn = e > 0 && (source[e] < 0) == (source[e - 1] < 0) &&
                          (source[e] >= 0 ? source[e] == source[e - 1] + 1 : ~source[e] == ~source[e - 1] + 1);
      if (!goesOn) {
        to.push_back(static_cast<int>(e));
        from.push_back(source[e]);
      }
    }
    if (offset_.extent(0) > 0 || source.size() < worthwhile * to.size()) {
      source_ = deviceList<MemorySpace>("Komvos::RowTransfer::valueSource", source);
      return;
    }
    to.push_back(static_cast<int>(source.size()));
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i + 1 < to.size(); ++i) {
      lengths.push_back(to[i + 1] - to[i]);
    }
    segments_ = RowItems<MemorySpace>(lengths, entriesInItem);
    segmentTo_ = deviceList<MemorySpace>("Komvos::RowTransfer::segments", to);
    source_ = deviceList<MemorySpace>("Komvos::RowTransfer::segments", from);
  }

  /// \param target [values]
  template <class Value, class ExecutionSpace>
  void run(const ExecutionSpace& space, const Value* here, const Value* arrived, Value* target, int values) const {
    if (segments_.size() > 0) {
      forRows(space, "Komvos::RowTransfer::copySegments", segments_,
              CopySegments<Value, MemorySpace>{segmentTo_, source_, here, arrived, target});
    } else {
      Kokkos::parallel_for("Komvos::RowTransfer::combine", range(space, 0, values),
                           CombineValues<Value, MemorySpace>{offset_, source_, here, arrived, target});
    }
  }
  std::size_t memoryBytes() const { return (source_.size() + segmentTo_.size()) * sizeof(int); }

 private:
  static constexpr int worthwhile = 6;  ///< entries a segment, on average

  Kokkos::View<int*, MemorySpace> offset_, source_;  ///< of values, or of segments
  Kokkos::View<int*, MemorySpace> segmentTo_;
  RowItems<MemorySpace> segments_;
};

}  // namespace Komvos::Impl
