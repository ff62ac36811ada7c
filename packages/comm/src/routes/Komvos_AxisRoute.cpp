#include "Komvos_AxisRoute.hpp"

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
