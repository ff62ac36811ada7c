/// \file problem.hpp
/// The linear system that is solved.
#pragma once

#include <mpi.h>

#include <Teuchos_RCP.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_MultiVector.hpp>
#include <string>

#include "Komvos_TpetraShim.hpp"
#include "problem/problem_options.hpp"

namespace Komvos::Program {

using Matrix = Tpetra::CrsMatrix<>;
using MultiVector = Tpetra::MultiVector<>;
using Map = Tpetra::Map<>;
using CommPtr = Teuchos::RCP<const Teuchos::Comm<int>>;

MPI_Comm mpiOf(const CommPtr& comm);

/// A x = b. Rows are numbered 0 .. n-1, whatever rank owns them.
struct Problem {
  std::string name;  ///< for people
  Teuchos::RCP<Matrix> matrix;
  Teuchos::RCP<MultiVector> rhs;
  Teuchos::RCP<MultiVector> exact;        ///< the solution, if it is known
  int dofsPerNode = 1;                    ///< consecutive rows that stay together
  Teuchos::RCP<MultiVector> coordinates;  ///< of the nodes (row / dofsPerNode), or null
  Teuchos::RCP<MultiVector> nullspace;    ///< near null space for multigrid, or null
};

/// Properties that the values of a matrix show.
struct MatrixTraits {
  bool symmetric = false;
  bool positiveDiagonal = false;   ///< no entry zero or negative
  long long zeroDiagonalRow = -1;  ///< the first such row, or -1
};

/// Reads or generates the system, over consecutive rows. \note Collective.
/// \throws BadInput on all ranks
Problem loadProblem(const ProblemOptions& options, const CommPtr& comm);

/// \note Collective. \throws BadInput on all ranks if a row is zero
MatrixTraits examine(const Matrix& matrix);

/// Consecutive nodes on each rank, each with dofsPerNode rows.
Teuchos::RCP<const Map> contiguousMap(long long rows, int dofsPerNode, const CommPtr& comm);

/// In [-1, 1), the same on every machine and rank.
double hashedValue(unsigned long long seed, unsigned long long index);

}  // namespace Komvos::Program
