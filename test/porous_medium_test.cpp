// The medium of the groundwater problem: range and distribution of its conductivity, and how it varies.
#include "problem/porous_medium.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace {

using Komvos::Program::PorousMedium;
using GO = Komvos::DefaultGlobalOrdinal;

constexpr GO edge = 40;

std::vector<double> exponents(const PorousMedium& medium) {
  std::vector<double> all;
  for (GO k = 0; k < edge; ++k) {
    for (GO j = 0; j < edge; ++j) {
      for (GO i = 0; i < edge; ++i) {
        all.push_back(std::log10(medium.conductivity(i, j, k)));
      }
    }
  }
  return all;
}

TEST(PorousMedium, HasTheConductivitiesOfPaper001) {
  const std::vector<double> all = exponents(PorousMedium({edge, edge, edge}));
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  EXPECT_GE(*least, -5);
  EXPECT_LE(*most, 5);
  EXPECT_LT(*least, -4.9);
  EXPECT_GT(*most, 4.9);
  std::array<int, 10> decades{};
  for (const double exponent : all) {
    ++decades[std::clamp(static_cast<int>(std::floor(exponent)) + 5, 0, 9)];
  }
  for (const int cells : decades) {
    EXPECT_GT(cells, static_cast<int>(all.size()) / 25) << "a tenth of the cells would be uniform";
    EXPECT_LT(cells, static_cast<int>(all.size()) / 5);
  }
}

TEST(PorousMedium, VariesSmoothlyAndBySteepLayers) {
  const PorousMedium medium({edge, edge, edge});
  const std::vector<double> all = exponents(medium);
  double sum = 0, most = 0, far = 0;
  int count = 0;
  for (std::size_t i = 0; i + edge / 2 < all.size(); ++i) {
    if (static_cast<GO>(i) % edge < edge / 2) {
      const double step = std::abs(all[i + 1] - all[i]);
      sum += step;
      most = std::max(most, step);
      far += std::abs(all[i + edge / 2] - all[i]);
      ++count;
    }
  }
  EXPECT_LT(sum / count, 0.4 * far / count) << "neighbours are more alike than cells far apart";
  EXPECT_GT(most, 1) << "somewhere conductivity changes tenfold from a cell to the next";
}

TEST(PorousMedium, DoesNotDependOnTheLengthOfLongerEdges) {
  const PorousMedium cube({edge, edge, edge}), tower({edge, edge, 2 * edge});
  EXPECT_EQ(cube.conductivity(3, 5, 7), tower.conductivity(3, 5, 7));
  EXPECT_NE(tower.conductivity(3, 5, 7), tower.conductivity(3, 5, 7 + edge));
}

}  // namespace
