/// \file belos_solve.hpp
/// Belos on a problem, for the subcommands that solve one.
#pragma once

#include <Tpetra_Operator.hpp>
#include <string>

#include "problem/problem.hpp"
#include "support/residual_history.hpp"

namespace Komvos::Program {

/// Whether the solver tells its iterations, so that there is a history of them. \param solver as Belos knows it
bool keepsHistory(const std::string& solver);

struct BelosResult {
  std::string solver;   ///< as Belos knows it
  std::string variant;  ///< of that solver which ran, or empty
  int iterations = 0;
  int restarts = 0;          ///< solves of the correction, after Belos stopped short of the true residual
  double belosResidual = 0;  ///< what Belos claims, relative
  double trueResidual = 0;   ///< |b - A x| / |b| by the plain operator; of several right-hand sides, the largest
  bool belosConverged = false;
  double tolerance = 0;
  int maxIterations = 0;
  double seconds = 0;
  std::string failureReason;  ///< what Belos said when it gave up, or empty
  ResidualHistory history;    ///< if it was asked for
  bool converged() const;
};

/// The name Belos knows the solver by. "auto" chooses by the matrix.
/// \throws BadInput, listing the names there are
std::string resolveSolver(const std::string& name, const MatrixTraits& traits, bool preconditioned);

/// \param solver as resolveSolver() returns it
/// \throws BadInput if it would pass over one of the parameters, as Belos' own solvers do without a word
void requireParametersOf(const std::string& solver, const Teuchos::ParameterList& given);

/// Solves A x = b from x = 0, all right-hand sides together. Where the recurrence of a solver has drifted from the true
/// residual, so that Belos stops too early, the correction is solved for in turn.
/// \param A           gives Belos its products
/// \param plain       gives the true residual
/// \param parameters  of Belos, "Convergence Tolerance" and "Maximum Iterations" among them
/// \param b, x        as many columns each; x is set
/// \param keepHistory costs a product an iteration
/// \note Collective.
/// \throws BadInput on all ranks if some right-hand sides are zero, but not all
BelosResult solveWithBelos(const std::string& solver, const Teuchos::RCP<Tpetra::Operator<>>& A,
                           const Teuchos::RCP<Tpetra::Operator<>>& preconditioner, const Tpetra::Operator<>& plain,
                           const MultiVector& b, MultiVector& x, Teuchos::ParameterList& parameters, bool showProgress,
                           bool keepHistory = false);

}  // namespace Komvos::Program
