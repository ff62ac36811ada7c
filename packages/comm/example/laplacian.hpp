// The matrix of the examples: a 2-D Laplacian, five points, on a grid of n x n points.
#pragma once

#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>

namespace example {

using GlobalOrdinal = Tpetra::Map<>::global_ordinal_type;

/// Consecutive rows on each rank: few neighbours.
inline Teuchos::RCP<const Tpetra::Map<>> consecutiveRows(GlobalOrdinal n) {
  return Teuchos::rcp(new Tpetra::Map<>(n * n, 0, Tpetra::getDefaultComm()));
}

/// Rows dealt out to the ranks in turn: each rank needs values of several others, as on the coarse levels of multigrid.
inline Teuchos::RCP<const Tpetra::Map<>> cyclicRows(GlobalOrdinal n) {
  const auto comm = Tpetra::getDefaultComm();
  Teuchos::Array<GlobalOrdinal> mine;
  for (GlobalOrdinal row = comm->getRank(); row < n * n; row += comm->getSize()) {
    mine.push_back(row);
  }
  return Teuchos::rcp(new Tpetra::Map<>(n * n, mine(), 0, comm));
}

inline Teuchos::RCP<Tpetra::CrsMatrix<>> laplacian(GlobalOrdinal n, const Teuchos::RCP<const Tpetra::Map<>>& rows) {
  const auto matrix = Teuchos::rcp(new Tpetra::CrsMatrix<>(rows, 5));
  const auto mine = rows->getMyGlobalIndices();
  for (std::size_t i = 0; i < mine.extent(0); ++i) {
    const GlobalOrdinal row = mine(i), x = row % n, y = row / n;
    matrix->insertGlobalValues(row, Teuchos::tuple(row), Teuchos::tuple(4.0));
    const auto couple = [&](bool inside, GlobalOrdinal column) {
      if (inside) {
        matrix->insertGlobalValues(row, Teuchos::tuple(column), Teuchos::tuple(-1.0));
      }
    };
    couple(x > 0, row - 1);
    couple(x < n - 1, row + 1);
    couple(y > 0, row - n);
    couple(y < n - 1, row + n);
  }
  matrix->fillComplete();
  return matrix;
}

/// The largest difference between the products of two matrices with the same vector.
inline double productDifference(const Tpetra::CrsMatrix<>& A, const Tpetra::CrsMatrix<>& B) {
  Tpetra::MultiVector<> x(A.getDomainMap(), 1), y(A.getRangeMap(), 1), z(A.getRangeMap(), 1);
  x.randomize();
  A.apply(x, y);
  B.apply(x, z);
  z.update(-1, y, 1);
  return z.getVector(0)->normInf();
}

}  // namespace example
