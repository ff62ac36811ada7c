// A matrix for the clients: five points with periodic distant neighbours, so that every rank talks to others.
#pragma once

#include <Teuchos_RCP.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>

inline Teuchos::RCP<Tpetra::CrsMatrix<>> makeMatrix(Tpetra::Map<>::global_ordinal_type rows) {
  using GO = Tpetra::Map<>::global_ordinal_type;
  const auto map = Teuchos::rcp(new Tpetra::Map<>(rows, 0, Tpetra::getDefaultComm()));
  const auto matrix = Teuchos::rcp(new Tpetra::CrsMatrix<>(map, 5));
  for (GO i = map->getMinGlobalIndex(); i <= map->getMaxGlobalIndex(); ++i) {
    const GO columns[5] = {i, (i + 1) % rows, (i + rows - 1) % rows, (i + 10) % rows, (i + rows - 10) % rows};
    const double values[5] = {5, -1, -1, -1, -1};
    matrix->insertGlobalValues(i, 5, values, columns);
  }
  matrix->fillComplete();
  return matrix;
}
