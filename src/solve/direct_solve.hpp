/// \file direct_solve.hpp
/// MUMPS or SuperLU_DIST on a problem.
#pragma once

#include <string>

#include "Komvos_ExchangeOptions.hpp"
#include "problem/problem.hpp"
#include "solve/report.hpp"

namespace Komvos::Program {

/// Whether `--solver` names a direct solver. \throws BadInput if it does, and there is none in this build
bool isDirectSolver(const std::string& name);

/// Factors and solves; where the true residual is above the tolerance, solves for corrections, as long as it falls.
/// \param x set
/// \param report gets all but the problem and the error
/// \note Collective. \throws BadInput on all ranks if the matrix cannot be factored
void solveDirectly(const std::string& solver, const Problem& problem, const MatrixTraits& traits,
                   const ExchangeOptions& exchange, double tolerance, MultiVector& x, SolveReport& report);

}  // namespace Komvos::Program
