/// \file jacobi.hpp
/// The preconditioner that all solvers have in comparisons with PETSc's Jacobi.
#pragma once

#include <Tpetra_Operator.hpp>
#include <Tpetra_Vector.hpp>

#include "problem/problem.hpp"

namespace Komvos::Program {

/// y = alpha D^-1 x + beta y, where D is the diagonal of a square matrix.
class Jacobi : public Tpetra::Operator<> {
 public:
  explicit Jacobi(const Matrix& matrix) : inverse_(matrix.getRowMap()) {
    matrix.getLocalDiagCopy(inverse_);
    inverse_.reciprocal(inverse_);
  }
  Teuchos::RCP<const Map> getDomainMap() const override { return inverse_.getMap(); }
  Teuchos::RCP<const Map> getRangeMap() const override { return inverse_.getMap(); }
  void apply(const MultiVector& x, MultiVector& y, Teuchos::ETransp, double alpha, double beta) const override {
    y.elementWiseMultiply(alpha, inverse_, x, beta);
  }

 private:
  Tpetra::Vector<> inverse_;
};

}  // namespace Komvos::Program
