/// \file Komvos_HMatrixState_def.hpp
/// How it works. All threads approximate the admissible blocks, large ones first. Then two sets of panels are laid out.
/// In the first, the factors v of all blocks of one column cluster lie side by side, transposed: their product with x
/// is t. In the second, all blocks that touch the same group of rows (a cluster of at most 64) lie side by side: parts
/// of u, whose input is t, and dense blocks, whose input is x. x and t are one array, so that both are numbered alike.
/// Dense blocks are evaluated where they stay.
///
/// With reduced storage each column l of u and v has a format, the same for both. Within a column cluster, t is in the
/// order of formats, so that neighbouring rows of v, and neighbouring columns of u, have the same. The scales of u and v
/// are applied to t. Dense blocks have one scale each; they are evaluated before the layout, and kept as integers.
#pragma once

#include <Kokkos_Timer.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ForAllOnHost.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_Panels_def.hpp"
#include "Komvos_PartLists.hpp"
#include "Komvos_StoragePlan.hpp"

namespace Komvos {
namespace Impl {

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

/// A dense block as integers, column by column.
struct PackedBlock {
  BlockFormat format;
  std::vector<unsigned char> upper, lower;
};

/// The number of columns of one format from column `first` on.
inline int columnsAlike(const std::vector<ColumnFormat>& formats, int first) {
  const auto other = std::find_if(formats.begin() + first, formats.end(), [&](const ColumnFormat& column) {
    return column.format != formats[first].format;
  });
  return static_cast<int>(other - formats.begin()) - first;
}

/// Finds blocks with a value that is not finite.
template <class Value, class BlockList>
struct NotFinite {
  BlockList blocks;
  const Value* values;
  KOKKOS_INLINE_FUNCTION void operator()(int b, int& first) const {
    const DeviceBlock& block = blocks(b);
    const std::int64_t count = static_cast<std::int64_t>(block.numRows) * block.numColumns;
    for (std::int64_t i = 0; i < count; ++i) {
      const Value value = values[block.offset + static_cast<std::size_t>(i)];
      if (!(value - value == Value(0)) && b < first) {
        first = b;
      }
    }
  }
};

/// \return the first of such blocks, or a larger number than they have
template <class ExecutionSpace, class Value, class BlockList>
int blockNotFinite(const BlockList& blocks, const Value* values) {
  const auto& space = defaultSpace<ExecutionSpace>();
  int first = 0;
  Kokkos::parallel_reduce("Komvos::HMatrix::notFinite", range(space, 0, static_cast<int>(blocks.extent(0))),
                          NotFinite<Value, BlockList>{blocks, values}, Kokkos::Min<int>(first));
  return first;
}

/// Whole ones count as the widest.
inline int widthOf(ValueFormat format) { return format == ValueFormat::Whole ? 8 : static_cast<int>(format); }

}  // namespace Impl

template <class Scalar, class ExecutionSpace>
struct HMatrix<Scalar, ExecutionSpace>::State {
  using panels_type = Impl::Panels<value_type, ExecutionSpace>;
  using values_type = Kokkos::View<value_type*, memory_space>;
  using scales_type = Kokkos::View<double*, memory_space>;
  using places_type = Kokkos::View<int*, memory_space>;
  using offsets_type = Kokkos::View<std::int64_t*, memory_space>;
  using low_rank = std::optional<LowRank<Scalar>>;

  HMatrixReport report;
  std::vector<Block> blocks;
  Impl::PanelKernel kernel = Impl::runsOnHost<ExecutionSpace>() ? Impl::PanelKernel::Threads : Impl::PanelKernel::Teams;
  bool isHalf = false;
  int rows = 0, columns = 0, ranks = 0;  ///< ranks: of all blocks together, the length of t
  PlaceRanges rowRanges{{}}, columnRanges{{}};
  places_type rowPlace, columnPlace;  ///< where in the user's vectors each position is
  int vectorRows = 0, vectorColumns = 0;  ///< of these
  panels_type first, second;
  values_type input;    ///< x and then t
  values_type output;   ///< y, by place
  values_type mirrored; ///< of half a matrix: what the other half adds to y, and its t

  Impl::PanelLayout firstLayout{sizeof(Scalar)}, secondLayout{sizeof(Scalar)};
  std::vector<double> scaleOfT;         ///< [ranks]; empty where all values are whole
  std::vector<std::int64_t> onDiagonal;  ///< columns of the second panels that have no mirror image

  // For transposed products.
  bool canTranspose = false;       ///< prepared, for `kernel`
  scales_type scaleOfRanks;        ///< scaleOfT
  offsets_type partOffset, part;   ///< PartLists of [x; t]: columns of the second panels
  values_type parts;               ///< of each column of the second panels

  void assemble(const ClusterTree& rowTree, const ClusterTree& columnTree, const EntryKernel<Scalar>& entries,
                const HMatrixOptions& options);
  void setRanges();
  void prepareTransposed();
  void reserve(int vectors);
  template <class Product>
  void inGroups(int vectors, const Product& product);
  void multiplyHalf(const ExecutionSpace& space, int numVectors, const value_type* x, value_type* y);
  void finishTransposed(const ExecutionSpace& space, int numVectors, value_type* both);

  class Assembly;
};

/// What is needed only while a matrix is made.
template <class Scalar, class ExecutionSpace>
class HMatrix<Scalar, ExecutionSpace>::State::Assembly {
 public:
  Assembly(State& state, const ClusterTree& rowTree, const ClusterTree& columnTree, const EntryKernel<Scalar>& entries,
           const HMatrixOptions& options)
      : s_(state),
        rowTree_(rowTree),
        columnTree_(columnTree),
        entries_(entries),
        options_(options),
        isReduced_(std::is_floating_point_v<Scalar> && options.storage == Storage::Reduced),
        factors_(state.blocks.size()),
        formats_(state.blocks.size()),
        packed_(state.blocks.size()),
        placesOfT_(state.blocks.size()) {}

  void run() {
    approximateBlocks();
    packDense();
    count();
    layOutFirst();
    fillFirst();
    for (low_rank& factor : factors_) {
      if (factor) {  // half of the low-rank part, before there is memory for the other half
        std::vector<Scalar>().swap(factor->v);
      }
    }
    layOutSecond();
    fillSecond();
  }

 private:
  static constexpr int fewRows = 8;  ///< of a format in a column cluster: they are stored with more bytes than they need

  /// A row of v in the first panels.
  struct RowOfV {
    Impl::ValueFormat needed, stored;
    int block, column;  ///< of its v
    Impl::StripPlace place;
    int row;  ///< of the strip
  };
  /// Rows [begin, end) of some columns of a block, in the second panels.
  struct Piece {
    int block, begin, end, firstColumn, numColumns;
    Impl::ValueFormat format;
    Impl::StripPlace place;
  };

  const int* rowsFrom(int place) const { return rowTree_.order().data() + place; }
  const int* columnsFrom(int place) const { return columnTree_.order().data() + place; }
  /// For the progress that the user sees: blocks cost about as much as they have rows and columns.
  void tell(std::atomic<std::int64_t>& done, std::int64_t more, std::int64_t all) {
    const std::int64_t before = done.fetch_add(more), now = before + more;
    if (options_.progress && now * 100 / all > before * 100 / all) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (now > told_) {  // not where another thread was faster
        told_ = now;
        options_.progress(0.9 * static_cast<double>(now) / static_cast<double>(all));
      }
    }
  }

  void approximateBlocks();
  void packDense();
  void packDense(std::size_t b);
  std::vector<Scalar> evaluate(const Block& block, int begin, int end) const;
  void count();
  void layOutFirst();
  void layOutCluster(std::vector<RowOfV>& cluster, const Block& block);
  void fillFirst();
  void layOutSecond();
  void addPieces(std::size_t b, int begin, int end);
  void fillSecond();
  bool canFillOnDevice() const;
  void fillOnDevice(unsigned char* bytes) const;
  void store(const Piece& piece, unsigned char* bytes) const;

  State& s_;
  const ClusterTree &rowTree_, &columnTree_;
  const EntryKernel<Scalar>& entries_;
  const HMatrixOptions& options_;
  bool isReduced_;
  std::vector<low_rank> factors_;
  std::vector<std::vector<Impl::ColumnFormat>> formats_;  ///< of the columns of factors
  std::vector<Impl::PackedBlock> packed_;
  std::vector<std::vector<int>> placesOfT_;  ///< in [x; t], of the columns of factors
  std::vector<RowOfV> rowsOfV_;
  std::vector<Piece> pieces_;
  std::mutex mutex_;
  std::int64_t told_ = 0;  ///< the progress that was told last
};

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::approximateBlocks() {
  std::vector<Block>& blocks = s_.blocks;
  const double part = isReduced_ ? 0.3 : 0.0;  // of the accuracy, for rounding
  LowRankOptions options = options_.lowRank;
  options.accuracy *= 1 - part;
  options.recompress = options.recompress || isReduced_;
  std::vector<std::size_t> admissible;
  std::int64_t all = 0;
  const auto sizeOf = [&](std::size_t b) { return static_cast<std::int64_t>(blocks[b].rows()) + blocks[b].columns(); };
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].isAdmissible) {
      admissible.push_back(b);
      all += sizeOf(b);
    }
  }
  std::stable_sort(admissible.begin(), admissible.end(),
                   [&](std::size_t a, std::size_t b) { return sizeOf(a) > sizeOf(b); });
  std::atomic<std::int64_t> done{0};
  Impl::forAllOnHost(admissible.size(), [&](std::size_t i) {
    const std::size_t b = admissible[i];
    const Block& block = blocks[b];
    const std::vector<int> rows(rowsFrom(block.rowBegin), rowsFrom(block.rowEnd));
    const std::vector<int> columns(columnsFrom(block.columnBegin), columnsFrom(block.columnEnd));
    factors_[b] = approximate(entries_, rows, columns, options);
    if (factors_[b]) {
      formats_[b].resize(factors_[b]->rank);
      if constexpr (std::is_floating_point_v<Scalar>) {
        if (isReduced_) {
          formats_[b] = Impl::formatsOfFactors(*factors_[b], part * options_.lowRank.accuracy);
        }
      }
    }
    tell(done, sizeOf(b), all);
  });
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    blocks[b].isAdmissible = factors_[b].has_value();
    blocks[b].rank = factors_[b] ? factors_[b]->rank : -1;
  }
}

/// Rows [begin, end) of a dense block.
template <class Scalar, class ExecutionSpace>
std::vector<Scalar> HMatrix<Scalar, ExecutionSpace>::State::Assembly::evaluate(const Block& block, int begin,
                                                                               int end) const {
  std::vector<Scalar> values(static_cast<std::size_t>(end - begin) * block.columns());
  entries_.block(rowsFrom(begin), end - begin, columnsFrom(block.columnBegin), block.columns(), values.data());
  Impl::requireFinite(values, rowsFrom(begin), end - begin, columnsFrom(block.columnBegin));
  return values;
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::packDense() {
  if (isReduced_) {
    Impl::forAllOnHost(s_.blocks.size(), [&](std::size_t b) {
      if (!factors_[b]) {
        packDense(b);
      }
    });
  }
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::packDense(std::size_t b) {
  if constexpr (std::is_floating_point_v<Scalar>) {
    const Block& block = s_.blocks[b];
    const std::vector<Scalar> values = evaluate(block, block.rowBegin, block.rowEnd);
    Impl::PackedBlock& packed = packed_[b];
    packed.format = Impl::formatOfDense(values, options_.lowRank.accuracy);
    const Impl::ValueFormat format = packed.format.format;
    if (format == Impl::ValueFormat::Whole) {
      packed.upper.resize(values.size() * sizeof(Scalar));
      std::memcpy(packed.upper.data(), values.data(), packed.upper.size());
    } else {
      packed.upper.resize(values.size() * Impl::upperBytes(format));
      packed.lower.resize(values.size() * Impl::lowerBytes(format));
      Impl::storeIntegers(format, packed.format.scale, packed.upper.data(), packed.lower.data(), 0, 1,
                          static_cast<std::int64_t>(values.size()), values.data(), 1);
    }
  }
}

/// Fills the report.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::count() {
  HMatrixReport& report = s_.report;
  for (std::size_t b = 0; b < s_.blocks.size(); ++b) {
    const Block& block = s_.blocks[b];
    if (!factors_[b]) {
      const std::int64_t bytes = static_cast<std::int64_t>(block.rows()) * block.columns() *
                                 Impl::bytesOf<Scalar>(packed_[b].format.format);
      ++report.numDense;
      report.bytesDense += bytes;
      report.bytes += bytes;
      continue;
    }
    for (const Impl::ColumnFormat& column : formats_[b]) {
      report.bytes +=
          (static_cast<std::int64_t>(block.rows()) + block.columns()) * Impl::bytesOf<Scalar>(column.format);
    }
    ++report.numLowRank;
    const auto rank = static_cast<std::size_t>(block.rank);
    report.blocksOfRank.resize(std::max(report.blocksOfRank.size(), rank + 1));
    ++report.blocksOfRank[rank];
  }
  report.isHalf = s_.isHalf;
  report.compression =
      static_cast<double>(report.bytes) / sizeof(Scalar) / rowTree_.size() / columnTree_.size();
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::layOutFirst() {
  std::vector<std::size_t> order;
  std::int64_t all = 0;
  for (std::size_t b = 0; b < s_.blocks.size(); ++b) {
    if (factors_[b] && factors_[b]->rank > 0) {
      order.push_back(b);
      all += factors_[b]->rank;
      placesOfT_[b].resize(factors_[b]->rank);
    }
  }
  if (all + s_.columns > std::numeric_limits<int>::max()) {
    throw BadInput("HMatrix: blocks of " + std::to_string(all) + " ranks together; at most 2^31 - 1 are possible");
  }
  const auto clusterOf = [this](std::size_t b) {
    return std::make_pair(s_.blocks[b].columnBegin, -s_.blocks[b].columnEnd);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return clusterOf(a) < clusterOf(b); });
  rowsOfV_.reserve(static_cast<std::size_t>(all));
  for (std::size_t i = 0; i < order.size();) {
    std::vector<RowOfV> cluster;
    const std::size_t begin = i;
    for (; i < order.size() && clusterOf(order[i]) == clusterOf(order[begin]); ++i) {
      const auto b = order[i];
      for (int l = 0; l < factors_[b]->rank; ++l) {
        const Impl::ValueFormat format = formats_[b][l].format;
        cluster.push_back({format, format, static_cast<int>(b), l, {}, 0});
      }
    }
    layOutCluster(cluster, s_.blocks[order[begin]]);
  }
  s_.firstLayout.finish();
  s_.ranks = static_cast<int>(rowsOfV_.size());
}

/// Rows of v of one column cluster: by formats, then by blocks.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::layOutCluster(std::vector<RowOfV>& cluster, const Block& block) {
  const auto widthOf = [](const RowOfV& row) { return Impl::widthOf(row.needed); };
  std::stable_sort(cluster.begin(), cluster.end(),
                   [&](const RowOfV& a, const RowOfV& b) { return widthOf(a) > widthOf(b); });
  for (auto row = cluster.begin(); row != cluster.end();) {
    const auto next = std::find_if(row, cluster.end(), [&](const RowOfV& r) { return r.needed != row->needed; });
    if (row != cluster.begin() && (next - row < fewRows) && (row - 1)->stored != Impl::ValueFormat::Whole) {
      std::for_each(row, next, [&](RowOfV& r) { r.stored = (row - 1)->stored; });
    }
    row = next;
  }
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    const std::size_t inPanel = i % Impl::PanelLayout::mostRows;
    if (inPanel == 0) {
      const std::size_t rows = std::min<std::size_t>(cluster.size() - i, Impl::PanelLayout::mostRows);
      s_.firstLayout.beginPanel(static_cast<int>(rowsOfV_.size()), static_cast<int>(rows));
    }
    if (inPanel == 0 || cluster[i].stored != cluster[i - 1].stored) {
      std::size_t end = i;
      while (end < cluster.size() && end - i + inPanel < Impl::PanelLayout::mostRows &&
             cluster[end].stored == cluster[i].stored) {
        ++end;
      }
      s_.firstLayout.beginStrip(static_cast<int>(inPanel), static_cast<int>(end - i), cluster[i].stored);
      const auto place = s_.firstLayout.addRun(s_.columnRanges.positionOf(block.columnBegin), block.columns());
      for (std::size_t r = i; r < end; ++r) {
        cluster[r].place = place;
        cluster[r].row = static_cast<int>(r - i);
      }
    }
    placesOfT_[cluster[i].block][cluster[i].column] = s_.columns + static_cast<int>(rowsOfV_.size());
    rowsOfV_.push_back(cluster[i]);
  }
}

/// Copies factors v to where panels expect them, and makes the scales of t.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::fillFirst() {
  const auto bytes = panels_type::allocate("Komvos::HMatrix::v", s_.firstLayout);
  const auto host = Kokkos::create_mirror_view(bytes);
  std::vector<double> scales(rowsOfV_.size());
  constexpr std::size_t some = 32;
  Impl::forAllOnHost((rowsOfV_.size() + some - 1) / some, [&](std::size_t piece) {
    for (std::size_t i = piece * some; i < std::min(rowsOfV_.size(), (piece + 1) * some); ++i) {
      const RowOfV& row = rowsOfV_[i];
      const Impl::ColumnFormat& format = formats_[row.block][row.column];
      const LowRank<Scalar>& block = *factors_[row.block];
      // The integers are those of the format that is needed: the same values, wherever they are stored.
      std::vector<Scalar> v(block.v.begin() + static_cast<std::ptrdiff_t>(row.column) * block.columns,
                            block.v.begin() + static_cast<std::ptrdiff_t>(row.column + 1) * block.columns);
      double scale = format.vScale;
      if constexpr (std::is_floating_point_v<Scalar>) {
        const int more = static_cast<int>(row.stored) - static_cast<int>(row.needed);
        if (row.needed != Impl::ValueFormat::Whole && more > 0) {
          const double factor = scale > 0 ? 1 / scale : 0;  // as in storeIntegers(), or ties are rounded otherwise
          for (Scalar& value : v) {
            value = static_cast<Scalar>(Impl::nearestInteger(static_cast<double>(value) * factor));
          }
          const double shift = std::ldexp(1.0, -8 * more);  // integers are stored times 1 / shift
          Impl::storeValues(s_.firstLayout, host.data(), row.place, Impl::StripLine::Row, row.row, block.columns,
                            v.data(), 1, shift);
          scale *= shift;
          scales[i] = scale * format.uScale;
          continue;
        }
      }
      Impl::storeValues(s_.firstLayout, host.data(), row.place, Impl::StripLine::Row, row.row, block.columns, v.data(),
                        1, scale);
      scales[i] = scale * format.uScale;
    }
  });
  Kokkos::deep_copy(Kokkos::subview(bytes, std::make_pair(std::int64_t{0}, s_.firstLayout.numBytes())),
                    Kokkos::subview(host, std::make_pair(std::int64_t{0}, s_.firstLayout.numBytes())));
  if (isReduced_) {
    s_.scaleOfT = scales;
  }
  s_.first = panels_type(s_.firstLayout, bytes,
                         isReduced_ ? Impl::deviceList<memory_space>("Komvos::HMatrix::scaleOfT", scales)
                                    : scales_type());
}

/// Rows [begin, end) of a block, a piece for each format.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::addPieces(std::size_t b, int begin, int end) {
  if (!factors_[b]) {
    pieces_.push_back({static_cast<int>(b), begin, end, 0, s_.blocks[b].columns(), packed_[b].format.format, {}});
    return;
  }
  for (int l = 0; l < factors_[b]->rank;) {
    const int columns = Impl::columnsAlike(formats_[b], l);
    pieces_.push_back({static_cast<int>(b), begin, end, l, columns, formats_[b][l].format, {}});
    l += columns;
  }
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::layOutSecond() {
  const std::vector<Block>& blocks = s_.blocks;
  const auto groups = Impl::groupsOfRows(rowTree_, s_.rowRanges, Impl::PanelLayout::mostRows);
  std::vector<std::vector<int>> blocksOfGroup(groups.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    auto group = std::partition_point(groups.begin(), groups.end(),
                                      [&](const auto& g) { return g.second <= blocks[b].rowBegin; });
    for (; group != groups.end() && group->first < blocks[b].rowEnd; ++group) {
      blocksOfGroup[group - groups.begin()].push_back(static_cast<int>(b));
    }
  }
  std::vector<std::pair<Impl::StripPlace, int>> mirrorless;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto [groupBegin, groupEnd] = groups[g];
    s_.secondLayout.beginPanel(s_.rowRanges.positionOf(groupBegin), groupEnd - groupBegin);
    const std::size_t firstPiece = pieces_.size();
    for (const int b : blocksOfGroup[g]) {
      addPieces(b, std::max(blocks[b].rowBegin, groupBegin), std::min(blocks[b].rowEnd, groupEnd));
    }
    const auto strip = [](const Piece& piece) {
      return std::make_tuple(piece.begin, -piece.end, -Impl::widthOf(piece.format));
    };
    std::stable_sort(pieces_.begin() + static_cast<std::ptrdiff_t>(firstPiece), pieces_.end(),
                     [&](const Piece& a, const Piece& b) { return strip(a) < strip(b); });
    for (std::size_t i = firstPiece; i < pieces_.size(); ++i) {
      Piece& piece = pieces_[i];
      if (i == firstPiece || strip(piece) != strip(pieces_[i - 1])) {
        s_.secondLayout.beginStrip(piece.begin - groupBegin, piece.end - piece.begin, piece.format);
      }
      const Block& block = blocks[piece.block];
      if (factors_[piece.block]) {
        piece.place = s_.secondLayout.addRun(placesOfT_[piece.block][piece.firstColumn], piece.numColumns);
        continue;
      }
      piece.place = s_.secondLayout.addRun(s_.columnRanges.positionOf(block.columnBegin), block.columns(),
                                           packed_[piece.block].format.scale);
      if (s_.isHalf && block.rowBegin == block.columnBegin) {
        mirrorless.emplace_back(piece.place, block.columns());
      }
    }
  }
  s_.secondLayout.finish();
  std::vector<std::int64_t> firstColumn{0};
  for (const Impl::PanelStrip& strip : s_.secondLayout.strips()) {
    firstColumn.push_back(firstColumn.back() + strip.columns);
  }
  for (const auto& [place, columns] : mirrorless) {
    for (int c = 0; c < columns; ++c) {
      s_.onDiagonal.push_back(firstColumn[place.strip] + place.column + c);
    }
  }
}

/// Into the bytes of the second panels.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::store(const Piece& piece, unsigned char* bytes) const {
  const Block& block = s_.blocks[piece.block];
  const int numRows = piece.end - piece.begin, from = piece.begin - block.rowBegin;
  const auto column = [&](int c) { return Impl::StripPlace{piece.place.strip, piece.place.column + c}; };
  if (const auto& factor = factors_[piece.block]) {
    for (int c = 0; c < piece.numColumns; ++c) {
      const int l = piece.firstColumn + c;
      const Scalar* u = factor->u.data() + static_cast<std::size_t>(l) * block.rows() + from;
      Impl::storeColumn(s_.secondLayout, bytes, column(c), 0, numRows, u, 1, formats_[piece.block][l].uScale);
    }
    return;
  }
  if (!isReduced_) {
    const std::vector<Scalar> dense = evaluate(block, piece.begin, piece.end);
    for (int c = 0; c < block.columns(); ++c) {
      Impl::storeColumn(s_.secondLayout, bytes, column(c), 0, numRows,
                        dense.data() + static_cast<std::size_t>(c) * numRows, 1, 1.0);
    }
    return;
  }
  const Impl::PackedBlock& packed = packed_[piece.block];
  const Impl::PanelStrip& strip = s_.secondLayout.strips()[piece.place.strip];
  const auto copy = [&](const std::vector<unsigned char>& plane, std::int64_t to, int width) {
    for (int c = 0; c < block.columns(); ++c) {
      std::memcpy(bytes + to + (static_cast<std::int64_t>(piece.place.column) + c) * strip.rows * width,
                  plane.data() + (static_cast<std::int64_t>(c) * block.rows() + from) * width,
                  static_cast<std::size_t>(numRows) * width);
    }
  };
  const bool isWhole = strip.format == Impl::ValueFormat::Whole;
  copy(packed.upper, strip.firstByte, isWhole ? static_cast<int>(sizeof(Scalar)) : Impl::upperBytes(strip.format));
  if (!isWhole && Impl::lowerBytes(strip.format) > 0) {
    copy(packed.lower, strip.lowerByte, Impl::lowerBytes(strip.format));
  }
}

/// Whether dense blocks can be evaluated where they stay: whole ones, by a kernel with functors for devices.
template <class Scalar, class ExecutionSpace>
bool HMatrix<Scalar, ExecutionSpace>::State::Assembly::canFillOnDevice() const {
  return std::is_same_v<ExecutionSpace, Kokkos::DefaultExecutionSpace> && !isReduced_ &&
         entries_.fillDevice(nullptr, 0, nullptr);
}

/// \param bytes of the second panels, on the device
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::fillOnDevice(unsigned char* bytes) const {
  const auto rows = Impl::deviceList<memory_space>("Komvos::HMatrix::rows", rowTree_.order());
  const auto columns = Impl::deviceList<memory_space>("Komvos::HMatrix::columns", columnTree_.order());
  std::vector<DeviceBlock> blocks;
  std::vector<const Piece*> dense;
  for (const Piece& piece : pieces_) {
    if (!factors_[piece.block]) {
      const Impl::PanelStrip& strip = s_.secondLayout.strips()[piece.place.strip];
      const Block& block = s_.blocks[piece.block];
      blocks.push_back({rows.data() + piece.begin, piece.end - piece.begin, columns.data() + block.columnBegin,
                        block.columns(),
                        static_cast<std::size_t>(strip.firstByte) / sizeof(Scalar) +
                            static_cast<std::size_t>(piece.place.column) * strip.rows});
      dense.push_back(&piece);
    }
  }
  entries_.fillDevice(blocks.data(), static_cast<int>(blocks.size()), reinterpret_cast<Scalar*>(bytes));
  const auto list = Impl::deviceList<memory_space>("Komvos::HMatrix::blocks", blocks);
  const int bad = Impl::blockNotFinite<ExecutionSpace>(list, reinterpret_cast<const value_type*>(bytes));
  if (bad < static_cast<int>(dense.size())) {
    evaluate(s_.blocks[dense[bad]->block], dense[bad]->begin, dense[bad]->end);  // says which entry it is
    throw BadInput("an entry of the kernel is not finite on the device, though it is on the host");
  }
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::Assembly::fillSecond() {
  const auto bytes = panels_type::allocate("Komvos::HMatrix::u", s_.secondLayout);
  const auto host = Kokkos::create_mirror_view(bytes);
  const bool denseOnDevice = canFillOnDevice();
  Impl::forAllOnHost(pieces_.size(), [&](std::size_t p) {
    if (factors_[pieces_[p].block] || !denseOnDevice) {
      store(pieces_[p], host.data());
    }
  });
  Kokkos::deep_copy(Kokkos::subview(bytes, std::make_pair(std::int64_t{0}, s_.secondLayout.numBytes())),
                    Kokkos::subview(host, std::make_pair(std::int64_t{0}, s_.secondLayout.numBytes())));
  if (denseOnDevice) {
    fillOnDevice(bytes.data());
  }
  s_.second = panels_type(s_.secondLayout, bytes);
}

/// From the blocks.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::setRanges() {
  rowRanges = rowsOf(blocks);
  columnRanges = columnsOf(blocks);
  if (isHalf) {
    std::vector<std::pair<int, int>> both = rowRanges.ranges();
    both.insert(both.end(), columnRanges.ranges().begin(), columnRanges.ranges().end());
    rowRanges = columnRanges = PlaceRanges(std::move(both));
  }
  rows = vectorRows = rowRanges.length();
  columns = vectorColumns = columnRanges.length();
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::assemble(const ClusterTree& rowTree, const ClusterTree& columnTree,
                                                      const EntryKernel<Scalar>& entries,
                                                      const HMatrixOptions& options) {
  const Kokkos::Timer timer;
  setRanges();
  Assembly(*this, rowTree, columnTree, entries, options).run();
  if (options.progress) {
    options.progress(1.0);
  }
  report.seconds = timer.seconds();
}

}  // namespace Komvos
