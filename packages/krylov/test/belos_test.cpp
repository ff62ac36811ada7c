// What a user of Belos relies on: names, parameters, status tests, output.
#include <gtest/gtest.h>

#include <BelosStatusTestMaxIters.hpp>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>

#include "support/variants.hpp"

namespace {

using namespace KomvosTest;

TEST(Pipelined, RefusesToDivideByANormOfSomethingPreconditioned) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A);
  for (const bool left : {true, false}) {
    Vector x(A->getDomainMap(), 1);
    const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), b));
    left ? problem->setLeftPrec(rcp(new Jacobi(*A))) : problem->setRightPrec(rcp(new Jacobi(*A)));
    problem->setProblem();
    const auto list = parameters(1e-6, 100);
    list->set("Implicit Residual Scaling", "Norm of Preconditioned Initial Residual");
    Solver solver(problem, list);
    if (left) {
      EXPECT_THROW(solver.solve(), std::invalid_argument);
    } else {
      EXPECT_EQ(Belos::Converged, solver.solve()) << "that of the initial residual itself";
    }
  }
}

TEST(Pipelined, IsFoundByItsNameInAnyCaseAndOthersStill) {
  Komvos::registerBelosSolvers();
  Komvos::registerBelosSolvers();
  Belos::SolverFactory<double, Vector, Operator> factory;
  Belos::TpetraSolverFactory<double, Vector, Operator> tpetraFactory;
  EXPECT_TRUE(factory.isSupported("PIPELINED BICGSTAB"));
  EXPECT_FALSE(Teuchos::rcp_dynamic_cast<Solver>(factory.create("Pipelined BiCGStab", Teuchos::null)).is_null());
  EXPECT_FALSE(
      Teuchos::rcp_dynamic_cast<Solver>(tpetraFactory.create("PIPELINED BICGSTAB", parameters(1e-3, 7))).is_null());
  EXPECT_TRUE(Teuchos::rcp_dynamic_cast<Solver>(factory.create("BICGSTAB", Teuchos::null)).is_null());
  EXPECT_THROW(factory.create("NO SUCH SOLVER", Teuchos::null), std::invalid_argument);
}

TEST(Pipelined, HasTheParametersOfBelosBiCGStab) {
  Belos::SolverFactory<double, Vector, Operator> factory;
  const auto theirs = factory.create("BICGSTAB", Teuchos::null)->getValidParameters();
  const auto ours = Solver().getValidParameters();
  for (const auto& entry : *theirs) {
    ASSERT_TRUE(ours->isParameter(entry.first)) << entry.first;
    if (entry.first != "Output Stream") {
      EXPECT_EQ(Teuchos::toString(entry.second), Teuchos::toString(ours->getEntry(entry.first))) << entry.first;
    }
  }
}

TEST(Pipelined, RefusesParametersThatItDoesNotKnow) {
  Solver solver;
  const auto wrong = Teuchos::parameterList();
  wrong->set("Convergence Tolerence", 1e-3);
  EXPECT_THROW(solver.setParameters(wrong), Teuchos::Exceptions::InvalidParameterName);
  const auto variant = Teuchos::parameterList();
  variant->set("Variant", "fastest");
  EXPECT_THROW(solver.setParameters(variant), std::invalid_argument);
  const auto window = Teuchos::parameterList();
  window->set("Stagnation Window", -1);
  EXPECT_THROW(solver.setParameters(window), std::invalid_argument);
  EXPECT_EQ("auto", solver.getCurrentParameters()->get<std::string>("Variant")) << "nothing has changed";
  EXPECT_THROW(solver.solve(), std::logic_error);
}

TEST(Pipelined, TakesTheScalingThatIsNewWhereBothNamesAreGiven) {
  for (const std::string name : {"Residual Scaling", "Implicit Residual Scaling"}) {
    Solver solver;
    const auto all = Teuchos::parameterList(*solver.getValidParameters());
    all->set(name, "Norm of RHS");
    solver.setParameters(all);
    EXPECT_EQ("Norm of RHS", solver.getCurrentParameters()->get<std::string>("Implicit Residual Scaling")) << name;
  }
}

/// Passes once the residual of the problem's own solution is small: so the solution is up to date in each iteration.
class ResidualOfTheSolution : public Belos::StatusTest<double, Vector, Operator> {
 public:
  Belos::StatusType checkStatus(Belos::Iteration<double, Vector, Operator>* iteration) override {
    const auto& problem = iteration->getProblem();
    seen = trueResidual(*problem.getOperator(), *problem.getRHS(), *problem.getLHS());
    return status = seen < 1e-2 ? Belos::Passed : Belos::Failed;
  }
  Belos::StatusType getStatus() const override { return status; }
  void reset() override { status = Belos::Undefined; }
  void print(std::ostream&, int) const override {}
  Belos::StatusType status = Belos::Undefined;
  double seen = 0;
};

TEST_P(Variant, AsksTheUsersStatusTests) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A, 2);
  using Combination = Belos::StatusTestCombo<double, Vector, Operator>;
  const auto early = rcp(new ResidualOfTheSolution);
  Solver solver;
  solver.setParameters(list());
  solver.setUserConvStatusTest(early, Combination::OR);
  Vector x(A->getDomainMap(), 2);
  const Outcome outcome = solveWith(solver, A, Teuchos::null, *b, x);
  EXPECT_TRUE(outcome.converged);
  EXPECT_GT(outcome.residual, 1e-6) << "ended by the user's test";
  EXPECT_DOUBLE_EQ(early->seen, outcome.residual);

  Solver other;
  other.setParameters(list());
  const auto watching = rcp(new Belos::StatusTestMaxIters<double, Vector, Operator>(3));
  other.setDebugStatusTest(watching);
  Vector y(A->getDomainMap(), 2);
  EXPECT_FALSE(solveWith(other, A, Teuchos::null, *b, y).converged);
  EXPECT_EQ(3, other.getNumIters());
}

using ResidualTest = Belos::StatusTestGenResNorm<double, Vector, Operator>;
using Combination = Belos::StatusTestCombo<double, Vector, Operator>;

/// Belos' test of a residual remembers that it has passed, and how many columns there were.
TEST_P(Variant, AsksTheUsersStatusTestsAnewInEachSolve) {
  const auto A = someMatrix();
  Solver solver;
  solver.setParameters(list());
  solver.setUserConvStatusTest(rcp(new ResidualTest(1e-3)), Combination::OR);
  for (const int columns : {1, 1, 3}) {
    const auto b = rightHandSide(*A, columns);
    Vector x(A->getDomainMap(), columns);
    const Outcome outcome = solveWith(solver, A, Teuchos::null, *b, x);
    EXPECT_TRUE(outcome.converged) << columns;
    EXPECT_GT(outcome.iterations, 0) << columns;
    EXPECT_LE(outcome.residual, 1.01e-3) << columns;
    EXPECT_GT(outcome.residual, 1e-6) << columns << ", ended by the user's test";
  }
}

TEST_P(Variant, GoesOnWithAllColumnsWhereTheUserAsksForMore) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A, 2);
  A->apply(*b->getVector(1), *b->getVectorNonConst(0));  // another number of steps
  for (const auto how : {Combination::SEQ, Combination::AND}) {
    for (const bool checks : {true, false}) {
      const auto parameters = list(1e-4);
      parameters->set("Check True Residual", checks);
      Solver solver;
      solver.setParameters(parameters);
      const auto stricter = rcp(new ResidualTest(1e-9));
      stricter->defineResForm(ResidualTest::Explicit, Belos::TwoNorm);
      solver.setUserConvStatusTest(stricter, how);
      Vector x(A->getDomainMap(), 2);
      const Outcome outcome = solveWith(solver, A, Teuchos::null, *b, x);
      EXPECT_TRUE(outcome.converged) << checks;
      EXPECT_LE(outcome.residual, 1.01e-9) << checks;
      EXPECT_LE(solver.achievedTol(), 1.01e-8) << checks << ": of the last residual, not of the one that met 1e-4";
    }
  }
}

class Always : public ResidualOfTheSolution {
 public:
  Belos::StatusType checkStatus(Belos::Iteration<double, Vector, Operator>*) override { return status = Belos::Passed; }
};

/// The true residual cannot get there, the recursive one does.
TEST_P(Variant, DoesNotTakeTheUsersWordForARecursiveResidual) {
  const auto A = someMatrix(30);
  const auto b = rightHandSide(*A);
  for (const bool alone : {true, false}) {
    const auto tiny = rcp(new ResidualTest(1e-18));
    const auto combined = rcp(new Combination(Combination::AND, tiny, rcp(new Always)));
    for (const auto how : {Combination::SEQ, Combination::OR}) {
      Solver solver;
      solver.setParameters(list(how == Combination::OR ? 1e-19 : 1e-6, 300));
      if (alone) {
        solver.setUserConvStatusTest(tiny, how);
      } else {
        solver.setUserConvStatusTest(combined, how);
      }
      Vector x(A->getDomainMap(), 1);
      EXPECT_FALSE(solveWith(solver, A, Teuchos::null, *b, x).converged) << alone << " " << how;
    }
  }
}

/// A right-hand side whose squares overflow: anything divided by its norm would be zero.
TEST_P(Variant, DoesNotTakeDivisionByInfinityForConvergence) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A);
  b->scale(1e160);
  Vector x(A->getDomainMap(), 1);  // the solution, so that the residual is small enough
  for (std::size_t k = 0; k < x.getLocalLength(); ++k) {
    const auto row = static_cast<double>(x.getMap()->getGlobalElement(static_cast<int>(k)));
    x.replaceLocalValue(static_cast<int>(k), 0, 1e160 * (1 + std::sin(0.3 * row)));
  }
  const auto parameters = list();
  parameters->set("Implicit Residual Scaling", "Norm of RHS");
  const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), b));
  problem->setProblem();
  Solver solver(problem, parameters);
  EXPECT_EQ(Belos::Unconverged, solver.solve());
}

TEST_P(Variant, RefusesVectorsThatDoNotFit) {
  class Zero : public Watched {  // which does not look at its vectors
   public:
    using Watched::Watched;
    void apply(const Vector&, Vector& y, Teuchos::ETransp, double, double) const override { y.putScalar(0); }
  };
  const auto A = rcp(new Zero(someMatrix())), other = rcp(new Zero(someMatrix(26)));
  const Vector tooMany(A->getRangeMap(), 2), tooLong(other->getRangeMap(), 1);
  Vector x(A->getDomainMap(), 1);
  for (const Vector* b : {&tooMany, &tooLong}) {
    const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), Teuchos::rcpFromRef(*b)));
    Solver solver(problem, list());
    problem->setProblem(Teuchos::rcpFromRef(x), Teuchos::rcpFromRef(*b));
    EXPECT_THROW(solver.solve(), std::invalid_argument) << b->getNumVectors();
  }
}

/// Passes once it was asked several times in a row where the tolerance was met.
class SeveralTimes : public ResidualOfTheSolution {
 public:
  Belos::StatusType checkStatus(Belos::Iteration<double, Vector, Operator>*) override {
    ++calls;
    return status = ++inARow >= 3 ? Belos::Passed : Belos::Failed;
  }
  void reset() override { inARow = 0, ++resets; }
  int calls = 0, inARow = 0, resets = 0;
};

TEST_P(Variant, AsksATestOfTheUserThatRemembersOnceAnIteration) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A);
  for (const auto how : {Combination::SEQ, Combination::AND}) {
    Solver solver;
    solver.setParameters(list(1e-6));
    const auto several = rcp(new SeveralTimes);
    solver.setUserConvStatusTest(several, how);
    Vector x(A->getDomainMap(), 1);
    const Outcome outcome = solveWith(solver, A, Teuchos::null, *b, x);
    EXPECT_TRUE(outcome.converged);
    EXPECT_EQ(1, several->resets) << "before the solve only";
    EXPECT_LE(several->calls, outcome.iterations + 1);
  }
}

TEST_P(Variant, PrintsInEachStyleAlsoWithATestOfTheUser) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A);
  for (const auto style : {Belos::General, Belos::Brief}) {
    for (const bool users : {false, true}) {
      std::ostringstream text;
      const auto parameters = list();
      parameters->set("Verbosity", Belos::IterationDetails + Belos::FinalSummary + Belos::StatusTestDetails);
      parameters->set("Output Style", static_cast<int>(style));
      parameters->set("Output Stream", Teuchos::rcpFromRef<std::ostream>(text));
      Solver solver;
      solver.setParameters(parameters);
      if (users) {
        solver.setUserConvStatusTest(rcp(new ResidualOfTheSolution), Combination::OR);
      }
      Vector x(A->getDomainMap(), 1);
      EXPECT_TRUE(solveWith(solver, A, Teuchos::null, *b, x).converged);
      if (A->getComm()->getRank() == 0) {
        EXPECT_NE(std::string::npos, text.str().find("OR Combination")) << "Belos' summary is that of all tests";
      }
    }
  }
}

}  // namespace
