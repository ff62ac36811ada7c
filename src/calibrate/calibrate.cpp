#include "calibrate/calibrate.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "Komvos_Error.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_MachineFit.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_SystemInfo.hpp"
#include "calibrate/model_table.hpp"
#include "calibrate/ping_pong.hpp"
#include "support/output_file.hpp"
#include "support/placement.hpp"
#include "support/progress_line.hpp"
#include "support/run_collectively.hpp"

// How this works. runCalibrate() plans the series to measure (planSeries), measures each by pingPong() on all ranks
// (measure), and on rank 0 fits the parameters of the machine (fit), writes its file and prints it (model_table).
namespace Komvos::Program {

namespace {

const MPI_Comm world = MPI_COMM_WORLD;

/// A series to be measured.
struct PlannedSeries {
  bool onNode;
  std::vector<std::pair<int, int>> pairs;
};

/// 1, 2, 3, 4, 6, 8, 12, 16 ... below `most`, and `most`.
std::vector<int> numbersOfPairs(int most) {
  std::vector<int> numbers;
  for (int n = 1; n < most; n *= 2) {
    numbers.push_back(n);
    if (n >= 2 && n + n / 2 < most) {
      numbers.push_back(n + n / 2);
    }
  }
  numbers.push_back(most);
  return numbers;
}

/// Pairs of ranks on the node with the most ranks, and between the two that have the most.
std::vector<PlannedSeries> planSeries(const NodeTopology& topology) {
  std::vector<int> nodes(topology.numNodes());
  for (int node = 0; node < topology.numNodes(); ++node) {
    nodes[node] = node;
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](int a, int b) { return topology.numRanksOn(a) > topology.numRanksOn(b); });
  const int first = nodes[0];
  if (topology.numRanksOn(first) < 2) {
    throw BadInput("calibrate: messages on a node need two ranks on one, there is one rank on each of " +
                   std::to_string(topology.numNodes()) + " nodes");
  }
  std::vector<PlannedSeries> all{{true, {{topology.rankOn(first, 0), topology.rankOn(first, 1)}}}};
  if (topology.numNodes() > 1) {
    const int second = nodes[1];
    for (const int count : numbersOfPairs(topology.numRanksOn(second))) {
      PlannedSeries next{false, {}};
      for (int local = 0; local < count; ++local) {
        next.pairs.emplace_back(topology.rankOn(first, local), topology.rankOn(second, local));
      }
      all.push_back(next);
    }
  }
  return all;
}

/// \note Collective.
std::vector<MeasuredSeries> measure(const std::vector<PlannedSeries>& planned, const CalibrateOptions& options,
                                    bool showProgress) {
  const PingPongSettings settings{messageSizes(options.maxBytes), options.samples};
  StatusLine line(showProgress);
  std::vector<MeasuredSeries> measured;
  for (const PlannedSeries& one : planned) {
    MeasuredSeries series{one.onNode, static_cast<int>(one.pairs.size()), {}};
    const std::string progress = "series " + std::to_string(measured.size() + 1) + " of " +
                                 std::to_string(planned.size()) + ", " + nameOf(series) + ": ";
    series.points = pingPong(world, one.pairs, settings,
                             [&](int size) { line.show(progress + std::to_string(settings.sizes[size]) + " bytes"); });
    measured.push_back(std::move(series));
  }
  return measured;
}

std::string hostName() {
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  mpiCheck(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
  return std::string(name, static_cast<std::size_t>(length));
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof(text), "%Y-%m-%d", std::gmtime(&now));
  return text;
}

MachineModel fit(std::vector<MeasuredSeries> measured, const CalibrateOptions& options, const std::string& host) {
  MachineModel machine;
  machine.name = options.name.empty() ? hostName() : options.name;
  machine.date = today();
  machine.host = host;
  machine.onNode = fitOnNode(measured.front(), options.onNodeLimits);
  if (measured.size() > 1) {
    machine.offNode = fitOffNode({measured.begin() + 1, measured.end()}, options.offNodeLimits);
  }
  machine.measured = std::move(measured);
  return machine;
}

}  // namespace

int runCalibrate(const CalibrateOptions& options) {
  int rank = 0;
  int size = 0;
  mpiCheck(MPI_Comm_rank(world, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(world, &size), "MPI_Comm_size");
  if (size < 2) {
    throw BadInput("calibrate: a message needs two ranks, there is 1; as in mpirun -n 4 komvos calibrate");
  }
  const NodeTopology topology = *placementOf(world, options.ranksPerNode).nodes;
  const std::vector<PlannedSeries> planned = planSeries(topology);
  if (options.offNodeLimits && topology.numNodes() == 1) {
    throw BadInput("calibrate: --off-node-limits has no meaning on one node");
  }
  onRankZero(world, [&] { OutputFile::checkWritable(options.outputFile); });

  const bool showProgress = rank == 0 && !options.quiet && isInteractive();
  std::vector<MeasuredSeries> measured = measure(planned, options, showProgress);
  onRankZero(world, [&] {
    const MachineModel machine =
        fit(std::move(measured), options,
            Komvos::Impl::processorName() + ", " + topology.describe() + ", " + Komvos::Impl::mpiLibraryName());
    OutputFile file(options.outputFile);
    file.stream() << machineToJson(machine);
    file.commit();
    if (!options.quiet) {
      printTable(machine);
      std::printf("written to %s\n", options.outputFile.c_str());
    }
  });
  return ExitCode::converged;
}

}  // namespace Komvos::Program
