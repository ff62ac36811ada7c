// What does the assembly of a finite-element matrix take, the first time and again?
//
// Heat conduction on hexahedra, elements dealt out to ranks, rows of shared nodes summed: by RowTransfer from arrays,
// by Tpetra's doExport from a matrix over all nodes that a rank touches, and by Tpetra's FECrsMatrix. Times include the
// computation of element matrices, which is the same for all. run_row_transfer.py runs it.
#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Export.hpp>
#include <Tpetra_FECrsGraph.hpp>
#include <Tpetra_FECrsMatrix.hpp>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_RowTransfer.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "heat_conduction.hpp"
#include "support/text_format.hpp"

namespace {

using namespace Komvos;
using Json = nlohmann::ordered_json;
using Program::format;
using Teuchos::RCP;
using Teuchos::rcp;
using Matrix = Tpetra::CrsMatrix<>;
using GO = DefaultGlobalOrdinal;
using example::Slab;

struct Options {
  GO n = 40;
  int samples = 30;
  std::string json = "-";
};

/// One way to assemble.
class Assembly {
 public:
  virtual ~Assembly() = default;
  virtual void first(double time) = 0;
  virtual void again(double time) = 0;
  virtual const Matrix& matrix() const = 0;
};

class ByRowTransfer : public Assembly {
 public:
  explicit ByRowTransfer(const Slab& slab) : slab_(slab) {}
  void first(double time) override {
    owned_ = slab_.owned();
    arrays_ = std::make_unique<example::AssemblyArrays>(slab_, time);
    transfer_ = std::make_unique<RowTransfer<>>(Tpetra::Export<>(slab_.touched(), owned_));
    matrix_ = transfer_->transfer({arrays_->offset, arrays_->columns, arrays_->values}, Tpetra::ADD, owned_, owned_);
  }
  void again(double time) override {
    arrays_->fill(time);
    transfer_->transferValues({arrays_->offset, arrays_->columns, arrays_->values}, *matrix_);
  }
  const Matrix& matrix() const override { return *matrix_; }

 private:
  const Slab& slab_;
  RCP<const Tpetra::Map<>> owned_;
  std::unique_ptr<example::AssemblyArrays> arrays_;
  std::unique_ptr<RowTransfer<>> transfer_;
  RCP<Matrix> matrix_;
};

constexpr std::size_t entriesOfARow = 27;

/// Calls add(row, columns, values) with local indices of nodes.
template <class Add>
void forElementRows(const Slab& slab, double time, const Add& add) {
  const auto stiffness = example::cubeStiffness();
  for (std::size_t e = 0; e < slab.numElements(); ++e) {
    const auto nodes = slab.corners(e);
    const double k = slab.conductivity(e, time);
    for (std::size_t i = 0; i < 8; ++i) {
      double values[8];
      for (std::size_t j = 0; j < 8; ++j) {
        values[j] = k * stiffness[i][j];
      }
      add(nodes[i], nodes, values);
    }
  }
}

/// Graph of the nodes that a rank touches, with global columns.
void insertElements(const Slab& slab, Tpetra::CrsGraph<>& graph) {
  forElementRows(slab, 0, [&](int row, const std::array<int, 8>& nodes, const double*) {
    GO columns[8];
    for (std::size_t j = 0; j < 8; ++j) {
      columns[j] = slab.globalIndex(nodes[j]);
    }
    graph.insertGlobalIndices(slab.globalIndex(row), Teuchos::ArrayView<const GO>(columns, 8));
  });
}

void sumElements(const Slab& slab, double time, Matrix& matrix) {
  forElementRows(slab, time, [&](int row, const std::array<int, 8>& nodes, const double* values) {
    GO columns[8];
    for (std::size_t j = 0; j < 8; ++j) {
      columns[j] = slab.globalIndex(nodes[j]);
    }
    matrix.sumIntoGlobalValues(slab.globalIndex(row), Teuchos::ArrayView<const GO>(columns, 8),
                               Teuchos::ArrayView<const double>(values, 8));
  });
}

class ByExport : public Assembly {
 public:
  explicit ByExport(const Slab& slab) : slab_(slab) {}
  void first(double time) override {
    const auto touched = slab_.touched();
    owned_ = slab_.owned();
    const auto graph = rcp(new Tpetra::CrsGraph<>(touched, entriesOfARow));
    insertElements(slab_, *graph);
    graph->fillComplete(owned_, owned_);
    exporter_ = rcp(new Tpetra::Export<>(touched, owned_));
    auto ownedGraph = rcp(new Tpetra::CrsGraph<>(owned_, entriesOfARow));
    ownedGraph->doExport(*graph, *exporter_, Tpetra::INSERT);
    ownedGraph->fillComplete(owned_, owned_);
    overlapping_ = rcp(new Matrix(graph));
    matrix_ = rcp(new Matrix(ownedGraph));
    again(time);
  }
  void again(double time) override {
    if (!overlapping_->isFillActive()) {
      overlapping_->resumeFill();
    }
    overlapping_->setAllToScalar(0);
    sumElements(slab_, time, *overlapping_);
    overlapping_->fillComplete(owned_, owned_);
    if (!matrix_->isFillActive()) {
      matrix_->resumeFill();
    }
    matrix_->setAllToScalar(0);
    matrix_->doExport(*overlapping_, *exporter_, Tpetra::ADD);
    matrix_->fillComplete(owned_, owned_);
  }
  const Matrix& matrix() const override { return *matrix_; }

 private:
  const Slab& slab_;
  RCP<const Tpetra::Map<>> owned_;
  RCP<Tpetra::Export<>> exporter_;
  RCP<Matrix> overlapping_, matrix_;
};

class ByFECrsMatrix : public Assembly {
 public:
  explicit ByFECrsMatrix(const Slab& slab) : slab_(slab) {}
  void first(double time) override {
    const auto owned = slab_.owned();
    const auto graph = rcp(new Tpetra::FECrsGraph<>(owned, slab_.touched(), entriesOfARow));
    graph->beginAssembly();
    insertElements(slab_, *graph);
    graph->endAssembly();
    matrix_ = rcp(new Tpetra::FECrsMatrix<>(graph));
    again(time);
  }
  void again(double time) override {
    matrix_->beginAssembly();
    matrix_->setAllToScalar(0);
    sumElements(slab_, time, *matrix_);
    matrix_->endAssembly();
  }
  const Matrix& matrix() const override { return *matrix_; }

 private:
  const Slab& slab_;
  RCP<Tpetra::FECrsMatrix<>> matrix_;
};

/// Largest difference of the products with a vector, relative.
double difference(const Matrix& A, const Matrix& B) {
  Tpetra::Vector<> x(A.getDomainMap()), y(A.getRangeMap()), z(B.getRangeMap());
  x.randomize();
  A.apply(x, y);
  B.apply(x, z);
  const double size = y.normInf();
  z.update(-1, y, 1);
  return z.normInf() / size;
}

struct Way {
  std::string name;
  std::unique_ptr<Assembly> assembly;
  std::vector<double> first = {}, second = {}, again = {};
};

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  const MPI_Comm mpi = Tpetra::Details::extractMpiCommFromTeuchos(*comm);
  const Slab slab(options.n, comm);
  std::vector<Way> ways(3);
  ways[0] = {"Tpetra, doExport", std::make_unique<ByExport>(slab)};
  ways[1] = {"Tpetra, FECrsMatrix", std::make_unique<ByFECrsMatrix>(slab)};
  ways[2] = {"Komvos, RowTransfer", std::make_unique<ByRowTransfer>(slab)};
  const auto timed = [&](const std::function<void()>& work) {
    mpiCheck(MPI_Barrier(mpi), "MPI_Barrier");
    double seconds = -MPI_Wtime();
    work();
    seconds += MPI_Wtime();
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, mpi), "MPI_Allreduce");
    return seconds;
  };
  double worst = 0;
  for (int sample = -1; sample < options.samples; ++sample) {  // one to warm up
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Way& way = ways[(i + static_cast<std::size_t>(sample + 1)) % ways.size()];
      const double first = timed([&] { way.assembly->first(sample); });
      const double second = timed([&] { way.assembly->again(0); });  // makes what is kept for values alone
      const double again = timed([&] { way.assembly->again(sample + 0.5); });
      if (sample >= 0) {
        way.first.push_back(first);
        way.second.push_back(second);
        way.again.push_back(again);
      }
    }
    for (const Way& way : ways) {
      worst = std::max(worst, difference(ways[0].assembly->matrix(), way.assembly->matrix()));
    }
  }
  throwOnAllIfAny(mpi, worst <= 1e-12 ? "" : "matrices differ by " + std::to_string(worst));
  Json results = Json::array();
  for (const Way& way : ways) {
    results.push_back({{"way", way.name},
                       {"first_seconds", Impl::median(way.first)},
                       {"second_seconds", Impl::median(way.second)},
                       {"again_seconds", Impl::median(way.again)},
                       {"first_of_export", Impl::median(Impl::ratios(way.first, ways[0].first))},
                       {"second_of_export", Impl::median(Impl::ratios(way.second, ways[0].second))},
                       {"again_of_export", Impl::median(Impl::ratios(way.again, ways[0].again))}});
  }
  const Json report{{"benchmark", "assembly of a finite-element matrix"},
                    {"commit", KOMVOS_COMMIT},
                    {"elements", options.n * options.n * options.n},
                    {"rows", ways[0].assembly->matrix().getGlobalNumRows()},
                    {"ranks", comm->getSize()},
                    {"threads", DefaultNode::execution_space().concurrency()},
                    {"samples", options.samples},
                    {"largest_difference", worst},
                    {"processor", Impl::processorName()},
                    {"mpi", Impl::mpiLibraryName()},
                    {"results", results}};
  if (comm->getRank() == 0) {
    for (const Json& one : results) {
      std::cout << format("  %-22s", one["way"].get<std::string>().c_str());
      for (const std::string which : {"first", "second", "again"}) {
        std::cout << format("  %s %8.1f ms (%.2f)", which.c_str(), 1e3 * one[which + "_seconds"].get<double>(),
                            one[which + "_of_export"].get<double>());
      }
      std::cout << "\n";
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
  CLI::App app("Times the assembly of a finite-element matrix");
  app.add_option("--n", options.n, "elements along each edge of a cube")->check(CLI::PositiveNumber);
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "assembly: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
