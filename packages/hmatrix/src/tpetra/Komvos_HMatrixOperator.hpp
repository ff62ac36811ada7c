/// \file Komvos_HMatrixOperator.hpp
/// A hierarchical matrix on many ranks, as a Tpetra::Operator.
#pragma once

#include <Teuchos_Comm.hpp>
#include <Teuchos_RCP.hpp>
#include <Tpetra_Operator.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_TpetraShim.hpp"
#include "Komvos_WholeVectorOperator.hpp"

namespace Komvos {

/// Of all ranks.
struct HMatrixOperatorReport : HMatrixReport {
  std::vector<std::int64_t> bytesOfRank;
  std::vector<std::int64_t> gatheredOfRank;  ///< values of x that come from other ranks, for one vector
  std::vector<std::int64_t> sentBackOfRank;  ///< parts of y that go to the ranks that own them, for one vector

  /// The largest of bytesOfRank, as a multiple of the mean.
  double imbalance() const {
    const auto most = static_cast<double>(*std::max_element(bytesOfRank.begin(), bytesOfRank.end()));
    return most * static_cast<double>(bytesOfRank.size()) / static_cast<double>(bytes);
  }
};

/// The hierarchical matrix of an EntryKernel, its blocks dealt out to ranks so that all have about the same bytes.
///
/// Unknown i of the user is global index i of the maps. Each rank has those of neighbouring clusters, in an order of
/// its own: make vectors from getDomainMap(), and fill them by global index. Vectors with another distribution, or
/// another order on the ranks, come and go by a Tpetra::Import; apply() refuses them. Of x, a rank gets the clusters
/// that its blocks need, of y it sends what belongs to others, both along node-aware routes. While x arrives, blocks
/// are multiplied whose columns are here, most of the near field among them. Every block is approximated whole by one
/// rank, so the matrix is the same, to the last bit, on any number of ranks; products differ by the rounding of their
/// sums.
///
/// \code
/// Komvos::ClusterTree tree(centres);
/// Komvos::HMatrixOperator<> A(comm, tree, kernel);
/// A.apply(x, y);                                       // as any Tpetra::Operator, in Belos too
/// \endcode
///
/// \tparam Scalar float, double or std::complex<double>. The library is compiled for those that Tpetra is compiled for.
/// For the others, include Komvos_HMatrixOperatorFile_def.hpp, which has all definitions of ours, behind those of
/// Tpetra; the guide shows how (Types).
template <class Scalar = DefaultScalar, class LocalOrdinal = DefaultLocalOrdinal,
          class GlobalOrdinal = DefaultGlobalOrdinal, class Node = DefaultNode>
class HMatrixOperator : public Tpetra::Operator<Scalar, LocalOrdinal, GlobalOrdinal, Node>,
                        public WholeVectorOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node> {
 public:
  using map_type = Tpetra::Map<LocalOrdinal, GlobalOrdinal, Node>;
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  using halo_type = NodeAwareImport<LocalOrdinal, GlobalOrdinal, Node>;
  using matrix_type = HMatrix<Scalar, typename Node::execution_space>;

  /// \param tree of rows and columns, the same on all ranks; not needed afterwards
  /// \param kernel gives any entry on any rank; not needed afterwards
  /// \param options of the matrix, the same on all ranks but for `progress`, which tells of the rank's own part
  /// \param exchange how parts of x and of y travel
  /// \note Collective.
  /// \throws BadInput on all ranks for options out of range, or if the kernel throws on one
  HMatrixOperator(const Teuchos::RCP<const Teuchos::Comm<int>>& comm, const ClusterTree& tree,
                  const EntryKernel<Scalar>& kernel, const HMatrixOptions& options = {},
                  const ExchangeOptions& exchange = {});
  ~HMatrixOperator() override;

  Teuchos::RCP<const map_type> getDomainMap() const override;
  Teuchos::RCP<const map_type> getRangeMap() const override;
  bool hasTransposeApply() const override { return true; }

  /// Y = alpha op(A) X + beta Y. Y may be X.
  /// \note Collective. \throws PlanMismatch if a vector has other elements than getDomainMap(), or another order
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             Scalar alpha = Teuchos::ScalarTraits<Scalar>::one(),
             Scalar beta = Teuchos::ScalarTraits<Scalar>::zero()) const override;
  /// Y = A X without a gather of X: only parts of Y travel, from ranks whose blocks reach into rows of others.
  /// \param X all elements on each rank: those of rank 0 in the order of its part of getDomainMap(), of rank 1, ...
  /// \note Collective. \throws PlanMismatch if a vector does not fit
  void applyToWhole(const multivector_type& X, multivector_type& Y) const override;

  /// Writes a file a rank, `prefix.rank3.komvos-hmatrix` that of rank 3: format version 1. Each is written beside its
  /// place, and takes it when all ranks are done; so after an error, files of an earlier save() are as they were. Only
  /// if a file that is done cannot take its place, the new files of all ranks are removed, and older ones are lost.
  /// \note Collective. \throws BadInput on all ranks, with the path and the reason
  void save(const std::string& prefix) const;
  /// What as many ranks saved; no kernel or tree is needed. Maps, report and products are the same; see HMatrix::load()
  /// about bits, scalars and machines.
  /// \note Collective.
  /// \throws BadInput on all ranks if a file is missing, not what save() writes, damaged, of another save() than that
  /// of rank 0, or if another number of ranks saved
  static Teuchos::RCP<HMatrixOperator> load(const Teuchos::RCP<const Teuchos::Comm<int>>& comm,
                                            const std::string& prefix, const ExchangeOptions& exchange = {});

  const HMatrixOperatorReport& report() const;
  /// The blocks of this rank, of those whose columns are its own, and of the others.
  std::vector<Block> blocks() const;
  const matrix_type& ownMatrix() const;
  const matrix_type& otherMatrix() const;
  /// Bytes of the matrix that one product reads on this rank; vectors not counted.
  std::int64_t bytesRead() const;

 private:
  struct State;
  class File;
  explicit HMatrixOperator(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace Komvos
