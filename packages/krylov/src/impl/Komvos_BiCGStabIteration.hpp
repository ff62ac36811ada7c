/// \file Komvos_BiCGStabIteration.hpp
/// What both variants of BiCGStab share: the loop around their steps, residuals, convergence, restarts.
#pragma once

#include <BelosIteration.hpp>
#include <BelosLinearProblem.hpp>
#include <BelosOutputManager.hpp>
#include <BelosStatusTestGenResNorm.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Tpetra_MultiVector.hpp>
#include <Tpetra_Operator.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_BiCGStabKernels.hpp"
#include "Komvos_ColumnDots.hpp"
#include "Komvos_NonBlockingSum.hpp"
#include "Komvos_ReplicatedVectors.hpp"
#include "Komvos_WholeVectorOperator.hpp"

namespace Komvos::Impl {

/// Why the loop ended, beside the status test.
enum class BiCGStabStop { none, notANumber, breakdown, rounding, stagnation };

struct BiCGStabOptions {
  bool replaceResiduals = true;  ///< where the estimated gap asks for it
  bool checkTrueResidual = true;
  bool nodeAwareSums = true;
  int maxIterations = 1000;
  int stagnationWindow = 500;  ///< iterations without progress, at least, before a column is given up; 0: never
};

/// Counts of one solve.
struct BiCGStabCounts {
  int replacements = 0, restarts = 0, checks = 0;
};

/// All columns of a linear problem at once, each with scalars of its own. A column whose true residual meets the
/// tolerance is frozen while others go on: neither the operator nor the preconditioner is applied to it any more. So is
/// one that nothing helps; the loop ends when none is left. What is computed anew is so for the columns that need it
/// alone: the vectors of the others stay.
///
/// The preconditioner is the left one, then the right one, applied to what the operator is applied to: so both come
/// from the right. Residuals are those of the problem itself, not preconditioned.
///
/// Vectors of work are dealt out to ranks as the operator's domain is, and dots are summed over ranks; or they are
/// replicated (section III of Yamazaki et al., see PipelinedBiCGStab): every rank has all elements and computes all
/// dots, there are no reductions, but results of products and preconditioners are gathered by all.
///
/// Contracts. All vectors of the problem have the map of the operator's domain, which is the one of its range. The loop
/// is collective; all ranks take the same decisions, since these depend on reduced numbers only, or on replicated ones
/// that all compute alike.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
class BiCGStabIteration
    : public Belos::Iteration<Scalar, Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>,
                              Tpetra::Operator<Scalar, LocalOrdinal, GlobalOrdinal, Node>> {
 public:
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  using operator_type = Tpetra::Operator<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  using problem_type = Belos::LinearProblem<Scalar, multivector_type, operator_type>;
  using status_test_type = Belos::StatusTest<Scalar, multivector_type, operator_type>;
  using residual_test_type = Belos::StatusTestGenResNorm<Scalar, multivector_type, operator_type>;
  using magnitude_type = typename Teuchos::ScalarTraits<Scalar>::magnitudeType;
  using impl_scalar_type = typename multivector_type::impl_scalar_type;
  using execution_space = typename Node::execution_space;
  using vector_view = Kokkos::View<impl_scalar_type*, Kokkos::LayoutLeft, typename Node::device_type,
                                   Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  using replicated_type = ReplicatedVectors<LocalOrdinal, GlobalOrdinal, Node>;

  /// \param replicated of the operator's domain map; null: vectors of work are dealt out
  BiCGStabIteration(const Teuchos::RCP<problem_type>& problem,
                    const Teuchos::RCP<Belos::OutputManager<Scalar>>& printer,
                    const Teuchos::RCP<status_test_type>& test, const Teuchos::RCP<residual_test_type>& residualTest,
                    const BiCGStabOptions& options, std::shared_ptr<const replicated_type> replicated);

  /// A test that is asked in each iteration, and ends the loop if it passes. Beside the others: some of Belos' tests
  /// that print take only tests that they know.
  /// \param test may be null
  void setDebugTest(const Teuchos::RCP<status_test_type>& test) { debugTest_ = test; }
  /// The user's test, combined with the one of the tolerance. It is asked once an iteration, as part of all tests.
  /// \param isStricter whether it must pass, too: then no column is frozen; else it may pass instead
  void setUsersTest(const Teuchos::RCP<status_test_type>& combined, bool isStricter) {
    combinedTest_ = combined;
    asksForMore_ = isStricter;
  }

  /// From the problem's current solution. \note Collective.
  void initialize() override;
  /// Until the status test passes, all columns have converged, or no step can be done. \note Collective.
  void iterate() override;

  /// Writes the solution to the problem's vectors, where it is not there already.
  void finish();

  BiCGStabStop stop() const { return stop_; }
  /// Whether rounding errors keep the true residual of a column above the tolerance.
  bool hasLostAccuracy() const;
  /// Whether the last status test passed on a recursive residual that the true one does not confirm.
  bool isDisproved() const { return disproved_; }
  const BiCGStabCounts& counts() const { return counts_; }

  int getNumIters() const override { return numIters_; }
  void resetNumIters(int iterations = 0) override { numIters_ = iterations; }
  /// Norms of the recursive residuals: no communication. \return null, as Belos' methods do that have norms only
  Teuchos::RCP<const multivector_type> getNativeResiduals(std::vector<magnitude_type>* norms) const override;
  /// \return null: the problem's solution is up to date
  Teuchos::RCP<multivector_type> getCurrentUpdate() const override { return Teuchos::null; }
  const problem_type& getProblem() const override { return *problem_; }
  int getBlockSize() const override { return numColumns_; }
  void setBlockSize(int) override;
  bool isInitialized() override { return initialized_; }

 protected:
  enum class Column { active, frozen };

  /// Vectors of work. Where host and device are one memory, they know where it is: to ask Tpetra for the dozen that a
  /// step reads takes as long as a short kernel.
  class Vectors {
   public:
    Vectors() = default;
    Vectors(Teuchos::RCP<multivector_type> vectors) : vectors_(std::move(vectors)) {  // NOLINT: implicit
      using dual_view = typename multivector_type::dual_view_type;
      if constexpr (std::is_same_v<typename dual_view::t_dev::memory_space, typename dual_view::t_host::memory_space>) {
        if (!vectors_.is_null()) {
          const auto view = vectors_->getLocalViewDevice(Tpetra::Access::ReadWrite);
          data_ = view.data();
          rows_ = view.extent(0);
          stride_ = view.stride(1);
        }
      }
    }
    multivector_type& operator*() const { return *vectors_; }
    bool isNull() const { return vectors_.is_null(); }
    vector_view column(int j) const {
      return data_ != nullptr ? vector_view(data_ + static_cast<std::size_t>(j) * stride_, rows_)
                              : BiCGStabIteration::column(*vectors_, j);
    }

   private:
    Teuchos::RCP<multivector_type> vectors_;
    impl_scalar_type* data_ = nullptr;
    std::size_t rows_ = 0, stride_ = 0;
  };

  /// Vectors of work and the sum. \param error that this rank has met before, or nothing
  /// \note Collective. \throws BadInput on all ranks if one has an error, such as a lack of memory
  virtual void allocate(const std::string& error) = 0;
  // The following work on the columns of which worksOn() says so, and leave the vectors of work of others as they are.

  /// One step: x, r and norms_ of the next iteration. Calls askForRestart() where a column has broken down.
  virtual void step() = 0;
  /// r = b - A x, and norms_: one product, one reduction. The other vectors of work no longer match r.
  virtual void computeResiduals() = 0;
  /// After computeResiduals(), before the next step: computes the other vectors of work. Columns whose restart is asked
  /// for get a new shadow residual, r, and forget their directions.
  virtual void continueFromResiduals() = 0;

  /// The smallest norm that the true residual may reach, by an estimate of rounding errors; 0 if nothing is known.
  virtual double attainableNorm(int) const { return 0; }

  /// Computes the residuals of these columns from their definition, where they are active and not those already.
  /// \return whether there was any such column
  bool takeTrueResiduals(const std::vector<bool>& columns);

  void askForRestart(int column, const std::string& why);
  bool restartsAskedFor() const;
  /// By column. Clears what was asked for.
  std::vector<bool> takeRestarts();

  bool isReplicated() const { return replicated_ != nullptr; }
  Teuchos::RCP<multivector_type> newVectors() const { return newVectors(numColumns_); }
  Teuchos::RCP<multivector_type> newVectors(int columns) const;
  /// A vector of work as the problem's vectors are: itself, or a view of this rank's elements.
  Teuchos::RCP<const multivector_type> distributed(const multivector_type& vectors) const;
  /// \param whileGathered runs while a replicated result is gathered; not called if vectors are dealt out
  void applyOperator(const multivector_type& in, multivector_type& out,
                     const std::function<void()>& whileGathered = {}) const;
  /// To a vector that is no column of the problem.
  void applyOperatorToOne(const multivector_type& in, multivector_type& out) const;
  bool isPreconditioned() const { return problem_->isLeftPrec() || problem_->isRightPrec(); }
  void precondition(const multivector_type& in, multivector_type& out) const;
  /// r = b - A x
  void computeResidual(multivector_type& r) const;
  /// The shadow residual of a restart: r; where that has been in vain, r with noise of its size.
  void takeShadow(multivector_type& r, int column, multivector_type& shadow) const;
  /// Runs a kernel on the rows of this rank's vectors of work. \return its dots there
  template <class Row>
  std::array<typename Row::scalar, Row::dots> run(const std::string& label, const Row& row);

  /// Runs a kernel on each active column, and sets its dots for the sum over ranks; those of other columns are 0.
  /// \param rowOf the kernel of a column
  template <class Row, class RowOf>
  void dotColumns(const ColumnDots<Row>& dots, const std::string& label, const RowOf& rowOf);

  static vector_view column(multivector_type& vectors, int j);
  /// Of b, to be read.
  vector_view columnOfSide(int j) const;
  int localRows() const { return localRows_; }
  int numColumns() const { return numColumns_; }
  bool isActive(int j) const { return columns_[j] == Column::active; }
  bool worksOn(int j) const { return works_[j]; }
  multivector_type& x() const { return *x_; }
  /// For so many numbers; over this rank alone, if vectors are replicated.
  /// \param error that this rank has met before, or nothing \note Collective. \throws BadInput on all ranks if one has
  /// any
  std::unique_ptr<NonBlockingSum<magnitude_type>> newSum(int capacity, const std::string& error) const;

  /// The norm at which the residual of a column meets the tolerance; 0 before the first status test.
  double toleratedNorm(int j) const { return toleratedNorms_[j]; }

  static double magnitude(const impl_scalar_type& value);
  static double roundoff() { return static_cast<double>(Teuchos::ScalarTraits<magnitude_type>::eps()) / 2; }

  const BiCGStabOptions options_;
  BiCGStabCounts counts_;
  std::vector<double> norms_;  // of the residuals, by column

 private:
  bool meetsTolerance(int j) const;
  bool normsAreNumbers() const;
  bool askResidualTest();
  void learnToleratedNorms();
  void noticeStagnation();
  void countVainResidual(int column);
  bool anyNewlyMeets() const;
  bool stopsByTolerance();
  bool stopsByStricterTest();
  bool debugTestPasses();
  bool agreesOnTrueResidual(const Teuchos::RCP<status_test_type>& test);
  void check(const std::vector<bool>& claims, const Teuchos::RCP<status_test_type>& combined);
  void leaveConvergedAlone();
  void reportTrueResidual();
  void prepareStep();
  void requireProgress();
  void testAgain();
  bool anyActive() const;
  std::vector<bool> active() const;
  void workOn(const std::vector<bool>& columns) { works_ = columns; }
  bool worksOnAll() const { return std::find(works_.begin(), works_.end(), false) == works_.end(); }
  BiCGStabStop firstFailure() const;
  void giveUp(BiCGStabStop stop, const std::string& text);
  void giveUpColumn(int column, BiCGStabStop why, std::string text);
  /// Copies of columns that do not stand side by side, of one map.
  struct Packed {
    Teuchos::RCP<multivector_type> in, out;
  };
  Packed& packed(const multivector_type& in, const multivector_type& out) const;
  Teuchos::Array<std::size_t> columnsOfWork() const;
  /// Calls `apply` with the columns that are worked on, which stand side by side.
  void applyToColumns(const multivector_type& in, multivector_type& out,
                      const std::function<void(const multivector_type&, multivector_type&)>& apply) const;
  void preconditionDistributed(const multivector_type& in, multivector_type& out) const;
  /// Before a gather: if it throws, no rank waits for this one.
  void computeOrAbandon(const std::function<void()>& compute) const;
  /// Lets `compute` set the columns of own_ that are worked on, and gathers these.
  void computeAndGather(const std::function<void()>& compute, multivector_type& out,
                        const std::function<void()>& whileGathered) const;
  Teuchos::RCP<multivector_type> newDistributedVectors(int columns) const;

  Teuchos::RCP<problem_type> problem_;
  Teuchos::RCP<Belos::OutputManager<Scalar>> printer_;
  Teuchos::RCP<status_test_type> test_, debugTest_;
  Teuchos::RCP<status_test_type> combinedTest_;  // of the tolerance and the user's, if there is one
  bool asksForMore_ = false;                     // it passes only if both do
  bool disproved_ = false;                       // what it said last is not so for the true residuals
  Teuchos::RCP<residual_test_type> residualTest_;
  std::shared_ptr<const replicated_type> replicated_;
  const WholeVectorOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>* wholeOperator_ = nullptr;  // if A is one
  Teuchos::RCP<multivector_type> x_;
  Teuchos::RCP<multivector_type> wholeB_, own_;  // if replicated; own_: results before they are gathered
  Teuchos::RCP<multivector_type> between_;       // the left and the right preconditioner
  mutable Packed packed_[2];                     // of dealt-out vectors, and from whole ones; where needed
  PartialDots<impl_scalar_type, typename Node::device_type> partialDots_;
  int numColumns_ = 0, localRows_ = 0, numIters_ = 0;
  bool initialized_ = false;
  BiCGStabStop stop_ = BiCGStabStop::none;
  std::vector<Column> columns_;
  std::vector<double> toleratedNorms_;
  // Of each column:
  std::vector<bool> works_;           // worksOn()
  std::vector<bool> residualIsTrue_;  // r is b - A x, computed since the last step
  std::vector<bool> isReady_;         // for a step: the other vectors of work match r
  std::vector<bool> restartIsAsked_;
  std::vector<BiCGStabStop> failures_;  // why it was given up
  std::vector<int> vainRestarts_;       // in a row, that did not make the residual smaller
  std::vector<int> quickRestarts_;      // the same, each soon after the one before
  std::vector<int> restartedAt_;        // iteration
  std::vector<double> normAtRestart_;   // when its directions were forgotten last
  std::vector<int> vainResiduals_;      // true ones in a row, not smaller than any before
  std::vector<double> leastTrueNorm_;   // of those that were too large
  std::vector<double> normWhereLost_;   // true one, when that of the recurrence was far smaller; 0: it never was
  std::vector<double> leastNorm_;       // that it has come to
  std::vector<int> leastNormAt_;        // iteration
};

}  // namespace Komvos::Impl
