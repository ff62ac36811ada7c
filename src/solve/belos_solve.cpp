#include "solve/belos_solve.hpp"

#include <BelosConfigDefs.hpp>
#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <algorithm>
#include <cmath>
#include <limits>

#include "Komvos_BelosSolvers.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_PipelinedBiCGStab.hpp"
#include "support/progress_line.hpp"
#include "support/run_collectively.hpp"

// How this works. Belos stops on the residual of its own recurrence. solveWithBelos() therefore solves for a correction
// d of the current x, computes the true residual r = b - A x with Tpetra's product, and starts again from r as long as
// Belos was satisfied, the tolerance is not met and the residual still falls. makeProblem() and solveOnce() are one
// such round.
namespace Komvos::Program {

namespace {

using Operator = Tpetra::Operator<>;
using LinearProblem = Belos::LinearProblem<double, MultiVector, Operator>;
using Factory = Belos::TpetraSolverFactory<double, MultiVector, Operator>;
using Teuchos::RCP;
using Teuchos::rcp;

/// The true residual may exceed the tolerance by this factor: solvers stop on a recurrence, which differs by rounding.
const double toleranceSlack = 1.001;
const int maxRestarts = 5;

std::string joined(const Teuchos::Array<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

double norm(const MultiVector& vector) {
  Teuchos::Array<double> norms(1);
  vector.norm2(norms());
  return norms[0];
}

/// r = b - A x; returns its norm.
double residual(const Matrix& A, const MultiVector& b, const MultiVector& x, MultiVector& r) {
  Tpetra::deep_copy(r, b);
  A.apply(x, r, Teuchos::NO_TRANS, -1.0, 1.0);
  return norm(r);
}

/// These take the preconditioner from the left only, or measure the plain residual anyway. The others get it from the
/// right, where the residual they see is that of the problem.
bool takesLeftPreconditioner(const std::string& solver) {
  const std::string cg = "CG";
  const bool endsInCg = solver.size() >= cg.size() && solver.compare(solver.size() - cg.size(), cg.size(), cg) == 0;
  return endsInCg || solver.find("CG ") != std::string::npos || solver == "MINRES";
}

/// Output goes through the stream, for the progress line; what the user set stays.
void listen(Teuchos::ParameterList& parameters, std::ostream& stream) {
  if (!parameters.isParameter("Verbosity")) {
    parameters.set("Verbosity", static_cast<int>(Belos::StatusTestDetails));
    parameters.set("Output Style", static_cast<int>(Belos::Brief));
    parameters.set("Output Frequency", 1);
    parameters.set("Output Stream", Teuchos::rcpFromRef(stream));
  }
}

/// A d = r.
RCP<LinearProblem> makeProblem(const RCP<Operator>& A, const RCP<Operator>& preconditioner, const std::string& solver,
                               const RCP<MultiVector>& d, const RCP<const MultiVector>& r) {
  const auto problem = rcp(new LinearProblem(A, d, r));
  if (!preconditioner.is_null() && takesLeftPreconditioner(solver)) {
    problem->setLeftPrec(preconditioner);
  } else if (!preconditioner.is_null()) {
    problem->setRightPrec(preconditioner);
  }
  problem->setProblem();
  return problem;
}

/// Notes residuals, and lets the solver go on.
class HistoryTest : public Belos::StatusTest<double, MultiVector, Operator> {
 public:
  HistoryTest(const Matrix& plain, double sizeOfB, ResidualHistory& history)
      : plain_(plain), sizeOfB_(sizeOfB), history_(history) {}

  Belos::StatusType checkStatus(Belos::Iteration<double, MultiVector, Operator>* iteration) override {
    std::vector<double> norms;
    iteration->getNativeResiduals(&norms);
    const auto& problem = iteration->getProblem();
    MultiVector r(*problem.getRHS(), Teuchos::Copy);
    history_.estimated.push_back(norms.at(0) / sizeOfB_);
    history_.computed.push_back(residual(plain_, *problem.getRHS(), *problem.getLHS(), r) / sizeOfB_);
    return Belos::Failed;
  }
  Belos::StatusType getStatus() const override { return Belos::Failed; }
  void reset() override {}
  void print(std::ostream&, int) const override {}

 private:
  const Matrix& plain_;
  double sizeOfB_;
  ResidualHistory& history_;
};

/// One call of Belos: solves A d = r to a relative residual, adds what it took to `result`.
/// \return whether it stopped because its own residual was small enough, be that true or lost accuracy
bool solveOnce(Factory& factory, const RCP<LinearProblem>& problem, const RCP<Teuchos::ParameterList>& parameters,
               const ProgressLine& progress, const RCP<HistoryTest>& history, BelosResult& result) {
  const auto manager = factory.create(result.solver, parameters);
  manager->setProblem(problem);
  if (!history.is_null()) {
    manager->setDebugStatusTest(history);
  }
  try {
    result.belosConverged = manager->solve() == Belos::Converged;
    if (const auto ours = Teuchos::rcp_dynamic_cast<PipelinedBiCGStab<>>(manager); !ours.is_null()) {
      result.variant = ours->wasPipelined() ? "pipelined" : "merged";
    }
    result.iterations += manager->getNumIters();
    result.belosResidual = manager->achievedTol();
    return result.belosConverged || manager->isLOADetected();
  } catch (const Belos::BelosError& error) {  // breakdown, NaN; the same on all ranks
    result.belosConverged = false;
    result.belosResidual = std::numeric_limits<double>::quiet_NaN();
    result.failureReason = oneLine(error.what());
    result.iterations += progress.iteration();  // the manager has lost count; known where it is reported, on rank 0
    return false;
  }
}

}  // namespace

bool keepsHistory(const std::string& solver) { return solver == "PIPELINED BICGSTAB"; }

bool BelosResult::converged() const { return trueResidual <= toleranceSlack * tolerance; }

std::string resolveSolver(const std::string& name, const MatrixTraits& traits, bool preconditioned) {
  std::string solver = name;
  if (name == "auto") {
    solver = !traits.symmetric ? "BICGSTAB" : traits.positiveDiagonal ? "CG" : preconditioned ? "GMRES" : "MINRES";
  }
  std::transform(solver.begin(), solver.end(), solver.begin(), [](unsigned char c) { return std::toupper(c); });
  if (solver == "PIPELINED-BICGSTAB") {
    solver = "PIPELINED BICGSTAB";
  }
  registerBelosSolvers();
  Factory factory;
  if (!factory.isSupported(solver)) {
    throw BadInput("solver '" + name + "' is not known; Belos has " + joined(factory.supportedSolverNames()));
  }
  return solver;
}

BelosResult solveWithBelos(const std::string& solver, const RCP<Operator>& A, const RCP<Operator>& preconditioner,
                           const Matrix& plain, const MultiVector& b, MultiVector& x,
                           Teuchos::ParameterList& parameters, bool showProgress, bool keepHistory) {
  BelosResult result;
  result.solver = solver;
  result.tolerance = parameters.get<double>("Convergence Tolerance");
  result.maxIterations = parameters.get<int>("Maximum Iterations");
  x.putScalar(0);
  const double sizeOfB = norm(b);
  if (sizeOfB == 0) {
    result.belosConverged = true;
    return result;
  }
  ProgressLine progress(showProgress);
  listen(parameters, progress.stream());
  Factory factory;
  const auto r = rcp(new MultiVector(b, Teuchos::Copy));
  const auto d = rcp(new MultiVector(x.getMap(), 1));
  const RCP<HistoryTest> history = keepHistory ? rcp(new HistoryTest(plain, sizeOfB, result.history)) : Teuchos::null;
  const double start = MPI_Wtime();
  double sizeOfR = sizeOfB;
  for (bool again = true; again; result.restarts += again ? 1 : 0) {
    d->putScalar(0);
    const auto once = Teuchos::parameterList(parameters);
    once->set("Convergence Tolerance", std::min(0.5, result.tolerance * sizeOfB / sizeOfR));
    once->set("Maximum Iterations", result.maxIterations - result.iterations);
    const bool satisfied =
        solveOnce(factory, makeProblem(A, preconditioner, solver, d, r), once, progress, history, result);
    result.belosResidual *= sizeOfR / sizeOfB;
    x.update(1, *d, 1);  // x + A^-1 r
    const double before = sizeOfR;
    sizeOfR = residual(plain, b, x, *r);
    result.trueResidual = sizeOfR / sizeOfB;
    again = satisfied && !result.converged() && sizeOfR < 0.5 * before && result.restarts < maxRestarts &&
            result.iterations < result.maxIterations;
  }
  result.seconds = MPI_Wtime() - start;
  return result;
}

}  // namespace Komvos::Program
