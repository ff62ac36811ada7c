/// \file Komvos_Settings.hpp
/// The environment variables Komvos reads. All of them are read here, and unknown ones are refused.
#pragma once

#include <optional>
#include <string>

#include "Komvos_Error.hpp"

namespace Komvos {

/// \par Variables
/// The defaults of ExchangeOptions; which of two wins, is said there:
/// - KOMVOS_ROUTE: as parseRoute reads it
/// - KOMVOS_PAIRING: by-volume, least-loaded or majority
/// - KOMVOS_ON_NODE: messages, shared-memory or auto
/// - KOMVOS_OVERLAP: none, interior, by-node or auto
/// - KOMVOS_TUNING: online, exhaustive or off
/// - KOMVOS_TUNING_CACHE: a file of TuningCache
/// - KOMVOS_REQUIRE_TUNING_CACHE: 0 or 1; whether that file must have a decision for every halo. Default: 0
/// - KOMVOS_MACHINE: as machineByNameOrFile reads it
/// - KOMVOS_CALIBRATE: 0 or 1; whether a quick calibration stands in where there is no machine. Default: 1
/// - KOMVOS_RANKS_PER_NODE: a topology as in NodeTopology::parse, instead of the detected one
///
/// For all exchanges:
/// - KOMVOS_GPU_AWARE_MPI: 0 or 1; whether MPI may be given device pointers; the same on all ranks. Default: what
///   Tpetra assumes
/// - KOMVOS_STAGED: 0 or 1, for tests; 1 sends all messages through host memory of their own, as with a GPU and without
///   GPU-aware MPI, and fills what must not be read yet with NaN; the same on all ranks. Default: 0
struct Settings {
  std::optional<std::string> route;
  std::optional<std::string> pairing;
  std::optional<std::string> intraNode;
  std::optional<std::string> overlap;
  std::optional<std::string> tuning;
  std::optional<std::string> tuningCache;
  std::optional<std::string> machine;
  std::optional<std::string> ranksPerNode;
  std::optional<bool> requireTuningCache;
  std::optional<bool> calibrate;
  std::optional<bool> gpuAwareMpi;
  std::optional<bool> staged;
};

/// Reads the environment afresh.
/// \throws BadInput on a variable KOMVOS_... that is not listed above, or a value of a switch other than 0 and 1. The
/// other values are checked where they are used.
Settings readSettings();

/// Whether tests want staged messages wherever the vectors are: KOMVOS_STAGED.
bool stagingForced();

namespace Impl {

/// \param text of an environment variable, if it is set \return parse(text), or `otherwise`
/// \throws BadInput that names the variable, where `parse` throws one
template <class T, class Parse>
T parsedOr(const char* variable, const std::optional<std::string>& text, const Parse& parse, const T& otherwise) {
  try {
    return text ? parse(*text) : otherwise;
  } catch (const BadInput& error) {
    throw BadInput(std::string("environment variable ") + variable + ": " + error.what());
  }
}

}  // namespace Impl

}  // namespace Komvos
