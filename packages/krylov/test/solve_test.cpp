// What a solve returns, and what it costs: products, preconditioners, reductions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/mpi_counter.hpp"
#include "support/mpi_support.hpp"
#include "support/variants.hpp"

namespace {

using namespace KomvosTest;

INSTANTIATE_TEST_SUITE_P(Each, Variant, testing::Values("pipelined", "merged", "replicated", "replicated-pipelined"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Variant, SolvesWithAPreconditionerOnEitherSideFromAnyGuess) {
  const auto A = someMatrix();
  const auto M = rcp(new Jacobi(*A));
  const auto b = rightHandSide(*A);
  for (const bool left : {false, true}) {
    for (const double guess : {0.0, 7.5}) {
      Vector x(A->getDomainMap(), 1);
      x.putScalar(guess);
      const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), b));
      left ? problem->setLeftPrec(M) : problem->setRightPrec(M);
      problem->setProblem();
      const auto parameters = list();
      parameters->set("Implicit Residual Scaling", "Norm of RHS");
      Solver solver(problem, parameters);
      EXPECT_EQ(Belos::Converged, solver.solve()) << left << " " << guess;
      EXPECT_LE(trueResidual(*A, *b, x), 1e-9) << left << " " << guess;
      EXPECT_NEAR(solver.achievedTol(), trueResidual(*A, *b, x), 1e-12) << left << " " << guess;
    }
  }
}

TEST_P(Variant, AppliesTheLeftPreconditionerThenTheRightOne) {
  const auto A = someMatrix();
  const auto left = rcp(new Watched(rcp(new Jacobi(*A))));
  class Second : public Operator {
   public:
    Second(RCP<const Watched> first, RCP<const Operator> inner) : first_(std::move(first)), inner_(std::move(inner)) {}
    RCP<const Map> getDomainMap() const override { return inner_->getDomainMap(); }
    RCP<const Map> getRangeMap() const override { return inner_->getRangeMap(); }
    void apply(const Vector& x, Vector& y, Teuchos::ETransp mode, double alpha, double beta) const override {
      EXPECT_EQ(++calls, first_->calls);
      inner_->apply(x, y, mode, alpha, beta);
    }
    mutable int calls = 0;

   private:
    RCP<const Watched> first_;
    RCP<const Operator> inner_;
  };
  // A diagonal between 1 and 2, so that without it the solution would be another one.
  const auto scale = rcp(new Jacobi(*assemble(static_cast<GO>(A->getGlobalNumRows()),
                                              [](GO i, Entries& entries) { entries[i] = 1 - 0.5 * double(i % 2); })));
  const auto right = rcp(new Second(left, scale));
  const auto b = rightHandSide(*A);
  Vector x(A->getDomainMap(), 1);
  const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), b));
  problem->setLeftPrec(left);
  problem->setRightPrec(right);
  problem->setProblem();
  left->calls = 0;
  right->calls = 0;
  const auto parameters = list();
  parameters->set("Implicit Residual Scaling", "Norm of RHS");
  Solver solver(problem, parameters);
  EXPECT_EQ(Belos::Converged, solver.solve());
  EXPECT_LE(trueResidual(*A, *b, x), 1e-9);
  EXPECT_GE(right->calls, 2 * solver.getNumIters());
  EXPECT_EQ(left->calls, right->calls);
}

TEST_P(Variant, SolvesSeveralSystemsAsItSolvesEach) {
  const auto A = someMatrix();
  const auto M = rcp(new Jacobi(*A));
  const auto b = rightHandSide(*A, 3);
  b->getVectorNonConst(1)->putScalar(0);  // solved before it begins
  Solver solver;
  solver.setParameters(list());
  Vector x(A->getDomainMap(), 3);
  const Outcome together = solveWith(solver, A, M, *b, x);
  EXPECT_TRUE(together.converged);
  EXPECT_LE(together.residual, 1e-9);
  int most = 0;
  for (const int j : {0, 2}) {
    Vector alone(A->getDomainMap(), 1);
    const Vector side(*b->getVector(j), Teuchos::Copy);
    most = std::max(most, solveWith(solver, A, M, side, alone).iterations);
  }
  EXPECT_NEAR(most, together.iterations, 3) << "one system is not slowed down by another";
  EXPECT_EQ(0, x.getVector(1)->norm2());
}

/// Its solution is the one that it has alone, though the other column takes more steps.
TEST_P(Variant, LeavesAColumnAloneThatMeetsTheToleranceUnchecked) {
  const auto A = someMatrix();
  const auto M = rcp(new Jacobi(*A));
  const auto b = rightHandSide(*A, 2);
  A->apply(*b->getVector(1), *b->getVectorNonConst(0));  // another number of steps
  const auto parameters = list(1e-4);
  parameters->set("Check True Residual", false);
  parameters->set("Residual Replacement", false);
  Solver solver;
  solver.setParameters(parameters);
  Vector x(A->getDomainMap(), 2);
  const int together = solveWith(solver, A, M, *b, x).iterations;
  int fewest = together;
  for (const int j : {0, 1}) {
    Vector alone(A->getDomainMap(), 1);
    const Vector side(*b->getVector(j), Teuchos::Copy);
    fewest = std::min(fewest, solveWith(solver, A, M, side, alone).iterations);
    alone.update(-1, *x.getVector(j), 1);
    EXPECT_LE(alone.getVector(0)->norm2(), 1e-7 * x.getVector(j)->norm2()) << j;
  }
  EXPECT_LT(fewest, together) << "both columns take as long";
}

/// A residual that is zero is no breakdown, also if nobody looks at the true one.
TEST_P(Variant, SolvesTheOtherSystemsWhereOneIsSolvedExactly) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A, 2);
  b->getVectorNonConst(0)->putScalar(0);
  const auto parameters = list(1e-6);
  parameters->set("Check True Residual", false);
  Solver solver;
  solver.setParameters(parameters);
  Vector x(A->getDomainMap(), 2);
  const Outcome outcome = solveWith(solver, A, rcp(new Jacobi(*A)), *b, x);
  EXPECT_TRUE(outcome.converged);
  EXPECT_EQ(0, x.getVector(0)->norm2());
  EXPECT_LE(outcome.residual, 1e-5);
}

TEST_P(Variant, WritesToColumnsThatAreFarApart) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A, 2);
  Vector all(A->getDomainMap(), 5);
  const std::size_t columns[] = {3, 0};
  const auto x = all.subViewNonConst(Teuchos::ArrayView<const std::size_t>(columns, 2));
  ASSERT_FALSE(x->isConstantStride());
  Solver solver;
  solver.setParameters(list());
  EXPECT_TRUE(solveWith(solver, A, Teuchos::null, *b, *x).converged);
  EXPECT_LE(trueResidual(*A, *b, *x), 1e-9);
  EXPECT_EQ(0, all.getVector(1)->norm2());
}

TEST_P(Variant, GivesTheSameBitsEachTime) {
  const auto A = someMatrix();
  const auto b = rightHandSide(*A);
  Solver solver;
  solver.setParameters(list());
  Vector first(A->getDomainMap(), 1), second(A->getDomainMap(), 1);
  solveWith(solver, A, Teuchos::null, *b, first);
  solveWith(solver, A, Teuchos::null, *b, second);
  second.update(-1, first, 1);
  EXPECT_EQ(0, largestEntry(second));
}

TEST_P(Variant, ReturnsAtOnceWhereNothingIsToBeDone) {
  const auto A = someMatrix();
  const auto exact = rightHandSide(*A);
  for (const bool zero : {true, false}) {
    Vector b(A->getRangeMap(), 1), x(A->getDomainMap(), 1);
    if (!zero) {
      Tpetra::deep_copy(x, *exact);
      A->apply(x, b);
    }
    Solver solver;
    solver.setParameters(list());
    const Outcome outcome = solveWith(solver, A, Teuchos::null, b, x);
    EXPECT_TRUE(outcome.converged) << zero;
    EXPECT_EQ(0, outcome.iterations) << zero;
  }
}

TEST_P(Variant, SolvesWithTheIdentityInOneStep) {
  const auto A = assemble(40, [](GO i, Entries& entries) { entries[i] = 2; });
  Solver solver;
  solver.setParameters(list(1e-14));
  Vector x(A->getDomainMap(), 1);
  const Outcome outcome = solveWith(solver, A, Teuchos::null, *rightHandSide(*A), x);
  EXPECT_TRUE(outcome.converged);
  EXPECT_LE(outcome.iterations, 1);
}

TEST_P(Variant, TakesTwoReductionsAStepOrNone) {
  const Variable tuning("KOMVOS_TUNING", "off");  // or the tuner of gathers would reduce its measurements
  const auto A = rcp(new Watched(someMatrix()));
  const auto M = rcp(new Jacobi(*someMatrix()));
  const auto b = rightHandSide(*A);
  const auto count = [&](int steps, bool preconditioned) {
    Solver solver;
    const auto parameters = list(1e-300, steps);
    parameters->set("Node-Aware Reductions", false);
    solver.setParameters(parameters);
    Vector x(A->getDomainMap(), 1);
    const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), b));
    if (preconditioned) {
      problem->setRightPrec(M);
    }
    problem->setProblem();
    solver.setProblem(problem);
    A->calls = 0;
    startCounting();
    solver.solve();
    const Counts counts = stopCounting();
    EXPECT_EQ(steps, solver.getNumIters());
    EXPECT_EQ(0, solver.getNumReplacements());
    return std::make_tuple(counts.reductionsStarted, counts.collectives, A->calls);
  };
  const std::string variant = GetParam();
  const int reductions = Tpetra::getDefaultComm()->getSize() > 1 ? 20 : 0;
  for (const bool preconditioned : {false, true}) {
    count(1, preconditioned);  // whatever is set up once for a communicator
    const auto [startedFew, blockingFew, callsFew] = count(4, preconditioned);
    const auto [startedMany, blockingMany, callsMany] = count(14, preconditioned);
    EXPECT_EQ(variant == "pipelined" ? reductions : 0, startedMany - startedFew);
    EXPECT_EQ(variant == "merged" ? reductions : 0, blockingMany - blockingFew);
    EXPECT_EQ(20, callsMany - callsFew) << "products";
  }
}

/// Beside two a step: one for the residual at the beginning, one for the true residual at the end; the pipelined ones
/// need three more before their first step.
TEST_P(Variant, ComputesNoProductsForStepsThatItDoesNotDo) {
  const auto A = rcp(new Watched(someMatrix()));
  const auto M = rcp(new Watched(rcp(new Jacobi(*someMatrix()))));
  const auto b = rightHandSide(*A);
  Vector x(A->getDomainMap(), 1);
  const auto solve = [&] {
    const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), b));
    problem->setRightPrec(M);
    problem->setProblem();
    const auto parameters = list(1e-6);
    parameters->set("Implicit Residual Scaling", "Norm of RHS");
    Solver solver(problem, parameters);
    A->calls = M->calls = 0;
    EXPECT_EQ(Belos::Converged, solver.solve());
    EXPECT_EQ(0, solver.getNumReplacements() + solver.getNumRestarts());
    return std::make_pair(solver.getNumIters(), solver.wasPipelined());
  };
  const auto [steps, pipelined] = solve();
  EXPECT_GT(steps, 5);
  EXPECT_EQ(2 * steps + (pipelined ? 5 : 2), A->calls);
  EXPECT_EQ(2 * steps + (pipelined ? 2 : 0), M->calls);
  EXPECT_EQ(0, solve().first) << "of a guess that is good enough";
  EXPECT_EQ(pipelined ? 2 : 1, A->calls);
  EXPECT_EQ(0, M->calls);
}

TEST_P(Variant, MultipliesOnlyColumnsThatAreNotSolved) {
  const auto A = rcp(new Watched(someMatrix()));
  const auto M = rcp(new Watched(rcp(new Jacobi(*someMatrix()))));
  for (const std::vector<int>& solved : {std::vector<int>{0, 1}, {1, 3}, {0, 2}}) {
    const auto b = rightHandSide(*A, 4);
    for (const int j : solved) {
      b->getVectorNonConst(j)->putScalar(0);
    }
    Solver solver;
    solver.setParameters(list(1e-6));
    Vector x(A->getDomainMap(), 4);
    const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), b));
    problem->setRightPrec(M);
    problem->setProblem();
    solver.setProblem(problem);
    A->calls = A->columns = M->calls = M->columns = 0;
    EXPECT_EQ(Belos::Converged, solver.solve());
    EXPECT_LE(trueResidual(*A, *b, x), 1.01e-6);
    const int whole = solver.wasPipelined() ? 2 : 1;  // those before it is known what is solved
    EXPECT_LE(A->columns, 4 * whole + 2 * (A->calls - whole));
    EXPECT_LE(M->columns, 2 * M->calls);
  }
}

/// What is computed anew for a column that may have converged is so for that column alone.
TEST_P(Variant, TakesNoMoreProductsForSeveralSystemsThanForEach) {
  const auto A = rcp(new Watched(someMatrix()));
  const int columns = 4;
  const auto b = rightHandSide(*A);
  Vector solution(A->getDomainMap(), 1);
  Solver exact;
  exact.setParameters(list(1e-11));
  ASSERT_TRUE(solveWith(exact, A, Teuchos::null, *b, solution).converged);
  // One guess is better than the other, so that they meet the tolerance after other numbers of steps.
  const auto count = [&](const std::vector<int>& which) {
    Vector side(A->getRangeMap(), which.size()), x(A->getDomainMap(), which.size());
    for (std::size_t j = 0; j < which.size(); ++j) {
      Tpetra::deep_copy(*side.getVectorNonConst(j), *b->getVector(0));
      x.getVectorNonConst(j)->update(1 - std::pow(0.01, which[j]), *solution.getVector(0), 0);
    }
    const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), Teuchos::rcpFromRef(side)));
    problem->setProblem();
    const auto parameters = list(1e-6);
    parameters->set("Implicit Residual Scaling", "Norm of RHS");
    parameters->set("Residual Replacement", false);
    Solver solver(problem, parameters);
    A->columns = 0;
    EXPECT_EQ(Belos::Converged, solver.solve());
    EXPECT_LE(trueResidual(*A, side, x), 1.01e-6);
    return std::make_pair(A->columns, solver.getNumIters());
  };
  int alone = 0, last = 1000;
  for (int j = 0; j < columns; ++j) {
    const auto [multiplied, steps] = count({j});
    alone += multiplied;
    EXPECT_LT(steps, last) << j;
    last = steps;
  }
  EXPECT_LE(count({0, 1, 2, 3}).first, alone + 4) << "rounding may cost two steps";
}

/// One column is solved from the start. Later the other one starts again.
TEST_P(Variant, DoesNotLookAgainAtAColumnThatIsSolved) {
  class Changing : public Watched {
   public:
    using Watched::Watched;
    void apply(const Vector& x, Vector& y, Teuchos::ETransp mode, double alpha, double beta) const override {
      Watched::apply(x, y, mode, alpha, beta);
      if (calls == changedCall) {
        y.putScalar(0);
      }
    }
    int changedCall = -1;
  };
  const auto A = someMatrix();
  const auto b = rightHandSide(*A, 2);
  Vector x(A->getDomainMap(), 2);
  Solver first;
  first.setParameters(list(1e-12));
  ASSERT_TRUE(solveWith(first, A, Teuchos::null, *b, x).converged);
  x.getVectorNonConst(1)->putScalar(0);
  const auto changing = rcp(new Changing(A));
  changing->changedCall = 10;
  const auto parameters = list(1e-8);
  parameters->set("Check True Residual", false);
  parameters->set("Residual Replacement", false);
  parameters->set("Implicit Residual Scaling", "Norm of RHS");
  Solver solver;
  solver.setParameters(parameters);
  const Outcome outcome = solveWith(solver, changing, Teuchos::null, *b, x);
  if (solver.variant() == "merged" || solver.variant() == "replicated") {
    EXPECT_GE(solver.getNumRestarts(), 1) << "the test needs one";
  }
  EXPECT_TRUE(outcome.converged);
  EXPECT_LE(changing->columns, changing->calls + 4) << "but for the beginning, one column is multiplied";
}

TEST(Pipelined, IsChosenByItselfOnSeveralNodesOnly) {
  const auto A = someMatrix(6);
  Solver solver;
  solver.setParameters(parameters(1e-9, 100, "auto"));
  Vector x(A->getDomainMap(), 1);
  solveWith(solver, A, Teuchos::null, *rightHandSide(*A), x);
  EXPECT_EQ("merged", solver.variant()) << "all ranks share a node here";
  EXPECT_FALSE(solver.wasPipelined());
}

TEST(Replicated, KeepsItsGatherForTheNextSolveAndMakesAnotherForAnotherMap) {
  Solver solver;
  solver.setParameters(parameters(1e-9, 500, "replicated"));
  for (const GO n : {12, 12, 20}) {
    const auto A = someMatrix(n);
    const auto b = rightHandSide(*A, 2);
    for (const int again : {0, 1}) {
      Vector x(A->getDomainMap(), 2);
      EXPECT_TRUE(solveWith(solver, A, Teuchos::null, *b, x).converged) << n << " " << again;
      EXPECT_EQ("replicated", solver.variant());
    }
  }
}

}  // namespace
