#include "Komvos_AxisFactors.hpp"

#include <algorithm>

#include "Komvos_Error.hpp"
#include "Komvos_NodeTopology.hpp"

namespace Komvos {

namespace {

std::vector<int> divisorsOf(int number) {
  std::vector<int> divisors;
  for (int d = 1; d <= number / d; ++d) {
    if (number % d == 0) {
      divisors.push_back(d);
      if (d != number / d) {
        divisors.push_back(number / d);
      }
    }
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

}  // namespace

std::string AxisFactors::text() const {
  return std::to_string(c) + "," + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
}

std::vector<AxisFactors> AxisFactors::all(int numRanks) {
  if (numRanks < 1) {
    throw BadInput("AxisFactors::all: " + std::to_string(numRanks) + " ranks; must be at least 1");
  }
  std::vector<AxisFactors> list;
  const std::vector<int> divisors = divisorsOf(numRanks);
  const auto eachDivisor = [&divisors](int number, const auto& work) {
    for (const int d : divisors) {
      if (number % d == 0) {
        work(d, number / d);
      }
    }
  };
  eachDivisor(numRanks, [&](int c, int groups) {
    eachDivisor(groups, [&](int x, int rest) {
      eachDivisor(rest, [&](int y, int z) { list.push_back({c, x, y, z}); });
    });
  });
  return list;
}

AxisFactors AxisFactors::balanced(int numRanks, int c) {
  if (numRanks < 1 || c < 1 || numRanks % c != 0) {
    throw BadInput("AxisFactors::balanced: " + std::to_string(numRanks) + " ranks in groups of " + std::to_string(c));
  }
  const int groups = numRanks / c;
  AxisFactors best{c, groups, 1, 1};
  for (const AxisFactors& grid : all(groups)) {
    if (grid.c == 1 && grid.x >= grid.y && grid.y >= grid.z && grid.x + grid.y + grid.z < best.x + best.y + best.z) {
      best = {c, grid.x, grid.y, grid.z};
    }
  }
  return best;
}

AxisFactors AxisFactors::fitting(const NodeTopology& nodes) { return balanced(nodes.numRanks(), nodes.largestGroup()); }

}  // namespace Komvos
