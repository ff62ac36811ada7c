#include "problem/problem.hpp"

#include <MatrixMarket_Tpetra.hpp>
#include <Teuchos_CommHelpers.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "Komvos_Error.hpp"
#include "problem/generators.hpp"
#include "problem/matrix_market.hpp"

// How this works: loadProblem gets the matrix from a file (readMatrix) or from generators.cpp, always over consecutive
// rows, and adds the right-hand side: from a file, or A x for a known pseudo-random x. Rank 0 checks files completely
// (matrix_market.cpp) before Tpetra's collective reader gets them, so that errors name file and line. examine finds out
// what solvers and preconditioners must know about the values.

namespace Komvos::Program {

namespace {

using GO = DefaultGlobalOrdinal;
using Teuchos::RCP;
using Teuchos::rcp;

/// Does `work` on rank 0; what it throws is thrown on all ranks.
void onRoot(const CommPtr& comm, const std::function<void()>& work) {
  std::string error;
  if (comm->getRank() == 0) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      error = "rank 0 has not enough memory to read the file";
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
  }
  throwOnAllIfAny(mpiOf(comm), error);
}

Problem readMatrix(const std::string& path, const CommPtr& comm) {
  onRoot(comm, [&] { checkMatrixFile(path, std::numeric_limits<GO>::max()); });
  Problem problem;
  problem.name = std::filesystem::path(path).filename().string();
  const bool fillComplete = true;
  const bool tolerant = true;  // of blank lines, which the format allows; everything else is checked by now
  problem.matrix = Tpetra::MatrixMarket::Reader<Matrix>::readSparseFile(path, comm, fillComplete, tolerant);
  return problem;
}

/// The vector in a file that only rank 0 reads.
RCP<MultiVector> readVector(const std::string& path, const RCP<const Map>& map) {
  const CommPtr comm = map->getComm();
  const auto rows = static_cast<std::int64_t>(map->getGlobalNumElements());
  std::vector<double> values;
  onRoot(comm, [&] { values = readVectorFile(path, rows); });
  const auto rootMap = rcp(new Map(rows, values.size(), 0, comm));
  MultiVector onRootOnly(rootMap, 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    onRootOnly.replaceLocalValue(static_cast<DefaultLocalOrdinal>(i), 0, values[i]);
  }
  const auto vector = rcp(new MultiVector(map, 1));
  vector->doImport(onRootOnly, Tpetra::Import<>(rootMap, map), Tpetra::INSERT);
  return vector;
}

RCP<MultiVector> hashedVector(const RCP<const Map>& map, unsigned long long seed) {
  const auto vector = rcp(new MultiVector(map, 1));
  for (std::size_t i = 0; i < Impl::localLength(*map); ++i) {
    const auto local = static_cast<DefaultLocalOrdinal>(i);
    vector->replaceLocalValue(local, 0,
                              hashedValue(seed, static_cast<unsigned long long>(map->getGlobalElement(local))));
  }
  return vector;
}

double norm(const MultiVector& vector) {
  Teuchos::Array<double> norms(1);
  vector.norm2(norms());
  return norms[0];
}

/// Squares of entries may be too large, or too small, for a double.
void requireNorm(const MultiVector& b, const std::string& file) {
  Teuchos::Array<double> largest(1);
  b.normInf(largest());
  const double size = norm(b);
  if (!std::isfinite(size) || (size == 0 && largest[0] > 0)) {
    std::ostringstream text;
    text << file << ": the largest entry is " << largest[0] << ", so that the norm "
         << (size == 0 ? "is 0 after rounding" : "overflows") << "; scale the system";
    throw BadInput(text.str());
  }
}

/// The same entries without their signs.
RCP<const Matrix> absoluteOf(const Matrix& matrix) {
  const auto absolute = rcp(new Matrix(matrix, Teuchos::Copy));
  const auto values = absolute->getLocalMatrixHost().values;
  for (std::size_t k = 0; k < values.extent(0); ++k) {
    values(k) = std::abs(values(k));
  }
  return absolute;
}

/// A x and A^T x, side by side.
MultiVector forwardAndTransposed(const Matrix& matrix, const MultiVector& x) {
  MultiVector both(matrix.getRangeMap(), 2);
  matrix.apply(x, *both.getVectorNonConst(0));
  matrix.apply(x, *both.getVectorNonConst(1), Teuchos::TRANS);
  return both;
}

/// Whether A x - A^T x is only rounding in each row, compared with |A| |x| + |A|^T |x|, for a pseudo-random x: a few
/// large rows, say of a penalty, must not hide the others.
bool isSymmetric(const Matrix& matrix) {
  const auto x = hashedVector(matrix.getDomainMap(), 2);
  MultiVector sizes(x->getMap(), 1);
  sizes.abs(*x);
  const MultiVector products = forwardAndTransposed(matrix, *x);
  const MultiVector bounds = forwardAndTransposed(*absoluteOf(matrix), sizes);
  const auto product = products.getLocalViewHost(Tpetra::Access::ReadOnly);
  const auto bound = bounds.getLocalViewHost(Tpetra::Access::ReadOnly);
  const double rounding = 1e-12;
  int differs = 0;
  for (std::size_t i = 0; i < product.extent(0); ++i) {
    const bool same = std::abs(product(i, 0) - product(i, 1)) <= rounding * (bound(i, 0) + bound(i, 1));
    differs = same ? differs : 1;  // also if it is not a number
  }
  int anyDiffers = 0;
  Teuchos::reduceAll(*matrix.getComm(), Teuchos::REDUCE_MAX, differs, Teuchos::outArg(anyDiffers));
  return anyDiffers == 0;
}

GO smallest(const Teuchos::Comm<int>& comm, GO mine) {
  GO all = mine;
  Teuchos::reduceAll(comm, Teuchos::REDUCE_MIN, mine, Teuchos::outArg(all));
  return all;
}

}  // namespace

MPI_Comm mpiOf(const CommPtr& comm) { return Tpetra::Details::extractMpiCommFromTeuchos(*comm); }

Teuchos::RCP<const Map> contiguousMap(long long rows, int dofsPerNode, const CommPtr& comm) {
  const long long nodes = rows / dofsPerNode;
  const int size = comm->getSize();
  const long long mine = nodes / size + (comm->getRank() < nodes % size ? 1 : 0);
  return rcp(new Map(static_cast<Tpetra::global_size_t>(rows), static_cast<std::size_t>(mine * dofsPerNode), 0, comm));
}

MatrixTraits examine(const Matrix& matrix) {
  const auto local = matrix.getLocalMatrixHost();
  const Map& rows = *matrix.getRowMap();
  const Map& columns = *matrix.getColMap();
  const GO none = std::numeric_limits<GO>::max();
  GO zeroRow = none;
  GO zeroDiagonal = none;
  GO notPositive = none;
  for (DefaultLocalOrdinal i = 0; i < local.numRows(); ++i) {
    const GO index = rows.getGlobalElement(i);
    const auto diagonalColumn = columns.getLocalElement(index);
    double diagonal = 0;
    bool any = false;
    for (auto p = local.graph.row_map(i); p < local.graph.row_map(i + 1); ++p) {
      any = any || local.values(p) != 0;
      diagonal += local.graph.entries(p) == diagonalColumn ? local.values(p) : 0;
    }
    zeroRow = any ? zeroRow : std::min(zeroRow, index);
    zeroDiagonal = diagonal != 0 ? zeroDiagonal : std::min(zeroDiagonal, index);
    notPositive = diagonal > 0 ? notPositive : std::min(notPositive, index);
  }
  const Teuchos::Comm<int>& comm = *rows.getComm();
  zeroRow = smallest(comm, zeroRow);
  if (zeroRow != none) {
    throw BadInput("row " + std::to_string(zeroRow + 1) + " has only zero entries: the matrix is singular");
  }
  MatrixTraits traits;
  zeroDiagonal = smallest(comm, zeroDiagonal);
  traits.zeroDiagonalRow = zeroDiagonal == none ? -1 : zeroDiagonal;
  traits.positiveDiagonal = smallest(comm, notPositive) == none;
  traits.symmetric = isSymmetric(matrix);
  return traits;
}

Problem loadProblem(const ProblemOptions& options, const CommPtr& comm) {
  Problem problem = options.problem.empty() ? readMatrix(options.matrixFile, comm) : generate(options, comm);
  const auto map = problem.matrix->getRowMap();
  if (!options.rhsFile.empty()) {
    problem.rhs = readVector(options.rhsFile, map);
    requireNorm(*problem.rhs, options.rhsFile);
    return problem;
  }
  problem.exact = hashedVector(map, 1);
  problem.rhs = rcp(new MultiVector(map, 1));
  problem.matrix->apply(*problem.exact, *problem.rhs);
  return problem;
}

}  // namespace Komvos::Program
