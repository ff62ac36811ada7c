/// \file Komvos_DeviceRows.hpp
/// The rows of a rank and their product with a vector, where kernels run on a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Overlap.hpp"
#include "Komvos_ProductInput.hpp"

// How this works. As HostRows (Komvos_HostRows.hpp), with stages that are lists of rows, and a thread for each row,
// with as many vector lanes as the rows are long.
namespace Komvos::Impl {

/// \tparam Graph Kokkos' static graph of the local rows
template <class Scalar, class Graph, class ExecutionSpace>
class DeviceRows {
 public:
  using memory_space = typename BufferSpace<ExecutionSpace>::type;

  /// As HostRows.
  DeviceRows(const Graph& graph, int numSame, const std::vector<RowClass>& ghostClasses);

  const RowClassCounts& counts() const { return counts_; }
  bool copiesOwned() const { return copiesOwned_; }
  /// Values, indices and row offsets, as one pass over all rows reads them.
  std::size_t matrixBytes() const {
    return graph_.entries.extent(0) * (sizeof(Scalar) + sizeof(typename Graph::data_type)) +
           graph_.row_map.extent(0) * sizeof(typename Graph::size_type);
  }
  std::size_t memoryBytes() const;
  void prepare(Overlap) {}  // all lists are made at once

  template <class Between>
  void multiply(const ExecutionSpace& space, Overlap overlap, RowClass stage, const Scalar* values,
                const ProductInput<Scalar>& x, const RowResult<Scalar>& result, const Between& between) const;

 private:
  static constexpr int threadsOfTeam = 256;  ///< lanes counted

  using RowList = Kokkos::View<int*, memory_space>;
  using ClassList = Kokkos::View<RowClass*, memory_space>;

  RowList compact(const ClassList& classOf, RowClass lowest, RowClass highest) const;
  /// The rows of a stage; an empty list and all rows stand for each other.
  struct Stage {
    RowList rows;
    int count;
  };
  Stage stageOf(Overlap overlap, RowClass rowClass) const;

  RowLanes lanesFor(int columns) const;
  template <class Product>
  void launch(const ExecutionSpace& space, Product product) const;

  Graph graph_;
  int numSame_;
  RowClassCounts counts_ = {};
  bool copiesOwned_ = false;
  RowList local_, onNode_, offNode_, withGhosts_;
};

template <class Scalar, class Graph, class ExecutionSpace>
DeviceRows<Scalar, Graph, ExecutionSpace>::DeviceRows(const Graph& graph, int numSame,
                                                      const std::vector<RowClass>& ghostClasses)
    : graph_(graph), numSame_(numSame) {
  const ClassList classOf("Komvos::DeviceRows::classOf", graph.numRows());
  const auto classes = deviceList<memory_space>("Komvos::DeviceRows::ghostClasses", ghostClasses);
  using RowMap = typename Graph::row_map_type;
  using Classify = ClassifyRows<ClassList, RowMap, typename Graph::entries_type, ClassList>;
  const Kokkos::RangePolicy<ExecutionSpace> allRows(0, graph.numRows());
  Kokkos::parallel_for("Komvos::DeviceRows::classifyRows", allRows,
                       Classify{classes, graph.row_map, graph.entries, classOf, numSame});
  std::size_t entriesWithGhosts = 0;
  for (const RowClass one : {RowClass::local, RowClass::onNode, RowClass::offNode}) {
    int rows = 0;
    std::size_t entries = 0;
    Kokkos::parallel_reduce("Komvos::DeviceRows::countRows", allRows, CountRows<ClassList>{classOf, one}, rows);
    Kokkos::parallel_reduce("Komvos::DeviceRows::countEntries", allRows,
                            CountEntries<ClassList, RowMap>{classOf, graph.row_map, one}, entries);
    counts_[index(one)] = rows;
    entriesWithGhosts += one == RowClass::local ? 0 : entries;
  }
  copiesOwned_ = copyPays(entriesWithGhosts, numSame);
  local_ = compact(classOf, RowClass::local, RowClass::local);
  onNode_ = compact(classOf, RowClass::onNode, RowClass::onNode);
  offNode_ = compact(classOf, RowClass::offNode, RowClass::offNode);
  withGhosts_ = compact(classOf, RowClass::onNode, RowClass::offNode);
  fence(defaultSpace<ExecutionSpace>(), "Komvos::DeviceRows: row lists are complete");
}

template <class Scalar, class Graph, class ExecutionSpace>
auto DeviceRows<Scalar, Graph, ExecutionSpace>::compact(const ClassList& classOf, RowClass lowest,
                                                        RowClass highest) const -> RowList {
  std::size_t count = 0;
  for (int one = index(lowest); one <= index(highest); ++one) {
    count += counts_[one];
  }
  const RowList rows(Kokkos::view_alloc("Komvos::DeviceRows::rows", Kokkos::WithoutInitializing), count);
  Kokkos::parallel_scan("Komvos::DeviceRows::compactRows", Kokkos::RangePolicy<ExecutionSpace>(0, classOf.extent(0)),
                        CompactRows<ClassList, RowList>{classOf, rows, lowest, highest});
  return rows;
}

template <class Scalar, class Graph, class ExecutionSpace>
auto DeviceRows<Scalar, Graph, ExecutionSpace>::stageOf(Overlap overlap, RowClass rowClass) const -> Stage {
  const int numRows = static_cast<int>(graph_.numRows());
  if (overlap == Overlap::none) {
    return {RowList(), rowClass == RowClass::offNode ? numRows : 0};
  }
  if (overlap == Overlap::interior && rowClass == RowClass::onNode) {
    return {RowList(), 0};
  }
  const RowList& rows = rowClass == RowClass::local    ? local_
                        : rowClass == RowClass::onNode ? onNode_
                        : overlap == Overlap::byNode   ? offNode_
                                                       : withGhosts_;
  const int count = static_cast<int>(rows.extent(0));
  return {count == numRows ? RowList() : rows, count};
}

template <class Scalar, class Graph, class ExecutionSpace>
template <class Between>
void DeviceRows<Scalar, Graph, ExecutionSpace>::multiply(const ExecutionSpace& space, Overlap overlap,
                                                         RowClass rowClass, const Scalar* values,
                                                         const ProductInput<Scalar>& x, const RowResult<Scalar>& result,
                                                         const Between& between) const {
  const Stage stage = stageOf(overlap, rowClass);
  if (stage.count == 0) {
    return;
  }
  using Matrix = LocalMatrix<Scalar, typename Graph::size_type, typename Graph::data_type>;
  const Matrix matrix{graph_.row_map.data(), graph_.entries.data(), values};
  const auto by = [&](const auto& source, auto width, int firstColumn) {
    using Source = std::decay_t<decltype(source)>;
    constexpr int columns = decltype(width)::value;
    using Product = MultiplyListedRows<Scalar, Matrix, RowList, Source, columns, ExecutionSpace>;
    launch(space, Product{matrix, stage.rows, source, result, firstColumn, stage.count, 0, lanesFor(columns)});
  };
  if (x.columns == 1) {
    constexpr std::integral_constant<int, 1> one;
    if (rowClass == RowClass::local) {
      by(OneColumn<Scalar>{x.owned}, one, 0);
    } else if (x.copied != nullptr) {
      by(OneColumn<Scalar>{x.copied}, one, 0);
    } else {
      by(OwnedAndGhosts<Scalar>{x.owned, x.ghosts, numSame_}, one, 0);
    }
  } else {
    forColumns(x.columns, [&](auto width, int first) {
      by(RowMajor<Scalar>{x.copied + first, static_cast<std::size_t>(x.columns)}, width, first);
    });
  }
  between();
}

/// As many lanes as the rows of the whole matrix are long, in the mean. With fewer, threads would read far apart; with
/// more, they would have too little to add up.
template <class Scalar, class Graph, class ExecutionSpace>
RowLanes DeviceRows<Scalar, Graph, ExecutionSpace>::lanesFor(int columns) const {
  const std::size_t rows = std::max<std::size_t>(1, graph_.numRows()), entries = graph_.entries.extent(0);
  RowLanes lanes{1, columns == 3 ? 4 : columns};
  while (2 * lanes.count() <= 32 && static_cast<std::size_t>(lanes.groups) * 6 < entries / rows) {
    lanes.groups *= 2;
  }
  return lanes;
}

template <class Scalar, class Graph, class ExecutionSpace>
template <class Product>
void DeviceRows<Scalar, Graph, ExecutionSpace>::launch(const ExecutionSpace& space, Product product) const {
  const int lanes = product.lanes.count();
  const int teamSize = runsOnHost<ExecutionSpace>() ? 1 : threadsOfTeam / lanes;
  product.rowsOfTeam = threadsOfTeam / lanes;
  const int teams = (product.count + product.rowsOfTeam - 1) / product.rowsOfTeam;
  Kokkos::parallel_for(multiplyRowsLabel,
                       Kokkos::TeamPolicy<ExecutionSpace>(space, teams, teamSize, lanes)
                           .set_scratch_size(0, Kokkos::PerTeam(product.scratchBytes(teamSize))),
                       product);
}

template <class Scalar, class Graph, class ExecutionSpace>
std::size_t DeviceRows<Scalar, Graph, ExecutionSpace>::memoryBytes() const {
  return (local_.size() + onNode_.size() + offNode_.size() + withGhosts_.size()) * sizeof(int);
}

}  // namespace Komvos::Impl
