// The coarse solver solves, says when it cannot, and makes MueLu's V-cycle right in parallel.
#include <SuiteSparse_config.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <Teuchos_DefaultSerialComm.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Distributor.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "Komvos_CoarseSolver.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_MueLuPreconditioner.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_NodeTopology.hpp"
#include "support/failing_kokkos.hpp"
#include "support/grid_support.hpp"
#include "support/mpi_counter.hpp"
#include "support/mpi_test_runner.hpp"

namespace {

using namespace KomvosTest;

Komvos::ExchangeOptions onPairs(Komvos::RouteChoice route) {
  Komvos::ExchangeOptions options;
  const int size = Tpetra::getDefaultComm()->getSize();
  options.topology = std::make_shared<const Komvos::NodeTopology>(Komvos::NodeTopology::uniform(size, 2));
  options.route = route;
  return options;
}

TEST(CoarseSolver, SolvesANonSymmetricSystemForSeveralRightHandSides) {
  const auto matrix = grid(30, 0.3);
  const Komvos::CoarseSolver solver(*matrix);
  for (const std::size_t columns : {1, 3, 1}) {
    Vector b(matrix->getRangeMap(), columns);
    Vector x(matrix->getDomainMap(), columns);
    b.randomize();
    x.putScalar(std::nan(""));
    solver.apply(b, x);
    EXPECT_LT(relativeResidual(*matrix, x, b), 1e-12);
  }
}

TEST(CoarseSolver, HonoursAlphaAndBeta) {
  const auto matrix = grid(9, 0.0);
  const Komvos::CoarseSolver solver(*matrix);
  Vector b(matrix->getRangeMap(), 1);
  Vector x(matrix->getDomainMap(), 1);
  Vector y(matrix->getDomainMap(), 1);
  b.randomize();
  solver.apply(b, x);
  y.putScalar(1.0);
  solver.apply(b, y, Teuchos::NO_TRANS, -2.0, 3.0);  // y = 3 - 2 x
  Vector rest(matrix->getDomainMap(), 1);
  rest.putScalar(-3.0);
  rest.update(1.0, y, 2.0, x, 1.0);
  EXPECT_LT(largestEntry(rest), 1e-12);
}

TEST(CoarseSolver, SaysOnEveryRankThatAMatrixIsSingular) {
  const auto matrix = grid(12, 0.0, true);
  try {
    const Komvos::CoarseSolver solver(*matrix);
    FAIL() << "a singular matrix was factored";
  } catch (const Komvos::BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("144 rows is singular"), std::string::npos) << error.what();
  }
}

TEST(CoarseSolver, KnowsSingularMatricesFromRegularOnesInAnyUnits) {
  for (const GO n : {2, 3, 4, 5, 8, 12, 20, 40}) {
    for (const double wind : {0.0, 0.3, 0.7}) {
      const auto singular = grid(n, wind, true);
      EXPECT_THROW(Komvos::CoarseSolver{*singular}, Komvos::BadInput) << n << " x " << n << ", wind " << wind;
      EXPECT_THROW(Komvos::CoarseSolver{*inOtherUnits(*singular)}, Komvos::BadInput) << n << " x " << n;
      const auto regular = inOtherUnits(*grid(n, wind));
      const Komvos::CoarseSolver solver(*regular);
      Vector b(regular->getRangeMap(), 1);
      Vector x(regular->getDomainMap(), 1);
      x.putScalar(1.0);
      regular->apply(x, b);
      x.putScalar(0.0);
      solver.apply(b, x);
      EXPECT_LT(relativeResidual(*regular, x, b), 1e-12) << n << " x " << n << ", wind " << wind;
    }
  }
}

TEST(CoarseSolver, NobodyWaitsForARankThatHasNoMemory) {
  const auto matrix = grid(12, 0.3);
  const Komvos::CoarseSolver solver(*matrix);
  const auto comm = matrix->getComm();
  std::size_t columns = 2;  // more each time, so that all vectors are too narrow
  for (const int guilty : {0, comm->getSize() - 1}) {
    for (int passes = 0, failed = 1; failed != 0; ++passes) {
      Vector b(matrix->getRangeMap(), columns);
      Vector x(matrix->getDomainMap(), columns++);
      b.randomize();
      failed = 0;
      try {
        if (comm->getRank() == guilty) {
          const KomvosTest::FailingKokkos failing(passes);
          solver.apply(b, x);
        } else {
          solver.apply(b, x);
        }
      } catch (const KomvosTest::KokkosFailure&) {
        EXPECT_EQ(guilty, comm->getRank());
        failed = 1;
      } catch (const Komvos::PlanMismatch&) {
        EXPECT_NE(guilty, comm->getRank());
      }
      MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      EXPECT_TRUE(failed != 0 || passes > 0) << "nothing failed";
      solver.apply(b, x);
      EXPECT_LT(relativeResidual(*matrix, x, b), 1e-12);
    }
  }
}

TEST(CoarseSolver, FactorsOnAllRanksOrOnNoneWhereOneHasNoMemoryForVectors) {
  const auto matrix = grid(12, 0.3);
  const auto other = grid(12, 0.2);
  const auto options = onPairs(Komvos::RouteChoice::threeStep);
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
  b.randomize();
  for (const int guilty : {0, matrix->getComm()->getSize() - 1}) {
    std::unique_ptr<Komvos::CoarseSolver> solver;
    const auto make = [&] { solver = std::make_unique<Komvos::CoarseSolver>(*matrix, options); };
    EXPECT_GT(failInTurn(guilty, "MV::", make, expectErrorOnAllOrNone, Failing::allocations), 5);
    solver->apply(b, x);
    EXPECT_LT(relativeResidual(*matrix, x, b), 1e-12);
    EXPECT_GT(failInTurn(
                  guilty, "MV::", [&] { solver->refactor(*other); }, expectErrorOnAllOrNone, Failing::allocations),
              1);
    solver->apply(b, x);
    EXPECT_LT(relativeResidual(*other, x, b), 1e-12);
  }
}

// KLU allocates by SuiteSparse's functions. These refuse a megabyte and more.
void* allocateLittle(std::size_t size) { return size < (1U << 20U) ? std::malloc(size) : nullptr; }
void* reallocateLittle(void* memory, std::size_t size) {
  return size < (1U << 20U) ? std::realloc(memory, size) : nullptr;
}

void setAllocation(void* (*allocate)(std::size_t), void* (*reallocate)(void*, std::size_t)) {
#if SUITESPARSE_MAIN_VERSION >= 6
  SuiteSparse_config_malloc_func_set(allocate);
  SuiteSparse_config_realloc_func_set(reallocate);
#else
  SuiteSparse_config.malloc_func = allocate;
  SuiteSparse_config.realloc_func = reallocate;
#endif
}

TEST(CoarseSolver, SaysOnEveryRankThatOneHasNoMemoryForItsFactors) {
  const auto matrix = grid(120, 0.3);
  const auto options = onPairs(Komvos::RouteChoice::threeStep);
  const auto comm = matrix->getComm();
  const int last = 2 * ((comm->getSize() - 1) / 2);  // the rank that solves on the last node
  for (const int guilty : {0, last}) {
    if (comm->getRank() == guilty) {
      setAllocation(allocateLittle, reallocateLittle);
    }
    try {
      const Komvos::CoarseSolver solver(*matrix, options);
      ADD_FAILURE() << "factored without memory on rank " << guilty;
    } catch (const Komvos::BadInput& error) {
      EXPECT_NE(std::string(error.what()).find("14400 rows needs more memory"), std::string::npos) << error.what();
    }
    setAllocation(std::malloc, std::realloc);
  }
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
  b.randomize();
  Komvos::CoarseSolver(*matrix, options).apply(b, x);
  EXPECT_LT(relativeResidual(*matrix, x, b), 1e-12);
}

TEST(CoarseSolver, AVectorThatDoesNotFitOnOneRankIsAnErrorOnAllAndNobodyWaits) {
  const auto matrix = grid(12, 0.3);
  const Komvos::CoarseSolver solver(*matrix);
  const auto comm = matrix->getComm();
  for (int guilty = 0; guilty < comm->getSize(); ++guilty) {
    const bool mine = comm->getRank() == guilty;
    Vector b(matrix->getRangeMap(), 2);
    Vector x(matrix->getDomainMap(), 2);
    const auto longer = rcp(new Map(b.getLocalLength() + 1, 0, rcp(new Teuchos::SerialComm<int>())));
    EXPECT_THROW(solver.apply(mine ? Vector(longer, 2) : b, x), Komvos::Error) << "rank " << guilty;
    b.randomize();
    solver.apply(b, x);
    EXPECT_LT(relativeResidual(*matrix, x, b), 1e-12);
  }
}

TEST(CoarseSolver, SolvesTheSameOnOneRankOnAFewAndOnOneOfEachNode) {
  const auto matrix = grid(13, 0.3);
  const int rank = matrix->getComm()->getRank(), nodes = (matrix->getComm()->getSize() + 1) / 2;
  // Nodes whose first rank solves; of 4 nodes and 3 solvers, the last one serves two nodes.
  const auto solvingNodes = [nodes](int solvers) {
    std::set<int> found;
    for (int s = 0; s < solvers && s < nodes; ++s) {
      found.insert(s * nodes / std::min(solvers, nodes));
    }
    return found;
  };
  Vector b(matrix->getRangeMap(), 2);
  Vector expected(matrix->getDomainMap(), 2);
  b.randomize();
  Komvos::CoarseSolver(*matrix).apply(b, expected);
  for (const Komvos::RouteChoice& route : {Komvos::RouteChoice::standard, Komvos::RouteChoice::threeStep}) {
    for (const int solvers : {1, 2, 3, 1000, Komvos::CoarseSolver::oneOnEachNode}) {
      const Komvos::CoarseSolver solver(*matrix, onPairs(route), solvers);
      const bool solves = rank % 2 == 0 && solvingNodes(solvers).count(rank / 2) > 0;
      EXPECT_EQ(solves, solver.factorEntries() > 0) << "rank " << rank << ", " << solvers << " solvers";
      Vector x(matrix->getDomainMap(), 2);
      solver.apply(b, x);
      EXPECT_LT(relativeResidual(*matrix, x, b), 1e-12);
      x.update(-1.0, expected, 1.0);
      EXPECT_EQ(0.0, largestEntry(x)) << "the same bits";
    }
  }
}

TEST(CoarseSolver, SendsSolutionsToTheNodesOfASolverOnly) {
  const auto matrix = grid(13, 0.3);
  const int rank = matrix->getComm()->getRank(), nodes = (matrix->getComm()->getSize() + 1) / 2;
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
  b.randomize();
  const int solvers = 2;
  const Komvos::CoarseSolver solver(*matrix, onPairs(Komvos::RouteChoice::standard), solvers);
  solver.apply(b, x);
  startCounting();
  solver.apply(b, x);
  const Counts counts = stopCounting();
  const auto partOf = [&](int node) { return nodes < solvers || node < nodes / solvers ? 0 : 1; };
  for (const SentMessage& one : counts.sent) {
    const int to = one.peer / 2;
    const bool toSolver = one.peer % 2 == 0 && (to == 0 || to == nodes / solvers);
    const bool fromSolver = rank % 2 == 0 && (rank / 2 == 0 || rank / 2 == nodes / solvers);
    EXPECT_TRUE(toSolver || (fromSolver && partOf(to) == partOf(rank / 2)) || to == rank / 2)
        << "rank " << rank << " to " << one.peer;
  }
}

TEST(CoarseSolver, RefusesToBeSolvedByNobody) {
  const auto matrix = grid(5, 0.3);
  EXPECT_THROW(Komvos::CoarseSolver(*matrix, {}, -1), Komvos::Error);
}

TEST(CoarseSolver, FactorsAgainWhereValuesHaveChanged) {
  const auto first = grid(12, 0.3);
  const auto second = withOtherValues(*first);
  const auto singular = grid(12, 0.0, true);
  Komvos::CoarseSolver solver(*first, onPairs(Komvos::RouteChoice::threeStep));
  const auto solves = [&](const Matrix& matrix) {
    Vector b(matrix.getRangeMap(), 1), x(matrix.getDomainMap(), 1);
    b.randomize();
    solver.apply(b, x);
    return relativeResidual(matrix, x, b) < 1e-12;
  };
  EXPECT_TRUE(solves(*first));
  solver.refactor(*second);
  EXPECT_TRUE(solves(*second));
  EXPECT_FALSE(solves(*first));
  ASSERT_TRUE(solver.hasSameGraph(*singular));
  EXPECT_THROW(solver.refactor(*singular), Komvos::BadInput);
  solver.refactor(*first);
  EXPECT_TRUE(solves(*first));
}

TEST(CoarseSolver, DoesNotFactorAgainWithEntriesInOtherPlaces) {
  const auto matrix = grid(12, 0.3);
  Komvos::CoarseSolver solver(*matrix);
  EXPECT_TRUE(solver.hasSameGraph(*matrix));
  const auto narrow = rcp(new Matrix(matrix->getRowMap(), 1));
  for (std::size_t row = 0; row < Komvos::Impl::localLength(*matrix->getRowMap()); ++row) {
    const GO id = matrix->getRowMap()->getGlobalElement(static_cast<int>(row));
    narrow->insertGlobalValues(id, Teuchos::tuple<GO>(id), Teuchos::tuple<double>(1.0));
  }
  narrow->fillComplete();
  EXPECT_FALSE(solver.hasSameGraph(*narrow));
  EXPECT_THROW(solver.refactor(*narrow), Komvos::BadInput);
}

TEST(CoarseSolver, SetsUpWithoutAMessageToRanksThatDoNotSolve) {
  const auto matrix = grid(9, 0.3);
  const auto options = onPairs(Komvos::RouteChoice::standard);
  const Komvos::CoarseSolver known(*matrix, options, 1);  // topology, tags
  startCounting();
  const Komvos::CoarseSolver solver(*matrix, options, 1);
  const Counts counts = stopCounting();
  EXPECT_EQ(0, counts.gathers);
  const int rank = matrix->getComm()->getRank();
  std::vector<int> neighbours;
  if (const auto importer = matrix->getCrsGraph()->getImporter(); !importer.is_null()) {
    const auto to = importer->getDistributor().getProcsTo();
    neighbours.assign(to.begin(), to.end());
  }
  for (const SentMessage& one : counts.sent) {
    const bool isOfSolversNode = one.peer < 2 || rank < 2;
    const bool isOfThisNode = one.peer / 2 == rank / 2;
    const bool isNeighbour = std::find(neighbours.begin(), neighbours.end(), one.peer) != neighbours.end();
    EXPECT_TRUE(isOfSolversNode || isOfThisNode || isNeighbour)
        << "rank " << rank << " to " << one.peer << ", " << one.bytes << " bytes";
  }
}

TEST(CoarseSolver, SolvesAMatrixOfOneRow) {
  const auto matrix = grid(1, 0.0);
  const Komvos::CoarseSolver solver(*matrix);
  Vector b(matrix->getRangeMap(), 1);
  Vector x(matrix->getDomainMap(), 1);
  b.putScalar(2.0);
  solver.apply(b, x);
  EXPECT_LT(relativeResidual(*matrix, x, b), 1e-15);
}

TEST(MueLuPreconditioner, ConvergesInFewIterationsOnAnyNumberOfRanks) {
  const auto matrix = grid(60, 0.0);
  Teuchos::ParameterList parameters;
  parameters.set("coarse: max size", 200);
  const Teuchos::ParameterList asGiven(parameters);
  int levels = 0;
  const auto preconditioner = Komvos::createMueLuPreconditioner(matrix, parameters, {}, {},
                                                                [&](int level, const std::string& name, const Matrix&) {
                                                                  levels = std::max(levels, level + 1);
                                                                  EXPECT_TRUE(name == "A" || level > 0);
                                                                });
  EXPECT_GE(levels, 2);
  EXPECT_TRUE(parameters == asGiven) << parameters;
  Vector b(matrix->getRangeMap(), 1);
  Vector x(matrix->getDomainMap(), 1);
  b.randomize();
  const int iterations = iterationsOf("CG", matrix, preconditioner, b, x);
  EXPECT_GT(iterations, 0);
  EXPECT_LE(iterations, 15);
  EXPECT_LT(relativeResidual(*matrix, x, b), 1e-7);

  // The same preconditioner with the node-aware matrix: the same number of iterations.
  Komvos::ExchangeOptions options;
  options.route = Komvos::RouteChoice::threeStep;
  options.topology =
      std::make_shared<Komvos::NodeTopology>(Komvos::NodeTopology::uniform(Tpetra::getDefaultComm()->getSize(), 2));
  x.putScalar(0.0);
  EXPECT_EQ(iterationsOf("CG", Komvos::makeNodeAware(matrix, options), preconditioner, b, x), iterations);
}

/// MueLu takes KLU2 for direct solvers that Amesos2 does not have, and reads names in any case.
TEST(MueLuPreconditioner, SolvesWhateverDirectSolverIsNamedForTheCoarsestLevel) {
  const auto matrix = grid(40, 0.0);
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
  b.randomize();
  Teuchos::ParameterList parameters;
  parameters.set("coarse: max size", 300);
  parameters.set("aggregation: deterministic", true);  // with threads, too
  const int expected = iterationsOf("CG", matrix, Komvos::createMueLuPreconditioner(matrix, parameters), b, x);
  for (const char* type : {"SuperLU", "superlu", "Superlu_dist", "klu2", "KLU", "Amesos2_KLU2", "Umfpack", "Basker",
                           "ShyLUBasker", "cuSOLVER"}) {
    parameters.set("coarse: type", type);
    x.putScalar(0.0);
    EXPECT_NEAR(expected, iterationsOf("CG", matrix, Komvos::createMueLuPreconditioner(matrix, parameters), b, x), 1)
        << type;
    EXPECT_LT(relativeResidual(*matrix, x, b), 1e-7) << type;
  }
}

TEST(MueLuPreconditioner, KeepsACoarseTypeThatTheUserChose) {
  const auto singular = grid(12, 0.0, true);  // one level
  Teuchos::ParameterList parameters;
  EXPECT_THROW(Komvos::createMueLuPreconditioner(singular, parameters), Komvos::BadInput);
  EXPECT_EQ(parameters.numParams(), 0);
  parameters.set("coarse: type", "RELAXATION");
  EXPECT_NO_THROW(Komvos::createMueLuPreconditioner(singular, parameters));
}

/// Amesos2's KLU2 has a parameter for singular matrices, ours has none.
TEST(MueLuPreconditioner, LeavesACoarseSolverWithParametersToMueLu) {
  const auto singular = grid(12, 0.0, true);  // one level
  Teuchos::ParameterList parameters;
  parameters.sublist("coarse: params").set("fix nullspace", true);
  EXPECT_NO_THROW(Komvos::createMueLuPreconditioner(singular, parameters));
  parameters.set("node-aware: coarse method", "mumps");
  EXPECT_THROW(Komvos::createMueLuPreconditioner(singular, parameters), Komvos::BadInput);
}

/// Two levels, the coarse one on few ranks.
Teuchos::ParameterList rebalanced(int coarseSize, int rowsPerRank) {
  Teuchos::ParameterList parameters;
  parameters.set("coarse: max size", coarseSize);
  parameters.set("max levels", 2);
  parameters.set("repartition: enable", true);
  parameters.set("repartition: partitioner", "zoltan2");
  parameters.set("repartition: start level", 1);
  parameters.set("repartition: min rows per proc", rowsPerRank);
  return parameters;
}

TEST(MueLuPreconditioner, SaysOnEveryRankThatTheCoarsestMatrixOfAFewIsSingular) {
  const GO n = 30;
  const auto singular = grid(n, 0.0, true);
  const auto points = gridPoints(singular->getRowMap(), n);
  const int size = singular->getComm()->getSize();
  Teuchos::ParameterList parameters = rebalanced(200, 1000);
  Teuchos::ParameterList relaxed(parameters);
  relaxed.set("coarse: type", "RELAXATION");
  int coarseRanks = 0;
  Komvos::createMueLuPreconditioner(singular, relaxed, {}, points,
                                    [&](int level, const std::string& name, const Matrix& matrix) {
                                      if (level == 1 && name == "A") {
                                        coarseRanks = matrix.getComm()->getSize();
                                      }
                                    });
  EXPECT_TRUE(size == 1 || coarseRanks < size) << "nothing was rebalanced";
  EXPECT_THROW(Komvos::createMueLuPreconditioner(singular, parameters, {}, points), Komvos::BadInput);
}

/// Ranks that level 1 has left do not know level 2.
TEST(MueLuPreconditioner, NobodyWaitsWhereALevelOfAFewRanksSaysHowItIsSolved) {
  const GO n = 60;
  const auto matrix = grid(n, 0.0);
  const auto points = gridPoints(matrix->getRowMap(), n);
  const int size = matrix->getComm()->getSize();
  Teuchos::ParameterList parameters = rebalanced(100, 300);  // two ranks share level 1
  parameters.set("max levels", 3);
  parameters.sublist("level 2").set("coarse: type", "CHEBYSHEV");
  int levels = 0, fewestRanks = size;
  const auto preconditioner = Komvos::createMueLuPreconditioner(
      matrix, parameters, {}, points, [&](int level, const std::string&, const Matrix& coarse) {
        levels = std::max(levels, level + 1);
        fewestRanks = std::min(fewestRanks, coarse.getComm()->getSize());
      });
  MPI_Allreduce(MPI_IN_PLACE, &levels, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &fewestRanks, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  EXPECT_EQ(3, levels);
  EXPECT_TRUE(size < 3 || fewestRanks < size) << "nothing was rebalanced";
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
  b.putScalar(1.0);
  preconditioner->apply(b, x);
  EXPECT_GT(x.getVector(0)->norm2(), 0);
}

/// The coarse level has a communicator of its own, or is empty on most ranks of the finest one.
TEST(MueLuPreconditioner, NobodyWaitsWhereOneOfAFewCoarseRanksHasNoMemory) {
  const GO n = 60;
  const auto matrix = grid(n, 0.0);
  const auto points = gridPoints(matrix->getRowMap(), n);
  const int size = matrix->getComm()->getSize();
  for (const bool hasOwnComm : {true, false}) {
    Teuchos::ParameterList parameters = rebalanced(1000, 300);  // two ranks share the coarse level
    parameters.set("repartition: use subcommunicators", hasOwnComm);
    int coarseRanks = 0, hasRows = 0;
    long coarseRows = 0;
    const auto preconditioner = Komvos::createMueLuPreconditioner(
        matrix, parameters, {}, points, [&](int level, const std::string& name, const Matrix& coarse) {
          if (level == 1 && name == "A") {
            coarseRanks = coarse.getComm()->getSize();
            hasRows = Komvos::Impl::localLength(*coarse.getRowMap()) > 0 ? 1 : 0;
            coarseRows = static_cast<long>(coarse.getGlobalNumRows());
          }
        });
    if (size < 3) {
      GTEST_SKIP() << "all ranks are needed for the coarse level";
    }
    int withRows = hasRows;
    MPI_Allreduce(MPI_IN_PLACE, &withRows, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &coarseRows, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    ASSERT_GT(withRows, 1);
    ASSERT_LT(withRows, size);
    EXPECT_EQ(hasOwnComm ? hasRows * withRows : size, coarseRanks);
    constexpr int columns = 3;  // the coarse solver has vectors for one column at most
    Vector b(matrix->getRangeMap(), columns), x(matrix->getDomainMap(), columns);
    b.randomize();
    {
      // A vector of all rows, which only the rank that solves has.
      const auto bytes = static_cast<std::uint64_t>(coarseRows) * columns * sizeof(double);
      const KomvosTest::FailingKokkos failing(0, bytes);
      preconditioner->apply(b, x);
    }
    EXPECT_TRUE(std::isnan(x.getVector(0)->norm2()));
    preconditioner->apply(b, x);
    EXPECT_FALSE(std::isnan(x.getVector(0)->norm2()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  ::testing::InitGoogleTest(&argc, argv);
  return KomvosTest::runAllTests();
}
