/// \file boundary_problem.hpp
/// What is asked of the densities: right-hand sides, and what follows from the solutions. SI units.
#pragma once

#include <Teuchos_RCP.hpp>
#include <string>
#include <vector>

#include "bem/bem_mesh.hpp"
#include "bem/bem_options.hpp"
#include "problem/problem.hpp"

namespace Komvos::Program {

struct BodyResult {
  double area = 0;
  double potential = 0;  ///< V
  double charge = 0;     ///< C
  Point3 dipole;         ///< C m, about the origin
};

/// A number that is known beforehand. \param error |value - expected| / |expected|
struct KnownValue {
  std::string name, formula, unit;
  double value = 0, expected = 0, error = 0;
};

struct PhysicsReport {
  std::vector<BodyResult> bodies;               ///< of conductors
  double energy = 0;                            ///< J, of problem "potential": the sum of charge * potential / 2
  std::vector<std::vector<double>> capacitance; /**< F: charge of body i with body j at 1 V and the others at 0 V;
                                                     empty if it was not asked for */
  int interiorPoints = 0;                       ///< of problem "interior"
  double interiorError = 0;                     ///< the largest there, as a part of the largest value on the surface
  double solutionError = 0;                     ///< of kernel "one-over-r": |x - 1| / |1|
  std::vector<KnownValue> known;
};

/// Refuses what the number of bodies does not allow, before the work. \throws BadInput
void requireFits(const BemOptions& options, const BemMesh& mesh);

/// One column for each right-hand side of the equations V s = phi, or (K - 1/2) mu = u. They are not scaled by
/// epsilon_0, so that numbers stay near one.
/// \param A the matrix, for its maps; it is applied for the kernel one-over-r only \note Collective.
Teuchos::RCP<MultiVector> rightHandSides(const BemOptions& options, const BemMesh& mesh, const Tpetra::Operator<>& A);

/// The density on the triangles, combined of the solutions, and what is known about it.
/// \return one column, C/m^2 for conductors \note Collective.
Teuchos::RCP<MultiVector> evaluate(const BemOptions& options, const BemMesh& mesh, const MultiVector& solutions,
                                   PhysicsReport& report);

}  // namespace Komvos::Program
