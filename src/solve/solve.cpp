#include "solve/solve.hpp"

#include <MatrixMarket_Tpetra.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <iostream>
#include <sstream>

#include "Komvos_Error.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_TuningCache.hpp"
#include "problem/partition.hpp"
#include "problem/preconditioner.hpp"
#include "solve/belos_solve.hpp"
#include "solve/report.hpp"
#include "support/output_file.hpp"
#include "support/parameter_file.hpp"
#include "support/placement.hpp"
#include "support/progress_line.hpp"
#include "support/run_collectively.hpp"

namespace Komvos::Program {

namespace {

using Teuchos::RCP;
using Teuchos::rcp;

MPI_Comm mpiOf(const CommPtr& comm) { return Tpetra::Details::extractMpiCommFromTeuchos(*comm); }

/// The command line as options of the library. \note Collective.
ExchangeOptions fromCommandLine(const SolveOptions& options, const CommPtr& comm, const Placement& placement) {
  ExchangeOptions exchange;
  std::string error;
  try {
    if (!options.route.empty()) {
      exchange.route = parseRoute(options.route);
    }
    if (!options.pairing.empty()) {
      exchange.pairing = parsePairing(options.pairing);
    }
    if (!options.intraNode.empty()) {
      exchange.intraNode = parseIntraNode(options.intraNode);
    }
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(mpiOf(comm), error);
  exchange.topology = placement.nodes;
  exchange.sockets = placement.sockets;
  if (!options.machine.empty()) {
    exchange.machine = std::make_shared<const MachineModel>(machineByNameOrFile(mpiOf(comm), options.machine));
  }
  if (!options.tuningCacheFile.empty()) {
    exchange.tuningCache = std::make_shared<const TuningCache>(TuningCache::load(mpiOf(comm), options.tuningCacheFile));
  }
  return exchange;
}

void record(const Placement& placement, const Impl::ResolvedOptions& resolved, SolveReport& report) {
  const NodeTopology& nodes = *placement.nodes;
  report.ranks = nodes.numRanks();
  report.topology = nodes.describe();
  report.topologyGiven = placement.given;
  for (int node = 0; node < nodes.numNodes(); ++node) {
    report.ranksPerNode.push_back(nodes.numRanksOn(node));
  }
  report.fromTuningCache = resolved.tuningCache != nullptr;
  report.route = toString(resolved.route);
  report.pairing = report.fromTuningCache ? "as in the tuning cache" : toString(resolved.pairing);
  report.intraNode = report.fromTuningCache ? "as in the tuning cache" : toString(resolved.intraNode);
}

/// Options for all halos of this solve: the command line, then the environment, then defaults, found once.
/// \note Collective.
ExchangeOptions resolveExchange(const SolveOptions& options, const CommPtr& comm, SolveReport& report) {
  const Placement placement = placementOf(mpiOf(comm), options.ranksPerNode, options.ranksPerSocket);
  const auto ours = Impl::PrivateComm::of(mpiOf(comm));
  const Impl::ResolvedOptions resolved = Impl::resolveOptions(*ours, fromCommandLine(options, comm, placement));
  if (resolved.route != RouteChoice::automatic) {  // to see that it fits, also where there is no halo to route
    makeRoute(resolved.route, *placement.nodes, resolved.pairing, placement.sockets.get());
  }
  record(placement, resolved, report);
  ExchangeOptions exchange = resolved.toOptions();
  if (!options.saveTuningCacheFile.empty()) {
    exchange.record = std::make_shared<TuningCache>();
  }
  return exchange;
}

/// Before the work, not after it. \note Collective.
void checkOutputs(const SolveOptions& options, const CommPtr& comm) {
  onRankZero(mpiOf(comm), [&] {
    for (const std::string& file : {options.solutionFile, options.saveTuningCacheFile, options.jsonFile}) {
      if (!file.empty() && file != "-") {
        OutputFile::checkWritable(file);
      }
    }
  });
}

/// Command line over file over defaults.
void setBelosParameters(Teuchos::ParameterList& belos, const SolveOptions& options) {
  const auto need = [](bool holds, const char* what) {
    if (!holds) {
      throw BadInput(std::string("--xml: Belos' \"") + what);
    }
  };
  need(!belos.isParameter("Convergence Tolerance") || belos.isType<double>("Convergence Tolerance"),
       "Convergence Tolerance\" must be of type double");
  need(!belos.isParameter("Maximum Iterations") || belos.isType<int>("Maximum Iterations"),
       "Maximum Iterations\" must be of type int");
  const double tolerance = options.tolerance.value_or(belos.get("Convergence Tolerance", 1e-8));
  const int iterations = options.maxIterations.value_or(belos.get("Maximum Iterations", 1000));
  belos.set("Convergence Tolerance", tolerance);
  belos.set("Maximum Iterations", iterations);
  need(tolerance > 0 && tolerance < 1, "Convergence Tolerance\" must be above 0 and below 1");
  need(iterations > 0, "Maximum Iterations\" must be at least 1");
}

void addHalos(const NodeAwareCrsMatrix<>& A, const Preconditioner& preconditioner, const ExchangeOptions& exchange,
              SolveReport& report) {
  if (A.importHalo() != nullptr) {
    report.halos.push_back({"A", true, A.importHalo()->report()});
  }
  if (exchange.topology->numNodes() == 1) {
    return;
  }
  ExchangeOptions planned = exchange;  // counted, not timed: nobody runs them
  if (planned.route.value_or(RouteChoice::automatic) == RouteChoice::automatic) {
    planned.route = RouteChoice::threeStep;
  }
  planned.intraNode = IntraNode::messages;
  planned.record = nullptr;
  for (const auto& [name, graph] : preconditioner.levelGraphs) {
    if (!graph->getImporter().is_null()) {
      report.halos.push_back({name, false, NodeAwareImport<>(*graph->getImporter(), planned).report()});
    }
  }
}

/// In the order of rows. \note Collective.
void writeSolution(const std::string& path, const MultiVector& x, const std::string& comment) {
  const CommPtr comm = x.getMap()->getComm();
  auto ordered = rcp(new MultiVector(x, Teuchos::Copy));
  moveTo(contiguousMap(static_cast<long long>(x.getGlobalLength()), 1, comm), ordered);
  std::string error;
  std::unique_ptr<OutputFile> file;
  std::ostringstream nowhere;
  try {
    if (comm->getRank() == 0) {
      file = std::make_unique<OutputFile>(path);
    }
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(mpiOf(comm), error);
  std::ostream& stream = file ? file->stream() : nowhere;
  Tpetra::MatrixMarket::Writer<Matrix>::writeDense(stream, *ordered, "solution", comment);
  try {
    if (file) {
      file->commit();
    }
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(mpiOf(comm), error);
}

/// \note Collective.
void saveTuningCache(const std::string& path, const TuningCache& cache, const CommPtr& comm) {
  onRankZero(mpiOf(comm), [&] {
    OutputFile file(path);
    file.stream() << cache.toText();
    file.commit();
  });
}

void writeReport(const SolveOptions& options, const SolveReport& report, const CommPtr& comm) {
  onRankZero(mpiOf(comm), [&] {
    const bool jsonOnStdout = options.jsonFile == "-";
    if (!options.quiet) {
      (jsonOnStdout ? std::cerr : std::cout) << toText(report) << std::flush;
    }
    if (jsonOnStdout) {
      std::cout << toJson(report) << std::flush;
    } else if (!options.jsonFile.empty()) {
      OutputFile file(options.jsonFile);
      file.stream() << toJson(report);
      file.commit();
    }
  });
}

void record(const BelosResult& result, SolveReport& report) {
  report.solver = result.solver;
  report.iterations = result.iterations;
  report.maxIterations = result.maxIterations;
  report.restarts = result.restarts;
  report.tolerance = result.tolerance;
  report.belosResidual = result.belosResidual;
  report.trueResidual = result.trueResidual;
  report.belosConverged = result.belosConverged;
  report.converged = result.converged();
  report.failureReason = result.failureReason;
  report.solveSeconds = result.seconds;
}

void record(const Problem& problem, const MatrixTraits& traits, SolveReport& report) {
  report.problem = problem.name;
  report.rows = static_cast<long long>(problem.matrix->getGlobalNumRows());
  report.entries = static_cast<long long>(problem.matrix->getGlobalNumEntries());
  report.symmetric = traits.symmetric;
}

double relativeError(const MultiVector& x, const MultiVector& exact) {
  MultiVector difference(x, Teuchos::Copy);
  difference.update(-1, exact, 1);
  return difference.getVector(0)->norm2() / exact.getVector(0)->norm2();
}

}  // namespace

int runSolve(const SolveOptions& options) {
  const CommPtr comm = Tpetra::getDefaultComm();
  SolveReport report;
  const ExchangeOptions exchange = resolveExchange(options, comm, report);
  checkOutputs(options, comm);
  const auto parameters = readParameterFile(options.parameterFile, mpiOf(comm));
  Teuchos::ParameterList& belos = parameters->sublist("Belos");
  setBelosParameters(belos, options);

  const double start = MPI_Wtime();
  Problem problem = loadProblem(options, comm);
  partition(problem, options.partition);
  const MatrixTraits traits = examine(*problem.matrix);
  record(problem, traits, report);
  report.partition = options.partition;
  const std::string solver = resolveSolver(options.solver, traits, options.preconditioner != "none");

  const double loaded = MPI_Wtime();
  const RCP<NodeAwareCrsMatrix<>> A = makeNodeAware(problem.matrix, exchange);
  const Preconditioner preconditioner =
      makePreconditioner(options.preconditioner, problem, traits, A, parameters->sublist("MueLu"), exchange);
  report.preconditioner = preconditioner.description;
  report.readSeconds = loaded - start;
  report.setupSeconds = MPI_Wtime() - loaded;

  MultiVector x(problem.matrix->getDomainMap(), 1);
  const bool showProgress = comm->getRank() == 0 && !options.quiet && isInteractive();
  record(solveWithBelos(solver, A, preconditioner.op, *problem.matrix, *problem.rhs, x, belos, showProgress), report);
  report.exactKnown = !problem.exact.is_null();
  if (report.exactKnown) {
    report.relativeError = relativeError(x, *problem.exact);
  }
  addHalos(*A, preconditioner, exchange, report);

  if (!options.solutionFile.empty()) {
    writeSolution(options.solutionFile, x, "komvos " KOMVOS_VERSION ", solution of " + problem.name);
  }
  if (exchange.record) {
    saveTuningCache(options.saveTuningCacheFile, *exchange.record, comm);
  }
  writeReport(options, report, comm);
  if (const std::string why = whyNotConverged(report); !why.empty() && comm->getRank() == 0) {
    printError(why);
  }
  return report.converged ? ExitCode::converged : ExitCode::notConverged;
}

}  // namespace Komvos::Program
