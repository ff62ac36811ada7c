/// \file solve_support.hpp
/// Solves with a Belos solver by name, and looks at what came out.
#pragma once

#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <algorithm>
#include <ostream>
#include <string>

#include "Komvos_BelosSolvers.hpp"
#include "Komvos_PipelinedBiCGStab.hpp"
#include "support/flow_problems.hpp"
#include "support/largest.hpp"

namespace KomvosTest {

using Solver = Komvos::PipelinedBiCGStab<>;
using Problem = Belos::LinearProblem<double, Vector, Operator>;
using Parameters = Teuchos::ParameterList;

/// The inverse of the diagonal: unlike the matrix, and cheap.
class Jacobi : public Operator {
 public:
  explicit Jacobi(const Matrix& matrix) : inverse_(matrix.getRowMap()) {
    matrix.getLocalDiagCopy(inverse_);
    inverse_.reciprocal(inverse_);
  }
  RCP<const Map> getDomainMap() const override { return inverse_.getMap(); }
  RCP<const Map> getRangeMap() const override { return inverse_.getMap(); }
  void apply(const Vector& x, Vector& y, Teuchos::ETransp, double alpha, double beta) const override {
    y.elementWiseMultiply(alpha, inverse_, x, beta);
  }

 private:
  Tpetra::Vector<> inverse_;
};

inline RCP<Parameters> parameters(double tolerance, int iterations, const std::string& variant = "pipelined") {
  const auto list = Teuchos::parameterList();
  list->set("Convergence Tolerance", tolerance);
  list->set("Maximum Iterations", iterations);
  if (!variant.empty()) {
    list->set("Variant", variant);
  }
  return list;
}

/// Lets a solver print its warnings to `text`, which lives as long as the solver.
inline void printWarnings(Parameters& list, std::ostream& text) {
  list.set("Verbosity", static_cast<int>(Belos::Warnings));
  list.set("Output Stream", Teuchos::rcpFromRef(text));
}

/// Of the column that is worst: |b - A x| / |b - A x0|, with x0 = 0.
inline double trueResidual(const Operator& A, const Vector& b, const Vector& x) {
  Vector r(b, Teuchos::Copy);
  A.apply(x, r, Teuchos::NO_TRANS, -1.0, 1.0);
  std::vector<double> norms(b.getNumVectors()), scales(b.getNumVectors());
  r.norm2(Teuchos::arrayViewFromVector(norms));
  b.norm2(Teuchos::arrayViewFromVector(scales));
  double worst = 0;
  for (std::size_t j = 0; j < norms.size(); ++j) {
    worst = largerOf(worst, norms[j] / (scales[j] > 0 ? scales[j] : 1));
  }
  return worst;
}

struct Outcome {
  bool converged;
  int iterations;
  double achieved, residual;  ///< as the solver says, and as it is
};

template <class AnySolver>
Outcome solveWith(AnySolver& solver, const RCP<const Operator>& A, const RCP<const Operator>& preconditioner,
                  const Vector& b, Vector& x) {
  const auto problem = rcp(new Problem(A, Teuchos::rcpFromRef(x), Teuchos::rcpFromRef(b)));
  if (!preconditioner.is_null()) {
    problem->setRightPrec(preconditioner);
  }
  problem->setProblem();
  solver.setProblem(problem);
  const bool converged = solver.solve() == Belos::Converged;
  return {converged, solver.getNumIters(), solver.achievedTol(), trueResidual(*A, b, x)};
}

/// From x = 0.
inline Outcome solveByName(const std::string& name, const RCP<Parameters>& list, const RCP<const Operator>& A,
                           const RCP<const Operator>& preconditioner, const Vector& b) {
  Komvos::registerBelosSolvers();
  Belos::SolverFactory<double, Vector, Operator> factory;
  const auto solver = factory.create(name, list);
  Vector x(A->getDomainMap(), b.getNumVectors());
  return solveWith(*solver, A, preconditioner, b, x);
}

/// A x for an x without symmetries: column j is another one.
inline RCP<Vector> rightHandSide(const Operator& A, int columns = 1) {
  Vector x(A.getDomainMap(), columns);
  for (std::size_t k = 0; k < x.getLocalLength(); ++k) {
    const auto row = static_cast<double>(x.getMap()->getGlobalElement(static_cast<int>(k)));
    for (int j = 0; j < columns; ++j) {
      x.replaceLocalValue(static_cast<int>(k), j, 1 + std::sin((0.3 + j) * row));
    }
  }
  const auto b = rcp(new Vector(A.getRangeMap(), columns));
  A.apply(x, *b);
  return b;
}

}  // namespace KomvosTest
