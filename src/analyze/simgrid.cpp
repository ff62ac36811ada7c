#include "analyze/simgrid.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>

#include "Komvos_Error.hpp"
#include "support/output_file.hpp"
#include "support/text_format.hpp"

// How this works: writeReplay puts four files into a folder - the platform (a network that platformXml describes), the
// host of each rank, the trace (all actions of all ranks, by ReplayTrace) and the list of traces - and returns the
// command that makes SimGrid's smpirun replay the trace on the platform. runReplay runs this command as a child process
// and reads the simulated time from its output. Costs of a message: links and latencies are those of the platform; the
// processor of the sender pays by smpi/ois, and the one of the receiver by a computation that the trace adds, because a
// replay charges senders only.

namespace Komvos::Program {

namespace {

namespace fs = std::filesystem;

/// The assumptions behind every simulated time, with the constants below. Without a cost per message, aggregation could
/// gain nothing in SimGrid.
const char* const linkText =
    "links 12.5 GB/s, node-internal 8 GB/s and 300 ns, 350 ns + 20 ps/B for each send and each receive";
const double secondsPerMessage = 350e-9;
const double secondsPerByte = 20e-12;
const double flopsPerSecond = 10e9;  // of a core, in platformXml
const ReplayTrace::ReceiveCost receiveCost{secondsPerMessage * flopsPerSecond, secondsPerByte* flopsPerSecond};

/// The flow model without TCP windows and cross traffic; every send takes its full time. The bandwidth solver fails on
/// 10,000 flows over links of 1e10 B/s at its default precision of 1e-5. Stacks are small and without guard pages,
/// which would exceed Linux' limit of 65,530 mappings a process with 32,768 ranks.
const char* const simgridOptions =
    "--cfg=network/TCP-gamma:1e15 --cfg=network/crosstraffic:0 --cfg=network/weight-S:0 --cfg=smpi/bw-factor:0:1 "
    "--cfg=smpi/lat-factor:0:1 --cfg=maxmin/precision:1e-4 "
    "--cfg=smpi/send-is-detached-thresh:0 "
    "--cfg=contexts/stack-size:128 --cfg=contexts/guard-size:0 "
    "--cfg=smpi/display-timing:yes";

/// The smallest cube (square, ...) that holds `count`: the length of its side.
int sideOf(int count, int dimensions) {
  int side = 1;
  while (std::pow(side, dimensions) < count) {
    ++side;
  }
  return side;
}

int ceilDiv(int a, int b) { return (a + b - 1) / b; }

struct Shape {
  int x, y, z;  // torus: nodes in each direction; fat tree: leaves, nodes on each, and 1
};

Shape shapeOf(const SimulatedNetwork& network) {
  if (network.kind == "torus") {
    const int x = sideOf(network.numNodes, 3);
    const int y = sideOf(ceilDiv(network.numNodes, x), 2);
    return {x, y, ceilDiv(network.numNodes, x * y)};
  }
  const int onLeaf = sideOf(network.numNodes, 2);
  return {ceilDiv(network.numNodes, onLeaf), onLeaf, 1};
}

/// `text` as one word of the shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) {
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return word + "'";
}

void writeFile(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  OutputFile file(path.string());
  write(file.stream());
  file.commit();
}

}  // namespace

std::string SimulatedNetwork::describe() const {
  const Shape shape = shapeOf(*this);
  const std::string x = std::to_string(shape.x);
  const std::string y = std::to_string(shape.y);
  return (kind == "torus" ? "torus " + x + " x " + y + " x " + std::to_string(shape.z) + ", 500 ns a hop, "
                          : "fat tree, " + x + " leaves of " + y + " nodes, full bisection, 250 ns a hop, ") +
         linkText +
         (maxFlowsPerLink > 0 ? format("; at most %d messages at once on a link, ", maxFlowsPerLink) : "; ") +
         format("events within %.0f ns taken together", 1e9 * timeStep) +
         (maxConcurrentSends > 0 ? format("; at most %d sends of a rank at once", maxConcurrentSends) : "");
}

std::string SimulatedNetwork::platformXml() const {
  const Shape shape = shapeOf(*this);
  const std::string x = std::to_string(shape.x);
  const std::string y = std::to_string(shape.y);
  // A ring of one node would have a second link of the same name.
  const std::string ring = x + (shape.y > 1 ? "," + y : "") + (shape.z > 1 ? "," + std::to_string(shape.z) : "");
  const std::string topology =
      kind == "torus" ? "topology=\"TORUS\" topo_parameters=\"" + ring + "\" lat=\"500ns\""
                      : "topology=\"FAT_TREE\" topo_parameters=\"2;" + y + "," + x + ";1," + y + ";1,1\" lat=\"250ns\"";
  return "<?xml version='1.0'?>\n"
         "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n"
         "  <zone id=\"world\" routing=\"Full\">\n"
         "    <cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-" +
         std::to_string(shape.x * shape.y * shape.z - 1) + "\" speed=\"10Gf\" core=\"" + std::to_string(ranksPerNode) +
         "\" bw=\"12.5GBps\" sharing_policy=\"SPLITDUPLEX\"\n"
         "             loopback_bw=\"8GBps\" loopback_lat=\"300ns\" " +
         topology +
         "/>\n"
         "  </zone>\n"
         "</platform>\n";
}

void LeastReplayTime::add(int from, int to, long bytes) {
  const double cost = secondsPerMessage + secondsPerByte * static_cast<double>(bytes);
  seconds_[from] += cost;
  seconds_[to] += cost;
}

double LeastReplayTime::seconds() const {
  return seconds_.empty() ? 0 : *std::max_element(seconds_.begin(), seconds_.end());
}

bool simgridIsInstalled() { return std::system("command -v smpirun > /dev/null 2>&1") == 0; }

std::string writeReplay(const std::string& folder, const SimulatedNetwork& network, const ReplayTrace& trace) {
  const fs::path at = fs::absolute(folder);
  std::error_code error;
  fs::create_directories(at, error);
  if (error) {
    throw BadInput("cannot create the directory '" + folder + "': " + error.message());
  }
  writeFile(at / "platform.xml", [&](std::ostream& out) { out << network.platformXml(); });
  writeFile(at / "hosts", [&](std::ostream& out) { trace.writeHosts(out); });
  writeFile(at / "actions",
            [&](std::ostream& out) { trace.writeActions(out, receiveCost, network.maxConcurrentSends); });
  writeFile(at / "list", [&](std::ostream& out) { out << (at / "actions").string() << '\n'; });
  const std::string command =
      "cd " + quoted(at.string()) + " && smpirun -quiet -platform platform.xml -hostfile hosts -np " +
      std::to_string(trace.numActive()) + " -no-privatize " + simgridOptions +
      format(" --cfg=smpi/ois:0:%g:%g", secondsPerMessage, secondsPerByte) +
      format(" --cfg=surf/precision:%.0e", network.timeStep) +
      (network.maxFlowsPerLink > 0 ? format(" --cfg=maxmin/concurrency-limit:%d", network.maxFlowsPerLink) : "") +
      " -replay list 2>&1";
  writeFile(at / "replay.sh", [&](std::ostream& out) { out << command << '\n'; });
  return command;
}

double runReplay(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> line;
  while (pipe && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    if (std::strstr(line.data(), "Configuration change") == nullptr) {
      text += line.data();
    }
  }
  const std::string label = "Simulated time: ";
  const std::size_t found = text.find(label);
  if (found == std::string::npos) {
    throw Error("SimGrid reported no simulated time: " + text.substr(0, 400));
  }
  return std::strtod(text.c_str() + found + label.size(), nullptr);
}

}  // namespace Komvos::Program
