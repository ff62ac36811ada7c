// The capacitance of a sphere by boundary elements: a dense matrix that is never stored whole.
//
// A charge density is constant on each triangle, and the potential shall be one volt at each centroid. The matrix of
// that is dense; as a hierarchical matrix it takes a few percent of the memory, and is a Tpetra::Operator for Belos.
//
//   mpirun -n 4 ./10_boundary_elements
#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <Komvos_BoundaryKernels.hpp>
#include <Komvos_HMatrixOperator.hpp>
#include <Komvos_MeshGenerators.hpp>
#include <Tpetra_Core.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using Vector = Tpetra::MultiVector<>;
using Operator = Tpetra::Operator<>;

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  const auto comm = Tpetra::getDefaultComm();

  const Komvos::TriangleMesh mesh = Komvos::sphereMesh(5000);  // of radius 1; or readMesh("body.stl")
  const Komvos::LaplaceSingleLayer kernel(mesh);
  const Komvos::ClusterTree tree(centroidsOf(mesh), boxesOf(mesh));
  Komvos::HMatrixOptions options;
  options.lowRank.accuracy = 1e-5;
  const auto A = Teuchos::rcp(new Komvos::HMatrixOperator<>(comm, tree, kernel, options));

  const auto density = Teuchos::rcp(new Vector(A->getDomainMap(), 1));
  const auto potential = Teuchos::rcp(new Vector(A->getRangeMap(), 1));
  potential->putScalar(1);
  const auto problem = Teuchos::rcp(new Belos::LinearProblem<double, Vector, Operator>(A, density, potential));
  problem->setProblem();
  const auto parameters = Teuchos::parameterList();
  parameters->set("Convergence Tolerance", 1e-8);
  Belos::SolverFactory<double, Vector, Operator> factory;
  const auto solver = factory.create("GMRES", parameters);
  solver->setProblem(problem);
  const bool converged = solver->solve() == Belos::Converged;

  // Index i of the maps is triangle i of the mesh.
  const std::vector<double> areas = areasOf(mesh);
  Vector area(A->getDomainMap(), 1);
  for (std::size_t i = 0; i < density->getLocalLength(); ++i) {
    const auto row = static_cast<int>(i);
    area.replaceLocalValue(row, 0, areas[static_cast<std::size_t>(area.getMap()->getGlobalElement(row))]);
  }
  const double charge = area.getVector(0)->dot(*density->getVector(0)), exact = 4 * std::acos(-1.0);
  if (comm->getRank() == 0) {
    std::printf("%d triangles in %.1f %% of the memory: charge %.4f, exact %.4f, %d iterations\n", mesh.numTriangles(),
                100 * A->report().compression, charge, exact, solver->getNumIters());
  }
  return converged && std::abs(charge / exact - 1) < 2e-3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
