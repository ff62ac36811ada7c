/// \file Komvos_NodeAwareCrsMatrix_def.hpp
/// Definitions of NodeAwareCrsMatrix, for types that this library is not compiled for.
#pragma once

#include <Teuchos_CommHelpers.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "Komvos_CrsRowKernels.hpp"
#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_ShapeError.hpp"

// How this works. The constructor plans the halo between domain and column map (importer) and, where range and row map
// differ, the one between them (exporter). It sorts the rows into three classes by the furthest value they need.
//
// An apply has at most two exchanges. Not transposed: ghosts of X come forward along the importer, hidden behind the
// product (applyRows): local rows, then those that need this node, then the rest, with messages moved on in between.
// Then, if there is an exporter, sums of rows go back along it. Transposed, the roles change: X comes forward along the
// exporter, Tpetra computes the product over the column map, and ghosts of Y go back along the importer. So each apply
// is a forward exchange of one halo, then a reverse exchange of the other, and abandonApply() abandons both in this
// order.
//
// Where the output is replicated (not distributed, as the product of a transposed tall matrix with few columns), each
// rank computes its part of it, and an all-reduce sums the parts, as in Tpetra.
//
// Vectors without constant stride, and an output that overlaps the input, are copied first.
//
// Other ranks wait for this one in the exchanges and in the sum. RemainingOfApply keeps which of them are still to
// come; whatever is thrown, apply and residual abandon these before they pass it on.

namespace Komvos {

namespace Impl {

// Kokkos wants labels as strings; made once, since making them allocates.
inline const std::string multiplyLabel = "Komvos::NodeAwareCrsMatrix::multiplyRows";
inline const std::string copyOwnedLabel = "Komvos::NodeAwareCrsMatrix::copyOwned";
inline const std::string permuteGhostsLabel = "Komvos::NodeAwareCrsMatrix::permute";

/// An ascending list of rows on the host as intervals, short enough to be shared out among threads.
template <class IntervalList, class RowList>
IntervalList intervalsIn(const RowList& rows) {
  const int longest = 64;
  std::vector<RowInterval> intervals;
  for (std::size_t i = 0; i < rows.extent(0); ++i) {
    const bool continues = !intervals.empty() && intervals.back().first + intervals.back().count == rows(i);
    if (continues && intervals.back().count < longest) {
      ++intervals.back().count;
    } else {
      intervals.push_back({rows(i), 1});
    }
  }
  const IntervalList list(Kokkos::view_alloc("Komvos::NodeAwareCrsMatrix::intervals", Kokkos::WithoutInitializing),
                          intervals.size());
  std::copy(intervals.begin(), intervals.end(), list.data());
  return list;
}

/// A work vector over `map`, made anew only when map or width change.
template <class MultiVector, class Map>
MultiVector& workVector(Teuchos::RCP<MultiVector>& kept, const Teuchos::RCP<const Map>& map, std::size_t columns) {
  if (kept.is_null() || kept->getNumVectors() != columns || kept->getMap().get() != map.get()) {
    kept = Teuchos::rcp(new MultiVector(map, columns));
  }
  return *kept;
}

/// Y = beta Y; beta == 0 clears what is not a number, too.
template <class MultiVector, class Scalar>
void scaleOrClear(MultiVector& Y, Scalar beta) {
  if (beta == Scalar{}) {
    Y.putScalar(beta);
  } else if (beta != Scalar{1}) {
    Y.scale(beta);
  }
}

inline std::string onRank(const Teuchos::Comm<int>& comm) { return " (rank " + std::to_string(comm.getRank()) + ")"; }

/// \throws PlanMismatch unless `vector`, in an error `name`, fits `map` with so many columns
template <class Matrix, class MultiVector, class Map>
void requireFits(const Matrix& A, const char* name, const MultiVector& vector, const Map& map, std::size_t columns) {
  const std::string error = shapeError("NodeAwareCrsMatrix", name, {vector.getLocalLength(), vector.getNumVectors()},
                                       {localLength(map), columns});
  if (!error.empty()) {
    throw PlanMismatch(error + onRank(*A.getComm()));
  }
}

/// Whether vectors share entries. Also true if one has no constant stride: it is to be copied, too.
template <class MultiVector>
bool mayOverlap(const MultiVector& a, const MultiVector& b) {
  if (!a.isConstantStride() || !b.isConstantStride()) {
    return true;
  }
  const auto x = a.getLocalViewDevice(Tpetra::Access::ReadOnly);
  const auto y = b.getLocalViewDevice(Tpetra::Access::ReadOnly);
  return x.data() + x.span() > y.data() && y.data() + y.span() > x.data();
}

/// Whether vectors of one shape have each entry at the same address.
template <class MultiVector>
bool areSame(const MultiVector& a, const MultiVector& b) {
  if (!a.isConstantStride() || !b.isConstantStride()) {
    return false;
  }
  const auto x = a.getLocalViewDevice(Tpetra::Access::ReadOnly);
  const auto y = b.getLocalViewDevice(Tpetra::Access::ReadOnly);
  return x.data() == y.data() && x.stride(1) == y.stride(1);
}

/// Whether all ranks have their part of a sum. \note Collective.
inline bool haveAllRanks(const Teuchos::Comm<int>& comm, bool mine) {
  const int here = mine ? 1 : 0;
  int everywhere = 0;
  Teuchos::reduceAll(comm, Teuchos::REDUCE_MIN, here, Teuchos::outArg(everywhere));
  return everywhere == 1;
}

/// What other ranks still wait for in one apply.
struct RemainingOfApply {
  bool forward, reverse;
  bool sum;  // of replicated output
};

}  // namespace Impl

template <class Scalar, class LO, class GO, class Node>
struct NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State {
  using RowClass = Impl::RowClass;
  using execution_space = typename Node::device_type::execution_space;
  using memory_space = typename Impl::BufferSpace<execution_space>::type;
  using RowList = Kokkos::View<int*, memory_space>;
  using IntervalList = Kokkos::View<Impl::RowInterval*, memory_space>;
  using ClassList = Kokkos::View<RowClass*, memory_space>;
  using Value = typename crs_matrix_type::impl_scalar_type;  // Kokkos::complex for std::complex
  using exchange_type = Exchange<Value, typename Node::device_type>;
  using const_view = typename exchange_type::const_view;
  using view = typename exchange_type::view;
  using local_matrix_type = typename crs_matrix_type::local_matrix_device_type;
  using graph_type = typename local_matrix_type::StaticCrsGraphType;
  using rows_type = Impl::LocalMatrix<Value, typename graph_type::size_type, LO>;

  graph_type graph;
  std::unique_ptr<halo_type> importer;
  std::unique_ptr<halo_type> exporter;
  int numSame = 0;
  int numGhosts = 0;
  int numPermuted = 0;
  RowList rowsOf[3];            // by index(RowClass)
  IntervalList intervalsOf[3];  // the same rows as intervals, where the host computes
  int progressRows = 0;         // on the host, messages get a chance to travel on after so many rows
  /// Where rows with ghosts have many entries, owned values are copied beside the ghosts while messages travel: one
  /// streamed copy costs less than asking for each entry which of two arrays it is in.
  bool copiesOwned = false;

  // Work space, kept between applies: a column of [owned values if they are copied, ghosts] for each column of X.
  mutable Kokkos::View<Value*, memory_space> columnValues;
  mutable Teuchos::RCP<multivector_type> columnVector, rowVector, copyOfX, copyOfY, residualVector;

  void classify(const local_matrix_type& matrix);
  ClassList classifyGhosts() const;
  void listRows(const ClassList& rowClassOf);
  std::size_t entriesIn(RowClass rowClass) const;
  int rowsBetweenProgress(std::size_t entries) const;

  int numCopied() const { return copiesOwned ? numSame : 0; }
  view columnView(int columns) const;
  int piecesBetweenProgress(int numPieces, int numRows) const {
    return static_cast<int>(std::max(1L, static_cast<long>(progressRows) * numPieces / numRows));
  }
  template <class Source>
  void multiply(const rows_type& matrix, RowClass rowClass, const Source& x, const const_view& b, const view& y,
                Value alpha, Value beta, exchange_type* running) const;
  void copyOwnedValues(const execution_space& space, const const_view& x, const view& values, const view& ghosts) const;

  // Steps of apply; vectors have been checked and have constant stride. `A` is the matrix this state belongs to.
  void applyRows(const crs_matrix_type& A, const multivector_type& X, const multivector_type& B, multivector_type& Y,
                 Scalar alpha, Scalar beta, Impl::RemainingOfApply& remaining) const;
  void applyPlain(const NodeAwareCrsMatrix& A, const multivector_type& X, multivector_type& Y, Scalar alpha,
                  Scalar beta, Impl::RemainingOfApply& remaining) const;
  void applyTransposed(const NodeAwareCrsMatrix& A, const multivector_type& X, multivector_type& Y,
                       Teuchos::ETransp mode, Scalar alpha, Scalar beta, Impl::RemainingOfApply& remaining) const;
  void sumIfReplicated(const crs_matrix_type& A, multivector_type& Y, Impl::RemainingOfApply& remaining) const;
  /// Calls work(X, Y), with contiguous copies where X and Y overlap or have no constant stride.
  template <class Work>
  void withCopies(const multivector_type& X, multivector_type& Y, const Work& work) const;

  static bool isOutputReplicated(const crs_matrix_type& A, Teuchos::ETransp mode);
  static Impl::RemainingOfApply allOf(const crs_matrix_type& A, Teuchos::ETransp mode);
  void abandon(const crs_matrix_type& A, Teuchos::ETransp mode, const Impl::RemainingOfApply& remaining) const;
};

template <class Scalar, class LO, class GO, class Node>
bool NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::isOutputReplicated(const crs_matrix_type& A,
                                                                         Teuchos::ETransp mode) {
  const auto map = mode == Teuchos::NO_TRANS ? A.getRangeMap() : A.getDomainMap();
  return !map->isDistributed() && A.getComm()->getSize() > 1;
}

template <class Scalar, class LO, class GO, class Node>
Impl::RemainingOfApply NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::allOf(const crs_matrix_type& A,
                                                                              Teuchos::ETransp mode) {
  return {true, true, isOutputReplicated(A, mode)};
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::abandon(const crs_matrix_type& A, Teuchos::ETransp mode,
                                                              const Impl::RemainingOfApply& remaining) const {
  const bool plain = mode == Teuchos::NO_TRANS;
  const halo_type* const first = plain ? importer.get() : exporter.get();
  const halo_type* const second = plain ? exporter.get() : importer.get();
  if (remaining.forward && first != nullptr) {
    first->template exchange<Scalar>().abandonForward();
  }
  if (remaining.reverse && second != nullptr) {
    second->template exchange<Scalar>().abandonReverse();
  }
  if (remaining.sum) {
    Impl::haveAllRanks(*A.getComm(), false);
  }
}

/// Ghosts that are permuted owned values count as on this node.
template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::classifyGhosts() const -> ClassList {
  std::vector<RowClass> classes(numGhosts, RowClass::onNode);
  if (importer) {
    for (const ExchangePlan::Delivery& delivery : importer->plan().deliveries) {
      classes[delivery.target] = delivery.onNode ? RowClass::onNode : RowClass::offNode;
    }
  }
  return Impl::deviceList<memory_space>("Komvos::NodeAwareCrsMatrix::ghostClasses", classes);
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::classify(const local_matrix_type& matrix) {
  graph = matrix.graph;
  const int numRows = matrix.numRows();
  const ClassList rowClassOf("Komvos::NodeAwareCrsMatrix::rowClassOf", numRows);
  using Classify =
      Impl::ClassifyRows<ClassList, typename graph_type::row_map_type, typename graph_type::entries_type, ClassList>;
  Kokkos::parallel_for("Komvos::NodeAwareCrsMatrix::classifyRows", Kokkos::RangePolicy<execution_space>(0, numRows),
                       Classify{classifyGhosts(), graph.row_map, graph.entries, rowClassOf, numSame});
  listRows(rowClassOf);
  copiesOwned = entriesIn(RowClass::onNode) + entriesIn(RowClass::offNode) > static_cast<std::size_t>(numSame);
  Impl::fence(Impl::defaultSpace<execution_space>(), "Komvos::NodeAwareCrsMatrix: row lists are complete");
  progressRows = rowsBetweenProgress(matrix.nnz());
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::listRows(const ClassList& rowClassOf) {
  const Kokkos::RangePolicy<execution_space> allRows(0, rowClassOf.extent(0));
  for (const RowClass c : Impl::rowClasses) {
    int count = 0;
    Kokkos::parallel_reduce("Komvos::NodeAwareCrsMatrix::countRows", allRows, Impl::CountRows<ClassList>{rowClassOf, c},
                            count);
    const RowList rows(Kokkos::view_alloc("Komvos::NodeAwareCrsMatrix::rows", Kokkos::WithoutInitializing), count);
    Kokkos::parallel_scan("Komvos::NodeAwareCrsMatrix::compactRows", allRows,
                          Impl::CompactRows<ClassList, RowList>{rowClassOf, rows, c});
    rowsOf[index(c)] = rows;
    if constexpr (Impl::hostCanAccessBuffers<execution_space>()) {
      Impl::fence(Impl::defaultSpace<execution_space>(), "Komvos::NodeAwareCrsMatrix: a row list is complete");
      intervalsOf[index(c)] = Impl::intervalsIn<IntervalList>(rows);
    }
  }
}

template <class Scalar, class LO, class GO, class Node>
std::size_t NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::entriesIn(RowClass rowClass) const {
  const RowList& rows = rowsOf[index(rowClass)];
  using Count = Impl::CountEntries<typename graph_type::row_map_type, RowList>;
  std::size_t count = 0;
  Kokkos::parallel_reduce("Komvos::NodeAwareCrsMatrix::countEntries",
                          Kokkos::RangePolicy<execution_space>(0, rows.extent(0)), Count{graph.row_map, rows}, count);
  return count;
}

/// Some tens of microseconds of work.
template <class Scalar, class LO, class GO, class Node>
int NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::rowsBetweenProgress(std::size_t entries) const {
  const std::size_t numRows = std::max(1, static_cast<int>(graph.numRows()));
  const std::size_t entriesBetween =
      32768 * static_cast<std::size_t>(Impl::defaultSpace<execution_space>().concurrency());
  const std::size_t rowsBetween = entriesBetween * numRows / std::max<std::size_t>(1, entries);
  return static_cast<int>(std::min<std::size_t>(std::max<std::size_t>(64, rowsBetween), 1 << 30));
}

template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::columnView(int columns) const -> view {
  const int length = numCopied() + numGhosts;
  const std::size_t size = static_cast<std::size_t>(length) * columns;
  if (columnValues.extent(0) < size) {
    columnValues = Kokkos::View<Value*, memory_space>("Komvos::NodeAwareCrsMatrix::columnValues", size);
  }
  return view(columnValues.data(), length, columns);
}

/// y = beta b + alpha A x over the rows of one class. \param running an exchange to be moved on in between, or null
template <class Scalar, class LO, class GO, class Node>
template <class Source>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::multiply(const rows_type& matrix, Impl::RowClass rowClass,
                                                               const Source& x, const const_view& b, const view& y,
                                                               Value alpha, Value beta, exchange_type* running) const {
  constexpr bool onHost = Impl::hostCanAccessBuffers<execution_space>();
  const RowList& rowList = rowsOf[index(rowClass)];
  const IntervalList& intervals = intervalsOf[index(rowClass)];
  const int numRows = static_cast<int>(rowList.extent(0));
  if (numRows == 0) {
    return;
  }
  const bool allRows = static_cast<std::size_t>(numRows) == static_cast<std::size_t>(graph.numRows());
  const RowList list = allRows ? RowList() : rowList;
  // Pieces of rows: intervals on the host, single rows elsewhere.
  const int numPieces = onHost ? static_cast<int>(intervals.extent(0)) : numRows;
  const int columns = static_cast<int>(y.extent(1));
  const int step = running != nullptr && onHost ? piecesBetweenProgress(numPieces, numRows) : numPieces;
  const auto launch = [&](auto width, int first, int last, int firstColumn) {
    using Rows = Impl::MultiplyRows<Value, rows_type, RowList, Source, decltype(width)::value>;
    Rows rows{matrix, list, x, {b.data(), b.stride(1)}, {y.data(), y.stride(1)}, alpha, beta, first, firstColumn};
    const Kokkos::RangePolicy<execution_space> policy(Impl::defaultSpace<execution_space>(), 0, last - first);
    if constexpr (onHost) {
      Kokkos::parallel_for(Impl::multiplyLabel, policy,
                           Impl::MultiplyIntervals<Rows, IntervalList>{rows, intervals, first});
    } else {
      Kokkos::parallel_for(Impl::multiplyLabel, policy, rows);
    }
  };
  for (int first = 0; first < numPieces; first += step) {
    const int last = std::min(numPieces, first + step);
    int column = 0;
    for (; column + 4 <= columns; column += 4) {
      launch(std::integral_constant<int, 4>(), first, last, column);
    }
    for (; column < columns; ++column) {
      launch(std::integral_constant<int, 1>(), first, last, column);
    }
    if (running != nullptr) {
      running->progress();
    }
  }
}

/// What stays on this rank: owned values beside the ghosts, if they are copied, and the permuted ones among them.
template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::copyOwnedValues(const execution_space& space, const const_view& x,
                                                                      const view& values, const view& ghosts) const {
  using Copy = Impl::CopyRows<Value, typename halo_type::index_view>;
  const Impl::VectorAccess<const Value> xAt{x.data(), x.stride(1)};
  const int columns = static_cast<int>(x.extent(1));
  if (copiesOwned) {
    Kokkos::parallel_for(Impl::copyOwnedLabel, Kokkos::RangePolicy<execution_space>(space, 0, numSame),
                         Copy{{values.data(), values.stride(1)}, xAt, {}, {}, 0, 0, columns, false});
  }
  if (numPermuted > 0) {
    const Copy copy{
        {ghosts.data(), ghosts.stride(1)}, xAt, importer->permuteTo(), importer->permuteFrom(), 0, 0, columns, false};
    Kokkos::parallel_for(Impl::permuteGhostsLabel, Kokkos::RangePolicy<execution_space>(space, 0, numPermuted), copy);
  }
}

/// Y = beta B + alpha A X over the row map.
template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::applyRows(const crs_matrix_type& A, const multivector_type& X,
                                                                const multivector_type& B, multivector_type& Y,
                                                                Scalar alpha, Scalar beta,
                                                                Impl::RemainingOfApply& remaining) const {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  const auto x = X.getLocalViewDevice(Tpetra::Access::ReadOnly);
  const auto y = Y.getLocalViewDevice(Tpetra::Access::ReadWrite);
  const const_view b = &B == &Y ? const_view(y) : const_view(B.getLocalViewDevice(Tpetra::Access::ReadOnly));
  const auto matrixValues = Impl::deviceValues(A);
  const rows_type matrix{graph.row_map.data(), graph.entries.data(), matrixValues.data()};
  const Impl::OneVector<Value> owned{{x.data(), x.stride(1)}};
  if (!importer) {
    multiply(matrix, RowClass::local, owned, b, y, alpha, beta, nullptr);
    return;
  }
  exchange_type& exchange = importer->template exchange<Scalar>();
  const view values = columnView(static_cast<int>(x.extent(1)));
  const view ghosts = Kokkos::subview(values, std::make_pair(numCopied(), numCopied() + numGhosts), Kokkos::ALL());
  const auto multiplyWithGhosts = [&](RowClass rowClass, exchange_type* running) {
    if (copiesOwned) {
      const Impl::OneVector<Value> copied{{values.data(), values.stride(1)}};
      multiply(matrix, rowClass, copied, b, y, alpha, beta, running);
    } else {
      const Impl::OwnedAndGhosts<Value> both{{x.data(), x.stride(1)}, {ghosts.data(), ghosts.stride(1)}, numSame};
      multiply(matrix, rowClass, both, b, y, alpha, beta, running);
    }
  };
  remaining.forward = false;  // begin() and end() let the others finish before they throw
  exchange.begin(space, x, ghosts);
  remaining.forward = true;
  copyOwnedValues(space, x, values, ghosts);
  multiply(matrix, RowClass::local, owned, b, y, alpha, beta, &exchange);
  const bool haveOnNodeGhosts = exchange.finishOnNode(space, ghosts);
  if (haveOnNodeGhosts) {
    multiplyWithGhosts(RowClass::onNode, &exchange);
  }
  remaining.forward = false;
  exchange.end(space, ghosts);
  if (!haveOnNodeGhosts) {
    multiplyWithGhosts(RowClass::onNode, nullptr);
  }
  multiplyWithGhosts(RowClass::offNode, nullptr);
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::applyPlain(const NodeAwareCrsMatrix& A, const multivector_type& X,
                                                                 multivector_type& Y, Scalar alpha, Scalar beta,
                                                                 Impl::RemainingOfApply& remaining) const {
  if (!exporter) {
    applyRows(A, X, Y, Y, alpha, beta, remaining);
    return;
  }
  multivector_type& rows = Impl::workVector(rowVector, A.getRowMap(), X.getNumVectors());
  applyRows(A, X, rows, rows, alpha, Scalar{}, remaining);
  Impl::scaleOrClear(Y, beta);
  remaining.reverse = false;
  exporter->doExport(rows, Y, Tpetra::ADD_ASSIGN);
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::applyTransposed(const NodeAwareCrsMatrix& A,
                                                                      const multivector_type& X, multivector_type& Y,
                                                                      Teuchos::ETransp mode, Scalar alpha, Scalar beta,
                                                                      Impl::RemainingOfApply& remaining) const {
  const Scalar one{1};
  const std::size_t columns = X.getNumVectors();
  if (exporter) {
    multivector_type& imported = Impl::workVector(rowVector, A.getRowMap(), columns);
    remaining.forward = false;
    exporter->doImport(X, imported, Tpetra::INSERT);
  }
  const multivector_type& rows = exporter ? *rowVector : X;
  Impl::scaleOrClear(Y, beta);
  if (!importer) {
    A.localApply(rows, Y, mode, alpha, one);
    return;
  }
  multivector_type& sums = Impl::workVector(columnVector, A.getColMap(), columns);
  sums.putScalar(Scalar{});  // localApply with beta == 0 keeps what is not a number
  A.localApply(rows, sums, mode, alpha, one);
  remaining.reverse = false;
  importer->doExport(sums, Y, Tpetra::ADD_ASSIGN);
}

/// Sums the parts that ranks have of replicated output. They agree first whether all have theirs: a rank that abandons
/// the apply may not know how many columns the others sum.
template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::sumIfReplicated(const crs_matrix_type& A, multivector_type& Y,
                                                                      Impl::RemainingOfApply& remaining) const {
  if (!remaining.sum) {
    return;
  }
  if (Y.isDistributed()) {
    throw PlanMismatch("NodeAwareCrsMatrix: the output must be replicated, as its map in the matrix is" +
                       Impl::onRank(*A.getComm()));
  }
  remaining.sum = false;
  if (!Impl::haveAllRanks(*A.getComm(), true)) {
    throw PlanMismatch("NodeAwareCrsMatrix: another rank abandoned the sum of replicated output" +
                       Impl::onRank(*A.getComm()));
  }
  Y.reduce();
}

template <class Scalar, class LO, class GO, class Node>
template <class Work>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::withCopies(const multivector_type& X, multivector_type& Y,
                                                                 const Work& work) const {
  if (!Impl::mayOverlap(X, Y)) {
    work(X, Y);
    return;
  }
  multivector_type& contiguousX = Impl::workVector(copyOfX, X.getMap(), X.getNumVectors());
  multivector_type& contiguousY = Impl::workVector(copyOfY, Y.getMap(), Y.getNumVectors());
  Tpetra::deep_copy(contiguousX, X);
  Tpetra::deep_copy(contiguousY, Y);
  work(contiguousX, contiguousY);
  Tpetra::deep_copy(Y, contiguousY);
}

template <class Scalar, class LO, class GO, class Node>
NodeAwareCrsMatrix<Scalar, LO, GO, Node>::NodeAwareCrsMatrix(const crs_matrix_type& matrix,
                                                             const ExchangeOptions& options)
    : crs_matrix_type(matrix), state_(std::make_unique<State>()) {
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm());
  throwOnAllIfAny(comm, matrix.isFillComplete() ? "" : "NodeAwareCrsMatrix: the matrix is not fill complete");
  // The base class shares its work vectors with the original; two matrices in use at once need their own.
  this->importMV_ = Teuchos::null;
  this->exportMV_ = Teuchos::null;
  const auto graph = this->getCrsGraph();
  State& state = *state_;
  const int numColumns = static_cast<int>(Impl::localLength(*graph->getColMap()));
  state.numSame = numColumns;
  if (!graph->getImporter().is_null()) {
    state.importer = std::make_unique<halo_type>(*graph->getImporter(), options);
    state.numSame = state.importer->numSame();
    state.numPermuted = static_cast<int>(state.importer->permuteTo().extent(0));
  }
  if (!graph->getExporter().is_null()) {
    state.exporter = std::make_unique<halo_type>(*graph->getExporter(), options);
  }
  state.numGhosts = numColumns - state.numSame;
  state.classify(this->getLocalMatrixDevice());
}

template <class Scalar, class LO, class GO, class Node>
NodeAwareCrsMatrix<Scalar, LO, GO, Node>::~NodeAwareCrsMatrix() = default;

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::apply(const multivector_type& X, multivector_type& Y,
                                                     Teuchos::ETransp mode, Scalar alpha, Scalar beta) const {
  const bool plain = mode == Teuchos::NO_TRANS;
  // As Tpetra: where alpha is 0, X is not read, and nothing is communicated.
  Impl::RemainingOfApply remaining = alpha == Scalar{} ? Impl::RemainingOfApply{} : State::allOf(*this, mode);
  try {
    Impl::requireFits(*this, "X", X, plain ? *this->getDomainMap() : *this->getRangeMap(), X.getNumVectors());
    Impl::requireFits(*this, "Y", Y, plain ? *this->getRangeMap() : *this->getDomainMap(), X.getNumVectors());
    if (alpha == Scalar{}) {
      Impl::scaleOrClear(Y, beta);
      return;
    }
    // The sum of replicated output takes Y of one rank.
    const Scalar factor = remaining.sum && this->getComm()->getRank() > 0 ? Scalar{} : beta;
    state_->withCopies(X, Y, [&](const multivector_type& x, multivector_type& y) {
      if (plain) {
        state_->applyPlain(*this, x, y, alpha, factor, remaining);
      } else {
        state_->applyTransposed(*this, x, y, mode, alpha, factor, remaining);
      }
      state_->sumIfReplicated(*this, y, remaining);
    });
  } catch (...) {
    state_->abandon(*this, mode, remaining);
    throw;
  }
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::abandonApply(Teuchos::ETransp mode) const {
  state_->abandon(*this, mode, State::allOf(*this, mode));
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::residual(const multivector_type& X, const multivector_type& B,
                                                        multivector_type& R) const {
  Impl::RemainingOfApply remaining = State::allOf(*this, Teuchos::NO_TRANS);
  try {
    const std::size_t columns = X.getNumVectors();
    Impl::requireFits(*this, "X", X, *this->getDomainMap(), columns);
    Impl::requireFits(*this, "B", B, *this->getRangeMap(), columns);
    Impl::requireFits(*this, "R", R, *this->getRangeMap(), columns);
    const bool inPlace = !Impl::mayOverlap(X, R) && (!Impl::mayOverlap(B, R) || Impl::areSame(B, R));
    if (inPlace && !state_->exporter) {
      const bool takesB = !remaining.sum || this->getComm()->getRank() == 0;
      state_->applyRows(*this, X, B, R, Scalar{-1}, takesB ? Scalar{1} : Scalar{}, remaining);
      state_->sumIfReplicated(*this, R, remaining);
      return;
    }
    multivector_type& result = inPlace ? R : Impl::workVector(state_->residualVector, R.getMap(), columns);
    Tpetra::deep_copy(result, B);
    remaining = {};  // apply() abandons by itself
    apply(X, result, Teuchos::NO_TRANS, Scalar{-1}, Scalar{1});
    if (!inPlace) {
      Tpetra::deep_copy(R, result);
    }
  } catch (...) {
    state_->abandon(*this, Teuchos::NO_TRANS, remaining);
    throw;
  }
}

template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::importHalo() const -> const halo_type* {
  return state_->importer.get();
}
template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::exportHalo() const -> const halo_type* {
  return state_->exporter.get();
}
template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::rowCounts() const -> RowCounts {
  const auto count = [this](Impl::RowClass rowClass) { return state_->rowsOf[index(rowClass)].extent(0); };
  return {count(Impl::RowClass::local), count(Impl::RowClass::onNode), count(Impl::RowClass::offNode)};
}

/// Compiles NodeAwareCrsMatrix for these types; in namespace Komvos.
#define KOMVOS_NODEAWARECRSMATRIX_INSTANT(SCALAR, LO, GO, NODE) template class NodeAwareCrsMatrix<SCALAR, LO, GO, NODE>;

}  // namespace Komvos
