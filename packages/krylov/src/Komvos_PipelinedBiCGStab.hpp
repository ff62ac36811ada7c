/// \file Komvos_PipelinedBiCGStab.hpp
/// BiCGStab as a Belos solver that hides its reductions, or merges them.
#pragma once

#include <BelosLinearProblem.hpp>
#include <BelosOutputManager.hpp>
#include <BelosSolverManager.hpp>
#include <BelosStatusTestCombo.hpp>
#include <BelosStatusTestGenResNorm.hpp>
#include <BelosStatusTestMaxIters.hpp>
#include <BelosStatusTestOutput.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Teuchos_TimeMonitor.hpp>
#include <Tpetra_MultiVector.hpp>
#include <Tpetra_Operator.hpp>
#include <memory>
#include <string>

#include "Komvos_TpetraShim.hpp"

namespace Komvos {

namespace Impl {
template <class LocalOrdinal, class GlobalOrdinal, class Node>
class ReplicatedVectors;
}

/// BiCGStab for A x = b with two reductions an iteration instead of Belos' five. The pipelined variants need not wait
/// for them.
///
/// Variants, parameter "Variant":
/// - "pipelined": both reductions travel behind products and preconditioners (Cools and Vanroose, Parallel Computing
///   65, 2017). 12 vectors of work, 8 without a preconditioner. Recurrences replace definitions, so rounding errors
///   grow: residuals are replaced where an estimate of that growth says so, and convergence is declared on the true
///   residual.
/// - "merged": two blocking reductions, three where the second one leaves no digit of the residual's norm; 7 vectors of
///   work, 5 without a preconditioner.
/// - "replicated": every rank has all elements of all vectors and computes all dots, so there is no reduction; the
///   results of products are gathered by all ranks. For operators whose products need all of x anyway, as hierarchical
///   matrices do, best for a WholeVectorOperator, and where n is not large: vectors cost n values a rank. Vector
///   operations are redundant, as in section III of Yamazaki et al., "Analyzing Performance of BiCGStab with
///   Hierarchical Matrix on GPU Clusters", IPDPS 2018. An operator or preconditioner that throws on one rank makes all
///   throw, if that rank has rows.
/// - "replicated-pipelined": the same for the pipelined method; results are gathered behind dots (its section VII:
///   pipe2, and pipe1 where messages are staged through the host, which is part of a gather here).
/// - "auto", the default: merged where all ranks share a node, as MPI says, there is one rank, or ranks have more than
///   8,000 rows on average, divided by the number of right-hand sides (2,000,000 on a GPU, which moves vectors as much
///   faster); else pipelined.
///
/// The preconditioner must be a fixed linear operator for the pipelined variants, which update preconditioned vectors
/// instead of computing them; with one that changes, such as an inner Krylov method, take "merged".
///
/// Use it as any Belos solver; registerBelosSolvers() makes Belos' factories know it as "PIPELINED BICGSTAB". Its
/// parameters are those of Belos' BICGSTAB, with the same defaults, and "Variant", "Residual Replacement",
/// "Check True Residual", "Stagnation Window" and "Node-Aware Reductions". All right-hand sides are solved together,
/// each with scalars of its own, in the same reductions; "Deflation Quorum" is accepted, but a column that has
/// converged is left alone at once: products and preconditioners get the others. A preconditioner may be given from
/// either side, or from both (Belos' BICGSTAB refuses one from the left): it is used from the right, the left one
/// first, and residual norms are those of A x = b.
///
/// solve() returns Belos::Unconverged after the last iteration, after breakdowns that restarts do not help, where
/// rounding errors allow no more, where a residual has stood still for a long time, or if one is not a number; the
/// stream of Belos::Warnings says which. The solution is then the last one. A column that breaks down or stands still,
/// or whose residual rounding errors keep too large, is left as it is while others go on; one that is not a number ends
/// the solve.
///
/// All functions that Belos' solvers call are collective where theirs are. The operator's domain and range maps must be
/// the same. Instantiated for all types of the installed Tpetra whose scalar is floating-point.
template <class Scalar = DefaultScalar, class LocalOrdinal = DefaultLocalOrdinal,
          class GlobalOrdinal = DefaultGlobalOrdinal, class Node = DefaultNode>
class PipelinedBiCGStab
    : public Belos::SolverManager<Scalar, Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>,
                                  Tpetra::Operator<Scalar, LocalOrdinal, GlobalOrdinal, Node>> {
 public:
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  using operator_type = Tpetra::Operator<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  using base_type = Belos::SolverManager<Scalar, multivector_type, operator_type>;
  using problem_type = Belos::LinearProblem<Scalar, multivector_type, operator_type>;
  using status_test_type = Belos::StatusTest<Scalar, multivector_type, operator_type>;
  using combination_type = Belos::StatusTestCombo<Scalar, multivector_type, operator_type>;
  using magnitude_type = typename Teuchos::ScalarTraits<Scalar>::magnitudeType;

  PipelinedBiCGStab();
  /// \throws std::invalid_argument if `problem` is null, or as setParameters()
  PipelinedBiCGStab(const Teuchos::RCP<problem_type>& problem, const Teuchos::RCP<Teuchos::ParameterList>& parameters);

  Teuchos::RCP<base_type> clone() const override { return Teuchos::rcp(new PipelinedBiCGStab); }

  const problem_type& getProblem() const override { return *problem_; }
  Teuchos::RCP<const Teuchos::ParameterList> getValidParameters() const override;
  Teuchos::RCP<const Teuchos::ParameterList> getCurrentParameters() const override { return parameters_; }
  Teuchos::Array<Teuchos::RCP<Teuchos::Time>> getTimers() const { return Teuchos::tuple(timer_); }
  /// Of the last solve: the largest residual norm, scaled as "Implicit Residual Scaling" says. With "Check True
  /// Residual" that of b - A x, also where the solve did not converge; else that of the recurrence.
  magnitude_type achievedTol() const override { return achievedTolerance_; }
  int getNumIters() const override { return numIters_; }
  /// Whether in the last solve rounding errors kept the true residual of a column above the tolerance.
  bool isLOADetected() const override { return accuracyLost_; }

  /// \param problem not null
  void setProblem(const Teuchos::RCP<problem_type>& problem) override { problem_ = problem; }
  /// Missing parameters keep their values. \throws Teuchos::Exceptions::InvalidParameter, or std::invalid_argument
  void setParameters(const Teuchos::RCP<Teuchos::ParameterList>& parameters) override;
  /// A test of the user's own, combined with the one of the tolerance. With SEQ or AND it may ask for more: all columns
  /// go on until it passes. If it is one of Belos' tests of residuals, "Check True Residual" holds for it. "Output
  /// Style" is Belos::General then, as other styles print tests of residuals only.
  void setUserConvStatusTest(const Teuchos::RCP<status_test_type>& test,
                             const typename combination_type::ComboType& how = combination_type::SEQ) override;
  /// Asked in each iteration; if it passes, the solve ends.
  void setDebugStatusTest(const Teuchos::RCP<status_test_type>& test) override;
  void reset(Belos::ResetType type) override;

  /// \throws BadInput on all ranks if one has no memory for its vectors; std::logic_error if the problem is not set;
  /// std::invalid_argument if its vectors do not fit, or if it has a left preconditioner and "Implicit Residual
  /// Scaling" is by a norm of something preconditioned
  Belos::ReturnType solve() override;

  /// Of the last solve.
  bool wasPipelined() const { return variant_ == "pipelined" || variant_ == "replicated-pipelined"; }
  /// "pipelined", "merged", "replicated" or "replicated-pipelined"; empty before the first solve.
  const std::string& variant() const { return variant_; }
  int getNumReplacements() const { return numReplacements_; }  ///< of residuals
  int getNumRestarts() const { return numRestarts_; }          ///< after breakdowns

  std::string description() const override;

 private:
  using residual_test_type = Belos::StatusTestGenResNorm<Scalar, multivector_type, operator_type>;
  using replicated_type = Impl::ReplicatedVectors<LocalOrdinal, GlobalOrdinal, Node>;

  void requireComparableScaling() const;
  void requireVectorsThatFit() const;
  void makeTests();
  std::string chooseVariant() const;
  std::shared_ptr<const replicated_type> replicated();

  Teuchos::RCP<problem_type> problem_;
  mutable Teuchos::RCP<const Teuchos::ParameterList> validParameters_;
  Teuchos::RCP<Teuchos::ParameterList> parameters_;
  Teuchos::RCP<Belos::OutputManager<Scalar>> printer_;
  Teuchos::RCP<status_test_type> userTest_, debugTest_;
  Teuchos::RCP<status_test_type> convergenceTest_, allTests_;  // of the tolerance and the user's; or of iterations, too
  typename combination_type::ComboType userCombination_ = combination_type::SEQ;
  Teuchos::RCP<residual_test_type> residualTest_;
  Teuchos::RCP<Belos::StatusTestOutput<Scalar, multivector_type, operator_type>> outputTest_;
  Teuchos::RCP<Teuchos::Time> timer_;
  magnitude_type achievedTolerance_;
  int numIters_ = 0, numReplacements_ = 0, numRestarts_ = 0;
  bool accuracyLost_ = false;
  std::string variant_;
  std::shared_ptr<const replicated_type> replicated_;  // kept from solve to solve
};

}  // namespace Komvos
