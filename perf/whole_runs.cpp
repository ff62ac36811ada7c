// What does a user wait for in all: set-up, and then so many products?
#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DetectedTopology.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HaloReport.hpp"
#include "Komvos_MessageCosts.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "problem/preconditioner.hpp"
#include "problem/problem.hpp"
#include "support/text_format.hpp"

// How this works. A cycle is one product with the matrix, or with --hierarchy one with each operator of MueLu's
// hierarchy, and then an all-reduce of one number, as any Krylov solver has. A run sets up the node-aware matrices,
// with nothing known from runs before, those of a hierarchy together, as makeNodeAware() does; then it does so many
// cycles; the clock is read at several counts of cycles. A sample runs each variant once, in an order that rotates; its
// times are maxima over ranks. Tpetra's imports are there before: its set-up costs nothing here.
namespace {

using namespace Komvos::Program;
using namespace Komvos;
using Json = nlohmann::ordered_json;
using Teuchos::RCP;
using Teuchos::rcp;

struct Options {
  ProblemOptions problem;
  bool hierarchy = false;
  int coarseSize = 100;
  bool routes = false;
  std::vector<int> cycles = {20, 50, 200};
  int samples = 15;
  std::string network = "unknown";
  std::string json = "-";
};

/// The products of one cycle, and the matrices, if they are ours.
struct Cycle {
  std::vector<std::function<void()>> products;
  std::vector<RCP<NodeAwareCrsMatrix<>>> matrices;
};

struct Variant {
  std::string name;
  std::function<Cycle()> setUp;
  std::vector<std::vector<double>> seconds;  // by count of cycles: of each sample
  std::vector<double> setUpSeconds;
};

struct Operator {
  RCP<const Matrix> matrix;
  RCP<MultiVector> x, y;
};

RCP<const Matrix> withIsend(const Matrix& matrix) {
  const auto graph = matrix.getCrsGraph();
  const auto parameters = Teuchos::parameterList();
  parameters->set("Send type", "Isend");
  const auto import = rcp(new Tpetra::Import<>(graph->getDomainMap(), graph->getColMap(), parameters));
  return rcp(new Matrix(matrix.getLocalMatrixDevice(), graph->getRowMap(), graph->getColMap(), graph->getDomainMap(),
                        graph->getRangeMap(), import, graph->getExporter()));
}

std::vector<Operator> operatorsOf(const Options& options, const Problem& problem) {
  std::vector<RCP<const Matrix>> matrices{problem.matrix};
  if (options.hierarchy) {
    Teuchos::ParameterList muelu;
    muelu.set("coarse: max size", options.coarseSize);
    makePreconditioner("muelu", problem, examine(*problem.matrix), problem.matrix, muelu, {},
                       [&](int level, const std::string&, const Matrix& matrix) {
                         if (level > 0) {
                           matrices.push_back(rcp(new Matrix(matrix)));
                         }
                       });
  }
  std::vector<Operator> operators;
  for (const RCP<const Matrix>& matrix : matrices) {
    if (!matrix->getCrsGraph()->getImporter().is_null()) {
      operators.push_back(
          {matrix, rcp(new MultiVector(matrix->getDomainMap(), 1)), rcp(new MultiVector(matrix->getRangeMap(), 1))});
      operators.back().x->randomize();
    }
  }
  return operators;
}

std::vector<RCP<const Matrix>> matricesOf(const std::vector<Operator>& operators) {
  std::vector<RCP<const Matrix>> matrices;
  for (const Operator& one : operators) {
    matrices.push_back(one.matrix);
  }
  return matrices;
}

class WholeRuns {
 public:
  WholeRuns(const Options& options, std::vector<Operator> operators, MPI_Comm comm)
      : options_(options),
        operators_(std::move(operators)),
        comm_(comm),
        nodes_(Impl::detectedTopology(*Impl::PrivateComm::of(comm))) {
    addTpetra("Tpetra", [](const RCP<const Matrix>& matrix) { return matrix; });
    addTpetra("Tpetra, Isend", [](const RCP<const Matrix>& matrix) { return withIsend(*matrix); });
    ExchangeOptions persistent;
    persistent.route = RouteChoice::standard;
    persistent.intraNode = IntraNode::messages;
    addOurs("standard, persistent", persistent);
    addOurs("komvos", {}, true);
    if (options.routes) {
      for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep, RouteChoice::twoStep,
                                       RouteChoice::split, RouteChoice::axis}) {
        ExchangeOptions fixed;
        fixed.route = route;
        fixed.intraNode = IntraNode::sharedMemory;
        addOurs(toString(route) + ", shared memory", fixed);
      }
    }
  }

  void run() {
    for (int sample = -1; sample < options_.samples; ++sample) {  // the first one only warms up
      for (std::size_t i = 0; i < variants_.size(); ++i) {
        measure(variants_[(i + sample + 1) % variants_.size()], sample >= 0);
      }
    }
  }

  Json results() const;
  void print() const;

 private:
  template <class Make>
  void addTpetra(const std::string& name, const Make& make) {
    Cycle cycle;
    for (const Operator& one : operators_) {
      cycle.products.push_back([matrix = make(one.matrix), one] { matrix->apply(*one.x, *one.y); });
    }
    variants_.push_back({name, [cycle] { return cycle; }, {}, {}});
  }
  /// \param calibrates measures what messages cost each time, as the first halo of a run does
  void addOurs(const std::string& name, ExchangeOptions options, bool calibrates = false) {
    options.reuseDecisions = false;
    variants_.push_back({name,
                         [this, options, calibrates] {
                           if (calibrates && nodes_->numNodes() > 1) {
                             double spent = 0;
                             Impl::measureMessageCosts(*Impl::PrivateComm::of(comm_), *nodes_, spent);
                           }
                           Cycle cycle;
                           cycle.matrices = NodeAwareCrsMatrix<>::several(comm_, matricesOf(operators_), options);
                           for (std::size_t i = 0; i < operators_.size(); ++i) {
                             cycle.products.push_back([matrix = cycle.matrices[i], one = operators_[i]] {
                               matrix->apply(*one.x, *one.y);
                             });
                           }
                           return cycle;
                         },
                         {},
                         {}});
  }
  void measure(Variant& variant, bool counts);
  std::vector<double> ratiosTo(const Variant& variant, const std::string& name, std::size_t checkpoint) const;

  const Options& options_;
  std::vector<Operator> operators_;
  MPI_Comm comm_;
  std::shared_ptr<const NodeTopology> nodes_;
  std::vector<Variant> variants_;
  std::string trials_;  // of the last run that was tuned
};

void WholeRuns::measure(Variant& variant, bool counts) {
  mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
  const double start = MPI_Wtime();
  const Cycle cycle = variant.setUp();
  std::vector<double> seconds{MPI_Wtime() - start};
  int done = 0;
  for (const int upTo : options_.cycles) {
    for (; done < upTo; ++done) {
      for (const auto& product : cycle.products) {
        product();
      }
      double number = done, sum = 0;
      mpiCheck(MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM, comm_), "MPI_Allreduce");
    }
    seconds.push_back(MPI_Wtime() - start);
  }
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX, comm_),
           "MPI_Allreduce");
  if (variant.name == "komvos") {
    trials_.clear();
    for (const auto& matrix : cycle.matrices) {
      trials_ += describe(matrix->importHalo()->report());
    }
  }
  if (counts) {
    variant.setUpSeconds.push_back(seconds.front());
    variant.seconds.resize(options_.cycles.size());
    for (std::size_t i = 0; i < options_.cycles.size(); ++i) {
      variant.seconds[i].push_back(seconds[i + 1]);
    }
  }
}

std::vector<double> WholeRuns::ratiosTo(const Variant& variant, const std::string& name, std::size_t checkpoint) const {
  const Variant& other =
      *std::find_if(variants_.begin(), variants_.end(), [&](const Variant& one) { return one.name == name; });
  return Impl::ratios(variant.seconds[checkpoint], other.seconds[checkpoint]);
}

Json WholeRuns::results() const {
  Json json = Json::array();
  for (const Variant& variant : variants_) {
    Json times = Json::array();
    for (std::size_t i = 0; i < options_.cycles.size(); ++i) {
      times.push_back({{"cycles", options_.cycles[i]},
                       {"seconds", Impl::median(variant.seconds[i])},
                       {"lower_quartile", Impl::quantile(variant.seconds[i], 0.25)},
                       {"upper_quartile", Impl::quantile(variant.seconds[i], 0.75)},
                       {"of_tpetra", Impl::median(ratiosTo(variant, "Tpetra", i))},
                       {"of_isend", Impl::median(ratiosTo(variant, "Tpetra, Isend", i))},
                       {"of_persistent", Impl::median(ratiosTo(variant, "standard, persistent", i))}});
    }
    json.push_back(
        {{"variant", variant.name}, {"set_up_seconds", Impl::median(variant.setUpSeconds)}, {"times", times}});
  }
  return json;
}

void WholeRuns::print() const {
  for (const Json& variant : results()) {
    std::cout << format("  %-28s set-up %7.2f ms", variant["variant"].get<std::string>().c_str(),
                        1e3 * variant["set_up_seconds"].get<double>());
    for (const Json& time : variant["times"]) {
      std::cout << format("   %d: %8.2f ms (%.2f)", time["cycles"].get<int>(), 1e3 * time["seconds"].get<double>(),
                          time["of_persistent"].get<double>());
    }
    std::cout << "\n";
  }
  std::cout << trials_;
  std::cout << std::flush;
}

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  const MPI_Comm mpi = Tpetra::Details::extractMpiCommFromTeuchos(*comm);
  const Problem problem = loadProblem(options.problem, comm);
  std::vector<Operator> operators = operatorsOf(options, problem);
  Json report{{"benchmark", "whole runs"},
              {"commit", KOMVOS_COMMIT},
              {"problem", problem.name},
              {"operators", operators.size()},
              {"rows", problem.matrix->getGlobalNumRows()},
              {"entries", problem.matrix->getGlobalNumEntries()},
              {"ranks", comm->getSize()},
              {"network", options.network},
              {"samples", options.samples},
              {"processor", Impl::processorName()},
              {"mpi", Impl::mpiLibraryName()}};
  if (operators.empty()) {
    throw BadInput("no operator has a halo: nothing to compare");
  }
  WholeRuns runs(options, std::move(operators), mpi);
  runs.run();
  report["results"] = runs.results();
  if (comm->getRank() == 0) {
    std::cout << problem.name << ", " << report["operators"] << " operators, " << comm->getSize() << " ranks\n";
    runs.print();
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
  CLI::App app("Times set-up together with a number of products");
  addProblemOptions(app, options.problem);
  app.add_flag("--hierarchy", options.hierarchy, "also the operators of MueLu's hierarchy, one after the other");
  app.add_option("--coarse-size", options.coarseSize)->check(CLI::PositiveNumber);
  app.add_flag("--routes", options.routes, "also each route by itself");
  app.add_option("--cycles", options.cycles, "ascending")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--network", options.network, "for the report");
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    checkProblemOptions(app, options.problem);
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "whole_runs: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
