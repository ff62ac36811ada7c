#include "calibrate/model_table.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace Komvos::Program {

namespace {

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

std::string nameOf(const MeasuredSeries& series) {
  return (series.onNode ? "on a node, " : "between nodes, ") + std::to_string(series.pairs) +
         (series.pairs == 1 ? " pair" : " pairs");
}

void printTable(const MachineModel& machine) {
  std::printf("machine %s: %s\n", machine.name.c_str(), machine.host.c_str());
  printParameters(machine);
  for (const MeasuredSeries& series : machine.measured) {
    printSeries(machine, series);
  }
}

}  // namespace Komvos::Program
