/// \file Komvos_HMatrix_def.hpp
/// How it works. All threads approximate the admissible blocks, large ones first. Then two sets of panels are laid out.
/// In the first, the factors v of all blocks of one column cluster lie side by side, transposed: their product with x
/// is t. In the second, all blocks that touch the same group of rows (a cluster of at most 64) lie side by side: parts
/// of u, whose input is t, and dense blocks, whose input is x. x and t are one array, so that both are numbered alike.
/// Dense blocks are evaluated where they stay.
///
/// The transposed product goes the other way. Each column of a panel gives a part of t, or of y; lists made when they
/// are first needed say which parts are added.
#pragma once

#include <Kokkos_Timer.hpp>
#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_Panels_def.hpp"

namespace Komvos {
namespace Impl {

/// work(i) for 0 <= i < n, by all threads of the host, as they become free. Rethrows the first error.
template <class Work>
void forAllOnHost(std::size_t n, const Work& work) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  std::exception_ptr error;
  std::mutex mutex;
  std::atomic<bool> stop{false};
  using Policy = Kokkos::RangePolicy<Host, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for("Komvos::HMatrix::make", Policy(0, static_cast<std::int64_t>(n)).set_chunk_size(1),
                       [&](std::int64_t i) {
                         if (stop) {
                           return;
                         }
                         try {
                           work(static_cast<std::size_t>(i));
                         } catch (...) {
                           const std::lock_guard<std::mutex> lock(mutex);
                           error = error ? error : std::current_exception();
                           stop = true;
                         }
                       });
  Kokkos::fence();
  if (error) {
    std::rethrow_exception(error);
  }
}

/// Which parts are added to each place of an array, in what order.
struct PartLists {
  std::vector<std::int64_t> offset;  ///< [places + 1]
  std::vector<std::int64_t> part;

  /// \param target the place of each part
  PartLists(int places, const std::vector<int>& target) : offset(static_cast<std::size_t>(places) + 1) {
    for (const int place : target) {
      ++offset[static_cast<std::size_t>(place) + 1];
    }
    std::partial_sum(offset.begin(), offset.end(), offset.begin());
    part.resize(target.size());
    std::vector<std::int64_t> next(offset.begin(), offset.end() - 1);
    for (std::size_t p = 0; p < target.size(); ++p) {
      part[next[target[p]]++] = static_cast<std::int64_t>(p);
    }
  }
};

/// The input place of each column of each strip.
inline std::vector<int> inputsOf(const PanelLayout& layout) {
  std::vector<int> inputs;
  for (const PanelRun& run : layout.runs) {
    for (int c = 0; c < run.columns; ++c) {
      inputs.push_back(run.input + c);
    }
  }
  return inputs;
}

}  // namespace Impl

template <class Scalar, class ExecutionSpace>
struct HMatrix<Scalar, ExecutionSpace>::State {
  using panels_type = Impl::Panels<value_type, ExecutionSpace>;
  using values_type = Kokkos::View<value_type*, memory_space>;
  using host_values = typename values_type::HostMirror;
  using places_type = Kokkos::View<int*, memory_space>;
  using offsets_type = Kokkos::View<std::int64_t*, memory_space>;
  using low_rank = std::optional<LowRank<Scalar>>;

  HMatrixReport report;
  std::vector<Block> blocks;
  Impl::PanelKernel kernel = Impl::runsOnHost<ExecutionSpace>() ? Impl::PanelKernel::Threads : Impl::PanelKernel::Teams;
  int rows = 0, columns = 0, ranks = 0;  ///< ranks: of all blocks together, the length of t
  PlaceRanges rowRanges{{}}, columnRanges{{}};
  places_type rowPlace, columnPlace;  ///< where in the user's vectors each position is
  panels_type first, second;
  values_type input;   ///< x and then t
  values_type output;  ///< y, by place

  // For transposed products.
  Impl::PanelLayout firstLayout, secondLayout;
  bool canTranspose = false;
  offsets_type secondOffset, secondPart, firstOffset, firstPart;  ///< PartLists of [x; t], and of x
  values_type secondParts, firstParts;

  void assemble(const ClusterTree& rowTree, const ClusterTree& columnTree, const EntryKernel<Scalar>& entries,
                const LowRankOptions& options);
  std::vector<int> layOutFirst(const std::vector<low_rank>& factors);
  void fillFirst(const std::vector<low_rank>& factors, const std::vector<int>& rankOffset);
  void makeSecond(const ClusterTree& rowTree, const ClusterTree& columnTree, const EntryKernel<Scalar>& entries,
                  const std::vector<low_rank>& factors, const std::vector<int>& rankOffset);
  void prepareTransposed();
  void reserve(int vectors);
  template <class Product>
  void inGroups(int vectors, const Product& product);
};

namespace Impl {

/// The first `length` values.
template <class To, class From>
void copyValues(const To& to, const From& from, std::int64_t length) {
  const auto used = std::make_pair(std::int64_t{0}, length);
  Kokkos::deep_copy(Kokkos::subview(to, used), Kokkos::subview(from, used));
}

/// The largest clusters of at most so many unknowns, and larger leaves cut to that; of each, what is in the ranges.
inline std::vector<std::pair<int, int>> groupsOfRows(const ClusterTree& tree, const PlaceRanges& needed, int most) {
  std::vector<std::pair<int, int>> groups;
  std::vector<int> open{0};
  while (!open.empty()) {
    const Cluster& cluster = tree.clusters()[open.back()];
    open.pop_back();
    if (cluster.size() > most && !cluster.isLeaf()) {
      open.push_back(cluster.child + 1);
      open.push_back(cluster.child);
      continue;
    }
    for (int begin = cluster.begin; begin < cluster.end; begin += most) {
      const int end = std::min(begin + most, cluster.end);
      const auto& ranges = needed.ranges();
      auto range =
          std::partition_point(ranges.begin(), ranges.end(), [begin](const auto& r) { return r.second <= begin; });
      for (; range != ranges.end() && range->first < end; ++range) {
        groups.emplace_back(std::max(begin, range->first), std::min(end, range->second));
      }
    }
  }
  return groups;
}

/// Vectors between the user's order and the tree's. N vectors at a time, neighbours in memory by the tree's order.
template <class Value, class View>
struct FromUser {
  const int* user;
  View x;
  int firstVector, numVectors;
  Value* to;
  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    for (int q = 0; q < numVectors; ++q) {
      to[static_cast<std::ptrdiff_t>(place) * numVectors + q] = x(user[place], firstVector + q);
    }
  }
};

template <class Value, class View>
struct ToUser {
  const int* user;
  const Value* from;
  int firstVector, numVectors;
  View y;
  Value alpha, beta;
  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    for (int q = 0; q < numVectors; ++q) {
      Value& to = y(user[place], firstVector + q);
      const Value product = alpha * from[static_cast<std::ptrdiff_t>(place) * numVectors + q];
      to = beta == Value(0) ? product : product + beta * to;
    }
  }
};

/// Adds the parts of each place, to what is there or to nothing.
template <class Value>
struct AddParts {
  const std::int64_t *offset, *part;
  const Value* parts;
  int numVectors;
  bool add;
  Value* to;
  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    for (int q = 0; q < numVectors; ++q) {
      Value& value = to[static_cast<std::ptrdiff_t>(place) * numVectors + q];
      Value sum = add ? value : Value(0);
      for (std::int64_t p = offset[place]; p < offset[place + 1]; ++p) {
        sum += parts[part[p] * numVectors + q];
      }
      value = sum;
    }
  }
};

}  // namespace Impl

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::assemble(const ClusterTree& rowTree, const ClusterTree& columnTree,
                                                      const EntryKernel<Scalar>& entries,
                                                      const LowRankOptions& options) {
  const Kokkos::Timer timer;
  rowRanges = rowsOf(blocks);
  columnRanges = columnsOf(blocks);
  rows = rowRanges.length();
  columns = columnRanges.length();

  std::vector<std::size_t> admissible;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].isAdmissible) {
      admissible.push_back(b);
    }
  }
  std::stable_sort(admissible.begin(), admissible.end(), [this](std::size_t a, std::size_t b) {
    return blocks[a].rows() + blocks[a].columns() > blocks[b].rows() + blocks[b].columns();
  });
  std::vector<low_rank> factors(blocks.size());
  Impl::forAllOnHost(admissible.size(), [&](std::size_t i) {
    const Block& block = blocks[admissible[i]];
    const std::vector<int> blockRows(rowTree.order().begin() + block.rowBegin, rowTree.order().begin() + block.rowEnd);
    const std::vector<int> blockColumns(columnTree.order().begin() + block.columnBegin,
                                        columnTree.order().begin() + block.columnEnd);
    factors[admissible[i]] = approximate(entries, blockRows, blockColumns, options);
  });
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    blocks[b].isAdmissible = factors[b].has_value();
    const auto rank = static_cast<std::size_t>(factors[b] ? factors[b]->rank : 0);
    const std::int64_t values = factors[b] ? static_cast<std::int64_t>(rank) * (blocks[b].rows() + blocks[b].columns())
                                           : static_cast<std::int64_t>(blocks[b].rows()) * blocks[b].columns();
    const std::int64_t bytes = values * static_cast<std::int64_t>(sizeof(Scalar));
    report.bytes += bytes;
    if (!factors[b]) {
      ++report.numDense;
      report.bytesDense += bytes;
      continue;
    }
    ++report.numLowRank;
    report.blocksOfRank.resize(std::max(report.blocksOfRank.size(), rank + 1));
    ++report.blocksOfRank[rank];
  }
  report.compression = static_cast<double>(report.bytes) / sizeof(Scalar) / rowTree.size() / columnTree.size();
  const std::vector<int> rankOffset = layOutFirst(factors);
  fillFirst(factors, rankOffset);
  makeSecond(rowTree, columnTree, entries, factors, rankOffset);
  report.seconds = timer.seconds();
}

/// \return where the part of t that belongs to each block begins, in [x; t]
template <class Scalar, class ExecutionSpace>
std::vector<int> HMatrix<Scalar, ExecutionSpace>::State::layOutFirst(const std::vector<low_rank>& factors) {
  std::vector<std::size_t> order;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (factors[b] && factors[b]->rank > 0) {
      order.push_back(b);
    }
  }
  const auto cluster = [this](std::size_t b) { return std::make_pair(blocks[b].columnBegin, -blocks[b].columnEnd); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cluster(a) < cluster(b); });
  std::vector<int> rankOffset(blocks.size());
  const std::int64_t all = std::accumulate(order.begin(), order.end(), std::int64_t{0},
                                           [&](std::int64_t sum, std::size_t b) { return sum + factors[b]->rank; });
  if (all + columns > std::numeric_limits<int>::max()) {
    throw BadInput("HMatrix: blocks of " + std::to_string(all) + " ranks together; at most 2^31 - 1 are possible");
  }
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    int sum = 0;
    for (; end < order.size() && cluster(order[end]) == cluster(order[i]); ++end) {
      rankOffset[order[end]] = columns + ranks + sum;
      sum += factors[order[end]]->rank;
    }
    const Block& block = blocks[order[i]];
    for (int row = 0; row < sum; row += Impl::PanelLayout::mostRows) {
      const int panelRows = std::min(sum - row, Impl::PanelLayout::mostRows);
      firstLayout.beginPanel(ranks + row, panelRows);
      firstLayout.beginStrip(0, panelRows);
      firstLayout.addRun(columnRanges.positionOf(block.columnBegin), block.columns());
    }
    ranks += sum;
    i = end;
  }
  return rankOffset;
}

/// Copies factors v to where panels expect them: [ranks of a panel x columns of its cluster].
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::fillFirst(const std::vector<low_rank>& factors,
                                                       const std::vector<int>& rankOffset) {
  const values_type values = panels_type::allocate("Komvos::HMatrix::v", firstLayout);
  const host_values host = Kokkos::create_mirror_view(values);
  // The block, and the column of v, of each value of t.
  std::vector<std::pair<int, int>> source(ranks);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (int l = 0; factors[b] && l < factors[b]->rank; ++l) {
      source[rankOffset[b] - columns + l] = {static_cast<int>(b), l};
    }
  }
  Impl::forAllOnHost(firstLayout.panels.size(), [&](std::size_t p) {
    const Impl::Panel& panel = firstLayout.panels[p];
    for (int row = 0; row < panel.rows; ++row) {
      const auto [b, l] = source[panel.output + row];
      const LowRank<Scalar>& block = *factors[b];
      const Scalar* v = block.v.data() + static_cast<std::size_t>(l) * block.columns;
      for (int c = 0; c < block.columns; ++c) {
        host(panel.firstValue + static_cast<std::int64_t>(c) * panel.rows + row) = v[c];
      }
    }
  });
  Impl::copyValues(values, host, firstLayout.numValues);
  first = panels_type(firstLayout, values);
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::makeSecond(const ClusterTree& rowTree, const ClusterTree& columnTree,
                                                        const EntryKernel<Scalar>& entries,
                                                        const std::vector<low_rank>& factors,
                                                        const std::vector<int>& rankOffset) {
  const auto groups = Impl::groupsOfRows(rowTree, rowRanges, Impl::PanelLayout::mostRows);
  std::vector<std::vector<int>> blocksOfGroup(groups.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    auto group = std::partition_point(groups.begin(), groups.end(),
                                      [&](const auto& g) { return g.second <= blocks[b].rowBegin; });
    for (; group != groups.end() && group->first < blocks[b].rowEnd; ++group) {
      blocksOfGroup[group - groups.begin()].push_back(static_cast<int>(b));
    }
  }
  /// Where rows [begin, end) of a block go.
  struct Piece {
    int block, begin, end;
    std::int64_t at;
  };
  std::vector<Piece> pieces;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto [groupBegin, groupEnd] = groups[g];
    secondLayout.beginPanel(rowRanges.positionOf(groupBegin), groupEnd - groupBegin);
    const std::size_t firstPiece = pieces.size();
    for (const int b : blocksOfGroup[g]) {
      pieces.push_back({b, std::max(blocks[b].rowBegin, groupBegin), std::min(blocks[b].rowEnd, groupEnd), 0});
    }
    const auto strip = [](const Piece& piece) { return std::make_pair(piece.begin, -piece.end); };
    std::stable_sort(pieces.begin() + static_cast<std::ptrdiff_t>(firstPiece), pieces.end(),
                     [&](const Piece& a, const Piece& b) { return strip(a) < strip(b); });
    for (std::size_t i = firstPiece; i < pieces.size(); ++i) {
      Piece& piece = pieces[i];
      if (i == firstPiece || strip(piece) != strip(pieces[i - 1])) {
        secondLayout.beginStrip(piece.begin - groupBegin, piece.end - piece.begin);
      }
      const auto& factor = factors[piece.block];
      const Block& block = blocks[piece.block];
      if (!factor) {
        piece.at = secondLayout.addRun(columnRanges.positionOf(block.columnBegin), block.columns());
      } else if (factor->rank > 0) {
        piece.at = secondLayout.addRun(rankOffset[piece.block], factor->rank);
      }
    }
  }
  const values_type values = panels_type::allocate("Komvos::HMatrix::u", secondLayout);
  const host_values host = Kokkos::create_mirror_view(values);
  Impl::forAllOnHost(pieces.size(), [&](std::size_t p) {
    const Piece& piece = pieces[p];
    const Block& block = blocks[piece.block];
    const int numRows = piece.end - piece.begin;
    if (const auto& factor = factors[piece.block]) {
      for (int l = 0; l < factor->rank; ++l) {
        const Scalar* u =
            factor->u.data() + static_cast<std::size_t>(l) * block.rows() + (piece.begin - block.rowBegin);
        std::copy_n(u, numRows, host.data() + piece.at + static_cast<std::int64_t>(l) * numRows);
      }
      return;
    }
    std::vector<Scalar> dense(static_cast<std::size_t>(numRows) * block.columns());
    entries.block(rowTree.order().data() + piece.begin, numRows, columnTree.order().data() + block.columnBegin,
                  block.columns(), dense.data());
    Impl::requireFinite(dense, rowTree.order().data() + piece.begin, numRows,
                        columnTree.order().data() + block.columnBegin);
    std::copy(dense.begin(), dense.end(), host.data() + piece.at);
  });
  Impl::copyValues(values, host, secondLayout.numValues);
  second = panels_type(secondLayout, values);
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::reserve(int vectors) {
  using Kokkos::view_alloc;
  const auto length = static_cast<std::size_t>(std::max(columns, rows) + ranks) * static_cast<std::size_t>(vectors);
  if (input.extent(0) < length) {
    input = values_type(view_alloc("Komvos::HMatrix::input", Kokkos::WithoutInitializing), length);
    output = values_type(view_alloc("Komvos::HMatrix::output", Kokkos::WithoutInitializing),
                         static_cast<std::size_t>(std::max(rows, columns)) * static_cast<std::size_t>(vectors));
  }
}

/// product(first vector, number of vectors), in groups that kernels are compiled for.
template <class Scalar, class ExecutionSpace>
template <class Product>
void HMatrix<Scalar, ExecutionSpace>::State::inGroups(int vectors, const Product& product) {
  for (int done = 0; done < vectors;) {
    int group = panels_type::mostVectors;
    while (group > vectors - done) {
      group /= 2;
    }
    reserve(group);
    product(done, group);
    done += group;
  }
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::prepareTransposed() {
  if (canTranspose) {
    return;
  }
  const auto upload = [](const Impl::PartLists& lists, offsets_type& offset, offsets_type& part) {
    offset = Impl::deviceList<memory_space>("Komvos::HMatrix::offset", lists.offset);
    part = Impl::deviceList<memory_space>("Komvos::HMatrix::part", lists.part);
  };
  upload(Impl::PartLists(columns + ranks, Impl::inputsOf(secondLayout)), secondOffset, secondPart);
  upload(Impl::PartLists(columns, Impl::inputsOf(firstLayout)), firstOffset, firstPart);
  canTranspose = true;
}

namespace Impl {
inline void requireAccuracy(double accuracy) {
  if (!(accuracy > 0) || accuracy >= 1) {
    throw BadInput("HMatrix: an accuracy of " + std::to_string(accuracy) + "; it must be between 0 and 1");
  }
}
}  // namespace Impl

template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::HMatrix(const ClusterTree& rows, const ClusterTree& columns,
                                         const EntryKernel<Scalar>& kernel, const HMatrixOptions& options)
    : state_(std::make_unique<State>()) {
  Impl::requireAccuracy(options.lowRank.accuracy);
  state_->blocks = blockLeaves(rows, columns, options.eta);
  state_->assemble(rows, columns, kernel, options.lowRank);
  state_->rowPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::rowPlace", rows.order());
  state_->columnPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::columnPlace", columns.order());
}

template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::HMatrix(const ClusterTree& rows, const ClusterTree& columns, std::vector<Block> blocks,
                                         const EntryKernel<Scalar>& kernel, const LowRankOptions& options)
    : state_(std::make_unique<State>()) {
  Impl::requireAccuracy(options.accuracy);
  state_->blocks = std::move(blocks);
  state_->assemble(rows, columns, kernel, options);
  const auto inOrder = [](int length) {
    std::vector<int> list(length);
    std::iota(list.begin(), list.end(), 0);
    return Impl::deviceList<memory_space>("Komvos::HMatrix::place", list);
  };
  state_->rowPlace = inOrder(state_->rows);
  state_->columnPlace = inOrder(state_->columns);
}

template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::~HMatrix() = default;
template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::HMatrix(HMatrix&&) noexcept = default;
template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>& HMatrix<Scalar, ExecutionSpace>::operator=(HMatrix&&) noexcept = default;

template <class Scalar, class ExecutionSpace>
int HMatrix<Scalar, ExecutionSpace>::numRows() const {
  return state_->rows;
}
template <class Scalar, class ExecutionSpace>
int HMatrix<Scalar, ExecutionSpace>::numColumns() const {
  return state_->columns;
}
template <class Scalar, class ExecutionSpace>
const HMatrixReport& HMatrix<Scalar, ExecutionSpace>::report() const {
  return state_->report;
}
template <class Scalar, class ExecutionSpace>
const std::vector<Block>& HMatrix<Scalar, ExecutionSpace>::blocks() const {
  return state_->blocks;
}
template <class Scalar, class ExecutionSpace>
std::int64_t HMatrix<Scalar, ExecutionSpace>::bytesRead() const {
  return (state_->first.numValues() + state_->second.numValues()) * static_cast<std::int64_t>(sizeof(Scalar));
}
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::useKernel(Impl::PanelKernel kernel) {
  state_->kernel = kernel;
}
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::useVectorUnit(Impl::VectorUnit unit) {
  state_->first.useVectorUnit(unit);
  state_->second.useVectorUnit(unit);
}

namespace Impl {
template <class Input, class Output>
void requireExtents(const char* where, const Input& x, int xRows, const Output& y, int yRows) {
  const auto has = [](const auto& view, int length) { return view.extent(0) == static_cast<std::size_t>(length); };
  if (!has(x, xRows) || !has(y, yRows) || x.extent(1) != y.extent(1)) {
    throw PlanMismatch(std::string(where) + ": x is " + std::to_string(x.extent(0)) + " x " +
                       std::to_string(x.extent(1)) + " and y " + std::to_string(y.extent(0)) + " x " +
                       std::to_string(y.extent(1)) + "; x has to have " + std::to_string(xRows) + " rows and y " +
                       std::to_string(yRows));
  }
}
}  // namespace Impl

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::multiply(const ExecutionSpace& space, const input_view& x, const output_view& y,
                                               value_type alpha, value_type beta) const {
  State& s = *state_;
  Impl::requireExtents("HMatrix::multiply", x, s.columns, y, s.rows);
  s.inGroups(static_cast<int>(x.extent(1)), [&](int firstVector, int n) {
    value_type *const in = s.input.data(), *const t = in + static_cast<std::ptrdiff_t>(s.columns) * n;
    Kokkos::parallel_for("Komvos::HMatrix::multiply: x", Impl::range(space, 0, s.columns),
                         Impl::FromUser<value_type, input_view>{s.columnPlace.data(), x, firstVector, n, in});
    s.first.multiply(space, s.kernel, n, in, t, false);
    s.second.multiply(space, s.kernel, n, in, s.output.data(), false);
    Kokkos::parallel_for(
        "Komvos::HMatrix::multiply: y", Impl::range(space, 0, s.rows),
        Impl::ToUser<value_type, output_view>{s.rowPlace.data(), s.output.data(), firstVector, n, y, alpha, beta});
  });
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::multiplyTransposed(const ExecutionSpace& space, const input_view& x,
                                                         const output_view& y, value_type alpha,
                                                         value_type beta) const {
  State& s = *state_;
  Impl::requireExtents("HMatrix::multiplyTransposed", x, s.rows, y, s.columns);
  s.prepareTransposed();
  s.inGroups(static_cast<int>(x.extent(1)), [&](int firstVector, int n) {
    using Kokkos::view_alloc;
    const auto enough = [&](typename State::values_type& parts, std::int64_t columns) {
      if (static_cast<std::int64_t>(parts.extent(0)) < columns * n) {
        parts =
            typename State::values_type(view_alloc("Komvos::HMatrix::parts", Kokkos::WithoutInitializing), columns * n);
      }
    };
    enough(s.secondParts, s.second.numColumns());
    enough(s.firstParts, s.first.numColumns());
    // The place of [y; t] is that of [x; t] in the product that is not transposed.
    value_type *const both = s.input.data(), *const t = both + static_cast<std::ptrdiff_t>(s.columns) * n;
    Kokkos::parallel_for("Komvos::HMatrix::multiplyTransposed: x", Impl::range(space, 0, s.rows),
                         Impl::FromUser<value_type, input_view>{s.rowPlace.data(), x, firstVector, n, s.output.data()});
    s.second.multiplyTransposed(space, n, s.output.data(), s.secondParts.data());
    Kokkos::parallel_for(
        "Komvos::HMatrix::multiplyTransposed: t", Impl::range(space, 0, s.columns + s.ranks),
        Impl::AddParts<value_type>{s.secondOffset.data(), s.secondPart.data(), s.secondParts.data(), n, false, both});
    s.first.multiplyTransposed(space, n, t, s.firstParts.data());
    Kokkos::parallel_for(
        "Komvos::HMatrix::multiplyTransposed: v", Impl::range(space, 0, s.columns),
        Impl::AddParts<value_type>{s.firstOffset.data(), s.firstPart.data(), s.firstParts.data(), n, true, both});
    Kokkos::parallel_for(
        "Komvos::HMatrix::multiplyTransposed: y", Impl::range(space, 0, s.columns),
        Impl::ToUser<value_type, output_view>{s.columnPlace.data(), both, firstVector, n, y, alpha, beta});
  });
}

}  // namespace Komvos
