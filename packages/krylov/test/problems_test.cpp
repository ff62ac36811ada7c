// Iterations and true residuals on systems of many kinds, beside Belos' BICGSTAB.
#include <Trilinos_version.h>
#include <gtest/gtest.h>

#include <MatrixMarket_Tpetra.hpp>
#include <MueLu_CreateTpetraPreconditioner.hpp>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "support/solve_support.hpp"

#ifdef KOMVOS_HAVE_HMATRIX
#include "Komvos_BoundaryKernels.hpp"
#include "Komvos_HMatrixOperator.hpp"
#include "Komvos_HMatrixPreconditioner.hpp"
#include "Komvos_MeshGenerators.hpp"
#endif

namespace {

using namespace KomvosTest;

struct System {
  RCP<const Operator> A, preconditioner;

  explicit System(RCP<const Operator> op, RCP<const Operator> prec = Teuchos::null)
      : A(std::move(op)), preconditioner(std::move(prec)) {}
  Outcome solve(const std::string& solver, const std::string& variant, const Vector& b) const {
    return solveByName(solver, parameters(1e-10, 4000, variant), A, preconditioner, b);
  }
};

struct Case {
  const char* name;
  std::function<System()> make;
  bool isAlsoReplicated = false;
  int rightHandSides = 1;  // one after another; the bound on iterations is for the first, and for all together
};

Case flow(const char* name, GO n, double peclet, Wind wind, bool upwind, bool isAlsoReplicated = false) {
  return {name, [=] { return System(convectionDiffusion(n, peclet, wind, upwind)); }, isAlsoReplicated};
}

System withMultigrid(const RCP<Matrix>& A) {
  Teuchos::ParameterList list;
  list.set("verbosity", "none");
  list.set("coarse: max size", 100);
  return System(A, MueLu::CreateTpetraPreconditioner(RCP<Operator>(A), list));
}

/// One of the matrices that are shipped, with Jacobi.
System shipped(const char* name) {
  const auto A = Tpetra::MatrixMarket::Reader<Matrix>::readSparseFile(
      std::string(KOMVOS_TEST_DATA_DIR "/matrices/") + name + ".mtx", Tpetra::getDefaultComm());
  return System(A, rcp(new Jacobi(*A)));
}

#ifdef KOMVOS_HAVE_HMATRIX
/// Charges on two spheres, and the diagonal as preconditioner.
System boundaryElements() {
  const Komvos::TriangleMesh mesh = Komvos::twoSpheresMesh(1200);
  const Komvos::LaplaceSingleLayer kernel(mesh);
  const Komvos::ClusterTree tree(Komvos::centroidsOf(mesh), Komvos::boxesOf(mesh));
  const auto comm = Tpetra::getDefaultComm();
  const auto A = rcp(new Komvos::HMatrixOperator<>(comm, tree, kernel));
  Komvos::HMatrixPreconditionerOptions options;
  options.kind = Komvos::HMatrixPreconditionerKind::Diagonal;
  return System(A, rcp(new Komvos::HMatrixPreconditioner<>(A->getDomainMap(), tree, kernel, options)));
}
#endif

const Case cases[] = {
    flow("Peclet01", 60, 0.1, slantedWind, false),
    flow("Peclet1", 60, 1, slantedWind, false),
    flow("Peclet10", 60, 10, slantedWind, false, true),
    flow("Peclet100", 60, 100, slantedWind, false),
    flow("Peclet1000", 60, 1000, slantedWind, false),
    flow("Peclet1000Upwind", 60, 1000, slantedWind, true, true),
    flow("Recirculating10", 60, 10, recirculatingWind, false),
    flow("Recirculating100", 60, 100, recirculatingWind, false),
    flow("Recirculating1000", 60, 1000, recirculatingWind, true),
    // 200 unknowns, 400 to 800 iterations, with another order of sums a third more or less: several right-hand sides.
    {"Cavity100", [] { return System(cavity(10, 100)); }, true, 9},
// The sparse matrix products of Kokkos Kernels 3.4, which set a hierarchy up, end in an illegal access on an H200.
#if !defined(KOKKOS_ENABLE_CUDA) || TRILINOS_MAJOR_MINOR_VERSION >= 140000
    {"PoissonWithMueLu", [] { return withMultigrid(convectionDiffusion(80, 0, slantedWind, false)); }, true},
    {"RecirculatingWithMueLu", [] { return withMultigrid(convectionDiffusion(80, 20, recirculatingWind, false)); }},
#endif
    {"BodyHeat", [] { return shipped("body_heat"); }},
    {"PowerGrid2000", [] { return shipped("dcpf_case_ACTIVSg2000"); }, true},
#ifdef KOMVOS_HAVE_HMATRIX
    {"BoundaryElements", boundaryElements, true},
#endif
};

/// Of all cases that the variants are for.
void expectAboutAsManyIterations(const std::vector<const char*>& variants, bool areReplicated) {
  std::vector<double> logarithms(variants.size(), 0);
  int compared = 0;
  for (const Case& one : cases) {
    if (areReplicated && !one.isAlsoReplicated) {
      continue;
    }
    const System system = one.make();
    const RCP<Vector> sides = rightHandSide(*system.A, one.rightHandSides);
    std::vector<Outcome> belos;
    double ofBelos = 0;  // iterations
    for (int j = 0; j < one.rightHandSides; ++j) {
      belos.push_back(system.solve("BICGSTAB", "", *sides->getVector(j)));
      ofBelos += belos.back().converged ? belos.back().iterations : 0;
    }
    compared += ofBelos > 0 ? 1 : 0;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      SCOPED_TRACE(std::string(one.name) + ", " + variants[v]);
      double ofOurs = 0;  // where Belos' converges, too
      for (int j = 0; j < one.rightHandSides; ++j) {
        SCOPED_TRACE("right-hand side " + std::to_string(j));
        const Outcome ours = system.solve("PIPELINED BICGSTAB", variants[v], *sides->getVector(j));
        EXPECT_TRUE(ours.converged);
        EXPECT_LE(ours.residual, 1.05e-10);
        EXPECT_NEAR(ours.achieved, ours.residual, 1e-14) << "the true residual is what counts";
        if (belos[j].converged) {
          EXPECT_TRUE(j > 0 || ours.iterations <= 1.5 * belos[j].iterations + 2)
              << ours.iterations << " iterations, Belos' took " << belos[j].iterations;
          ofOurs += ours.iterations;
        }
      }
      if (ofBelos > 0) {
        EXPECT_LE(ofOurs, 1.5 * ofBelos + 2);
        logarithms[v] += std::log(ofOurs / ofBelos);
      }
    }
  }
  ASSERT_GE(compared, areReplicated ? 5 : 12);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    EXPECT_LE(std::exp(logarithms[v] / compared), 1.1) << variants[v] << ": geometric mean of the ratios of iterations";
  }
}

// Rounding errors change the counts of a BiCGStab by a tenth and more, as the number of ranks does with Belos' own.
TEST(Problems, TakeAboutAsManyIterationsAsBelosAndReachTheTrueResidual) {
  expectAboutAsManyIterations({"pipelined", "merged"}, false);
}

TEST(Problems, SoWithReplicatedVectors) { expectAboutAsManyIterations({"replicated", "replicated-pipelined"}, true); }

}  // namespace
