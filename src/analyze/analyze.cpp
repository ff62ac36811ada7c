#include "analyze/analyze.hpp"

#include <Tpetra_Core.hpp>
#include <iostream>
#include <sstream>

#include "Komvos_Error.hpp"
#include "analyze/analyze_plot.hpp"
#include "analyze/analyze_report.hpp"
#include "problem/level_operators.hpp"
#include "problem/virtual_partition.hpp"
#include "support/gnuplot.hpp"
#include "support/output_file.hpp"
#include "support/parameter_file.hpp"
#include "support/progress_line.hpp"
#include "support/report_output.hpp"
#include "support/run_collectively.hpp"

namespace Komvos::Program {

namespace {

/// Fails before the analysis rather than after it.
void checkOutputs(const AnalyzeOptions& options) {
  if (options.jsonFile == "-" && options.csvFile == "-") {
    throw BadInput("analyze: --json - and --csv - cannot both go to standard output");
  }
  if (options.plotFile == "-") {
    throw BadInput("analyze: --plot needs the name of a file");
  }
  if (!options.plotFile.empty()) {
    Gnuplot::requireInstalled("--plot");
  }
  requireWritable({options.csvFile, options.jsonFile, options.plotFile}, {options.matrixFile, options.parameterFile},
                  MPI_COMM_SELF);
}

LevelOperators loadOperators(const AnalyzeOptions& options, const NodeTopology& nodes, const CommPtr& comm,
                             Teuchos::ParameterList& parameters, AnalyzeReport& report, StatusLine& status) {
  status.show("matrix");
  const Problem problem = loadProblem(options, comm);
  report.problem = problem.name;
  LevelOperators operators(problem, virtualOwners(problem, options.partition, options.ranks), options.ranks);
  if (options.hierarchy) {
    status.show("hierarchy");
    operators.addHierarchy(problem, parameters.sublist("MueLu"), nodes);
  }
  return operators;
}

void describeCluster(const VirtualCluster& cluster, AnalyzeReport& report) {
  report.topology = cluster.topology().describe();
  report.machine = cluster.machine().name;
  report.nodes = cluster.topology().numNodes();
  for (const SimulatedNetwork& network : cluster.networks()) {
    report.networks.push_back(network.describe());
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
    writeText(jsonOnStdout || options.csvFile == "-" ? std::cerr : std::cout, report);
  }
  if (jsonOnStdout || options.csvFile == "-") {
    std::ostringstream text;
    (jsonOnStdout ? writeJson : writeCsv)(text, report);
    writeToStdout(text.str());
  }
  writeOutput(options.jsonFile, report, writeJson);
  writeOutput(options.csvFile, report, writeCsv);
  if (!options.plotFile.empty()) {
    drawPlot(options.plotFile, report);
  }
  std::cout << std::flush;
}

}  // namespace

int runAnalyze(const AnalyzeOptions& options) {
  const CommPtr comm = Tpetra::getDefaultComm();
  if (comm->getSize() != 1) {
    throw BadInput("analyze: simulates all ranks in one process; start it without mpirun, or with -n 1 instead of " +
                   std::to_string(comm->getSize()));
  }
  const VirtualCluster cluster(options);
  checkOutputs(options);
  keepStdoutFor(options.jsonFile == "-" ? options.jsonFile : options.csvFile);
  const auto parameters = readParameterFile(options.parameterFile, MPI_COMM_WORLD);

  AnalyzeReport report;
  report.partition = options.partition;
  report.pairing = options.pairing;
  report.ranks = options.ranks;
  report.hierarchy = options.hierarchy;
  describeCluster(cluster, report);

  StatusLine status(!options.quiet && isInteractive());
  const LevelOperators operators = loadOperators(options, cluster.topology(), comm, *parameters, report, status);
  for (int index = 0; index < operators.count(); ++index) {
    const LevelOperator op = operators.get(index);
    OperatorResult result{op.level, op.name, op.rows, op.entries, op.ranksWithRows, op.halo.numNeeds(), {}};
    result.routes = cluster.compare(op.halo, result.label(), [&](const std::string& what) { status.show(what); });
    report.operators.push_back(std::move(result));
  }
  status.clear();
  writeReport(options, report);
  return ExitCode::converged;
}

}  // namespace Komvos::Program
