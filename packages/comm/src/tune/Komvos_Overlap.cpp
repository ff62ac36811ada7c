#include "Komvos_Overlap.hpp"

#include "Komvos_Error.hpp"
#include "Komvos_Settings.hpp"

namespace Komvos {

std::string toString(Overlap overlap) {
  switch (overlap) {
    case Overlap::none:
      return "none";
    case Overlap::interior:
      return "interior";
    case Overlap::byNode:
      return "by-node";
    default:
      return "auto";
  }
}

Overlap parseOverlap(const std::string& text) {
  for (const Overlap one : {Overlap::none, Overlap::interior, Overlap::byNode, Overlap::automatic}) {
    if (text == toString(one)) {
      return one;
    }
  }
  throw BadInput("'" + text + "' is not one of none, interior, by-node, auto");
}

Overlap Impl::resolveOverlap(std::optional<Overlap> given) {
  const std::optional<std::string> set = readSettings().overlap;
  return given.value_or(parsedOr("KOMVOS_OVERLAP", set, parseOverlap, Overlap::automatic));
}

}  // namespace Komvos
