#include "petsc_product.hpp"

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>

#include "petsc_matrix.hpp"

namespace Komvos::Program {

namespace {

void check(PetscErrorCode code) { petscCheck(code); }

}  // namespace

struct PetscProduct::State {
  Mat A = nullptr;
  Mat X = nullptr, Y = nullptr;  // several columns
  Vec x = nullptr, y = nullptr;  // one
  PetscInt rows = 0;
  int columns = 1;
  bool transposed = false;

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

PetscProduct::PetscProduct(const Matrix& matrix, const MultiVector& x, bool transposed)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.transposed = transposed;
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm());
  state.rows = static_cast<PetscInt>(Impl::localRows(matrix));
  state.columns = static_cast<int>(x.getNumVectors());
  state.A = petscMatrix(matrix);
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
  if (!petscIsFinalized()) {
    MatDestroy(&state_->A);
    MatDestroy(&state_->X);
    MatDestroy(&state_->Y);
    VecDestroy(&state_->x);
    VecDestroy(&state_->y);
  }
}

void PetscProduct::apply() {
  if (state_->columns == 1) {
    check(state_->transposed ? MatMultTranspose(state_->A, state_->x, state_->y)
                             : MatMult(state_->A, state_->x, state_->y));
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
