#include "analyze.hpp"

#include <unistd.h>

#include <Tpetra_Core.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "Komvos_Error.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_MachineModel.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_Transport.hpp"
#include "Komvos_VirtualMessages.hpp"
#include "analyze_report.hpp"
#include "end_together.hpp"
#include "level_operators.hpp"
#include "output_file.hpp"
#include "parameter_file.hpp"
#include "progress_line.hpp"
#include "simgrid.hpp"
#include "virtual_partition.hpp"

namespace Komvos::Program {

namespace {

namespace fs = std::filesystem;

const int valueBytes = sizeof(double);

/// The cluster that is played, and the routes to compare on it. All of the input is checked when it is made.
struct Setting {
  explicit Setting(const AnalyzeOptions& options)
      : topology(NodeTopology::parse(options.ranksPerNode, options.ranks)),
        pairing(parsePairing(options.pairing)),
        machine(machineByNameOrFile(options.machine)) {
    machine.needOffNode();
    if (options.ranksPerSocket > 0) {
      std::vector<int> socket;
      for (int rank = 0; rank < options.ranks; ++rank) {
        socket.push_back(topology.nodeOf(rank) * options.ranks + topology.localRankOf(rank) / options.ranksPerSocket);
      }
      sockets = std::make_unique<NodeTopology>(NodeTopology::fromMap(socket));
    }
    for (const std::string& text : options.routes) {
      specs.push_back(parseRoute(text));
      makeRoute(specs.back(), topology, pairing, sockets.get());
    }
  }

  NodeTopology topology;
  std::unique_ptr<NodeTopology> sockets;
  Pairing pairing;
  MachineModel machine;
  std::vector<RouteChoice> specs;
};

bool needsPatterns(RouteChoice::Kind kind) {
  return kind == RouteChoice::Kind::threeStep || kind == RouteChoice::Kind::split || kind == RouteChoice::Kind::sockets;
}

/// A stage lasts as long as the rank that is busiest sending, or receiving: the model of the paper counts what a rank
/// sends, which would give a gather to one rank for nothing.
double slowestTime(const ModelAccumulator& sending, const ModelAccumulator& receiving) {
  const std::vector<double> send = sending.stageTimes();
  const std::vector<double> receive = receiving.stageTimes();
  double time = 0;
  for (std::size_t stage = 0; stage < send.size(); ++stage) {
    time += std::max(send[stage], receive[stage]);
  }
  return time;
}

/// Folders for SimGrid: kept ones in --trace, others only while they are needed.
class ReplayFolder {
 public:
  explicit ReplayFolder(const AnalyzeOptions& options)
      : keep_(!options.traceFolder.empty()),
        path_(keep_ ? fs::path(options.traceFolder)
                    : fs::temp_directory_path() / ("komvos-replay-" + std::to_string(getpid()))) {}
  ~ReplayFolder() {
    if (!keep_) {
      std::error_code ignored;
      fs::remove_all(path_, ignored);
    }
  }
  ReplayFolder(const ReplayFolder&) = delete;
  ReplayFolder& operator=(const ReplayFolder&) = delete;

  /// For one halo on one network; the last one is gone by then, unless it is to be kept.
  std::string next(const std::string& name) const { return (path_ / (keep_ ? name : "now")).string(); }

 private:
  bool keep_;
  fs::path path_;
};

class Analysis {
 public:
  Analysis(const AnalyzeOptions& options, const Setting& setting, StatusLine& status)
      : options_(options), setting_(setting), status_(status), folder_(options) {
    int ranksPerNode = 0;
    for (int node = 0; node < setting.topology.numNodes(); ++node) {
      ranksPerNode = std::max(ranksPerNode, setting.topology.numRanksOn(node));
    }
    std::vector<std::string> kinds = options.platforms;
    if (kinds.empty() && !options.traceFolder.empty()) {
      kinds = {"torus", "fat-tree"};
    }
    for (const std::string& kind : kinds) {
      networks_.push_back({kind, setting.topology.numNodes(), ranksPerNode});
    }
  }

  const std::vector<SimulatedNetwork>& networks() const { return networks_; }

  OperatorResult analyze(const LevelOperator& op) {
    OperatorResult result;
    result.level = op.level;
    result.name = op.name;
    result.rows = op.rows;
    result.entries = op.entries;
    result.ranksWithRows = op.ranksWithRows;
    result.needs = op.halo.numNeeds();
    std::vector<Pattern> patterns;
    for (const RouteChoice& spec : setting_.specs) {
      status_.show(result.label() + ": " + toString(spec));
      const auto route = makeRoute(spec, setting_.topology, setting_.pairing, setting_.sockets.get());
      if (needsPatterns(spec.kind)) {
        if (patterns.empty()) {
          patterns = op.halo.patterns();
        }
        InMemoryTransport transport(setting_.topology.numRanks());
        route->prepare(transport, patterns);
      }
      result.routes.push_back(follow(op.halo, *route, result.label()));
    }
    return result;
  }

 private:
  RouteResult follow(const VirtualHalo& halo, const Route& route, const std::string& label) {
    TrafficCounter counter(setting_.topology);
    ModelAccumulator sending(setting_.machine, setting_.topology, route.numStages());
    ModelAccumulator receiving(setting_.machine, setting_.topology, route.numStages());
    std::vector<VirtualMessage> messages;
    visitMessages(halo, route, [&](const VirtualMessage& message) {
      counter.add(message);
      sending.add(message.stage, message.from, message.to, message.values * valueBytes);
      receiving.add(message.stage, message.to, message.from, message.values * valueBytes);
      if (!networks_.empty()) {
        messages.push_back(message);
      }
    });
    RouteResult result{route.name(), counter.sent(), counter.received(), slowestTime(sending, receiving), {}};
    if (!messages.empty()) {
      simulate(ReplayTrace(setting_.topology, messages, valueBytes), label, result);
    }
    return result;
  }

  void simulate(const ReplayTrace& trace, const std::string& label, RouteResult& result) {
    for (const SimulatedNetwork& network : networks_) {
      status_.show(label + ": " + result.route + ", " + network.kind + " of SimGrid");
      std::string name = "level-" + label + "-" + result.route + "-" + network.kind;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == ' ' || c == ':' || c == ','; }, '-');
      const std::string command = writeReplay(folder_.next(name), network, trace);
      if (!options_.platforms.empty()) {
        result.simulatedSeconds[network.kind] = runReplay(command);
      }
    }
  }

  const AnalyzeOptions& options_;
  const Setting& setting_;
  StatusLine& status_;
  ReplayFolder folder_;
  std::vector<SimulatedNetwork> networks_;
};

void checkOutputs(const AnalyzeOptions& options) {
  for (const std::string* const path : {&options.csvFile, &options.jsonFile, &options.plotFile}) {
    if (!path->empty() && *path != "-") {
      OutputFile::checkWritable(*path);
    }
  }
  if (!options.platforms.empty() && !simgridIsInstalled()) {
    throw BadInput("--simgrid needs SimGrid's smpirun, which is not in the PATH (Debian: libsimgrid-dev)");
  }
}

void writeOutput(const std::string& path, const AnalyzeReport& report,
                 void (*write)(std::ostream&, const AnalyzeReport&)) {
  if (!path.empty() && path != "-") {
    OutputFile file(path);
    write(file.stream(), report);
    file.commit();
  }
}

void writeReport(const AnalyzeOptions& options, const AnalyzeReport& report) {
  const bool jsonOnStdout = options.jsonFile == "-";
  if (!options.quiet) {
    writeText(jsonOnStdout ? std::cerr : std::cout, report);
  }
  if (jsonOnStdout) {
    writeJson(std::cout, report);
  }
  writeOutput(options.jsonFile, report, writeJson);
  writeOutput(options.csvFile, report, writeCsv);
  writeOutput(options.plotFile, report, writeSvg);
  std::cout << std::flush;
}

}  // namespace

int runAnalyze(const AnalyzeOptions& options) {
  const CommPtr comm = Tpetra::getDefaultComm();
  if (comm->getSize() != 1) {
    throw BadInput("analyze: plays all ranks in one process; start it without mpirun, or with -n 1 instead of " +
                   std::to_string(comm->getSize()));
  }
  const Setting setting(options);
  checkOutputs(options);
  const auto parameters = readParameterFile(options.parameterFile, MPI_COMM_WORLD);
  StatusLine status(!options.quiet && stdoutIsSeen());
  status.show("matrix");
  const Problem problem = loadProblem(options, comm);
  LevelOperators operators(problem, virtualOwners(problem, options.partition, options.ranks), options.ranks);
  if (options.hierarchy) {
    status.show("hierarchy");
    operators.addHierarchy(problem, parameters->sublist("MueLu"));
  }

  Analysis analysis(options, setting, status);
  AnalyzeReport report{problem.name,
                       options.partition,
                       options.pairing,
                       setting.topology.describe(),
                       setting.machine.name,
                       options.ranks,
                       setting.topology.numNodes(),
                       options.hierarchy,
                       {},
                       {}};
  for (const SimulatedNetwork& network : analysis.networks()) {
    report.networks.push_back(network.describe());
  }
  for (int index = 0; index < operators.count(); ++index) {
    report.operators.push_back(analysis.analyze(operators.get(index)));
  }
  status.clear();
  writeReport(options, report);
  return ExitCode::converged;
}

}  // namespace Komvos::Program
