/// \file batches_test.cpp
/// Products of blocks that are stored one by one, beside those of the hierarchical matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_BlockBatches.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HMatrix.hpp"
#include "point_sets.hpp"

namespace Komvos::Impl {
namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class Scalar>
using Vector = Kokkos::View<typename BatchValue<Scalar>::type**, Kokkos::LayoutLeft,
                            typename BufferSpace<Space>::type>;

std::vector<BatchOptions> allOptions(int count) {
  std::vector<BatchLoop> loops{BatchLoop::Own};
  if (haveKokkosBatched()) {
    loops.insert(loops.end(), {BatchLoop::TeamGemv, BatchLoop::TeamVectorGemv});
  }
  std::vector<BatchOptions> all;
  for (const BatchLoop loop : loops) {
    for (const BatchOrder order : {BatchOrder::Tree, BatchOrder::Size, BatchOrder::Rows, BatchOrder::Groups}) {
      for (const BatchLaunches launches : {BatchLaunches::One, BatchLaunches::Fixed, BatchLaunches::Variable}) {
        for (const bool cut : {false, true}) {
          all.push_back({order, launches, loop, count, cut});
        }
      }
    }
  }
  return all;
}

template <class Scalar>
std::vector<Scalar> randomValues(int length) {
  std::mt19937 generator(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Scalar> values(length);
  for (Scalar& value : values) {
    if constexpr (std::is_same_v<Scalar, std::complex<double>>) {
      value = {uniform(generator), uniform(generator)};
    } else {
      value = static_cast<Scalar>(uniform(generator));
    }
  }
  return values;
}

template <class Scalar>
std::vector<Scalar> toHost(const Vector<Scalar>& view) {
  const auto host = Kokkos::create_mirror_view(view);
  Kokkos::deep_copy(host, view);
  const Scalar* const first = reinterpret_cast<const Scalar*>(host.data());
  return {first, first + host.extent(0)};
}

/// || a - b || / || b ||
template <class Scalar>
double difference(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::norm(std::complex<double>(a[i] - b[i]));
    all += std::norm(std::complex<double>(b[i]));
  }
  return std::sqrt(difference / all);
}

/// The product by all variants, against that of the HMatrix.
template <class Scalar>
void expectLikeHMatrix(const EntryKernel<Scalar>& kernel, const ClusterTree& rows, const ClusterTree& columns,
                       double bound) {
  HMatrixOptions options;
  options.storage = Storage::Whole;
  const HMatrix<Scalar, Space> matrix(rows, columns, kernel, options);
  const BlockBatches<Scalar, Space> batches(rows, columns, matrix.blocks(), kernel, options.lowRank);
  EXPECT_EQ(batches.numValues() * static_cast<std::int64_t>(sizeof(Scalar)), matrix.report().bytes);
  const Vector<Scalar> x("x", columns.size(), 1), y("y", rows.size(), 1);
  const auto hostX = Kokkos::create_mirror_view(x);
  const std::vector<Scalar> values = randomValues<Scalar>(columns.size());
  std::copy(values.begin(), values.end(), reinterpret_cast<Scalar*>(hostX.data()));
  Kokkos::deep_copy(x, hostX);
  matrix.multiply(Space(), x, y);
  Space().fence();
  const std::vector<Scalar> expected = toHost<Scalar>(y);

  std::vector<Scalar> byBlas(rows.size());
  batches.multiplyByBlas(values.data(), byBlas.data());
  EXPECT_LE(difference(byBlas, expected), bound);
  for (const BatchOptions& o : allOptions(37)) {
    Kokkos::deep_copy(y, 3.0);
    batches.multiply(Space(), batches.prepare(o), Kokkos::subview(x, Kokkos::ALL(), 0),
                     Kokkos::subview(y, Kokkos::ALL(), 0));
    Space().fence();
    EXPECT_LE(difference(toHost<Scalar>(y), expected), bound)
        << "order " << static_cast<int>(o.order) << ", launches " << static_cast<int>(o.launches) << ", loop "
        << static_cast<int>(o.loop) << ", cut " << o.cut;
  }
}

TEST(BlockBatches, eachVariantGivesTheProductOfTheHMatrix) {
  const auto points = test::spiralOnSphere(5000);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 0.0);
  for (const int leaf : {40, 1300}) {  // and so with matrices of more rows than a team has
    const ClusterTree tree(points, {}, {leaf});
    expectLikeHMatrix<double>(kernel, tree, tree, 1e-13);
  }
}

TEST(BlockBatches, worksForRectanglesFloatsAndComplexValues) {
  const auto rowPoints = test::spiralOnSphere(900);
  auto columnPoints = test::spiralOnSphere(500);
  for (Point3& point : columnPoints) {
    point.x += 1.3;
  }
  const ClusterTree rows(rowPoints, {}, {20}), columns(columnPoints, {}, {20});
  const auto ofFloats = test::distanceKernel<float>(
      rowPoints, columnPoints, [](double r) { return static_cast<float>(1 / r); }, 0.0F);
  expectLikeHMatrix<float>(ofFloats, rows, columns, 1e-5);
  using Complex = std::complex<double>;
  const auto helmholtz = test::distanceKernel<Complex>(
      rowPoints, columnPoints, [](double r) { return std::exp(Complex(0, 2 * r)) / r; }, Complex(1, 1));
  expectLikeHMatrix<Complex>(helmholtz, rows, columns, 1e-13);
}

TEST(BlockBatches, worksWhereAllBlocksAreDense) {
  const auto points = test::spiralOnSphere(90);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 0.0);
  const ClusterTree tree(points, {}, {100});
  expectLikeHMatrix<double>(kernel, tree, tree, 1e-13);
}

TEST(BlockBatches, refusesViewsOptionsAndRanksThatDoNotFit) {
  const auto points = test::spiralOnSphere(300);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 0.0);
  const ClusterTree tree(points, {}, {20});
  HMatrixOptions options;
  options.storage = Storage::Whole;
  std::vector<Block> blocks = HMatrix<double, Space>(tree, tree, kernel, options).blocks();
  using Batches = BlockBatches<double, Space>;
  const Batches batches(tree, tree, blocks, kernel, options.lowRank);
  EXPECT_THROW(batches.prepare({BatchOrder::Rows, BatchLaunches::Fixed, BatchLoop::Own, 0, false}), BadInput);
  const Batches::values_view shortVector("short", 299), y("y", 300);
  EXPECT_THROW(batches.multiply(Space(), batches.prepare({}), shortVector, y), PlanMismatch);
  const auto admissible = std::find_if(blocks.begin(), blocks.end(), [](const Block& b) { return b.isAdmissible; });
  ASSERT_NE(admissible, blocks.end());
  ++admissible->rank;
  EXPECT_THROW(Batches(tree, tree, blocks, kernel, options.lowRank), BadInput);
}

/// Tasks of many shapes. `first` is the number of the task.
std::vector<GemvTask> someTasks(int count) {
  std::mt19937 generator(11);
  std::uniform_int_distribution<int> sizes(1, 300);
  std::vector<GemvTask> tasks;
  for (int i = 0; i < count; ++i) {
    const int rows = sizes(generator), columns = sizes(generator);
    tasks.push_back({i, rows, rows, columns, 0, 0});
  }
  return tasks;
}

TEST(BatchPlan, launchesEachTaskOnceWithTeamsForAllOfItsRows) {
  const auto tasks = someTasks(500);
  for (BatchOptions options : allOptions(40)) {
    options.cut = false;
    const BatchPlan plan(tasks, options, false);
    std::set<std::int64_t> seen;
    int next = 0;
    for (const BatchLaunch& launch : plan.launches) {
      EXPECT_EQ(launch.first, next);
      next = launch.last;
      int mostRows = 0;
      for (int t = launch.first; t < launch.last; ++t) {
        seen.insert(plan.tasks[t].first);
        mostRows = std::max(mostRows, plan.tasks[t].rows);
      }
      EXPECT_GE(launch.tiles * launch.tileRows, mostRows);
      EXPECT_LT((launch.tiles - 1) * launch.tileRows, mostRows);
    }
    EXPECT_EQ(next, 500);
    EXPECT_EQ(seen.size(), 500U);
  }
}

TEST(BatchPlan, groupsHaveEightNumbersOfRowsAndAscendingColumns) {
  const BatchPlan plan(someTasks(500), {BatchOrder::Groups, BatchLaunches::Fixed, BatchLoop::Own, 64, false}, true);
  for (std::size_t t = 1; t < plan.tasks.size(); ++t) {
    const GemvTask &a = plan.tasks[t - 1], &b = plan.tasks[t];
    const std::pair<int, int> before((a.rows + 7) / 8, a.columns), after((b.rows + 7) / 8, b.columns);
    EXPECT_LE(before, after);
  }
  EXPECT_EQ(plan.launches.size(), 8U);
  EXPECT_EQ(plan.launches[0].last, 64);
}

TEST(BatchPlan, launchesOfVariableSizeHaveOneRangeOfRows) {
  EXPECT_EQ(rangeOfRows(8), 0);
  EXPECT_EQ(rangeOfRows(9), 1);
  EXPECT_EQ(rangeOfRows(32), 1);
  EXPECT_EQ(rangeOfRows(33), 2);
  EXPECT_EQ(rangeOfRows(96), 3);
  const BatchOptions options{BatchOrder::Groups, BatchLaunches::Variable, BatchLoop::Own, 1000, false};
  const BatchPlan plan(someTasks(500), options, true);
  EXPECT_EQ(plan.launches.size(), 11U);  // up to 8, 32, 64, ..., 320 rows
  for (const BatchLaunch& launch : plan.launches) {
    EXPECT_EQ(rangeOfRows(plan.tasks[launch.first].rows), rangeOfRows(plan.tasks[launch.last - 1].rows));
  }
}

TEST(BatchPlan, piecesThatAreCutHaveOneTeamEach) {
  const auto tasks = someTasks(100);
  const BatchPlan plan(tasks, {BatchOrder::Size, BatchLaunches::One, BatchLoop::Own, 1, true}, false);
  ASSERT_EQ(plan.launches.size(), 1U);
  EXPECT_EQ(plan.launches[0].tiles, 1);
  std::int64_t rows = 0, rowsOfPieces = 0;
  for (const GemvTask& task : tasks) {
    rows += task.rows;
  }
  for (const GemvTask& piece : plan.tasks) {
    EXPECT_LE(piece.rows, mostTileRows(false));
    EXPECT_EQ(piece.stride, tasks[piece.first - piece.to].rows);  // `to` counts the rows before it, as `first` does
    rowsOfPieces += piece.rows;
  }
  EXPECT_EQ(rows, rowsOfPieces);
}

}  // namespace
}  // namespace Komvos::Impl
