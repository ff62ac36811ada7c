#include "bem/bem.hpp"

#include <Tpetra_Core.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrixOperator.hpp"
#include "Komvos_HMatrixPreconditioner.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_TuningCache.hpp"
#include "Komvos_VtuFile.hpp"
#include "bem/bem_kernel.hpp"
#include "bem/bem_mesh.hpp"
#include "bem/bem_report.hpp"
#include "bem/block_plot.hpp"
#include "bem/boundary_problem.hpp"
#include "bem/helmholtz.hpp"
#include "bem/measured_matrix.hpp"
#include "bem/timed_operator.hpp"
#include "problem/belos_solve.hpp"
#include "problem/partition.hpp"
#include "support/convergence_plot.hpp"
#include "support/gnuplot.hpp"
#include "support/output_file.hpp"
#include "support/progress_line.hpp"
#include "support/report_output.hpp"
#include "support/run_collectively.hpp"
#include "support/text_format.hpp"

// How this works. runBem() first does all that may be refused, the mesh included. Then it makes the hierarchical
// matrix, estimates its error, times products, and solves; Belos gets operators that note how long they take.
// boundary_problem.hpp knows what the right-hand sides are and what the solutions mean. Whatever is found goes into one
// BemReport. All functions are collective.
namespace Komvos::Program {

namespace {

using Operator = Tpetra::Operator<>;
using Teuchos::RCP;
using Teuchos::rcp;

/// So many right-hand sides are solved together. Belos' BICGSTAB (13.2) claims small residuals that it does not have,
/// where some of several right-hand sides have converged before the others.
int mostTogether(const std::string& solver) { return solver == "BICGSTAB" ? 1 : 16; }

/// Before the work, not after it. \note Collective.
void checkOutputs(const BemOptions& options, MPI_Comm comm) {
  std::vector<std::string> outputs{options.densityFile, options.jsonFile, options.blockPlotFile,
                                   options.convergencePlotFile};
  requireWritable(outputs, {options.tuningCacheFile}, comm);
  // It may replace the tuning cache that was read, for it gets the decisions of that.
  outputs.push_back(options.saveTuningCacheFile);
  requireWritable(outputs, {options.meshFile, options.machine}, comm);
  if (!options.convergencePlotFile.empty()) {
    onRankZero(comm, [] { Gnuplot::requireInstalled("--convergence-plot"); });
  }
}

/// What Belos knows the solver by; empty for none. \throws BadInput
std::string solverOf(const BemOptions& options) {
  if (!options.solves()) {
    return "";
  }
  const std::string name = options.solver == "auto" ? "pipelined-bicgstab" : options.solver;
  const std::string solver = resolveSolver(name, MatrixTraits(), options.preconditioner != "none");
  if (options.variant != "auto" && solver != "PIPELINED BICGSTAB") {
    throw BadInput("bem: --variant " + options.variant + " needs --solver pipelined-bicgstab, not " + solver);
  }
  if (!options.convergencePlotFile.empty() && !keepsHistory(solver)) {
    throw BadInput("bem: --convergence-plot needs --solver pipelined-bicgstab; " + solver +
                   " does not tell its iterations");
  }
  return solver;
}

std::string kernelName(const BemOptions& options) {
  return options.kernel == "yukawa"      ? format("yukawa, kappa %g / m", options.kappa)
         : options.kernel == "helmholtz" ? format("helmholtz, wavenumber %g / m", options.wavenumber)
                                         : options.kernel;
}

void record(const BemOptions& options, const BemMesh& mesh, BemReport& report) {
  report.geometry = mesh.name;
  report.triangles = mesh.size();
  report.vertices = static_cast<long long>(mesh.surface.vertices.size());
  report.bodies = mesh.numBodies();
  report.area = std::accumulate(mesh.areas.begin(), mesh.areas.end(), 0.0);
  report.faults = mesh.faults;
  report.kernel = kernelName(options);
  report.problem = options.problem;
  report.accuracy = options.accuracy;
  report.eta = options.eta;
  report.leafSize = options.leafSize;
  report.approximation = options.approximation;
  report.clusterSplit = options.clusterSplit;
  report.storage = options.kernel == "helmholtz" ? "whole" : options.storage;  // of complex values
}

HMatrixPreconditionerKind kindOf(const std::string& name) {
  return name == "diagonal"       ? HMatrixPreconditionerKind::Diagonal
         : name == "block-jacobi" ? HMatrixPreconditionerKind::BlockJacobi
         : name == "hodlr"        ? HMatrixPreconditionerKind::Hodlr
                                  : HMatrixPreconditionerKind::Overlapping;
}

/// Null for "none". \note Collective.
RCP<const Operator> makePreconditioner(const BemOptions& options, const Operator& A, const ClusterTree& tree,
                                       const EntryKernel<double>& kernel, const ExchangeOptions& exchange,
                                       BemSolve& solve) {
  solve.preconditioner = options.preconditioner;
  if (options.preconditioner == "none") {
    return Teuchos::null;
  }
  HMatrixPreconditionerOptions ours;
  ours.kind = kindOf(options.preconditioner);
  const auto made = rcp(new HMatrixPreconditioner<>(A.getDomainMap(), tree, kernel, ours, exchange));
  solve.preconditionerReport = made->report();
  return made;
}

/// Adds one group of right-hand sides to what is reported.
void add(const BelosResult& group, BemSolve& solve) {
  const BelosResult before = solve;
  static_cast<BelosResult&>(solve) = group;
  if (solve.groups++ > 0) {
    solve.iterations += before.iterations;
    solve.restarts += before.restarts;
    solve.seconds += before.seconds;
    solve.belosConverged = group.belosConverged && before.belosConverged;
    solve.history = before.history;
    if (!before.converged() || before.trueResidual > group.trueResidual) {
      solve.trueResidual = before.trueResidual;
      solve.belosResidual = before.belosResidual;
      solve.failureReason = before.failureReason;
    }
  }
}

/// \note Collective.
SolveParts partsOf(const TimedOperator& A, const TimedOperator* preconditioner, double seconds, MPI_Comm comm) {
  std::array<double, 3> sums{A.workSeconds(), A.exchangeSeconds(), 0};
  if (preconditioner != nullptr) {
    sums[1] += preconditioner->exchangeSeconds();
    sums[2] = preconditioner->workSeconds();
  }
  int ranks = 0;
  mpiCheck(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, sums.data(), 3, MPI_DOUBLE, MPI_SUM, comm), "MPI_Allreduce");
  for (double& sum : sums) {
    sum /= ranks;
  }
  return {sums[0], sums[1], sums[2], std::max(0.0, seconds - sums[0] - sums[1] - sums[2])};
}

/// Without those that are zero, as the potential of a field across a flat plate is; all if all are zero.
/// \note Collective.
std::vector<std::size_t> columnsToSolve(const MultiVector& b) {
  std::vector<double> norms(b.getNumVectors());
  b.norm1(Teuchos::arrayViewFromVector(norms));
  const bool allAreZero = std::all_of(norms.begin(), norms.end(), [](double norm) { return norm == 0; });
  std::vector<std::size_t> columns;
  for (std::size_t j = 0; j < norms.size(); ++j) {
    if (norms[j] != 0 || allAreZero) {
      columns.push_back(j);
    }
  }
  return columns;
}

/// \return the solutions \note Collective.
RCP<MultiVector> solveFor(const MultiVector& b, const BemOptions& options, const std::string& solver,
                          const RCP<const HMatrixOperator<>>& A, const RCP<const Operator>& M, bool showProgress,
                          BemSolve& solve) {
  const ExchangeClock clock{};
  const auto timedA = rcp(new TimedHMatrix(A, clock));
  const RCP<TimedOperator> timedM = M.is_null() ? Teuchos::null : rcp(new TimedOperator(M, clock));
  const int columns = static_cast<int>(b.getNumVectors());
  const auto x = rcp(new MultiVector(A->getDomainMap(), columns));
  solve.rightHandSides = columns;
  const int together = mostTogether(solver);
  x->putScalar(0);
  const std::vector<std::size_t> toSolve = columnsToSolve(b);
  for (auto from = toSolve.begin(); from != toSolve.end();) {
    const auto to = from + std::min<std::ptrdiff_t>(together, toSolve.end() - from);
    const Teuchos::Array<std::size_t> group(from, to);
    from = to;
    Teuchos::ParameterList belos;
    belos.set("Convergence Tolerance", options.tolerance);
    belos.set("Maximum Iterations", options.maxIterations);
    if (options.variant != "auto") {
      belos.set("Variant", options.variant);
    }
    const auto xOfGroup = x->subViewNonConst(group());
    add(solveWithBelos(solver, timedA, timedM, *timedA, *b.subView(group()), *xOfGroup, belos, showProgress,
                       !options.convergencePlotFile.empty()),
        solve);
  }
  solve.products = timedA->count();
  solve.parts = partsOf(*timedA, timedM.get(), solve.seconds, mpiOf(A->getDomainMap()->getComm()));
  return x;
}

/// What a run leaves behind, besides its report.
struct BemResult {
  RCP<MultiVector> density;   ///< null if nothing was solved
  std::vector<Block> blocks;  ///< of this rank, if they are drawn
};

/// For all kernels but helmholtz. \note Collective.
BemResult run(const BemOptions& options, const BemMesh& mesh, const std::string& solver, const CommPtr& comm,
              const ExchangeOptions& exchange, bool showProgress, BemReport& report) {
  const double start = MPI_Wtime();
  const std::unique_ptr<EntryKernel<double>> kernel = makeBemKernel(options, mesh);
  const ClusterTree tree = makeClusterTree(options, mesh);
  const auto A = makeMeasuredMatrix<double>(options, tree, *kernel, comm, exchange, showProgress, start, report);
  BemResult result;
  result.blocks = options.blockPlotFile.empty() ? std::vector<Block>() : A->blocks();
  if (options.solves()) {
    report.solve.emplace();
    const auto M = makePreconditioner(options, *A, tree, *kernel, exchange, *report.solve);
    const auto b = rightHandSides(options, mesh, *A);
    const auto solutions = solveFor(*b, options, solver, A, M, showProgress, *report.solve);
    result.density = evaluate(options, mesh, *solutions, report.physics);
  }
  return result;
}

/// \note Collective.
void writeDensity(const std::string& path, const BemMesh& mesh, RCP<MultiVector> density, const CommPtr& comm) {
  const auto all = static_cast<std::size_t>(mesh.size());
  moveTo(rcp(new Map(all, comm->getRank() == 0 ? all : 0, 0, comm)), density);
  onRankZero(mpiOf(comm), [&] {
    const auto view = density->getLocalViewHost(Tpetra::Access::ReadOnly);
    std::vector<double> values(all);
    for (std::size_t i = 0; i < all; ++i) {
      values[i] = view(i, 0);
    }
    OutputFile file(path);
    writeVtu(file.stream(), mesh.surface, {{"density", &values}});
    file.commit();
  });
}

/// \note Collective.
void writeOutputs(const BemOptions& options, const BemReport& report, const BemMesh& mesh, const BemResult& result,
                  const ExchangeOptions& exchange, const CommPtr& comm) {
  const MPI_Comm mpi = mpiOf(comm);
  if (!options.densityFile.empty()) {
    writeDensity(options.densityFile, mesh, result.density, comm);
  }
  if (exchange.record) {
    saveTuningCache(options.saveTuningCacheFile, exchange, mpi);
  }
  writeReport(toText(report), toJson(report), options.quiet, options.jsonFile, mpi);
  const std::string what = report.geometry + ", " + report.kernel;
  if (!options.blockPlotFile.empty()) {
    const std::vector<Block> blocks = gatherBlocks(result.blocks, mpi);
    onRankZero(mpi, [&] {
      drawBlocks(options.blockPlotFile, blocks, mesh.size(),
                 what + format(", accuracy %g, eta %g", options.accuracy, options.eta));
    });
  }
  if (!options.convergencePlotFile.empty()) {
    onRankZero(mpi, [&] {
      drawConvergence(options.convergencePlotFile, what + ", " + report.solve->solver, report.solve->history,
                      options.tolerance);
    });
  }
  if (const std::string why = whyNotConverged(report); !why.empty() && comm->getRank() == 0) {
    printError(why);
  }
}

}  // namespace

int runBem(const BemOptions& options) {
  const CommPtr comm = Tpetra::getDefaultComm();
  keepStdoutFor(options.jsonFile);
  BemReport report;
  const ExchangeOptions exchange = resolveExchange(options, mpiOf(comm), report);
  const std::string solver = solverOf(options);
  checkOutputs(options, mpiOf(comm));
  const double start = MPI_Wtime();
  const BemMesh mesh = loadBemMesh(options, mpiOf(comm));
  requireFits(options, mesh);
  record(options, mesh, report);
  report.meshSeconds = MPI_Wtime() - start;
  const bool showProgress = comm->getRank() == 0 && !options.quiet && isInteractive();
  BemResult result;
  if (options.kernel == "helmholtz") {
    result.blocks = measureHelmholtz(options, mesh, comm, exchange, showProgress, report);
  } else {
    result = run(options, mesh, solver, comm, exchange, showProgress, report);
  }
  writeOutputs(options, report, mesh, result, exchange, comm);
  return !report.solve || report.solve->converged() ? ExitCode::converged : ExitCode::notConverged;
}

}  // namespace Komvos::Program
