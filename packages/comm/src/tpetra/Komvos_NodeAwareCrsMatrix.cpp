#include "Komvos_NodeAwareCrsMatrix.hpp"

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <vector>

#include "Komvos_CrsRowKernels.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"

namespace Komvos {

namespace {

// Kokkos wants labels as strings; made once, since making them allocates.
const std::string multiplyLabel = "Komvos::NodeAwareCrsMatrix::multiplyRows";
const std::string copyOwnedLabel = "Komvos::NodeAwareCrsMatrix::copyOwned";
const std::string permuteLabel = "Komvos::NodeAwareCrsMatrix::permute";

}  // namespace

namespace {

/// An ascending list of rows on the host as runs, short enough to be shared out among threads.
template <class RunList, class RowList>
RunList runsIn(const RowList& rows) {
  const int longest = 64;
  std::vector<Impl::RowInterval> runs;
  for (std::size_t i = 0; i < rows.extent(0); ++i) {
    if (!runs.empty() && runs.back().first + runs.back().count == rows(i) && runs.back().count < longest) {
      ++runs.back().count;
    } else {
      runs.push_back({rows(i), 1});
    }
  }
  const RunList list(Kokkos::view_alloc("Komvos::NodeAwareCrsMatrix::runs", Kokkos::WithoutInitializing), runs.size());
  std::copy(runs.begin(), runs.end(), list.data());
  return list;
}

}  // namespace

template <class Scalar, class LO, class GO, class Node>
struct NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State {
  using execution_space = typename Node::device_type::execution_space;
  using memory_space = typename Impl::BufferSpace<execution_space>::type;
  using RowList = Kokkos::View<int*, memory_space>;
  using RunList = Kokkos::View<Impl::RowInterval*, memory_space>;
  using exchange_type = Exchange<Scalar, typename Node::device_type>;
  using ghost_view = typename exchange_type::view;
  using local_matrix_type = typename crs_matrix_type::local_matrix_device_type;
  using graph_type = typename local_matrix_type::StaticCrsGraphType;
  using rows_type = Impl::LocalMatrix<Scalar, typename graph_type::size_type, LO>;

  graph_type graph;
  std::unique_ptr<halo_type> import;
  std::unique_ptr<halo_type> exporter;
  int numSame = 0;
  int numGhosts = 0;
  int numPermuted = 0;
  RowList rowsOf[3];  // by class, see ClassifyRows
  RunList runsOf[3];  // the same as runs, where the host computes
  int progressRows = 0;
  /// Where rows with ghosts have many entries, owned values are copied beside the ghosts while messages travel: one
  /// streamed copy costs less than asking for each entry which of two arrays it is in.
  bool copiesOwned = false;

  // Work space, kept between applies: a column of [owned values if they are copied, ghosts] for each column of X.
  mutable Kokkos::View<Scalar*, memory_space> columnValues;
  mutable Teuchos::RCP<multivector_type> columnVector, rowVector, copyOfX, copyOfY;

  void classify(const local_matrix_type& matrix);
  int numCopied() const { return copiesOwned ? numSame : 0; }
  ghost_view columnView(int columns) const;
  template <class Source>
  void multiply(const rows_type& matrix, int rowClass, const Source& x, const typename exchange_type::const_view& b,
                const typename exchange_type::view& y, Scalar alpha, Scalar beta, exchange_type* running) const;
  void applyRows(const crs_matrix_type& A, const multivector_type& X, const multivector_type& B, multivector_type& Y,
                 Scalar alpha, Scalar beta) const;

  /// Takes part in the exchanges of an apply without values, so that no rank waits for this one.
  void abandonFirst(bool transposed) const;
  void abandonSecond(bool transposed) const;
};

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::abandonFirst(bool transposed) const {
  if (halo_type* const halo = transposed ? exporter.get() : import.get()) {
    halo->template exchange<Scalar>().abandonForward();
  }
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::abandonSecond(bool transposed) const {
  if (halo_type* const halo = transposed ? import.get() : exporter.get()) {
    halo->template exchange<Scalar>().abandonReverse();
  }
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::classify(const local_matrix_type& matrix) {
  std::vector<int> classes(numGhosts, 1);
  if (import) {
    for (const ExchangePlan::Delivery& delivery : import->plan().deliveries) {
      classes[delivery.target] = delivery.onNode ? 1 : 2;
    }
  }
  Kokkos::View<int*, memory_space> ghostClass("Komvos::NodeAwareCrsMatrix::ghostClass", numGhosts);
  Kokkos::deep_copy(ghostClass, Kokkos::View<const int*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                                    classes.data(), classes.size()));
  graph = matrix.graph;
  const int numRows = matrix.numRows();
  using RowClass = Kokkos::View<int*, memory_space>;
  const RowClass rowClass("Komvos::NodeAwareCrsMatrix::rowClass", numRows);
  const Kokkos::RangePolicy<execution_space> allRows(0, numRows);
  using Classify = Impl::ClassifyRows<Kokkos::View<int*, memory_space>, typename graph_type::row_map_type,
                                      typename graph_type::entries_type, RowClass>;
  Kokkos::parallel_for("Komvos::NodeAwareCrsMatrix::classifyRows", allRows,
                       Classify{ghostClass, matrix.graph.row_map, matrix.graph.entries, rowClass, numSame});
  for (int c = 0; c < 3; ++c) {
    int count = 0;
    Kokkos::parallel_reduce("Komvos::NodeAwareCrsMatrix::countRows", allRows, Impl::CountRows<RowClass>{rowClass, c},
                            count);
    rowsOf[c] = RowList(Kokkos::view_alloc("Komvos::NodeAwareCrsMatrix::rows", Kokkos::WithoutInitializing), count);
    Kokkos::parallel_scan("Komvos::NodeAwareCrsMatrix::compactRows", allRows,
                          Impl::CompactRows<RowClass, RowList>{rowClass, rowsOf[c], c});
    if constexpr (Impl::hostCanAccessBuffers<execution_space>()) {
      Impl::fence(execution_space(), "Komvos::NodeAwareCrsMatrix: a row list is complete");
      runsOf[c] = runsIn<RunList>(rowsOf[c]);
    }
  }
  std::size_t entriesWithGhosts = 0;
  for (const int c : {1, 2}) {
    std::size_t count = 0;
    using Count = Impl::CountEntries<typename graph_type::row_map_type, RowList>;
    Kokkos::parallel_reduce("Komvos::NodeAwareCrsMatrix::countEntries",
                            Kokkos::RangePolicy<execution_space>(0, rowsOf[c].extent(0)),
                            Count{matrix.graph.row_map, rowsOf[c]}, count);
    entriesWithGhosts += count;
  }
  copiesOwned = entriesWithGhosts > static_cast<std::size_t>(numSame);
  Impl::fence(execution_space(), "Komvos::NodeAwareCrsMatrix: row lists are complete");
  // On the host, messages get a chance to travel on after this many rows: some tens of microseconds.
  const std::size_t entries = matrix.nnz();
  const std::size_t entriesBetween = 32768 * static_cast<std::size_t>(execution_space().concurrency());
  const std::size_t rowsBetween = entriesBetween * std::max(1, numRows) / std::max<std::size_t>(1, entries);
  progressRows = static_cast<int>(std::min<std::size_t>(std::max<std::size_t>(64, rowsBetween), 1 << 30));
}

template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::columnView(int columns) const -> ghost_view {
  const int length = numCopied() + numGhosts;
  const std::size_t size = static_cast<std::size_t>(length) * columns;
  if (columnValues.extent(0) < size) {
    columnValues = Kokkos::View<Scalar*, memory_space>("Komvos::NodeAwareCrsMatrix::columnValues", size);
  }
  return ghost_view(columnValues.data(), length, columns);
}

template <class Scalar, class LO, class GO, class Node>
template <class Source>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::multiply(const rows_type& matrix, int rowClass, const Source& x,
                                                               const typename exchange_type::const_view& b,
                                                               const typename exchange_type::view& y, Scalar alpha,
                                                               Scalar beta, exchange_type* running) const {
  constexpr bool onHost = Impl::hostCanAccessBuffers<execution_space>();
  const int numRows = static_cast<int>(rowsOf[rowClass].extent(0));
  if (numRows == 0) {
    return;
  }
  const bool allRows = static_cast<std::size_t>(numRows) == static_cast<std::size_t>(graph.numRows());
  const RowList list = allRows ? RowList() : rowsOf[rowClass];
  const int columns = static_cast<int>(y.extent(1));
  // Pieces of rows: runs on the host, single rows elsewhere.
  const int numPieces = onHost ? static_cast<int>(runsOf[rowClass].extent(0)) : numRows;
  const auto wanted = static_cast<long>(progressRows) * numPieces / numRows;
  const int step = running != nullptr && onHost ? static_cast<int>(std::max(1L, wanted)) : numPieces;
  const auto launch = [&](auto width, int first, int last, int firstColumn) {
    using Rows = Impl::MultiplyRows<Scalar, rows_type, RowList, Source, decltype(width)::value>;
    Rows rows{matrix, list, x, {b.data(), b.stride_1()}, {y.data(), y.stride_1()}, alpha, beta, first, firstColumn};
    const Kokkos::RangePolicy<execution_space> policy(0, last - first);
    if constexpr (onHost) {
      Kokkos::parallel_for(multiplyLabel, policy, Impl::MultiplyRuns<Rows, RunList>{rows, runsOf[rowClass], first});
    } else {
      Kokkos::parallel_for(multiplyLabel, policy, rows);
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

/// Y = beta B + alpha A X over the row map.
template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::applyRows(const crs_matrix_type& A, const multivector_type& X,
                                                                const multivector_type& B, multivector_type& Y,
                                                                Scalar alpha, Scalar beta) const {
  const execution_space space;
  const auto x = X.getLocalViewDevice(Tpetra::Access::ReadOnly);
  const auto y = Y.getLocalViewDevice(Tpetra::Access::ReadWrite);
  const bool same = &B == &Y;
  const typename exchange_type::const_view b =
      same ? typename exchange_type::const_view(y)
           : typename exchange_type::const_view(B.getLocalViewDevice(Tpetra::Access::ReadOnly));
  const auto matrixValues = Impl::deviceValues(A);
  const rows_type matrix{graph.row_map.data(), graph.entries.data(), matrixValues.data()};
  const Impl::OneVector<Scalar> owned{{x.data(), x.stride_1()}};
  if (!import) {
    multiply(matrix, 0, owned, b, y, alpha, beta, nullptr);
    return;
  }
  exchange_type& run = import->template exchange<Scalar>();
  const int columns = static_cast<int>(x.extent(1));
  const ghost_view values = columnView(columns);
  const ghost_view ghosts =
      Kokkos::subview(values, std::make_pair(numCopied(), numCopied() + numGhosts), Kokkos::ALL());
  run.begin(space, x, ghosts);
  using Copy = Impl::CopyRows<Scalar, typename halo_type::index_view>;
  const Impl::VectorAccess<const Scalar> xAt{x.data(), x.stride_1()};
  if (copiesOwned) {
    Kokkos::parallel_for(copyOwnedLabel, Kokkos::RangePolicy<execution_space>(space, 0, numSame),
                         Copy{{values.data(), values.stride_1()}, xAt, {}, {}, 0, 0, columns, false});
  }
  if (numPermuted > 0) {
    Kokkos::parallel_for(
        permuteLabel, Kokkos::RangePolicy<execution_space>(space, 0, numPermuted),
        Copy{
            {ghosts.data(), ghosts.stride_1()}, xAt, import->permuteTo(), import->permuteFrom(), 0, 0, columns, false});
  }
  const auto multiplyWithGhosts = [&](int rowClass, exchange_type* running) {
    if (copiesOwned) {
      multiply(matrix, rowClass, Impl::OneVector<Scalar>{{values.data(), values.stride_1()}}, b, y, alpha, beta,
               running);
    } else {
      const Impl::OwnedAndGhosts<Scalar> both{{x.data(), x.stride_1()}, {ghosts.data(), ghosts.stride_1()}, numSame};
      multiply(matrix, rowClass, both, b, y, alpha, beta, running);
    }
  };
  multiply(matrix, 0, owned, b, y, alpha, beta, &run);
  run.finishOnNode(space, ghosts);
  multiplyWithGhosts(1, &run);
  run.end(space, ghosts);
  multiplyWithGhosts(2, nullptr);
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
    state.import = std::make_unique<halo_type>(*graph->getImporter(), options);
    state.numSame = state.import->numSame();
    state.numPermuted = static_cast<int>(state.import->permuteTo().extent(0));
  }
  if (!graph->getExporter().is_null()) {
    state.exporter = std::make_unique<halo_type>(*graph->getExporter(), options);
  }
  state.numGhosts = numColumns - state.numSame;
  state.classify(this->getLocalMatrixDevice());
}

template <class Scalar, class LO, class GO, class Node>
NodeAwareCrsMatrix<Scalar, LO, GO, Node>::~NodeAwareCrsMatrix() = default;

namespace {

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

/// What is wrong with `vector` as `name` over `map` with so many columns, or nothing.
template <class MultiVector, class Map>
std::string misfit(const char* name, const MultiVector& vector, const Map& map, std::size_t columns) {
  const std::size_t rows = Impl::localLength(map);
  if (vector.getLocalLength() == rows && vector.getNumVectors() == columns) {
    return {};
  }
  return std::string("NodeAwareCrsMatrix: ") + name + " is " + std::to_string(vector.getLocalLength()) + " x " +
         std::to_string(vector.getNumVectors()) + ", it must be " + std::to_string(rows) + " x " +
         std::to_string(columns) + " (rank " + std::to_string(map.getComm()->getRank()) + ")";
}

template <class MultiVector>
bool overlap(const MultiVector& a, const MultiVector& b) {
  if (!a.isConstantStride() || !b.isConstantStride()) {
    return true;  // made into contiguous copies anyway
  }
  const auto x = a.getLocalViewDevice(Tpetra::Access::ReadOnly);
  const auto y = b.getLocalViewDevice(Tpetra::Access::ReadOnly);
  return x.data() + x.span() > y.data() && y.data() + y.span() > x.data();
}

}  // namespace

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::apply(const multivector_type& X, multivector_type& Y,
                                                     Teuchos::ETransp mode, Scalar alpha, Scalar beta) const {
  const State& state = *state_;
  const std::size_t columns = X.getNumVectors();
  const bool transposed = mode != Teuchos::NO_TRANS;
  const std::string error = misfit("X", X, transposed ? *this->getRangeMap() : *this->getDomainMap(), columns) +
                            misfit("Y", Y, transposed ? *this->getDomainMap() : *this->getRangeMap(), columns);
  const Scalar zero{};
  const Scalar one{1};
  if (alpha == zero && error.empty()) {  // as Tpetra: X is not read
    scaleOrClear(Y, beta);
    return;
  }
  if (!error.empty()) {
    if (alpha != zero) {
      state.abandonFirst(transposed);
      state.abandonSecond(transposed);
    }
    throw PlanMismatch(error);
  }
  if (!Y.isConstantStride() || overlap(X, Y)) {
    multivector_type& contiguousX = workVector(state.copyOfX, X.getMap(), columns);
    multivector_type& contiguousY = workVector(state.copyOfY, Y.getMap(), columns);
    Tpetra::deep_copy(contiguousX, X);
    Tpetra::deep_copy(contiguousY, Y);
    apply(contiguousX, contiguousY, mode, alpha, beta);
    Tpetra::deep_copy(Y, contiguousY);
    return;
  }
  if (!X.isConstantStride()) {
    multivector_type& contiguousX = workVector(state.copyOfX, X.getMap(), columns);
    Tpetra::deep_copy(contiguousX, X);
    apply(contiguousX, Y, mode, alpha, beta);
    return;
  }
  try {
    if (!transposed) {
      if (!state.exporter) {
        state.applyRows(*this, X, Y, Y, alpha, beta);
        return;
      }
      multivector_type& rows = workVector(state.rowVector, this->getRowMap(), columns);
      state.applyRows(*this, X, rows, rows, alpha, zero);
    } else if (state.exporter) {
      state.exporter->doImport(X, workVector(state.rowVector, this->getRowMap(), columns), Tpetra::INSERT);
    }
  } catch (const PlanMismatch&) {
    state.abandonSecond(transposed);
    throw;
  }
  if (!transposed) {
    scaleOrClear(Y, beta);
    state.exporter->doExport(*state.rowVector, Y, Tpetra::ADD_ASSIGN);
    return;
  }
  const multivector_type& rows = state.exporter ? *state.rowVector : X;
  scaleOrClear(Y, beta);
  if (!state.import) {
    this->localApply(rows, Y, mode, alpha, one);
    return;
  }
  multivector_type& sums = workVector(state.columnVector, this->getColMap(), columns);
  sums.putScalar(zero);  // localApply with beta == 0 keeps what is not a number
  this->localApply(rows, sums, mode, alpha, one);
  state.import->doExport(sums, Y, Tpetra::ADD_ASSIGN);
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::residual(const multivector_type& X, const multivector_type& B,
                                                        multivector_type& R) const {
  const std::size_t columns = X.getNumVectors();
  const std::string error = misfit("X", X, *this->getDomainMap(), columns) +
                            misfit("B", B, *this->getRangeMap(), columns) +
                            misfit("R", R, *this->getRangeMap(), columns);
  if (!error.empty()) {
    state_->abandonFirst(false);
    state_->abandonSecond(false);
    throw PlanMismatch(error);
  }
  const bool direct = !state_->exporter && X.isConstantStride() && B.isConstantStride() && R.isConstantStride() &&
                      !overlap(X, R) && !overlap(B, R);
  if (direct) {
    state_->applyRows(*this, X, B, R, Scalar{-1}, Scalar{1});
    return;
  }
  Tpetra::deep_copy(R, B);
  apply(X, R, Teuchos::NO_TRANS, Scalar{-1}, Scalar{1});
}

template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::importHalo() const -> const halo_type* {
  return state_->import.get();
}
template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::exportHalo() const -> const halo_type* {
  return state_->exporter.get();
}
template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::rowCounts() const -> RowCounts {
  return {state_->rowsOf[0].extent(0), state_->rowsOf[1].extent(0), state_->rowsOf[2].extent(0)};
}

template class NodeAwareCrsMatrix<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

}  // namespace Komvos
