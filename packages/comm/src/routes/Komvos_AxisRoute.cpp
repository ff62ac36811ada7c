#include "Komvos_AxisRoute.hpp"

#include <algorithm>

#include "Komvos_Error.hpp"

namespace Komvos {

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

bool AxisRoute::knowsPeers(int stage) const {
  // Most messages along an axis may be empty. Up to so many cost less than a consensus; a grid that fits the nodes has
  // axes of this length from 64^3 nodes on.
  constexpr int longest = 64;
  const int lengths[] = {1, factors_.x, factors_.y, factors_.z, 1};
  return lengths[stage] <= longest;
}

Route::Peers AxisRoute::peers(int stage, const Pattern& pattern) const {
  const auto& [c, x, y, z] = factors_;
  const int here = pattern.rank;
  const int group = here / c;
  const int collector = group * c;
  Peers peers;
  if (stage == 0) {
    std::vector<int>& sources = peers.sources;
    for (const Pattern::Receive& receive : pattern.receives) {  // sorted by owner
      const int owner = receive.value.owner;
      if (owner / c == group && (sources.empty() || sources.back() != owner)) {
        sources.push_back(owner);
      }
    }
    if (here == collector) {
      sources.clear();
      for (int rank = here + 1; rank < here + c; ++rank) {
        sources.push_back(rank);
      }
    } else {
      peers.expects = {collector};
    }
  } else if (stage < 4 && here == collector) {
    const int strides[] = {1, x, x * y, x * y * z};
    const int line = group / strides[stage] * strides[stage] + group % strides[stage - 1];
    for (int other = line; other < line + strides[stage]; other += strides[stage - 1]) {
      if (other != group) {
        peers.sources.push_back(other * c);
      }
    }
    peers.expects = peers.sources;
  } else if (stage == 4 && here != collector) {
    const auto isForeign = [c = c, group](const Pattern::Receive& one) { return one.value.owner / c != group; };
    if (std::any_of(pattern.receives.begin(), pattern.receives.end(), isForeign)) {
      peers.sources = {collector};
    }
  }
  return peers;
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
