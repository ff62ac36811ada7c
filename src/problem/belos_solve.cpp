#include "problem/belos_solve.hpp"

#include <BelosConfigDefs.hpp>
#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "Komvos_BelosSolvers.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_PipelinedBiCGStab.hpp"
#include "support/progress_line.hpp"
#include "support/run_collectively.hpp"

// How this works. Belos stops on the residual of its own recurrence. solveWithBelos() therefore solves for a correction
// d of the current x, computes the true residual r = b - A x with the plain operator, and starts again from r as long
// as Belos was satisfied, the tolerance is not met and the residual still falls. makeProblem() and solveOnce() are one
// such round. Of several right-hand sides, the one whose relative residual is largest counts.
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

using Norms = Teuchos::Array<double>;

Norms normsOf(const MultiVector& vectors) {
  Norms norms(static_cast<Norms::size_type>(vectors.getNumVectors()));
  vectors.norm2(norms());
  return norms;
}

/// The largest of these norms, each as a part of that of b.
template <class List>
double largest(const List& norms, const Norms& ofB) {
  double most = 0;
  for (Norms::size_type column = 0; column < ofB.size(); ++column) {
    const double part = norms[column] / ofB[column];
    most = std::isnan(most) || part <= most ? most : part;  // NaN is the largest of all
  }
  return most;
}

/// r = b - A x; returns its relative norm.
double residual(const Operator& A, const MultiVector& b, const MultiVector& x, const Norms& ofB, MultiVector& r) {
  Tpetra::deep_copy(r, b);
  A.apply(x, r, Teuchos::NO_TRANS, -1.0, 1.0);
  return largest(normsOf(r), ofB);
}

/// These take the preconditioner from the left only, or measure the plain residual anyway. The others get it from the
/// right, where the residual they see is that of the problem.
bool takesLeftPreconditioner(const std::string& solver) {
  const std::string cg = "CG";
  const bool endsInCg = solver.size() >= cg.size() && solver.compare(solver.size() - cg.size(), cg.size(), cg) == 0;
  return endsInCg || solver.find("CG ") != std::string::npos || solver == "MINRES";
}

/// Output goes through the stream, for the progress line; what the user set stays.
void listen(Teuchos::ParameterList& parameters, const std::string& solver, std::ostream& stream) {
  if (!parameters.isParameter("Verbosity")) {
    parameters.set("Verbosity", static_cast<int>(Belos::StatusTestDetails));
    // LSQR's test of convergence is of a kind that the brief style does not know.
    parameters.set("Output Style", static_cast<int>(solver == "LSQR" ? Belos::General : Belos::Brief));
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
  HistoryTest(const Operator& plain, Norms sizeOfB, ResidualHistory& history)
      : plain_(plain), sizeOfB_(std::move(sizeOfB)), history_(history) {}

  Belos::StatusType checkStatus(Belos::Iteration<double, MultiVector, Operator>* iteration) override {
    std::vector<double> norms;
    iteration->getNativeResiduals(&norms);
    const auto& problem = iteration->getProblem();
    MultiVector r(*problem.getRHS(), Teuchos::Copy);
    history_.estimated.push_back(largest(norms, sizeOfB_));
    history_.computed.push_back(residual(plain_, *problem.getRHS(), *problem.getLHS(), sizeOfB_, r));
    return Belos::Failed;
  }
  Belos::StatusType getStatus() const override { return Belos::Failed; }
  void reset() override {}
  void print(std::ostream&, int) const override {}

 private:
  const Operator& plain_;
  Norms sizeOfB_;
  ResidualHistory& history_;
};

/// By the solver's own residual; not a number for solvers that do not tell.
double achieved(const Belos::SolverManager<double, MultiVector, Operator>& manager) {
  try {
    return manager.achievedTol();
  } catch (const std::logic_error&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

/// One call of Belos: solves A d = r to a relative residual, adds what it took to `result`.
/// \return whether it stopped because its own residual was small enough, be that true or lost accuracy
/// \param meeting a communicator that nothing else uses
bool solveOnce(Factory& factory, const RCP<LinearProblem>& problem, const RCP<Teuchos::ParameterList>& parameters,
               const ProgressLine& progress, const RCP<HistoryTest>& history, MPI_Comm meeting, BelosResult& result) {
  const auto manager = factory.create(result.solver, parameters);
  manager->setProblem(problem);
  if (!history.is_null()) {
    manager->setDebugStatusTest(history);
  }
  try {
    result.belosConverged = manager->solve() == Belos::Converged;
    if (const auto ours = Teuchos::rcp_dynamic_cast<PipelinedBiCGStab<>>(manager); !ours.is_null()) {
      result.variant = ours->variant();
    }
    result.iterations += manager->getNumIters();
    result.belosResidual = achieved(*manager);
    return result.belosConverged || manager->isLOADetected();
  } catch (const Belos::BelosError& error) {  // breakdown, NaN; the same on all ranks
    result.belosConverged = false;
    result.belosResidual = std::numeric_limits<double>::quiet_NaN();
    result.failureReason = oneLine(error.what());
    result.iterations += progress.iteration();  // the manager has lost count; known where it is reported, on rank 0
    return false;
  } catch (const std::exception& error) {
    // Belos has thrown a copy of the base class, and lost the text. Where reduced numbers are the cause, all ranks are
    // here.
    if (std::string(error.what()) != "std::exception" || !allRanksArrive(meeting)) {
      throw;
    }
    result.belosConverged = false;
    result.belosResidual = std::numeric_limits<double>::quiet_NaN();
    result.failureReason =
        "Belos' " + result.solver + " gave up and does not say why" +
        (problem->isLeftPrec() || problem->isRightPrec() ? "; some solvers need a positive definite preconditioner"
                                                         : "");
    result.iterations += progress.iteration();
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
    auto names = factory.supportedSolverNames();
    names.erase(
        std::remove_if(names.begin(), names.end(), [&](const std::string& one) { return !factory.isSupported(one); }),
        names.end());
    std::sort(names.begin(), names.end());
    names.resize(std::unique(names.begin(), names.end()) - names.begin());
    throw BadInput("solver '" + name +
                   "' is not known; there are auto, pipelined-bicgstab, in `komvos solve` mumps and " +
                   "superlu-dist, and those of Belos: " + joined(names));
  }
  return solver;
}

void requireParametersOf(const std::string& solver, const Teuchos::ParameterList& given) {
  const auto valid = Factory().create(solver, Teuchos::parameterList())->getValidParameters();
  for (auto entry = given.begin(); entry != given.end(); ++entry) {
    const std::string& name = given.name(entry);
    if (!valid->isParameter(name) && name != "Convergence Tolerance" && name != "Maximum Iterations") {
      std::vector<std::string> names;
      for (auto one = valid->begin(); one != valid->end(); ++one) {
        names.push_back(valid->name(one));
      }
      throw BadInput("'" + name + "' is no parameter of Belos' " + solver + "; it has " + joined(names));
    }
  }
}

BelosResult solveWithBelos(const std::string& solver, const RCP<Operator>& A, const RCP<Operator>& preconditioner,
                           const Operator& plain, const MultiVector& b, MultiVector& x,
                           Teuchos::ParameterList& parameters, bool showProgress, bool keepHistory) {
  BelosResult result;
  result.solver = solver;
  result.tolerance = parameters.get<double>("Convergence Tolerance");
  result.maxIterations = parameters.get<int>("Maximum Iterations");
  x.putScalar(0);
  const Norms sizeOfB = normsOf(b);
  const auto zeros = std::count(sizeOfB.begin(), sizeOfB.end(), 0.0);
  if (zeros == sizeOfB.size()) {
    result.belosConverged = true;
    return result;
  }
  if (zeros > 0) {
    throw BadInput("solve: " + std::to_string(zeros) + " of " + std::to_string(sizeOfB.size()) +
                   " right-hand sides are zero");
  }
  ProgressLine progress(showProgress);
  listen(parameters, solver, progress.stream());
  Factory factory;
  const auto r = rcp(new MultiVector(b, Teuchos::Copy));
  const auto d = rcp(new MultiVector(x.getMap(), x.getNumVectors()));
  const RCP<HistoryTest> history = keepHistory ? rcp(new HistoryTest(plain, sizeOfB, result.history)) : Teuchos::null;
  MPI_Comm meeting;
  mpiCheck(MPI_Comm_dup(mpiOf(x.getMap()->getComm()), &meeting), "MPI_Comm_dup");
  const double start = MPI_Wtime();
  double sizeOfR = 1;
  for (bool again = true; again; result.restarts += again ? 1 : 0) {
    d->putScalar(0);
    const auto once = Teuchos::parameterList(parameters);
    once->set("Convergence Tolerance", std::min(0.5, result.tolerance / sizeOfR));
    once->set("Maximum Iterations", result.maxIterations - result.iterations);
    const bool satisfied =
        solveOnce(factory, makeProblem(A, preconditioner, solver, d, r), once, progress, history, meeting, result);
    result.belosResidual *= sizeOfR;
    x.update(1, *d, 1);  // x + A^-1 r
    const double before = sizeOfR;
    sizeOfR = residual(plain, b, x, sizeOfB, *r);
    result.trueResidual = sizeOfR;
    again = satisfied && !result.converged() && sizeOfR < 0.5 * before && result.restarts < maxRestarts &&
            result.iterations < result.maxIterations;
  }
  result.seconds = MPI_Wtime() - start;
  mpiCheck(MPI_Comm_free(&meeting), "MPI_Comm_free");
  return result;
}

}  // namespace Komvos::Program
