/// \file Komvos_DirectSolver.hpp
/// Parallel sparse LU factorization by MUMPS or SuperLU_DIST.
#pragma once

#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Operator.hpp>
#include <memory>
#include <string>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_HaloReport.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

/// MUMPS: multifrontal, threshold pivoting, half the work where the matrix is symmetric. SuperLU_DIST: supernodal,
/// static pivoting, refined solutions.
enum class DirectMethod { mumps, superluDist };

std::string toString(DirectMethod method);  ///< "mumps", "superlu-dist"
/// \throws BadInput for another text
DirectMethod parseDirectMethod(const std::string& text);

struct DirectOptions {
  bool symmetric = false;     ///< the matrix is; MUMPS then reads its upper triangle only
  long long memoryLimit = 0;  ///< bytes that MUMPS may take on a rank; 0: no limit
  int lookAhead = 10;         ///< panels that SuperLU_DIST factors ahead of the updates; at least 1
  ExchangeOptions exchange;   ///< how right-hand sides and solutions travel
};

/// What a factorization took. Sums and largest values are over all ranks.
struct DirectReport {
  std::string library;          ///< "MUMPS 5.5.1"
  long long factorEntries = 0;  ///< of L and U; of L where only half is kept. SuperLU_DIST: what factors take, indices
                                ///< too, in numbers of entries
  double operations = 0;        ///< floating-point operations of the last factorization
  double analysisSeconds = 0;   ///< of the slowest rank: ordering, symbolic factorization, distribution
  double factorSeconds = 0;     ///< of the slowest rank: the numerical factorization, the last one
  long long largestMemory = 0;  ///< bytes on the rank that uses most, by the library's count
};

/// Applies the inverse of a sparse matrix, factored on all ranks of its communicator. Matrix, right-hand sides and
/// solutions stay distributed. Where the library wants right-hand sides on other ranks than Tpetra has them (MUMPS),
/// they travel by node-aware exchanges, and so do solutions.
///
/// It finds out whether the factors are of use: two solves tell whether solutions are right, and estimate the condition
/// of the matrix with rows and columns scaled to a largest entry of 1.
///
/// SuperLU_DIST's pivots are chosen before it factors. Debian's library cannot do that, so Komvos does where the diagonal
/// is weak (scaled, an entry is below 0.01 or not there, as in saddle-point systems): on rank 0, which gathers the whole
/// matrix for it. Where solutions are wrong all the same, the matrix is factored again with larger pivots, twice at most.
///
/// \note Which libraries there are is decided when Komvos is compiled. SuperLU_DIST's symbolic factorization is that of
/// its default: the pattern of the whole matrix on every rank. Without OMP_NUM_THREADS it is given one thread, for it
/// would start as many on each rank as the node has cores.
class DirectSolver : public Tpetra::Operator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode> {
 public:
  using crs_matrix_type = Tpetra::CrsMatrix<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using multivector_type = Tpetra::MultiVector<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
  using map_type = Tpetra::Map<DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

  /// Whether Komvos was compiled with it.
  static bool isAvailable(DirectMethod method);

  /// Analyses and factors; values are copied.
  /// \note Collective on the matrix' communicator.
  /// \throws BadInput on all ranks if the method is not available, the matrix is not square, has more than 2^31 - 1
  /// rows, entries on a rank or, with SuperLU_DIST, entries, or is singular to working precision, or if a rank has not
  /// enough memory for vectors or for MUMPS' factors. Where it lacks for its factors, SuperLU_DIST ends the program.
  DirectSolver(const crs_matrix_type& matrix, DirectMethod method, const DirectOptions& options = {});
  /// Collective.
  ~DirectSolver() override;

  Teuchos::RCP<const map_type> getDomainMap() const override;
  Teuchos::RCP<const map_type> getRangeMap() const override;

  /// Y = beta Y + alpha inv(A) X. \note Collective.
  /// \throws BadInput unless `mode` is NO_TRANS, and on all ranks if X does not fit on one of them
  void apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode = Teuchos::NO_TRANS,
             DefaultScalar alpha = 1.0, DefaultScalar beta = 0.0) const override;

  /// Whether a matrix on this communicator has its entries where the one that was factored has them. \note Collective.
  bool hasSameGraph(const crs_matrix_type& matrix) const;

  /// Factors anew after values have changed; the analysis stays.
  /// \note Collective.
  /// \throws BadInput on all ranks unless hasSameGraph(matrix), or as the constructor; after that, factor again before
  /// apply()
  void refactor(const crs_matrix_type& matrix);

  const DirectReport& report() const;
  /// Entries of the factors, the mean per rank.
  std::size_t factorEntries() const;
  /// What carries right-hand sides, and most often solutions; null where they stay on their ranks.
  const HaloReport* redistribution() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Komvos
