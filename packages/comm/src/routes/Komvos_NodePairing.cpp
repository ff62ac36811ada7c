#include "Komvos_NodePairing.hpp"

#include <algorithm>

#include "Komvos_Error.hpp"

namespace Komvos {

const NodePairing::Part& NodePairing::partOf(int from, int to, int local) const {
  const auto found = pairs_.find(key(from, to));
  if (found == pairs_.end()) {
    throw Error("NodePairing: no pair for values from node " + std::to_string(from) + " to node " + std::to_string(to));
  }
  const std::vector<Part>& parts = found->second;
  const auto after = std::upper_bound(parts.begin() + 1, parts.end(), local,
                                      [](int origin, const Part& part) { return origin < part.firstLocal; });
  return *(after - 1);
}

}  // namespace Komvos
