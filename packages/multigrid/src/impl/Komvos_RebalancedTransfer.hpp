/// \file Komvos_RebalancedTransfer.hpp
/// Restriction and prolongation between a level and the ranks of a rebalanced coarser one.
#pragma once

#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_MultiVector.hpp>
#include <Tpetra_Operator.hpp>
#include <memory>

#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos::Impl {

/// P or R together with what carries coarse vectors between the ranks that P and R end on, and those of the coarse
/// level. Prolongation is P after the exchange backwards, restriction is the exchange after R, or after the transpose
/// of P.
class RebalancedTransfer
    : public Tpetra::Operator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode> {
 public:
  using matrix_type = Tpetra::CrsMatrix<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using multivector_type = Tpetra::MultiVector<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using map_type = Tpetra::Map<DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

  /// \param exchange from where P and R end to the coarse level
  /// \param restricts whether the matrix is R
  RebalancedTransfer(Teuchos::RCP<const matrix_type> matrix, std::shared_ptr<const NodeAwareImport<>> exchange,
                     bool restricts);

  /// Null if the matrix is not node-aware.
  const Teuchos::RCP<const NodeAwareCrsMatrix<>>& matrix() const { return nodeAware_; }
  const std::shared_ptr<const NodeAwareImport<>>& exchange() const { return exchange_; }

  Teuchos::RCP<const map_type> getDomainMap() const override;
  Teuchos::RCP<const map_type> getRangeMap() const override;
  bool hasTransposeApply() const override { return true; }
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             DefaultScalar alpha = Teuchos::ScalarTraits<DefaultScalar>::one(),
             DefaultScalar beta = Teuchos::ScalarTraits<DefaultScalar>::zero()) const override;

 private:
  void makeRoomFor(std::size_t columns) const;

  Teuchos::RCP<const matrix_type> matrix_;
  Teuchos::RCP<const NodeAwareCrsMatrix<>> nodeAware_;  // the same, null if it is none
  std::shared_ptr<const NodeAwareImport<>> exchange_;
  bool restricts_;
  mutable Teuchos::RCP<multivector_type> before_;  // coarse, where the matrix ends
  mutable Teuchos::RCP<multivector_type> after_;   // coarse, where the level lives
};

}  // namespace Komvos::Impl
