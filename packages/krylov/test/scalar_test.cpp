// Scalars that the installed Tpetra need not be compiled for, float and complex, from the definitions of Tpetra and of
// Komvos, as a user would.
#include "Komvos_TpetraVector_def.hpp"
// Behind it:
#include <gtest/gtest.h>

#include <BelosLinearProblem.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Operator.hpp>
#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "Komvos_NodeAwareImport_def.hpp"
#include "Komvos_PipelinedBiCGStab_def.hpp"
#include "support/largest.hpp"

#ifndef HAVE_TPETRA_INST_FLOAT
namespace Komvos {
KOMVOS_NODEAWAREIMPORT_SCALAR_INSTANT(float, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode)
KOMVOS_PIPELINEDBICGSTAB_INSTANT(float, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode)
}  // namespace Komvos
#endif

namespace {

using namespace KomvosTest;
using Teuchos::RCP;
using Teuchos::rcp;
using Complex = std::complex<double>;
template <class Scalar>
using VectorOf = Tpetra::MultiVector<Scalar>;
template <class Scalar>
using OperatorOf = Tpetra::Operator<Scalar>;

template <class Scalar>
struct Number {
  static Scalar of(double real, double) { return static_cast<Scalar>(real); }
};
template <>
struct Number<Complex> {
  static Complex of(double real, double imaginary) { return {real, imaginary}; }
};

/// Three diagonals within each rank, neither symmetric nor Hermitian.
template <class Scalar>
class Band : public OperatorOf<Scalar> {
 public:
  explicit Band(RCP<const Tpetra::Map<>> map) : map_(std::move(map)) {}
  RCP<const Tpetra::Map<>> getDomainMap() const override { return map_; }
  RCP<const Tpetra::Map<>> getRangeMap() const override { return map_; }
  void apply(const VectorOf<Scalar>& x, VectorOf<Scalar>& y, Teuchos::ETransp, Scalar alpha,
             Scalar beta) const override {
    const std::size_t rows = x.getLocalLength();
    for (std::size_t j = 0; j < x.getNumVectors(); ++j) {
      const Teuchos::ArrayRCP<const Scalar> from = x.getData(j);
      const Teuchos::ArrayRCP<Scalar> to = y.getDataNonConst(j);
      for (std::size_t i = 0; i < rows; ++i) {
        Scalar sum = diagonal(i) * from[i];
        sum += i > 0 ? Number<Scalar>::of(-1.5, 0.5) * from[i - 1] : Scalar(0);
        sum += i + 1 < rows ? Number<Scalar>::of(-0.4, -0.8) * from[i + 1] : Scalar(0);
        to[i] = alpha * sum + (beta == Scalar(0) ? Scalar(0) : beta * to[i]);
      }
    }
  }
  static Scalar diagonal(std::size_t i) {
    return Number<Scalar>::of(2.5 + 0.2 * static_cast<double>(i % 7), 1.5 - 0.3 * static_cast<double>(i % 4));
  }

 private:
  RCP<const Tpetra::Map<>> map_;
};

template <class Scalar>
class InverseDiagonal : public OperatorOf<Scalar> {
 public:
  explicit InverseDiagonal(RCP<const Tpetra::Map<>> map) : map_(std::move(map)) {}
  RCP<const Tpetra::Map<>> getDomainMap() const override { return map_; }
  RCP<const Tpetra::Map<>> getRangeMap() const override { return map_; }
  void apply(const VectorOf<Scalar>& x, VectorOf<Scalar>& y, Teuchos::ETransp, Scalar, Scalar) const override {
    for (std::size_t j = 0; j < x.getNumVectors(); ++j) {
      const Teuchos::ArrayRCP<const Scalar> from = x.getData(j);
      const Teuchos::ArrayRCP<Scalar> to = y.getDataNonConst(j);
      for (std::size_t i = 0; i < x.getLocalLength(); ++i) {
        to[i] = from[i] / Band<Scalar>::diagonal(i);
      }
    }
  }

 private:
  RCP<const Tpetra::Map<>> map_;
};

/// \return iterations, or -1 where it did not converge
template <class Solver, class Scalar>
int solve(Solver& solver, const RCP<const OperatorOf<Scalar>>& A, const RCP<const OperatorOf<Scalar>>& M,
          const RCP<const VectorOf<Scalar>>& b, const RCP<VectorOf<Scalar>>& x) {
  const auto problem = rcp(new Belos::LinearProblem<Scalar, VectorOf<Scalar>, OperatorOf<Scalar>>(A, x, b));
  problem->setRightPrec(M);
  problem->setProblem();
  solver.setProblem(problem);
  return solver.solve() == Belos::Converged ? solver.getNumIters() : -1;
}

/// Textbook BiCGStab with a preconditioner from the right. \return iterations
template <class Scalar>
int plainIterations(const OperatorOf<Scalar>& A, const OperatorOf<Scalar>& M, const Tpetra::Vector<Scalar>& b,
                    double tolerance) {
  using Vector = Tpetra::Vector<Scalar>;
  const auto map = b.getMap();
  const Scalar one(1), zero(0);
  Vector r(b, Teuchos::Copy), shadow(b, Teuchos::Copy), p(b, Teuchos::Copy), s(map), t(map), hat(map);
  const auto dot = [](const Vector& left, const Vector& right) { return static_cast<Scalar>(left.dot(right)); };
  Scalar rho = dot(shadow, r);
  const double all = r.norm2();
  for (int iterations = 1; iterations < 500; ++iterations) {
    M.apply(p, hat, Teuchos::NO_TRANS, one, zero);
    A.apply(hat, s, Teuchos::NO_TRANS, one, zero);
    const Scalar alpha = rho / dot(shadow, s);
    r.update(-alpha, s, one);
    M.apply(r, hat, Teuchos::NO_TRANS, one, zero);
    A.apply(hat, t, Teuchos::NO_TRANS, one, zero);
    const Scalar omega = dot(t, r) / dot(t, t);  // the first one is conjugated
    r.update(-omega, t, one);
    if (r.norm2() <= tolerance * all) {
      return iterations;
    }
    const Scalar next = dot(shadow, r), beta = (next / rho) * (alpha / omega);
    rho = next;
    p.update(-omega, s, one);
    p.update(one, r, beta);
  }
  return 500;
}

/// As the textbook's method solves it. Not as Belos', which in Trilinos 13.2 needs 111 iterations instead of 19 where
/// numbers are complex.
template <class Scalar>
void expectSolutions(double tolerance) {
  const auto comm = Tpetra::getDefaultComm();
  const std::size_t rows = comm->getRank() % 3 == 1 ? 0 : 150;
  const auto map = rcp(new Tpetra::Map<>(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(), rows, 0, comm));
  const RCP<const OperatorOf<Scalar>> A = rcp(new Band<Scalar>(map)), M = rcp(new InverseDiagonal<Scalar>(map));
  const auto b = rcp(new VectorOf<Scalar>(map, 2));
  for (std::size_t j = 0; j < 2; ++j) {
    const Teuchos::ArrayRCP<Scalar> column = b->getDataNonConst(j);
    for (std::size_t i = 0; i < rows; ++i) {
      const double phase = 1.0 + static_cast<double>(i + 3 * j) + comm->getRank();
      column[i] = Number<Scalar>::of(std::sin(phase), std::cos(1.7 * phase));
    }
  }
  using Magnitude = typename Teuchos::ScalarTraits<Scalar>::magnitudeType;
  const auto list = Teuchos::parameterList();
  list->set("Convergence Tolerance", static_cast<Magnitude>(tolerance));
  list->set("Maximum Iterations", 200);
  int expected = 0;
  for (std::size_t j = 0; j < 2; ++j) {
    expected = std::max(expected, plainIterations<Scalar>(*A, *M, *b->getVector(j), tolerance));
  }
  ASSERT_GT(expected, 3);
  for (const char* variant : {"pipelined", "merged", "replicated", "replicated-pipelined"}) {
    SCOPED_TRACE(variant);
    const auto ours = Teuchos::parameterList(*list);
    ours->set("Variant", variant);
    Komvos::PipelinedBiCGStab<Scalar> solver;
    solver.setParameters(ours);
    const auto x = rcp(new VectorOf<Scalar>(map, 2));
    const int iterations = solve(solver, A, M, b.getConst(), x);
    EXPECT_NEAR(expected, iterations, 1);
    VectorOf<Scalar> r(*b, Teuchos::Copy);
    A->apply(*x, r, Teuchos::NO_TRANS, Scalar(-1), Scalar(1));
    double worst = 0;
    for (std::size_t j = 0; j < 2; ++j) {
      worst = largerOf(worst, r.getVector(j)->norm2() / b->getVector(j)->norm2());
    }
    EXPECT_LE(worst, 1.01 * tolerance);
    EXPECT_NEAR(worst / solver.achievedTol(), 1, 0.01);
  }
}

TEST(Scalars, FloatIsSolved) { expectSolutions<float>(1e-4); }

TEST(Scalars, ComplexIsSolved) { expectSolutions<Complex>(1e-9); }

}  // namespace
