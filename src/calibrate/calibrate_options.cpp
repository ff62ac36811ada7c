#include "calibrate/calibrate_options.hpp"

#include <CLI/CLI.hpp>
#include <vector>

#include "Komvos_Error.hpp"

namespace Komvos::Program {

namespace {

const char* const footer =
    "Measures ping-pong times between two ranks of a node, and between 1, 2, 3, 4, 6, 8, 12, 16 ... pairs of ranks of "
    "two\n"
    "nodes at once, as many as the nodes have. Fits latency and rate for short, eager and rendezvous messages, and the "
    "rate\n"
    "of a node that sends with several ranks. The file holds parameters and times; perf/plot_calibration.py draws "
    "them.\n"
    "Run it on two nodes with all ranks of each, every rank on a core of its own: mpirun -n 32 komvos calibrate. On "
    "one\n"
    "node, messages between nodes are left out. Nothing else should run meanwhile. Exit status: 0 measured, 1 wrong\n"
    "input, 3 internal error.";

void addLimits(CLI::App& command, const std::string& name, const std::string& where,
               std::optional<ProtocolLimits>& limits) {
  command
      .add_option_function<std::vector<long>>(
          name,
          [name, &limits](const std::vector<long>& sizes) {
            if (sizes[0] < 0 || sizes[1] < sizes[0]) {
              throw BadInput(name + " " + std::to_string(sizes[0]) + "," + std::to_string(sizes[1]) +
                             ": must be two sizes in bytes, the second not smaller");
            }
            limits = ProtocolLimits{sizes[0], sizes[1]};
          },
          "largest short and largest eager message " + where + "; default: found from the times")
      ->expected(2)
      ->delimiter(',')
      ->type_name("BYTES");
}

}  // namespace

CLI::App& addCalibrateCommand(CLI::App& app, CalibrateOptions& options) {
  CLI::App& calibrate = *app.add_subcommand("calibrate", "Measure what messages cost on this machine");
  calibrate.footer(footer);
  calibrate
      .add_option("--ranks-per-node", options.ranksPerNode,
                  "ranks on each node, on each in turn, or a node for each rank; default: as MPI says")
      ->type_name("K|K,K,...|@FILE");
  calibrate.add_option("--name", options.name, "of the machine, in the file (default: name of rank 0's host)");
  calibrate.add_option("--output", options.outputFile, "the file to write (default machine.json)")->type_name("FILE");
  calibrate.add_option("--max-bytes", options.maxBytes, "the largest message, as in 65536, 64K or 8M (default 8M)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(1L << 10, 1L << 30))
      ->type_name("SIZE");
  calibrate.add_option("--samples", options.samples, "round trips of each size; fewer of large ones (default 50)")
      ->check(CLI::Range(1, 1000000));
  addLimits(calibrate, "--on-node-limits", "on a node", options.onNodeLimits);
  addLimits(calibrate, "--off-node-limits", "between nodes", options.offNodeLimits);
  calibrate.add_flag("--quiet", options.quiet, "no table, only errors");
  return calibrate;
}

}  // namespace Komvos::Program
