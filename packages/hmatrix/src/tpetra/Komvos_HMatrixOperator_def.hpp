/// \file Komvos_HMatrixOperator_def.hpp
/// How it works. All ranks make the same list of blocks, in ascending order of their first rows. How many bytes a
/// low-rank block takes is known only afterwards, so a few blocks of each size are approximated first, a rank some of
/// them. Then the list is cut into pieces of equal bytes. A rank's rows of the maps begin where the rows of its first
/// block do; its large blocks reach into rows of the next ranks, to which it sends their part of y. Where half of a
/// symmetric matrix is stored, a rank has one list of unknowns, both of x and of y: the rows and the columns of its
/// blocks.
#pragma once

#include <Teuchos_DefaultMpiComm.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_ForAllOnHost.hpp"
#include "Komvos_HMatrixOperator.hpp"
#include "Komvos_NodeAwareImport_def.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_RequireAccuracy.hpp"
#include "Komvos_RequireMap.hpp"
#include "Komvos_StoragePlan.hpp"

namespace Komvos {
namespace Impl {

inline std::int64_t entriesOf(const Block& block) { return static_cast<std::int64_t>(block.rows()) * block.columns(); }

/// Rows and columns between two powers of two: blocks that have about the same rank.
inline std::size_t sizeClass(const Block& block) {
  return static_cast<std::size_t>(std::ilogb(static_cast<double>(block.rows()) + block.columns()));
}

/// How many bytes a block takes.
template <class Scalar>
double bytesOfBlock(const ClusterTree& tree, const Block& block, const EntryKernel<Scalar>& kernel,
                    const HMatrixOptions& options) {
  const std::vector<int> rows(tree.order().begin() + block.rowBegin, tree.order().begin() + block.rowEnd);
  const std::vector<int> columns(tree.order().begin() + block.columnBegin, tree.order().begin() + block.columnEnd);
  [[maybe_unused]] const bool isReduced = std::is_floating_point_v<Scalar> && options.storage == Storage::Reduced;
  if (block.isAdmissible) {
    if (const auto factors = approximate(kernel, rows, columns, options.lowRank)) {
      const double lengths = static_cast<double>(block.rows()) + block.columns();
      double bytes = factors->rank * static_cast<double>(sizeof(Scalar));
      if constexpr (std::is_floating_point_v<Scalar>) {
        if (isReduced && options.lowRank.recompress) {
          bytes = 0;
          for (const ColumnFormat& column : formatsOfFactors(*factors, 0.3 * options.lowRank.accuracy)) {
            bytes += bytesOf<Scalar>(column.format);
          }
        }
      }
      return bytes * lengths;
    }
  }
  auto bytes = static_cast<double>(sizeof(Scalar));
  if constexpr (std::is_floating_point_v<Scalar>) {
    if (isReduced) {
      std::vector<Scalar> values(rows.size() * columns.size());
      kernel.block(rows.data(), block.rows(), columns.data(), block.columns(), values.data());
      bytes = bytesOf<Scalar>(formatOfDense(values, options.lowRank.accuracy).format);
    }
  }
  return bytes * static_cast<double>(entriesOf(block));
}

/// About how many bytes each block takes. \note Collective. \throws BadInput on all ranks
template <class Scalar>
std::vector<double> estimatedBytes(MPI_Comm comm, int rank, int size, const ClusterTree& tree,
                                   const std::vector<Block>& blocks, const EntryKernel<Scalar>& kernel,
                                   const HMatrixOptions& options) {
  constexpr std::size_t classes = 41, samples = 24;  // the last one is of dense blocks
  const auto classOf = [](const Block& block) { return block.isAdmissible ? sizeClass(block) : classes - 1; };
  const auto measureOf = [](const Block& block) {
    return block.isAdmissible ? static_cast<double>(block.rows()) + block.columns()
                              : static_cast<double>(entriesOf(block));
  };
  std::array<std::vector<std::size_t>, classes> members;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    members[classOf(blocks[b])].push_back(b);
  }
  std::array<double, 2 * classes> sums{};  // of bytes, and of what they are in proportion to, in each class
  const std::string error = size == 1 ? std::string() : errorIn([&] {
    std::vector<std::size_t> mine;
    int next = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      const std::size_t count = std::min(samples, members[c].size());
      for (std::size_t s = 0; s < count; ++s) {
        if (next++ % size == rank) {
          mine.push_back(members[c][(2 * s + 1) * members[c].size() / (2 * count)]);
        }
      }
    }
    std::vector<double> taken(mine.size());
    forAllOnHost(mine.size(), [&](std::size_t i) { taken[i] = bytesOfBlock(tree, blocks[mine[i]], kernel, options); });
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const std::size_t c = classOf(blocks[mine[i]]);
      sums[2 * c] += taken[i];
      sums[2 * c + 1] += measureOf(blocks[mine[i]]);
    }
  });
  throwOnAllIfAny(comm, error);
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_DOUBLE, MPI_SUM, comm),
           "MPI_Allreduce");
  std::vector<double> bytes;
  for (const Block& block : blocks) {
    const std::size_t c = classOf(block);
    const double rate = sums[2 * c + 1] > 0 ? sums[2 * c] / sums[2 * c + 1] : 1;
    bytes.push_back(
        std::min(static_cast<double>(sizeof(Scalar)) * static_cast<double>(entriesOf(block)), rate * measureOf(block)));
  }
  return bytes;
}

/// Where the list of blocks is cut: [ranks + 1].
inline std::vector<std::size_t> cutsOf(std::vector<double> bytes, int ranks) {
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  std::vector<std::size_t> cuts{0};
  for (int rank = 1; rank < ranks; ++rank) {
    const double bound = bytes.back() / ranks * rank;
    const auto cut = std::lower_bound(bytes.begin(), bytes.end(), bound);
    cuts.push_back(std::max(cuts.back(), static_cast<std::size_t>(cut - bytes.begin())));
  }
  cuts.push_back(bytes.size());
  return cuts;
}

/// out(i, j) = in(places(i), j)
template <class ExecutionSpace, class Places, class In, class Out>
void takeRows(const ExecutionSpace& space, const Places& places, const In& in, const Out& out) {
  const int columns = static_cast<int>(out.extent(1));
  Kokkos::parallel_for(
      "Komvos::HMatrixOperator: columns of a whole vector", range(space, 0, static_cast<int>(places.extent(0))),
      KOKKOS_LAMBDA(int i) {
        for (int j = 0; j < columns; ++j) {
          out(i, j) = in(places(i), j);
        }
      });
}

/// Of complex values.
template <class View>
struct Conjugate {
  View view;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    for (std::size_t j = 0; j < view.extent(1); ++j) {
      view(i, j) = Kokkos::conj(view(i, j));
    }
  }
};

}  // namespace Impl

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
struct HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State {
  using import_type = Tpetra::Import<LocalOrdinal, GlobalOrdinal, Node>;

  std::shared_ptr<Impl::PrivateComm> ours;
  HMatrixOperatorReport report;
  std::unique_ptr<matrix_type> own, other;              ///< blocks whose columns are those of this rank, and the rest
  Teuchos::RCP<const map_type> map, rowMap, columnMap;  ///< rowMap: rows that the blocks of this rank touch
  std::unique_ptr<halo_type> rowHalo, columnHalo;
  Teuchos::RCP<multivector_type> rows, columns;                   ///< work vectors
  Kokkos::View<int*, typename Node::device_type> columnsInWhole;  ///< where columnMap's elements stand
  bool knowsWhole = false;

  Teuchos::RCP<const map_type> makeMap(const Teuchos::RCP<const Teuchos::Comm<int>>& comm, const ClusterTree& tree,
                                       const std::vector<int>& places) const {
    std::vector<GlobalOrdinal> indices;
    for (const int place : places) {
      indices.push_back(static_cast<GlobalOrdinal>(tree.order()[place]));
    }
    return Teuchos::rcp(
        new map_type(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                     Teuchos::ArrayView<const GlobalOrdinal>(
                         indices.data(), static_cast<typename Teuchos::Array<int>::size_type>(indices.size())),
                     0, comm));
  }
  /// Progress goes from one to the other, by how many entries their blocks have.
  void makeMatrices(const ClusterTree& tree, std::vector<Block> ownBlocks, std::vector<Block> otherBlocks,
                    const EntryKernel<Scalar>& kernel, const HMatrixOptions& options);
  /// The rows, or the columns, of both matrices.
  PlaceRanges placesOf(std::vector<int> (matrix_type::*places)() const) const {
    std::vector<std::pair<int, int>> ranges;
    for (const matrix_type* matrix : {own.get(), other.get()}) {
      for (const int place : (matrix->*places)()) {
        ranges.emplace_back(place, place + 1);
      }
    }
    return PlaceRanges(std::move(ranges));
  }
  /// Lets a matrix find its rows and columns in vectors of all of them.
  static void place(matrix_type& matrix, const PlaceRanges& rows, const PlaceRanges& columns) {
    const auto positions = [](const std::vector<int>& places, const PlaceRanges& all) {
      std::vector<int> list;
      list.reserve(places.size());
      for (const int one : places) {
        list.push_back(all.positionOf(one));
      }
      return list;
    };
    matrix.placeIn(positions(matrix.rowPlaces(), rows), rows.length(), positions(matrix.columnPlaces(), columns),
                   columns.length());
  }
  void makeReport();
  void findColumnsInWhole();
  /// y += op(matrix) x, for work vectors.
  void add(const matrix_type& matrix, const multivector_type& x, multivector_type& y, bool transposed) const;
  /// Nothing for real values.
  void conjugate(multivector_type& work) const;
  void reserve(std::size_t vectors) {
    if (columns.is_null() || columns->getNumVectors() != vectors) {
      rows = columns = Teuchos::null;
      rows = Teuchos::rcp(new multivector_type(rowMap, vectors));
      columns = Teuchos::rcp(new multivector_type(columnMap, vectors));
    }
  }
};

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::makeMatrices(const ClusterTree& tree,
                                                                                     std::vector<Block> ownBlocks,
                                                                                     std::vector<Block> otherBlocks,
                                                                                     const EntryKernel<Scalar>& kernel,
                                                                                     const HMatrixOptions& options) {
  const auto sizeOf = [](const std::vector<Block>& blocks) {
    return std::accumulate(blocks.begin(), blocks.end(), 1.0,
                           [](double sum, const Block& block) { return sum + block.rows() + block.columns(); });
  };
  const double share = sizeOf(ownBlocks) / (sizeOf(ownBlocks) + sizeOf(otherBlocks));
  HMatrixOptions part = options;
  if (options.progress) {
    part.progress = [&](double done) { options.progress(share * done); };
  }
  own = std::make_unique<matrix_type>(tree, tree, std::move(ownBlocks), kernel, part);
  if (options.progress) {
    part.progress = [&](double done) { options.progress(share + (1 - share) * done); };
  }
  other = std::make_unique<matrix_type>(tree, tree, std::move(otherBlocks), kernel, part);
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::makeReport() {
  HMatrixReport mine = own->report();
  const HMatrixReport& more = other->report();
  mine.numLowRank += more.numLowRank;
  mine.numDense += more.numDense;
  mine.bytes += more.bytes;
  mine.bytesDense += more.bytesDense;
  mine.seconds += more.seconds;
  mine.blocksOfRank.resize(std::max(mine.blocksOfRank.size(), more.blocksOfRank.size()));
  for (std::size_t rank = 0; rank < more.blocksOfRank.size(); ++rank) {
    mine.blocksOfRank[rank] += more.blocksOfRank[rank];
  }
  const MPI_Comm comm = ours->get();
  static_cast<HMatrixReport&>(report) = mine;
  const auto sum = [&](std::int64_t* values, int count) {
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT64_T, MPI_SUM, comm), "MPI_Allreduce");
  };
  int length = static_cast<int>(mine.blocksOfRank.size());
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &length, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
  report.blocksOfRank.resize(length);
  sum(report.blocksOfRank.data(), length);
  std::array<std::int64_t, 4> counts{mine.numLowRank, mine.numDense, mine.bytes, mine.bytesDense};
  sum(counts.data(), 4);
  report.numLowRank = counts[0];
  report.numDense = counts[1];
  report.bytes = counts[2];
  report.bytesDense = counts[3];
  const auto unknowns = static_cast<double>(map->getGlobalNumElements());
  report.compression = static_cast<double>(report.bytes) / sizeof(Scalar) / unknowns / unknowns;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &report.seconds, 1, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
  const auto gather = [&](std::int64_t value) {
    std::vector<std::int64_t> all(ours->size());
    mpiCheck(MPI_Allgather(&value, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, comm), "MPI_Allgather");
    return all;
  };
  report.bytesOfRank = gather(mine.bytes);
  const auto remoteOf = [&](const map_type& elements) {
    std::int64_t remote = 0;
    for (std::size_t i = 0; i < Impl::localLength(elements); ++i) {
      remote += map->isNodeGlobalElement(elements.getGlobalElement(static_cast<LocalOrdinal>(i))) ? 0 : 1;
    }
    return remote;
  };
  report.gatheredOfRank = gather(remoteOf(*columnMap));
  report.sentBackOfRank = gather(remoteOf(*rowMap));
}

/// \note Collective.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::findColumnsInWhole() {
  const int mine = static_cast<int>(Impl::localLength(*map));
  std::vector<int> begins;
  Teuchos::Array<GlobalOrdinal> wanted;
  Teuchos::Array<int> owners;
  Teuchos::Array<LocalOrdinal> locals;
  throwOnAllIfAny(ours->get(), Impl::errorIn([&] {
                    begins.assign(ours->size() + 1, 0);
                    for (std::size_t i = 0; i < Impl::localLength(*columnMap); ++i) {
                      wanted.push_back(columnMap->getGlobalElement(static_cast<LocalOrdinal>(i)));
                    }
                    owners.resize(wanted.size());
                    locals.resize(wanted.size());
                  }));
  mpiCheck(MPI_Allgather(&mine, 1, MPI_INT, begins.data() + 1, 1, MPI_INT, ours->get()), "MPI_Allgather");
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  map->getRemoteIndexList(wanted(), owners(), locals());
  throwOnAllIfAny(ours->get(), Impl::errorIn([&] {
                    columnsInWhole =
                        decltype(columnsInWhole)("Komvos::HMatrixOperator: columns in whole vectors", wanted.size());
                    const auto host = Kokkos::create_mirror_view(columnsInWhole);
                    for (int i = 0; i < static_cast<int>(wanted.size()); ++i) {
                      host(i) = begins[owners[i]] + locals[i];
                    }
                    Kokkos::deep_copy(columnsInWhole, host);
                  }));
  knowsWhole = true;
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::add(const matrix_type& matrix,
                                                                            const multivector_type& x,
                                                                            multivector_type& y,
                                                                            bool transposed) const {
  const auto xView = x.getLocalViewDevice(Tpetra::Access::ReadOnly);
  const auto yView = y.getLocalViewDevice(Tpetra::Access::ReadWrite);
  const auto layout = [](const auto& view) {
    return Kokkos::LayoutStride(view.extent(0), 1, view.extent(1), view.stride(1));
  };
  const typename matrix_type::input_view from(xView.data(), layout(xView));
  const typename matrix_type::output_view to(yView.data(), layout(yView));
  const auto& space = Impl::defaultSpace<typename Node::execution_space>();
  transposed ? matrix.multiplyTransposed(space, from, to, 1, 1) : matrix.multiply(space, from, to, 1, 1);
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::conjugate(
    [[maybe_unused]] multivector_type& work) const {
  if constexpr (Teuchos::ScalarTraits<Scalar>::isComplex) {
    const auto view = work.getLocalViewDevice(Tpetra::Access::ReadWrite);
    Kokkos::parallel_for(
        "Komvos::HMatrixOperator::apply: conjugate",
        Impl::range(Impl::defaultSpace<typename Node::execution_space>(), 0, static_cast<int>(view.extent(0))),
        Impl::Conjugate<std::decay_t<decltype(view)>>{view});
  }
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::HMatrixOperator(
    const Teuchos::RCP<const Teuchos::Comm<int>>& comm, const ClusterTree& tree, const EntryKernel<Scalar>& kernel,
    const HMatrixOptions& options, const ExchangeOptions& exchange)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.ours = Impl::PrivateComm::of(Tpetra::Details::extractMpiCommFromTeuchos(*comm));
  const int rank = s.ours->rank(), size = s.ours->size();
  const bool isHalf = matrix_type::storesHalf(tree, tree, kernel, options);
  std::vector<Block> blocks;
  throwOnAllIfAny(s.ours->get(), Impl::errorIn([&] {
                    Impl::requireAccuracy<Scalar>(options.lowRank.accuracy);
                    blocks = blockLeaves(tree, tree, options.eta, isHalf ? BlockHalf::Lower : BlockHalf::Both);
                  }));
  const auto bytes = Impl::estimatedBytes(s.ours->get(), rank, size, tree, blocks, kernel, options);
  const std::vector<std::size_t> cuts = Impl::cutsOf(bytes, size);
  const auto firstRow = [&](int r) {
    return cuts[r] < blocks.size() && r > 0 ? blocks[cuts[r]].rowBegin : r > 0 ? tree.size() : 0;
  };
  const int begin = firstRow(rank), end = rank + 1 < size ? firstRow(rank + 1) : tree.size();
  std::vector<Block> mine(blocks.begin() + static_cast<std::ptrdiff_t>(cuts[rank]),
                          blocks.begin() + static_cast<std::ptrdiff_t>(cuts[rank + 1]));
  blocks = {};
  // Of half a symmetric matrix, the rows of a block are columns, too.
  const auto isOwn = [&](const Block& block) {
    return block.columnBegin >= begin && block.columnEnd <= end &&
           (!isHalf || (block.rowBegin >= begin && block.rowEnd <= end));
  };
  const auto firstOther = std::stable_partition(mine.begin(), mine.end(), isOwn);
  std::vector<int> rowPlaces, columnPlaces;
  throwOnAllIfAny(s.ours->get(), Impl::errorIn([&] {
                    s.makeMatrices(tree, {mine.begin(), firstOther}, {firstOther, mine.end()}, kernel, options);
                    const PlaceRanges rows = s.placesOf(&matrix_type::rowPlaces);
                    const PlaceRanges columns = s.placesOf(&matrix_type::columnPlaces);
                    s.place(*s.own, rows, columns);
                    s.place(*s.other, rows, columns);
                    rowPlaces = rows.places();
                    columnPlaces = columns.places();
                  }));
  s.map = s.makeMap(comm, tree, PlaceRanges({{begin, end}}).places());
  s.rowMap = s.makeMap(comm, tree, rowPlaces);
  s.columnMap = s.makeMap(comm, tree, columnPlaces);
  s.rowHalo = std::make_unique<halo_type>(typename State::import_type(s.map, s.rowMap), exchange);
  s.columnHalo = std::make_unique<halo_type>(typename State::import_type(s.map, s.columnMap), exchange);
  s.makeReport();
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::~HMatrixOperator() = default;

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
auto HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::getDomainMap() const -> Teuchos::RCP<const map_type> {
  return state_->map;
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
auto HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::getRangeMap() const -> Teuchos::RCP<const map_type> {
  return state_->map;
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
const HMatrixOperatorReport& HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::report() const {
  return state_->report;
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
auto HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::ownMatrix() const -> const matrix_type& {
  return *state_->own;
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
auto HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::otherMatrix() const -> const matrix_type& {
  return *state_->other;
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
std::vector<Block> HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::blocks() const {
  std::vector<Block> blocks = state_->own->blocks();
  blocks.insert(blocks.end(), state_->other->blocks().begin(), state_->other->blocks().end());
  return blocks;
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
std::int64_t HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::bytesRead() const {
  return state_->own->bytesRead() + state_->other->bytesRead();
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::apply(const multivector_type& X, multivector_type& Y,
                                                                       Teuchos::ETransp mode, Scalar alpha,
                                                                       Scalar beta) const {
  using Traits = Teuchos::ScalarTraits<Scalar>;
  State& s = *state_;
  const bool transposed = mode != Teuchos::NO_TRANS;
  const halo_type &in = transposed ? *s.rowHalo : *s.columnHalo, &out = transposed ? *s.columnHalo : *s.rowHalo;
  const bool replaces = alpha == Traits::one() && beta == Traits::zero();
  Teuchos::RCP<multivector_type> product;  // where it does not replace Y
  // Whatever is thrown here, no rank waits for what this one would have sent.
  bool imported = false;
  try {
    Impl::requireMap("HMatrixOperator::apply: X", *X.getMap(), *s.map);
    Impl::requireMap("HMatrixOperator::apply: Y", *Y.getMap(), *s.map);
    s.reserve(X.getNumVectors());
    if (!replaces) {
      product = Teuchos::rcp(new multivector_type(s.map, X.getNumVectors()));  // of zeros
    }
    multivector_type &x = transposed ? *s.rows : *s.columns, &y = transposed ? *s.columns : *s.rows;
    y.putScalar(Traits::zero());
    const auto add = [&](const matrix_type& matrix) { s.add(matrix, x, y, transposed); };
    imported = true;
    // A^H x is the conjugate of A^T times that of x.
    if (transposed) {
      in.doImport(X, x, Tpetra::INSERT);
      if (mode == Teuchos::CONJ_TRANS) {
        s.conjugate(x);
      }
      add(*s.own);
    } else {
      in.doImport(X, x, Tpetra::INSERT, [&] { add(*s.own); });
    }
    add(*s.other);
    if (mode == Teuchos::CONJ_TRANS) {
      s.conjugate(y);
    }
    Impl::fence(Impl::defaultSpace<typename Node::execution_space>(),
                "Komvos::HMatrixOperator::apply: multiplied before y is sent");
    if (replaces) {
      Y.putScalar(Traits::zero());
    }
  } catch (...) {
    if (!imported) {
      in.template abandonForward<Scalar>();
    }
    out.template abandonReverse<Scalar>();
    throw;
  }
  const multivector_type& y = transposed ? *s.columns : *s.rows;
  if (replaces) {
    out.doExport(y, Y, Tpetra::ADD_ASSIGN);
    return;
  }
  out.doExport(y, *product, Tpetra::ADD_ASSIGN);
  Y.update(alpha, *product, beta);
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::applyToWhole(const multivector_type& X,
                                                                              multivector_type& Y) const {
  State& s = *state_;
  if (!s.knowsWhole) {
    s.findColumnsInWhole();
  }
  try {
    if (X.getLocalLength() != s.map->getGlobalNumElements()) {
      throw PlanMismatch("HMatrixOperator::applyToWhole: x has " + std::to_string(X.getLocalLength()) +
                         " elements here, not all " + std::to_string(s.map->getGlobalNumElements()));
    }
    Impl::requireMap("HMatrixOperator::applyToWhole: Y", *Y.getMap(), *s.map);
    s.reserve(X.getNumVectors());
    const auto& space = Impl::defaultSpace<typename Node::execution_space>();
    // Columns that are scattered over another vector have its view.
    const auto whole = X.isConstantStride()
                           ? Teuchos::rcpFromRef(X)
                           : Teuchos::RCP<const multivector_type>(Teuchos::rcp(new multivector_type(X, Teuchos::Copy)));
    Impl::takeRows(space, s.columnsInWhole, whole->getLocalViewDevice(Tpetra::Access::ReadOnly),
                   s.columns->getLocalViewDevice(Tpetra::Access::OverwriteAll));
    Impl::fence(space, "Komvos::HMatrixOperator::applyToWhole: columns are there");
    s.rows->putScalar(Teuchos::ScalarTraits<Scalar>::zero());
    s.add(*s.own, *s.columns, *s.rows, false);
    s.add(*s.other, *s.columns, *s.rows, false);
    Impl::fence(space, "Komvos::HMatrixOperator::applyToWhole: multiplied before y is sent");
    Y.putScalar(Teuchos::ScalarTraits<Scalar>::zero());
  } catch (...) {
    s.rowHalo->template abandonReverse<Scalar>();
    throw;
  }
  s.rowHalo->doExport(*s.rows, Y, Tpetra::ADD_ASSIGN);
}

}  // namespace Komvos
