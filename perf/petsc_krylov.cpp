#include "petsc_krylov.hpp"

#include <petscksp.h>

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>

#include "petsc_matrix.hpp"

namespace Komvos::Program {

struct PetscKrylov::State {
  MPI_Comm comm = MPI_COMM_NULL;
  Mat A = nullptr;
  Vec x = nullptr, b = nullptr, r = nullptr;
};

PetscKrylov::PetscKrylov(const Problem& problem) : state_(new State) {
  startPetsc();
  state_->comm = Tpetra::Details::extractMpiCommFromTeuchos(*problem.matrix->getComm());
  state_->A = petscMatrix(*problem.matrix);
  petscCheck(MatCreateVecs(state_->A, &state_->x, &state_->b));
  petscCheck(VecDuplicate(state_->b, &state_->r));
  copyToPetsc(*problem.rhs, 0, state_->b);
}

PetscKrylov::~PetscKrylov() {
  if (!petscIsFinalized()) {
    VecDestroy(&state_->r);
    VecDestroy(&state_->x);
    VecDestroy(&state_->b);
    MatDestroy(&state_->A);
  }
}

PetscKrylovResult PetscKrylov::solve(const std::string& method, double tolerance) {
  KSP solver = nullptr;
  PC preconditioner = nullptr;
  petscCheck(KSPCreate(state_->comm, &solver));
  petscCheck(KSPSetOperators(solver, state_->A, state_->A));
  petscCheck(KSPSetType(solver, method.c_str()));
  petscCheck(KSPSetPCSide(solver, PC_RIGHT));
  petscCheck(KSPSetTolerances(solver, tolerance, 1e-300, PETSC_DEFAULT, 2000));
  petscCheck(KSPGetPC(solver, &preconditioner));
  petscCheck(PCSetType(preconditioner, PCJACOBI));
  petscCheck(KSPSetUp(solver));
  petscCheck(VecSet(state_->x, 0));
  petscCheck(MPI_Barrier(state_->comm));
  PetscKrylovResult result;
  const double start = MPI_Wtime();
  petscCheck(KSPSolve(solver, state_->b, state_->x));
  result.seconds = MPI_Wtime() - start;
  PetscInt iterations = 0;
  petscCheck(KSPGetIterationNumber(solver, &iterations));
  result.iterations = static_cast<int>(iterations);
  petscCheck(MatMult(state_->A, state_->x, state_->r));
  petscCheck(VecAYPX(state_->r, -1, state_->b));
  PetscReal r = 0, b = 0;
  petscCheck(VecNorm(state_->r, NORM_2, &r));
  petscCheck(VecNorm(state_->b, NORM_2, &b));
  result.trueResidual = r / b;
  petscCheck(KSPDestroy(&solver));
  return result;
}

}  // namespace Komvos::Program
