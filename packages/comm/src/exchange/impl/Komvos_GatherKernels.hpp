/// \file Komvos_GatherKernels.hpp
/// The kernel that packs, relays and unpacks: rows of a GatherList, from a vector or a buffer, to a vector or a buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "Komvos_Combine.hpp"
#include "Komvos_DeviceList.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_Schedule.hpp"

namespace Komvos::Impl {

/// A GatherList on a device.
template <class MemorySpace>
struct DeviceGatherList {
  using index_view = Kokkos::View<const int*, MemorySpace>;
  index_view to, offset, from;
  int rows = 0;
  bool toIsRow = false;  ///< to[i] == i for all rows: it need not be read

  DeviceGatherList() = default;
  explicit DeviceGatherList(const GatherList& list)
      : to(deviceList<MemorySpace>(label(), list.to)),
        offset(deviceList<MemorySpace>(label(), list.offset)),
        from(deviceList<MemorySpace>(label(), list.from)),
        rows(list.size()),
        toIsRow(true) {
    for (int i = 0; i < rows; ++i) {
      toIsRow = toIsRow && list.to[i] == i;
    }
  }
  std::size_t memoryBytes() const { return (to.size() + offset.size() + from.size()) * sizeof(int); }

 private:
  static const char* label() { return "Komvos::GatherList"; }
};

/// Position p, column j of a message buffer: a message of k columns is one contiguous piece.
template <class Scalar>
struct BufferAccess {
  Scalar* data;
  int columns;
  KOKKOS_INLINE_FUNCTION Scalar& operator()(int position, int column) const {
    return data[static_cast<std::size_t>(position) * columns + column];
  }
};

/// Entry i, column j of a vector.
template <class Scalar>
struct VectorAccess {
  Scalar* data;
  std::size_t stride;
  KOKKOS_INLINE_FUNCTION Scalar& operator()(int entry, int column) const {
    return data[entry + static_cast<std::size_t>(column) * stride];
  }
  /// Where a column begins; null where there are no entries.
  KOKKOS_INLINE_FUNCTION Scalar* columnAt(int column) const {
    return data != nullptr ? data + static_cast<std::size_t>(column) * stride : nullptr;
  }
};

template <class Scalar>
KOKKOS_INLINE_FUNCTION Scalar magnitude(const Scalar& x) {
  return static_cast<Scalar>(x < Scalar(0) ? -x : x + Scalar(0));  // -0 becomes 0
}
template <class Real>
KOKKOS_INLINE_FUNCTION Kokkos::complex<Real> magnitude(const Kokkos::complex<Real>& x) {
  return Kokkos::complex<Real>(Kokkos::abs(x));
}

/// Whether |x| > |y|, for results of magnitude().
template <class Scalar>
KOKKOS_INLINE_FUNCTION bool isLarger(const Scalar& x, const Scalar& y) {
  return x > y;
}
template <class Real>
KOKKOS_INLINE_FUNCTION bool isLarger(const Kokkos::complex<Real>& x, const Kokkos::complex<Real>& y) {
  return x.real() > y.real();
}

template <Combine How, class Scalar>
KOKKOS_FORCEINLINE_FUNCTION void combineInto(Scalar& entry, const Scalar& value) {
  if constexpr (How == Combine::insert) {
    entry = value;
  } else if constexpr (How == Combine::add) {
    entry += value;
  } else {
    const Scalar old = magnitude(entry);
    const Scalar coming = magnitude(value);
    entry = isLarger(old, coming) ? old : coming;
  }
}

/// \tparam Several how the sources of one row become one value \tparam WithTarget how that meets the target
template <class Scalar, Combine Several, Combine WithTarget, class Target, class Source, class MemorySpace>
struct GatherRows {
  DeviceGatherList<MemorySpace> list;
  Target target;
  Source source;
  int columns;
  int firstRow;

  KOKKOS_INLINE_FUNCTION Scalar value(int row, int column) const {
    if (list.offset.extent(0) == 0) {
      return source(list.from(row), column);
    }
    Scalar all{};
    for (int j = list.offset(row); j < list.offset(row + 1); ++j) {
      const Scalar one = source(list.from(j), column);
      combineInto<Several>(all, one);
    }
    return all;
  }

  KOKKOS_INLINE_FUNCTION void operator()(int index) const {
    const int row = firstRow + index;
    const int to = list.toIsRow ? row : list.to(row);
    for (int column = 0; column < columns; ++column) {
      combineInto<WithTarget>(target(to, column), value(row, column));
    }
  }
};

/// GatherRows for one column where each row is one value to be copied, the usual case: nothing to decide for each
/// value. Reads an index and a value and writes a value; where !ToIsRow it reads a second index.
template <class Scalar, class MemorySpace, bool ToIsRow>
struct GatherColumn {
  const int* to;
  const int* from;
  Scalar* target;
  const Scalar* source;

  GatherColumn(const DeviceGatherList<MemorySpace>& list, int firstRow, Scalar* whereTo, const Scalar* whereFrom)
      : to(list.to.data() + firstRow),
        from(list.from.data() + firstRow),
        target(whereTo + (ToIsRow ? firstRow : 0)),
        source(whereFrom) {}
  KOKKOS_INLINE_FUNCTION void operator()(int i) const { target[ToIsRow ? i : to[i]] = source[from[i]]; }
};

/// target(toOffset + to(i), j) (=|+=) source(fromOffset + from(i), j); empty lists stand for i. No target twice.
template <class Scalar, class IndexView>
struct CopyRows {
  VectorAccess<Scalar> target;
  VectorAccess<const Scalar> source;
  IndexView to, from;
  int toOffset, fromOffset, columns;
  bool add;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    const int t = toOffset + (to.extent(0) == 0 ? i : to(i));
    const int s = fromOffset + (from.extent(0) == 0 ? i : from(i));
    for (int j = 0; j < columns; ++j) {
      if (add) {
        target(t, j) += source(s, j);
      } else {
        target(t, j) = source(s, j);
      }
    }
  }
};

/// Piece i of a column, or of several, from one place to another: by memcpy, which no loop of ours reaches.
template <class Scalar>
struct CopyPieces {
  VectorAccess<Scalar> target;
  VectorAccess<const Scalar> source;
  int rows, pieces, piece;  ///< of a column; entries of a piece
  void operator()(int i) const {
    const int first = i % pieces * piece, column = i / pieces;
    const int count = rows - first < piece ? rows - first : piece;
    std::memcpy(static_cast<void*>(target.columnAt(column) + first), source.columnAt(column) + first,
                sizeof(Scalar) * static_cast<std::size_t>(count));
  }
};

/// Work items 0 to count - 1 of `values` values each. Where kernels run on the host, few run in a plain loop: starting
/// threads costs more.
template <class ExecutionSpace, class Functor>
void runItems(const ExecutionSpace& space, const std::string& label, int count, int values, const Functor& functor) {
  constexpr int smallOnHost = 4096;  // values; about what a thread copies while others are woken up
  if constexpr (runsOnHost<ExecutionSpace>()) {
    if (static_cast<long>(count) * values <= smallOnHost) {
      for (int i = 0; i < count; ++i) {
        functor(i);
      }
      return;
    }
  }
  Kokkos::parallel_for(label, range(space, 0, count), functor);
}

/// Entries of a piece: about what the nearest caches hold of both sides, or less, so that all threads have some.
inline int entriesOfPiece(int rows, int columns, int threads) {
  constexpr int most = 8192, least = 512;
  const std::int64_t share = (static_cast<std::int64_t>(rows) * columns - 1) / threads + 1;
  return static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(share, least), most));
}

/// The first `rows` entries of each column of `source` replace those of `target`, or are added to them. Reads and
/// writes them once; where that is on the host and nothing is added, as fast as memcpy.
template <class Scalar, class ExecutionSpace, class IndexView>
void copyRows(const ExecutionSpace& space, const std::string& label, int rows, const VectorAccess<Scalar>& target,
              const VectorAccess<const Scalar>& source, int columns, bool add) {
  if constexpr (runsOnHost<ExecutionSpace>()) {
    if (!add && target.data == source.data && (columns == 1 || target.stride == source.stride)) {
      return;
    }
    if (!add && rows > 0) {
      const int piece = entriesOfPiece(rows, columns, space.concurrency());
      const int pieces = (rows - 1) / piece + 1;
      runItems(space, label, pieces * columns, std::min(rows, piece),
               CopyPieces<Scalar>{target, source, rows, pieces, piece});
      return;
    }
  }
  Kokkos::parallel_for(label, range(space, 0, rows),
                       CopyRows<Scalar, IndexView>{target, source, {}, {}, 0, 0, columns, add});
}

/// What gather() does. Where a row has one source, `sum` and `largest` are `copy`.
enum class GatherOp {
  copy,        ///< target = source; a row has one source
  sum,         ///< target = sum of sources
  addSum,      ///< target += sum of sources
  largest,     ///< target = largest magnitude of sources
  joinLargest  ///< target = larger of its magnitude and that of the sources
};

/// Rows [first, last) of `list`.
template <class Scalar, class ExecutionSpace, class MemorySpace, class Target, class Source>
void gather(const ExecutionSpace& space, const std::string& label, const DeviceGatherList<MemorySpace>& list, int first,
            int last, const Target& target, const Source& source, int columns, GatherOp op) {
  if (first == last) {
    return;
  }
  const bool oneSource = list.offset.extent(0) == 0;
  const bool copies = op == GatherOp::copy || (oneSource && (op == GatherOp::sum || op == GatherOp::largest));
  if (columns == 1 && copies && oneSource) {  // entry i of a vector or buffer of one column is data[i]
    if (list.toIsRow) {
      const GatherColumn<Scalar, MemorySpace, true> rows(list, first, target.data, source.data);
      runItems(space, label, last - first, 1, rows);
    } else {
      const GatherColumn<Scalar, MemorySpace, false> rows(list, first, target.data, source.data);
      runItems(space, label, last - first, 1, rows);
    }
    return;
  }
  const auto run = [&](auto several, auto withTarget) {
    using Rows = GatherRows<Scalar, decltype(several)::value, decltype(withTarget)::value, Target, Source, MemorySpace>;
    runItems(space, label, last - first, columns, Rows{list, target, source, columns, first});
  };
  using Insert = std::integral_constant<Combine, Combine::insert>;
  using Add = std::integral_constant<Combine, Combine::add>;
  using AbsMax = std::integral_constant<Combine, Combine::absMax>;
  switch (op) {
    case GatherOp::copy:
    case GatherOp::sum:
      return run(Add(), Insert());
    case GatherOp::addSum:
      return run(Add(), Add());
    case GatherOp::largest:
      return run(AbsMax(), Insert());
    case GatherOp::joinLargest:
      return run(AbsMax(), AbsMax());
  }
}

}  // namespace Komvos::Impl
