// How the rows of a rank are joined to units, sorted into stages, and which overlap is chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "Komvos_HostRows.hpp"
#include "Komvos_OverlapChoice.hpp"
#include "Komvos_TpetraShim.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace Komvos::Impl;
using Komvos::Overlap;

std::vector<RowClass> raised(std::vector<RowClass> classes, int columns) {
  const std::vector<int> units(classes.size(), toUnit(1, columns));
  raiseShortRuns(units.data(), RowClass::local, classes);
  raiseShortRuns(units.data(), RowClass::onNode, classes);
  return classes;
}

constexpr RowClass l = RowClass::local, n = RowClass::onNode, o = RowClass::offNode;

TEST(RowUnits, AreRunsOfRowsWithTheSameColumnsOfFourAtMost) {
  // Rows 0-4 the same, 5 of its own, 6-7 the same, 8-9 empty.
  const bool same[10] = {false, true, true, true, true, false, false, true, false, true};
  using Units = std::vector<std::array<int, 2>>;  // first row, number of rows
  const auto unitsOf = [](const bool* sameAsBefore, int numRows) {
    Units units;
    forEachUnit(sameAsBefore, numRows, [&](int first, int rows) { units.push_back({first, rows}); });
    return units;
  };
  EXPECT_EQ((Units{{0, 4}, {4, 1}, {5, 1}, {6, 2}, {8, 2}}), unitsOf(same, 10));
  EXPECT_EQ((Units{{0, 1}, {1, 1}, {2, 1}}), unitsOf(nullptr, 3));
  EXPECT_EQ(Units{}, unitsOf(same, 0));
}

TEST(Columns, AreCoveredByTheFewestPasses) {
  for (int columns = 0; columns <= 40; ++columns) {
    int next = 0, passes = 0;
    forColumns(columns, [&](auto width, int first) {
      EXPECT_EQ(next, first) << columns << " columns";
      next += decltype(width)::value;
      ++passes;
    });
    EXPECT_EQ(columns, next);
    const int rest = columns % 8;
    EXPECT_EQ(columns / 8 + (rest == 0 ? 0 : rest <= 4 ? 1 : 2), passes) << columns << " columns";
  }
}

TEST(RowStages, LeaveShortRunsToTheStageOfTheirNeighbours) {
  // 100 entries a row: runs of ten rows and fewer are short.
  EXPECT_EQ((std::vector<RowClass>{o, o, o}), raised({o, l, o}, 100));
  std::vector<RowClass> manyThenLocal(11, n);
  manyThenLocal.push_back(l);
  manyThenLocal.push_back(o);
  std::vector<RowClass> lowerNeighbour(12, n);
  lowerNeighbour.push_back(o);
  EXPECT_EQ(lowerNeighbour, raised(manyThenLocal, 100)) << "eleven rows are long enough";
  EXPECT_EQ((std::vector<RowClass>{o, o, o}), raised({o, n, o}, 100));
  EXPECT_EQ((std::vector<RowClass>{o, o, o, o}), raised({o, l, n, o}, 100)) << "first with n, then with o";
  EXPECT_EQ((std::vector<RowClass>{l, l, l}), raised({l, l, l}, 2000)) << "nothing is short";
  EXPECT_EQ((std::vector<RowClass>{o, l, o}), raised({o, l, o}, 2000)) << "long enough";
  std::vector<RowClass> onlyLocal(3, l);
  EXPECT_EQ((std::vector<RowClass>{o, o, o}), raised(onlyLocal, 1)) << "few rows need no stage of their own";
}

/// Rows of so many entries, among them sums that are zero, of either sign.
struct ShortRows {
  std::vector<int> units, columns;
  std::vector<double> values, x;
  int numRows() const { return static_cast<int>(units.size()); }

  explicit ShortRows(const std::vector<int>& lengths) {
    for (int i = 0; i < 20; ++i) {
      x.push_back(i % 5 == 0 ? -0.0 : 1.0 / (3 + i));
    }
    for (const int length : lengths) {
      const bool isZero = units.size() % 4 == 3;
      units.push_back(toUnit(1, length));
      for (int k = 0; k < length; ++k) {
        columns.push_back(static_cast<int>(7 * columns.size() % x.size()));
        values.push_back(isZero ? -0.0 : 1.0 + 1.0 / (1 + columns.size()));
      }
    }
  }

  /// One row after the other, by the loop over its entries.
  std::vector<double> plainProduct(double alpha, double beta, const std::vector<double>& b) const {
    std::vector<double> y(b);
    const RowResult<double> result{{b.data(), 0}, {y.data(), 0}, alpha, beta};
    std::size_t first = 0;
    for (int row = 0; row < numRows(); ++row) {
      const int count = columnsOfUnit(units[row]);
      multiplyByColumn<1>(&values[first], &columns[first], count, OneColumn<double>{x.data()}, result, row, 0);
      first += count;
    }
    return y;
  }

  enum class Access { plain, prefetched, rolled };

  std::vector<double> product(double alpha, double beta, const std::vector<double>& b, bool needsGhosts,
                              Access access) const {
    const int numSame = 6;
    std::vector<double> owned(x.begin(), x.begin() + numSame), ghosts(x.begin() + numSame, x.end()), y(b);
    const RowResult<double> result{{b.data(), 0}, {y.data(), 0}, alpha, beta};
    const RowInterval all{0, 0, numRows(), needsGhosts, 0, 0};
    const MultiplyIntervals<double, int, OneColumn<double>, OwnedAndGhosts<double>, 1, false> multiply{
        &all,
        units.data(),
        columns.data(),
        values.data(),
        {x.data()},
        {owned.data(), ghosts.data(), numSame},
        result,
        0,
        prefetched(access),
        access == Access::rolled};
    multiply(0);
    return y;
  }

  PrefetchX<int> prefetched(Access access) const {
    return access == Access::plain ? PrefetchX<int>()
                                   : PrefetchX<int>(columns.data(), static_cast<std::ptrdiff_t>(columns.size()));
  }
};

TEST(ShortRows, HaveTheSameBitsAsTheLoopOverTheirEntries) {
  std::vector<int> inRuns, mixed;
  for (int length = 0; length <= maxShortRow + 5; ++length) {
    inRuns.insert(inRuns.end(), 8, length);
    for (int other = 0; other <= maxShortRow + 5; ++other) {
      mixed.insert(mixed.end(), {length, other});
    }
  }
  for (const ShortRows& rows : {ShortRows(inRuns), ShortRows(mixed)}) {
    std::vector<double> b(rows.numRows());
    for (std::size_t i = 0; i < b.size(); ++i) {
      b[i] = i % 3 == 0 ? -0.0 : 0.1 * static_cast<double>(i);
    }
    for (const double beta : {0.0, 1.0, -2.5}) {
      const std::vector<double> expected = rows.plainProduct(-1.5, beta, b);
      for (const auto access : {ShortRows::Access::plain, ShortRows::Access::prefetched, ShortRows::Access::rolled}) {
        for (const bool needsGhosts : {false, true}) {
          const std::vector<double> found = rows.product(-1.5, beta, b, needsGhosts, access);
          ASSERT_EQ(expected.size(), found.size());
          EXPECT_EQ(0, std::memcmp(expected.data(), found.data(), found.size() * sizeof(double)))
              << static_cast<int>(access);
        }
      }
    }
  }
}

TEST(Numbering, IsBadWhereMostEntriesOfXAreInLinesOfTheirOwn) {
  constexpr int rows = 200000;
  KomvosTest::Random random(3);
  std::vector<int> stencil, dense, scattered, scatteredNodes;
  for (int row = 0; row < rows; ++row) {
    for (const int offset : {-8281, -91, -1, 0, 1, 91, 8281}) {  // some a multiple of 512 lines apart, nearly
      stencil.push_back(std::clamp(row + offset, 0, rows - 1));
    }
    dense.push_back(row / 80 + row % 80);
    scattered.push_back(random.below(rows));
    const int node = random.below(rows / 3);
    scatteredNodes.insert(scatteredNodes.end(), {3 * node, 3 * node + 1, 3 * node + 2});
  }
  const auto isBad = [](const std::vector<int>& columns) {
    return isScattered(columns.data(), static_cast<std::ptrdiff_t>(columns.size()), sizeof(double));
  };
  EXPECT_FALSE(isBad({}));
  EXPECT_FALSE(isBad(stencil));
  EXPECT_FALSE(isBad(dense));
  EXPECT_TRUE(isBad(scattered));
  EXPECT_TRUE(isBad(scatteredNodes)) << "three unknowns a node";
}

/// Blocks of 1 to `mostRows` rows with the same columns, 0 to 9 of these, by `width` columns of x.
struct Blocks {
  std::vector<int> units, columns;
  std::vector<double> values;
  int numRows = 0;
  static constexpr int numColumns = 50;

  explicit Blocks(int mostRows) {
    KomvosTest::Random random(5);
    for (int i = 0; i < 60; ++i) {
      const int rows = 1 + i % mostRows, count = random.below(10);
      units.push_back(toUnit(rows, count));
      for (int k = 0; k < count; ++k) {
        columns.push_back(random.below(numColumns));
      }
      for (int k = 0; k < rows * count; ++k) {
        values.push_back(random.unit() - 0.5);
      }
      numRows += rows;
    }
  }

  /// Row by row, column by column, entry by entry.
  std::vector<double> byLoops(const std::vector<double>& x, int width) const {
    std::vector<double> y(static_cast<std::size_t>(numRows) * width);
    const double* value = values.data();
    const int* column = columns.data();
    int row = 0;
    for (const int unit : units) {
      for (int r = 0; r < rowsOfUnit(unit); ++r, ++row, value += columnsOfUnit(unit)) {
        for (int w = 0; w < width; ++w) {
          double sum = 0;
          for (int k = 0; k < columnsOfUnit(unit); ++k) {
            sum += value[k] * x[column[k] * width + w];
          }
          y[row + static_cast<std::size_t>(w) * numRows] = sum;
        }
      }
      column += columnsOfUnit(unit);
    }
    return y;
  }

  template <int Width, int VectorBytes, bool HasBlocks = true, class Compiled>
  std::vector<double> byKernel(const std::vector<double>& x, const Compiled& compiled, bool rolls = false) const {
    std::vector<double> y(static_cast<std::size_t>(numRows) * Width, -1);
    const std::size_t stride = numRows;
    const RowResult<double> result{{y.data(), stride}, {y.data(), stride}, 1, 0};
    const RowInterval all{0, 0, static_cast<int>(units.size()), false, 0, 0};
    const RowMajor<double> source{x.data(), Width};
    const MultiplyIntervals<double, int, RowMajor<double>, RowMajor<double>, Width, HasBlocks, VectorBytes> product{
        &all, units.data(), columns.data(), values.data(), source, source, result, 0, {}, rolls};
    compiled(product)(0);
    return y;
  }
};

TEST(SeveralColumns, HaveTheSameBitsOnEveryProcessor) {
  const Blocks blocks(maxRowsOfUnit);
  const auto check = [&](auto width) {
    constexpr int w = decltype(width)::value;
    std::vector<double> x(Blocks::numColumns * w);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 1.0 / (1 + static_cast<double>(i));
    }
    const auto expected = blocks.byLoops(x, w);
    EXPECT_EQ(expected, (blocks.byKernel<w, 16>(x, [](const auto& product) { return product; }))) << w;
    EXPECT_EQ(expected, (blocks.byKernel<w, 32>(x, [](const auto& product) { return product; }))) << w;
#ifdef KOMVOS_HAVE_AVX2_TWIN
    if (cpuHasAvx2()) {
      EXPECT_EQ(expected,
                (blocks.byKernel<w, 32>(
                    x, [](const auto& product) { return WithAvx2<std::decay_t<decltype(product)>>{product}; })))
          << w;
    }
#endif
  };
  check(std::integral_constant<int, 2>());
  check(std::integral_constant<int, 3>());
  check(std::integral_constant<int, 4>());
  check(std::integral_constant<int, 8>());
}

TEST(SeveralColumns, HaveTheSameBitsInLoopsThatAreNotUnrolled) {
  const Blocks singleRows(1);
  std::vector<double> x(Blocks::numColumns * 2);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 1.0 / (1 + static_cast<double>(i));
  }
  const auto asItIs = [](const auto& product) { return product; };
  for (const bool rolls : {false, true}) {
    EXPECT_EQ(singleRows.byLoops(x, 2), (singleRows.byKernel<2, 16, false>(x, asItIs, rolls))) << rolls;
    EXPECT_EQ(singleRows.byLoops(x, 2), (singleRows.byKernel<2, 32, false>(x, asItIs, rolls))) << rolls;
  }
}

TEST(OverlapChoice, TimesAllKindsInTurnAndKeepsTheFastest) {
  for (const Overlap fastest : {Overlap::none, Overlap::interior, Overlap::byNode}) {
    OverlapChoice choice(Overlap::automatic);
    int products = 0;
    std::array<int, 3> uses{};
    for (; !choice.decided(); ++products) {
      ++uses[static_cast<int>(choice.overlap())];
      // The first product is slow, and so is one of each kind: neither counts.
      const bool slow = products == 0 || (products >= 4 && products <= 6);
      choice.record(slow ? 1.0 : choice.overlap() == fastest ? 0.001 : 0.002);
    }
    EXPECT_EQ(fastest, choice.overlap());
    EXPECT_EQ(16, products);
    for (const int count : uses) {
      EXPECT_GE(count, 5);
    }
  }
}

TEST(OverlapChoice, TriesNothingInTheFirstProductsWhereThereIsLittleToFind) {
  OverlapChoice choice(Overlap::automatic, Overlap::none, 30);
  for (int products = 0; products < 30; ++products) {
    EXPECT_FALSE(choice.wantsTime());
    EXPECT_EQ(Overlap::none, choice.overlap());
    choice.record(0);
  }
  for (int products = 0; products < 3 * OverlapChoice::samples; ++products) {
    ASSERT_TRUE(choice.wantsTime());
    choice.record(choice.overlap() == Overlap::interior ? 0.001 : 0.002);
  }
  EXPECT_TRUE(choice.decided());
  EXPECT_FALSE(choice.wantsTime());
  EXPECT_EQ(Overlap::interior, choice.overlap());
}

TEST(OverlapChoice, StaysWithOnePassUnlessAnotherKindIsClearlyFaster) {
  for (const double gain : {0.90, 0.97}) {
    OverlapChoice choice(Overlap::automatic);
    for (int products = 0; !choice.decided(); ++products) {
      const bool disturbed = products > 6;  // three of the five samples of each kind, by different amounts
      choice.record((disturbed ? 2.0 + products % 3 : 1.0) * (choice.overlap() == Overlap::interior ? gain : 1.0));
    }
    EXPECT_EQ(gain == 0.90 ? Overlap::interior : Overlap::none, choice.overlap());
  }
}

TEST(OverlapChoice, TimesNothingWhereTheCallerHasChosen) {
  for (const Overlap fixed : {Overlap::none, Overlap::interior, Overlap::byNode}) {
    const OverlapChoice choice(fixed);
    EXPECT_TRUE(choice.decided());
    EXPECT_EQ(fixed, choice.overlap());
  }
}

}  // namespace
