/// \file Komvos_NodeAwareCrsMatrix_def.hpp
/// Definitions of NodeAwareCrsMatrix, for types that this library is not compiled for.
#pragma once

#include <Teuchos_CommHelpers.hpp>
#include <Tpetra_Details_Profiling.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloDescription.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_OverlappedProduct.hpp"
#include "Komvos_ShapeError.hpp"

// How this works. The constructor plans the halo between domain and column map (importer) and, where range and row map
// differ, the one between them (exporter).
//
// An apply has at most two exchanges. Not transposed: ghosts of X come forward along the importer, and meanwhile and
// afterwards the rows are multiplied (OverlappedProduct). Then, if there is an exporter, sums of rows go back along it.
// Transposed, the roles change: X comes forward along the exporter, and ghosts of Y go back along the importer, with
// one thread of the host by OverlappedProduct too, else after Tpetra has computed the product over the column map. So
// each apply is a forward exchange of one halo, then a reverse exchange of the other, and abandonApply() abandons both
// in this order.
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
  const std::less<const void*> before;  // of pointers into two arrays, where < says nothing
  return before(x.data(), y.data() + y.span()) && before(y.data(), x.data() + x.span());
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
  using product_type = Impl::OverlappedProduct<crs_matrix_type>;

  Teuchos::RCP<const crs_matrix_type> original;  // null: not kept, and its values are those of the base class
  std::shared_ptr<halo_type> importer;
  std::shared_ptr<halo_type> exporter;
  std::shared_ptr<product_type> product;
  std::string error;  // why there is no product on this rank; only until all ranks know

  // Work space, kept between applies.
  mutable Teuchos::RCP<multivector_type> columnVector, rowVector, copyOfX, copyOfY, residualVector;

  void divideRows(const crs_matrix_type& A, std::optional<Overlap> overlap);

  // Steps of apply; vectors have been checked and have constant stride. `A` has the values.
  void applyRows(const crs_matrix_type& A, const multivector_type& X, const multivector_type& B, multivector_type& Y,
                 Scalar alpha, Scalar beta, Impl::RemainingOfApply& remaining) const;
  void applyPlain(const crs_matrix_type& A, const multivector_type& X, multivector_type& Y, Scalar alpha, Scalar beta,
                  Impl::RemainingOfApply& remaining) const;
  void applyTransposed(const crs_matrix_type& A, const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode,
                       Scalar alpha, Scalar beta, Impl::RemainingOfApply& remaining) const;
  void sumIfReplicated(const crs_matrix_type& A, multivector_type& Y, Impl::RemainingOfApply& remaining) const;
  /// Calls work(X, Y), with contiguous copies where X and Y overlap or have no constant stride.
  template <class Work>
  void withCopies(const multivector_type& X, multivector_type& Y, const Work& work) const;

  static bool isOutputReplicated(const crs_matrix_type& A, Teuchos::ETransp mode);
  static Impl::RemainingOfApply allOf(const crs_matrix_type& A, Teuchos::ETransp mode);
  void abandon(const crs_matrix_type& A, Teuchos::ETransp mode, Impl::RemainingOfApply& remaining) const;
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
                                                              Impl::RemainingOfApply& remaining) const {
  const bool plain = mode == Teuchos::NO_TRANS;
  const halo_type* const first = plain ? importer.get() : exporter.get();
  const halo_type* const second = plain ? exporter.get() : importer.get();
  // Each is taken off before it is abandoned, so that no caller does it again if that throws.
  if (std::exchange(remaining.forward, false) && first != nullptr) {
    first->template abandonForward<Scalar>();
  }
  if (std::exchange(remaining.reverse, false) && second != nullptr) {
    second->template abandonReverse<Scalar>();
  }
  if (std::exchange(remaining.sum, false)) {
    Impl::haveAllRanks(*A.getComm(), false);
  }
}

/// How rows of the graph are divided, by what they need of the importer.
template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::divideRows(const crs_matrix_type& A,
                                                                 std::optional<Overlap> overlap) {
  product = std::make_shared<product_type>(A.getLocalMatrixDevice().graph, importer.get(),
                                           static_cast<int>(Impl::localLength(*A.getColMap())),
                                           Impl::resolveOverlap(overlap));
}

/// Y = beta B + alpha A X over the row map.
template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::applyRows(const crs_matrix_type& A, const multivector_type& X,
                                                                const multivector_type& B, multivector_type& Y,
                                                                Scalar alpha, Scalar beta,
                                                                Impl::RemainingOfApply& remaining) const {
  const auto x = X.getLocalViewDevice(Tpetra::Access::ReadOnly);
  const auto y = Y.getLocalViewDevice(Tpetra::Access::ReadWrite);
  using const_view = typename product_type::const_view;
  const const_view b = &B == &Y ? const_view(y) : const_view(B.getLocalViewDevice(Tpetra::Access::ReadOnly));
  const auto values = Impl::deviceValues(A);
  product->apply(x, values.data(), b, y, alpha, beta, remaining.forward);
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::applyPlain(const crs_matrix_type& A, const multivector_type& X,
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
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::State::applyTransposed(const crs_matrix_type& A,
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
  if (product->transposes()) {
    const auto x = rows.getLocalViewDevice(Tpetra::Access::ReadOnly);
    const auto y = Y.getLocalViewDevice(Tpetra::Access::ReadWrite);
    const auto values = Impl::deviceValues(A);
    product->applyTransposed(x, values.data(), y, alpha, mode == Teuchos::CONJ_TRANS, remaining.reverse);
    return;
  }
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
struct NodeAwareCrsMatrix<Scalar, LO, GO, Node>::Halos {
  std::unique_ptr<halo_type> importer, exporter;  // null where the graph has none
};

/// Whether a graph has an importer, an exporter, or is complete, is the same on all ranks.
template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::planHalos(MPI_Comm comm,
                                                         const std::vector<const crs_matrix_type*>& matrices,
                                                         const ExchangeOptions& options) -> std::vector<Halos> {
  std::vector<Halos> halos(matrices.size());
  std::vector<const typename halo_type::transfer_type*> transfers;
  std::vector<std::unique_ptr<halo_type>*> places;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (!matrices[i]->isFillComplete()) {
      throw BadInput("NodeAwareCrsMatrix: the matrix is not fill complete");
    }
    const auto graph = matrices[i]->getCrsGraph();
    if (!graph->getImporter().is_null()) {
      transfers.push_back(graph->getImporter().get());
      places.push_back(&halos[i].importer);
    }
    if (!graph->getExporter().is_null()) {
      transfers.push_back(graph->getExporter().get());
      places.push_back(&halos[i].exporter);
    }
  }
  if (!transfers.empty()) {
    std::vector<std::unique_ptr<halo_type>> planned = halo_type::several(comm, transfers, options);
    for (std::size_t i = 0; i < planned.size(); ++i) {
      *places[i] = std::move(planned[i]);
    }
  }
  return halos;
}

template <class Scalar, class LO, class GO, class Node>
NodeAwareCrsMatrix<Scalar, LO, GO, Node>::NodeAwareCrsMatrix(const crs_matrix_type& matrix, Halos&& halos,
                                                             const ExchangeOptions& options)
    : crs_matrix_type(matrix), state_(std::make_unique<State>()) {
  // The base class shares its work vectors with the original; two matrices in use at once need their own.
  this->importMV_ = Teuchos::null;
  this->exportMV_ = Teuchos::null;
  state_->error = Impl::errorIn([&] {
    state_->importer = std::move(halos.importer);
    state_->exporter = std::move(halos.exporter);
    state_->divideRows(*this, options.overlap);
  });
}

template <class Scalar, class LO, class GO, class Node>
NodeAwareCrsMatrix<Scalar, LO, GO, Node>::NodeAwareCrsMatrix(const crs_matrix_type& matrix,
                                                             const ExchangeOptions& options)
    : NodeAwareCrsMatrix(
          matrix,
          std::move(
              planHalos(Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm()), {&matrix}, options).front()),
          options) {
  throwOnAllIfAny(Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm()), state_->error);
}

template <class Scalar, class LO, class GO, class Node>
NodeAwareCrsMatrix<Scalar, LO, GO, Node>::NodeAwareCrsMatrix(const Teuchos::RCP<const crs_matrix_type>& matrix,
                                                             const ExchangeOptions& options)
    : NodeAwareCrsMatrix(*matrix, options) {
  state_->original = matrix;
}

template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::several(MPI_Comm comm,
                                                       const std::vector<Teuchos::RCP<const crs_matrix_type>>& matrices,
                                                       const ExchangeOptions& options)
    -> std::vector<Teuchos::RCP<NodeAwareCrsMatrix>> {
  std::vector<const crs_matrix_type*> plain;
  for (const auto& matrix : matrices) {
    plain.push_back(matrix.get());
  }
  std::vector<Halos> halos = planHalos(comm, plain, options);
  std::vector<Teuchos::RCP<NodeAwareCrsMatrix>> made;
  std::string error;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    made.push_back(Teuchos::rcp(new NodeAwareCrsMatrix(*matrices[i], std::move(halos[i]), options)));
    made.back()->state_->original = matrices[i];
    error = error.empty() ? made.back()->state_->error : error;
  }
  throwOnAllIfAny(comm, error);
  return made;
}

template <class Scalar, class LO, class GO, class Node>
NodeAwareCrsMatrix<Scalar, LO, GO, Node>::~NodeAwareCrsMatrix() = default;

template <class Scalar, class LO, class GO, class Node>
struct NodeAwareCrsMatrix<Scalar, LO, GO, Node>::Structure {
  using local_graph_type = typename State::product_type::graph_type;

  local_graph_type graph;                                 // what the product is of
  int numColumns;                                         // of the column map, on this rank
  std::shared_ptr<halo_type> importer, exporter;          // null where the graph has none
  std::shared_ptr<typename State::product_type> product;  // destroyed first: it looks at the importer

  /// Whether these are the same arrays. A graph may get others, or other maps, and stay the same object.
  bool isOf(const local_graph_type& other, int columns) const {
    return graph.row_map.data() == other.row_map.data() && graph.row_map.extent(0) == other.row_map.extent(0) &&
           graph.entries.data() == other.entries.data() && graph.entries.extent(0) == other.entries.extent(0) &&
           numColumns == columns;
  }
};

template <class Scalar, class LO, class GO, class Node>
auto NodeAwareCrsMatrix<Scalar, LO, GO, Node>::structure() const -> std::shared_ptr<const Structure> {
  return std::make_shared<const Structure>(Structure{this->getLocalMatrixDevice().graph,
                                                     static_cast<int>(Impl::localLength(*this->getColMap())),
                                                     state_->importer, state_->exporter, state_->product});
}

template <class Scalar, class LO, class GO, class Node>
bool NodeAwareCrsMatrix<Scalar, LO, GO, Node>::fits(const Structure& structure, const crs_matrix_type& matrix) {
  const auto graph = matrix.getCrsGraph();
  const auto haveTheSame = [](const std::shared_ptr<halo_type>& halo, bool isNeeded, const auto& owned,
                              const auto& overlapping) {
    return isNeeded == (halo != nullptr) && (!isNeeded || halo->isBetween(*owned, *overlapping));
  };
  return haveTheSame(structure.importer, !graph->getImporter().is_null(), graph->getDomainMap(), graph->getColMap()) &&
         haveTheSame(structure.exporter, !graph->getExporter().is_null(), graph->getRangeMap(), graph->getRowMap());
}

template <class Scalar, class LO, class GO, class Node>
NodeAwareCrsMatrix<Scalar, LO, GO, Node>::NodeAwareCrsMatrix(const Teuchos::RCP<const crs_matrix_type>& matrix,
                                                             const Structure& structure, std::optional<Overlap> overlap)
    : crs_matrix_type(*matrix), state_(std::make_unique<State>()) {
  this->importMV_ = Teuchos::null;
  this->exportMV_ = Teuchos::null;
  state_->original = matrix;
  state_->importer = structure.importer;
  state_->exporter = structure.exporter;
  if (structure.isOf(this->getLocalMatrixDevice().graph, static_cast<int>(Impl::localLength(*this->getColMap())))) {
    state_->product = structure.product;
  } else {
    state_->divideRows(*this, overlap);
  }
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::apply(const multivector_type& X, multivector_type& Y,
                                                     Teuchos::ETransp mode, Scalar alpha, Scalar beta) const {
  const Tpetra::Details::ProfilingRegion region("Komvos::NodeAwareCrsMatrix::apply");
  const bool plain = mode == Teuchos::NO_TRANS;
  const crs_matrix_type& A = state_->original.is_null() ? *this : *state_->original;
  // As Tpetra: where alpha is 0, X is not read, and nothing is communicated.
  Impl::RemainingOfApply remaining = alpha == Scalar{} ? Impl::RemainingOfApply{} : State::allOf(*this, mode);
  try {
    Impl::requireFits(*this, "X", X, plain ? *this->getDomainMap() : *this->getRangeMap(), X.getNumVectors());
    Impl::requireFits(*this, "Y", Y, plain ? *this->getRangeMap() : *this->getDomainMap(), X.getNumVectors());
    if (X.getNumVectors() == 0) {  // perhaps on this rank alone
      state_->abandon(*this, mode, remaining);
      return;
    }
    if (alpha == Scalar{}) {
      Impl::scaleOrClear(Y, beta);
      return;
    }
    // The sum of replicated output takes Y of one rank.
    const Scalar factor = remaining.sum && this->getComm()->getRank() > 0 ? Scalar{} : beta;
    state_->withCopies(X, Y, [&](const multivector_type& x, multivector_type& y) {
      if (plain) {
        state_->applyPlain(A, x, y, alpha, factor, remaining);
      } else {
        state_->applyTransposed(A, x, y, mode, alpha, factor, remaining);
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
  Impl::RemainingOfApply all = State::allOf(*this, mode);
  state_->abandon(*this, mode, all);
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::residual(const multivector_type& X, const multivector_type& B,
                                                        multivector_type& R) const {
  const Tpetra::Details::ProfilingRegion region("Komvos::NodeAwareCrsMatrix::residual");
  Impl::RemainingOfApply remaining = State::allOf(*this, Teuchos::NO_TRANS);
  try {
    const std::size_t columns = X.getNumVectors();
    Impl::requireFits(*this, "X", X, *this->getDomainMap(), columns);
    Impl::requireFits(*this, "B", B, *this->getRangeMap(), columns);
    Impl::requireFits(*this, "R", R, *this->getRangeMap(), columns);
    if (columns == 0) {  // perhaps on this rank alone
      state_->abandon(*this, Teuchos::NO_TRANS, remaining);
      return;
    }
    const bool inPlace = !Impl::mayOverlap(X, R) && (!Impl::mayOverlap(B, R) || Impl::areSame(B, R));
    if (inPlace && !state_->exporter) {
      const bool takesB = !remaining.sum || this->getComm()->getRank() == 0;
      const crs_matrix_type& A = state_->original.is_null() ? *this : *state_->original;
      state_->applyRows(A, X, B, R, Scalar{-1}, takesB ? Scalar{1} : Scalar{}, remaining);
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
  const Impl::RowClassCounts& rows = state_->product->rowCounts();
  return {rows[index(Impl::RowClass::local)], rows[index(Impl::RowClass::onNode)],
          rows[index(Impl::RowClass::offNode)]};
}
template <class Scalar, class LO, class GO, class Node>
Overlap NodeAwareCrsMatrix<Scalar, LO, GO, Node>::overlap(int columns) const {
  return state_->product->overlap(columns);
}
template <class Scalar, class LO, class GO, class Node>
std::size_t NodeAwareCrsMatrix<Scalar, LO, GO, Node>::leastProductBytes(int columns) const {
  const std::size_t entries = Impl::localLength(*this->getColMap()) + Impl::localRows(*this);
  return state_->product->matrixBytes() + entries * columns * sizeof(Scalar);
}

template <class Scalar, class LO, class GO, class Node>
std::string NodeAwareCrsMatrix<Scalar, LO, GO, Node>::description() const {
  const auto halo = [](const halo_type* one) { return one != nullptr ? Impl::haloInOneLine(one->report()) : "none"; };
  return "Komvos::NodeAwareCrsMatrix: {" + crs_matrix_type::description() + ", import halo: {" + halo(importHalo()) +
         "}, export halo: {" + halo(exportHalo()) + "}}";
}

template <class Scalar, class LO, class GO, class Node>
void NodeAwareCrsMatrix<Scalar, LO, GO, Node>::describe(Teuchos::FancyOStream& out,
                                                        Teuchos::EVerbosityLevel level) const {
  crs_matrix_type::describe(out, level);
  const auto describeHalo = [&](const char* name, const halo_type* halo) {
    if (level == Teuchos::VERB_NONE) {
      return;
    }
    if (this->getComm()->getRank() == 0) {
      out << name << (halo == nullptr ? "none\n" : "\n");
    }
    if (halo != nullptr) {
      halo->describe(out, level);
    }
  };
  describeHalo("Import halo: ", importHalo());
  describeHalo("Export halo: ", exportHalo());
}

/// Compiles NodeAwareCrsMatrix for these types; in namespace Komvos.
#define KOMVOS_NODEAWARECRSMATRIX_INSTANT(SCALAR, LO, GO, NODE) template class NodeAwareCrsMatrix<SCALAR, LO, GO, NODE>;

}  // namespace Komvos
