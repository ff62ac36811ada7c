// A Belos solve becomes node-aware by one line.
//
// An ordinary program of Trilinos: a matrix, a right-hand side, conjugate gradients. The line marked below is all that
// changes. The residual is computed with the original matrix.
//
//   mpirun -n 4 ./01_belos_one_line
#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Komvos_NodeAwareCrsMatrix.hpp>
#include <cstdio>

#include "laplacian.hpp"

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  using Vector = Tpetra::MultiVector<>;
  using Operator = Tpetra::Operator<>;

  const auto matrix = example::laplacian(60, example::consecutiveRows(60));
  const auto x = Teuchos::rcp(new Vector(matrix->getDomainMap(), 1));
  const auto b = Teuchos::rcp(new Vector(matrix->getRangeMap(), 1));
  b->putScalar(1);

  const auto A = Komvos::makeNodeAware(matrix);  // the one line

  const auto problem = Teuchos::rcp(new Belos::LinearProblem<double, Vector, Operator>(A, x, b));
  problem->setProblem();
  const auto parameters = Teuchos::parameterList();
  parameters->set("Convergence Tolerance", 1e-8);
  Belos::SolverFactory<double, Vector, Operator> factory;
  const auto solver = factory.create("CG", parameters);
  solver->setProblem(problem);
  const bool converged = solver->solve() == Belos::Converged;

  Vector r(*b, Teuchos::Copy);
  matrix->apply(*x, r, Teuchos::NO_TRANS, -1, 1);
  const double residual = r.getVector(0)->norm2() / b->getVector(0)->norm2();
  if (matrix->getComm()->getRank() == 0) {
    std::printf("%d iterations, relative residual %.1e\n", solver->getNumIters(), residual);
  }
  return converged && residual < 1.1e-8 ? 0 : 1;
}
