/// \file Komvos_Settings.hpp
/// The environment variables Komvos reads. All of them are read here, and unknown ones are refused.
#pragma once

#include <optional>
#include <string>

namespace Komvos {

/// \par Variables
/// - KOMVOS_ROUTE: as parseRoute reads it; the default of ExchangeOptions::route
/// - KOMVOS_PAIRING: by-volume, least-loaded or majority; the default of ExchangeOptions::pairing
/// - KOMVOS_ON_NODE: messages, shared-memory or auto; the default of ExchangeOptions::onNode
/// - KOMVOS_TUNING_CACHE: a file of TuningCache; the default of ExchangeOptions::decisions where no route, pairing or
///   wish for on-node hops is given; not together with KOMVOS_PAIRING, nor with a KOMVOS_ROUTE or KOMVOS_ON_NODE other
///   than auto
/// - KOMVOS_MACHINE: as machineByNameOrFile reads it; the default of ExchangeOptions::machine
/// - KOMVOS_RANKS_PER_NODE: a topology as in NodeTopology::parse, instead of the detected one
/// - KOMVOS_GPU_AWARE_MPI: 0 or 1; whether MPI may be given device pointers. Default: what the MPI library says
struct Settings {
  std::optional<std::string> route;
  std::optional<std::string> pairing;
  std::optional<std::string> onNode;
  std::optional<std::string> decisions;
  std::optional<std::string> machine;
  std::optional<std::string> ranksPerNode;
  std::optional<bool> gpuAwareMpi;
};

/// Reads the environment afresh. \throws BadInput on a variable KOMVOS_... that is not listed above, a value that is
/// not a legal one, or two that contradict each other.
Settings readSettings();

/// Whether MPI may be given device pointers: KOMVOS_GPU_AWARE_MPI, else what the MPI library reports.
bool gpuAwareMpi();

}  // namespace Komvos
