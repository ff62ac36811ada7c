// The program of 06_belos_and_muelu.cpp, with node-aware exchanges in Belos and on all levels of MueLu.
//
// The lines with "Komvos" are all that is new.
//
//   mpirun -n 4 ./07_belos_and_muelu_node_aware
#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Komvos_NodeAwareHierarchy.hpp>
#include <MueLu_CreateTpetraPreconditioner.hpp>
#include <cstdio>

#include "laplacian.hpp"

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  using Matrix = Tpetra::CrsMatrix<>;
  using Vector = Tpetra::MultiVector<>;
  using Operator = Tpetra::Operator<>;

  Teuchos::RCP<Matrix> A = example::laplacian(100, example::consecutiveRows(100));
  A = Komvos::makeNodeAware(A);
  const auto x = Teuchos::rcp(new Vector(A->getDomainMap(), 1));
  const auto b = Teuchos::rcp(new Vector(A->getRangeMap(), 1));
  b->putScalar(1);

  Teuchos::ParameterList multigrid;
  multigrid.set("verbosity", "none");
  multigrid.set("smoother: type", "CHEBYSHEV");
  multigrid.set("coarse: type", "CHEBYSHEV");  // Debian 12's KLU2 is wrong in parallel
  const auto M = MueLu::CreateTpetraPreconditioner(Teuchos::RCP<Operator>(A), multigrid);
  Komvos::makeNodeAware(*M);

  const auto problem = Teuchos::rcp(new Belos::LinearProblem<double, Vector, Operator>(A, x, b));
  problem->setLeftPrec(M);
  problem->setProblem();
  const auto parameters = Teuchos::parameterList();
  parameters->set("Convergence Tolerance", 1e-8);
  Belos::SolverFactory<double, Vector, Operator> factory;
  const auto solver = factory.create("CG", parameters);
  solver->setProblem(problem);
  const bool converged = solver->solve() == Belos::Converged;

  Vector r(*b, Teuchos::Copy);
  A->apply(*x, r, Teuchos::NO_TRANS, -1, 1);
  const double residual = r.getVector(0)->norm2() / b->getVector(0)->norm2();
  if (A->getComm()->getRank() == 0) {
    std::printf("%d iterations, relative residual %.1e\n", solver->getNumIters(), residual);
  }
  return converged && residual < 1e-7 ? 0 : 1;
}
