#include "bem/boundary_problem.hpp"

#include <Teuchos_LAPACK.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cmath>

#include "Komvos_Error.hpp"
#include "bem/harmonic_functions.hpp"
#include "bem/interior_points.hpp"
#include "bem/known_solutions.hpp"

// How this works. Conductors: V s = phi, the charge density is epsilon_0 s. With --capacitance-matrix there is a
// right-hand side for each body, 1 there and 0 elsewhere; what the given potentials charge is then a sum of these
// solutions. In a uniform field E, the surface of body b is at an unknown potential phi_b, so that
// V s = E . x + phi_b: solutions for E . x and for each body at 1 V give phi_b as that with which no body has a net
// charge.
namespace Komvos::Program {

namespace {

using Teuchos::RCP;
using Teuchos::rcp;

const int mostBodies = 1000;

MPI_Comm mpiOf(const MultiVector& vector) {
  return Tpetra::Details::extractMpiCommFromTeuchos(*vector.getMap()->getComm());
}

void sumOverRanks(std::vector<double>& values, MPI_Comm comm) {
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, comm),
           "MPI_Allreduce");
}

/// work(triangle, row of this rank), for all of its rows.
template <class Work>
void forOwned(const MultiVector& vector, const Work& work) {
  const auto& map = *vector.getMap();
  const int count = static_cast<int>(vector.getLocalLength());
  for (int row = 0; row < count; ++row) {
    work(static_cast<int>(map.getGlobalElement(row)), row);
  }
}

double potentialOf(const BemOptions& options, int body) {
  return options.potentials.size() == 1 ? options.potentials.front() : options.potentials[body];
}

double alongField(const BemOptions& options, const Point3& x) {
  return dot({options.field[0], options.field[1], options.field[2]}, x);
}

/// Whether there is a right-hand side for each body, from this column on; -1: there is none.
int firstBodyColumn(const BemOptions& options) {
  return options.problem == "uniform-field" ? 1 : options.capacitanceMatrix ? 0 : -1;
}

/// The integral of each column over each body: column * numBodies + body. \note Collective.
std::vector<double> integrals(const BemMesh& mesh, const MultiVector& vectors) {
  const int bodies = mesh.numBodies(), columns = static_cast<int>(vectors.getNumVectors());
  std::vector<double> sums(static_cast<std::size_t>(bodies) * columns);
  const auto values = vectors.getLocalViewHost(Tpetra::Access::ReadOnly);
  forOwned(vectors, [&](int triangle, int row) {
    for (int column = 0; column < columns; ++column) {
      sums[static_cast<std::size_t>(column) * bodies + mesh.surface.bodyOf(triangle)] +=
          mesh.areas[triangle] * values(row, column);
    }
  });
  sumOverRanks(sums, mpiOf(vectors));
  return sums;
}

/// About the origin, of each body. \note Collective.
std::vector<Point3> dipoles(const BemMesh& mesh, const MultiVector& density) {
  std::vector<double> sums(3 * static_cast<std::size_t>(mesh.numBodies()));
  const auto values = density.getLocalViewHost(Tpetra::Access::ReadOnly);
  forOwned(density, [&](int triangle, int row) {
    double* sum = &sums[3 * static_cast<std::size_t>(mesh.surface.bodyOf(triangle))];
    const Point3 part = mesh.areas[triangle] * values(row, 0) * mesh.centroids[triangle];
    sum[0] += part.x;
    sum[1] += part.y;
    sum[2] += part.z;
  });
  sumOverRanks(sums, mpiOf(density));
  std::vector<Point3> result;
  for (std::size_t i = 0; i < sums.size(); i += 3) {
    result.push_back({sums[i], sums[i + 1], sums[i + 2]});
  }
  return result;
}

/// C phi = b, for a matrix column by column. \throws Error if C is singular
std::vector<double> solved(std::vector<double> matrix, std::vector<double> b) {
  const int n = static_cast<int>(b.size());
  std::vector<int> pivots(n);
  int info = 0;
  Teuchos::LAPACK<int, double>().GESV(n, 1, matrix.data(), n, pivots.data(), b.data(), n, &info);
  if (info != 0) {
    throw Error("bem: the capacitance matrix of " + std::to_string(n) + " bodies is singular");
  }
  return b;
}

/// The factor of each column in the density.
std::vector<double> factorsOf(const BemOptions& options, const BemMesh& mesh, const std::vector<double>& charges) {
  const int bodies = mesh.numBodies();
  std::vector<double> factors;
  if (options.problem == "uniform-field") {
    std::vector<double> ofField(charges.begin(), charges.begin() + bodies);
    for (double& charge : ofField) {
      charge = -charge;
    }
    factors = solved(std::vector<double>(charges.begin() + bodies, charges.end()), ofField);
    factors.insert(factors.begin(), 1.0);
  } else if (options.capacitanceMatrix) {
    for (int body = 0; body < bodies; ++body) {
      factors.push_back(potentialOf(options, body));
    }
  } else {
    factors.push_back(1);
  }
  return factors;
}

RCP<MultiVector> combined(const MultiVector& solutions, const std::vector<double>& factors, double scale) {
  auto density = rcp(new MultiVector(solutions.getMap(), 1));
  for (std::size_t column = 0; column < factors.size(); ++column) {
    density->update(scale * factors[column], *solutions.getVector(column), 1);
  }
  return density;
}

void evaluateConductors(const BemOptions& options, const BemMesh& mesh, const std::vector<double>& charges,
                        const std::vector<double>& factors, const MultiVector& density, PhysicsReport& report) {
  const int bodies = mesh.numBodies();
  report.bodies.resize(bodies);
  for (int triangle = 0; triangle < mesh.size(); ++triangle) {
    report.bodies[mesh.surface.bodyOf(triangle)].area += mesh.areas[triangle];
  }
  const std::vector<Point3> moments = dipoles(mesh, density);
  const std::vector<double> sums = integrals(mesh, density);
  for (int body = 0; body < bodies; ++body) {
    BodyResult& one = report.bodies[body];
    one.potential = options.problem == "uniform-field" ? factors[body + 1] : potentialOf(options, body);
    one.charge = sums[body];
    one.dipole = moments[body];
    report.energy += one.charge * one.potential / 2;
  }
  if (options.capacitanceMatrix) {
    report.capacitance.assign(bodies, std::vector<double>(bodies));
    for (int i = 0; i < bodies; ++i) {
      for (int j = 0; j < bodies; ++j) {
        report.capacitance[i][j] = epsilon0 * charges[static_cast<std::size_t>(j) * bodies + i];
      }
    }
  }
}

/// \note Collective.
void evaluateInterior(const BemOptions& options, const BemMesh& mesh, const MultiVector& density,
                      PhysicsReport& report) {
  const std::vector<Point3> points = interiorPoints(mesh.surface, std::clamp(20'000'000 / mesh.size(), 5, 100));
  std::vector<double> potentials(points.size());
  const auto values = density.getLocalViewHost(Tpetra::Access::ReadOnly);
  for (std::size_t p = 0; p < points.size(); ++p) {
    forOwned(density, [&](int triangle, int row) {
      const TriangleMesh& surface = mesh.surface;
      potentials[p] -=
          values(row, 0) / (4 * std::acos(-1.0)) *
          solidAngle(points[p], surface.corner(triangle, 0), surface.corner(triangle, 1), surface.corner(triangle, 2));
    });
  }
  sumOverRanks(potentials, mpiOf(density));
  double largest = 0, error = 0;
  for (const Point3& x : mesh.centroids) {
    largest = std::max(largest, std::abs(harmonicValue(options.boundaryValue, x)));
  }
  for (std::size_t p = 0; p < points.size(); ++p) {
    error = std::max(error, std::abs(potentials[p] - harmonicValue(options.boundaryValue, points[p])));
  }
  report.interiorPoints = static_cast<int>(points.size());
  report.interiorError = error / largest;
}

KnownValue known(const std::string& name, const std::string& formula, const std::string& unit, double value,
                 double expected) {
  return {name, formula, unit, value, expected, std::abs(value - expected) / std::abs(expected)};
}

void compareTwoSpheres(const BemOptions& options, PhysicsReport& report) {
  const TwoSphereCoefficients c = coefficientsOfTwoSpheres(radiusOf(options), options.distance);
  const double v0 = potentialOf(options, 0), v1 = potentialOf(options, 1);
  const std::string formula = "method of images";
  report.known.push_back(known("charge of body 0", formula, "C", report.bodies[0].charge, c.self * v0 + c.mutual * v1));
  report.known.push_back(known("charge of body 1", formula, "C", report.bodies[1].charge, c.self * v1 + c.mutual * v0));
  if (!report.capacitance.empty()) {
    report.known.push_back(known("C(0, 0)", formula, "F", report.capacitance[0][0], c.self));
    report.known.push_back(known("C(0, 1)", formula, "F", report.capacitance[0][1], c.mutual));
  }
}

void compare(const BemOptions& options, PhysicsReport& report) {
  const double radius = radiusOf(options);
  const BodyResult& first = report.bodies.front();
  if (options.problem == "uniform-field" && options.geometry == "sphere") {
    const Point3 field{options.field[0], options.field[1], options.field[2]};
    const Point3 expected = polarizabilityOfSphere(radius) * field;
    report.known.push_back({"dipole moment", "4 pi epsilon_0 R^3 E", "C m", norm(first.dipole), norm(expected),
                            norm(first.dipole - expected) / norm(expected)});
  } else if (options.problem == "potential" && options.kernel == "yukawa" && options.geometry == "sphere") {
    report.known.push_back(known("charge", "4 pi epsilon_0 R phi 2 kappa R / (1 - exp(-2 kappa R))", "C", first.charge,
                                 yukawaChargeOfSphere(radius, options.kappa) * first.potential));
  } else if (options.problem == "potential" && options.kernel == "laplace-single-layer") {
    const double capacitance = first.charge / first.potential;
    if (options.geometry == "sphere") {
      report.known.push_back(known("capacitance", "4 pi epsilon_0 R", "F", capacitance, capacitanceOfSphere(radius)));
    } else if (options.geometry == "two-spheres") {
      compareTwoSpheres(options, report);
    } else if (options.geometry == "cylinder" && options.height <= 16 * radius) {
      report.known.push_back(known("capacitance", "Smythe's approximation, within 0.2 %", "F", capacitance,
                                   capacitanceOfCylinder(radius, options.height)));
    }
  }
}

}  // namespace

void requireFits(const BemOptions& options, const BemMesh& mesh) {
  const int bodies = mesh.numBodies();
  const int given = static_cast<int>(options.potentials.size());
  if (options.problem == "potential" && given != 1 && given != bodies) {
    throw BadInput("bem: --potentials has " + std::to_string(given) + " values, " + mesh.name + " has " +
                   std::to_string(bodies) + (bodies == 1 ? " body" : " bodies"));
  }
  if (options.solves() && firstBodyColumn(options) >= 0 && bodies > mostBodies) {
    throw BadInput("bem: " + mesh.name + " has " + std::to_string(bodies) + " bodies, each a right-hand side of " +
                   (options.capacitanceMatrix ? "--capacitance-matrix" : "--problem uniform-field") + "; up to " +
                   std::to_string(mostBodies) + " are solved for");
  }
}

RCP<MultiVector> rightHandSides(const BemOptions& options, const BemMesh& mesh, const Tpetra::Operator<>& A) {
  const int firstBody = firstBodyColumn(options);
  const int columns = firstBody < 0 ? 1 : firstBody + mesh.numBodies();
  const auto b = rcp(new MultiVector(A.getRangeMap(), static_cast<std::size_t>(columns)));
  if (options.problem == "none") {
    MultiVector ones(A.getDomainMap(), 1);
    ones.putScalar(1);
    A.apply(ones, *b);
    return b;
  }
  const auto values = b->getLocalViewHost(Tpetra::Access::OverwriteAll);
  forOwned(*b, [&](int triangle, int row) {
    const Point3& x = mesh.centroids[triangle];
    const int body = mesh.surface.bodyOf(triangle);
    for (int column = 0; column < columns; ++column) {
      values(row, column) = firstBody >= 0 && column == firstBody + body ? 1 : 0;
    }
    if (options.problem == "uniform-field") {
      values(row, 0) = alongField(options, x);
    } else if (options.problem == "interior") {
      values(row, 0) = harmonicValue(options.boundaryValue, x);
    } else if (!options.capacitanceMatrix) {
      values(row, 0) = potentialOf(options, body);
    }
  });
  return b;
}

RCP<MultiVector> evaluate(const BemOptions& options, const BemMesh& mesh, const MultiVector& solutions,
                          PhysicsReport& report) {
  if (options.problem == "none") {
    MultiVector difference(solutions.getMap(), 1);
    difference.putScalar(1);
    difference.update(-1, solutions, 1);
    report.solutionError = difference.getVector(0)->norm2() / std::sqrt(static_cast<double>(mesh.size()));
    return combined(solutions, {1}, 1);
  }
  if (options.problem == "interior") {
    const RCP<MultiVector> density = combined(solutions, {1}, 1);
    evaluateInterior(options, mesh, *density, report);
    return density;
  }
  const std::vector<double> charges = integrals(mesh, solutions);
  const std::vector<double> factors = factorsOf(options, mesh, charges);
  const RCP<MultiVector> density = combined(solutions, factors, epsilon0);
  evaluateConductors(options, mesh, charges, factors, *density, report);
  compare(options, report);
  return density;
}

}  // namespace Komvos::Program
