// NodeAwareCrsMatrix::apply and residual against Tpetra's.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Teuchos_TimeMonitor.hpp>
#include <Tpetra_Details_Behavior.hpp>
#include <Tpetra_Details_residual.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_ProgressHook.hpp"
#include "support/matrix_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::NodeAwareCrsMatrix;
using Komvos::RouteChoice;

const double nan = std::numeric_limits<double>::quiet_NaN();

/// Calls work(matrix, node-aware matrix) for all matrices, topologies and routes.
template <class Work>
void onMatrices(const Work& work, const TeuchosComm& comm = Tpetra::getDefaultComm()) {
  int turn = 0;
  for (const NamedMatrix& one : matricesOn(comm)) {
    ++turn;  // each topology meets both routes, for their number may be even
    for (const NamedTopology& where : topologiesFor(comm->getSize())) {
      for (const RouteChoice& route : routesInTurn(comm->getSize(), ++turn)) {
        SCOPED_TRACE(one.name + ", " + where.name + (route == RouteChoice::standard ? ", standard" : ", three-step"));
        const NodeAwareCrsMatrix<> nodeAware(*one.matrix, optionsFor(where, route));
        work(*one.matrix, nodeAware);
      }
    }
  }
}

/// Calls work for one topology only.
template <class Work>
void onMatricesOfPairs(const Work& work) {
  const auto comm = Tpetra::getDefaultComm();
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  for (const NamedMatrix& one : matricesOn(comm)) {
    SCOPED_TRACE(one.name);
    const NodeAwareCrsMatrix<> nodeAware(*one.matrix, optionsFor(pairs, RouteChoice::threeStep));
    work(*one.matrix, nodeAware);
  }
}

/// What rounding errors are measured by: entries up to 6 in at most 10 places of a row (and as many rows shared with
/// other ranks), vectors up to 1000, factors up to 2.5.
const double scale = 1000 * 6 * 10 * 2.5;

void fillWithNan(Vector& vector) { vector.putScalar(nan); }

void checkApply(const Matrix& matrix, const Matrix& nodeAware, std::size_t columns, Teuchos::ETransp mode, double alpha,
                double beta) {
  const bool plain = mode == Teuchos::NO_TRANS;
  Vector x(plain ? matrix.getDomainMap() : matrix.getRangeMap(), columns);
  Vector theirs(plain ? matrix.getRangeMap() : matrix.getDomainMap(), columns);
  Vector ours(theirs.getMap(), columns);
  fill(x, 1);
  fill(theirs, 2);
  Tpetra::deep_copy(ours, theirs);
  if (beta == 0) {
    fillWithNan(ours);
  }
  matrix.apply(x, theirs, mode, alpha, beta);
  nodeAware.apply(x, ours, mode, alpha, beta);
  EXPECT_LE(difference(entries(theirs), entries(ours), scale), 1e-14)
      << columns << " columns, " << (plain ? "" : "transposed, ") << "alpha " << alpha << ", beta " << beta;
}

TEST(NodeAwareCrsMatrix, AppliesAsTpetraDoesWithEveryFactor) {
  onMatrices([](const Matrix& matrix, const Matrix& nodeAware) {
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      for (const double alpha : {1.0, 0.0, -2.5}) {
        for (const double beta : {0.0, 1.0, -2.5}) {
          checkApply(matrix, nodeAware, 1, mode, alpha, beta);
        }
      }
    }
  });
}

TEST(NodeAwareCrsMatrix, AppliesAsTpetraDoesToAnyNumberOfColumns) {
  onMatrices([](const Matrix& matrix, const Matrix& nodeAware) {
    for (const std::size_t columns : {1, 2, 3, 4, 5, 6, 3}) {
      checkApply(matrix, nodeAware, columns, Teuchos::NO_TRANS, 1, 0);
      checkApply(matrix, nodeAware, columns, Teuchos::NO_TRANS, -2.5, 1);
      checkApply(matrix, nodeAware, columns, Teuchos::TRANS, 1, -2.5);
    }
  });
}

const Komvos::Overlap overlaps[] = {Komvos::Overlap::none, Komvos::Overlap::interior, Komvos::Overlap::byNode,
                                    Komvos::Overlap::automatic};

TEST(NodeAwareCrsMatrix, HasTheSameBitsWhateverOverlaps) {
  const auto comm = Tpetra::getDefaultComm();
  int turn = 0;
  for (const NamedMatrix& one : matricesOn(comm)) {
    for (const NamedTopology& where : topologiesFor(comm->getSize())) {
      Komvos::ExchangeOptions options =
          optionsFor(where, ++turn % 2 == 0 ? RouteChoice::standard : RouteChoice::threeStep);
      for (const std::size_t columns : {1, 2, 7, 13}) {
        Vector x(one.matrix->getDomainMap(), columns);
        Vector y(one.matrix->getRangeMap(), columns);
        fill(x, 1);
        std::vector<double> first;
        for (const Komvos::Overlap overlap : overlaps) {
          SCOPED_TRACE(one.name + ", " + where.name + ", " + toString(overlap) + ", " + std::to_string(columns));
          options.overlap = overlap;
          const NodeAwareCrsMatrix<> nodeAware(*one.matrix, options);
          checkApply(*one.matrix, nodeAware, columns, Teuchos::NO_TRANS, -2.5, 0);
          checkApply(*one.matrix, nodeAware, columns, Teuchos::NO_TRANS, 1, -2.5);
          for (int k = 0; k < (overlap == Komvos::Overlap::automatic ? 20 : 1); ++k) {
            fillWithNan(y);
            nodeAware.apply(x, y);
            const std::vector<double> result = entries(y);
            first = first.empty() ? result : first;
            ASSERT_EQ(first, result) << "product " << k;
          }
          if (overlap != Komvos::Overlap::automatic && nodeAware.importHalo() != nullptr) {
            EXPECT_EQ(overlap, nodeAware.overlap(static_cast<int>(columns)));
          }
        }
      }
    }
  }
}

/// MPI alone does not know that the next part of a reduction can start, and a product lasts longer than its exchange.
TEST(NodeAwareCrsMatrix, CallsHooksBetweenAllItsRows) {
  if (!Komvos::Impl::runsOnHost<Matrix::execution_space>()) {
    GTEST_SKIP() << "a kernel on a device is one piece";
  }
  const auto comm = Tpetra::getDefaultComm();
  const GO rowsOfRank = 8000;
  const auto rows = rowsOf(rowsOfRank * comm->getSize(), false, false, 1, comm);
  const auto matrix = laplace(20, 20, 20 * comm->getSize(), 0, rows);
  const int pieces =
      static_cast<int>(matrix->getLocalMatrixDevice().nnz()) / (8192 * Matrix::execution_space().concurrency());
  Vector x(matrix->getDomainMap(), 1), y(matrix->getRangeMap(), 1);
  fill(x, 1);
  const double* const result = y.getLocalViewHost(Tpetra::Access::ReadOnly).data();
  std::set<std::ptrdiff_t> rowsDone;  // whenever it was called
  Komvos::Impl::ProgressHook hook([&] {
    rowsDone.insert(rowsOfRank - std::count_if(result, result + rowsOfRank, [](double v) { return v != v; }));
  });
  for (const NamedTopology& where : topologiesFor(comm->getSize())) {
    for (const Komvos::Overlap overlap : {Komvos::Overlap::none, Komvos::Overlap::interior, Komvos::Overlap::byNode}) {
      SCOPED_TRACE(where.name + ", " + toString(overlap));
      Komvos::ExchangeOptions options = optionsFor(where, RouteChoice::standard);
      options.overlap = overlap;
      const NodeAwareCrsMatrix<> nodeAware(*matrix, options);
      if (nodeAware.importHalo() == nullptr) {
        continue;
      }
      fillWithNan(y);
      rowsDone.clear();
      hook.switchOn(true);
      nodeAware.apply(x, y);
      hook.switchOn(false);
      EXPECT_GE(static_cast<int>(rowsDone.size()), pieces);
      EXPECT_EQ(rowsOfRank, *rowsDone.rbegin()) << "after the last rows, too";
    }
  }
}

TEST(NodeAwareCrsMatrix, DoesNotReadXWhereAlphaIsZero) {
  onMatricesOfPairs([](const Matrix& matrix, const Matrix& nodeAware) {
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      const bool plain = mode == Teuchos::NO_TRANS;
      Vector x(plain ? matrix.getDomainMap() : matrix.getRangeMap(), 2);
      Vector theirs(plain ? matrix.getRangeMap() : matrix.getDomainMap(), 2);
      fillWithNan(x);
      for (const double beta : {0.0, 1.0}) {
        fill(theirs, 2);
        Vector ours(theirs, Teuchos::Copy);
        matrix.apply(x, theirs, mode, 0, beta);
        nodeAware.apply(x, ours, mode, 0, beta);
        EXPECT_LE(difference(entries(theirs), entries(ours), scale), 1e-14)
            << "beta " << beta << ", transposed " << !plain;
      }
    }
  });
}

/// Columns 0, 3, 5 of a vector of seven: no constant stride.
RCP<Vector> someColumns(Vector& wide) {
  Teuchos::Array<std::size_t> columns(3);
  columns[0] = 0;
  columns[1] = 3;
  columns[2] = 5;
  return wide.subViewNonConst(columns());
}

TEST(NodeAwareCrsMatrix, TakesScatteredAndConsecutiveColumnsOfLargerVectors) {
  // Tpetra 13.2 itself refuses scattered columns of X in some transposed applies: it gets contiguous copies.
  const auto copyOf = [](const Vector& vector) { return Vector(vector, Teuchos::Copy); };
  onMatricesOfPairs([&](const Matrix& matrix, const Matrix& nodeAware) {
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      const bool plain = mode == Teuchos::NO_TRANS;
      Vector x(plain ? matrix.getDomainMap() : matrix.getRangeMap(), 7);
      Vector y(plain ? matrix.getRangeMap() : matrix.getDomainMap(), 7);
      fill(x, 1);
      fill(y, 2);
      const Teuchos::Range1D range(1, 3);
      const auto check = [&](const Vector& from, Vector& to, double alpha, double beta, const std::string& what) {
        Vector theirs = copyOf(to);
        matrix.apply(copyOf(from), theirs, mode, alpha, beta);
        nodeAware.apply(from, to, mode, alpha, beta);
        EXPECT_LE(difference(entries(theirs), entries(to), scale), 1e-14) << what << ", transposed " << !plain;
      };
      const auto before = entries(y);
      check(*someColumns(x), *someColumns(y), 1, -2.5, "scattered to scattered");
      check(*someColumns(x), *y.subViewNonConst(range), 1, 1, "scattered to consecutive");
      check(*x.subView(range), *someColumns(y), -2.5, 0, "consecutive to scattered");
      const auto after = entries(y);
      for (std::size_t i = 0, rows = after.size() / 7; i < rows; ++i) {
        for (const std::size_t untouched : {4, 6}) {
          EXPECT_EQ(before[untouched * rows + i], after[untouched * rows + i]);
        }
      }
    }
  });
}

TEST(NodeAwareCrsMatrix, ForgetsWhatIsNotANumber) {
  onMatricesOfPairs([](const Matrix& matrix, const Matrix& nodeAware) {
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      for (const std::size_t columns : {1, 2}) {
        const bool plain = mode == Teuchos::NO_TRANS;
        Vector x(plain ? matrix.getDomainMap() : matrix.getRangeMap(), columns);
        Vector y(plain ? matrix.getRangeMap() : matrix.getDomainMap(), columns);
        fillWithNan(x);
        nodeAware.apply(x, y, mode);
        checkApply(matrix, nodeAware, columns, mode, 1, 1);
      }
    }
  });
}

TEST(NodeAwareCrsMatrix, MayWriteOverItsInput) {
  onMatricesOfPairs([](const Matrix& matrix, const Matrix& nodeAware) {
    if (!matrix.getDomainMap()->isSameAs(*matrix.getRangeMap())) {
      return;
    }
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      Vector x(matrix.getDomainMap(), 3);
      fill(x, 1);
      Vector expected(x, Teuchos::Copy);
      matrix.apply(x, expected, mode, 1, -2.5);  // two vectors with the same entries
      nodeAware.apply(x, x, mode, 1, -2.5);
      EXPECT_LE(difference(entries(expected), entries(x), scale), 1e-14)
          << "transposed " << (mode != Teuchos::NO_TRANS);
      // Columns 0-2 onto columns 1-3 of one vector.
      Vector wide(matrix.getDomainMap(), 4);
      fill(wide, 3);
      const Vector from(*wide.subView(Teuchos::Range1D(0, 2)), Teuchos::Copy);
      Vector to(*wide.subView(Teuchos::Range1D(1, 3)), Teuchos::Copy);
      matrix.apply(from, to, mode, 1, 0);
      nodeAware.apply(*wide.subView(Teuchos::Range1D(0, 2)), *wide.subViewNonConst(Teuchos::Range1D(1, 3)), mode, 1, 0);
      EXPECT_LE(difference(entries(to), entries(*wide.subView(Teuchos::Range1D(1, 3))), scale), 1e-14);
    }
  });
}

TEST(NodeAwareCrsMatrix, ShowsValuesThatChangeLater) {
  onMatricesOfPairs([](const Matrix& matrix, const Matrix& nodeAware) {
    Matrix& original = const_cast<Matrix&>(matrix);
    checkApply(matrix, nodeAware, 2, Teuchos::NO_TRANS, 1, 0);
    Vector x(matrix.getDomainMap(), 1);
    Vector before(matrix.getRangeMap(), 1);
    Vector after(matrix.getRangeMap(), 1);
    fill(x, 1);
    nodeAware.apply(x, before);
    original.resumeFill();
    original.scale(3);
    original.fillComplete(matrix.getDomainMap(), matrix.getRangeMap());
    nodeAware.apply(x, after);
    before.scale(3);
    EXPECT_LE(difference(entries(before), entries(after), 3 * scale), 1e-14);
    checkApply(matrix, nodeAware, 2, Teuchos::TRANS, 1, 0);
    original.resumeFill();
    original.scale(1.0 / 3);
    original.fillComplete(matrix.getDomainMap(), matrix.getRangeMap());
  });
}

/// A ring with room for more entries in each row than it has, so that packed and unpacked storage differ.
RCP<Matrix> looselyStored(const TeuchosComm& comm, const RCP<Teuchos::ParameterList>& parameters) {
  const GO n = 20 * comm->getSize();
  const RCP<const Map> rows = rcp(new Map(n, 0, comm));
  const auto matrix = rcp(new Matrix(rows, 10));
  for (GO row = rows->getMinGlobalIndex(); row <= rows->getMaxGlobalIndex(); ++row) {
    const GO left = (row + n - 1) % n, right = (row + 1) % n;
    matrix->insertGlobalValues(row, Teuchos::tuple<GO>(left, row, right), Teuchos::tuple<double>(-1, 4, -2));
  }
  matrix->fillComplete(parameters);
  return matrix;
}

TEST(NodeAwareCrsMatrix, ShowsValuesThatChangeWhereStorageIsNotOptimized) {
  const auto comm = Tpetra::getDefaultComm();
  const auto loose = Teuchos::parameterList();
  loose->set("Optimize Storage", false);
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
    const auto matrix = looselyStored(comm, loose);
    ASSERT_FALSE(matrix->isStorageOptimized());
    const auto nodeAware = Komvos::makeNodeAware(matrix, optionsFor(pairs, route));
    const auto check = [&](const char* when) {
      SCOPED_TRACE(when);
      for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
        checkApply(*matrix, *nodeAware, 2, mode, 1, 0.5);
      }
      Vector x(matrix->getDomainMap(), 1), b(matrix->getRangeMap(), 1), r(matrix->getRangeMap(), 1);
      fill(x, 1);
      fill(b, 2);
      Vector expected(b, Teuchos::Copy);
      matrix->apply(x, expected, Teuchos::NO_TRANS, -1, 1);
      nodeAware->residual(x, b, r);
      EXPECT_LE(difference(entries(expected), entries(r), scale), 1e-14);
    };
    check("at first");
    double factor = 1;
    for (const auto& parameters : {loose, loose, RCP<Teuchos::ParameterList>()}) {
      matrix->resumeFill();
      matrix->scale(1.5);
      const GO row = matrix->getRowMap()->getMinGlobalIndex();
      matrix->replaceGlobalValues(row, Teuchos::tuple<GO>(row), Teuchos::tuple<double>(factor += 10));
      matrix->fillComplete(parameters);
      check(parameters.is_null() ? "after a change, now optimized" : "after a change");
    }
    matrix->resumeFill();
    matrix->scale(-0.5);
    matrix->fillComplete();
    check("after a change of what was optimized later");
  }
}

TEST(NodeAwareCrsMatrix, GivesTpetrasResidual) {
  onMatrices([](const Matrix& matrix, const Matrix& base) {
    const auto& nodeAware = dynamic_cast<const NodeAwareCrsMatrix<>&>(base);
    for (const std::size_t columns : {1, 3}) {
      Vector x(matrix.getDomainMap(), columns);
      Vector b(matrix.getRangeMap(), columns);
      Vector theirs(matrix.getRangeMap(), columns);
      Vector ours(matrix.getRangeMap(), columns);
      fill(x, 1);
      fill(b, 2);
      fillWithNan(ours);
      theirs.assign(b);
      matrix.apply(x, theirs, Teuchos::NO_TRANS, -1, 1);
      nodeAware.residual(x, b, ours);
      EXPECT_LE(difference(entries(theirs), entries(ours), scale), 1e-14) << columns << " columns";
      nodeAware.residual(x, b, b);  // onto the right-hand side
      EXPECT_LE(difference(entries(theirs), entries(b), scale), 1e-14) << columns << " columns, in place";
    }
    Vector x(matrix.getDomainMap(), 7);
    Vector b(matrix.getRangeMap(), 7);
    Vector ours(matrix.getRangeMap(), 7);
    fill(x, 1);
    fill(b, 2);
    Vector theirs(b, Teuchos::Copy);
    matrix.apply(*someColumns(x), *someColumns(theirs), Teuchos::NO_TRANS, -1, 1);
    nodeAware.residual(*someColumns(x), *someColumns(b), *someColumns(ours));
    EXPECT_LE(difference(entries(*someColumns(theirs)), entries(*someColumns(ours)), scale), 1e-14) << "scattered";
  });
}

/// R = B - A X against Tpetra on copies, where R may share entries with X or B. X and B may be changed by it.
void checkResidual(const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware, const Vector& x, const Vector& b,
                   Vector& r, const std::string& what) {
  Vector expected(b, Teuchos::Copy);
  matrix.apply(Vector(x, Teuchos::Copy), expected, Teuchos::NO_TRANS, -1, 1);
  nodeAware.residual(x, b, r);
  EXPECT_LE(difference(entries(expected), entries(r), scale), 1e-14) << what;
}

TEST(NodeAwareCrsMatrix, WritesResidualsOverTheRightHandSide) {
  const Teuchos::Range1D first(0, 2), next(1, 3);
  onMatricesOfPairs([&](const Matrix& matrix, const Matrix& base) {
    const auto& nodeAware = dynamic_cast<const NodeAwareCrsMatrix<>&>(base);
    Vector x(matrix.getDomainMap(), 3);
    Vector b(matrix.getRangeMap(), 7);
    fill(x, 1);
    fill(b, 2);
    checkResidual(matrix, nodeAware, x, *b.subView(first), *b.subViewNonConst(first), "the same columns");
    checkResidual(matrix, nodeAware, x, *b.subView(first), *b.subViewNonConst(next), "columns that overlap");
    checkResidual(matrix, nodeAware, x, *someColumns(b), *b.subViewNonConst(next), "scattered columns");
  });
}

TEST(NodeAwareCrsMatrix, WritesResidualsOverX) {
  const Teuchos::Range1D first(0, 2), next(1, 3);
  onMatricesOfPairs([&](const Matrix& matrix, const Matrix& base) {
    if (!matrix.getDomainMap()->isSameAs(*matrix.getRangeMap())) {
      return;
    }
    const auto& nodeAware = dynamic_cast<const NodeAwareCrsMatrix<>&>(base);
    Vector x(matrix.getDomainMap(), 7);
    Vector b(matrix.getRangeMap(), 3);
    fill(x, 1);
    fill(b, 2);
    const auto columns = x.subViewNonConst(first);
    checkResidual(matrix, nodeAware, *columns, b, *columns, "the same vector");
    checkResidual(matrix, nodeAware, *x.subView(first), b, *columns, "the same columns");
    fill(x, 1);
    checkResidual(matrix, nodeAware, *columns, b, *x.subViewNonConst(next), "columns that overlap");
    checkResidual(matrix, nodeAware, *someColumns(x), b, *columns, "scattered columns");
    fill(x, 1);
    checkResidual(matrix, nodeAware, *columns, *columns, *columns, "and over the right-hand side");
  });
}

TEST(NodeAwareCrsMatrix, SortsItsRowsByWhatTheyNeed) {
  onMatrices([](const Matrix& matrix, const Matrix& base) {
    const auto& nodeAware = dynamic_cast<const NodeAwareCrsMatrix<>&>(base);
    const auto counts = nodeAware.rowCounts();
    EXPECT_EQ(Komvos::Impl::localRows(matrix), counts.local + counts.onNode + counts.offNode);
    EXPECT_EQ(matrix.getGraph()->getImporter().is_null(), nodeAware.importHalo() == nullptr);
    EXPECT_EQ(matrix.getGraph()->getExporter().is_null(), nodeAware.exportHalo() == nullptr);
    // By definition: the furthest owner of a column of the row.
    std::size_t expected[3] = {0, 0, 0};
    std::vector<int> distance(Komvos::Impl::localLength(*matrix.getColMap()), 0);
    if (nodeAware.importHalo() != nullptr) {
      const auto& halo = *nodeAware.importHalo();
      std::fill(distance.begin() + halo.numSame(), distance.end(), 1);  // permuted: not in place
      for (const auto& delivery : halo.plan().deliveries) {
        distance[halo.numSame() + delivery.target] = delivery.onNode ? 1 : 2;
      }
    }
    const auto local = matrix.getLocalMatrixHost();
    for (LO row = 0; row < local.numRows(); ++row) {
      int furthest = 0;
      for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
        furthest = std::max(furthest, distance[local.graph.entries(k)]);
      }
      ++expected[furthest];
    }
    EXPECT_EQ(expected[0], counts.local);
    EXPECT_EQ(expected[1], counts.onNode);
    EXPECT_EQ(expected[2], counts.offNode);
  });
}

TEST(NodeAwareCrsMatrix, CountsTheLeastBytesOfAProduct) {
  if (!Komvos::Impl::runsOnHost<Komvos::DefaultNode::execution_space>()) {
    GTEST_SKIP() << "the rows of devices are stored otherwise";
  }
  const auto comm = Tpetra::getDefaultComm();
  const auto rows = rowsOf(30 * comm->getSize(), false, false, 1, comm);
  const auto check = [](const Matrix& matrix, std::size_t bytesOfMatrix) {
    const NodeAwareCrsMatrix<> nodeAware(matrix);
    const std::size_t length = Komvos::Impl::localLength(*matrix.getColMap()) + Komvos::Impl::localRows(matrix);
    for (const int columns : {1, 3}) {
      EXPECT_EQ(bytesOfMatrix + length * columns * 8, nodeAware.leastProductBytes(columns));
    }
  };
  // No two rows have the same columns: each entry a value and an index, each row a length.
  const auto line = laplace(30 * comm->getSize(), 1, 1, 0, rows);
  check(*line, Komvos::Impl::localEntries(*line) * (8 + 4) + 30 * 4);
  // Dense blocks of three rows: an index for each column of a block, and one number for the block.
  const auto blocks = rcp(new Matrix(rows, 3));
  fillRows(*blocks, [](GO row, const auto& add) {
    for (GO k = 0; k < 3; ++k) {
      add(row / 3 * 3 + k, 1);
    }
  });
  blocks->fillComplete();
  check(*blocks, 30 * 3 * 8 + 10 * (3 + 1) * 4);
}

TEST(NodeAwareCrsMatrix, OutlivesTheOriginalAndComesInOneLine) {
  const auto comm = Tpetra::getDefaultComm();
  const auto rows = rowsOf(40 * comm->getSize(), false, false, 1, comm);
  Teuchos::RCP<const Matrix> original = laplace(40, comm->getSize(), 1, 0, rows);
  const auto copy = laplace(40, comm->getSize(), 1, 0, rows);
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  const auto nodeAware = Komvos::makeNodeAware(original, optionsFor(pairs, RouteChoice::threeStep));
  original = Teuchos::null;
  checkApply(*copy, *nodeAware, 2, Teuchos::NO_TRANS, 1, 0);
}

/// As in the next step in time: on a graph that is equal, or the same.
TEST(NodeAwareCrsMatrix, ReusesTheHalosOfAnother) {
  const auto comm = Tpetra::getDefaultComm();
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  const std::vector<NamedMatrix> first = matricesOn(comm), second = matricesOn(comm);
  for (std::size_t i = 0; i < first.size(); ++i) {
    SCOPED_TRACE(first[i].name);
    const Teuchos::RCP<const Matrix> before = first[i].matrix;
    const auto nodeAware = Komvos::makeNodeAware(before, optionsFor(pairs, RouteChoice::threeStep));
    const auto structure = nodeAware->structure();
    for (const bool isSameGraph : {false, true}) {
      const auto next = isSameGraph ? rcp(new Matrix(*before, Teuchos::Copy)) : second[i].matrix;
      const auto values = next->getLocalMatrixHost().values;
      for (std::size_t k = 0; k < values.extent(0); ++k) {
        values(k) *= -0.75;
      }
      ASSERT_TRUE(NodeAwareCrsMatrix<>::fits(*structure, *next));
      const NodeAwareCrsMatrix<> after(next, *structure);
      EXPECT_EQ(nodeAware->importHalo(), after.importHalo());
      EXPECT_EQ(nodeAware->exportHalo(), after.exportHalo());
      for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
        checkApply(*next, after, 1, mode, 1, 0);
        checkApply(*before, *nodeAware, 2, mode, 1, 0);
        checkApply(*next, after, 2, mode, -2.5, 1);
      }
    }
  }
}

TEST(NodeAwareCrsMatrix, DoesNotFitWhereOneRankNeedsOtherGhosts) {
  const auto comm = Tpetra::getDefaultComm();
  const int last = comm->getSize() - 1;
  const GO n = 10 * comm->getSize();
  const auto rows = rowsOf(n, false, false, 1, comm);
  const auto tridiagonal = [&](GO columnOfLastRow) {
    const auto matrix = rcp(new Matrix(rows, 4));
    fillRows(*matrix, [&](GO row, const auto& add) {
      add(row, 2);
      add(std::max<GO>(row - 1, 0), -1);
      add(row == n - 1 ? columnOfLastRow : row + 1, -1);
    });
    matrix->fillComplete();
    return matrix;
  };
  const Teuchos::RCP<const Matrix> matrix = tridiagonal(n - 3);
  const auto structure = Komvos::makeNodeAware(matrix)->structure();
  EXPECT_TRUE(NodeAwareCrsMatrix<>::fits(*structure, *tridiagonal(n - 4))) << "the same ghosts, another graph";
  if (last > 0) {
    EXPECT_EQ(comm->getRank() != last, NodeAwareCrsMatrix<>::fits(*structure, *tridiagonal(0)));
  }
}

TEST(NodeAwareCrsMatrix, DoesNotFitAGraphThatHasGotAnotherDomainMap) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 10 * comm->getSize();
  const auto matrix = laplace(10, comm->getSize(), 1, 0, rowsOf(n, false, false, 1, comm));
  const auto structure = Komvos::makeNodeAware(matrix)->structure();
  const auto graph = matrix->getCrsGraph();
  const auto scattered = rowsOf(n, true, false, 2, comm);
  Teuchos::RCP<const Tpetra::Import<>> importer = rcp(new Tpetra::Import<>(scattered, matrix->getColMap()));
  matrix->replaceDomainMapAndImporter(scattered, importer);
  ASSERT_EQ(graph.get(), matrix->getCrsGraph().get()) << "the same object";
  const int fits = NodeAwareCrsMatrix<>::fits(*structure, *matrix) ? 1 : 0;
  int all = 0;
  Teuchos::reduceAll(*comm, Teuchos::REDUCE_MIN, fits, Teuchos::outArg(all));
  EXPECT_EQ(0, all);
}

TEST(NodeAwareCrsMatrix, WorksOnPartsOfTheWorld) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  {
    const TeuchosComm comm = rcp(new Teuchos::MpiComm<int>(half));
    onMatrices(
        [](const Matrix& matrix, const Matrix& nodeAware) {
          checkApply(matrix, nodeAware, 2, Teuchos::NO_TRANS, 1, 0);
          checkApply(matrix, nodeAware, 2, Teuchos::TRANS, 1, 0);
        },
        comm);
  }
  MPI_Comm_free(&half);
}

TEST(NodeAwareCrsMatrixMisuse, AMatrixThatIsNotCompleteIsRefused) {
  const auto comm = Tpetra::getDefaultComm();
  const Matrix matrix(rowsOf(10 * comm->getSize(), false, false, 1, comm), 3);
  EXPECT_THROW(const NodeAwareCrsMatrix<> nodeAware(matrix), Komvos::BadInput);
}

TEST(NodeAwareCrsMatrixMisuse, VectorsThatDoNotFitAreRefused) {
  const auto comm = Tpetra::getDefaultComm();
  const auto rows = rowsOf(20 * comm->getSize(), false, false, 1, comm);
  const auto longer = rowsOf(22 * comm->getSize(), false, false, 1, comm);
  const auto matrix = laplace(20, comm->getSize(), 1, 0, rows);
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  const NodeAwareCrsMatrix<> nodeAware(*matrix, optionsFor(pairs, RouteChoice::threeStep));
  Vector good(rows, 2);
  Vector narrow(rows, 1);
  Vector wrong(longer, 2);
  EXPECT_THROW(nodeAware.apply(good, narrow), Komvos::PlanMismatch);
  if (comm->getSize() > 1) {
    Vector result(rows, 2);
    EXPECT_THROW(nodeAware.apply(wrong, result), Komvos::PlanMismatch);
    EXPECT_THROW(nodeAware.apply(good, wrong), Komvos::PlanMismatch);
    EXPECT_THROW(nodeAware.residual(good, wrong, result), Komvos::PlanMismatch);
  }
  checkApply(*matrix, nodeAware, 2, Teuchos::NO_TRANS, 1, 0);
}

const Komvos::IntraNode bothWays[] = {Komvos::IntraNode::messages, Komvos::IntraNode::sharedMemory};

/// Calls work(matrix, node-aware matrix) for the matrix of this name along three steps, by both ways on the node.
template <class Work>
void onMatrixByBothWays(const std::string& name, const Work& work) {
  const auto comm = Tpetra::getDefaultComm();
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  int done = 0;
  for (const NamedMatrix& one : matricesOn(comm)) {
    for (const Komvos::IntraNode onNode : bothWays) {
      if (one.name == name) {
        SCOPED_TRACE(name + ", " + toString(onNode));
        work(*one.matrix, NodeAwareCrsMatrix<>(*one.matrix, optionsFor(pairs, RouteChoice::threeStep, onNode)));
        ++done;
      }
    }
  }
  EXPECT_EQ(2, done) << name;
}

/// One rank gives a vector over a longer map: it must fail there, leave no other rank waiting, and do no harm.
void checkWrongVectorOnOneRank(const std::string& name, Teuchos::ETransp mode, bool wrongX) {
  onMatrixByBothWays(name, [&](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) {
    const auto comm = Tpetra::getDefaultComm();
    const bool plain = mode == Teuchos::NO_TRANS;
    const auto longer = rowsOf(100 * comm->getSize(), false, false, 1, comm);
    for (int guilty = 0; guilty < comm->getSize(); ++guilty) {
      const bool wrong = guilty == comm->getRank();
      Vector x(wrong && wrongX ? longer : plain ? matrix.getDomainMap() : matrix.getRangeMap(), 2);
      Vector y(wrong && !wrongX ? longer : plain ? matrix.getRangeMap() : matrix.getDomainMap(), 2);
      bool failed = false;
      try {
        nodeAware.apply(x, y, mode);
      } catch (const Komvos::PlanMismatch&) {
        failed = true;
      }
      EXPECT_TRUE(failed || !wrong) << "guilty rank " << guilty;
      checkApply(matrix, nodeAware, 2, mode, 1, 0);
    }
  });
}

/// One rank's own code throws before apply: it lets the others finish.
TEST(NodeAwareCrsMatrixMisuse, ARankThatAbandonsAnApplyLeavesNobodyWaiting) {
  for (const char* name : {"random, scattered rows", "band, another range map", "all replicated"}) {
    onMatrixByBothWays(name, [](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) {
      const int rank = matrix.getComm()->getRank();
      const int size = matrix.getComm()->getSize();
      for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
        const bool plain = mode == Teuchos::NO_TRANS;
        for (int guilty = 0; guilty < size; ++guilty) {
          int failed = 0;
          if (rank == guilty) {
            nodeAware.abandonApply(mode);
          } else {
            Vector x(plain ? matrix.getDomainMap() : matrix.getRangeMap(), 1);
            Vector y(plain ? matrix.getRangeMap() : matrix.getDomainMap(), 1);
            fill(x, 1);
            try {
              nodeAware.apply(x, y, mode);
            } catch (const Komvos::PlanMismatch& error) {
              EXPECT_NE(std::string::npos, std::string(error.what()).find("abandoned")) << error.what();
              failed = 1;
            }
          }
          MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
          EXPECT_EQ(size > 1 ? 1 : 0, failed) << "nobody missed the values of rank " << guilty;
          checkApply(matrix, nodeAware, 1, mode, 1, 0);
        }
      }
    });
  }
}

TEST(NodeAwareCrsMatrixMisuse, ARankWithoutColumnsLeavesNobodyWaiting) {
  for (const char* name : {"random, scattered rows", "band, another range map", "all replicated"}) {
    onMatrixByBothWays(name, [](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) {
      const int size = matrix.getComm()->getSize();
      for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS, Teuchos::CONJ_TRANS}) {
        const bool plain = mode == Teuchos::NO_TRANS;
        for (int guilty = 0; guilty <= size; ++guilty) {  // in the end all
          const bool without = guilty == size || guilty == matrix.getComm()->getRank();
          Vector x(plain ? matrix.getDomainMap() : matrix.getRangeMap(), without ? 0 : 2);
          Vector y(plain ? matrix.getRangeMap() : matrix.getDomainMap(), without ? 0 : 2);
          int failed = 0;
          try {
            mode == Teuchos::CONJ_TRANS ? nodeAware.residual(y, x, x) : nodeAware.apply(x, y, mode);
          } catch (const Komvos::PlanMismatch&) {
            failed = 1;
          }
          MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
          EXPECT_EQ(size > 1 && guilty < size ? 1 : 0, failed) << "nobody missed the values of rank " << guilty;
          checkApply(matrix, nodeAware, 2, plain ? mode : Teuchos::TRANS, 1, 0);
        }
      }
    });
  }
}

TEST(NodeAwareCrsMatrixMisuse, AWrongXOnOneRankLeavesNobodyWaiting) {
  checkWrongVectorOnOneRank("random, scattered rows", Teuchos::NO_TRANS, true);
}
TEST(NodeAwareCrsMatrixMisuse, AWrongYOnOneRankLeavesNobodyWaiting) {
  checkWrongVectorOnOneRank("random, scattered rows", Teuchos::NO_TRANS, false);
}
TEST(NodeAwareCrsMatrixMisuse, AWrongTransposedXOnOneRankLeavesNobodyWaiting) {
  checkWrongVectorOnOneRank("random, scattered rows", Teuchos::TRANS, true);
}
TEST(NodeAwareCrsMatrixMisuse, AWrongTransposedYOnOneRankLeavesNobodyWaiting) {
  checkWrongVectorOnOneRank("random, scattered rows", Teuchos::TRANS, false);
}
TEST(NodeAwareCrsMatrixMisuse, AWrongXOnOneRankBeforeAnExportLeavesNobodyWaiting) {
  checkWrongVectorOnOneRank("band, another range map", Teuchos::NO_TRANS, true);
}
TEST(NodeAwareCrsMatrixMisuse, AWrongXOnOneRankBeforeASumLeavesNobodyWaiting) {
  checkWrongVectorOnOneRank("all replicated", Teuchos::NO_TRANS, true);
  checkWrongVectorOnOneRank("replicated range", Teuchos::NO_TRANS, true);
}
TEST(NodeAwareCrsMatrixMisuse, AWrongTransposedYOnOneRankBeforeASumLeavesNobodyWaiting) {
  checkWrongVectorOnOneRank("replicated domain", Teuchos::TRANS, false);
}
TEST(NodeAwareCrsMatrixMisuse, AWrongXOnOneRankAfterAnImportLeavesNobodyWaiting) {
  checkWrongVectorOnOneRank("band, another range map", Teuchos::TRANS, true);
}

// --- what users see
// ---------------------------------------------------------------------------------------------------

TEST(NodeAwareCrsMatrixDescription, HasTheMatrixAndItsHalos) {
  const auto comm = Tpetra::getDefaultComm();
  const auto matrix = looselyStored(comm, Teuchos::null);
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  const auto nodeAware = Komvos::makeNodeAware(matrix, optionsFor(pairs, RouteChoice::threeStep));
  const bool hasHalo = comm->getSize() > 1;
  const std::string line = nodeAware->description();
  EXPECT_EQ(0u, line.find("Komvos::NodeAwareCrsMatrix: {" + matrix->description())) << line;
  EXPECT_EQ(hasHalo, line.find("import halo: {route three-step") != std::string::npos) << line;
  EXPECT_NE(std::string::npos, line.find("export halo: {none}")) << line;
  for (const auto level : {Teuchos::VERB_NONE, Teuchos::VERB_LOW, Teuchos::VERB_HIGH}) {
    std::ostringstream text;
    Teuchos::FancyOStream out(Teuchos::rcpFromRef(text));
    out.setOutputToRootOnly(0);
    nodeAware->describe(out, level);
    if (comm->getRank() == 0) {
      const bool says = level != Teuchos::VERB_NONE;
      EXPECT_EQ(says && hasHalo, text.str().find("Route: three-step") != std::string::npos) << text.str();
      EXPECT_EQ(says, text.str().find("Export halo: none") != std::string::npos) << text.str();
      EXPECT_EQ(hasHalo && level == Teuchos::VERB_HIGH,
                text.str().find("rank " + std::to_string(comm->getSize() - 1) + ":") != std::string::npos);
    }
  }
}

std::vector<std::string> regions;
void rememberRegion(const char* name) { regions.emplace_back(name); }
int calls(const std::string& timer) {
  const auto found = Teuchos::TimeMonitor::lookupCounter(timer);
  return found.is_null() ? 0 : found->numCalls();
}

/// Timers and Tpetra's regions are there when its variables ask for them, as for its own functions; the regions of an
/// exchange always, for whatever tool is loaded.
TEST(Profiling, TimersAndRegionsAreThoseThatTpetraUsersExpect) {
  using Tpetra::Details::Behavior;
  const auto comm = Tpetra::getDefaultComm();
  const auto matrix = looselyStored(comm, Teuchos::null);
  const auto nodeAware = Komvos::makeNodeAware(matrix);
  Vector x(matrix->getDomainMap(), 1), y(matrix->getRangeMap(), 1);
  const std::string apply = "Komvos::NodeAwareCrsMatrix::apply";
  const std::string import = "Komvos::NodeAwareImport::doImport";
  const int before = calls(apply);
  Kokkos::Tools::Experimental::set_push_region_callback(rememberRegion);
  nodeAware->apply(x, y);
  nodeAware->residual(x, y, y);
  const auto* const halo = nodeAware->importHalo();
  if (halo != nullptr) {
    Vector columns(matrix->getColMap(), 1);
    halo->doImport(x, columns, Tpetra::INSERT);
    halo->doExport(columns, x, Tpetra::ADD);
  }
  Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
  const auto seen = [](const std::string& name) { return std::count(regions.begin(), regions.end(), name); };
  const bool timed = Behavior::profilingRegionUseTeuchosTimers();
  const bool named = Behavior::profilingRegionUseKokkosProfiling();
  EXPECT_EQ(timed ? 1 : 0, calls(apply) - before);
  EXPECT_EQ(timed ? 1 : 0, calls("Komvos::NodeAwareCrsMatrix::residual"));
  EXPECT_EQ(timed && halo != nullptr ? 1 : 0, calls(import));
  EXPECT_EQ(timed && halo != nullptr ? 1 : 0, calls("Komvos::NodeAwareImport::doExport"));
  // A timer may be a region, too.
  EXPECT_EQ(named, seen(apply) > 0);
  EXPECT_EQ(named && halo != nullptr, seen(import) > 0);
  EXPECT_EQ(halo != nullptr ? 4 : 0, seen("Komvos::Exchange::begin"));
  EXPECT_EQ(halo != nullptr ? 4 : 0, seen("Komvos::Exchange::end"));
}

}  // namespace
