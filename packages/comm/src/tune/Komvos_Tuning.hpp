/// \file Komvos_Tuning.hpp
/// When a halo is tuned, as a value and as text.
#pragma once

#include <optional>
#include <string>

namespace Komvos {

/// When it is decided how a halo is exchanged, where the options leave that open. The ghosts are the same, bit for bit.
enum class Tuning {
  online,      ///< while it is used: imports and products are the trials, and other routes are planned when that pays
  exhaustive,  ///< before the first use: all routes are planned and timed on the halo alone
  off          ///< never: the standard route, or that of a similar halo in the tuning cache; shared memory on the nodes
};

/// "online", "exhaustive" or "off".
std::string toString(Tuning tuning);

/// \throws BadInput unless `text` is "online", "exhaustive" or "off".
Tuning parseTuning(const std::string& text);

}  // namespace Komvos
