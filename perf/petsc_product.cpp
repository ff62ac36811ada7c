#include "petsc_product.hpp"

#include <petscmat.h>

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace Komvos::Program {

namespace {

void check(PetscErrorCode code) {
  if (code != 0) {
    throw std::runtime_error("PETSc fails with " + std::to_string(code));
  }
}

/// The new number of each column of the matrix: ranks one after the other, each in its local order.
std::vector<PetscInt> newColumnNumbers(const Matrix& matrix, PetscInt firstRow) {
  const auto domain = matrix.getDomainMap();
  const auto columns = matrix.getColMap();
  // Numbers of rows: of the type that Tpetra has for them.
  Tpetra::Vector<DefaultGlobalOrdinal> owned(domain), ghosted(columns);
  for (std::size_t i = 0; i < Impl::localLength(*domain); ++i) {
    owned.replaceLocalValue(static_cast<DefaultLocalOrdinal>(i), firstRow + static_cast<DefaultGlobalOrdinal>(i));
  }
  ghosted.doImport(owned, Tpetra::Import<>(domain, columns), Tpetra::INSERT);
  const auto view = ghosted.getLocalViewHost(Tpetra::Access::ReadOnly);
  return {view.data(), view.data() + view.extent(0)};
}

}  // namespace

struct PetscProduct::State {
  Mat A = nullptr;
  Mat X = nullptr, Y = nullptr;  // several columns
  Vec x = nullptr, y = nullptr;  // one
  PetscInt rows = 0;
  int columns = 1;

  void fill(const MultiVector& from);
};

void PetscProduct::State::fill(const MultiVector& from) {
  const auto values = from.getLocalViewHost(Tpetra::Access::ReadOnly);
  PetscScalar* target = nullptr;
  check(columns == 1 ? VecGetArray(x, &target) : MatDenseGetArray(X, &target));
  for (int j = 0; j < columns; ++j) {
    for (PetscInt i = 0; i < rows; ++i) {
      target[i + static_cast<std::size_t>(j) * rows] = values(i, j);
    }
  }
  check(columns == 1 ? VecRestoreArray(x, &target) : MatDenseRestoreArray(X, &target));
}

PetscProduct::PetscProduct(const Matrix& matrix, const MultiVector& x) : state_(std::make_unique<State>()) {
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm());
  PetscBool initialized = PETSC_FALSE;
  check(PetscInitialized(&initialized));
  if (initialized == PETSC_FALSE) {
    check(PetscInitializeNoArguments());
  }
  State& state = *state_;
  const auto local = matrix.getLocalMatrixHost();
  state.rows = local.numRows();
  state.columns = static_cast<int>(x.getNumVectors());
  PetscInt firstRow = 0;
  check(MPI_Exscan(&state.rows, &firstRow, 1, MPIU_INT, MPI_SUM, comm));
  const std::vector<PetscInt> numbers = newColumnNumbers(matrix, firstRow);
  std::vector<PetscInt> offsets(state.rows + 1), columns(local.nnz());
  for (PetscInt i = 0; i <= state.rows; ++i) {
    offsets[i] = static_cast<PetscInt>(local.graph.row_map(i));
  }
  for (std::size_t k = 0; k < columns.size(); ++k) {
    columns[k] = numbers[local.graph.entries(k)];
  }
  check(MatCreateMPIAIJWithArrays(comm, state.rows, state.rows, PETSC_DETERMINE, PETSC_DETERMINE, offsets.data(),
                                  columns.data(), local.values.data(), &state.A));
  if (state.columns == 1) {
    check(MatCreateVecs(state.A, &state.x, &state.y));
    state.fill(x);
  } else {
    check(MatCreateDense(comm, state.rows, PETSC_DECIDE, PETSC_DETERMINE, state.columns, nullptr, &state.X));
    state.fill(x);
    check(MatAssemblyBegin(state.X, MAT_FINAL_ASSEMBLY));
    check(MatAssemblyEnd(state.X, MAT_FINAL_ASSEMBLY));
    check(MatMatMult(state.A, state.X, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &state.Y));
  }
}

PetscProduct::~PetscProduct() {
  PetscBool finalized = PETSC_FALSE;
  PetscFinalized(&finalized);
  if (finalized == PETSC_FALSE) {
    MatDestroy(&state_->A);
    MatDestroy(&state_->X);
    MatDestroy(&state_->Y);
    VecDestroy(&state_->x);
    VecDestroy(&state_->y);
  }
}

void PetscProduct::apply() {
  if (state_->columns == 1) {
    check(MatMult(state_->A, state_->x, state_->y));
  } else {
    check(MatMatMult(state_->A, state_->X, MAT_REUSE_MATRIX, PETSC_DEFAULT, &state_->Y));
  }
}

void PetscProduct::copyResult(MultiVector& y) const {
  const PetscScalar* values = nullptr;
  check(state_->columns == 1 ? VecGetArrayRead(state_->y, &values) : MatDenseGetArrayRead(state_->Y, &values));
  for (int j = 0; j < state_->columns; ++j) {
    for (PetscInt i = 0; i < state_->rows; ++i) {
      y.replaceLocalValue(i, j, values[i + static_cast<std::size_t>(j) * state_->rows]);
    }
  }
  check(state_->columns == 1 ? VecRestoreArrayRead(state_->y, &values) : MatDenseRestoreArrayRead(state_->Y, &values));
}

}  // namespace Komvos::Program
