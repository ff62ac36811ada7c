/// \file storage_test.cpp
/// Values in few bytes, and half of a symmetric matrix: each beside the plain matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_HMatrix.hpp"
#include "Komvos_Panels_def.hpp"
#include "Komvos_StoragePlan.hpp"
#include "point_sets.hpp"

namespace Komvos {
namespace {

using Space = Kokkos::DefaultExecutionSpace;
using Impl::PanelKernel;
using Impl::ValueFormat;
using Impl::VectorUnit;
template <class Scalar>
using Vectors = Kokkos::View<Scalar**, Kokkos::LayoutLeft, typename HMatrix<Scalar, Space>::memory_space>;

constexpr ValueFormat formats[] = {ValueFormat::Whole,  ValueFormat::Bytes1, ValueFormat::Bytes2, ValueFormat::Bytes3,
                                   ValueFormat::Bytes4, ValueFormat::Bytes5, ValueFormat::Bytes6};

struct Machine {
  PanelKernel kernel;
  VectorUnit unit;
};
/// Those of this processor: where it lacks a unit, the next narrower one takes its place, and is here already.
std::vector<Machine> machinesHere() {
  std::vector<Machine> machines{{PanelKernel::Teams, VectorUnit::Plain}};
  for (const VectorUnit unit : {VectorUnit::Plain, VectorUnit::Avx2, VectorUnit::Avx512}) {
    if (unit <= Impl::widestVectorUnit()) {
      machines.push_back({PanelKernel::Threads, unit});
    }
  }
  return machines;
}
const std::vector<Machine> machines = machinesHere();

/// So that the output of a run says which units it has tested.
class Units : public testing::TestWithParam<VectorUnit> {};
INSTANTIATE_TEST_SUITE_P(Of, Units, testing::Values(VectorUnit::Avx2, VectorUnit::Avx512), [](const auto& info) {
  return std::string(info.param == VectorUnit::Avx2 ? "Avx2" : "Avx512");
});
TEST_P(Units, areThoseOfTheProcessor) {
  std::ifstream information("/proc/cpuinfo");
  std::string line;
  while (std::getline(information, line) && line.rfind("flags", 0) != 0) {
  }
  const auto has = [&](const char* flag) {
    return (line + " ").find(" " + std::string(flag) + " ") != std::string::npos;
  };
  const bool hasIt = GetParam() == VectorUnit::Avx2
                         ? has("avx2") && has("fma")
                         : has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq");
  if (!hasIt) {
    GTEST_SKIP() << "this processor lacks it";
  }
  EXPECT_LE(GetParam(), Impl::widestVectorUnit());
}

template <class T>
Kokkos::View<T*, typename HMatrix<double, Space>::memory_space> onDevice(const std::vector<T>& values) {
  return Impl::deviceList<typename HMatrix<double, Space>::memory_space>("values", values);
}
template <class View>
auto toHost(const View& view) {
  const auto host = Kokkos::create_mirror_view(view);
  Kokkos::deep_copy(host, view);
  return host;
}

/// One panel of one strip, with its dense twin. Kernels take some 64 columns at a time: the first two runs together,
/// the third in parts.
template <class Real>
class OneStrip {
 public:
  static constexpr int inputs = 400, numColumns = 63 + 80 + 150;

  OneStrip(ValueFormat format, int rows) : rows_(rows), layout_(sizeof(Real)) {
    layout_.beginPanel(0, rows);
    layout_.beginStrip(0, rows, format);
    const bool isWhole = format == ValueFormat::Whole;
    std::vector<Impl::StripPlace> places;
    for (const Impl::PanelRun& run : runs()) {
      const auto place = layout_.addRun(run.input, run.columns, isWhole ? 1 : run.scale);
      for (int c = 0; c < run.columns; ++c) {
        places.push_back({place.strip, place.column + c});
      }
    }
    layout_.finish();
    std::mt19937 generator(static_cast<unsigned>(rows));
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto bytes = Impl::Panels<Real, Space>::allocate("bytes", layout_);
    const auto host = Kokkos::create_mirror_view(bytes);
    Kokkos::deep_copy(host, static_cast<unsigned char>(0xff));  // NaN, where nothing is stored
    const double scale = isWhole ? 1 : 1 / Impl::largestInteger(format);
    for (int c = 0; c < numColumns; ++c) {
      std::vector<Real> column(rows);
      for (Real& value : column) {
        value = static_cast<Real>(uniform(generator));
      }
      column[c % rows] = c % 2 == 0 ? Real(1) : Real(-1);  // the ends of the range
      Impl::storeColumn(layout_, host.data(), places[c], 0, rows, column.data(), 1, scale);
      for (const Real value : column) {
        const double stored = isWhole ? static_cast<double>(value)
                                      : static_cast<double>(
                                            Impl::nearestInteger(static_cast<double>(value) * (1 / scale)));
        EXPECT_NEAR(stored * scale, static_cast<double>(value), isWhole ? 0 : 0.52 * scale);
        twin_.push_back(stored * (isWhole ? 1 : runs()[runOf(c)].scale));
      }
    }
    Kokkos::deep_copy(bytes, host);
    panels_ = Impl::Panels<Real, Space>(layout_, bytes);
    panels_.prepareTeams(layout_);
  }

  static std::array<Impl::PanelRun, 3> runs() { return {{{10, 63, 0.5}, {80, 80, 2}, {230, 150, 0.25}}}; }
  static int runOf(int column) { return column < 63 ? 0 : column < 143 ? 1 : 2; }
  static int inputOf(int column) {
    const Impl::PanelRun run = runs()[runOf(column)];
    return run.input + column - (column < 63 ? 0 : column < 143 ? 63 : 143);
  }

  void check(const Machine& machine, int numVectors, double bound) {
    panels_.useVectorUnit(machine.unit);
    std::vector<Real> x(static_cast<std::size_t>(inputs) * numVectors);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<Real>(std::sin(0.7 * static_cast<double>(i) + 1));
    }
    const auto input = onDevice(x);
    const auto output = onDevice(std::vector<Real>(static_cast<std::size_t>(rows_) * numVectors, 7));
    panels_.multiply(Space(), machine.kernel, numVectors, input.data(), output.data(), false);
    Space().fence();
    checkRows(toHost(output), x, numVectors, bound);
    checkTransposed(machine.kernel, x, numVectors, bound);
    checkBoth(x, numVectors, bound);
  }

 private:
  template <class View>
  void checkRows(const View& y, const std::vector<Real>& x, int numVectors, double bound) const {
    for (int q = 0; q < numVectors; ++q) {
      for (int r = 0; r < rows_; ++r) {
        double sum = 0, sizes = 0;
        for (int c = 0; c < numColumns; ++c) {
          const double term = twin_[static_cast<std::size_t>(c) * rows_ + r] *
                              static_cast<double>(x[static_cast<std::size_t>(inputOf(c)) * numVectors + q]);
          sum += term;
          sizes += std::abs(term);
        }
        ASSERT_NEAR(static_cast<double>(y(static_cast<std::size_t>(r) * numVectors + q)), sum, bound * sizes)
            << rows_ << " rows, " << numVectors << " vectors";
      }
    }
  }

  /// The sum that column c has in a transposed product, of the first rows of x, and a bound for its error.
  std::pair<double, double> columnSum(const std::vector<Real>& x, int c, int numVectors, int q, double bound) const {
    double sum = 0, sizes = 0;
    for (int r = 0; r < rows_; ++r) {
      const double term = twin_[static_cast<std::size_t>(c) * rows_ + r] *
                          static_cast<double>(x[static_cast<std::size_t>(r) * numVectors + q]);
      sum += term;
      sizes += std::abs(term);
    }
    return {sum, bound * sizes};
  }

  void checkTransposed(PanelKernel kernel, const std::vector<Real>& x, int numVectors, double bound) {
    const auto input = onDevice(x);
    const auto output = onDevice(std::vector<Real>(static_cast<std::size_t>(inputs) * numVectors, 7));
    for (const bool leavesOut : {false, true}) {
      const std::vector<std::int64_t> leftOut =
          leavesOut ? std::vector<std::int64_t>{0, 5, 6, 62, 63, 142, 143, 292} : std::vector<std::int64_t>{};
      panels_.prepareTransposed(layout_, kernel, inputs, leftOut);
      for (const bool add : {false, true}) {
        Kokkos::deep_copy(output, Real(7));
        panels_.multiplyTransposed(Space(), kernel, numVectors, input.data(), output.data(), add);
        Space().fence();
        const auto y = toHost(output);
        std::vector<int> columnAt(inputs, -1);
        for (int c = 0; c < numColumns; ++c) {
          if (std::find(leftOut.begin(), leftOut.end(), c) == leftOut.end()) {
            columnAt[inputOf(c)] = c;
          }
        }
        for (int q = 0; q < numVectors; ++q) {
          for (int place = 0; place < inputs; ++place) {
            const auto [sum, error] = columnAt[place] < 0 ? std::pair(0.0, 0.0)
                                                          : columnSum(x, columnAt[place], numVectors, q, bound);
            ASSERT_NEAR(static_cast<double>(y(static_cast<std::size_t>(place) * numVectors + q)), sum + (add ? 7 : 0),
                        error + (add ? 100 * static_cast<double>(std::numeric_limits<Real>::epsilon()) : 0))
                << rows_ << " rows, " << numVectors << " vectors, place " << place << ", transposed";
          }
        }
      }
    }
  }

  void checkBoth(const std::vector<Real>& x, int numVectors, double bound) {
    if constexpr (Impl::Panels<Real, Space>::canMultiplyBoth) {
      const auto input = onDevice(x);
      const auto parts = onDevice(std::vector<Real>(static_cast<std::size_t>(numColumns) * numVectors, 7));
      const auto y = onDevice(std::vector<Real>(static_cast<std::size_t>(rows_) * numVectors, 7));
      panels_.multiplyBoth(Space(), numVectors, input.data(), y.data(), input.data(), parts.data());
      Space().fence();
      checkRows(y, x, numVectors, bound);
      for (int q = 0; q < numVectors; ++q) {
        for (int c = 0; c < numColumns; ++c) {
          const auto [sum, error] = columnSum(x, c, numVectors, q, bound);
          ASSERT_NEAR(static_cast<double>(parts(static_cast<std::size_t>(c) * numVectors + q)), sum, error)
              << rows_ << " rows, " << numVectors << " vectors, column " << c << ", both";
        }
      }
    }
  }

  int rows_;
  Impl::PanelLayout layout_;
  Impl::Panels<Real, Space> panels_;
  std::vector<double> twin_;
};

TEST(ValueFormat, everyFormatIsReadAsItWasStoredByEveryKernel) {
  for (const ValueFormat format : formats) {
    for (const int rows : {1, 3, 7, 8, 9, 16, 20, 31, 33, 40, 47, 48, 57, 64}) {
      OneStrip<double> strip(format, rows);
      for (const Machine& machine : machines) {
        for (const int vectors : {1, 2, 4, 8, 16}) {
          strip.check(machine, vectors, 1e-14);
        }
      }
    }
  }
}

TEST(ValueFormat, floatsHaveUpToThreeBytes) {
  for (const ValueFormat format : {ValueFormat::Whole, ValueFormat::Bytes1, ValueFormat::Bytes2, ValueFormat::Bytes3}) {
    for (const int rows : {1, 5, 16, 17, 33, 64}) {
      OneStrip<float> strip(format, rows);
      for (const Machine& machine : machines) {
        for (const int vectors : {1, 4, 16}) {
          strip.check(machine, vectors, 1e-5);
        }
      }
    }
  }
}

TEST(StoragePlan, roundedFactorsKeepTheAccuracyWhateverTheirColumns) {
  std::mt19937 generator(5);
  std::normal_distribution<double> normal;
  for (const double accuracy : {1e-1, 1e-3, 1e-5, 1e-8, 1e-11}) {
    LowRank<double> block{50, 30, 8, {}, {}};
    for (int l = 0; l < block.rank; ++l) {
      for (int i = 0; i < block.rows; ++i) {
        block.u.push_back(normal(generator) * std::pow(0.1, l) * (i == l ? 50 : 1));  // one entry stands out
      }
      for (int i = 0; i < block.columns; ++i) {
        block.v.push_back(normal(generator));
      }
    }
    recompress(block, 1e-14);  // makes columns orthogonal
    const auto plan = Impl::formatsOfFactors(block, accuracy);
    LowRank<double> rounded = block;
    for (int l = 0; l < block.rank; ++l) {
      if (plan[l].format != ValueFormat::Whole) {
        for (int i = 0; i < block.rows; ++i) {
          double& u = rounded.u[static_cast<std::size_t>(l) * block.rows + i];
          u = std::round(u / plan[l].uScale) * plan[l].uScale;
        }
        for (int i = 0; i < block.columns; ++i) {
          double& v = rounded.v[static_cast<std::size_t>(l) * block.columns + i];
          v = std::round(v / plan[l].vScale) * plan[l].vScale;
        }
      }
    }
    double difference = 0, all = 0;
    for (int i = 0; i < block.rows; ++i) {
      for (int j = 0; j < block.columns; ++j) {
        double exact = 0, other = 0;
        for (int l = 0; l < block.rank; ++l) {
          const std::size_t ui = static_cast<std::size_t>(l) * block.rows + i;
          const std::size_t vj = static_cast<std::size_t>(l) * block.columns + j;
          exact += block.u[ui] * block.v[vj];
          other += rounded.u[ui] * rounded.v[vj];
        }
        difference += (exact - other) * (exact - other);
        all += exact * exact;
      }
    }
    EXPECT_LE(std::sqrt(difference / all), accuracy);
    EXPECT_LE(plan.back().format, plan.front().format == ValueFormat::Whole ? ValueFormat::Bytes6 : plan.front().format)
        << "the smallest singular value needs the fewest bytes";
  }
}

TEST(StoragePlan, aLargeEntryDoesNotCoarsenTheOthers) {
  std::vector<double> values(400);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 1 + std::sin(static_cast<double>(i));
  }
  const auto plain = Impl::formatOfDense(values, 1e-4);
  EXPECT_EQ(plain.format, ValueFormat::Bytes2);
  values[7] = 1e10;
  EXPECT_EQ(Impl::formatOfDense(values, 1e-4).format, ValueFormat::Bytes6);
  values[7] = 1e15;
  EXPECT_EQ(Impl::formatOfDense(values, 1e-4).format, ValueFormat::Whole);
}

struct Case {
  std::vector<Point3> points = test::spiralOnSphere(700);
  ClusterTree tree{points, {}, {15}};
};

/// || A - H || / || A || in the Frobenius norm, A without its diagonal entries as the kernel gives them.
template <class Scalar>
double frobeniusError(const HMatrix<Scalar, Space>& matrix, const EntryKernel<Scalar>& kernel, int n, bool transposed) {
  const Vectors<Scalar> unit("unit", n, n), y("y", n, n);
  const auto host = Kokkos::create_mirror_view(unit);
  for (int i = 0; i < n; ++i) {
    host(i, i) = 1;
  }
  Kokkos::deep_copy(unit, host);
  transposed ? matrix.multiplyTransposed(Space(), unit, y) : matrix.multiply(Space(), unit, y);
  Space().fence();
  const auto out = toHost(y);
  double difference = 0, all = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const double entry = transposed ? kernel.entry(j, i) : kernel.entry(i, j);
      difference += (out(i, j) - entry) * (out(i, j) - entry);
      all += entry * entry;
    }
  }
  return std::sqrt(difference / all);
}

TEST(ReducedStorage, keepsTheAskedAccuracyInFewerBytes) {
  const Case c{};
  const auto kernel = test::distanceKernel<double>(
      c.points, c.points, [](double r) { return 1 / r; }, 30.0);
  for (const double accuracy : {1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10}) {
    HMatrixOptions options;
    options.lowRank.accuracy = accuracy;
    options.storage = Storage::Whole;
    const HMatrix<double, Space> whole(c.tree, c.tree, kernel, options);
    options.storage = Storage::Reduced;
    HMatrix<double, Space> reduced(c.tree, c.tree, kernel, options);
    EXPECT_LT(reduced.report().bytes, accuracy > 1e-5 ? whole.report().bytes / 2 : whole.report().bytes);
    EXPECT_LE(reduced.report().bytes, reduced.bytesRead());
    EXPECT_LE(static_cast<double>(reduced.bytesRead()), 1.05 * static_cast<double>(reduced.report().bytes));
    for (const Machine& machine : machines) {
      reduced.useKernel(machine.kernel);
      reduced.useVectorUnit(machine.unit);
      EXPECT_LE(frobeniusError(reduced, kernel, c.tree.size(), false), accuracy);
      EXPECT_LE(frobeniusError(reduced, kernel, c.tree.size(), true), accuracy);
    }
  }
}

TEST(ReducedStorage, worksForFloats) {
  const Case c{};
  const auto kernel = test::distanceKernel<float>(
      c.points, c.points, [](double r) { return static_cast<float>(1 / r); }, 3.0F);
  HMatrixOptions options;
  options.lowRank.accuracy = 1e-3;
  options.storage = Storage::Reduced;
  const HMatrix<float, Space> reduced(c.tree, c.tree, kernel, options);
  EXPECT_LE(frobeniusError(reduced, kernel, c.tree.size(), false), 1e-3);
}

TEST(HalfOfASymmetricMatrix, isTheSameMatrix) {
  const Case c{};
  const auto kernel = test::distanceKernel<double>(
      c.points, c.points, [](double r) { return std::exp(-r) / r; }, 30.0);
  for (const auto storage : {Storage::Whole, Storage::Reduced}) {
    HMatrixOptions options;
    options.lowRank.accuracy = 1e-6;
    options.storage = storage;
    const HMatrix<double, Space> both(c.tree, c.tree, kernel, options);
    options.halfIfSymmetric = true;
    const HMatrix<double, Space> half(c.tree, c.tree, kernel, options);
    EXPECT_TRUE(half.report().isHalf);
    EXPECT_FALSE(both.report().isHalf);
    EXPECT_LT(static_cast<double>(half.report().bytes), 0.56 * static_cast<double>(both.report().bytes));
    EXPECT_LE(frobeniusError(half, kernel, c.tree.size(), false), 1e-6);
    EXPECT_LE(frobeniusError(half, kernel, c.tree.size(), true), 1e-6);
  }
}

TEST(HalfOfASymmetricMatrix, isNotTakenOfAKernelThatIsNot) {
  const Case c{};
  const auto entry = [&](int i, int j) { return i == j ? 1.0 : (1 + c.points[i].z) / norm(c.points[i] - c.points[j]); };
  const FunctionKernel<double, decltype(entry)> kernel(entry);
  HMatrixOptions options;
  options.halfIfSymmetric = true;
  EXPECT_FALSE((HMatrix<double, Space>(c.tree, c.tree, kernel, options).report().isHalf));
}

TEST(HMatrixProgress, growsToOne) {
  const Case c{};
  const auto kernel = test::distanceKernel<double>(
      c.points, c.points, [](double r) { return 1 / r; }, 30.0);
  std::vector<double> told;
  HMatrixOptions options;
  options.progress = [&](double part) { told.push_back(part); };
  const HMatrix<double, Space> matrix(c.tree, c.tree, kernel, options);
  ASSERT_GT(told.size(), 5U);
  EXPECT_GT(told.front(), 0);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), 1);
}

}  // namespace
}  // namespace Komvos
