/// \file petsc_krylov.hpp
/// PETSc's Krylov methods, with Jacobi from the right.
#pragma once

#include <memory>
#include <string>

#include "problem/problem.hpp"

namespace Komvos::Program {

struct PetscKrylovResult {
  double seconds = 0;  ///< of KSPSolve, on this rank
  int iterations = 0;
  double trueResidual = 0;  ///< |b - A x| / |b|
};

/// One system, copied to PETSc once.
class PetscKrylov {
 public:
  /// \note Collective.
  explicit PetscKrylov(const Problem& problem);
  ~PetscKrylov();
  PetscKrylov(const PetscKrylov&) = delete;
  PetscKrylov& operator=(const PetscKrylov&) = delete;

  /// From 0, until the norm of the residual is small enough. \param method as PETSc calls it \note Collective.
  PetscKrylovResult solve(const std::string& method, double tolerance);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Komvos::Program
