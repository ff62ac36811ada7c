/// \file calibrate_options.hpp
/// The command line of `komvos calibrate`.
#pragma once

#include <optional>
#include <string>

#include "Komvos_MachineModel.hpp"

namespace CLI {
class App;
}

namespace Komvos::Program {

struct CalibrateOptions {
  std::string ranksPerNode;
  std::string name;  ///< empty: the host name of rank 0
  std::string outputFile = "machine.json";
  long maxBytes = 8L << 20;
  int samples = 50;
  std::optional<ProtocolLimits> onNodeLimits;  ///< empty: found from the times
  std::optional<ProtocolLimits> offNodeLimits;
  bool quiet = false;
};

/// Adds the subcommand; parsing fills `options`, which must outlive `app`.
CLI::App& addCalibrateCommand(CLI::App& app, CalibrateOptions& options);

}  // namespace Komvos::Program
