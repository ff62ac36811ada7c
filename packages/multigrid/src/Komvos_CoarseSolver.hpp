/// \file Komvos_CoarseSolver.hpp
/// A direct solve for the coarsest level: gather to a few ranks, factor, solve, scatter.
#pragma once

#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Operator.hpp>
#include <limits>
#include <memory>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

class NodeTopology;

/// Applies the inverse of a small sparse matrix, factored by SuiteSparse's KLU on one rank, a few, or one of each node.
///
/// It exists because the KLU2 of Debian 12's Amesos2 is miscompiled: on two ranks and more it returns wrong solutions
/// (relative residual 0.7 on a tridiagonal system), and MueLu takes it for the coarsest level by default.
///
/// Right-hand sides are gathered, and solutions scattered, by node-aware exchanges.
class CoarseSolver : public Tpetra::Operator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode> {
 public:
  using crs_matrix_type = Tpetra::CrsMatrix<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using multivector_type = Tpetra::MultiVector<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using map_type = Tpetra::Map<DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

  /// Ways to say how many ranks solve, each with all of the matrix. Any other number: so many at most; the nodes are
  /// divided among them in order, as evenly as can be, and the first rank of each part solves for it.
  ///
  /// With one on each node, the solution need not travel between nodes, and the wait for it is half as long; but every
  /// rank with rows writes to all solvers. `automatic` is one on each node, up to `mostCopies` nodes, and one beyond.
  static constexpr int automatic = 0, oneOnEachNode = std::numeric_limits<int>::max();
  static constexpr int mostCopies = 64;

  /// Gathers and factors. The matrix must be square and fit on one rank; values are copied.
  /// \note Collective on the matrix' communicator.
  /// \param solvers how many ranks solve: the same on all ranks
  /// \throws BadInput on all ranks if `solvers` is negative, if the matrix is not square, or singular to working
  /// precision: scaled to rows and columns of largest entry 1, its condition number is estimated to be 0.1 / eps or
  /// more. Also if a rank has no memory
  explicit CoarseSolver(const crs_matrix_type& matrix, const ExchangeOptions& options = {}, int solvers = automatic);
  ~CoarseSolver() override;

  Teuchos::RCP<const map_type> getDomainMap() const override;
  Teuchos::RCP<const map_type> getRangeMap() const override;

  /// Y = beta Y + alpha inv(A) X. \note Collective.
  /// \throws BadInput unless `mode` is NO_TRANS. Where X does not fit, an error there and PlanMismatch on all ranks
  /// that own rows; none hangs.
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             DefaultScalar alpha = 1.0, DefaultScalar beta = 0.0) const override;

  /// Whether a matrix on this communicator has its entries where the one that was factored has them. \note Collective.
  bool hasSameGraph(const crs_matrix_type& matrix) const;

  /// Factors anew after values have changed: only these travel, and pivots stay where they are still good.
  /// \note Collective.
  /// \throws BadInput on all ranks unless hasSameGraph(matrix), or if it is singular or a rank has no memory; after
  /// that, factor again before apply()
  void refactor(const crs_matrix_type& matrix);

  /// Entries in the factors L and U; 0 on ranks that do not solve.
  std::size_t factorEntries() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Which ranks solve, and whom each of them serves.
class CoarseSolverRanks {
 public:
  /// \param nodes must live as long as this \param solvers as CoarseSolver takes it, not negative
  CoarseSolverRanks(const NodeTopology& nodes, int solvers);
  int count() const { return count_; }
  /// The rank of solver 0, 1, ..., count() - 1.
  int rank(int solver) const;
  /// The solver of this rank.
  int solverOf(int rank) const;

 private:
  const NodeTopology& nodes_;
  int count_;
};

}  // namespace Komvos
