#include "petsc_solve.hpp"

#include <petscksp.h>

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <vector>

#include "petsc_matrix.hpp"

namespace Komvos::Program {

namespace {

void setNearNullSpace(const Problem& problem, Mat A, MPI_Comm comm) {
  if (problem.dofsPerNode > 1) {
    petscCheck(MatSetBlockSize(A, problem.dofsPerNode));
  }
  if (problem.nullspace.is_null()) {
    return;
  }
  std::vector<Vec> modes(problem.nullspace->getNumVectors());
  for (std::size_t j = 0; j < modes.size(); ++j) {
    petscCheck(MatCreateVecs(A, &modes[j], nullptr));
    copyToPetsc(*problem.nullspace, static_cast<int>(j), modes[j]);
    for (std::size_t i = 0; i < j; ++i) {  // PETSc wants them orthonormal
      PetscScalar product = 0;
      petscCheck(VecDot(modes[j], modes[i], &product));
      petscCheck(VecAXPY(modes[j], -product, modes[i]));
    }
    petscCheck(VecNormalize(modes[j], nullptr));
  }
  MatNullSpace space = nullptr;
  petscCheck(MatNullSpaceCreate(comm, PETSC_FALSE, static_cast<PetscInt>(modes.size()), modes.data(), &space));
  petscCheck(MatSetNearNullSpace(A, space));
  petscCheck(MatNullSpaceDestroy(&space));
  for (Vec& mode : modes) {
    petscCheck(VecDestroy(&mode));
  }
}

double secondsOf(MPI_Comm comm, double start) {
  double seconds = MPI_Wtime() - start;
  petscCheck(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm));
  return seconds;
}

double startOf(MPI_Comm comm) {
  petscCheck(MPI_Barrier(comm));
  return MPI_Wtime();
}

}  // namespace

bool petscHas(const std::string& kind) {
  startPetsc();
#ifdef PETSC_HAVE_HYPRE
  return kind == "gamg" || kind == "hypre";
#else
  return kind == "gamg";
#endif
}

PetscSolveResult solveByPetsc(const Problem& problem, const std::string& kind, double tolerance) {
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*problem.matrix->getComm());
  PetscSolveResult result;
  Mat A = petscMatrix(*problem.matrix);
  setNearNullSpace(problem, A, comm);
  petscCheck(MatSetOption(A, MAT_SPD, PETSC_TRUE));  // as CG needs; GAMG else makes its graph symmetric
  Vec x = nullptr, b = nullptr;
  petscCheck(MatCreateVecs(A, &x, &b));
  copyToPetsc(*problem.rhs, 0, b);
  KSP solver = nullptr;
  PC preconditioner = nullptr;
  petscCheck(KSPCreate(comm, &solver));
  petscCheck(KSPSetOperators(solver, A, A));
  petscCheck(KSPSetType(solver, KSPCG));
  petscCheck(KSPSetNormType(solver, KSP_NORM_UNPRECONDITIONED));
  petscCheck(KSPSetTolerances(solver, tolerance, 1e-300, PETSC_DEFAULT, 1000));
  petscCheck(KSPGetPC(solver, &preconditioner));
  petscCheck(PCSetType(preconditioner, kind.c_str()));
  double start = startOf(comm);
  petscCheck(KSPSetUp(solver));
  petscCheck(KSPSetUpOnBlocks(solver));
  result.setUpSeconds = secondsOf(comm, start);
  start = startOf(comm);
  petscCheck(KSPSolve(solver, b, x));
  result.solveSeconds = secondsOf(comm, start);
  PetscInt iterations = 0;
  petscCheck(KSPGetIterationNumber(solver, &iterations));
  result.iterations = static_cast<int>(iterations);
  Vec r = nullptr;
  petscCheck(VecDuplicate(b, &r));
  petscCheck(MatMult(A, x, r));
  petscCheck(VecAYPX(r, -1, b));
  PetscReal rNorm = 0, bNorm = 0;
  petscCheck(VecNorm(r, NORM_2, &rNorm));
  petscCheck(VecNorm(b, NORM_2, &bNorm));
  result.trueResidual = rNorm / bNorm;
  petscCheck(KSPDestroy(&solver));
  petscCheck(VecDestroy(&r));
  petscCheck(VecDestroy(&x));
  petscCheck(VecDestroy(&b));
  petscCheck(MatDestroy(&A));
  return result;
}

}  // namespace Komvos::Program
