// What does a matrix-vector product take, whole, against Tpetra, PETSc and the time to read its bytes?
#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_OverlapChoice.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "problem/partition.hpp"
#include "problem/problem.hpp"
#include "stream_read.hpp"
#include "support/text_format.hpp"
#ifdef KOMVOS_HAVE_PETSC
#include "petsc_product.hpp"
#endif

// How this works. For each width, all variants are made, their results compared with Tpetra's, and timed in turn: a
// sample runs each of them a few times after a barrier, in an order that is drawn anew; its time is the maximum over
// ranks. "read" is not a product: each rank adds up as many bytes as a product must read and write at the least.
namespace {

using namespace Komvos::Program;
using namespace Komvos;
using Json = nlohmann::ordered_json;
using Space = DefaultNode::execution_space;
using Teuchos::RCP;
using Teuchos::rcp;

struct Options {
  ProblemOptions problem;
  std::string numbering = "natural";
  std::vector<int> columns = {1, 2, 3, 4, 8};
  bool transposed = false;
  int samples = 30;
  std::string json = "-";
};

const std::string tunedBefore = "komvos, tuned before";

struct Variant {
  std::string name;
  std::function<void()> run;
  std::function<void(MultiVector&)> result;  // empty: not a product
  std::vector<double> seconds;
};

/// The rows of each rank in another, random order; those of a node stay together.
RCP<Matrix> shuffled(const RCP<Matrix>& matrix, int dofsPerNode) {
  const auto rows = matrix->getRowMap();
  const std::size_t nodes = Impl::localLength(*rows) / dofsPerNode;
  std::vector<std::size_t> order(nodes);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = nodes; i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>((hashedValue(7, i) + 1) / 2 * i)]);
  }
  std::vector<DefaultGlobalOrdinal> indices;
  for (const std::size_t node : order) {
    for (int d = 0; d < dofsPerNode; ++d) {
      indices.push_back(rows->getGlobalElement(static_cast<DefaultLocalOrdinal>(node * dofsPerNode + d)));
    }
  }
  const auto map = rcp(new Map(rows->getGlobalNumElements(), Teuchos::ArrayView<const DefaultGlobalOrdinal>(indices), 0,
                               rows->getComm()));
  return Tpetra::importAndFillCompleteCrsMatrix<Matrix>(matrix, Tpetra::Import<>(rows, map), map, map);
}

RCP<Matrix> withIsend(const Matrix& matrix) {
  const auto graph = matrix.getCrsGraph();
  if (graph->getImporter().is_null()) {
    return rcp(new Matrix(matrix));
  }
  const auto parameters = Teuchos::parameterList();
  parameters->set("Send type", "Isend");
  const auto import = rcp(new Tpetra::Import<>(graph->getDomainMap(), graph->getColMap(), parameters));
  return rcp(new Matrix(matrix.getLocalMatrixDevice(), graph->getRowMap(), graph->getColMap(), graph->getDomainMap(),
                        graph->getRangeMap(), import, graph->getExporter()));
}

class ProductBench {
 public:
  ProductBench(const RCP<Matrix>& matrix, int columns, int samples, bool transposed)
      : matrix_(matrix),
        samples_(samples),
        mode_(transposed ? Teuchos::TRANS : Teuchos::NO_TRANS),
        comm_(Tpetra::Details::extractMpiCommFromTeuchos(*matrix->getComm())),
        x_(rcp(new MultiVector(matrix->getDomainMap(), columns))),
        y_(rcp(new MultiVector(matrix->getRangeMap(), columns))) {
    x_->randomize();
    addTpetra("tpetra", rcp(new Matrix(*matrix)));
    addTpetra("tpetra-isend", withIsend(*matrix));
#ifdef KOMVOS_HAVE_PETSC
    if (!transposed || columns == 1) {
      const auto petsc = std::make_shared<PetscProduct>(*matrix, *x_, transposed);
      variants_.push_back(
          {"petsc", [petsc] { petsc->apply(); }, [petsc](MultiVector& y) { petsc->copyResult(y); }, {}});
    }
#endif
    addOurs("komvos", {});  // as a user gets it
    for (const Overlap overlap : {Overlap::automatic, Overlap::none, Overlap::interior, Overlap::byNode}) {
      ExchangeOptions options;
      options.overlap = overlap;
      options.tuning = Tuning::exhaustive;  // decided before the first sample
      options.columns = columns;            // that find room in shared memory
      addOurs(overlap == Overlap::automatic ? tunedBefore : "komvos, overlap " + toString(overlap), options);
    }
    addRead();
  }

  Json run();

 private:
  void addTpetra(const std::string& name, const RCP<Matrix>& matrix) {
    variants_.push_back({name,
                         [this, matrix] { matrix->apply(*x_, *y_, mode_); },
                         [this](MultiVector& y) { Tpetra::deep_copy(y, *y_); },
                         {}});
  }
  /// The route is the standard one: on one node there is no other.
  void addOurs(const std::string& name, const ExchangeOptions& options) {
    const auto matrix = rcp(new NodeAwareCrsMatrix<>(*matrix_, options));
    bytes_ = matrix->leastProductBytes(static_cast<int>(x_->getNumVectors()));
    chosen_.push_back(matrix);
    addTpetra(name, matrix);
  }
  void addRead() {
    read_ = std::make_unique<Perf::StreamRead<Space>>(static_cast<std::int64_t>(bytes_));
    variants_.push_back({"read", [this] { read_->run(static_cast<std::int64_t>(bytes_)); }, {}, {}});
  }
  double maximum(double mine) const {
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, comm_), "MPI_Allreduce");
    return mine;
  }
  void requireSameResults();

  RCP<Matrix> matrix_;
  int samples_;
  Teuchos::ETransp mode_;
  MPI_Comm comm_;
  RCP<MultiVector> x_, y_;
  std::vector<Variant> variants_;
  std::vector<RCP<NodeAwareCrsMatrix<>>> chosen_;
  std::size_t bytes_ = 0;
  std::unique_ptr<Perf::StreamRead<Space>> read_;
};

/// A benchmark of something else would be worse than none. Also warms up, and lets each matrix decide on its overlap,
/// and the one that is tuned online on its exchange.
void ProductBench::requireSameResults() {
  MultiVector expected(y_->getMap(), y_->getNumVectors());
  MultiVector found(y_->getMap(), y_->getNumVectors());
  matrix_->apply(*x_, expected, mode_);
  Teuchos::Array<double> size(y_->getNumVectors()), error(y_->getNumVectors());
  expected.normInf(size());
  for (const Variant& variant : variants_) {
    const int forExchange = 60;
    const int runs = variant.name == "komvos"      ? forExchange + Impl::OverlapChoice::mostProducts
                     : variant.name == tunedBefore ? Impl::OverlapChoice::mostProducts
                                                   : 3;
    for (int k = 0; k < runs; ++k) {
      variant.run();
    }
    if (!variant.result) {
      continue;
    }
    variant.result(found);
    found.update(-1, expected, 1);
    found.normInf(error());
    for (int j = 0; j < size.size(); ++j) {
      if (!(error[j] <= 1e-13 * size[j])) {
        throw Error(variant.name + " is wrong: column " + std::to_string(j) + " is off by " + std::to_string(error[j]));
      }
    }
  }
}

Json ProductBench::run() {
  requireSameResults();
  const double enough = 2e6;  // entries in a row, so that a sample is not too short to be timed
  const auto entries = static_cast<double>(Impl::localEntries(*matrix_) * x_->getNumVectors());
  const int repeats = static_cast<int>(maximum(std::max(1.0, std::ceil(enough / std::max(1.0, entries)))));
  std::vector<std::size_t> order(variants_.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);  // the same on all ranks
  for (int sample = 0; sample < samples_; ++sample) {
    // Anew each time, and each once before it is timed: who runs after a variant that reads the same values finds them
    // in the caches, and PETSc has values of its own.
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      Variant& variant = variants_[i];
      variant.run();
      Space().fence();
      mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
      const double start = MPI_Wtime();
      for (int k = 0; k < repeats; ++k) {
        variant.run();
      }
      Space().fence();
      variant.seconds.push_back(maximum((MPI_Wtime() - start) / repeats));
    }
  }
  Json result{{"columns", x_->getNumVectors()},
              {"repeats_per_sample", repeats},
              {"least_bytes", static_cast<long long>(maximum(static_cast<double>(bytes_)))},
              {"overlap", toString(chosen_.front()->overlap(static_cast<int>(x_->getNumVectors())))},
              {"variants", Json::array()}};
  const Variant& komvos = *std::find_if(variants_.begin(), variants_.end(),
                                        [](const Variant& variant) { return variant.name == "komvos"; });
  for (const Variant& variant : variants_) {
    result["komvos_of"][variant.name] = Impl::median(Impl::ratios(komvos.seconds, variant.seconds));
    const auto ratio = Impl::ratios(variant.seconds, variants_.front().seconds);
    result["variants"].push_back({{"name", variant.name},
                                  {"seconds", Impl::median(variant.seconds)},
                                  {"lower_quartile", Impl::quantile(variant.seconds, 0.25)},
                                  {"upper_quartile", Impl::quantile(variant.seconds, 0.75)},
                                  {"of_tpetra", Impl::median(ratio)}});
  }
  return result;
}

void print(const Json& result) {
  std::cout << format("  %d columns, overlap %s\n", result["columns"].get<int>(),
                      result["overlap"].get<std::string>().c_str());
  for (const Json& variant : result["variants"]) {
    std::cout << format("    %-24s %10.1f us   %5.2f of Tpetra   %6.1f GB/s\n",
                        variant["name"].get<std::string>().c_str(), 1e6 * variant["seconds"].get<double>(),
                        variant["of_tpetra"].get<double>(),
                        1e-9 * result["least_bytes"].get<double>() / variant["seconds"].get<double>());
  }
  std::cout << std::flush;
}

RCP<Matrix> loadMatrix(const Options& options, const CommPtr& comm, std::string& name) {
  Problem problem = loadProblem(options.problem, comm);
  name = problem.name;
  if (options.numbering == "graph") {
    partition(problem, "graph");
  }
  return options.numbering == "random" ? shuffled(problem.matrix, problem.dofsPerNode) : problem.matrix;
}

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  std::string name;
  const RCP<Matrix> matrix = loadMatrix(options, comm, name);
  Json report{{"benchmark", "products"},
              {"commit", KOMVOS_COMMIT},
              {"problem", name},
              {"numbering", options.numbering},
              {"transposed", options.transposed},
              {"ranks", comm->getSize()},
              {"rows", matrix->getGlobalNumRows()},
              {"entries", matrix->getGlobalNumEntries()},
              {"order", "drawn anew in each sample"},
              {"samples", options.samples},
              {"processor", Impl::processorName()},
              {"mpi", Impl::mpiLibraryName()},
              {"results", Json::array()}};
  const bool root = comm->getRank() == 0;
  if (root) {
    std::cout << name << ", " << options.numbering << ", " << comm->getSize() << " ranks, " << report["rows"]
              << " rows, " << report["entries"] << " entries\n";
  }
  for (const int columns : options.columns) {
    const Json result = ProductBench(matrix, columns, options.samples, options.transposed).run();
    if (root) {
      print(result);
    }
    report["results"].push_back(result);
  }
  if (root && options.json != "-") {
    std::ofstream file(options.json);
    file << report.dump(1) << "\n" << std::flush;
    throwOnAllIfAny(MPI_COMM_SELF, file.good() ? "" : "cannot write " + options.json);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  Options options;
  CLI::App app("Times matrix-vector products");
  addProblemOptions(app, options.problem);
  app.add_option("--numbering", options.numbering)->check(CLI::IsMember({"natural", "graph", "random"}));
  app.add_option("--columns", options.columns)->delimiter(',')->check(CLI::PositiveNumber);
  app.add_flag("--transposed", options.transposed, "times products with the transposed matrix; PETSc has one column");
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    checkProblemOptions(app, options.problem);
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "products: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
