/// \file matrix_support.hpp
/// Matrices on which NodeAwareCrsMatrix is held against Tpetra::CrsMatrix.
#pragma once

#include <Tpetra_CrsMatrix.hpp>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/tpetra_support.hpp"

namespace KomvosTest {

using Matrix = Tpetra::CrsMatrix<>;
using Vector = MultiVector<double>;

struct NamedMatrix {
  std::string name;
  RCP<Matrix> matrix;
};

/// Fills rows of a matrix by entries(row, add) and completes it.
using RowEntries = std::function<void(GO row, const std::function<void(GO column, double value)>& add)>;
inline void fillRows(Matrix& matrix, const RowEntries& entriesOf) {
  const auto map = matrix.getRowMap();
  for (std::size_t i = 0; i < Komvos::Impl::localLength(*map); ++i) {
    const GO row = map->getGlobalElement(static_cast<LO>(i));
    std::map<GO, double> sorted;
    entriesOf(row, [&](GO column, double value) { sorted[column] += value; });
    std::vector<GO> columns;
    std::vector<double> values;
    for (const auto& [column, value] : sorted) {
      columns.push_back(column);
      values.push_back(value);
    }
    matrix.insertGlobalValues(row, Teuchos::ArrayView<const GO>(columns.data(), columns.size()),
                              Teuchos::ArrayView<const double>(values.data(), values.size()));
  }
}

/// Rows 0 .. n-1 dealt out: in blocks, or at random, with or without ranks that have none.
inline RCP<const Map> rowsOf(GO n, bool scattered, bool emptyRanks, unsigned seed, const TeuchosComm& comm) {
  const int size = comm->getSize();
  Random random(seed);
  std::vector<GO> mine;
  for (GO row = 0; row < n; ++row) {
    int owner = scattered ? random.below(size) : static_cast<int>(row * size / n);
    owner = emptyRanks && owner % 2 == 0 ? std::min(owner + 1, size - 1) : owner;
    if (owner == comm->getRank()) {
      mine.push_back(row);
    }
  }
  if (scattered) {
    Random(seed + static_cast<unsigned>(comm->getRank())).shuffle(mine);
  }
  return makeMap(mine, comm);
}

/// -Laplace on an nx x ny x nz grid, with `wind` along x: not symmetric unless it is 0.
inline RCP<Matrix> laplace(GO nx, GO ny, GO nz, double wind, const RCP<const Map>& rows) {
  const auto matrix = rcp(new Matrix(rows, 7));
  fillRows(*matrix, [&](GO row, const auto& add) {
    const GO x = row % nx, y = row / nx % ny, z = row / (nx * ny);
    add(row, nz > 1 ? 6 : 4);
    const auto neighbour = [&](bool inside, GO column, double value) {
      if (inside) {
        add(column, value);
      }
    };
    neighbour(x > 0, row - 1, -1 - wind);
    neighbour(x + 1 < nx, row + 1, -1 + wind);
    neighbour(y > 0, row - nx, -1);
    neighbour(y + 1 < ny, row + nx, -1);
    neighbour(z > 0, row - nx * ny, -1);
    neighbour(z + 1 < nz, row + nx * ny, -1);
  });
  matrix->fillComplete();
  return matrix;
}

/// Columns of row `row` at random, with some near and some anywhere; every rank that has the row gets the same.
inline RowEntries randomEntries(GO columns, unsigned seed) {
  return [columns, seed](GO row, const std::function<void(GO, double)>& add) {
    Random random(seed + 17 * static_cast<unsigned>(row));
    for (int k = random.below(9); k >= 0; --k) {
      const GO near = (row + static_cast<GO>(random.below(7))) % columns;
      const GO column = k % 2 == 0 ? near : static_cast<GO>(random.below(static_cast<int>(columns)));
      add(column, random.unit());
    }
  };
}

/// All kinds of matrices: square and not, with importer, exporter, both or neither, with every sort of map.
inline std::vector<NamedMatrix> matricesOn(const TeuchosComm& comm, GO rowsOfRank = 16) {
  const GO n = rowsOfRank * comm->getSize() + 5;
  std::vector<NamedMatrix> list;
  list.push_back({"Laplace 2D", laplace(9, n / 9 + 1, 1, 0, rowsOf(9 * (n / 9 + 1), false, false, 1, comm))});
  list.push_back(
      {"wind 3D, scattered rows", laplace(5, 5, n / 25 + 2, 0.3, rowsOf(25 * (n / 25 + 2), true, false, 2, comm))});
  const auto add = [&](const std::string& name, const RCP<const Map>& rows, const RCP<const Map>& domain,
                       const RCP<const Map>& range, const RowEntries& entriesOf) {
    const auto matrix = rcp(new Matrix(rows, 12));
    fillRows(*matrix, entriesOf);
    matrix->fillComplete(domain, range);
    list.push_back({name, matrix});
  };
  const auto blocks = rowsOf(n, false, false, 3, comm);
  const auto scattered = rowsOf(n, true, false, 4, comm);
  add("random, scattered rows", scattered, scattered, scattered, randomEntries(n, 5));
  const auto few = rowsOf(n, false, true, 6, comm);
  add("random, ranks without rows", few, few, few, randomEntries(n, 7));
  const auto wide = rowsOf(2 * n, true, false, 8, comm);
  add("rectangular, wide", blocks, wide, blocks, randomEntries(2 * n, 9));
  const auto narrow = rowsOf(n / 2, false, false, 10, comm);
  add("rectangular, tall", scattered, narrow, scattered, randomEntries(n / 2, 11));
  add("another domain map", blocks, scattered, blocks, randomEntries(n, 12));
  add("another range map", blocks, blocks, scattered, randomEntries(n, 13));
  // Runs of 1 to 6 rows with the same columns.
  const auto runOf = [](GO row) {
    return row / 21 * 6 + std::array<GO, 21>{0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5}[row % 21];
  };
  add("runs of rows with the same columns", blocks, blocks, blocks, [n, runOf](GO row, const auto& put) {
    Random values(100 + static_cast<unsigned>(row));
    randomEntries(n, 14)(runOf(row), [&](GO column, double) { put(column, values.unit()); });
  });
  add("block diagonal, no halo", blocks, blocks, blocks, [&](GO row, const auto& put) {
    put(row, 3);
    const GO first = blocks->getMinGlobalIndex();
    put(first + (row - first) / 2, 0.5);
  });
  {  // Rows need neighbours only, and results go to the next rank.
    std::vector<GO> shifted;
    for (GO row = 0; row < n; ++row) {
      if ((row * comm->getSize() / n + 1) % comm->getSize() == comm->getRank()) {
        shifted.push_back(row);
      }
    }
    add("band, another range map", blocks, blocks, makeMap(shifted, comm), [n](GO row, const auto& put) {
      put(row, 2);
      put(std::min(row + 1, n - 1), -1);
      put(std::max<GO>(row - 1, 0), -1);
    });
  }
  {  // Rows shared by several ranks, as in finite elements before assembly.
    Random random(14 + static_cast<unsigned>(comm->getRank()));
    std::vector<GO> mine;
    for (GO row = 0; row < n; ++row) {
      if (blocks->isNodeGlobalElement(row) || random.below(4) == 0) {
        mine.push_back(row);
      }
    }
    random.shuffle(mine);
    add("shared rows", makeMap(mine, comm), scattered, blocks, randomEntries(n, 15));
  }
  // Replicated domain or range: each rank sums its part of the other's product.
  const auto local = Tpetra::createLocalMapWithNode<LO, GO, Komvos::DefaultNode>(7, comm);
  add("replicated domain", few, local, few, randomEntries(7, 18));
  add("replicated range", rowsOf(7, true, false, 19, comm), blocks, local, randomEntries(n, 19));
  add("replicated range and rows", local, scattered, local, randomEntries(n, 20));
  add("all replicated", local, local, local, randomEntries(7, 21));
  {  // A column map given by the caller, in an order of its own.
    std::vector<GO> columns;
    for (GO column = 0; column < n; ++column) {
      columns.push_back(column);
    }
    Random(16 + static_cast<unsigned>(comm->getRank())).shuffle(columns);
    const auto matrix = rcp(new Matrix(blocks, makeMap(columns, comm), 12));
    fillRows(*matrix, randomEntries(n, 17));
    matrix->fillComplete(blocks, blocks);
    list.push_back({"permuted columns", matrix});
  }
  return list;
}

}  // namespace KomvosTest
