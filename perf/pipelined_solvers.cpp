// What does an iteration of BiCGStab take where reductions are slow, and what a digit?
//
// The same system with the same Jacobi preconditioner from the right, to the same tolerance: by Belos' BICGSTAB on
// Tpetra's matrix and on the node-aware one, by PipelinedBiCGStab in both variants on both, and, where it is installed,
// by PETSc's bcgs, fbcgsr, ibcgs and pipebcgs on its own matrix. Node-aware matrices have been tuned in earlier solves.
// A sample solves once by each variant, in an order that rotates; its time is the maximum over ranks.
// With --triangles, the system is that of two conducting spheres at 1 V and -1 V, by a hierarchical matrix: by Belos'
// BICGSTAB and by all variants of PipelinedBiCGStab, those with replicated vectors among them.
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
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "Komvos_BelosSolvers.hpp"
#include "Komvos_BoundaryKernels.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HMatrixOperator.hpp"
#include "Komvos_MeshGenerators.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "jacobi.hpp"
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
  int triangles = 0;  ///< of two spheres; 0: the sparse problem
  std::string partition = "contiguous";
  double tolerance = 1e-8;
  int samples = 30;
  std::string network = "unknown";
  std::string only;  ///< variants to run have this in their names
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

/// Two spheres at 1 V and -1 V: charges on triangles. Without a preconditioner, as HACApK solves it.
struct BoundaryProblem {
  TriangleMesh mesh;
  ClusterTree tree;
  LaplaceSingleLayer kernel;
  RCP<const HMatrixOperator<>> A;
  RCP<MultiVector> rhs;

  BoundaryProblem(int triangles, const RCP<const Teuchos::Comm<int>>& comm)
      : mesh(twoSpheresMesh(triangles)),
        tree(centroidsOf(mesh), boxesOf(mesh)),
        kernel(mesh),
        A(rcp(new HMatrixOperator<>(comm, tree, kernel))),
        rhs(rcp(new MultiVector(A->getRangeMap(), 1))) {
    const auto centroids = centroidsOf(mesh);
    for (std::size_t k = 0; k < rhs->getLocalLength(); ++k) {
      const auto triangle = static_cast<std::size_t>(rhs->getMap()->getGlobalElement(static_cast<int>(k)));
      rhs->replaceLocalValue(static_cast<int>(k), 0, centroids[triangle].z > 0 ? 1.0 : -1.0);
    }
  }
};

class PipelinedSolvers {
 public:
  PipelinedSolvers(const Options& options, const Problem& problem, MPI_Comm comm)
      : PipelinedSolvers(options, problem.matrix, problem.rhs, rcp(new Jacobi(*problem.matrix)), comm) {
    nodeAware_ = makeNodeAware(problem.matrix);
    for (const bool ours : {false, true}) {
      const RCP<const Operator> A = ours ? RCP<const Operator>(nodeAware_) : plain_;
      const std::string products = ours ? ", Komvos' products" : ", Tpetra's products";
      addBelos("Belos" + products, A);
      for (const std::string variant : {"merged", "pipelined"}) {
        addOurs(variant, products, true, A);
        if (ours) {
          addOurs(variant, products + ", MPI's reductions", false, A);
        }
      }
    }
#ifdef KOMVOS_HAVE_PETSC
    petsc_ = std::make_unique<PetscKrylov>(problem);
    for (const char* const method : {"bcgs", "fbcgsr", "ibcgs", "pipebcgs"}) {
      add(std::string("PETSc ") + method, [this, method] {
        const PetscKrylovResult result = petsc_->solve(method, options_.tolerance);
        return Solve{result.seconds, result.iterations, result.trueResidual};
      });
    }
#endif
  }

  PipelinedSolvers(const Options& options, const BoundaryProblem& problem, MPI_Comm comm)
      : PipelinedSolvers(options, problem.A, problem.rhs, Teuchos::null, comm) {
    addBelos("Belos", plain_);
    for (const std::string variant : {"merged", "pipelined", "replicated", "replicated-pipelined"}) {
      addOurs(variant, "", true, plain_);
    }
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

  /// How ghosts of the node-aware matrix travel, and what was tried; nothing if there is none.
  Json halo() const {
    if (nodeAware_.is_null() || nodeAware_->importHalo() == nullptr) {
      return nullptr;
    }
    const HaloReport& report = nodeAware_->importHalo()->report();
    Json trials = Json::array();
    for (const HaloTrial& one : report.trials) {
      trials.push_back({{"route", toString(one.route)},
                        {"on_node", toString(one.intraNode)},
                        {"uses", {one.firstUse, one.lastUse}},
                        {"seconds", one.seconds},
                        {"seconds_in_use", one.secondsInUse},
                        {"outcome", one.outcome}});
    }
    return {{"route", report.route},
            {"on_node", toString(report.intraNode)},
            {"uses", report.uses},
            {"settled_at", report.settledAt},
            {"trials", trials}};
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
  PipelinedSolvers(const Options& options, RCP<const Operator> plain, RCP<MultiVector> rhs,
                   RCP<const Operator> preconditioner, MPI_Comm comm)
      : options_(options),
        plain_(std::move(plain)),
        rhs_(std::move(rhs)),
        preconditioner_(std::move(preconditioner)),
        comm_(comm) {
    registerBelosSolvers();
  }

  void addBelos(const std::string& name, const RCP<const Operator>& A) {
    add(name, [this, A, solver = newSolver("BICGSTAB", {})] { return by(*solver, A); });
  }
  void addOurs(const std::string& variant, const std::string& remark, bool nodeAwareReductions,
               const RCP<const Operator>& A) {
    Teuchos::ParameterList parameters;
    parameters.set("Variant", variant);
    parameters.set("Node-Aware Reductions", nodeAwareReductions);
    add("Komvos " + variant + remark,
        [this, A, solver = newSolver("PIPELINED BICGSTAB", parameters)] { return by(*solver, A); });
  }
  void add(std::string name, std::function<Solve()> run) {
    if (name.find(options_.only) != std::string::npos) {
      variants_.push_back({std::move(name), std::move(run), {}, {}, {}, {}, 0});
    }
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

  /// Used for all solves of a variant.
  RCP<Belos::SolverManager<double, MultiVector, Operator>> newSolver(const std::string& name,
                                                                     const Teuchos::ParameterList& own) const {
    const auto parameters = rcp(new Teuchos::ParameterList(own));
    parameters->set("Convergence Tolerance", options_.tolerance);
    parameters->set("Maximum Iterations", 2000);
    Belos::SolverFactory<double, MultiVector, Operator> factory;
    return factory.create(name, parameters);
  }

  Solve by(Belos::SolverManager<double, MultiVector, Operator>& solver, const RCP<const Operator>& A) const {
    const auto x = rcp(new MultiVector(plain_->getDomainMap(), 1));
    using LinearProblem = Belos::LinearProblem<double, MultiVector, Operator>;
    const auto system = rcp(new LinearProblem(A, x, rhs_));
    if (!preconditioner_.is_null()) {
      system->setRightPrec(preconditioner_);
    }
    system->setProblem();
    solver.setProblem(system);
    mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
    const double start = MPI_Wtime();
    solver.solve();
    Solve one{MPI_Wtime() - start, solver.getNumIters(), 0};
    MultiVector r(*rhs_, Teuchos::Copy);
    plain_->apply(*x, r, Teuchos::NO_TRANS, -1, 1);
    one.residual = r.getVector(0)->norm2() / rhs_->getVector(0)->norm2();
    return one;
  }

  const Options& options_;
  RCP<const Operator> plain_;
  RCP<const NodeAwareCrsMatrix<>> nodeAware_;
  RCP<MultiVector> rhs_;
  RCP<const Operator> preconditioner_;
  MPI_Comm comm_;
#ifdef KOMVOS_HAVE_PETSC
  std::unique_ptr<PetscKrylov> petsc_;  // for sparse problems
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

struct Measured {
  std::string problem, partition;
  Tpetra::global_size_t rows = 0, entries = 0;
  Json results, halo = nullptr;
};

Measured measureSparse(const Options& options, const RCP<const Teuchos::Comm<int>>& comm) {
  Problem problem = loadProblem(options.problem, comm);
  partition(problem, options.partition);
  PipelinedSolvers solvers(options, problem, Tpetra::Details::extractMpiCommFromTeuchos(*comm));
  solvers.run();
  return {
      problem.name,      options.partition, problem.matrix->getGlobalNumRows(), problem.matrix->getGlobalNumEntries(),
      solvers.results(), solvers.halo()};
}

/// Entries are what the hierarchical matrix stores, in values of 8 bytes.
Measured measureBoundary(const Options& options, const RCP<const Teuchos::Comm<int>>& comm) {
  const BoundaryProblem problem(options.triangles, comm);
  PipelinedSolvers solvers(options, problem, Tpetra::Details::extractMpiCommFromTeuchos(*comm));
  solvers.run();
  return {"two spheres, " + std::to_string(problem.mesh.triangles.size()) + " triangles",
          "by bytes",
          problem.rhs->getGlobalLength(),
          static_cast<Tpetra::global_size_t>(problem.A->report().bytes) / 8,
          solvers.results(),
          nullptr};
}

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  const Measured measured = options.triangles > 0 ? measureBoundary(options, comm) : measureSparse(options, comm);
  const Json report{{"benchmark", "BiCGStab, pipelined and not"},
                    {"commit", KOMVOS_COMMIT},
                    {"problem", measured.problem},
                    {"rows", measured.rows},
                    {"entries", measured.entries},
                    {"partition", measured.partition},
                    {"tolerance", options.tolerance},
                    {"ranks", comm->getSize()},
                    {"network", options.network},
                    {"samples", options.samples},
                    {"processor", Impl::processorName()},
                    {"mpi", Impl::mpiLibraryName()},
                    {"halo", measured.halo},
                    {"results", measured.results}};
  if (comm->getRank() == 0) {
    std::cout << measured.problem << ", " << comm->getSize() << " ranks\n";
    print(report["results"]);
    if (!measured.halo.is_null()) {
      std::cout << "  ghosts of Komvos' products: " << measured.halo["route"].get<std::string>() << ", "
                << measured.halo["on_node"].get<std::string>() << "\n";
    }
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
  app.add_option("--triangles", options.triangles, "two spheres by a hierarchical matrix")->check(CLI::PositiveNumber);
  app.add_option("--partition", options.partition, "contiguous, strided or graph");
  app.add_option("--tolerance", options.tolerance)->check(CLI::PositiveNumber);
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "solvers with this in their names; ratios are to the first of them");
  app.add_option("--network", options.network, "for the report");
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.triangles == 0) {
      checkProblemOptions(app, options.problem);
    }
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "pipelined_solvers: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
