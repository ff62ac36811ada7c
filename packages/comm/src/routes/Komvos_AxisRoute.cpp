#include "Komvos_AxisRoute.hpp"

#include <numeric>

#include "Komvos_Error.hpp"

namespace Komvos {

namespace {

std::vector<int> divisorsOf(int number) {
  std::vector<int> divisors;
  for (int d = 1; d <= number; ++d) {
    if (number % d == 0) {
      divisors.push_back(d);
    }
  }
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

AxisFactors AxisFactors::fitting(const NodeTopology& nodes) {
  int c = nodes.numRanks();  // groups of c end wherever the node changes
  for (int rank = 1; rank < nodes.numRanks(); ++rank) {
    if (!nodes.sameNode(rank - 1, rank)) {
      c = std::gcd(c, rank);
    }
  }
  return balanced(nodes.numRanks(), c);
}

AxisRoute::AxisRoute(const AxisFactors& factors, int numRanks) : factors_(factors) {
  long product = 1;  // 0 once it cannot become numRanks any more: it must not overflow
  for (const int factor : {factors.c, factors.x, factors.y, factors.z}) {
    product = factor >= 1 && product <= numRanks ? product * factor : 0;
  }
  if (product != numRanks) {
    throw BadInput("route axis:" + factors.text() + ": needs four positive factors with product " +
                   std::to_string(numRanks) + ", the number of ranks");
  }
}

int AxisRoute::hop(int stage, int here, int origin, int destination) const {
  const auto& [c, x, y, z] = factors_;
  const int group = destination / c;
  if (stage == 4 || origin / c == group) {
    return destination;
  }
  // Stage 0 keeps the group, 1 takes the destination's x, 2 its x and y, 3 all: what is below the stride.
  const int strides[] = {1, x, x * y, x * y * z};
  const int stride = strides[stage];
  const int next = here / c / stride * stride + group % stride;
  return next * c;
}

}  // namespace Komvos
