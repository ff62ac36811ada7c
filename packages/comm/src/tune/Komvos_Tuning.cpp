#include "Komvos_Tuning.hpp"

#include "Komvos_Error.hpp"

namespace Komvos {

std::string toString(Tuning tuning) {
  switch (tuning) {
    case Tuning::online:
      return "online";
    case Tuning::exhaustive:
      return "exhaustive";
    default:
      return "off";
  }
}

Tuning parseTuning(const std::string& text) {
  for (const Tuning one : {Tuning::online, Tuning::exhaustive, Tuning::off}) {
    if (text == toString(one)) {
      return one;
    }
  }
  throw BadInput("'" + text + "' is not one of online, exhaustive, off");
}

}  // namespace Komvos
