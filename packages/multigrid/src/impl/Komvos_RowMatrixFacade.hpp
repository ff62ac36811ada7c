/// \file Komvos_RowMatrixFacade.hpp
/// A node-aware matrix that nobody takes for a Tpetra::CrsMatrix.
#pragma once

#include <Teuchos_RCP.hpp>
#include <Tpetra_RowMatrix.hpp>
#include <stdexcept>
#include <utility>

#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos::Impl {

/// Forwards everything. Where Ifpack2 finds a CrsMatrix, it imports ghosts by itself; here it must call apply().
class RowMatrixFacade
    : public ForwardedCounts<Tpetra::RowMatrix<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>> {
 public:
  using Base = Tpetra::RowMatrix<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using Map = Tpetra::Map<DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using Vectors = Tpetra::MultiVector<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using Graph = Tpetra::RowGraph<DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using Diagonal = Tpetra::Vector<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using typename Base::global_inds_host_view_type;
  using typename Base::local_inds_host_view_type;
  using typename Base::mag_type;
  using typename Base::nonconst_global_inds_host_view_type;
  using typename Base::nonconst_local_inds_host_view_type;
  using typename Base::nonconst_values_host_view_type;
  using typename Base::values_host_view_type;

  using ForwardedCounts<Base>::getGlobalRowCopy;
  using ForwardedCounts<Base>::getGlobalRowView;
  using ForwardedCounts<Base>::getLocalRowCopy;
  using ForwardedCounts<Base>::getLocalRowView;

  explicit RowMatrixFacade(Teuchos::RCP<const NodeAwareCrsMatrix<>> matrix) : matrix_(std::move(matrix)) {}

  Teuchos::RCP<const Map> getDomainMap() const override { return matrix_->getDomainMap(); }
  Teuchos::RCP<const Map> getRangeMap() const override { return matrix_->getRangeMap(); }
  void apply(const Vectors& X, Vectors& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS, DefaultScalar alpha = 1,
             DefaultScalar beta = 0) const override {
    ++begun_;
    matrix_->apply(X, Y, mode, alpha, beta);
  }
  /// Calls of apply() since the last countAnew().
  int begun() const { return begun_; }
  void countAnew() const { begun_ = 0; }
  bool hasTransposeApply() const override { return true; }

  Teuchos::RCP<const Teuchos::Comm<int>> getComm() const override { return matrix_->getComm(); }
  Teuchos::RCP<const Map> getRowMap() const override { return matrix_->getRowMap(); }
  Teuchos::RCP<const Map> getColMap() const override { return matrix_->getColMap(); }
  Teuchos::RCP<const Graph> getGraph() const override { return matrix_->getGraph(); }
  Tpetra::global_size_t getGlobalNumRows() const override { return matrix_->getGlobalNumRows(); }
  Tpetra::global_size_t getGlobalNumCols() const override { return matrix_->getGlobalNumCols(); }
  DefaultGlobalOrdinal getIndexBase() const override { return matrix_->getIndexBase(); }
  Tpetra::global_size_t getGlobalNumEntries() const override { return matrix_->getGlobalNumEntries(); }
  std::size_t getNumEntriesInGlobalRow(DefaultGlobalOrdinal row) const override {
    return matrix_->getNumEntriesInGlobalRow(row);
  }
  std::size_t getNumEntriesInLocalRow(DefaultLocalOrdinal row) const override {
    return matrix_->getNumEntriesInLocalRow(row);
  }
  std::size_t getGlobalMaxNumRowEntries() const override { return matrix_->getGlobalMaxNumRowEntries(); }
  bool hasColMap() const override { return true; }
  bool isLocallyIndexed() const override { return matrix_->isLocallyIndexed(); }
  bool isGloballyIndexed() const override { return matrix_->isGloballyIndexed(); }
  bool isFillComplete() const override { return matrix_->isFillComplete(); }
  bool supportsRowViews() const override { return matrix_->supportsRowViews(); }

  void getGlobalRowCopy(DefaultGlobalOrdinal row, nonconst_global_inds_host_view_type& columns,
                        nonconst_values_host_view_type& values, std::size_t& count) const override {
    matrix_->getGlobalRowCopy(row, columns, values, count);
  }
  void getLocalRowCopy(DefaultLocalOrdinal row, nonconst_local_inds_host_view_type& columns,
                       nonconst_values_host_view_type& values, std::size_t& count) const override {
    matrix_->getLocalRowCopy(row, columns, values, count);
  }
  void getGlobalRowView(DefaultGlobalOrdinal row, global_inds_host_view_type& columns,
                        values_host_view_type& values) const override {
    matrix_->getGlobalRowView(row, columns, values);
  }
  void getLocalRowView(DefaultLocalOrdinal row, local_inds_host_view_type& columns,
                       values_host_view_type& values) const override {
    matrix_->getLocalRowView(row, columns, values);
  }
  void getLocalDiagCopy(Diagonal& diagonal) const override { matrix_->getLocalDiagCopy(diagonal); }
  void leftScale(const Diagonal&) override { throw std::logic_error("RowMatrixFacade is read only"); }
  void rightScale(const Diagonal&) override { throw std::logic_error("RowMatrixFacade is read only"); }
  mag_type getFrobeniusNorm() const override { return matrix_->getFrobeniusNorm(); }

 private:
  const Base& forwarded() const override { return *matrix_; }

  Teuchos::RCP<const NodeAwareCrsMatrix<>> matrix_;
  mutable int begun_ = 0;
};

}  // namespace Komvos::Impl
