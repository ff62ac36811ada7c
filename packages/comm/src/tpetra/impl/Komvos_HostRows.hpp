/// \file Komvos_HostRows.hpp
/// The rows of a rank and their product with a vector, where kernels run on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HostRowKernels.hpp"
#include "Komvos_Overlap.hpp"
#include "Komvos_ProductInput.hpp"
#include "Komvos_ProgressHook.hpp"
#include "Komvos_TransposedRowKernels.hpp"

// How this works. A product is made in up to three stages, one for each class of rows; rows of a stage need nothing
// that comes later. Overlap says which stages there are: none has the last one only, with all rows; interior has the
// first and the last; byNode has all three.
//
// Rows are joined to units (Komvos_HostRowKernels.hpp). A stage is a list of intervals of units, in ascending order. A
// short run of rows between rows of a later stage is left to that stage: to begin anew for it would cost more than it
// hides. Intervals are short, so that threads share them out and messages get a chance in between.
//
// A solve may have few products. So what not all of them need is found out when one does: the stages of an overlap
// (prepare), and how well rows are numbered.
namespace Komvos::Impl {

/// Whether a row has the same columns as the row before it.
template <class RowMap, class Columns>
struct CompareColumns {
  RowMap rowMap;
  Columns columns;
  bool* same;
  void operator()(int row) const {
    const std::size_t begin = rowMap(row), count = rowMap(row + 1) - begin;
    const auto* const first = columns.data() + begin;
    same[row] = row > 0 && begin - rowMap(row - 1) == count &&
                (count == 0 || (*first == *(first - count) && std::equal(first, first + count, first - count)));
  }
};

/// Copies the columns of units, each once.
template <class Columns, class Index>
struct CopyColumns {
  Columns columns;
  Index* target;
  const int* units;
  const std::size_t* firstEntry;
  const std::size_t* firstIndex;
  void operator()(int i) const {
    std::copy_n(columns.data() + firstEntry[i], columnsOfUnit(units[i]), target + firstIndex[i]);
  }
};

/// Calls work(first row, number of rows) for each unit, ascending: consecutive rows with the same columns, at most
/// maxRowsOfUnit. \param sameAsBefore of each row; null: each row is a unit
template <class Work>
void forEachUnit(const bool* sameAsBefore, int numRows, const Work& work) {
  for (int first = 0, last; first < numRows; first = last) {
    last = first + 1;
    while (sameAsBefore != nullptr && last < numRows && sameAsBefore[last] && last - first < maxRowsOfUnit) {
      ++last;
    }
    work(first, last - first);
  }
}

inline std::size_t entriesOfUnit(int unit) {
  return static_cast<std::size_t>(rowsOfUnit(unit)) * static_cast<std::size_t>(columnsOfUnit(unit));
}

/// Short runs of units of one class go to the lower class of their neighbours, if these are all higher.
/// \param units as toUnit() makes them \param classOf of each unit
inline void raiseShortRuns(const int* units, RowClass rowClass, std::vector<RowClass>& classOf) {
  constexpr std::size_t shortRun = 1024;  // entries; to be fast again takes some hundreds
  const std::size_t size = classOf.size();
  for (std::size_t first = 0, last; first < size; first = last) {
    std::size_t entries = 0;
    for (last = first; last < size && classOf[last] == classOf[first]; ++last) {
      entries += entriesOfUnit(units[last]);
    }
    const RowClass before = first > 0 ? classOf[first - 1] : RowClass::offNode;
    const RowClass after = last < size ? classOf[last] : RowClass::offNode;
    const RowClass raised = std::min(before, after);
    if (classOf[first] == rowClass && entries < shortRun && raised > rowClass) {
      std::fill(classOf.begin() + first, classOf.begin() + last, raised);
    }
  }
}

/// \tparam Graph Kokkos' static graph of the local rows
template <class Scalar, class Graph, class ExecutionSpace>
class HostRows {
 public:
  using memory_space = typename BufferSpace<ExecutionSpace>::type;
  using index_type = typename Graph::data_type;

  /// \param numSame      columns that are owned entries in place
  /// \param ghostClasses what each of the other columns needs
  /// \throws BadInput if a row has more than 2^29 entries
  HostRows(const Graph& graph, int numSame, const std::vector<RowClass>& ghostClasses);

  /// By RowClass.
  const RowClassCounts& counts() const { return counts_; }
  bool copiesOwned() const { return copiesOwned_; }
  /// Values, indices and row lengths, as one pass over all rows reads them.
  std::size_t matrixBytes() const {
    const std::size_t entries = graph_.entries.extent(0);
    return entries * sizeof(Scalar) + (hasBlocks_ ? columns_.size() : entries) * sizeof(index_type) +
           units_.size() * sizeof(int);
  }
  std::size_t memoryBytes() const;

  /// Makes the stages of an overlap, which else are made in its first product.
  void prepare(Overlap overlap);
  /// y = beta b + alpha A x over the rows of one stage. \param between called now and then
  template <class Between>
  void multiply(const ExecutionSpace& space, Overlap overlap, RowClass stage, const Scalar* values,
                const ProductInput<Scalar>& x, const RowResult<Scalar>& result, const Between& between);

  /// Whether addTransposed() is for this execution space, as it runs now.
  static bool transposes() { return defaultSpace<ExecutionSpace>().concurrency() == 1; }
  /// sums += alpha A^T x, or A^H if `conjugates`, over the rows of one stage, by `columns` columns of x.
  template <class Between>
  void addTransposed(const ExecutionSpace& space, Overlap overlap, RowClass stage, const Scalar* values,
                     const VectorAccess<const Scalar>& x, int columns, Scalar alpha, bool conjugates,
                     const ColumnSums<Scalar>& sums, const Between& between);

 private:
  struct Stage {
    std::vector<RowInterval> intervals;
    int between = 1, betweenForHooks = 1;  // intervals after which messages, and what hooks do, get a chance
  };
  struct Stages {
    bool made = false;
    Stage of[numRowClasses];
  };

  /// Of the units, one after the other.
  const index_type* columnIndices() const { return hasBlocks_ ? columns_.data() : graph_.entries.data(); }
  std::ptrdiff_t numIndices() const { return hasBlocks_ ? columns_.size() : graph_.entries.extent(0); }
  PrefetchX<index_type> prefetchOf(int columns);
  void joinRows(const RowClass* classOf);
  void copyColumnsOfUnits(std::size_t numColumns);
  const Stage& stage(Overlap overlap, RowClass rowClass) {
    prepare(overlap);
    return stages_[static_cast<int>(overlap)].of[index(rowClass)];
  }
  static RowClass stageOf(Overlap overlap, RowClass rowClass);
  static int intervalsAtOnce(const Stage& stage) { return ProgressHook::any() ? stage.betweenForHooks : stage.between; }
  template <int Width, class LocalSource, class GhostSource, class Between>
  void launch(const ExecutionSpace& space, const Stage& stage, const Scalar* values, const LocalSource& local,
              const GhostSource& withGhosts, const RowResult<Scalar>& result, int firstColumn, const Between& between);

  Graph graph_;
  int numSame_;
  std::size_t numColumns_;
  RowClassCounts counts_ = {};
  bool copiesOwned_ = false;
  bool hasBlocks_ = false;
  std::optional<bool> isScattered_;  // whether entries of x are far apart
  bool hasLongRows_ = false;
  Kokkos::View<int*, memory_space> units_;           // as toUnit() makes them
  std::vector<RowClass> classOfUnit_;
  Kokkos::View<index_type*, memory_space> columns_;  // of units, where there are blocks
  Stages stages_[3];                                 // by Overlap
};

template <class Scalar, class Graph, class ExecutionSpace>
HostRows<Scalar, Graph, ExecutionSpace>::HostRows(const Graph& graph, int numSame,
                                                  const std::vector<RowClass>& ghostClasses)
    : graph_(graph), numSame_(numSame), numColumns_(numSame + ghostClasses.size()) {
  const int numRows = static_cast<int>(graph.numRows());
  using ClassList = Kokkos::View<RowClass*, memory_space>;
  using Classify = ClassifyRows<ClassList, typename Graph::row_map_type, typename Graph::entries_type, ClassList>;
  const ClassList classesOfGhosts = deviceList<memory_space>("Komvos::HostRows::ghostClasses", ghostClasses);
  const ClassList classOf(Kokkos::view_alloc("Komvos::HostRows::classOf", Kokkos::WithoutInitializing), numRows);
  const ExecutionSpace& space = defaultSpace<ExecutionSpace>();
  Kokkos::parallel_for("Komvos::HostRows::classifyRows", Kokkos::RangePolicy<ExecutionSpace>(space, 0, numRows),
                       Classify{classesOfGhosts, graph.row_map, graph.entries, classOf, numSame});
  fence(space, "Komvos::HostRows: rows are classified");
  std::size_t entriesWithGhosts = 0;
  for (int row = 0; row < numRows; ++row) {
    ++counts_[index(classOf(row))];
    entriesWithGhosts += classOf(row) == RowClass::local ? 0 : graph.row_map(row + 1) - graph.row_map(row);
  }
  copiesOwned_ = copyPays(entriesWithGhosts, numSame);
  joinRows(classOf.data());
  constexpr std::ptrdiff_t longRow = 16;  // entries
  hasLongRows_ = numIndices() >= longRow * static_cast<std::ptrdiff_t>(units_.size());
}

/// Rows with the same columns become one unit, if that saves a third of all indices.
template <class Scalar, class Graph, class ExecutionSpace>
void HostRows<Scalar, Graph, ExecutionSpace>::joinRows(const RowClass* classOf) {
  const int numRows = static_cast<int>(graph_.numRows());
  const ExecutionSpace& space = defaultSpace<ExecutionSpace>();
  const Kokkos::View<bool*, memory_space> same(
      Kokkos::view_alloc("Komvos::HostRows::sameAsBefore", Kokkos::WithoutInitializing), numRows);
  using Compare = CompareColumns<typename Graph::row_map_type, typename Graph::entries_type>;
  Kokkos::parallel_for("Komvos::HostRows::compareColumns", Kokkos::RangePolicy<ExecutionSpace>(space, 0, numRows),
                       Compare{graph_.row_map, graph_.entries, same.data()});
  fence(space, "Komvos::HostRows: rows are compared");
  const auto* const rowMap = graph_.row_map.data();
  std::size_t longest = 0, entriesOfSame = 0;
  for (int row = 0; row < numRows; ++row) {
    const std::size_t length = rowMap[row + 1] - rowMap[row];
    longest = std::max(longest, length);
    entriesOfSame += same(row) ? length : 0;
  }
  if (longest > maxColumnsOfUnit) {
    throw BadInput("NodeAwareCrsMatrix: a row has " + std::to_string(longest) + " entries, at most " +
                   std::to_string(maxColumnsOfUnit) + " are supported");
  }
  const std::size_t entries = numRows > 0 ? rowMap[numRows] - rowMap[0] : 0;
  std::size_t columns = 0;
  int numUnits = 0;
  if (3 * entriesOfSame >= entries && entries > 0) {  // else units cannot save a third
    forEachUnit(same.data(), numRows, [&](int first, int) {
      columns += rowMap[first + 1] - rowMap[first];
      ++numUnits;
    });
    hasBlocks_ = 3 * columns <= 2 * entries;
  }
  numUnits = hasBlocks_ ? numUnits : numRows;
  units_ = decltype(units_)(Kokkos::view_alloc("Komvos::HostRows::units", Kokkos::WithoutInitializing), numUnits);
  classOfUnit_.resize(numUnits);
  int next = 0;
  forEachUnit(hasBlocks_ ? same.data() : nullptr, numRows, [&](int first, int rows) {
    units_(next) = toUnit(rows, static_cast<int>(rowMap[first + 1] - rowMap[first]));
    classOfUnit_[next++] = classOf[first];
  });
  if (hasBlocks_) {
    copyColumnsOfUnits(columns);
  }
}

template <class Scalar, class Graph, class ExecutionSpace>
void HostRows<Scalar, Graph, ExecutionSpace>::copyColumnsOfUnits(std::size_t numColumns) {
  const int numUnits = static_cast<int>(units_.size());
  std::vector<std::size_t> firstEntry(numUnits), firstIndex(numUnits);
  std::size_t entries = 0, indices = 0;
  for (int i = 0; i < numUnits; ++i) {
    firstEntry[i] = entries;
    firstIndex[i] = indices;
    entries += entriesOfUnit(units_(i));
    indices += columnsOfUnit(units_(i));
  }
  columns_ =
      decltype(columns_)(Kokkos::view_alloc("Komvos::HostRows::columns", Kokkos::WithoutInitializing), numColumns);
  const ExecutionSpace& space = defaultSpace<ExecutionSpace>();
  Kokkos::parallel_for("Komvos::HostRows::copyColumns", Kokkos::RangePolicy<ExecutionSpace>(space, 0, numUnits),
                       CopyColumns<typename Graph::entries_type, index_type>{
                           graph_.entries, columns_.data(), units_.data(), firstEntry.data(), firstIndex.data()});
  fence(space, "Komvos::HostRows: the columns of units are copied");
}

template <class Scalar, class Graph, class ExecutionSpace>
RowClass HostRows<Scalar, Graph, ExecutionSpace>::stageOf(Overlap overlap, RowClass rowClass) {
  const bool early = overlap == Overlap::byNode || (overlap == Overlap::interior && rowClass == RowClass::local);
  return early ? rowClass : RowClass::offNode;
}

template <class Scalar, class Graph, class ExecutionSpace>
void HostRows<Scalar, Graph, ExecutionSpace>::prepare(Overlap overlap) {
  if (stages_[static_cast<int>(overlap)].made) {
    return;
  }
  constexpr std::size_t longest = 4096;  // entries
  std::vector<RowClass> classOf = classOfUnit_;
  if (overlap != Overlap::byNode) {
    std::replace(classOf.begin(), classOf.end(), RowClass::onNode, RowClass::offNode);
  }
  raiseShortRuns(units_.data(), RowClass::local, classOf);
  if (overlap == Overlap::byNode) {
    raiseShortRuns(units_.data(), RowClass::onNode, classOf);
  }
  Stages made;
  Stage(&stages)[numRowClasses] = made.of;
  std::size_t entriesOf[numRowClasses] = {};
  std::size_t firstEntry = 0, firstIndex = 0;
  int firstRow = 0;
  const int* const units = units_.data();
  for (std::size_t first = 0, last; first < classOf.size(); first = last) {
    const RowClass rowClass = classOf[first];
    std::size_t rows = 0, entries = 0, indices = 0;
    for (last = first; last < classOf.size() && classOf[last] == rowClass && entries + rows < longest; ++last) {
      rows += rowsOfUnit(units[last]);
      entries += entriesOfUnit(units[last]);
      indices += columnsOfUnit(units[last]);
    }
    const int stage = index(stageOf(overlap, rowClass));
    stages[stage].intervals.push_back({firstRow, static_cast<int>(first), static_cast<int>(last - first),
                                       rowClass != RowClass::local, firstEntry, hasBlocks_ ? firstIndex : firstEntry});
    entriesOf[stage] += entries;
    firstRow += static_cast<int>(rows);
    firstEntry += entries;
    firstIndex += indices;
  }
  // Messages get a chance after some tens of microseconds of work. A reduction that a hook keeps going takes one round
  // of messages after the other, each as long as the network's latency: until it has arrived, it gets more chances, but
  // fewer where threads have to be woken for each piece.
  const auto threads = static_cast<std::size_t>(defaultSpace<ExecutionSpace>().concurrency());
  for (int stage = 0; stage < numRowClasses; ++stage) {
    const std::size_t intervals = stages[stage].intervals.size();
    const auto intervalsOf = [&](std::size_t entries) {
      const std::size_t number = entries * threads * intervals / std::max<std::size_t>(1, entriesOf[stage]);
      return static_cast<int>(std::min(std::max<std::size_t>(1, number), intervals + 1));
    };
    stages[stage].between = intervalsOf(32768);
    stages[stage].betweenForHooks = intervalsOf(threads == 1 ? 4096 : 8192);
  }
  made.made = true;
  stages_[static_cast<int>(overlap)] = std::move(made);
}

/// For products by so many columns.
template <class Scalar, class Graph, class ExecutionSpace>
auto HostRows<Scalar, Graph, ExecutionSpace>::prefetchOf(int columns) -> PrefetchX<index_type> {
  constexpr std::size_t cache = std::size_t{1} << 20;  // bytes that are near anyway
  if (sizeof(Scalar) * numColumns_ * columns <= cache) {
    return {};
  }
  if (!isScattered_) {
    isScattered_ = isScattered(columnIndices(), numIndices(), sizeof(Scalar));
  }
  return *isScattered_ ? PrefetchX<index_type>(columnIndices(), numIndices()) : PrefetchX<index_type>();
}

template <class Scalar, class Graph, class ExecutionSpace>
template <class Between>
void HostRows<Scalar, Graph, ExecutionSpace>::multiply(const ExecutionSpace& space, Overlap overlap, RowClass rowClass,
                                                       const Scalar* values, const ProductInput<Scalar>& x,
                                                       const RowResult<Scalar>& result, const Between& between) {
  const Stage& stage = this->stage(overlap, rowClass);
  if (stage.intervals.empty()) {
    return;
  }
  if (x.columns == 1) {
    const OneColumn<Scalar> owned{x.owned};
    if (x.copied != nullptr) {
      launch<1>(space, stage, values, owned, OneColumn<Scalar>{x.copied}, result, 0, between);
    } else {
      const OwnedAndGhosts<Scalar> both{x.owned, x.ghosts, numSame_};
      launch<1>(space, stage, values, owned, both, result, 0, between);
    }
    return;
  }
  forColumns(x.columns, [&](auto width, int first) {
    const RowMajor<Scalar> all{x.copied + first, static_cast<std::size_t>(x.columns)};
    launch<decltype(width)::value>(space, stage, values, all, all, result, first, between);
  });
}

template <class Scalar, class Graph, class ExecutionSpace>
template <int Width, class LocalSource, class GhostSource, class Between>
void HostRows<Scalar, Graph, ExecutionSpace>::launch(const ExecutionSpace& space, const Stage& stage,
                                                     const Scalar* values, const LocalSource& local,
                                                     const GhostSource& withGhosts, const RowResult<Scalar>& result,
                                                     int firstColumn, const Between& between) {
  const int count = static_cast<int>(stage.intervals.size());
  const PrefetchX<index_type> prefetchesX = prefetchOf(Width);
  const bool rolls = prefetchesX.isOn() && hasLongRows_;
  for (int first = 0, last; first < count; first = last) {
    last = std::min(count, first + intervalsAtOnce(stage));
    const auto run = [&](auto blocks, auto vectorBytes, const auto& compiled) {
      using Product = MultiplyIntervals<Scalar, index_type, LocalSource, GhostSource, Width, decltype(blocks)::value,
                                        decltype(vectorBytes)::value>;
      Kokkos::parallel_for(multiplyRowsLabel, range(space, first, last),
                           compiled(Product{stage.intervals.data(), units_.data(), columnIndices(), values, local,
                                            withGhosts, result, firstColumn, prefetchesX, rolls}));
    };
    const auto runFor = [&](auto vectorBytes, const auto& compiled) {
      if (hasBlocks_) {
        run(std::true_type(), vectorBytes, compiled);
      } else {
        run(std::false_type(), vectorBytes, compiled);
      }
    };
    const auto asItIs = [](const auto& product) { return product; };
#ifdef KOMVOS_HAVE_AVX2_TWIN
    if constexpr (Width > 1) {
      if (cpuHasAvx2()) {
        runFor(std::integral_constant<int, 32>(),
               [](const auto& product) { return WithAvx2<std::decay_t<decltype(product)>>{product}; });
      } else {
        runFor(std::integral_constant<int, 16>(), asItIs);
      }
    } else {
      runFor(std::integral_constant<int, 16>(), asItIs);
    }
#else
    runFor(std::integral_constant<int, 16>(), asItIs);
#endif
    between();
  }
}

template <class Scalar, class Graph, class ExecutionSpace>
template <class Between>
void HostRows<Scalar, Graph, ExecutionSpace>::addTransposed(const ExecutionSpace& space, Overlap overlap,
                                                            RowClass rowClass, const Scalar* values,
                                                            const VectorAccess<const Scalar>& x, int columns,
                                                            Scalar alpha, bool conjugates,
                                                            const ColumnSums<Scalar>& sums, const Between& between) {
  const Stage& stage = this->stage(overlap, rowClass);
  const auto run = [&](int firstColumn, auto width, auto conjugated) {
    const AddTransposedIntervals<Scalar, index_type, decltype(width)::value, decltype(conjugated)::value> add{
        stage.intervals.data(), units_.data(), columnIndices(), values, x, alpha, sums, firstColumn, prefetchOf(1)};
    const int count = static_cast<int>(stage.intervals.size());
    for (int first = 0, last; first < count; first = last) {
      last = std::min(count, first + intervalsAtOnce(stage));
      Kokkos::parallel_for(addTransposedRowsLabel, range(space, first, last), add);
      between();
    }
  };
  const auto runFor = [&](int firstColumn, auto width) {
    if (conjugates) {
      run(firstColumn, width, std::true_type());
    } else {
      run(firstColumn, width, std::false_type());
    }
  };
  const int together = prefetchOf(columns).isOn() ? 1 : 4;  // sums of one column at a time fit a cache the better
  for (int first = 0; first < columns;) {
    const int left = std::min(together, columns - first);
    if (left == 4) {
      runFor(first, std::integral_constant<int, 4>());
      first += 4;
    } else if (left >= 2) {
      runFor(first, std::integral_constant<int, 2>());
      first += 2;
    } else {
      runFor(first, std::integral_constant<int, 1>());
      ++first;
    }
  }
}

template <class Scalar, class Graph, class ExecutionSpace>
std::size_t HostRows<Scalar, Graph, ExecutionSpace>::memoryBytes() const {
  std::size_t bytes =
      units_.size() * sizeof(int) + classOfUnit_.size() * sizeof(RowClass) + columns_.size() * sizeof(index_type);
  for (const Stages& stages : stages_) {
    for (const Stage& stage : stages.of) {
      bytes += stage.intervals.size() * sizeof(RowInterval);
    }
  }
  return bytes;
}

}  // namespace Komvos::Impl
