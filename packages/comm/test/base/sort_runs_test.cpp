#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
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

TEST(SortRuns, SortsListAfterList) {
  KomvosTest::Random random(5);
  Komvos::Impl::RunSorter<std::uint64_t> sorter;
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint64_t> list;
    const int runs = random.below(6), longest = 1 + random.below(i % 2 == 0 ? 40 : 4);
    for (int run = 0; run < runs; ++run) {
      std::uint64_t value = static_cast<std::uint64_t>(random.below(100));
      for (int k = random.below(longest + 1); k > 0; --k) {
        list.push_back(value += static_cast<std::uint64_t>(random.below(3)));
      }
    }
    std::vector<std::uint64_t> expected = list;
    std::sort(expected.begin(), expected.end());
    sorter.sort(list.data(), list.size());
    EXPECT_EQ(expected, list);
  }
}

}  // namespace
