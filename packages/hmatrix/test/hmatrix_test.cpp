/// \file hmatrix_test.cpp
/// Hierarchical matrices beside the dense ones that they stand for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_Panels.hpp"
#include "point_sets.hpp"
#include "support/largest.hpp"

namespace Komvos {
namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class Scalar>
using Vectors = Kokkos::View<typename HMatrix<Scalar, Space>::value_type**, Kokkos::LayoutLeft,
                             typename HMatrix<Scalar, Space>::memory_space>;

/// Columns of values, in the user's order, by a fixed seed.
template <class Scalar>
std::vector<std::vector<Scalar>> randomColumns(int length, int count) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::vector<Scalar>> columns(count, std::vector<Scalar>(length));
  for (auto& column : columns) {
    for (Scalar& value : column) {
      if constexpr (std::is_same_v<Scalar, std::complex<double>>) {
        value = {uniform(generator), uniform(generator)};
      } else {
        value = static_cast<Scalar>(uniform(generator));
      }
    }
  }
  return columns;
}

template <class Scalar>
auto toView(const std::vector<std::vector<Scalar>>& columns) {
  const Vectors<Scalar> view("x", columns[0].size(), columns.size());
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (std::size_t i = 0; i < columns[j].size(); ++i) {
      host(i, j) = columns[j][i];
    }
  }
  Kokkos::deep_copy(view, host);
  return view;
}

template <class View>
auto toHost(const View& view) {
  const auto host = Kokkos::create_mirror_view(view);
  Kokkos::deep_copy(host, view);
  return host;
}

/// The same product, of the dense matrix.
template <class Scalar>
std::vector<std::vector<Scalar>> denseProduct(const EntryKernel<Scalar>& kernel, int rows,
                                              const std::vector<std::vector<Scalar>>& x, bool transposed) {
  const int length = static_cast<int>(x[0].size());
  std::vector<std::vector<Scalar>> y(x.size(), std::vector<Scalar>(rows));
  for (std::size_t j = 0; j < x.size(); ++j) {
    for (int i = 0; i < rows; ++i) {
      for (int k = 0; k < length; ++k) {
        y[j][i] += (transposed ? kernel.entry(k, i) : kernel.entry(i, k)) * x[j][k];
      }
    }
  }
  return y;
}

/// The largest of || y - expected || / || expected || of all columns.
template <class Scalar, class View>
double errorOf(const View& y, const std::vector<std::vector<Scalar>>& expected) {
  const auto host = toHost(y);
  double worst = 0;
  for (std::size_t j = 0; j < expected.size(); ++j) {
    double difference = 0, all = 0;
    for (std::size_t i = 0; i < expected[j].size(); ++i) {
      difference += std::norm(static_cast<std::complex<double>>(static_cast<Scalar>(host(i, j)) - expected[j][i]));
      all += std::norm(static_cast<std::complex<double>>(expected[j][i]));
    }
    worst = KomvosTest::largerOf(worst, std::sqrt(difference / all));
  }
  return worst;
}

HMatrixOptions withAccuracy(double accuracy) {
  HMatrixOptions options;
  options.lowRank.accuracy = accuracy;
  options.storage = Storage::Whole;  // storage_test.cpp has the others
  return options;
}

/// Both products, by the kernels of each machine, against the dense matrix.
template <class Scalar>
void expectLikeDense(const EntryKernel<Scalar>& kernel, const ClusterTree& rows, const ClusterTree& columns,
                     double accuracy, double bound) {
  HMatrix<Scalar, Space> matrix(rows, columns, kernel, withAccuracy(accuracy));
  const auto x = randomColumns<Scalar>(columns.size(), 1), xt = randomColumns<Scalar>(rows.size(), 1);
  const auto y = denseProduct(kernel, rows.size(), x, false), yt = denseProduct(kernel, columns.size(), xt, true);
  using Impl::PanelKernel;
  using Impl::VectorUnit;
  const std::vector<std::pair<PanelKernel, VectorUnit>> machines{{PanelKernel::Threads, VectorUnit::Plain},
                                                                 {PanelKernel::Threads, VectorUnit::Avx2},
                                                                 {PanelKernel::Threads, VectorUnit::Avx512},
                                                                 {PanelKernel::Teams, VectorUnit::Plain}};
  for (const auto& [panelKernel, unit] : machines) {
    if (unit > Impl::widestVectorUnit()) {
      continue;  // see Units in storage_test.cpp
    }
    matrix.useKernel(panelKernel);
    matrix.useVectorUnit(unit);
    const Vectors<Scalar> out("y", rows.size(), 1), outT("y", columns.size(), 1);
    matrix.multiply(Space(), toView(x), out);
    matrix.multiplyTransposed(Space(), toView(xt), outT);
    Space().fence();
    EXPECT_LE(errorOf(out, y), bound);
    EXPECT_LE(errorOf(outT, yt), bound);
  }
}

TEST(HMatrix, multipliesAsTheDenseMatrixToTheAskedAccuracy) {
  const auto points = test::spiralOnSphere(1500);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 0.0);
  const ClusterTree tree(points, {}, {20});
  for (const double accuracy : {1e-3, 1e-6, 1e-10}) {
    // 1/r has no cancellation to speak of, but x has: its product is smaller than || A || || x ||.
    expectLikeDense(kernel, tree, tree, accuracy, 20 * accuracy);
  }
}

TEST(HMatrix, errorInTheFrobeniusNormIsBelowTheAskedAccuracy) {
  const auto points = test::spiralOnSphere(700);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 30.0);
  const ClusterTree tree(points, {}, {15});
  std::vector<std::vector<double>> unit(points.size(), std::vector<double>(points.size()));
  for (std::size_t i = 0; i < points.size(); ++i) {
    unit[i][i] = 1;
  }
  for (const double accuracy : {1e-3, 1e-5, 1e-7, 1e-9}) {
    for (const auto method : {Approximation::Aca, Approximation::AcaPlus, Approximation::Svd}) {
      HMatrixOptions options = withAccuracy(accuracy);
      options.lowRank.approximation = method;
      const HMatrix<double, Space> matrix(tree, tree, kernel, options);
      const Vectors<double> y("y", points.size(), points.size());
      matrix.multiply(Space(), toView(unit), y);
      Space().fence();
      const auto host = toHost(y);
      double difference = 0, all = 0;
      for (int i = 0; i < tree.size(); ++i) {
        for (int j = 0; j < tree.size(); ++j) {
          difference += std::norm(host(i, j) - kernel.entry(i, j));
          all += std::norm(kernel.entry(i, j));
        }
      }
      EXPECT_LE(std::sqrt(difference / all), accuracy) << static_cast<int>(method);
    }
  }
}

TEST(HMatrix, worksForComplexValuesAndFloats) {
  const auto points = test::spiralOnSphere(900);
  const ClusterTree tree(points, {}, {25, ClusterSplit::PrincipalAxis});
  using complex = std::complex<double>;
  const auto wave = test::distanceKernel<complex>(
      points, points, [](double r) { return std::exp(complex(0, 2 * r)) / r; }, complex(1, 1));
  expectLikeDense(wave, tree, tree, 1e-6, 2e-5);
  const auto single = test::distanceKernel<float>(
      points, points, [](double r) { return static_cast<float>(1 / r); }, 1.0F);
  expectLikeDense(single, tree, tree, 1e-4, 2e-3);
}

/// || A - H || / || A || in the Frobenius norm, estimated by products with some vectors of random signs: the mean of
/// || (A - H) z ||^2 is || A - H ||^2.
TEST(HMatrix, keepsEachAccuracyAgainstADenseMatrixOfFiveThousandRows) {
  const int n = 5000, count = 32;
  const auto points = test::spiralOnSphere(n);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, std::sqrt(n));
  const ClusterTree tree(points, {}, {32});
  auto signs = randomColumns<double>(n, count);
  for (auto& column : signs) {
    std::transform(column.begin(), column.end(), column.begin(), [](double x) { return x < 0 ? -1.0 : 1.0; });
  }
  std::vector<std::vector<double>> dense(count, std::vector<double>(n));
  double all = 0;
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      const double entry = kernel.entry(i, k);
      all += entry * entry;
      for (int j = 0; j < count; ++j) {
        dense[j][i] += entry * signs[j][k];
      }
    }
  }
  const auto z = toView(signs);
  for (const double accuracy : {1e-3, 1e-5, 1e-7, 1e-10}) {
    HMatrixOptions options = withAccuracy(accuracy);
    for (const auto storage : {Storage::Whole, Storage::Reduced}) {
      options.storage = storage;
      const HMatrix<double, Space> matrix(tree, tree, kernel, options);
      const Vectors<double> y("y", n, count);
      matrix.multiply(Space(), z, y);
      Space().fence();
      const auto host = toHost(y);
      double difference = 0;
      for (int j = 0; j < count; ++j) {
        for (int i = 0; i < n; ++i) {
          difference += (host(i, j) - dense[j][i]) * (host(i, j) - dense[j][i]);
        }
      }
      EXPECT_LE(std::sqrt(difference / count / all), accuracy);
    }
  }
}

/// Squares of these are no floats.
TEST(HMatrix, floatsMayBeVeryLargeOrVerySmall) {
  const auto points = test::spiralOnSphere(900);
  const ClusterTree tree(points, {}, {20});
  for (const double scale : {1e25, 1e-25, 1e-30}) {
    const auto kernel = test::distanceKernel<float>(
        points, points, [&](double r) { return static_cast<float>(scale / r); }, static_cast<float>(30 * scale));
    const auto x = randomColumns<float>(tree.size(), 1);
    for (const auto storage : {Storage::Whole, Storage::Reduced}) {
      HMatrixOptions options = withAccuracy(1e-3);
      options.storage = storage;
      const HMatrix<float, Space> matrix(tree, tree, kernel, options);
      EXPECT_GT(matrix.report().largestRank(), 1);
      const Vectors<float> y("y", tree.size(), 1);
      matrix.multiply(Space(), toView(x), y);
      Space().fence();
      EXPECT_LE(errorOf(y, denseProduct(kernel, tree.size(), x, false)), 1e-2) << scale;
    }
  }
}

TEST(HMatrix, worksForRectanglesAndForMatricesThatAreNotSymmetric) {
  const auto points = test::spiralOnSphere(700);
  auto others = test::spiralOnSphere(300);
  for (Point3& p : others) {
    p = 1.5 * p + Point3{0.5, 0, 0};
  }
  const ClusterTree rows(points, {}, {16}), columns(others, {}, {30});
  const auto entry = [&](int i, int j) {
    const Point3 d = points[i] - others[j];
    return dot(others[j], d) / (1e-3 + std::pow(norm(d), 3));
  };
  const FunctionKernel<double, decltype(entry)> kernel(entry);
  expectLikeDense(kernel, rows, columns, 1e-7, 1e-5);
}

TEST(HMatrix, smallestMatricesWork) {
  const auto points = test::spiralOnSphere(3);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 2.0);
  for (const int n : {1, 2, 3}) {
    const ClusterTree tree({points.begin(), points.begin() + n}, {}, {1});
    expectLikeDense(kernel, tree, tree, 1e-10, 1e-12);
  }
}

/// Leaves of more rows than a panel has, and dense blocks across several panels.
TEST(HMatrix, leavesMayBeLargerThanAPanel) {
  const auto points = test::spiralOnSphere(1000);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 5.0);
  const ClusterTree tree(points, {}, {150});
  expectLikeDense(kernel, tree, tree, 1e-8, 1e-6);
}

TEST(HMatrix, anyNumberOfVectorsGivesTheProductOfEach) {
  const auto points = test::spiralOnSphere(800);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 5.0);
  const ClusterTree tree(points, {}, {20});
  const HMatrix<double, Space> matrix(tree, tree, kernel);
  const auto columns = randomColumns<double>(800, 19);
  using View = Vectors<double>;
  for (const bool transposed : {false, true}) {
    const auto multiply = [&](const std::vector<std::vector<double>>& x) {
      const View y("y", 800, x.size());
      transposed ? matrix.multiplyTransposed(Space(), toView(x), y) : matrix.multiply(Space(), toView(x), y);
      Space().fence();
      return toHost(y);
    };
    for (const std::size_t count : {2, 3, 7, 16, 19}) {
      const auto together = multiply({columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(count)});
      const auto again = multiply({columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(count)});
      for (std::size_t j = 0; j < count; ++j) {
        const auto alone = multiply({columns[j]});
        for (std::size_t i = 0; i < 800; ++i) {
          ASSERT_EQ(together(i, j), again(i, j));
          ASSERT_NEAR(together(i, j), alone(i, 0), 1e-11) << count << " vectors, transposed " << transposed;
        }
      }
    }
  }
}

TEST(HMatrix, alphaAndBetaAreThoseOfBlas) {
  const auto points = test::spiralOnSphere(300);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 5.0);
  const ClusterTree tree(points, {}, {20});
  const HMatrix<double, Space> matrix(tree, tree, kernel, withAccuracy(1e-8));
  const auto x = randomColumns<double>(300, 2);
  auto expected = denseProduct(kernel, 300, x, false);
  const auto start = randomColumns<double>(300, 2);
  for (std::size_t j = 0; j < 2; ++j) {
    for (std::size_t i = 0; i < 300; ++i) {
      expected[j][i] = -2 * expected[j][i] + 0.5 * start[j][i];
    }
  }
  const auto y = toView(start);
  matrix.multiply(Space(), toView(x), y, -2, 0.5);
  Space().fence();
  EXPECT_LE(errorOf(y, expected), 1e-6);
  // With beta = 0, y is not read.
  const Vectors<double> undefined("y", 300, 2);
  Kokkos::deep_copy(undefined, std::nan(""));
  matrix.multiply(Space(), toView(x), undefined);
  Space().fence();
  EXPECT_LE(errorOf(undefined, denseProduct(kernel, 300, x, false)), 1e-6);
}

TEST(HMatrix, reportsWhatItHolds) {
  const auto points = test::spiralOnSphere(2000);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 5.0);
  const ClusterTree tree(points, {}, {15});
  const HMatrix<double, Space> matrix(tree, tree, kernel, withAccuracy(1e-3));
  const HMatrixReport& report = matrix.report();
  std::int64_t lowRank = 0, dense = 0, bytesDense = 0;
  for (const Block& block : matrix.blocks()) {
    ++(block.isAdmissible ? lowRank : dense);
    bytesDense += block.isAdmissible ? 0 : std::int64_t{8} * block.rows() * block.columns();
  }
  EXPECT_EQ(report.numLowRank, lowRank);
  EXPECT_EQ(report.numDense, dense);
  EXPECT_EQ(report.bytesDense, bytesDense);
  EXPECT_EQ(report.bytes, matrix.bytesRead());
  EXPECT_DOUBLE_EQ(report.compression, static_cast<double>(report.bytes) / 8 / 2000 / 2000);
  EXPECT_LT(report.compression, 0.5);
  std::int64_t blocks = 0;
  for (const std::int64_t count : report.blocksOfRank) {
    blocks += count;
  }
  EXPECT_EQ(blocks, lowRank);
  EXPECT_GT(report.blocksOfRank.back(), 0);
}

TEST(HMatrix, refusesViewsAndOptionsThatDoNotFit) {
  const auto points = test::spiralOnSphere(10);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 5.0);
  const ClusterTree tree(points);
  const HMatrix<double, Space> matrix(tree, tree, kernel);
  using View = Vectors<double>;
  EXPECT_THROW(matrix.multiply(Space(), View("x", 9, 1), View("y", 10, 1)), PlanMismatch);
  EXPECT_THROW(matrix.multiply(Space(), View("x", 10, 1), View("y", 11, 1)), PlanMismatch);
  EXPECT_THROW(matrix.multiplyTransposed(Space(), View("x", 10, 2), View("y", 10, 1)), PlanMismatch);
  for (const double accuracy : {0.0, -1.0, 1.0, std::nan("")}) {
    EXPECT_THROW((HMatrix<double, Space>(tree, tree, kernel, withAccuracy(accuracy))), BadInput);
  }
  // Finer than the values are.
  const auto single = test::distanceKernel<float>(
      points, points, [](double r) { return static_cast<float>(1 / r); }, 5.0F);
  EXPECT_THROW((HMatrix<double, Space>(tree, tree, kernel, withAccuracy(1e-14))), BadInput);
  EXPECT_THROW((HMatrix<float, Space>(tree, tree, single, withAccuracy(5e-6))), BadInput);
  EXPECT_NO_THROW((HMatrix<double, Space>(tree, tree, kernel, withAccuracy(1.2e-14))));
  EXPECT_NO_THROW((HMatrix<float, Space>(tree, tree, single, withAccuracy(6e-6))));
}

TEST(HMatrix, refusesBlocksAndPlacesThatAreOutside) {
  const auto points = test::spiralOnSphere(10);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 5.0);
  const ClusterTree tree(points);
  const auto ofBlock = [&](const Block& block) {
    return HMatrix<double, Space>(tree, tree, {block}, kernel, withAccuracy(1e-4));
  };
  for (const Block& wrong : {Block{0, 11, 0, 5, false, -1}, Block{-1, 5, 0, 5, false, -1}, Block{3, 3, 0, 5, false, -1},
                             Block{0, 5, 4, 11, false, -1}, Block{0, 5, 6, 2, false, -1}}) {
    EXPECT_THROW(ofBlock(wrong), BadInput);
  }
  auto matrix = ofBlock({0, 3, 4, 6, false, -1});
  EXPECT_THROW(matrix.placeIn({0, 1}, 5, {0, 1}, 5), BadInput);
  EXPECT_THROW(matrix.placeIn({0, 1, 5}, 5, {0, 1}, 5), BadInput);
  EXPECT_THROW(matrix.placeIn({0, 1, 2}, 5, {-1, 1}, 5), BadInput);
  EXPECT_THROW(matrix.placeIn({0, 1, 2}, 5, {1, 1}, 5), BadInput);
  matrix.placeIn({4, 2, 0}, 5, {1, 3}, 4);
  const Vectors<double> y("y", 5, 1);
  matrix.multiply(Space(), toView(std::vector<std::vector<double>>{{7, 1, 9, 0}}), y);
  Space().fence();
  const auto host = toHost(y);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(host(4 - 2 * i, 0), kernel.entry(tree.order()[i], tree.order()[4])) << "row " << i;
  }
}

TEST(HMatrix, anEntryOfADenseBlockThatIsNotFiniteIsNamed) {
  const auto points = test::spiralOnSphere(200);
  const auto entry = [](int i, int j) { return i == 30 && j == 30 ? std::nan("") : 1.0 / (1 + i + j); };
  const FunctionKernel<double, decltype(entry)> kernel(entry);
  const ClusterTree tree(points);
  try {
    const HMatrix<double, Space> matrix(tree, tree, kernel);
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("(30, 30)"), std::string::npos) << error.what();
  }
}

TEST(HMatrix, anErrorInTheKernelReachesTheCaller) {
  const auto points = test::spiralOnSphere(500);
  const auto entry = [](int i, int j) -> double {
    if (i == 300 && j == 20) {
      throw BadInput("entry 300, 20");
    }
    return 1.0 / (1 + i + j);
  };
  const FunctionKernel<double, decltype(entry)> kernel(entry);
  const ClusterTree tree(points, {}, {500});
  EXPECT_THROW((HMatrix<double, Space>(tree, tree, kernel)), BadInput);
}

}  // namespace
}  // namespace Komvos
