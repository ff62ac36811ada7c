/// \file Komvos_HMatrixPreconditioner.hpp
/// Preconditioners for the systems of HMatrixOperator.
#pragma once

#include <Teuchos_RCP.hpp>
#include <Tpetra_Operator.hpp>
#include <cstdint>
#include <memory>

#include "Komvos_ClusterTree.hpp"
#include "Komvos_EntryKernel.hpp"
#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

enum class HMatrixPreconditionerKind {
  Diagonal,     ///< division by the diagonal
  BlockJacobi,  ///< dense blocks of clusters
  Overlapping,  ///< dense blocks of clusters and of what is near them; each unknown from the block of its own cluster
  Hodlr         ///< the part of the matrix that has its rows and columns on one rank, with all blocks beside the
                ///< diagonal of low rank at a low accuracy
};

/// Which one? BlockJacobi is made quickly, which counts where there is one right-hand side. Hodlr and Overlapping save
/// more iterations, but take longer to make: they are for several right-hand sides. Hodlr knows nothing of other ranks,
/// so it is for few; the iterations of Overlapping do not depend on the number of ranks.
struct HMatrixPreconditionerOptions {
  HMatrixPreconditionerKind kind = HMatrixPreconditionerKind::BlockJacobi;
  int blockSize = 100;     ///< BlockJacobi: the largest clusters of at most so many unknowns
  int ownSize = 50;        ///< Overlapping: the same, of the unknowns that a block is for
  double overlap = 0.5;    ///< Overlapping: near is what is closer than so many diameters of the cluster
  int extendedSize = 400;  ///< Overlapping: of a block with what is near, the nearest first; at least ownSize
  double accuracy = 0.2;   ///< Hodlr: of each block beside the diagonal
  int leafSize = 100;      ///< Hodlr: of dense blocks on the diagonal, at most
};

struct HMatrixPreconditionerReport {
  std::int64_t bytes = 0;  ///< of the values of all factors, on all ranks
  int largestBlock = 0;    ///< of dense factors, in unknowns
  int largestRank = 0;     ///< Hodlr
  double seconds = 0;      ///< to make it
};

/// An approximate inverse of the matrix of an EntryKernel, as a Tpetra::Operator: for "right" or "left preconditioner"
/// of a Belos::LinearProblem. It takes its entries from the kernel, not from the hierarchical matrix.
///
/// With Diagonal, BlockJacobi and Overlapping it is the same operator on any number of ranks, to rounding. Overlapping
/// is a restricted additive Schwarz method (Cai and Sarkis, SIAM J. Sci. Comput. 21 (1999) 792-797); for integral
/// equations, the overlapping preconditioner of Nabors, Korsmeyer, Leighton and White, SIAM J. Sci. Comput. 15 (1994)
/// 713-735. What is near comes in whole leaves of the tree, by the distance of boxes: a tree of small leaves fits
/// better. Hodlr is the solver of Ambikasaran and Darve, J. Sci. Comput. 57 (2013) 477-501.
///
/// All is factored by LAPACK on the host, by all threads of its default space, and applied where vectors are.
template <class Scalar = DefaultScalar, class LocalOrdinal = DefaultLocalOrdinal,
          class GlobalOrdinal = DefaultGlobalOrdinal, class Node = DefaultNode>
class HMatrixPreconditioner : public Tpetra::Operator<Scalar, LocalOrdinal, GlobalOrdinal, Node> {
 public:
  using map_type = Tpetra::Map<LocalOrdinal, GlobalOrdinal, Node>;
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;

  /// \param map the domain map of the HMatrixOperator: each rank has unknowns at neighbouring places of the tree
  /// \param tree, kernel those of the operator; not needed afterwards
  /// \note Collective.
  /// \throws BadInput on all ranks, with the number of a rank, if an option is out of range, if the map is another one,
  /// if a block is singular, if an entry is not finite, or if the kernel throws
  HMatrixPreconditioner(const Teuchos::RCP<const map_type>& map, const ClusterTree& tree,
                        const EntryKernel<Scalar>& kernel, const HMatrixPreconditionerOptions& options = {},
                        const ExchangeOptions& exchange = {});
  ~HMatrixPreconditioner() override;

  Teuchos::RCP<const map_type> getDomainMap() const override;
  Teuchos::RCP<const map_type> getRangeMap() const override;

  /// Y = alpha M X + beta Y, M the approximate inverse. Y may be X. With beta = 0, Y is not read.
  /// \note Collective.
  /// \throws PlanMismatch if a vector has other elements than the map, or another order; BadInput for a transposed
  /// product
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             Scalar alpha = Teuchos::ScalarTraits<Scalar>::one(),
             Scalar beta = Teuchos::ScalarTraits<Scalar>::zero()) const override;

  const HMatrixPreconditionerReport& report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Komvos
