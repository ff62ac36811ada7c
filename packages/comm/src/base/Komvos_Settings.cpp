#include "Komvos_Settings.hpp"

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <unistd.h>

#include <cstring>

#include "Komvos_Error.hpp"

namespace Komvos {

namespace {

bool parseSwitch(const std::string& name, const std::string& value) {
  if (value != "0" && value != "1") {
    throw BadInput("environment variable " + name + "=" + value + ": must be 0 or 1");
  }
  return value == "1";
}

bool mpiSaysGpuAware() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace

Settings readSettings() {
  Settings settings;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const char* const equals = std::strchr(*variable, '=');
    if (std::strncmp(*variable, "KOMVOS_", 7) != 0 || equals == nullptr) {
      continue;
    }
    const std::string name(*variable, static_cast<std::size_t>(equals - *variable));
    const std::string value(equals + 1);
    if (name == "KOMVOS_ROUTE") {
      settings.route = value;
    } else if (name == "KOMVOS_PAIRING") {
      settings.pairing = value;
    } else if (name == "KOMVOS_ON_NODE") {
      settings.onNode = value;
    } else if (name == "KOMVOS_TUNING_CACHE") {
      settings.decisions = value;
    } else if (name == "KOMVOS_MACHINE") {
      settings.machine = value;
    } else if (name == "KOMVOS_RANKS_PER_NODE") {
      settings.ranksPerNode = value;
    } else if (name == "KOMVOS_GPU_AWARE_MPI") {
      settings.gpuAwareMpi = parseSwitch(name, value);
    } else {
      throw BadInput(
          "environment variable " + name +
          " is not known; KOMVOS_ROUTE, KOMVOS_PAIRING, KOMVOS_ON_NODE, KOMVOS_TUNING_CACHE, KOMVOS_MACHINE, "
          "KOMVOS_RANKS_PER_NODE, KOMVOS_GPU_AWARE_MPI are");
    }
  }
  const std::string other = settings.route.value_or("auto") != "auto"    ? "KOMVOS_ROUTE=" + *settings.route
                            : settings.pairing                           ? "KOMVOS_PAIRING=" + *settings.pairing
                            : settings.onNode.value_or("auto") != "auto" ? "KOMVOS_ON_NODE=" + *settings.onNode
                                                                         : "";
  if (settings.decisions && !other.empty()) {
    throw BadInput("environment: " + other + " and KOMVOS_TUNING_CACHE=" + *settings.decisions +
                   "; only one of them can be followed");
  }
  return settings;
}

bool gpuAwareMpi() {
  const std::optional<bool> wish = readSettings().gpuAwareMpi;
  return wish.has_value() ? *wish : mpiSaysGpuAware();
}

}  // namespace Komvos
