/// \file petsc_product.hpp
/// The product of a matrix with vectors by PETSc: MatMult or MatMultTranspose, and MatMatMult for several columns.
#pragma once

#include <memory>

#include "problem/problem.hpp"

namespace Komvos::Program {

/// A copy of a Tpetra matrix in PETSc, over rows numbered anew, consecutive on each rank. PETSc's own defaults.
/// \note All members are collective.
class PetscProduct {
 public:
  /// \param x what is multiplied, always the same \param transposed one column only
  PetscProduct(const Matrix& matrix, const MultiVector& x, bool transposed = false);
  ~PetscProduct();
  PetscProduct(const PetscProduct&) = delete;
  PetscProduct& operator=(const PetscProduct&) = delete;

  void apply();
  /// The result of apply(), over the row map of the matrix.
  void copyResult(MultiVector& y) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Komvos::Program
