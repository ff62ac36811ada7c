// Iterations and true residuals on systems of many kinds, beside Belos' BICGSTAB.
#include <gtest/gtest.h>

#include <MueLu_CreateTpetraPreconditioner.hpp>
#include <cmath>
#include <functional>
#include <string>

#include "support/solve_support.hpp"

namespace {

using namespace KomvosTest;

struct Case {
  const char* name;
  std::function<RCP<Matrix>()> matrix;
  bool multigrid = false;
};

Case flow(const char* name, GO n, double peclet, Wind wind, bool upwind) {
  return {name, [=] { return convectionDiffusion(n, peclet, wind, upwind); }};
}

const Case cases[] = {
    flow("Peclet01", 60, 0.1, slantedWind, false),
    flow("Peclet1", 60, 1, slantedWind, false),
    flow("Peclet10", 60, 10, slantedWind, false),
    flow("Peclet100", 60, 100, slantedWind, false),
    flow("Peclet1000", 60, 1000, slantedWind, false),
    flow("Peclet1000Upwind", 60, 1000, slantedWind, true),
    flow("Recirculating10", 60, 10, recirculatingWind, false),
    flow("Recirculating100", 60, 100, recirculatingWind, false),
    flow("Recirculating1000", 60, 1000, recirculatingWind, true),
    {"Cavity100", [] { return cavity(10, 100); }},
    {"PoissonWithMueLu", [] { return convectionDiffusion(80, 0, slantedWind, false); }, true},
    {"RecirculatingWithMueLu", [] { return convectionDiffusion(80, 20, recirculatingWind, false); }, true},
};

struct System {
  RCP<Matrix> A;
  RCP<const Operator> preconditioner;
  RCP<Vector> b;

  explicit System(const Case& one) : A(one.matrix()), b(rightHandSide(*A)) {
    if (one.multigrid) {
      Teuchos::ParameterList list;
      list.set("verbosity", "none");
      list.set("coarse: max size", 100);
      preconditioner = MueLu::CreateTpetraPreconditioner(RCP<Operator>(A), list);
    }
  }
  Outcome solve(const std::string& solver, const std::string& variant) const {
    return solveByName(solver, parameters(1e-10, 4000, variant), A, preconditioner, *b);
  }
};

// Rounding errors change the counts of a BiCGStab by a tenth and more, as the number of ranks does with Belos' own.
TEST(Problems, TakeAboutAsManyIterationsAsBelosAndReachTheTrueResidual) {
  for (const char* variant : {"pipelined", "merged"}) {
    double logarithms = 0;
    int compared = 0;
    for (const Case& one : cases) {
      SCOPED_TRACE(std::string(one.name) + ", " + variant);
      const System system(one);
      const Outcome belos = system.solve("BICGSTAB", ""), ours = system.solve("PIPELINED BICGSTAB", variant);
      EXPECT_TRUE(ours.converged);
      EXPECT_LE(ours.residual, 1.05e-10);
      EXPECT_NEAR(ours.achieved, ours.residual, 5e-12);
      if (belos.converged) {
        EXPECT_LE(ours.iterations, 1.5 * belos.iterations + 2);
        logarithms += std::log(double(ours.iterations) / belos.iterations);
        ++compared;
      }
    }
    ASSERT_GT(compared, 9);
    EXPECT_LE(std::exp(logarithms / compared), 1.1) << variant << ": geometric mean of the ratios of iterations";
  }
}

}  // namespace
