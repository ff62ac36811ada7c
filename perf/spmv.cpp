// How long does one sparse matrix-vector product take with each exchange?
//
// Four ways to multiply by the same matrix, in turn, in one run: Tpetra as it comes (blocking sends), Tpetra with
// Isend, our exchange along the standard route (persistent requests, overlapped), our exchange along three steps. A
// sample is the time of a few products in a row, maximum over ranks, after a barrier; every sample runs all four, in
// an order that rotates. Reported: medians, and medians of the ratios within a sample.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "Komvos_MueLuPreconditioner.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "generators.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Matrix = Tpetra::CrsMatrix<>;
using Vector = Tpetra::MultiVector<>;
using Komvos::Program::Problem;
using Teuchos::RCP;
using Teuchos::rcp;

struct Options {
  std::string ranksPerNode;  // empty: as MPI says
  std::string json = "-";
  std::string network = "as it is";
  std::vector<std::string> matrices{"elasticity3d", "random", "laplace3d"};
  std::vector<int> entries{25, 50, 100};
  int samples = 60;
  int products = 4;
  int elasticity = 20;
  int laplace = 40;
  int rowsPerRank = 1000;
};

struct Variant {
  std::string name;
  RCP<const Tpetra::Operator<>> matrix;
  std::vector<double> seconds;  // per product, one a sample
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * (values.size() - 1);
  const std::size_t below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - below) * (values[above] - values[below]);
}

/// The same matrix, with an Import that sends by MPI_Isend.
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

RCP<const Komvos::NodeAwareCrsMatrix<>> nodeAware(const Matrix& matrix, Komvos::RouteChoice route,
                                                  Komvos::OnNodeHops onNode, const Options& options) {
  Komvos::ExchangeOptions wishes;
  wishes.route = route;
  wishes.onNode = onNode;
  if (!options.ranksPerNode.empty()) {
    wishes.topology = std::make_shared<Komvos::NodeTopology>(
        Komvos::NodeTopology::parse(options.ranksPerNode, matrix.getComm()->getSize()));
  }
  return rcp(new Komvos::NodeAwareCrsMatrix<>(matrix, wishes));
}

/// The local part of a product, without an exchange.
class LocalProduct : public Tpetra::Operator<> {
 public:
  explicit LocalProduct(const Matrix& matrix) : matrix_(matrix), columns_(matrix.getColMap(), 1) {
    columns_.randomize();
  }
  Teuchos::RCP<const Tpetra::Map<>> getDomainMap() const override { return matrix_.getDomainMap(); }
  Teuchos::RCP<const Tpetra::Map<>> getRangeMap() const override { return matrix_.getRangeMap(); }
  void apply(const Vector&, Vector& y, Teuchos::ETransp, double alpha, double beta) const override {
    matrix_.localApply(columns_, y, Teuchos::NO_TRANS, alpha, beta);
  }

 private:
  const Matrix& matrix_;
  Vector columns_;
};

void sample(std::vector<Variant>& variants, const Matrix& matrix, const Options& options) {
  Vector x(matrix.getDomainMap(), 1);
  Vector y(matrix.getRangeMap(), 1);
  x.randomize();
  const int warmUp = 3;
  for (int s = -warmUp; s < options.samples; ++s) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      Variant& variant = variants[(i + s + warmUp) % variants.size()];
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int k = 0; k < options.products; ++k) {
        variant.matrix->apply(x, y);
      }
      double seconds = (MPI_Wtime() - start) / options.products;
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (s >= 0) {
        variant.seconds.push_back(seconds);
      }
    }
  }
}

Json summary(const std::vector<double>& values) {
  return {{"median", quantile(values, 0.5)},
          {"lower_quartile", quantile(values, 0.25)},
          {"upper_quartile", quantile(values, 0.75)}};
}

Json toJson(const Komvos::RankTraffic& max, const Komvos::RankTraffic& total) {
  return {{"neighbours_max", max.neighbours},
          {"inter_node",
           {{"messages_max", max.interNodeMessages},
            {"messages_total", total.interNodeMessages},
            {"bytes_max", 8 * max.interNodeValues},
            {"bytes_total", 8 * total.interNodeValues}}},
          {"on_node",
           {{"messages_max", max.onNodeMessages},
            {"messages_total", total.onNodeMessages},
            {"bytes_max", 8 * max.onNodeValues},
            {"bytes_total", 8 * total.onNodeValues}}}};
}

Json measure(const std::string& name, const Matrix& matrix, const Options& options) {
  using Komvos::OnNodeHops;
  using Komvos::RouteChoice;
  const auto standard = nodeAware(matrix, RouteChoice::standard, OnNodeHops::messages, options);
  const auto threeStep = nodeAware(matrix, RouteChoice::threeStep, OnNodeHops::messages, options);
  const auto shared = nodeAware(matrix, RouteChoice::threeStep, OnNodeHops::sharedMemory, options);
  std::vector<Variant> variants{{"tpetra", rcp(new Matrix(matrix)), {}},
                                {"tpetra-isend", withIsend(matrix), {}},
                                {"standard", standard, {}},
                                {"three-step", threeStep, {}},
                                {"three-step-shared", shared, {}}};
  sample(variants, matrix, options);
  // The floor: the same product when all ghosts are there already.
  std::vector<Variant> local{{"local", rcp(new LocalProduct(matrix)), {}}};
  sample(local, matrix, options);
  const std::vector<double>& ours = variants.back().seconds;
  Json result{{"name", name}, {"rows", matrix.getGlobalNumRows()}, {"entries", matrix.getGlobalNumEntries()}};
  Json times;
  Json ratios;
  std::size_t best = 0;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    times[variants[i].name] = summary(variants[i].seconds);
    if (i + 1 == variants.size()) {
      break;
    }
    std::vector<double> ratio;
    for (std::size_t s = 0; s < ours.size(); ++s) {
      ratio.push_back(variants[i].seconds[s] / ours[s]);
    }
    ratios[variants[i].name] = summary(ratio);
    if (quantile(variants[i].seconds, 0.5) < quantile(variants[best].seconds, 0.5)) {
      best = i;
    }
  }
  times["local_product_only"] = summary(local.front().seconds);
  result["seconds"] = times;
  result["ratio_to_three_step"] = ratios;
  result["best_baseline"] = variants[best].name;
  result["gain"] = ratios[variants[best].name]["median"];
  if (const auto* halo = threeStep->importHalo()) {
    result["standard"] = toJson(halo->report().standard.max, halo->report().standard.total);
    result["three_step"] = toJson(halo->report().chosen.max, halo->report().chosen.total);
    result["setup_seconds"] = {{"standard", standard->importHalo()->report().setupSeconds},
                               {"three_step", halo->report().setupSeconds}};
  }
  if (matrix.getComm()->getRank() == 0) {
    std::fprintf(stderr,
                 "%-28s %9lu rows  tpetra %8.1f  isend %8.1f  standard %8.1f  three-step %8.1f shared %8.1f (local %.1f) us   gain "
                 "%.2f over %s\n",
                 name.c_str(), static_cast<unsigned long>(matrix.getGlobalNumRows()),
                 1e6 * quantile(variants[0].seconds, 0.5), 1e6 * quantile(variants[1].seconds, 0.5),
                 1e6 * quantile(variants[2].seconds, 0.5), 1e6 * quantile(variants[3].seconds, 0.5), 1e6 * quantile(ours, 0.5),
                 1e6 * quantile(local.front().seconds, 0.5), result["gain"].get<double>(), variants[best].name.c_str());
  }
  return result;
}

Problem make(const std::string& name, long long size, int entriesPerRow = 0) {
  Komvos::Program::SolveOptions options;
  options.problem = name;
  options.size.assign(name == "random" ? 1 : 3, size);
  options.entriesPerRow = entriesPerRow;
  return Komvos::Program::generate(options, Tpetra::getDefaultComm());
}

Json measureAll(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  Json results = Json::array();
  const auto wanted = [&](const char* name) {
    return std::count(options.matrices.begin(), options.matrices.end(), name) > 0;
  };
  if (wanted("elasticity3d")) {
    const Problem problem = make("elasticity3d", options.elasticity);
    Teuchos::ParameterList parameters;
    parameters.set("coarse: max size", 100);
    std::vector<RCP<Matrix>> levels;
    Komvos::createMueLuPreconditioner(problem.matrix, parameters, problem.nullspace, problem.coordinates,
                                      [&](int, const std::string& name, const Matrix& matrix) {
                                        if (name == "A") {
                                          levels.push_back(rcp(new Matrix(matrix)));
                                        }
                                      });
    for (std::size_t level = 0; level < levels.size(); ++level) {
      results.push_back(measure("elasticity3d level " + std::to_string(level), *levels[level], options));
    }
  }
  for (const int entries : wanted("random") ? options.entries : std::vector<int>()) {
    const Problem problem = make("random", static_cast<long long>(options.rowsPerRank) * comm->getSize(), entries);
    results.push_back(measure("random " + std::to_string(entries) + " a row", *problem.matrix, options));
  }
  if (wanted("laplace3d")) {
    results.push_back(measure("laplace3d", *make("laplace3d", options.laplace).matrix, options));
  }
  return results;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown";
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  const auto comm = Tpetra::getDefaultComm();
  Options options;
  CLI::App app("Times one sparse matrix-vector product with each exchange");
  app.add_option("--ranks-per-node", options.ranksPerNode, "topology, instead of the one MPI reports");
  app.add_option("--json", options.json, "file for the results, - for standard output")->capture_default_str();
  app.add_option("--network", options.network, "words for the report");
  app.add_option("--matrices", options.matrices, "of elasticity3d (and the levels of its hierarchy), random, laplace3d")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--entries", options.entries, "a row, of the random matrices")->delimiter(',')->capture_default_str();
  app.add_option("--samples", options.samples)->capture_default_str()->check(CLI::Range(1, 100000));
  app.add_option("--products", options.products, "in a row, a sample")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--elasticity", options.elasticity, "grid points a direction")->capture_default_str();
  app.add_option("--laplace", options.laplace, "grid points a direction")->capture_default_str();
  app.add_option("--rows-per-rank", options.rowsPerRank, "of the random matrices")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return comm->getRank() == 0 ? app.exit(error) : error.get_exit_code();
  }
  const auto topology = options.ranksPerNode.empty()
                            ? Komvos::NodeTopology::detect(MPI_COMM_WORLD)
                            : Komvos::NodeTopology::parse(options.ranksPerNode, comm->getSize());
  Json report{
      {"benchmark", "spmv"},
      {"commit", KOMVOS_COMMIT},
      {"machine", {{"processor", processor()}, {"topology", topology.describe()}, {"network", options.network}}},
      {"parameters",
       {{"samples", options.samples},
        {"products_per_sample", options.products},
        {"ranks", comm->getSize()},
        {"nodes", topology.numNodes()}}}};
  try {
    report["results"] = measureAll(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perf_spmv: rank %d: %s\n", comm->getRank(), error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (comm->getRank() == 0) {
    if (options.json == "-") {
      std::cout << report.dump(1) << std::endl;
    } else {
      const std::string temporary = options.json + ".tmp";
      std::ofstream(temporary) << report.dump(1) << "\n";
      std::rename(temporary.c_str(), options.json.c_str());
    }
  }
  return 0;
}
