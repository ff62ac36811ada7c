/// \file flow_problems.hpp
/// Unsymmetric systems, dealt out unevenly.
#pragma once

#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "Komvos_TpetraShim.hpp"

namespace KomvosTest {

using Teuchos::RCP;
using Teuchos::rcp;
using GO = Komvos::DefaultGlobalOrdinal;
using Map = Tpetra::Map<>;
using Matrix = Tpetra::CrsMatrix<>;
using Vector = Tpetra::MultiVector<>;
using Operator = Tpetra::Operator<>;

/// Contiguous rows; rank r gets a share that grows with r, rank 0 none when there are at least three ranks.
inline RCP<const Map> unevenMap(GO rows) {
  const auto comm = Tpetra::getDefaultComm();
  const GO rank = comm->getRank(), size = comm->getSize();
  const GO weights = size < 3 ? size : size * (size - 1) / 2;
  const auto before = [&](GO r) { return size < 3 ? r : r * (r - 1) / 2; };
  const GO begin = rows * before(rank) / weights, end = rows * before(rank + 1) / weights;
  return rcp(new Map(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(), static_cast<std::size_t>(end - begin), 0,
                     comm));
}

/// Calls `row(i, entries)` for each row of this rank; equal columns are summed.
using Entries = std::map<GO, double>;
inline RCP<Matrix> assemble(GO rows, const std::function<void(GO, Entries&)>& row) {
  const auto map = unevenMap(rows);
  const auto matrix = rcp(new Matrix(map, 32));
  for (std::size_t k = 0; k < Komvos::Impl::localLength(*map); ++k) {
    const GO i = map->getGlobalElement(static_cast<int>(k));
    Entries entries;
    row(i, entries);
    std::vector<GO> columns;
    std::vector<double> values;
    for (const auto& [column, value] : entries) {
      columns.push_back(column);
      values.push_back(value);
    }
    matrix->insertGlobalValues(i, Teuchos::ArrayView<const GO>(columns.data(), columns.size()),
                               Teuchos::ArrayView<const double>(values.data(), values.size()));
  }
  matrix->fillComplete();
  return matrix;
}

/// -Laplace(u) + peclet * (wind . grad u) on the n x n interior points of the unit square, u = 0 outside, scaled by
/// h^2. Central differences, or upwind ones.
using Wind = std::function<std::pair<double, double>(double x, double y)>;
inline RCP<Matrix> convectionDiffusion(GO n, double peclet, const Wind& wind, bool upwind) {
  return assemble(n * n, [=](GO row, Entries& entries) {
    const GO i = row % n, j = row / n;
    const double h = 1.0 / static_cast<double>(n + 1);
    const auto [a, b] = wind(static_cast<double>(i + 1) * h, static_cast<double>(j + 1) * h);
    const auto add = [&](GO di, GO dj, double value) {
      if (i + di >= 0 && i + di < n && j + dj >= 0 && j + dj < n) {
        entries[row + di + n * dj] += value;
      }
    };
    const double u = peclet * h * a, v = peclet * h * b;
    add(0, 0, 4 + (upwind ? std::abs(u) + std::abs(v) : 0));
    add(1, 0, -1 + (upwind ? std::min(u, 0.0) : u / 2));
    add(-1, 0, -1 - (upwind ? std::max(u, 0.0) : u / 2));
    add(0, 1, -1 + (upwind ? std::min(v, 0.0) : v / 2));
    add(0, -1, -1 - (upwind ? std::max(v, 0.0) : v / 2));
  });
}

inline std::pair<double, double> slantedWind(double, double) { return {std::sqrt(0.75), 0.5}; }
inline std::pair<double, double> recirculatingWind(double x, double y) {
  return {4 * x * (x - 1) * (1 - 2 * y), -4 * y * (y - 1) * (1 - 2 * x)};
}

/// Jacobian of a lid-driven cavity in stream function and vorticity, n x n interior points, at a vortex that fills the
/// cavity: Laplace(psi) + omega = 0, and (u . grad) omega - Laplace(omega) / reynolds + the derivative of u by psi.
/// Thom's wall formula couples the vorticity next to walls to psi. Indefinite, far from normal.
inline RCP<Matrix> cavity(GO n, double reynolds) {
  const double h = 1.0 / static_cast<double>(n + 1), pi = 3.14159265358979323846;
  const auto psi = [=](double x, double y) { return -0.1 * std::pow(std::sin(pi * x) * std::sin(pi * y), 2); };
  const auto omega = [=](double x, double y) {
    const double e = h / 2;
    return -(psi(x + e, y) + psi(x - e, y) + psi(x, y + e) + psi(x, y - e) - 4 * psi(x, y)) / (e * e);
  };
  return assemble(2 * n * n, [=](GO row, Entries& entries) {
    const GO point = row / 2, i = point % n, j = point / n;
    const double x = static_cast<double>(i + 1) * h, y = static_cast<double>(j + 1) * h;
    const auto inside = [&](GO di, GO dj) { return i + di >= 0 && i + di < n && j + dj >= 0 && j + dj < n; };
    const auto add = [&](int unknown, GO di, GO dj, double value) {
      if (inside(di, dj)) {
        entries[2 * (point + di + n * dj) + unknown] += value;
      } else if (unknown == 1) {  // on a wall: omega = -2 psi / h^2 of the point next to it
        entries[2 * point] += -2 * value / (h * h);
      }
    };
    const GO sides[4][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    if (row % 2 == 0) {
      add(0, 0, 0, -4);
      for (const auto& side : sides) {
        add(0, side[0], side[1], 1);
      }
      add(1, 0, 0, h * h);
      return;
    }
    const double u = (psi(x, y + h) - psi(x, y - h)) / 2, v = -(psi(x + h, y) - psi(x - h, y)) / 2;
    const double omegaX = (omega(x + h, y) - omega(x - h, y)) / 2, omegaY = (omega(x, y + h) - omega(x, y - h)) / 2;
    add(1, 0, 0, 4 / reynolds);
    for (const auto& side : sides) {
      const double along = static_cast<double>(side[0]) * u + static_cast<double>(side[1]) * v;
      add(1, side[0], side[1], -1 / reynolds + along / 2);
    }
    add(0, 0, 1, omegaX / 2);
    add(0, 0, -1, -omegaX / 2);
    add(0, 1, 0, -omegaY / 2);
    add(0, -1, 0, omegaY / 2);
  });
}

}  // namespace KomvosTest
