#include "solve/solve.hpp"

#include <MatrixMarket_Tpetra.hpp>
#include <Tpetra_Core.hpp>
#include <memory>
#include <sstream>

#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_TuningCache.hpp"
#include "problem/belos_solve.hpp"
#include "problem/partition.hpp"
#include "problem/preconditioner.hpp"
#include "solve/cycle_times.hpp"
#include "solve/direct_solve.hpp"
#include "solve/report.hpp"
#include "support/convergence_plot.hpp"
#include "support/exchange_choice.hpp"
#include "support/gnuplot.hpp"
#include "support/output_file.hpp"
#include "support/parameter_file.hpp"
#include "support/progress_line.hpp"
#include "support/report_output.hpp"
#include "support/run_collectively.hpp"

// How this works. runSolve() first does all that may be refused: it resolves the options of the exchange, checks that
// the output files can be written, and reads the parameters. Then it loads the problem. solveIteratively() makes the
// node-aware matrix A, the preconditioner from it, with all levels node-aware, and solves; Belos gets its products from
// A, the true residual comes from the original matrix. A direct solver has a file of its own. addHalos() collects what
// was exchanged; where MueLu's parameters say that its levels are not node-aware, it plans their halos, for comparison
// only. Halos of levels that rebalancing has left on some ranks come from these (halo_entry.cpp). Whatever is found
// goes into one SolveReport, which writeOutputs() prints and writes in the end. All functions are collective.
namespace Komvos::Program {

namespace {

using Teuchos::RCP;
using Teuchos::rcp;

/// Before the work, not after it. \note Collective.
void checkOutputs(const SolveOptions& options, const CommPtr& comm) {
  std::vector<std::string> outputs{options.solutionFile, options.jsonFile, options.cyclePlotFile,
                                   options.convergencePlotFile};
  requireWritable(outputs, {options.tuningCacheFile}, mpiOf(comm));
  // It may replace the tuning cache that was read, for it gets the decisions of that.
  outputs.push_back(options.saveTuningCacheFile);
  requireWritable(outputs, {options.matrixFile, options.rhsFile, options.parameterFile, options.machine}, mpiOf(comm));
  onRankZero(mpiOf(comm), [&] {
    if (!options.cyclePlotFile.empty()) {
      Gnuplot::requireInstalled("--cycle-plot");
    }
    if (!options.convergencePlotFile.empty()) {
      Gnuplot::requireInstalled("--convergence-plot");
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
    report.halos.push_back({"A", 0, true, A.importHalo()->report()});
  }
  for (const LevelExchange& one : preconditioner.hierarchy.exchanges) {
    const NodeAwareImport<>* const halo = one.matrix.is_null() ? one.transfer.get() : one.matrix->importHalo();
    if (halo != nullptr && one.matrix.get() != &A) {
      report.halos.push_back({"level " + std::to_string(one.level) + " " + one.name, one.level, true, halo->report()});
    }
  }
  report.keptByMueLu = preconditioner.hierarchy.kept;
  if (exchange.topology->numNodes() == 1 || !preconditioner.hierarchy.exchanges.empty()) {
    return;
  }
  ExchangeOptions planned = exchange;  // counted, not timed: nobody runs them
  if (planned.route.value_or(RouteChoice::automatic) == RouteChoice::automatic) {
    planned.route = RouteChoice::threeStep;
  }
  planned.intraNode = IntraNode::messages;
  planned.record = nullptr;
  for (const LevelGraph& one : preconditioner.levelGraphs) {
    if (const auto importer = one.graph->getImporter(); !importer.is_null()) {
      report.halos.push_back({one.name, one.level, false, NodeAwareImport<>(*importer, planned).report()});
    }
  }
}

/// \return an open file on rank 0, null on the others \note Collective. \throws BadInput on all ranks
std::unique_ptr<OutputFile> openOnRankZero(const std::string& path, MPI_Comm comm) {
  std::unique_ptr<OutputFile> file;
  onRankZero(comm, [&] { file = std::make_unique<OutputFile>(path); });
  return file;
}

/// In the order of rows. \note Collective.
void writeSolution(const std::string& path, const MultiVector& x, const std::string& comment) {
  const CommPtr comm = x.getMap()->getComm();
  auto ordered = rcp(new MultiVector(x, Teuchos::Copy));
  moveTo(contiguousMap(static_cast<long long>(x.getGlobalLength()), 1, comm), ordered);
  const std::unique_ptr<OutputFile> file = openOnRankZero(path, mpiOf(comm));
  std::ostringstream nowhere;
  Tpetra::MatrixMarket::Writer<Matrix>::writeDense(file ? file->stream() : nowhere, *ordered, "solution", comment);
  onRankZero(mpiOf(comm), [&] { file->commit(); });
}

void record(const BelosResult& result, SolveReport& report) {
  report.solver = result.solver + (result.variant.empty() ? "" : ", " + result.variant);
  report.history = result.history;
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

/// \note Collective.
void writeOutputs(const SolveOptions& options, const SolveReport& report, const MultiVector& x,
                  const ExchangeOptions& exchange, const CommPtr& comm) {
  if (!options.solutionFile.empty()) {
    writeSolution(options.solutionFile, x,
                  "komvos " KOMVOS_VERSION ", " + std::string(report.converged ? "" : "NOT converged, ") +
                      "solution of " + report.problem);
  }
  if (exchange.record) {
    saveTuningCache(options.saveTuningCacheFile, exchange, mpiOf(comm));
  }
  writeReport(toText(report), toJson(report), options.quiet, options.jsonFile, mpiOf(comm));
  if (const std::string why = whyNotConverged(report); !why.empty() && comm->getRank() == 0) {
    printError(why);
  }
  if (!options.cyclePlotFile.empty() && report.cycles) {
    onRankZero(mpiOf(comm), [&] { drawPlot(options.cyclePlotFile, *report.cycles, report.problem, report.topology); });
  }
  if (!options.convergencePlotFile.empty()) {
    onRankZero(mpiOf(comm), [&] {
      drawConvergence(options.convergencePlotFile, report.problem + ", " + report.solver, report.history,
                      report.tolerance);
    });
  }
}

double relativeError(const MultiVector& x, const MultiVector& exact) {
  MultiVector difference(x, Teuchos::Copy);
  difference.update(-1, exact, 1);
  return difference.getVector(0)->norm2() / exact.getVector(0)->norm2();
}

/// Takes from MueLu's parameters what the command line says, too, and therefore decides.
void leaveToCommandLine(const ExchangeChoice& choice, Teuchos::ParameterList& muelu) {
  const std::pair<const std::string&, const char*> entries[] = {{choice.route, "node-aware: route"},
                                                                {choice.pairing, "node-aware: pairing"},
                                                                {choice.intraNode, "node-aware: on node"},
                                                                {choice.tuning, "node-aware: tuning"}};
  for (const auto& [given, name] : entries) {
    if (!given.empty()) {
      muelu.remove(name, false);
    }
  }
}

void requireHistoryForPlot(const SolveOptions& options, const std::string& solver) {
  if (!options.convergencePlotFile.empty() && !keepsHistory(solver)) {
    throw BadInput("solve: --convergence-plot needs --solver pipelined-bicgstab; " + solver +
                   " does not tell its iterations");
  }
}

/// By Belos. \note Collective.
void solveIteratively(const SolveOptions& options, const Problem& problem, const MatrixTraits& traits,
                      const ExchangeOptions& exchange, Teuchos::ParameterList& parameters, MultiVector& x,
                      SolveReport& report) {
  const std::string solver = resolveSolver(options.solver, traits, options.preconditioner != "none");
  requireParametersOf(solver, parameters.sublist("Belos"));
  const bool timesCycles = options.cycleTimes || !options.cyclePlotFile.empty();
  requireHistoryForPlot(options, solver);
  Teuchos::ParameterList muelu = parameters.sublist("MueLu");  // as given
  const double start = MPI_Wtime();
  const RCP<NodeAwareCrsMatrix<>> A = makeNodeAware(problem.matrix, exchange);
  const Preconditioner preconditioner =
      makePreconditioner(options.preconditioner, problem, traits, A, parameters.sublist("MueLu"), exchange);
  report.preconditioner = preconditioner.description;
  report.setupSeconds = MPI_Wtime() - start;
  const bool showProgress = x.getMap()->getComm()->getRank() == 0 && !options.quiet && isInteractive();
  record(solveWithBelos(solver, A, preconditioner.op, *problem.matrix, *problem.rhs, x, parameters.sublist("Belos"),
                        showProgress, !options.convergencePlotFile.empty()),
         report);
  addHalos(*A, preconditioner, exchange, report);
  addOfAllRanks(report.halos, mpiOf(x.getMap()->getComm()));
  addOfAllRanks(report.keptByMueLu, mpiOf(x.getMap()->getComm()));
  if (timesCycles) {
    try {
      muelu.set("use node-aware", false);
      const Preconditioner stock = makePreconditioner("muelu", problem, traits, problem.matrix, muelu, exchange);
      report.cycles = timeCycles(stock.op, preconditioner.op, *problem.rhs);
    } catch (const BadInput& error) {  // on all ranks; there is a solution
      report.whyNoCycles = error.what();
    }
  }
}

}  // namespace

int runSolve(const SolveOptions& options) {
  const CommPtr comm = Tpetra::getDefaultComm();
  keepStdoutFor(options.jsonFile);
  SolveReport report;
  if (options.cycleTimes || !options.cyclePlotFile.empty()) {
    prepareToTimeCycles();
  }
  const ExchangeOptions exchange = resolveExchange(options, mpiOf(comm), report);
  checkOutputs(options, comm);
  const auto parameters = readParameterFile(options.parameterFile, mpiOf(comm));
  leaveToCommandLine(options, parameters->sublist("MueLu"));
  Teuchos::ParameterList& belos = parameters->sublist("Belos");
  setBelosParameters(belos, options);
  const bool direct = isDirectSolver(options.solver);
  if (!direct && options.solver != "auto") {  // before the matrix is read
    requireHistoryForPlot(options, resolveSolver(options.solver, MatrixTraits(), options.preconditioner != "none"));
  }

  const double start = MPI_Wtime();
  Problem problem = loadProblem(options, comm);
  partition(problem, options.partition);
  const MatrixTraits traits = examine(*problem.matrix);
  record(problem, traits, report);
  report.partition = options.partition;
  report.readSeconds = MPI_Wtime() - start;

  MultiVector x(problem.matrix->getDomainMap(), 1);
  if (direct) {
    solveDirectly(options.solver, problem, traits, exchange, belos.get<double>("Convergence Tolerance"), x, report);
  } else {
    solveIteratively(options, problem, traits, exchange, *parameters, x, report);
  }
  report.exactKnown = !problem.exact.is_null();
  report.relativeError = report.exactKnown ? relativeError(x, *problem.exact) : 0;
  if (exchange.record) {
    exchange.record->addOfAllRanks(mpiOf(comm));
    report.savedDecisions = exchange.record->size();
    report.savedGuesses = exchange.record->numGuesses();
  }
  writeOutputs(options, report, x, exchange, comm);
  if (!report.whyNoCycles.empty()) {
    if (report.converged) {
      throw BadInput(report.whyNoCycles);
    }
    if (comm->getRank() == 0) {
      printError(report.whyNoCycles);
    }
  }
  return report.converged ? ExitCode::converged : ExitCode::notConverged;
}

}  // namespace Komvos::Program
