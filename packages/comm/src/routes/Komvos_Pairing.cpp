#include "Komvos_Pairing.hpp"

#include "Komvos_Error.hpp"

namespace Komvos {

Pairing parsePairing(const std::string& text) {
  for (const Pairing pairing : {Pairing::byVolume, Pairing::leastLoaded, Pairing::majority}) {
    if (text == toString(pairing)) {
      return pairing;
    }
  }
  throw BadInput("pairing '" + text + "' is not one of by-volume, least-loaded, majority");
}

std::string toString(Pairing pairing) {
  switch (pairing) {
    case Pairing::leastLoaded:
      return "least-loaded";
    case Pairing::majority:
      return "majority";
    default:
      return "by-volume";
  }
}

}  // namespace Komvos
