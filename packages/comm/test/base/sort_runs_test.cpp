#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "Komvos_SortRuns.hpp"
#include "support/test_patterns.hpp"

namespace {

TEST(SortRuns, SortsListsOfAnyNumberOfRuns) {
  KomvosTest::Random random(3);
  for (int numRuns = 0; numRuns < 40; ++numRuns) {
    std::vector<int> list;
    for (int run = 0; run < numRuns; ++run) {
      const auto begin = list.insert(list.end(), 1 + random.below(20), 0);
      std::generate(begin, list.end(), [&random] { return random.below(50); });
      std::sort(begin, list.end());
    }
    std::vector<int> expected = list;
    std::sort(expected.begin(), expected.end());
    Komvos::Impl::sortRuns(list.begin(), list.end());
    EXPECT_EQ(expected, list) << numRuns << " runs";
  }
}

TEST(SortRuns, SortsListsInNoOrder) {
  KomvosTest::Random random(4);
  for (const int length : {1, 2, 3, 100, 1001}) {
    std::vector<int> list(length);
    std::generate(list.begin(), list.end(), [&random] { return random.below(1000); });
    std::vector<int> expected = list;
    std::sort(expected.begin(), expected.end());
    Komvos::Impl::sortRuns(list.begin(), list.end());
    EXPECT_EQ(expected, list) << length << " values";
  }
}

}  // namespace
