#include "problem/generators.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "Komvos_Error.hpp"
#include "problem/porous_medium.hpp"

// How this works: generate makes a map of consecutive rows, and assemble calls a RowRule for each row of this rank. A
// rule computes the row from its global index alone: laplace3d, convection3d and rotatedAnisotropic2d from stencils,
// groundwater3d from the conductivity of cells (PorousMedium), elasticity3d from the element matrix of a cube
// (cubeStiffness), randomRow from a hash. So the problem does not depend on the number of ranks, and nothing is
// communicated. Multigrid also gets coordinates, and for elasticity the rigid body modes.

namespace Komvos::Program {

namespace {

using GO = DefaultGlobalOrdinal;
using Teuchos::RCP;
using Teuchos::rcp;

struct Row {
  std::vector<GO> columns;
  std::vector<double> values;
  void add(GO column, double value) {
    columns.push_back(column);
    values.push_back(value);
  }
};

/// Fills the row with this global index.
using RowRule = std::function<void(GO index, Row& row)>;

RCP<Matrix> assemble(const RCP<const Map>& map, std::size_t longestRow, const RowRule& rule) {
  const auto matrix = rcp(new Matrix(map, longestRow));
  Row row;
  for (std::size_t i = 0; i < Impl::localLength(*map); ++i) {
    const GO index = map->getGlobalElement(static_cast<DefaultLocalOrdinal>(i));
    row.columns.clear();
    row.values.clear();
    rule(index, row);
    matrix->insertGlobalValues(index, Teuchos::ArrayView<const GO>(row.columns),
                               Teuchos::ArrayView<const double>(row.values));
  }
  matrix->fillComplete();
  return matrix;
}

/// A box of points, numbered with x running fastest.
struct Grid {
  std::array<GO, 3> size;
  GO index(GO i, GO j, GO k) const { return (k * size[1] + j) * size[0] + i; }
  std::array<GO, 3> point(GO index) const {
    return {index % size[0], index / size[0] % size[1], index / size[0] / size[1]};
  }
  bool contains(GO i, GO j, GO k) const {
    return i >= 0 && j >= 0 && k >= 0 && i < size[0] && j < size[1] && k < size[2];
  }
};

RCP<MultiVector> gridCoordinates(const Grid& grid, int dimensions, const RCP<const Map>& nodes) {
  const auto coordinates = rcp(new MultiVector(nodes, dimensions));
  for (std::size_t i = 0; i < Impl::localLength(*nodes); ++i) {
    const auto point = grid.point(nodes->getGlobalElement(static_cast<DefaultLocalOrdinal>(i)));
    for (int d = 0; d < dimensions; ++d) {
      coordinates->replaceLocalValue(static_cast<DefaultLocalOrdinal>(i), d, static_cast<double>(point[d]));
    }
  }
  return coordinates;
}

/// -Laplace by central differences, times h^2, with zero values around the box.
void laplace3d(const Grid& grid, GO index, Row& row) {
  const auto [i, j, k] = grid.point(index);
  row.add(index, 6);
  const GO steps[6][3] = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
  for (const auto& s : steps) {
    if (grid.contains(i + s[0], j + s[1], k + s[2])) {
      row.add(grid.index(i + s[0], j + s[1], k + s[2]), -1);
    }
  }
}

/// -Laplace(u) + c . grad u by central differences, times h^2, with zero values around the box; c h = (1, 1/2, 1/4), so
/// that the cell Peclet number is 1 on every grid.
void convection3d(const Grid& grid, GO index, Row& row) {
  const auto [i, j, k] = grid.point(index);
  row.add(index, 6);
  const GO steps[6][3] = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
  for (const auto& s : steps) {
    if (grid.contains(i + s[0], j + s[1], k + s[2])) {
      const double along = static_cast<double>(s[0]) + static_cast<double>(s[1]) / 2 + static_cast<double>(s[2]) / 4;
      row.add(grid.index(i + s[0], j + s[1], k + s[2]), -1 + along / 2);
    }
  }
}

/// -div(K grad h) by finite volumes, times the edge of a cell: flow between two cells is driven by the harmonic mean of
/// their conductivities. The head h is 0 in the layer above the topmost cells (the last in z), whose conductivity is
/// that of the cell below; nothing flows through the other sides. Symmetric and positive definite.
void groundwater3d(const Grid& grid, const PorousMedium& medium, GO index, Row& row) {
  const auto [i, j, k] = grid.point(index);
  const double here = medium.conductivity(i, j, k);
  double sum = k + 1 == grid.size[2] ? here : 0;
  const GO steps[6][3] = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
  for (const auto& s : steps) {
    const GO x = i + s[0], y = j + s[1], z = k + s[2];
    if (grid.contains(x, y, z)) {
      const double there = medium.conductivity(x, y, z);
      const double mean = 2 * here * there / (here + there);
      row.add(grid.index(x, y, z), -mean);
      sum += mean;
    }
  }
  row.add(index, sum);
}

/// -div(Q^T diag(1, epsilon) Q grad u), Q the rotation by theta, by bilinear elements on squares, with zero values
/// around the box.
void rotatedAnisotropic2d(const Grid& grid, GO index, Row& row) {
  const double epsilon = 0.001;
  const double theta = std::acos(-1.0) / 8;
  const double c = std::cos(theta);
  const double s = std::sin(theta);
  // D = [xx xy; xy yy]
  const double xx = c * c + epsilon * s * s;
  const double yy = s * s + epsilon * c * c;
  const double xy = (1 - epsilon) * c * s;
  const auto [i, j, k] = grid.point(index);
  for (GO dj = -1; dj <= 1; ++dj) {
    for (GO di = -1; di <= 1; ++di) {
      if (grid.contains(i + di, j + dj, k)) {
        // Bilinear elements: second difference in one direction times mass (1, 4, 1) / 6 in the other.
        const double second[3] = {-1, 2, -1};
        const double mass[3] = {1. / 6, 4. / 6, 1. / 6};
        const double mixed = static_cast<double>(-di * dj) / 2;
        row.add(grid.index(i + di, j + dj, k),
                xx * second[di + 1] * mass[dj + 1] + yy * mass[di + 1] * second[dj + 1] + xy * mixed);
      }
    }
  }
}

/// Of the shape functions of the 8 corners, in 3 directions.
using CornerGradients = std::array<std::array<double, 3>, 8>;

/// Trilinear shape functions at a point of the unit cube. Corner c is at (c & 1, c >> 1 & 1, c >> 2).
CornerGradients shapeGradients(const std::array<double, 3>& at) {
  CornerGradients gradient;
  for (int c = 0; c < 8; ++c) {
    for (int a = 0; a < 3; ++a) {
      gradient[c][a] = 1;
      for (int d = 0; d < 3; ++d) {
        const bool far = (c >> d & 1) != 0;
        gradient[c][a] *= d == a ? (far ? 1 : -1) : (far ? at[d] : 1 - at[d]);
      }
    }
  }
  return gradient;
}

/// Entry [3 c + a][3 d + b] couples direction a of corner c with direction b of corner d.
using CubeStiffness = std::array<std::array<double, 24>, 24>;

/// Stiffness of a unit cube with trilinear shape functions, E = 1, Poisson ratio 0.25, 2 x 2 x 2 Gauss points.
CubeStiffness cubeStiffness() {
  const double poisson = 0.25;
  const double lambda = poisson / ((1 + poisson) * (1 - 2 * poisson));
  const double mu = 1 / (2 * (1 + poisson));
  const double gauss[2] = {0.5 - 0.5 / std::sqrt(3.0), 0.5 + 0.5 / std::sqrt(3.0)};
  CubeStiffness stiffness{};
  for (int q = 0; q < 8; ++q) {
    const CornerGradients gradient = shapeGradients({gauss[q & 1], gauss[q >> 1 & 1], gauss[q >> 2]});
    // K[ca][db] += weight (lambda g_ca g_db + mu g_cb g_da + mu delta_ab g_c . g_d)
    for (int ca = 0; ca < 24; ++ca) {
      for (int db = 0; db < 24; ++db) {
        const auto& g = gradient[ca / 3];
        const auto& h = gradient[db / 3];
        const int a = ca % 3;
        const int b = db % 3;
        const double dot = a == b ? g[0] * h[0] + g[1] * h[1] + g[2] * h[2] : 0;
        stiffness[ca][db] += (lambda * g[a] * h[b] + mu * g[b] * h[a] + mu * dot) / 8;
      }
    }
  }
  return stiffness;
}

/// Couplings of a point with the 27 points around it, in 3 directions; the neighbour at (di, dj, dk) from (-1, -1, -1)
/// to (1, 1, 1) has number (9 (dk + 1) + 3 (dj + 1) + di + 1).
using Couplings = std::array<std::array<double, 3>, 27>;

/// Sums up the cubes around point (i, j, k), for its direction a. There is one more layer of cubes below x = 0.
Couplings coupleWithNeighbours(const Grid& grid, const CubeStiffness& stiffness, GO i, GO j, GO k, int a) {
  Couplings couplings{};
  for (int c = 0; c < 8; ++c) {  // the cubes that have this point as corner c
    const GO x = i - (c & 1);
    const GO y = j - (c >> 1 & 1);
    const GO z = k - (c >> 2);
    if (x < -1 || y < 0 || z < 0 || x + 1 >= grid.size[0] || y + 1 >= grid.size[1] || z + 1 >= grid.size[2]) {
      continue;
    }
    for (int d = 0; d < 8; ++d) {
      const int di = (d & 1) - (c & 1) + 1;
      const int dj = (d >> 1 & 1) - (c >> 1 & 1) + 1;
      const int dk = (d >> 2) - (c >> 2) + 1;
      for (int b = 0; b < 3; ++b) {
        couplings[(dk * 3 + dj) * 3 + di][b] += stiffness[3 * c + a][3 * d + b];
      }
    }
  }
  return couplings;
}

/// Linear elasticity: a bar of cubes, clamped at one more layer of points at x = -1, free elsewhere.
void elasticity3d(const Grid& grid, const CubeStiffness& stiffness, GO index, Row& row) {
  const auto [i, j, k] = grid.point(index / 3);
  const Couplings couplings = coupleWithNeighbours(grid, stiffness, i, j, k, static_cast<int>(index % 3));
  for (int n = 0; n < 27; ++n) {
    const GO x = i + n % 3 - 1;
    const GO y = j + n / 3 % 3 - 1;
    const GO z = k + n / 9 - 1;
    for (int b = 0; b < 3 && grid.contains(x, y, z); ++b) {
      row.add(3 * grid.index(x, y, z) + b, couplings[n][b]);
    }
  }
}

/// Three translations, and three rotations about the centre of the box, scaled to similar size.
RCP<MultiVector> rigidBodyModes(const Grid& grid, const RCP<const Map>& rows) {
  const auto modes = rcp(new MultiVector(rows, 6));
  for (std::size_t i = 0; i < Impl::localLength(*rows); ++i) {
    const auto local = static_cast<DefaultLocalOrdinal>(i);
    const GO index = rows->getGlobalElement(local);
    const int a = static_cast<int>(index % 3);
    const auto point = grid.point(index / 3);
    modes->replaceLocalValue(local, a, 1.0);
    for (int axis = 0; axis < 3; ++axis) {
      // u = e_axis x (p - middle)
      const int next = (axis + 1) % 3;
      const int last = (axis + 2) % 3;
      const auto offset = [&](int d) {
        return (static_cast<double>(point[d]) - 0.5 * static_cast<double>(grid.size[d] - 1)) /
               static_cast<double>(grid.size[0]);
      };
      modes->replaceLocalValue(local, 3 + axis, a == next ? -offset(last) : a == last ? offset(next) : 0.0);
    }
  }
  return modes;
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// `entries` different columns with values in [-1, 1); the diagonal is 1 plus the sum of their absolute values.
void randomRow(GO rows, int entries, GO index, Row& row) {
  double sum = 0;
  row.columns.push_back(index);
  row.values.push_back(0);
  for (std::uint64_t attempt = 0; row.columns.size() < static_cast<std::size_t>(entries); ++attempt) {
    const std::uint64_t number = mix(mix(static_cast<std::uint64_t>(index)) + attempt);
    const GO column = static_cast<GO>(number % static_cast<std::uint64_t>(rows));
    if (std::find(row.columns.begin(), row.columns.end(), column) == row.columns.end()) {
      row.add(column, hashedValue(static_cast<std::uint64_t>(index) + 1, attempt));
      sum += std::abs(row.values.back());
    }
  }
  row.values.front() = 1 + sum;
}

/// \return what is wrong, or nothing
std::string checkSize(const ProblemOptions& options, int ranks) {
  double rows = options.problem == "elasticity3d" ? 3 : 1;
  for (const long long n : options.size) {
    rows *= static_cast<double>(n);
  }
  if (rows / ranks > std::numeric_limits<DefaultLocalOrdinal>::max() || rows > 9e18) {
    return "the problem has about " + std::to_string(rows) + " rows, too many for " + std::to_string(ranks) + " ranks";
  }
  if (rows > static_cast<double>(std::numeric_limits<GO>::max())) {  // int, in Debian's Trilinos 17
    return "the problem has about " + std::to_string(rows) + " rows, more than the global ordinals of this Trilinos, " +
           std::to_string(std::numeric_limits<GO>::max());
  }
  if (options.problem == "elasticity3d" && *std::min_element(options.size.begin() + 1, options.size.end()) < 2) {
    return "elasticity3d needs at least 2 points in y and z";
  }
  if (options.problem == "random" && options.entriesPerRow > options.size[0] / 2) {
    return "random needs --n of at least twice --entries, which is " + std::to_string(options.entriesPerRow);
  }
  return "";
}

}  // namespace

double hashedValue(unsigned long long seed, unsigned long long index) {
  return static_cast<double>(mix(mix(seed) + index) >> 11) * 0x1p-52 - 1;
}

Problem generate(const ProblemOptions& options, const CommPtr& comm) {
  if (const std::string error = checkSize(options, comm->getSize()); !error.empty()) {
    throw BadInput(error);  // the same on all ranks
  }
  Problem problem;
  problem.name = options.problem;
  Grid grid{{1, 1, 1}};
  GO points = 1;
  for (std::size_t d = 0; d < options.size.size(); ++d) {
    grid.size[d] = options.size[d];
    points *= grid.size[d];
    problem.name += (d == 0 ? " " : " x ") + std::to_string(grid.size[d]);
  }
  const auto nodes = contiguousMap(points, 1, comm);
  if (options.problem == "random") {
    const int entries = options.entriesPerRow;
    problem.name += " rows, " + std::to_string(entries) + " entries each";
    problem.matrix = assemble(nodes, entries, [&](GO index, Row& row) { randomRow(points, entries, index, row); });
    return problem;
  }
  problem.coordinates = gridCoordinates(grid, static_cast<int>(options.size.size()), nodes);
  if (options.problem == "elasticity3d") {
    problem.dofsPerNode = 3;
    const auto rows = contiguousMap(3 * points, 3, comm);
    const CubeStiffness stiffness = cubeStiffness();
    problem.matrix = assemble(rows, 81, [&](GO index, Row& row) { elasticity3d(grid, stiffness, index, row); });
    problem.nullspace = rigidBodyModes(grid, rows);
  } else if (options.problem == "laplace3d" || options.problem == "poisson3d") {
    problem.matrix = assemble(nodes, 7, [&](GO index, Row& row) { laplace3d(grid, index, row); });
  } else if (options.problem == "convection3d") {
    problem.matrix = assemble(nodes, 7, [&](GO index, Row& row) { convection3d(grid, index, row); });
  } else if (options.problem == "groundwater3d") {
    const PorousMedium medium(grid.size);
    problem.matrix = assemble(nodes, 7, [&](GO index, Row& row) { groundwater3d(grid, medium, index, row); });
  } else {
    problem.matrix = assemble(nodes, 9, [&](GO index, Row& row) { rotatedAnisotropic2d(grid, index, row); });
  }
  return problem;
}

}  // namespace Komvos::Program
