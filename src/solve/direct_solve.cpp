#include "solve/direct_solve.hpp"

#include <cctype>

#include "Komvos_DirectSolver.hpp"
#include "Komvos_Error.hpp"

namespace Komvos::Program {

namespace {

std::string lowerCase(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

double normOf(const MultiVector& vector) { return vector.getVector(0)->norm2(); }

}  // namespace

bool isDirectSolver(const std::string& name) {
  const std::string lower = lowerCase(name);
  for (const DirectMethod method : {DirectMethod::mumps, DirectMethod::superluDist}) {
    if (lower == toString(method)) {
      if (!DirectSolver::isAvailable(method)) {
        throw BadInput("solver '" + name + "': Komvos was compiled without " + toString(method));
      }
      return true;
    }
  }
  return false;
}

void solveDirectly(const std::string& solver, const Problem& problem, const MatrixTraits& traits,
                   const ExchangeOptions& exchange, double tolerance, MultiVector& x, SolveReport& report) {
  const Matrix& A = *problem.matrix;
  DirectOptions options;
  options.symmetric = traits.symmetric;
  options.exchange = exchange;
  const double start = MPI_Wtime();
  const DirectSolver inverse(A, parseDirectMethod(lowerCase(solver)), options);
  const double factored = MPI_Wtime();
  MultiVector r(*problem.rhs, Teuchos::Copy);
  const double sizeOfB = normOf(r);
  double size = sizeOfB;
  double before = size;
  x.putScalar(0);
  constexpr int mostSolves = 5;
  report.iterations = 0;
  while (size > tolerance * sizeOfB && report.iterations < mostSolves &&
         (report.iterations == 0 || size < before / 2)) {
    inverse.apply(r, x, Teuchos::NO_TRANS, 1, 1);
    Tpetra::deep_copy(r, *problem.rhs);
    A.apply(x, r, Teuchos::NO_TRANS, -1, 1);
    before = size;
    size = normOf(r);
    ++report.iterations;
  }
  report.setupSeconds = factored - start;
  report.solveSeconds = MPI_Wtime() - factored;
  report.solver = lowerCase(solver);
  report.preconditioner = "none";
  report.direct = inverse.report();
  report.maxIterations = mostSolves;
  report.tolerance = tolerance;
  report.trueResidual = sizeOfB == 0 ? 0 : size / sizeOfB;
  report.converged = report.trueResidual <= tolerance;  // not if it is not a number
  if (inverse.redistribution() != nullptr) {
    report.halos.push_back({"vectors", 0, true, *inverse.redistribution()});
  }
}

}  // namespace Komvos::Program
