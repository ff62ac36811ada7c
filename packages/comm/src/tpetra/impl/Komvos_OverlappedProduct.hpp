/// \file Komvos_OverlappedProduct.hpp
/// y = beta b + alpha A x over the rows of a rank, with the exchange of the ghosts of x.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_DeviceRows.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_GatherKernels.hpp"
#include "Komvos_HaloUse.hpp"
#include "Komvos_HostRows.hpp"
#include "Komvos_LargeArray.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_OverlapChoice.hpp"
#include "Komvos_UseOfHalo.hpp"

// How this works. apply() starts the exchange, multiplies the stages of rows that Overlap allows while messages travel
// (HostRows, DeviceRows), ends the exchange, and multiplies the rest. Where Overlap is automatic, some products are
// timed (OverlapChoice), for each class of widths by itself: those that are no samples of the tuner, which compares
// variants of the exchange under one overlap, and anew when the tuner has changed the variant.
//
// Transposed, rows with ghosts come first: their sums travel to the owners while the others are computed.
//
// One column of x is read in place, and its ghosts from an array of their own; owned values are copied beside them
// where that pays (copyPays). Several columns are always copied, so that those of one entry are neighbours: a row finds
// all it needs for a column index in one or two cache lines, and ghosts of several columns arrive in place.
namespace Komvos::Impl {

// Kokkos wants labels as strings; made once, since making them allocates.
inline const std::string copyOwnedLabel = "Komvos::NodeAwareCrsMatrix::copyOwned";
inline const std::string copyPermutedLabel = "Komvos::NodeAwareCrsMatrix::copyPermuted";

/// \tparam Matrix Tpetra::CrsMatrix
template <class Matrix>
class OverlappedProduct {
 public:
  using value_type = typename Matrix::impl_scalar_type;  // Kokkos::complex for std::complex
  using node_type = typename Matrix::node_type;
  using execution_space = typename node_type::device_type::execution_space;
  using halo_type =
      NodeAwareImport<typename Matrix::local_ordinal_type, typename Matrix::global_ordinal_type, node_type>;
  using exchange_type = Exchange<value_type, typename node_type::device_type>;
  using const_view = typename exchange_type::const_view;
  using view = typename exchange_type::view;
  using graph_type = typename Matrix::local_matrix_device_type::StaticCrsGraphType;

  /// \param importer   the exchange between domain and column map; null: no rank needs any ghost; outlives this object
  /// \param numColumns of the column map, on this rank
  OverlappedProduct(const graph_type& graph, const halo_type* importer, int numColumns, Overlap overlap);

  /// \param x         over the domain map, \param b and \param y over the row map; b may be y
  /// \param forward   whether other ranks still wait for this one in the exchange, for callers that catch what is
  /// thrown
  /// \note Collective if there is an importer.
  void apply(const const_view& x, const value_type* values, const const_view& b, const view& y, value_type alpha,
             value_type beta, bool& forward);

  /// Whether applyTransposed() is for this execution space: on the host with one thread.
  bool transposes() const;
  /// y += alpha A^T x, or A^H if `conjugates`.
  /// \param x over the row map, \param y over the domain map; they share no memory
  /// \param reverse as `forward` of apply(), of the reverse exchange \note Collective if there is an importer.
  void applyTransposed(const const_view& x, const value_type* values, const view& y, value_type alpha, bool conjugates,
                       bool& reverse);

  const RowClassCounts& rowCounts() const { return rows_.counts(); }
  /// For products of so many columns, so far.
  Overlap overlap(int columns) const { return choices_[widthClass(columns)].overlap(); }
  /// Values, indices and row lengths, as one pass over all rows reads them.
  std::size_t matrixBytes() const { return rows_.matrixBytes(); }
  std::size_t memoryBytes() const { return rows_.memoryBytes() + columnValues_.size() * sizeof(value_type); }

 private:
  using memory_space = typename BufferSpace<execution_space>::type;
  using Rows = std::conditional_t<runsOnHost<execution_space>(), HostRows<value_type, graph_type, execution_space>,
                                  DeviceRows<value_type, graph_type, execution_space>>;
  using Ghosts = typename exchange_type::Interleaved;
  using index_view = typename halo_type::index_view;

  static std::vector<RowClass> classifyGhosts(const halo_type* importer, int numGhosts);
  value_type* workSpace(int columns);
  void copyOwned(const const_view& x, value_type* copied, value_type* ghosts, bool copies) const;
  void multiplyDuringExchange(Overlap overlap, exchange_type& exchange, const Ghosts& ghosts, const value_type* values,
                              const ProductInput<value_type>& input, const RowResult<value_type>& result,
                              UseOfHalo<halo_type>& use, bool& forward);
  OverlapChoice& choiceFor(const exchange_type& exchange, int columns, bool isSample);
  view ghostSums(int columns);

  const halo_type* importer_;
  int numSame_, numGhosts_;
  Rows rows_;
  OverlapChoice choices_[numWidthClasses];
  const void* chosenFor_ = nullptr;  // the exchange that choices_ are of
  bool hides_ = false;               // whether messages take long enough to hide them
  const execution_space& space_ = defaultSpace<execution_space>();
  // Work space, kept between products: owned values if they are copied, then ghosts; columns interleaved.
  Kokkos::View<value_type*, memory_space> columnValues_;
  Kokkos::View<value_type*, memory_space> ghostSums_;  // transposed
};

template <class Matrix>
OverlappedProduct<Matrix>::OverlappedProduct(const graph_type& graph, const halo_type* importer, int numColumns,
                                             Overlap overlap)
    : importer_(importer),
      numSame_(importer != nullptr ? importer->numSame() : numColumns),
      numGhosts_(numColumns - numSame_),
      rows_(graph, numSame_, classifyGhosts(importer, numGhosts_)) {
  // On one node there is little to hide, and to try it would cost a short solve more than it finds.
  hides_ = importer != nullptr && importer->report().standard.total.interNodeMessages > 0;
  const Overlap fixed = importer != nullptr ? overlap : Overlap::none;
  for (OverlapChoice& choice : choices_) {
    choice = hides_ ? OverlapChoice(fixed, Overlap::byNode)
                    : OverlapChoice(fixed, Overlap::none, OverlapChoice::untriedOnNode);
  }
}

/// Ghosts that are permuted owned values count as on this node.
template <class Matrix>
std::vector<RowClass> OverlappedProduct<Matrix>::classifyGhosts(const halo_type* importer, int numGhosts) {
  std::vector<RowClass> classes(numGhosts, RowClass::onNode);
  if (importer != nullptr) {
    for (const ExchangePlan::Delivery& delivery : importer->plan().deliveries) {
      classes[delivery.target] = delivery.onNode ? RowClass::onNode : RowClass::offNode;
    }
  }
  return classes;
}

template <class Matrix>
auto OverlappedProduct<Matrix>::workSpace(int columns) -> value_type* {
  const bool copies = columns > 1 || rows_.copiesOwned();
  const std::size_t size = static_cast<std::size_t>((copies ? numSame_ : 0) + numGhosts_) * columns;
  if (columnValues_.extent(0) < size) {
    columnValues_ = {};  // before the larger one is allocated
    columnValues_ = largeArray<decltype(columnValues_)>("Komvos::NodeAwareCrsMatrix::columnValues", size);
  }
  return columnValues_.data();
}

/// What stays on this rank: owned values beside the ghosts, if they are copied, and the permuted ones among them.
template <class Matrix>
void OverlappedProduct<Matrix>::copyOwned(const const_view& x, value_type* copied, value_type* ghosts,
                                          bool copies) const {
  const VectorAccess<const value_type> source{x.data(), x.stride(1)};
  const int columns = static_cast<int>(x.extent(1));
  const auto copy = [&](auto known) {
    using Copy = CopyToRowMajor<value_type, index_view, decltype(known)::value>;
    Kokkos::parallel_for(copyOwnedLabel, range(space_, 0, numSame_), Copy{copied, source, {}, {}, columns});
  };
  if (copies) {
    switch (columns) {
      case 1:
        copyRows<value_type, execution_space, index_view>(space_, copyOwnedLabel, numSame_, {copied, 0}, source, 1,
                                                          false);
        break;
      case 2:
        copy(std::integral_constant<int, 2>());
        break;
      case 3:
        copy(std::integral_constant<int, 3>());
        break;
      case 4:
        copy(std::integral_constant<int, 4>());
        break;
      default:
        copy(std::integral_constant<int, 0>());
    }
  }
  const int numPermuted = importer_ != nullptr ? static_cast<int>(importer_->permuteTo().extent(0)) : 0;
  if (numPermuted > 0) {
    using Copy = CopyToRowMajor<value_type, index_view>;
    Kokkos::parallel_for(copyPermutedLabel, range(space_, 0, numPermuted),
                         Copy{ghosts, source, importer_->permuteTo(), importer_->permuteFrom(), columns});
  }
}

template <class Matrix>
void OverlappedProduct<Matrix>::apply(const const_view& x, const value_type* values, const const_view& b, const view& y,
                                      value_type alpha, value_type beta, bool& forward) {
  const int columns = static_cast<int>(x.extent(1));
  const bool copies = columns > 1 || rows_.copiesOwned();
  value_type* const copied = workSpace(columns);
  value_type* const ghosts = copied + (copies ? static_cast<std::size_t>(numSame_) * columns : 0);
  const ProductInput<value_type> input{x.data(), ghosts, copies ? copied : nullptr, columns};
  const RowResult<value_type> result{{b.data(), b.stride(1)}, {y.data(), y.stride(1)}, alpha, beta};
  if (importer_ == nullptr) {
    copyOwned(x, copied, ghosts, copies);
    rows_.multiply(space_, Overlap::none, RowClass::offNode, values, input, result, [] {});
    return;
  }
  UseOfHalo use(*importer_, true, forward);
  exchange_type& exchange = importer_->template selectForward<typename Matrix::scalar_type>();
  const bool isSample = importer_->isSampling();
  OverlapChoice& choice = choiceFor(exchange, columns, isSample);
  const bool counts = !isSample && !choice.decided();
  const bool timed = counts && choice.wantsTime();
  if (timed) {
    for (const Overlap kind : {Overlap::none, Overlap::interior, Overlap::byNode}) {
      rows_.prepare(kind);
    }
  }
  const auto start = timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  const Ghosts toFill{ghosts, static_cast<std::size_t>(numGhosts_), static_cast<std::size_t>(columns)};
  forward = false;  // begin(), finishOnNode() and end() let the others finish before they throw
  use.exposed([&] { exchange.begin(space_, x, toFill); });
  forward = true;
  copyOwned(x, copied, ghosts, copies);
  multiplyDuringExchange(isSample ? choice.usual() : choice.overlap(), exchange, toFill, values, input, result, use,
                         forward);
  if (timed || use.isTimed()) {
    fence(space_, "Komvos::NodeAwareCrsMatrix: a timed product is complete");
  }
  if (counts) {
    choice.record(timed ? std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() : 0);
  }
  use.succeeded(columns);
}

template <class Matrix>
bool OverlappedProduct<Matrix>::transposes() const {
  if constexpr (runsOnHost<execution_space>()) {
    return Rows::transposes();
  } else {
    return false;
  }
}

template <class Matrix>
auto OverlappedProduct<Matrix>::ghostSums(int columns) -> view {
  const std::size_t size = static_cast<std::size_t>(numGhosts_) * columns;
  if (ghostSums_.extent(0) < size) {
    ghostSums_ = {};
    ghostSums_ = decltype(ghostSums_)(
        Kokkos::view_alloc("Komvos::NodeAwareCrsMatrix::ghostSums", Kokkos::WithoutInitializing), size);
  }
  return view(ghostSums_.data(), numGhosts_, columns);
}

template <class Matrix>
void OverlappedProduct<Matrix>::applyTransposed(const const_view& x, const value_type* values, const view& y,
                                                value_type alpha, bool conjugates, bool& reverse) {
  if constexpr (runsOnHost<execution_space>()) {
    const int columns = static_cast<int>(x.extent(1));
    const view ghosts = ghostSums(columns);
    std::fill_n(ghosts.data(), ghosts.span(), value_type{});
    const ColumnSums<value_type> sums{
        {y.data(), y.stride(1)}, {ghosts.data(), static_cast<std::size_t>(numGhosts_)}, numSame_};
    const Overlap overlap = hides_ ? Overlap::interior : Overlap::none;
    const auto add = [&](RowClass stage, const auto& between) {
      rows_.addTransposed(space_, overlap, stage, values, {x.data(), x.stride(1)}, columns, alpha, conjugates, sums,
                          between);
    };
    add(RowClass::offNode, [] {});
    if (importer_ == nullptr) {
      return;
    }
    exchange_type& exchange = importer_->template reverseExchange<typename Matrix::scalar_type>();
    reverse = false;  // beginReverse() and endReverse() let the others finish before they throw
    exchange.beginReverse(space_, ghosts, Combine::add);
    reverse = true;
    const auto to = importer_->permuteTo();
    const auto from = importer_->permuteFrom();
    for (int w = 0; w < columns; ++w) {
      for (std::size_t k = 0; k < to.extent(0); ++k) {
        y(from(k), w) += ghosts(to(k), w);
      }
    }
    add(RowClass::local, [&exchange] { exchange.progress(); });
    reverse = false;
    exchange.endReverse(space_, y);
    fence(space_, "Komvos::NodeAwareCrsMatrix: the transposed product is complete");
  }
}

/// What suits one exchange may not suit the next one; a sample of the tuner says nothing yet.
template <class Matrix>
OverlapChoice& OverlappedProduct<Matrix>::choiceFor(const exchange_type& exchange, int columns, bool isSample) {
  if (!isSample && &exchange != chosenFor_) {
    for (OverlapChoice& choice : choices_) {
      choice.reset();
    }
    chosenFor_ = &exchange;
  }
  return choices_[widthClass(columns)];
}

template <class Matrix>
void OverlappedProduct<Matrix>::multiplyDuringExchange(Overlap overlap, exchange_type& exchange, const Ghosts& ghosts,
                                                       const value_type* values, const ProductInput<value_type>& input,
                                                       const RowResult<value_type>& result, UseOfHalo<halo_type>& use,
                                                       bool& forward) {
  const auto multiply = [&](RowClass stage, const auto& between) {
    rows_.multiply(space_, overlap, stage, values, input, result, between);
  };
  const auto progress = [&exchange] { exchange.progress(); };
  multiply(RowClass::local, progress);
  forward = false;
  const bool haveOnNode =
      overlap == Overlap::byNode && use.exposed([&] { return exchange.finishOnNode(space_, ghosts); });
  if (haveOnNode) {
    forward = true;
    multiply(RowClass::onNode, progress);
    forward = false;
  }
  use.exposed([&] { exchange.end(space_, ghosts); });
  if (!haveOnNode) {
    multiply(RowClass::onNode, progress);
  }
  multiply(RowClass::offNode, progress);
}

}  // namespace Komvos::Impl
