// MUMPS and SuperLU_DIST solve what Tpetra has distributed, and say when they cannot.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Teuchos_DefaultSerialComm.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_DirectSolver.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_MueLuPreconditioner.hpp"
#include "Komvos_NodeTopology.hpp"
#include "support/failing_kokkos.hpp"
#include "support/grid_support.hpp"
#include "support/matrix_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::DirectMethod;
using Komvos::DirectOptions;
using Komvos::DirectSolver;

class Direct : public ::testing::TestWithParam<DirectMethod> {
 protected:
  void SetUp() override {
    if (!DirectSolver::isAvailable(GetParam())) {
      GTEST_SKIP() << "compiled without " << Komvos::toString(GetParam());
    }
  }
};

double residualOf(const DirectSolver& solver, const Matrix& matrix, std::size_t columns) {
  Vector b(matrix.getRangeMap(), columns);
  Vector x(matrix.getDomainMap(), columns);
  b.randomize();
  x.putScalar(std::nan(""));
  solver.apply(b, x);
  return relativeResidual(matrix, x, b);
}

DirectOptions onPairs(const Komvos::RouteChoice& route) {
  DirectOptions options;
  const int size = Tpetra::getDefaultComm()->getSize();
  options.exchange.topology = std::make_shared<const Komvos::NodeTopology>(Komvos::NodeTopology::uniform(size, 2));
  options.exchange.route = route;
  return options;
}

TEST_P(Direct, SolvesANonSymmetricSystemForSeveralRightHandSides) {
  const auto matrix = grid(40, 0.3);
  const DirectSolver solver(*matrix, GetParam());
  for (const std::size_t columns : {1, 3, 1}) {
    EXPECT_LT(residualOf(solver, *matrix, columns), 1e-12);
  }
}

TEST_P(Direct, SolvesWithHalfOfASymmetricMatrix) {
  const auto matrix = grid(40, 0.0);
  DirectOptions options;
  options.symmetric = true;
  const DirectSolver half(*matrix, GetParam(), options);
  EXPECT_LT(residualOf(half, *matrix, 2), 1e-12);
  const DirectSolver whole(*matrix, GetParam());
  if (GetParam() == DirectMethod::mumps) {
    EXPECT_LT(half.report().factorEntries, 0.7 * whole.report().factorEntries);
  }
  EXPECT_GT(half.report().factorEntries, 1600);
  EXPECT_GT(half.report().operations, 1e4);
  EXPECT_GT(half.report().largestMemory, 8 * 1600 / Tpetra::getDefaultComm()->getSize());
}

TEST_P(Direct, FindsOutThatAMatrixIsNotSymmetric) {
  DirectOptions options;
  options.symmetric = true;
  try {
    const DirectSolver solver(*grid(20, 0.3), GetParam(), options);
    EXPECT_EQ(DirectMethod::superluDist, GetParam()) << "half of the matrix was enough";  // this reads all of it
  } catch (const Komvos::BadInput& error) {
    EXPECT_EQ(DirectMethod::mumps, GetParam());
    EXPECT_NE(std::string(error.what()).find("not symmetric"), std::string::npos) << error.what();
  }
}

TEST_P(Direct, SolutionsAreTheSameOnAllRoutes) {
  const auto matrix = grid(30, 0.3);
  Vector b(matrix->getRangeMap(), 2), expected(matrix->getDomainMap(), 2), x(matrix->getDomainMap(), 2);
  b.randomize();
  DirectSolver(*matrix, GetParam(), onPairs(Komvos::RouteChoice::standard)).apply(b, expected);
  for (const Komvos::RouteChoice& route : {Komvos::RouteChoice::threeStep, Komvos::RouteChoice::twoStep}) {
    const DirectSolver solver(*matrix, GetParam(), onPairs(route));
    solver.apply(b, x);
    x.update(-1.0, expected, 1.0);
    // Libraries may add in the order that messages arrive in.
    EXPECT_LT(largestEntry(x), 1e-11) << toString(route);
  }
}

TEST_P(Direct, HonoursAlphaAndBeta) {
  const auto matrix = grid(9, 0.0);
  const DirectSolver solver(*matrix, GetParam());
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  solver.apply(b, x);
  y.putScalar(1.0);
  solver.apply(b, y, Teuchos::NO_TRANS, -2.0, 3.0);  // y = 3 - 2 x
  Vector rest(matrix->getDomainMap(), 1);
  rest.putScalar(-3.0);
  rest.update(1.0, y, 2.0, x, 1.0);
  EXPECT_LT(largestEntry(rest), 1e-12);
  EXPECT_THROW(solver.apply(b, y, Teuchos::TRANS), Komvos::BadInput);
}

/// \param words in the reason that each rank gives
void expectRefused(const Matrix& matrix, DirectMethod method, const std::string& words) {
  try {
    const DirectSolver solver(matrix, method);
    ADD_FAILURE() << "it was factored";
  } catch (const Komvos::BadInput& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST_P(Direct, SaysOnEveryRankThatAMatrixIsSingular) {
  for (const GO n : {2, 3, 5, 12, 20, 40}) {
    for (const double wind : {0.0, 0.3, 0.7}) {
      for (const auto& singular : {grid(n, wind, true), inOtherUnits(*grid(n, wind, true))}) {
        try {
          const DirectSolver solver(*singular, GetParam());
          FAIL() << "a singular matrix of " << n << " x " << n << " was factored, wind " << wind;
        } catch (const Komvos::BadInput& error) {
          EXPECT_NE(std::string(error.what()).find("singular"), std::string::npos) << error.what();
        }
      }
      const auto regular = inOtherUnits(*grid(n, wind));
      const DirectSolver solver(*regular, GetParam());
      Vector b(regular->getRangeMap(), 1), x(regular->getDomainMap(), 1);
      x.putScalar(1.0);
      regular->apply(x, b);
      x.putScalar(0.0);
      solver.apply(b, x);
      EXPECT_LT(relativeResidual(*regular, x, b), 1e-12) << n << " x " << n << ", wind " << wind;
    }
  }
}

TEST_P(Direct, SaysOnEveryRankThatAMatrixHasAnEmptyRow) {
  const auto map = unevenMap(100);
  const auto matrix = rcp(new Matrix(map, 1));
  for (std::size_t row = 0; row < Komvos::Impl::localLength(*map); ++row) {
    const GO id = map->getGlobalElement(static_cast<int>(row));
    if (id != 50) {
      matrix->insertGlobalValues(id, Teuchos::tuple<GO>(id), Teuchos::tuple<double>(2.0));
    }
  }
  matrix->fillComplete();
  EXPECT_THROW(DirectSolver(*matrix, GetParam()), Komvos::BadInput);
}

TEST_P(Direct, SaysOnEveryRankThatAnEntryIsNotANumber) {
  for (const double entry : {std::nan(""), HUGE_VAL}) {
    const auto matrix = grid(20, 0.3);
    matrix->resumeFill();
    if (matrix->getRowMap()->isNodeGlobalElement(210)) {
      matrix->replaceGlobalValues(210, Teuchos::tuple<GO>(210), Teuchos::tuple<double>(entry));
    }
    matrix->fillComplete(matrix->getDomainMap(), matrix->getRangeMap());
    EXPECT_THROW(DirectSolver(*matrix, GetParam()), Komvos::BadInput) << entry;
  }
}

/// The user's column map names it, though no row has an entry there.
TEST_P(Direct, SaysOnEveryRankThatAMatrixHasAnEmptyColumn) {
  const auto map = unevenMap(100);
  const auto matrix = rcp(new Matrix(map, map, 1));
  const int rows = static_cast<int>(Komvos::Impl::localLength(*map));
  for (int row = 0; row < rows; ++row) {
    const bool leavesColumn = map->getGlobalElement(row) == 50;
    const int column = !leavesColumn ? row : row > 0 ? row - 1 : row + 1;
    matrix->insertLocalValues(row, Teuchos::tuple<int>(column), Teuchos::tuple<double>(2.0));
  }
  matrix->fillComplete(map, map);
  expectRefused(*matrix, GetParam(), "column 50 is empty");
}

/// No row or column is empty, but rows and columns cannot be matched: 100 rows share column 0.
TEST_P(Direct, SaysOnEveryRankThatRowsAndColumnsDoNotMatch) {
  const GO half = 100;
  const auto map = unevenMap(2 * half);
  const auto matrix = rcp(new Matrix(map, 2));
  for (const GO row : globalIds(*map)) {
    if (row < half) {
      matrix->insertGlobalValues(row, Teuchos::tuple<GO>(0), Teuchos::tuple<double>(2.0));
    } else {
      matrix->insertGlobalValues(row, Teuchos::tuple<GO>(row - half, row), Teuchos::tuple<double>(1.0, 3.0));
    }
  }
  matrix->fillComplete();
  expectRefused(*matrix, GetParam(), "singular");
}

/// Each row has one entry, in the next column, and perhaps a zero on the diagonal; or the other way round.
TEST_P(Direct, SolvesWithoutADiagonalAlsoWhereZerosAreStored) {
  const GO n = 60;
  const auto map = unevenMap(n);
  const auto shifted = [&](double diagonal, double next) {
    const auto matrix = rcp(new Matrix(map, 2));
    for (const GO row : globalIds(*map)) {
      matrix->insertGlobalValues(row, Teuchos::tuple<GO>((row + 1) % n), Teuchos::tuple<double>(next * (2.0 + row)));
      if (!std::isnan(diagonal)) {
        matrix->insertGlobalValues(row, Teuchos::tuple<GO>(row), Teuchos::tuple<double>(diagonal));
      }
    }
    matrix->fillComplete();
    return matrix;
  };
  const auto without = shifted(NAN, 1.0);
  DirectSolver first(*without, GetParam());
  EXPECT_LT(residualOf(first, *without, 2), 1e-14);
  const auto zeros = shifted(0.0, 1.0);
  DirectSolver solver(*zeros, GetParam());
  EXPECT_LT(residualOf(solver, *zeros, 2), 1e-14);
  // Once for new pivots, once with those from before, and so on.
  for (const auto& [diagonal, next] :
       {std::pair(0.0, 2.0), std::pair(3.0, 0.0), std::pair(6.0, 1e-3), std::pair(0.0, 0.5), std::pair(200.0, 1.0),
        std::pair(1e-6, 1.0), std::pair(2e-6, 3.0)}) {
    const auto other = shifted(diagonal, next);
    solver.refactor(*other);
    EXPECT_LT(residualOf(solver, *other, 1), 1e-13) << diagonal << ", " << next;
  }
  EXPECT_THROW(solver.refactor(*shifted(0.0, 0.0)), Komvos::BadInput);
  solver.refactor(*zeros);
  EXPECT_LT(residualOf(solver, *zeros, 1), 1e-14);
}

TEST_P(Direct, FactorsAgainWhereValuesHaveChanged) {
  const auto first = grid(20, 0.3);
  const auto second = withOtherValues(*first);
  const auto singular = grid(20, 0.0, true);
  DirectSolver solver(*first, GetParam(), onPairs(Komvos::RouteChoice::threeStep));
  EXPECT_LT(residualOf(solver, *first, 1), 1e-12);
  for (int round = 0; round < 3; ++round) {
    solver.refactor(*second);
    EXPECT_LT(residualOf(solver, *second, 2), 1e-12);
    EXPECT_GT(residualOf(solver, *first, 1), 1e-3);
    solver.refactor(*first);
    EXPECT_LT(residualOf(solver, *first, 1), 1e-12);
  }
  ASSERT_TRUE(solver.hasSameGraph(*singular));
  EXPECT_THROW(solver.refactor(*singular), Komvos::BadInput);
  solver.refactor(*first);
  EXPECT_LT(residualOf(solver, *first, 1), 1e-12);
  EXPECT_THROW(solver.refactor(*grid(19, 0.3)), Komvos::BadInput);
}

TEST_P(Direct, AVectorThatDoesNotFitOnOneRankIsAnErrorOnAllAndNobodyWaits) {
  const auto matrix = grid(12, 0.3);
  const DirectSolver solver(*matrix, GetParam());
  const auto comm = matrix->getComm();
  for (int guilty = 0; guilty < comm->getSize(); ++guilty) {
    Vector b(matrix->getRangeMap(), 2), x(matrix->getDomainMap(), 2);
    const auto longer = rcp(new Map(b.getLocalLength() + 1, 0, rcp(new Teuchos::SerialComm<int>())));
    EXPECT_THROW(solver.apply(comm->getRank() == guilty ? Vector(longer, 2) : b, x), Komvos::Error) << guilty;
    EXPECT_LT(residualOf(solver, *matrix, 2), 1e-12);
  }
}

TEST_P(Direct, NobodyWaitsForARankThatHasNoMemory) {
  const auto matrix = grid(12, 0.3);
  const DirectSolver solver(*matrix, GetParam(), onPairs(Komvos::RouteChoice::threeStep));
  const auto comm = matrix->getComm();
  std::size_t columns = 2;  // more each time, so that all vectors are too narrow
  for (const int guilty : {0, comm->getSize() - 1}) {
    for (int passes = 0, failed = 1; failed != 0; ++passes) {
      Vector b(matrix->getRangeMap(), columns), x(matrix->getDomainMap(), columns++);
      b.randomize();
      failed = 0;
      try {
        if (comm->getRank() == guilty) {
          const FailingKokkos failing(passes);
          solver.apply(b, x);
        } else {
          solver.apply(b, x);
        }
      } catch (const std::exception&) {
        failed = 1;
      }
      failed = largest(*comm, failed);
      EXPECT_TRUE(failed != 0 || passes > 0) << "nothing failed";
      solver.apply(b, x);
      EXPECT_LT(relativeResidual(*matrix, x, b), 1e-12) << passes;
    }
  }
}

TEST_P(Direct, FactorsOnAllRanksOrOnNoneWhereOneHasNoMemoryForVectors) {
  const auto matrix = grid(12, 0.3);
  const auto other = grid(12, 0.2);
  const auto options = onPairs(Komvos::RouteChoice::threeStep);
  for (const int guilty : {0, matrix->getComm()->getSize() - 1}) {
    std::unique_ptr<DirectSolver> solver;
    const auto make = [&] { solver = std::make_unique<DirectSolver>(*matrix, GetParam(), options); };
    EXPECT_GT(failInTurn(guilty, "MV::", make, expectErrorOnAllOrNone, Failing::allocations), 10);
    EXPECT_LT(residualOf(*solver, *matrix, 1), 1e-12);
    EXPECT_GT(failInTurn(
                  guilty, "MV::", [&] { solver->refactor(*other); }, expectErrorOnAllOrNone, Failing::allocations),
              5);
    EXPECT_LT(residualOf(*solver, *other, 1), 1e-12);
  }
}

TEST_P(Direct, SolvesAMatrixOfOneRow) {
  const auto matrix = grid(1, 0.0);
  EXPECT_LT(residualOf(DirectSolver(*matrix, GetParam()), *matrix, 1), 1e-15);
}

TEST_P(Direct, SolvesOnTheCoarsestLevelOfMueLu) {
  const auto matrix = grid(60, 0.0);
  Teuchos::ParameterList parameters;
  parameters.set("coarse: max size", 500);
  parameters.set("aggregation: deterministic", true);  // with threads, too
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
  b.randomize();
  const int expected = iterationsOf("CG", matrix, Komvos::createMueLuPreconditioner(matrix, parameters), b, x);
  parameters.set("node-aware: coarse method", Komvos::toString(GetParam()));
  parameters.set("use node-aware", true);
  Komvos::NodeAwareHierarchy made;
  const auto direct = Komvos::createMueLuPreconditioner(matrix, parameters, {}, {}, {}, {}, &made);
  EXPECT_TRUE(made.kept.empty()) << made.kept.front();
  x.putScalar(0.0);
  // With several threads rounding differs from run to run, and a residual may end on either side of the tolerance.
  EXPECT_NEAR(expected, iterationsOf("CG", matrix, direct, b, x), 1);
  EXPECT_LT(relativeResidual(*matrix, x, b), 1e-7);
}

TEST_P(Direct, ARefusalOnTheCoarsestLevelIsOneOnAllRanks) {
  const auto singular = grid(12, 0.0, true);  // one level
  Teuchos::ParameterList parameters;
  parameters.set("node-aware: coarse method", Komvos::toString(GetParam()));
  EXPECT_THROW(Komvos::createMueLuPreconditioner(singular, parameters), Komvos::BadInput);
  parameters.set("coarse: type", "RELAXATION");
  EXPECT_THROW(Komvos::createMueLuPreconditioner(singular, parameters), Komvos::BadInput);
}

INSTANTIATE_TEST_SUITE_P(Methods, Direct, ::testing::Values(DirectMethod::mumps, DirectMethod::superluDist),
                         [](const auto& one) { return one.param == DirectMethod::mumps ? "Mumps" : "SuperluDist"; });

TEST(DirectSolver, SaysOnEveryRankThatOneHasTooLittleMemory) {
  if (!DirectSolver::isAvailable(DirectMethod::mumps)) {
    GTEST_SKIP() << "compiled without MUMPS";
  }
  const auto matrix = grid(150, 0.3);
  DirectOptions options;
  options.memoryLimit = 1000000;
  try {
    const DirectSolver solver(*matrix, DirectMethod::mumps, options);
    FAIL() << "a megabyte was enough";
  } catch (const Komvos::BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("22500 rows needs more memory"), std::string::npos) << error.what();
  }
  options.memoryLimit = 1000000000;
  EXPECT_LT(residualOf(DirectSolver(*matrix, DirectMethod::mumps, options), *matrix, 1), 1e-12);
}

TEST(DirectSolver, RefusesWhatItCannotUse) {
  EXPECT_THROW(Komvos::parseDirectMethod("pardiso"), Komvos::BadInput);
  for (const DirectMethod method : {DirectMethod::mumps, DirectMethod::superluDist}) {
    EXPECT_EQ(method, Komvos::parseDirectMethod(Komvos::toString(method)));
    DirectOptions options;
    options.lookAhead = 0;
    EXPECT_THROW(DirectSolver(*grid(5, 0.0), method, options), Komvos::BadInput);
  }
  Teuchos::ParameterList parameters;
  parameters.set("node-aware: coarse method", "pardiso");
  EXPECT_THROW(Komvos::createMueLuPreconditioner(grid(5, 0.0), parameters), Komvos::BadInput);
}

}  // namespace
