/// \file low_rank_test.cpp
/// Blocks of low rank, among them those that adaptive cross approximation gets wrong without its safeguards.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_LowRank.hpp"
#include "point_sets.hpp"

namespace Komvos {
namespace {

std::vector<int> upTo(int n) {
  std::vector<int> list(n);
  std::iota(list.begin(), list.end(), 0);
  return list;
}

/// || B - u v^T || / || B ||, in the Frobenius norm.
template <class Scalar>
double errorOf(const EntryKernel<Scalar>& kernel, const LowRank<Scalar>& block) {
  double difference = 0, all = 0;
  for (int j = 0; j < block.columns; ++j) {
    for (int i = 0; i < block.rows; ++i) {
      Scalar sum = 0;
      for (int l = 0; l < block.rank; ++l) {
        sum += block.u[static_cast<std::size_t>(l) * block.rows + i] *
               block.v[static_cast<std::size_t>(l) * block.columns + j];
      }
      difference += std::norm(kernel.entry(i, j) - sum);
      all += std::norm(kernel.entry(i, j));
    }
  }
  return all > 0 ? std::sqrt(difference / all) : std::sqrt(difference);
}

/// Points in a unit cube whose corner is there.
std::vector<Point3> cubeOfPoints(int perSide, Point3 corner) {
  std::vector<Point3> points;
  for (int i = 0; i < perSide * perSide * perSide; ++i) {
    const int x = i % perSide, y = i / perSide % perSide, z = i / perSide / perSide;
    points.push_back(corner + (1.0 / perSide) * Point3{x + 0.5, y + 0.5, z + 0.5});
  }
  return points;
}

const std::vector<Approximation> methods{Approximation::Aca, Approximation::AcaPlus, Approximation::Svd};

TEST(LowRank, reachesEachAccuracyByEachMethod) {
  const auto rows = cubeOfPoints(7, {}), columns = cubeOfPoints(6, {2.5, 0.3, 0.1});
  const auto kernel = test::distanceKernel<double>(
      rows, columns, [](double r) { return 1 / r; }, 0.0);
  for (const Approximation method : methods) {
    int least = 0;
    for (const double accuracy : {1e-2, 1e-4, 1e-6, 1e-8, 1e-10}) {
      for (const bool recompress : {false, true}) {
        const auto block = approximate(kernel, upTo(343), upTo(216), {accuracy, method, recompress});
        ASSERT_TRUE(block.has_value());
        EXPECT_LE(errorOf(kernel, *block), accuracy);
        EXPECT_GE(block->rank, least);
      }
      const auto block = approximate(kernel, upTo(343), upTo(216), {accuracy, method, true});
      least = block->rank;
    }
    EXPECT_LT(least, 110);
  }
}

TEST(LowRank, recompressionComesCloseToTheLeastRank) {
  const auto rows = cubeOfPoints(6, {}), columns = cubeOfPoints(6, {2.2, 0, 0});
  const auto kernel = test::distanceKernel<double>(
      rows, columns, [](double r) { return 1 / r; }, 0.0);
  for (const double accuracy : {1e-3, 1e-6, 1e-9}) {
    const auto least = approximate(kernel, upTo(216), upTo(216), {accuracy, Approximation::Svd});
    for (const Approximation method : {Approximation::Aca, Approximation::AcaPlus}) {
      const auto block = approximate(kernel, upTo(216), upTo(216), {accuracy, method, true});
      EXPECT_LE(block->rank, least->rank + 3 + least->rank / 8);
    }
  }
}

TEST(LowRank, complexValuesAreNotConjugated) {
  const auto rows = cubeOfPoints(6, {}), columns = cubeOfPoints(5, {3, 0, 1});
  using complex = std::complex<double>;
  const auto kernel = test::distanceKernel<complex>(
      rows, columns, [](double r) { return std::exp(complex(0, 3 * r)) / r; }, complex(0));
  for (const Approximation method : methods) {
    for (const double accuracy : {1e-3, 1e-8}) {
      const auto block = approximate(kernel, upTo(216), upTo(125), {accuracy, method, true});
      ASSERT_TRUE(block.has_value());
      EXPECT_LE(errorOf(kernel, *block), accuracy);
    }
  }
}

TEST(LowRank, floatsReachWhatFloatsCan) {
  const auto rows = cubeOfPoints(6, {}), columns = cubeOfPoints(5, {3, 0, 1});
  const auto kernel = test::distanceKernel<float>(
      rows, columns, [](double r) { return static_cast<float>(1 / r); }, 0.0F);
  for (const double accuracy : {1e-2, 1e-4, 1e-5}) {
    const auto block = approximate(kernel, upTo(216), upTo(125), {accuracy});
    ASSERT_TRUE(block.has_value());
    EXPECT_LE(errorOf(kernel, *block), accuracy);
  }
}

template <class Function>
struct CountingKernel : EntryKernel<double> {
  explicit CountingKernel(const Function& function) : f(function) {}
  double entry(int i, int j) const override {
    ++count;
    return f(i, j);
  }
  const Function& f;
  mutable std::int64_t count = 0;
};

/// What is left of such a block is rounding: nobody shall look for pivots there.
TEST(LowRank, aBlockOfExactlyLowRankIsDoneAfterAFewCrosses) {
  const auto rankThree = [](int i, int j) { return std::sin(0.1 * i) + 3.0 * j + 0.01 * i * j; };
  for (const Approximation method : {Approximation::Aca, Approximation::AcaPlus}) {
    for (const double accuracy : {1e-3, 1e-8, 2e-14}) {
      const CountingKernel<decltype(rankThree)> kernel(rankThree);
      const auto block = approximate(kernel, upTo(400), upTo(300), {accuracy, method});
      ASSERT_TRUE(block.has_value());
      EXPECT_LE(block->rank, 4);
      EXPECT_LE(kernel.count, 40 * (400 + 300)) << accuracy;
    }
  }
}

/// Most rows are zero, or almost: they are not looked at one by one.
TEST(LowRank, rowsWithoutAnythingCostLittle) {
  const auto halfZero = [](int i, int j) { return i < 1000 ? 0.0 : 1 / (2500.0 - i + j); };
  const auto gaussian = [](int i, int j) { return std::exp(-std::pow((1999.0 - i + j) / 100, 2)); };
  const auto check = [](const auto& function, int rank) {
    for (const Approximation method : {Approximation::Aca, Approximation::AcaPlus}) {
      const CountingKernel<std::decay_t<decltype(function)>> kernel(function);
      const auto block = approximate(kernel, upTo(2000), upTo(2000), {1e-4, method});
      ASSERT_TRUE(block.has_value());
      EXPECT_LE(errorOf(kernel, *block), 1e-4);
      EXPECT_LE(block->rank, rank);
      const CountingKernel<std::decay_t<decltype(function)>> again(function);
      approximate(again, upTo(2000), upTo(2000), {1e-4, method});
      EXPECT_LE(again.count, 30 * rank * 4000) << "of " << 2000 * 2000;
    }
  };
  check(halfZero, 8);
  check(gaussian, 10);
}

TEST(LowRank, aBlockOfZerosHasRankZero) {
  const auto zero = [](int, int) { return 0.0; };
  const FunctionKernel<double, decltype(zero)> kernel(zero);
  for (const Approximation method : methods) {
    const auto block = approximate(kernel, upTo(30), upTo(40), {1e-6, method});
    ASSERT_TRUE(block.has_value());
    EXPECT_EQ(block->rank, 0);
  }
}

/// Two surfaces at a right angle in each cluster: rows of the first see only columns of the second.
TEST(LowRank, rowsThatSeeOnlySomeColumnsAreAllFound) {
  const auto smooth = [](int i, int j) { return 1 / (50.0 + i + 2 * j); };
  const auto apart = [&](int i, int j) { return (i < 60) == (j < 30) ? smooth(i, j) : 0.0; };
  const auto corner = [&](int i, int j) { return i < 60 || j < 30 ? 0.0 : smooth(i, j); };
  const auto firstRowZero = [&](int i, int j) { return i == 0 ? 0.0 : smooth(i, j); };
  const auto check = [](const auto& function, const char* what) {
    const FunctionKernel<double, std::decay_t<decltype(function)>> kernel(function);
    for (const Approximation method : methods) {
      for (const double accuracy : {1e-3, 1e-7}) {
        const auto block = approximate(kernel, upTo(120), upTo(60), {accuracy, method});
        ASSERT_TRUE(block.has_value()) << what;
        EXPECT_LE(errorOf(kernel, *block), accuracy) << what << ", method " << static_cast<int>(method);
      }
    }
  };
  check(apart, "two pairs of surfaces");
  check(corner, "only one pair of surfaces");
  check(firstRowZero, "the first row is zero");
}

/// Several unknowns at each point, which have nothing to do with each other: crosses of one component never lead to
/// another.
TEST(LowRank, componentsThatAreNotCoupledAreAllFound) {
  for (const int components : {2, 3, 5}) {
    for (int points = 20; points < 40; ++points) {
      const int n = components * points;
      const auto function = [=](int i, int j) {
        const double distance = 3 + (i / components + j / components) / static_cast<double>(points);
        return i % components == j % components ? (1.0 + i % components) / distance : 0.0;
      };
      const FunctionKernel<double, std::decay_t<decltype(function)>> kernel(function);
      for (const Approximation method : {Approximation::Aca, Approximation::AcaPlus}) {
        const auto block = approximate(kernel, upTo(n), upTo(n), {1e-4, method, true});
        ASSERT_TRUE(block) << n;
        EXPECT_LE(errorOf(kernel, *block), 1e-4) << components << " components of " << points;
      }
    }
  }
}

/// The same where half of the rows and half of the columns are zero: they are not settled either.
TEST(LowRank, zeroRowsAndColumnsDoNotHideComponents) {
  for (const int components : {2, 3, 5}) {
    for (int points = 6; points < 30; ++points) {
      const int rows = 2 * components * points, columns = components * points;
      const auto function = [=](int i, int j) {
        const double distance = 3 + (i / components + j / components) / static_cast<double>(points);
        return 2 * i < rows || 2 * j < columns || i % components != j % components ? 0.0
                                                                                   : (1.0 + i % components) / distance;
      };
      const FunctionKernel<double, std::decay_t<decltype(function)>> kernel(function);
      for (const Approximation method : {Approximation::Aca, Approximation::AcaPlus}) {
        const auto block = approximate(kernel, upTo(rows), upTo(columns), {1e-4, method, true});
        ASSERT_TRUE(block) << rows;
        EXPECT_LE(errorOf(kernel, *block), 1e-4) << components << " components of " << points;
      }
    }
  }
}

/// Pivots whose inverse overflows, or the column that it scales; larger entries come later.
TEST(LowRank, floatsThatAreAlmostZeroAreNoPivots) {
  for (const double exponent : {-92, -88, -87, -86, -85, -84, -80}) {
    const auto function = [=](int i, int j) {
      return static_cast<float>(std::exp(exponent + 2.5 * i) / (3.0 + i + j));
    };
    const FunctionKernel<float, std::decay_t<decltype(function)>> kernel(function);
    for (const bool recompress : {true, false}) {
      for (const Approximation method : {Approximation::Aca, Approximation::AcaPlus}) {
        const auto block = approximate(kernel, upTo(40), upTo(40), {1e-3, method, recompress});
        ASSERT_TRUE(block) << exponent;
        EXPECT_LE(errorOf(kernel, *block), 1e-3) << exponent;
      }
    }
  }
}

/// The double-layer kernel of two parallel planes and a wall: many zeros, and pivots that change sign.
TEST(LowRank, parallelSurfacesUnderTheDoubleLayerKernel) {
  std::vector<Point3> rows, columns;
  for (int i = 0; i < 100; ++i) {
    rows.push_back({0.1 * (i % 10), 0.1 * (i / 10), 0});
    columns.push_back({3 + 0.1 * (i % 10), 0.1 * (i / 10), i < 50 ? 0.0 : 1.0});
  }
  const auto entry = [&](int i, int j) {
    const Point3 d = rows[i] - columns[j];
    return dot(j % 10 == 0 ? Point3{1, 0, 0} : Point3{0, 0, 1}, d) / std::pow(norm(d), 3);
  };
  const FunctionKernel<double, decltype(entry)> kernel(entry);
  for (const Approximation method : methods) {
    const auto block = approximate(kernel, upTo(100), upTo(100), {1e-5, method});
    ASSERT_TRUE(block.has_value());
    EXPECT_LE(errorOf(kernel, *block), 1e-5) << static_cast<int>(method);
  }
}

TEST(LowRank, aBlockOfFullRankIsLeftDense) {
  const auto unit = [](int i, int j) { return i == j ? 1.0 : 0.0; };
  const FunctionKernel<double, decltype(unit)> kernel(unit);
  for (const Approximation method : methods) {
    EXPECT_FALSE(approximate(kernel, upTo(20), upTo(20), {1e-8, method}).has_value());
  }
}

TEST(LowRank, smallestBlocksWork) {
  const auto one = [](int i, int j) { return 1.0 + i * j; };
  const FunctionKernel<double, decltype(one)> kernel(one);
  for (const Approximation method : methods) {
    EXPECT_FALSE(approximate(kernel, {0}, {0}, {1e-8, method}).has_value());
    EXPECT_FALSE(approximate(kernel, {0}, upTo(9), {1e-8, method}).has_value());
    const auto block = approximate(kernel, upTo(5), upTo(9), {1e-8, method});
    ASSERT_TRUE(block.has_value());
    EXPECT_EQ(block->rank, 2);
  }
}

TEST(LowRank, anEntryThatIsNotFiniteIsAnError) {
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    // A whole column, so that each method looks at one of them.
    const auto bad = [=](int i, int j) { return j == 4 ? wrong : 1.0 / (20 + i + j); };
    const FunctionKernel<double, decltype(bad)> kernel(bad);
    for (const Approximation method : methods) {
      EXPECT_THROW(approximate(kernel, upTo(20), upTo(20), {1e-6, method}), BadInput);
    }
  }
}

}  // namespace
}  // namespace Komvos
