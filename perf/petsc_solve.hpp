/// \file petsc_solve.hpp
/// Conjugate gradients with algebraic multigrid by PETSc.
#pragma once

#include <string>

#include "problem/problem.hpp"

namespace Komvos::Program {

struct PetscSolveResult {
  double setUpSeconds = 0;  ///< of the preconditioner; the matrix is there already
  double solveSeconds = 0;
  int iterations = 0;
  double trueResidual = 0;  ///< |b - A x| / |b|
};

/// Whether this PETSc has the preconditioner. \param kind "gamg" or "hypre", PETSc's names
bool petscHas(const std::string& kind);

/// Solves from 0 with PETSc's defaults, until the norm of the residual itself is small enough. GAMG is told the near
/// null space and how many rows a node has. \note Collective.
PetscSolveResult solveByPetsc(const Problem& problem, const std::string& kind, double tolerance);

}  // namespace Komvos::Program
