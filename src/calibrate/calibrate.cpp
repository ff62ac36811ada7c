#include "calibrate/calibrate.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <optional>

#include "Komvos_Error.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_MachineFit.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_SystemInfo.hpp"
#include "calibrate/ping_pong.hpp"
#include "support/output_file.hpp"
#include "support/placement.hpp"
#include "support/progress_line.hpp"
#include "support/run_collectively.hpp"

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

std::string nameOf(const MeasuredSeries& series) {
  return (series.onNode ? "on a node, " : "between nodes, ") + std::to_string(series.pairs) +
         (series.pairs == 1 ? " pair" : " pairs");
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

/// "1.23 GB/s".
std::string rateText(double rate) {
  if (!std::isfinite(rate)) {
    return "no limit seen";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f GB/s", rate / 1e9);
  return text;
}

const std::array<const char*, numProtocols> protocolNames{"short", "eager", "rendezvous"};

void printLimits(const char* where, const ProtocolLimits& limits) {
  std::printf("%s: short up to %ld bytes, eager up to %ld, rendezvous above\n", where, limits.shortMax,
              limits.eagerMax);
}

void printParameters(const MachineModel& machine) {
  printLimits("on a node", machine.onNode.limits);
  for (int p = 0; p < numProtocols; ++p) {
    const OnNodeModel::Parameters& one = machine.onNode.parameters[p];
    std::printf("  %-11s latency %9.3f us, rate %s\n", protocolNames[p], 1e6 * one.latency, rateText(one.rate).c_str());
  }
  if (!machine.offNode) {
    std::printf("between nodes: not measured, all ranks are on one node\n");
    return;
  }
  printLimits("between nodes", machine.offNode->limits);
  for (int p = 0; p < numProtocols; ++p) {
    const OffNodeModel::Parameters& one = machine.offNode->parameters[p];
    std::printf("  %-11s latency %9.3f us, rate %s, each further sender adds %s, node %s\n", protocolNames[p],
                1e6 * one.latency, rateText(one.rate).c_str(), rateText(one.addedRate).c_str(),
                rateText(one.nodeRate).c_str());
  }
}

void printSeries(const MachineModel& machine, const MeasuredSeries& series) {
  std::printf("%s\n     bytes  measured us     model us  model/measured\n", nameOf(series).c_str());
  for (const MeasuredSeries::Point& point : series.points) {
    const double model =
        series.onNode ? machine.onNode.time(point.bytes) : machine.needOffNode().time(point.bytes, series.pairs);
    std::printf("%10ld %12.3f %12.3f %15.2f\n", point.bytes, 1e6 * point.seconds, 1e6 * model, model / point.seconds);
  }
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
      std::printf("machine %s: %s\n", machine.name.c_str(), machine.host.c_str());
      printParameters(machine);
      for (const MeasuredSeries& series : machine.measured) {
        printSeries(machine, series);
      }
      std::printf("written to %s\n", options.outputFile.c_str());
    }
  });
  return ExitCode::converged;
}

}  // namespace Komvos::Program
