#include "Komvos_Settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos {

namespace {

bool parseSwitch(const std::string& name, const std::string& value) {
  if (value != "0" && value != "1") {
    throw BadInput("environment variable " + name + "=" + value + ": must be 0 or 1");
  }
  return value == "1";
}

}  // namespace

Settings readSettings() {
  Settings settings;
  const std::pair<const char*, std::optional<std::string>*> texts[] = {
      {"KOMVOS_ROUTE", &settings.route},
      {"KOMVOS_PAIRING", &settings.pairing},
      {"KOMVOS_ON_NODE", &settings.intraNode},
      {"KOMVOS_OVERLAP", &settings.overlap},
      {"KOMVOS_TUNING", &settings.tuning},
      {"KOMVOS_MACHINE", &settings.machine},
      {"KOMVOS_TUNING_CACHE", &settings.tuningCache},
      {"KOMVOS_RANKS_PER_NODE", &settings.ranksPerNode}};
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const char* const equals = std::strncmp(*variable, "KOMVOS_", 7) == 0 ? std::strchr(*variable, '=') : nullptr;
    if (equals == nullptr) {
      continue;
    }
    const std::string name(*variable, static_cast<std::size_t>(equals - *variable));
    const std::string value(equals + 1);
    const auto found =
        std::find_if(std::begin(texts), std::end(texts), [&](const auto& one) { return name == one.first; });
    if (found != std::end(texts)) {
      *found->second = value;
    } else if (name == "KOMVOS_REQUIRE_TUNING_CACHE") {
      settings.requireTuningCache = parseSwitch(name, value);
    } else if (name == "KOMVOS_CALIBRATE") {
      settings.calibrate = parseSwitch(name, value);
    } else if (name == "KOMVOS_GPU_AWARE_MPI") {
      settings.gpuAwareMpi = parseSwitch(name, value);
    } else if (name == "KOMVOS_STAGED") {
      settings.staged = parseSwitch(name, value);
    } else {
      throw BadInput("environment variable " + name +
                     " is not known; KOMVOS_ROUTE, KOMVOS_PAIRING, KOMVOS_ON_NODE, KOMVOS_OVERLAP, KOMVOS_TUNING, "
                     "KOMVOS_TUNING_CACHE, KOMVOS_REQUIRE_TUNING_CACHE, KOMVOS_MACHINE, KOMVOS_CALIBRATE, "
                     "KOMVOS_RANKS_PER_NODE, KOMVOS_GPU_AWARE_MPI, KOMVOS_STAGED are");
    }
  }
  return settings;
}

bool stagingForced() { return readSettings().staged.value_or(false); }

}  // namespace Komvos
