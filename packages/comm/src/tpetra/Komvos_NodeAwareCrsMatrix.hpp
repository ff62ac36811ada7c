/// \file Komvos_NodeAwareCrsMatrix.hpp
/// A Tpetra::CrsMatrix whose apply exchanges its halo along a node-aware route, hidden behind local rows.
#pragma once

#include <mpi.h>

#include <Teuchos_RCP.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

/// A shallow copy of the matrix it is made from: graph and values are shared, changes of values show in both. Give it
/// to Belos, or to anything that calls apply(), in place of the original. Where the storage of the original is not
/// optimized (fillComplete with "Optimize Storage" = false), each of its fillComplete() makes new values: products show
/// these if this matrix was made from an RCP, as makeNodeAware() does; other functions of the base class do not.
///
/// apply() starts the exchange and multiplies rows that need no ghosts, or ghosts of this node only, while messages
/// travel (Algorithm 3 of Bienz, Gropp and Olson), unless one pass over all rows after the exchange is faster: see
/// Overlap. One column is read in place, or copied beside its ghosts where many rows need these; several columns are
/// copied so that the values of an entry are neighbours. Transposed applies sum ghosts back in an order that the plan
/// fixes.
///
/// Least traffic of a product with one column, on the host: 8 bytes and a 4-byte column index for each entry, the index
/// and a 4-byte length once for up to four rows with the same columns; x and its ghosts, y, and b if beta is not 0.
///
/// Compiled for the types that this Tpetra has matrices of; for others, as std::complex<double> where Tpetra has double
/// only, include Komvos_NodeAwareCrsMatrix_def.hpp and Komvos_NodeAwareImport_def.hpp, and Tpetra's own.
///
/// The graph must stay as it is. Not thread safe: one apply at a time.
template <class Scalar = DefaultScalar, class LocalOrdinal = DefaultLocalOrdinal,
          class GlobalOrdinal = DefaultGlobalOrdinal, class Node = DefaultNode>
class NodeAwareCrsMatrix : public Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node> {
 public:
  using crs_matrix_type = Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  using halo_type = NodeAwareImport<LocalOrdinal, GlobalOrdinal, Node>;

  /// \param matrix fill complete; may be dropped by the caller
  /// \note Collective.
  /// \throws BadInput on all ranks if `matrix` is not fill complete, the options cannot be used, or NodeAwareImport
  /// refuses its maps
  explicit NodeAwareCrsMatrix(const crs_matrix_type& matrix, const ExchangeOptions& options = {});
  /// The same, and keeps the original. \note Collective, and throws, as above.
  explicit NodeAwareCrsMatrix(const Teuchos::RCP<const crs_matrix_type>& matrix, const ExchangeOptions& options = {});
  /// Several at once, and keeps the originals: the ranks agree on all halos together, in as many messages as one matrix
  /// takes.
  /// \param matrices on `comm`, in the same order on all ranks
  /// \note Collective, and throws, as above.
  static std::vector<Teuchos::RCP<NodeAwareCrsMatrix>> several(
      MPI_Comm comm, const std::vector<Teuchos::RCP<const crs_matrix_type>>& matrices,
      const ExchangeOptions& options = {});
  ~NodeAwareCrsMatrix() override;

  /// What products need besides values: halos, with their plans and decisions, and how rows of the graph are divided.
  struct Structure;
  std::shared_ptr<const Structure> structure() const;
  /// Whether a matrix can use it: on this rank its maps have the same entries in the same order, and its communicator
  /// has the same ranks. \pre `matrix` is fill complete
  static bool fits(const Structure& structure, const crs_matrix_type& matrix);
  /// With the halos of another matrix, as for the next step in time: nothing is planned, measured or sent. Both
  /// matrices can be used, in turn.
  /// \param structure one that fits() on all ranks
  /// \param overlap   as in ExchangeOptions; that of the other matrix where the arrays of both graphs are the same
  /// \throws what happens on this rank alone, as a lack of memory
  NodeAwareCrsMatrix(const Teuchos::RCP<const crs_matrix_type>& matrix, const Structure& structure,
                     std::optional<Overlap> overlap = {});

  /// Y = beta Y + alpha op(A) X. Y may share entries with X. A replicated Y is summed over all ranks, as in Tpetra.
  /// \note Collective.
  /// \throws PlanMismatch if a vector does not fit. Whatever is thrown on one rank, no other waits for it: those that
  /// would have got its values throw PlanMismatch; all do where Y is replicated.
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             Scalar alpha = Teuchos::ScalarTraits<Scalar>::one(),
             Scalar beta = Teuchos::ScalarTraits<Scalar>::zero()) const override;

  /// Takes part in the exchanges of an apply without values, so that no rank waits; ranks that miss values throw.
  /// \note In the place of apply(), on a rank that cannot call it, because its own code threw before.
  void abandonApply(Teuchos::ETransp mode = Teuchos::NO_TRANS) const;

  /// R = B - A X, in one pass over A. R may share entries with X and B; unless it is B, work vectors are then used.
  /// \note Collective. \throws as apply
  void residual(const multivector_type& X, const multivector_type& B, multivector_type& R) const;

  /// The exchange between domain and column map; null if no rank needs any ghost.
  const halo_type* importHalo() const;
  /// The exchange between range and row map; null if they are the same.
  const halo_type* exportHalo() const;

  /// Rows by what they need: nothing from other ranks, values of this node at most, values of other nodes.
  struct RowCounts {
    std::size_t local, onNode, offNode;
  };
  RowCounts rowCounts() const;
  /// Which rows products with so many columns compute during the exchange; on this rank, and so far: it may change
  /// while products are timed.
  Overlap overlap(int columns = 1) const;
  /// The least that a product with so many columns reads and writes on this rank, in bytes: its part of the matrix as
  /// it is stored here, X, its ghosts, and Y once each.
  std::size_t leastProductBytes(int columns = 1) const;

  /// The matrix, and the routes of its halos, in one line.
  std::string description() const override;
  /// As Tpetra's, then the halos: see NodeAwareImport. \note Collective.
  void describe(Teuchos::FancyOStream& out,
                Teuchos::EVerbosityLevel level = Teuchos::Describable::verbLevel_default) const override;

 private:
  struct State;
  struct Halos;
  NodeAwareCrsMatrix(const crs_matrix_type& matrix, Halos&& halos, const ExchangeOptions& options);
  static std::vector<Halos> planHalos(MPI_Comm comm, const std::vector<const crs_matrix_type*>& matrices,
                                      const ExchangeOptions& options);
  std::unique_ptr<State> state_;
};

/// The one-line change: `A = Komvos::makeNodeAware(A);` \note Collective, and throws, as the constructor.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
Teuchos::RCP<NodeAwareCrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>> makeNodeAware(
    const Teuchos::RCP<const Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>>& matrix,
    const ExchangeOptions& options = {}) {
  return Teuchos::rcp(new NodeAwareCrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>(matrix, options));
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
Teuchos::RCP<NodeAwareCrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>> makeNodeAware(
    const Teuchos::RCP<Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>>& matrix,
    const ExchangeOptions& options = {}) {
  return makeNodeAware(matrix.getConst(), options);
}

}  // namespace Komvos
