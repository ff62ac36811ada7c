/// \file Komvos_Box.cpp
#include "Komvos_Box.hpp"

#include <algorithm>

namespace Komvos {

Box enclosing(const Box& a, const Box& b) {
  return {{std::min(a.least.x, b.least.x), std::min(a.least.y, b.least.y), std::min(a.least.z, b.least.z)},
          {std::max(a.most.x, b.most.x), std::max(a.most.y, b.most.y), std::max(a.most.z, b.most.z)}};
}

double distance(const Box& a, const Box& b) {
  const auto gap = [](double least1, double most1, double least2, double most2) {
    return std::max({0.0, least2 - most1, least1 - most2});
  };
  return norm({gap(a.least.x, a.most.x, b.least.x, b.most.x), gap(a.least.y, a.most.y, b.least.y, b.most.y),
               gap(a.least.z, a.most.z, b.least.z, b.most.z)});
}

}  // namespace Komvos
