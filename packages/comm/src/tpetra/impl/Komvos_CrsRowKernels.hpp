/// \file Komvos_CrsRowKernels.hpp
/// Classes of rows by what they need, and products of rows on devices. Those on the host: Komvos_HostRowKernels.hpp.
#pragma once

#include "Komvos_GatherKernels.hpp"

namespace Komvos::Impl {

/// What the columns of a row, or one column, need.
enum class RowClass : signed char {
  local,   ///< owned values in place
  onNode,  ///< also ghosts that come straight from this node, or owned values that are permuted
  offNode  ///< also other ghosts
};
constexpr int numRowClasses = 3;
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

/// Writes the rows of the classes [lowest, highest], ascending, in a parallel_scan.
template <class ClassList, class RowList>
struct CompactRows {
  ClassList rowClassOf;
  RowList rows;
  RowClass lowest, highest;
  KOKKOS_INLINE_FUNCTION void operator()(int row, int& position, bool final) const {
    if (rowClassOf(row) >= lowest && rowClassOf(row) <= highest) {
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

/// Entries of the matrix in the rows of one class.
template <class ClassList, class RowMap>
struct CountEntries {
  ClassList rowClassOf;
  RowMap rowMap;
  RowClass wanted;
  KOKKOS_INLINE_FUNCTION void operator()(int row, std::size_t& count) const {
    count += rowClassOf(row) == wanted ? rowMap(row + 1) - rowMap(row) : 0;
  }
};

// What a product reads x from: x(entry, w) is entry `entry` of the column map, column w.

/// One column, all entries in one array.
template <class Scalar>
struct OneColumn {
  const Scalar* x;
  KOKKOS_FORCEINLINE_FUNCTION const Scalar* at(int entry) const { return x + entry; }
  KOKKOS_FORCEINLINE_FUNCTION Scalar operator()(int entry, int) const { return x[entry]; }
};

/// One column, owned entries in place, ghosts in an array of their own.
template <class Scalar>
struct OwnedAndGhosts {
  const Scalar* owned;
  const Scalar* ghosts;
  int numSame;
  KOKKOS_FORCEINLINE_FUNCTION const Scalar* at(int entry) const {
    return entry < numSame ? owned + entry : ghosts + (entry - numSame);
  }
  KOKKOS_FORCEINLINE_FUNCTION Scalar operator()(int entry, int) const {
    return entry < numSame ? owned[entry] : ghosts[entry - numSame];
  }
};

/// Several columns; those of one entry are neighbours, so that one cache line brings them all.
template <class Scalar>
struct RowMajor {
  const Scalar* x;
  std::size_t stride;
  KOKKOS_FORCEINLINE_FUNCTION const Scalar* at(int entry) const { return x + entry * stride; }
  KOKKOS_FORCEINLINE_FUNCTION Scalar operator()(int entry, int w) const { return at(entry)[w]; }
};

/// Where the results of rows go: y = beta b + alpha sum; beta == 0 does not read b.
template <class Scalar>
struct RowResult {
  VectorAccess<const Scalar> b;
  VectorAccess<Scalar> y;
  Scalar alpha, beta;
  KOKKOS_FORCEINLINE_FUNCTION void store(int row, int column, const Scalar& sum) const {
    const Scalar scaled = alpha * sum;
    y(row, column) = beta == Scalar{} ? scaled : beta * b(row, column) + scaled;
  }
};

/// The local part of a matrix by rows, in device memory.
template <class Scalar, class Offset, class Index>
struct LocalMatrix {
  const Offset* rowMap;  ///< rows + 1
  const Index* entries;  ///< local column indices
  const Scalar* values;
};

/// How the vector lanes of a thread share a row: groups of lanes take every so many-th entry, the lanes of a group a
/// column each. The order of a sum depends on this, and on nothing else.
struct RowLanes {
  int groups = 1, columns = 1;
  KOKKOS_INLINE_FUNCTION int count() const { return groups * columns; }
};

/// Row rows(i), or i if the list is empty, and `Width` columns from `firstColumn` on. A thread has a row.
template <class Scalar, class Matrix, class RowList, class Source, int Width, class ExecutionSpace>
struct MultiplyListedRows {
  using scratch = Kokkos::View<Scalar*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryUnmanaged>;

  Matrix matrix;
  RowList rows;
  Source x;  ///< starts at firstColumn
  RowResult<Scalar> result;
  int firstColumn;
  int count, rowsOfTeam;
  RowLanes lanes;

  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member) const {
    const int first = member.league_rank() * rowsOfTeam, end = first + rowsOfTeam;
    // Taken once: each view that is made of scratch memory gets another part of it.
    const scratch shared(member.team_scratch(0), needsScratch() ? member.team_size() * lanes.count() : 0);
    Scalar* const partial = shared.data() + member.team_rank() * lanes.count();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, first, end < count ? end : count),
                         [&](const int i) { multiply(member, rows.extent(0) == 0 ? i : rows(i), partial); });
  }
  KOKKOS_INLINE_FUNCTION bool needsScratch() const { return Width > 1 && lanes.groups > 1; }
  std::size_t scratchBytes(int teamSize) const {
    return needsScratch() ? scratch::shmem_size(teamSize * lanes.count()) : 0;
  }

  /// \param partial [lanes], of this thread
  template <class Member>
  KOKKOS_INLINE_FUNCTION void multiply(const Member& member, int row, [[maybe_unused]] Scalar* partial) const {
    const std::size_t begin = matrix.rowMap[row], end = matrix.rowMap[row + 1];
    if constexpr (Width == 1) {
      Scalar sum{};
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(member, begin, end),
          [&](const std::size_t k, Scalar& to) { to += matrix.values[k] * x(matrix.entries[k], 0); }, sum);
      Kokkos::single(Kokkos::PerThread(member), [&] { result.store(row, firstColumn, sum); });
    } else if (lanes.groups == 1) {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, Width),
                           [&](const int w) { result.store(row, firstColumn + w, sumOf(begin, end, 1, w)); });
    } else {  // each of the two waits for all lanes at its end
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, lanes.count()), [&](const int lane) {
        const int w = lane % lanes.columns, group = lane / lanes.columns;
        partial[lane] = w < Width ? sumOf(begin + group, end, lanes.groups, w) : Scalar{};
      });
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, Width), [&](const int w) {
        Scalar sum = partial[w];
        for (int group = 1; group < lanes.groups; ++group) {
          sum += partial[group * lanes.columns + w];
        }
        result.store(row, firstColumn + w, sum);
      });
    }
  }

  KOKKOS_INLINE_FUNCTION Scalar sumOf(std::size_t begin, std::size_t end, int step, int w) const {
    Scalar sum{};
    for (std::size_t k = begin; k < end; k += step) {
      sum += matrix.values[k] * x(matrix.entries[k], w);
    }
    return sum;
  }
};

/// target(to(i), j) = source(from(i), j) into interleaved columns; empty lists stand for i.
/// \tparam Columns how many; 0: known only when it runs
template <class Scalar, class IndexView, int Columns = 0>
struct CopyToRowMajor {
  Scalar* target;
  VectorAccess<const Scalar> source;
  IndexView to, from;
  int columns;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    const std::size_t t = to.extent(0) == 0 ? i : to(i);
    const int s = from.extent(0) == 0 ? i : from(i);
    const int count = Columns > 0 ? Columns : columns;
    for (int j = 0; j < count; ++j) {
      target[t * count + j] = source(s, j);
    }
  }
};

}  // namespace Komvos::Impl
