/// \file grid_support.hpp
/// Matrices on a grid, dealt out unevenly, and how to solve with them.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Teuchos_CommHelpers.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "Komvos_TpetraShim.hpp"
#include "support/largest.hpp"

namespace KomvosTest {

using Teuchos::RCP;
using Teuchos::rcp;
using GO = Komvos::DefaultGlobalOrdinal;
using Map = Tpetra::Map<>;
using Matrix = Tpetra::CrsMatrix<>;
using Vector = Tpetra::MultiVector<>;
using Operator = Tpetra::Operator<>;

/// Of the numbers of all ranks.
inline int largest(const Teuchos::Comm<int>& comm, int mine) {
  int all = mine;
  Teuchos::reduceAll(comm, Teuchos::REDUCE_MAX, mine, Teuchos::outArg(all));
  return all;
}

/// A name for a file that no other run of the tests has. \note Collective on MPI_COMM_WORLD.
inline std::string ownFile(const std::string& name) {
  int process = getpid();
  MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return name + "_" + std::to_string(process) + ".xml";
}

/// Rows dealt out unevenly: rank r gets a share that grows with r, rank 0 none when there are at least three ranks.
inline RCP<const Map> unevenMap(GO rows) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank();
  const int size = comm->getSize();
  std::vector<GO> mine;
  for (GO row = 0; row < rows; ++row) {
    const int owner =
        size < 3 ? static_cast<int>(row % size) : 1 + static_cast<int>(std::sqrt(double(row) / rows) * (size - 1));
    if (owner == rank) {
      mine.push_back(row);
    }
  }
  return rcp(new Map(rows, Teuchos::ArrayView<const GO>(mine.data(), mine.size()), 0, comm));
}

/// Convection and diffusion on an n x n grid: not symmetric for wind != 0, singular for neumann: rows of sum 0.
inline RCP<Matrix> grid(GO n, double wind, bool neumann = false) {
  const auto map = unevenMap(n * n);
  auto matrix = rcp(new Matrix(map, 5));
  const auto rows = map->getMyGlobalIndices();
  for (std::size_t k = 0; k < rows.extent(0); ++k) {
    const GO row = rows(k);
    std::vector<GO> columns;
    std::vector<double> values;
    double diagonal = 4;
    const auto add = [&](bool inside, GO column, double value) {
      if (inside) {
        columns.push_back(column);
        values.push_back(value);
      } else if (neumann) {
        diagonal += value;
      }
    };
    add(row % n > 0, row - 1, -1 - wind);
    add(row % n < n - 1, row + 1, -1 + wind);
    add(row >= n, row - n, -1);
    add(row < n * (n - 1), row + n, -1);
    columns.push_back(row);
    values.push_back(diagonal);
    matrix->insertGlobalValues(row, Teuchos::ArrayView<const GO>(columns.data(), columns.size()),
                               Teuchos::ArrayView<const double>(values.data(), values.size()));
  }
  matrix->fillComplete();
  return matrix;
}

/// Its entries with row and column scaled by powers of 10 between 1 and 1e-12.
inline RCP<Matrix> inOtherUnits(const Matrix& matrix) {
  const auto scaled = rcp(new Matrix(matrix, Teuchos::Copy));
  const auto scale = [](GO id) { return std::pow(10.0, -3.0 * static_cast<double>(id * 7 % 5)); };
  const auto local = scaled->getLocalMatrixHost();
  for (int row = 0; row < local.numRows(); ++row) {
    for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
      local.values(k) *= scale(matrix.getRowMap()->getGlobalElement(row)) *
                         scale(matrix.getColMap()->getGlobalElement(local.graph.entries(k)));
    }
  }
  return scaled;
}

/// The same places, other values: times a factor and a shift of the diagonal that differ from row to row.
inline RCP<Matrix> withOtherValues(const Matrix& matrix) {
  const auto other = rcp(new Matrix(matrix, Teuchos::Copy));
  const auto local = other->getLocalMatrixHost();
  for (int row = 0; row < local.numRows(); ++row) {
    const GO id = matrix.getRowMap()->getGlobalElement(row);
    for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
      const bool isDiagonal = matrix.getColMap()->getGlobalElement(local.graph.entries(k)) == id;
      local.values(k) = local.values(k) * static_cast<double>(1 + id % 3) + (isDiagonal ? 2.5 : 0.0);
    }
  }
  return other;
}

/// Points of the n x n grid, for repartitioning.
inline RCP<Vector> gridPoints(const RCP<const Map>& map, GO n) {
  const auto points = rcp(new Vector(map, 2));
  const auto view = points->getLocalViewHost(Tpetra::Access::OverwriteAll);
  const auto rows = map->getMyGlobalIndices();
  for (std::size_t k = 0; k < rows.extent(0); ++k) {
    view(k, 0) = static_cast<double>(rows(k) % n);
    view(k, 1) = static_cast<double>(rows(k) / n);
  }
  return points;
}

inline double relativeResidual(const Matrix& matrix, const Vector& x, const Vector& b) {
  Vector r(b, Teuchos::Copy);
  matrix.apply(x, r, Teuchos::NO_TRANS, -1.0, 1.0);
  std::vector<double> rNorm(b.getNumVectors());
  std::vector<double> bNorm(b.getNumVectors());
  r.norm2(Teuchos::ArrayView<double>(rNorm));
  b.norm2(Teuchos::ArrayView<double>(bNorm));
  double worst = 0;
  for (std::size_t j = 0; j < rNorm.size(); ++j) {
    worst = largerOf(worst, rNorm[j] / bNorm[j]);
  }
  return worst;
}

/// \return -1 if it does not converge
inline int iterationsOf(const std::string& solverName, const RCP<Operator>& matrix, const RCP<Operator>& preconditioner,
                        const Vector& b, Vector& x) {
  const auto problem = rcp(new Belos::LinearProblem<double, Vector, Operator>(matrix, rcp(&x, false), rcp(&b, false)));
  problem->setLeftPrec(preconditioner);
  problem->setProblem();
  const auto parameters = Teuchos::parameterList();
  parameters->set("Convergence Tolerance", 1e-8);
  parameters->set("Maximum Iterations", 200);
  Belos::SolverFactory<double, Vector, Operator> factory;
  const auto solver = factory.create(solverName, parameters);
  solver->setProblem(problem);
  return solver->solve() == Belos::Converged ? solver->getNumIters() : -1;
}

}  // namespace KomvosTest
