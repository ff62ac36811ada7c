// What does a user wait for who solves a system by conjugate gradients and algebraic multigrid?
//
// Set-up and solve, by MueLu with Tpetra's exchanges, by MueLu after makeNodeAware with the defaults and without
// tuning, nothing known from runs before, both also with coarse levels repartitioned onto fewer ranks, as GAMG has
// them, where coordinates are known; and, where it is installed, by PETSc with its own multigrid (GAMG) and with
// hypre's BoomerAMG; all to the same tolerance of the true residual. MueLu has the same coarse solver in all variants.
// A sample runs each variant once, in an order that rotates; its times are maxima over ranks. run_amg_solves.py runs
// it.
#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "problem/partition.hpp"
#include "problem/preconditioner.hpp"
#include "problem/problem.hpp"
#include "problem/belos_solve.hpp"
#include "support/text_format.hpp"
#ifdef KOMVOS_HAVE_PETSC
#include "petsc_solve.hpp"
#endif

namespace {

using namespace Komvos;
using namespace Komvos::Program;
using Json = nlohmann::ordered_json;
using Teuchos::RCP;

struct Options {
  ProblemOptions problem;
  std::string partition = "contiguous";
  double tolerance = 1e-8;
  int samples = 15;
  std::string network = "unknown";
  std::string json = "-";
};

struct Solve {
  double setUp = 0, solve = 0;
  int iterations = 0;
  double residual = 0;
};

struct Variant {
  std::string name;
  std::function<Solve()> run;
  std::vector<double> setUp, solve, whole;
  int iterations = 0;
  double worstResidual = 0;
};

double longest(double seconds, MPI_Comm comm) {
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
  return seconds;
}

class AmgSolves {
 public:
  AmgSolves(const Options& options, const Problem& problem, MPI_Comm comm)
      : options_(options), problem_(problem), traits_(examine(*problem.matrix)), comm_(comm) {
    add("MueLu", [this] { return byMueLu(nullptr, false); });
    ExchangeOptions online, off;
    online.reuseDecisions = off.reuseDecisions = false;
    off.tuning = Tuning::off;
    add("komvos", [this, online] { return byMueLu(&online, false); });
    add("komvos, tuning off", [this, off] { return byMueLu(&off, false); });
    if (!problem.coordinates.is_null()) {
      add("MueLu, repartitioned", [this] { return byMueLu(nullptr, true); });
      add("komvos, repartitioned", [this, online] { return byMueLu(&online, true); });
    }
#ifdef KOMVOS_HAVE_PETSC
    for (const char* const kind : {"gamg", "hypre"}) {
      if (petscHas(kind)) {
        add(std::string("PETSc, ") + kind, [this, kind] {
          const PetscSolveResult result = solveByPetsc(problem_, kind, options_.tolerance);
          return Solve{result.setUpSeconds, result.solveSeconds, result.iterations, result.trueResidual};
        });
      }
    }
#endif
  }

  void run() {
    for (int sample = -1; sample < options_.samples; ++sample) {  // the first one only warms up
      for (std::size_t i = 0; i < variants_.size(); ++i) {
        Variant& variant = variants_[(i + static_cast<std::size_t>(sample + 1)) % variants_.size()];
        const Solve one = variant.run();
        if (sample >= 0) {
          variant.setUp.push_back(one.setUp);
          variant.solve.push_back(one.solve);
          variant.whole.push_back(one.setUp + one.solve);
          variant.iterations = one.iterations;
          variant.worstResidual = std::max(variant.worstResidual, one.residual);
        }
      }
    }
  }

  Json results() const {
    Json json = Json::array();
    for (const Variant& variant : variants_) {
      json.push_back({{"variant", variant.name},
                      {"iterations", variant.iterations},
                      {"worst_residual", variant.worstResidual},
                      {"set_up_seconds", Impl::median(variant.setUp)},
                      {"solve_seconds", Impl::median(variant.solve)},
                      {"whole_seconds", Impl::median(variant.whole)},
                      {"solve_of_muelu", Impl::median(Impl::ratios(variant.solve, variants_.front().solve))},
                      {"whole_of_muelu", Impl::median(Impl::ratios(variant.whole, variants_.front().whole))}});
    }
    return json;
  }

 private:
  void add(std::string name, std::function<Solve()> run) {
    variants_.push_back({std::move(name), std::move(run), {}, {}, {}, 0, 0});
  }

  /// \param exchange null: Tpetra's
  Solve byMueLu(const ExchangeOptions* exchange, bool repartitions) {
    Teuchos::ParameterList muelu, belos;
    if (repartitions) {
      muelu.set("repartition: enable", true);
      muelu.set("repartition: partitioner", "zoltan2");
      muelu.set("repartition: start level", 1);
      muelu.set("repartition: min rows per proc", 500);
      muelu.sublist("repartition: params").set("algorithm", "multijagged");
    }
    belos.set("Convergence Tolerance", options_.tolerance);
    belos.set("Maximum Iterations", 1000);
    mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
    const double start = MPI_Wtime();
    const RCP<Matrix> A =
        exchange == nullptr ? problem_.matrix : RCP<Matrix>(makeNodeAware(problem_.matrix, *exchange));
    const Preconditioner preconditioner =
        makePreconditioner("muelu", problem_, traits_, A, muelu, exchange == nullptr ? ExchangeOptions() : *exchange);
    Solve solve;
    solve.setUp = longest(MPI_Wtime() - start, comm_);
    MultiVector x(problem_.matrix->getDomainMap(), 1);
    const BelosResult result =
        solveWithBelos("CG", A, preconditioner.op, *problem_.matrix, *problem_.rhs, x, belos, false);
    solve.solve = longest(result.seconds, comm_);
    solve.iterations = result.iterations;
    solve.residual = result.trueResidual;
    return solve;
  }

  const Options& options_;
  const Problem& problem_;
  MatrixTraits traits_;
  MPI_Comm comm_;
  std::vector<Variant> variants_;
};

void print(const Json& results) {
  for (const Json& one : results) {
    std::cout << format("  %-20s %4d iterations, residual %.1e; set-up %8.1f ms, solve %8.1f ms (%.2f of MueLu), ",
                        one["variant"].get<std::string>().c_str(), one["iterations"].get<int>(),
                        one["worst_residual"].get<double>(), 1e3 * one["set_up_seconds"].get<double>(),
                        1e3 * one["solve_seconds"].get<double>(), one["solve_of_muelu"].get<double>())
              << format("whole %8.1f ms (%.2f)\n", 1e3 * one["whole_seconds"].get<double>(),
                        one["whole_of_muelu"].get<double>());
  }
  std::cout << std::flush;
}

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  Problem problem = loadProblem(options.problem, comm);
  partition(problem, options.partition);
  AmgSolves solves(options, problem, Tpetra::Details::extractMpiCommFromTeuchos(*comm));
  solves.run();
  const Json report{{"benchmark", "solves with algebraic multigrid"},
                    {"commit", KOMVOS_COMMIT},
                    {"problem", problem.name},
                    {"rows", problem.matrix->getGlobalNumRows()},
                    {"entries", problem.matrix->getGlobalNumEntries()},
                    {"partition", options.partition},
                    {"tolerance", options.tolerance},
                    {"ranks", comm->getSize()},
                    {"network", options.network},
                    {"samples", options.samples},
                    {"processor", Impl::processorName()},
                    {"mpi", Impl::mpiLibraryName()},
                    {"results", solves.results()}};
  if (comm->getRank() == 0) {
    std::cout << problem.name << ", " << comm->getSize() << " ranks\n";
    print(report["results"]);
    if (options.json != "-") {
      std::ofstream file(options.json);
      file << report.dump(1) << "\n" << std::flush;
      throwOnAllIfAny(MPI_COMM_SELF, file.good() ? "" : "cannot write " + options.json);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  Options options;
  CLI::App app("Times set-up and solve by algebraic multigrid");
  addProblemOptions(app, options.problem);
  app.add_option("--partition", options.partition, "contiguous, strided or graph");
  app.add_option("--tolerance", options.tolerance)->check(CLI::PositiveNumber);
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--network", options.network, "for the report");
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    checkProblemOptions(app, options.problem);
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "amg_solves: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
