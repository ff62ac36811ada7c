// A Belos solve whose reductions are hidden behind products, beside Belos' own BiCGStab.
//
// Convection and diffusion, so that the matrix is not symmetric. Both take about as many iterations; Belos waits for
// five reductions in each. Ours has two: `auto` hides them on several nodes, and waits for them on one.
//
//   mpirun -n 4 ./08_pipelined_bicgstab
#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Komvos_BelosSolvers.hpp>
#include <Komvos_NodeAwareCrsMatrix.hpp>
#include <cstdio>
#include <cstdlib>

#include "laplacian.hpp"

using Vector = Tpetra::MultiVector<>;
using Operator = Tpetra::Operator<>;

/// The Laplacian, with a wind along rows of the grid: what comes with it counts more than what goes.
Teuchos::RCP<const Operator> windy(example::GlobalOrdinal n) {
  const auto matrix = example::laplacian(n, example::consecutiveRows(n));
  const auto rows = matrix->getRowMap()->getMyGlobalIndices();
  matrix->resumeFill();
  for (std::size_t i = 0; i < rows.extent(0); ++i) {
    const example::GlobalOrdinal row = rows(i), x = row % n;
    if (x > 0) {
      matrix->sumIntoGlobalValues(row, Teuchos::tuple(row - 1), Teuchos::tuple(-0.5));
    }
    if (x < n - 1) {
      matrix->sumIntoGlobalValues(row, Teuchos::tuple(row + 1), Teuchos::tuple(0.5));
    }
  }
  matrix->fillComplete();
  return Komvos::makeNodeAware(matrix);
}

/// Whether the residual is small enough.
bool solve(const char* name, const Teuchos::RCP<const Operator>& A) {
  const auto x = Teuchos::rcp(new Vector(A->getDomainMap(), 1));
  const auto b = Teuchos::rcp(new Vector(A->getRangeMap(), 1));
  b->putScalar(1);
  const auto problem = Teuchos::rcp(new Belos::LinearProblem<double, Vector, Operator>(A, x, b));
  problem->setProblem();
  const auto parameters = Teuchos::parameterList();
  parameters->set("Convergence Tolerance", 1e-8);
  Belos::SolverFactory<double, Vector, Operator> factory;
  const auto solver = factory.create(name, parameters);
  solver->setProblem(problem);
  const bool converged = solver->solve() == Belos::Converged;

  Vector r(*b, Teuchos::Copy);
  A->apply(*x, r, Teuchos::NO_TRANS, -1, 1);
  const double residual = r.getVector(0)->norm2() / b->getVector(0)->norm2();
  if (A->getDomainMap()->getComm()->getRank() == 0) {
    std::printf("%-18s %d iterations, relative residual %.1e\n", name, solver->getNumIters(), residual);
  }
  return converged && residual < 1.1e-8;
}

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  Komvos::registerBelosSolvers();  // once; now Belos' factories know one more name

  const auto A = windy(60);
  const bool theirs = solve("BICGSTAB", A);
  const bool ours = solve("PIPELINED BICGSTAB", A);
  return theirs && ours ? EXIT_SUCCESS : EXIT_FAILURE;
}
