/// \file Komvos_DirectEngine.hpp
/// What MUMPS and SuperLU_DIST have in common.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "Komvos_DirectSolver.hpp"

namespace Komvos::Impl {

/// The rows of this rank; rows and columns are numbered from 0, from rank to rank.
struct DistributedRows {
  int whole = 0;  ///< rows of the matrix
  int first = 0;  ///< number of the first row here
  std::vector<int> offsets;
  std::vector<int> columns;
  std::vector<double> values;
  std::vector<double> sizes;  ///< of values, with rows and columns scaled to a largest entry of 1
  int count() const { return static_cast<int>(offsets.size()) - 1; }
};

/// A matrix factored by a library. All functions that return an error text are collective, as is count(); on all ranks
/// they return one, or on those that know.
class DirectEngine {
 public:
  virtual ~DirectEngine() = default;
  virtual std::string name() const = 0;
  /// Of the whole matrix.
  virtual long long mostEntries() const = 0;
  /// The matrix to be factored. On this rank alone; what may fail here does not fail in a call of the library.
  virtual void take(DistributedRows rows) = 0;
  /// \return an error text, or nothing
  virtual std::string factor() = 0;
  /// Other values in the same places, to be factored again, and their sizes. On this rank alone.
  virtual void takeValues(std::vector<double> values, std::vector<double> sizes) = 0;
  virtual std::string refactor() = 0;
  /// After a factorization that failed, or whose solutions are wrong: whether other pivots may help. The same on all
  /// ranks.
  virtual bool canFactorOtherwise() const { return false; }
  virtual std::string factorOtherwise() { return {}; }
  /// Of the last factorization; seconds are those of this rank.
  virtual DirectReport count() const = 0;
  /// Numbers of the rows whose right-hand sides this rank has; empty pointer: its rows of the matrix.
  virtual const std::vector<int>* rows() const = 0;
  /// The same for solutions, as many; known after the first solve() with new factors.
  virtual const std::vector<int>* rowsOfSolutions() const { return rows(); }
  /// Makes room to solve for so many columns. On this rank alone.
  virtual void reserve(int columns) = 0;
  /// Right-hand sides in, solutions out, after reserve(). \param x [rows x columns], columns `stride` apart
  virtual std::string solve(double* x, int stride, int columns) = 0;
};

/// Null where Komvos is compiled without it. \note Collective.
std::unique_ptr<DirectEngine> makeMumps(MPI_Comm comm, const DirectOptions& options);
std::unique_ptr<DirectEngine> makeSuperluDist(MPI_Comm comm, const DirectOptions& options);

}  // namespace Komvos::Impl
