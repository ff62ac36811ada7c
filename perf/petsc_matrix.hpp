/// \file petsc_matrix.hpp
/// A Tpetra matrix as one of PETSc's.
#pragma once

#include <petscmat.h>

#include "problem/problem.hpp"

namespace Komvos::Program {

/// \throws std::runtime_error unless `code` is 0
void petscCheck(PetscErrorCode code);

/// Starts PETSc where that has not been done.
void startPetsc();
bool petscIsFinalized();

/// A copy over rows numbered anew, consecutive on each rank, in the order of the row map. The caller destroys it.
/// \note Collective.
Mat petscMatrix(const Matrix& matrix);

/// Copies a column of values, in the order of their map. \note Collective.
void copyToPetsc(const MultiVector& from, int column, Vec to);

}  // namespace Komvos::Program
