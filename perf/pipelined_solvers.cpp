// What does an iteration of BiCGStab take where reductions are slow, and what a digit?
//
// The same system with the same Jacobi preconditioner from the right, to the same tolerance: by Belos' BICGSTAB on
// Tpetra's matrix and on the node-aware one, by PipelinedBiCGStab in both variants on both, and, where it is installed,
// by PETSc's bcgs, fbcgsr, ibcgs and pipebcgs on its own matrix. Node-aware matrices have been tuned in earlier solves.
// A sample solves once by each variant, in an order that rotates; its time is the maximum over ranks.
// run_pipelined_solvers.py runs it.
#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "Komvos_BelosSolvers.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "problem/partition.hpp"
#include "problem/problem.hpp"
#include "problem/problem_options.hpp"
#include "support/text_format.hpp"
#ifdef KOMVOS_HAVE_PETSC
#include "petsc_krylov.hpp"
#endif

namespace {

using namespace Komvos;
using namespace Komvos::Program;
using Json = nlohmann::ordered_json;
using Teuchos::RCP;
using Teuchos::rcp;
using Operator = Tpetra::Operator<>;

struct Options {
  ProblemOptions problem;
  std::string partition = "contiguous";
  double tolerance = 1e-8;
  int samples = 30;
  std::string network = "unknown";
  std::string json = "-";
};

struct Solve {
  double seconds = 0;
  int iterations = 0;
  double residual = 0;  ///< true, relative
};

struct Variant {
  std::string name;
  std::function<Solve()> run;
  std::vector<double> perIteration, perDigit, whole;
  std::vector<double> iterations;
  double worstResidual = 0;
};

/// y = D^-1 x, as PETSc's Jacobi.
class Jacobi : public Operator {
 public:
  explicit Jacobi(const Matrix& matrix) : inverse_(matrix.getRowMap()) {
    matrix.getLocalDiagCopy(inverse_);
    inverse_.reciprocal(inverse_);
  }
  RCP<const Map> getDomainMap() const override { return inverse_.getMap(); }
  RCP<const Map> getRangeMap() const override { return inverse_.getMap(); }
  void apply(const MultiVector& x, MultiVector& y, Teuchos::ETransp, double alpha, double beta) const override {
    y.elementWiseMultiply(alpha, inverse_, x, beta);
  }

 private:
  Tpetra::Vector<> inverse_;
};

class PipelinedSolvers {
 public:
  PipelinedSolvers(const Options& options, const Problem& problem, MPI_Comm comm)
      : options_(options),
        problem_(problem),
        comm_(comm),
        nodeAware_(makeNodeAware(problem.matrix)),
        jacobi_(rcp(new Jacobi(*problem.matrix))) {
    registerBelosSolvers();
    for (const bool ours : {false, true}) {
      const RCP<const Operator> A = ours ? RCP<const Operator>(nodeAware_) : RCP<const Operator>(problem_.matrix);
      const std::string products = ours ? "Komvos' products" : "Tpetra's products";
      add("Belos, " + products, [=] { return byBelos("BICGSTAB", {}, A); });
      for (const std::string variant : {"merged", "pipelined"}) {
        Teuchos::ParameterList parameters;
        parameters.set("Variant", variant);
        add("Komvos " + variant + ", " + products, [=] { return byBelos("PIPELINED BICGSTAB", parameters, A); });
        if (ours) {
          parameters.set("Node-Aware Reductions", false);
          add("Komvos " + variant + ", " + products + ", MPI's reductions",
              [=] { return byBelos("PIPELINED BICGSTAB", parameters, A); });
        }
      }
    }
#ifdef KOMVOS_HAVE_PETSC
    for (const char* const method : {"bcgs", "fbcgsr", "ibcgs", "pipebcgs"}) {
      add(std::string("PETSc ") + method, [this, method] {
        const PetscKrylovResult result = petsc_.solve(method, options_.tolerance);
        return Solve{result.seconds, result.iterations, result.trueResidual};
      });
    }
#endif
  }

  void run() {
    for (int warmUp = 0; warmUp < 3; ++warmUp) {  // and tunes
      for (const Variant& variant : variants_) {
        variant.run();
      }
    }
    for (int sample = 0; sample < options_.samples; ++sample) {
      for (std::size_t i = 0; i < variants_.size(); ++i) {
        take(variants_[(i + static_cast<std::size_t>(sample)) % variants_.size()]);
      }
    }
  }

  Json results() const {
    Json json = Json::array();
    const auto ratio = [this](const Variant& one, std::vector<double> Variant::*times) {
      return Impl::median(Impl::ratios(one.*times, variants_.front().*times));
    };
    for (const Variant& one : variants_) {
      json.push_back({{"variant", one.name},
                      {"iterations", Impl::median(one.iterations)},
                      {"worst_residual", one.worstResidual},
                      {"solve_seconds", Impl::median(one.whole)},
                      {"seconds_per_iteration", Impl::median(one.perIteration)},
                      {"seconds_per_digit", Impl::median(one.perDigit)},
                      {"iteration_of_belos", ratio(one, &Variant::perIteration)},
                      {"digit_of_belos", ratio(one, &Variant::perDigit)}});
    }
    return json;
  }

 private:
  void add(std::string name, std::function<Solve()> run) {
    variants_.push_back({std::move(name), std::move(run), {}, {}, {}, {}, 0});
  }

  void take(Variant& variant) {
    Solve one = variant.run();
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &one.seconds, 1, MPI_DOUBLE, MPI_MAX, comm_), "MPI_Allreduce");
    variant.whole.push_back(one.seconds);
    variant.iterations.push_back(one.iterations);
    variant.perIteration.push_back(one.seconds / std::max(1, one.iterations));
    variant.perDigit.push_back(one.seconds / -std::log10(one.residual));
    variant.worstResidual = std::max(variant.worstResidual, one.residual);
  }

  Solve byBelos(const std::string& name, const Teuchos::ParameterList& own, const RCP<const Operator>& A) {
    const auto parameters = rcp(new Teuchos::ParameterList(own));
    parameters->set("Convergence Tolerance", options_.tolerance);
    parameters->set("Maximum Iterations", 2000);
    Belos::SolverFactory<double, MultiVector, Operator> factory;
    const auto solver = factory.create(name, parameters);
    const auto x = rcp(new MultiVector(problem_.matrix->getDomainMap(), 1));
    using LinearProblem = Belos::LinearProblem<double, MultiVector, Operator>;
    const auto system = rcp(new LinearProblem(A, x, problem_.rhs));
    system->setRightPrec(jacobi_);
    system->setProblem();
    solver->setProblem(system);
    mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
    const double start = MPI_Wtime();
    solver->solve();
    Solve one{MPI_Wtime() - start, solver->getNumIters(), 0};
    MultiVector r(*problem_.rhs, Teuchos::Copy);
    problem_.matrix->apply(*x, r, Teuchos::NO_TRANS, -1, 1);
    one.residual = r.getVector(0)->norm2() / problem_.rhs->getVector(0)->norm2();
    return one;
  }

  const Options& options_;
  const Problem& problem_;
  MPI_Comm comm_;
  RCP<NodeAwareCrsMatrix<>> nodeAware_;
  RCP<const Operator> jacobi_;
#ifdef KOMVOS_HAVE_PETSC
  PetscKrylov petsc_{problem_};
#endif
  std::vector<Variant> variants_;
};

void print(const Json& results) {
  for (const Json& one : results) {
    std::cout << format(
        "  %-54s %4.0f iterations, residual %.1e; an iteration %8.1f us (%.2f), a digit %8.2f ms (%.2f)\n",
        one["variant"].get<std::string>().c_str(), one["iterations"].get<double>(), one["worst_residual"].get<double>(),
        1e6 * one["seconds_per_iteration"].get<double>(), one["iteration_of_belos"].get<double>(),
        1e3 * one["seconds_per_digit"].get<double>(), one["digit_of_belos"].get<double>());
  }
  std::cout << std::flush;
}

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  Problem problem = loadProblem(options.problem, comm);
  partition(problem, options.partition);
  PipelinedSolvers solvers(options, problem, Tpetra::Details::extractMpiCommFromTeuchos(*comm));
  solvers.run();
  const Json report{{"benchmark", "BiCGStab, pipelined and not"},
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
                    {"results", solvers.results()}};
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
  CLI::App app("Times BiCGStab, pipelined and not");
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
    std::cerr << "pipelined_solvers: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
