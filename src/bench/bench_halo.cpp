#include "bench/bench_halo.hpp"

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "Komvos_Error.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "problem/partition.hpp"
#include "problem/preconditioner.hpp"
#include "problem/problem.hpp"
#include "support/output_file.hpp"
#include "support/placement.hpp"
#include "support/progress_line.hpp"
#include "support/run_collectively.hpp"
#include "support/text_format.hpp"
#include "support/traffic_json.hpp"

namespace Komvos::Program {

namespace {

using Json = nlohmann::ordered_json;
using Teuchos::RCP;
using Teuchos::rcp;
using Import = Tpetra::Import<>;

const char* const footer =
    "Times each halo by Tpetra as it comes, Tpetra with Isend and persistent requests along the standard route (the\n"
    "baselines), by every route of Komvos with messages and with shared memory on the nodes, and as the tuner decides\n"
    "(auto). A sample is a few exchanges in a row after a barrier, its time the maximum over ranks; every sample runs\n"
    "all variants, in an order that rotates. Gains are medians of ratios within a sample, over the fastest baseline.";

/// A variant to bring the ghosts, or to multiply.
struct Variant {
  std::string name;
  bool isBaseline;
  std::function<void()> run;
  const NodeAwareImport<>* halo;  // null for Tpetra's
  double makingSeconds = 0;       // of its exchange, once it is planned
  std::vector<double> seconds{};  // of one exchange, one a sample
  long memoryBytes = 0;           // of its exchange, the most on any rank

  const HaloReport* report() const { return halo != nullptr ? &halo->report() : nullptr; }
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

Json summary(const std::vector<double>& values) {
  return {{"median", median(values)},
          {"lower_quartile", quantile(values, 0.25)},
          {"upper_quartile", quantile(values, 0.75)}};
}

/// `of` / `to`, sample by sample.
std::vector<double> ratios(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> result;
  for (std::size_t s = 0; s < of.size(); ++s) {
    result.push_back(of[s] / to[s]);
  }
  return result;
}

RCP<const Import> withIsend(const Import& import) {
  const auto parameters = Teuchos::parameterList();
  parameters->set("Send type", "Isend");
  return rcp(new Import(import.getSourceMap(), import.getTargetMap(), parameters));
}

RCP<Matrix> withImport(const Matrix& matrix, const RCP<const Import>& import) {
  const auto graph = matrix.getCrsGraph();
  return rcp(new Matrix(matrix.getLocalMatrixDevice(), graph->getRowMap(), graph->getColMap(), graph->getDomainMap(),
                        graph->getRangeMap(), import, graph->getExporter()));
}

/// The halo of one matrix, and everything that is timed on it.
class HaloBench {
 public:
  HaloBench(std::string name, const RCP<const Matrix>& matrix, const BenchHaloOptions& options,
            const ExchangeOptions& exchange)
      : name_(std::move(name)), matrix_(matrix), options_(options), exchange_(exchange), comm_(matrix->getComm()) {
    import_ = matrix->getCrsGraph()->getImporter();
    x_ = rcp(new MultiVector(matrix->getDomainMap(), 1));
    y_ = rcp(new MultiVector(options.product ? matrix->getRangeMap() : matrix->getColMap(), 1));
    x_->randomize();
    // MueLu's P and R do not know it themselves.
    entries_ = static_cast<long long>(Impl::localEntries(*matrix));
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &entries_, 1, MPI_LONG_LONG, MPI_SUM, mpi()), "MPI_Allreduce");
    addTpetra("tpetra", import_);
    addTpetra("tpetra-isend", withIsend(*import_));
    addOurs("standard, persistent", RouteChoice::standard, IntraNode::messages, true);
    addOurs("standard, shared-memory", RouteChoice::standard, IntraNode::sharedMemory, false);
    for (const RouteChoice& route : routes()) {
      for (const IntraNode onNode : {IntraNode::messages, IntraNode::sharedMemory}) {
        addOurs(toString(route) + ", " + toString(onNode), route, onNode, false);
      }
    }
    addOurs("auto", RouteChoice::automatic, IntraNode::automatic, false);
  }

  void run(StatusLine& status) {
    const int warmUp = 3;
    for (int s = -warmUp; s < options_.samples; ++s) {
      status.show(name_ + format(": sample %d of %d", std::max(s, 0), options_.samples));
      for (std::size_t i = 0; i < variants_.size(); ++i) {
        Variant& variant = variants_[(i + s + warmUp) % variants_.size()];
        comm_->barrier();
        const double start = MPI_Wtime();
        for (int k = 0; k < options_.repeats; ++k) {
          variant.run();
        }
        double seconds = (MPI_Wtime() - start) / options_.repeats;
        mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, mpi()), "MPI_Allreduce");
        if (s >= 0) {
          variant.seconds.push_back(seconds);
        }
      }
    }
    for (Variant& variant : variants_) {
      variant.memoryBytes =
          variant.halo != nullptr ? static_cast<long>(variant.halo->exchange<double>().memoryBytes()) : 0;
      mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &variant.memoryBytes, 1, MPI_LONG, MPI_MAX, mpi()), "MPI_Allreduce");
    }
    best_ = 0;
    for (std::size_t i = 1; i < variants_.size(); ++i) {
      if (variants_[i].isBaseline && median(variants_[i].seconds) < median(variants_[best_].seconds)) {
        best_ = i;
      }
    }
  }

  std::string toText() const {
    const HaloReport& decided = *variants_.back().report();
    std::string text = format("%s: %lld rows, at most %ld neighbours; auto is %s, %s\n", name_.c_str(),
                              static_cast<long long>(matrix_->getGlobalNumRows()), decided.standard.max.neighbours,
                              decided.route.c_str(), toString(decided.intraNode).c_str());
    text +=
        "    variant                          us   quartiles           messages, bytes between nodes     gain   "
        "set-up: "
        "us, "
        "messages, bytes   pays after\n";
    for (const Variant& variant : variants_) {
      const std::string traffic = variant.halo != nullptr
                                      ? format("%8ld %12ld", variant.report()->chosen.total.interNodeMessages,
                                               bytes(variant.report()->chosen.total.interNodeValues))
                                      : format("%8ld %12ld", decided.standard.total.interNodeMessages,
                                               bytes(decided.standard.total.interNodeValues));
      text += format("  %s %-24s %8.1f   %8.1f %8.1f   %s   %8.2f   %s\n", variant.isBaseline ? "b" : " ",
                     variant.name.c_str(), 1e6 * median(variant.seconds), 1e6 * quantile(variant.seconds, 0.25),
                     1e6 * quantile(variant.seconds, 0.75), traffic.c_str(), gain(variant), setUp(variant).c_str());
    }
    return text;
  }

  Json toJson() const {
    Json json{{"name", name_},
              {"rows", matrix_->getGlobalNumRows()},
              {"entries", entries_},
              {"neighbours_max", variants_.back().report()->standard.max.neighbours},
              {"best_baseline", variants_[best_].name},
              {"variants", Json::array()}};
    for (const Variant& variant : variants_) {
      Json one{{"name", variant.name}, {"baseline", variant.isBaseline}, {"seconds", summary(variant.seconds)}};
      one["gain"] = summary(ratios(variants_[best_].seconds, variant.seconds));
      if (variant.halo != nullptr) {
        one["route"] = variant.report()->route;
        one["on_node"] = toString(variant.report()->intraNode);
        const HaloCandidate& made = chosenOf(*variant.report());
        one["set_up"] = {{"seconds", made.buildSeconds},
                         {"messages_max", made.buildMessages},
                         {"plan_bytes_max", made.planBytes},
                         {"exchange_bytes_max", variant.memoryBytes},
                         {"exchange_seconds", variant.makingSeconds},
                         {"seconds_with_tuning", variant.report()->setupSeconds}};
        one["traffic"] = trafficToJson(variant.report()->chosen);
      }
      json["variants"].push_back(one);
    }
    return json;
  }

 private:
  static const HaloCandidate& chosenOf(const HaloReport& report) {
    return *std::find_if(report.candidates.begin(), report.candidates.end(),
                         [](const HaloCandidate& one) { return one.rejectionReason.empty(); });
  }

  /// What making the plan cost, and how many exchanges win it back against the fastest baseline.
  std::string setUp(const Variant& variant) const {
    if (variant.halo == nullptr) {
      return "";
    }
    const HaloCandidate& made = chosenOf(*variant.report());
    const bool tuned = variant.name == "auto";
    const double cost = variant.makingSeconds + (tuned ? variant.report()->setupSeconds : made.buildSeconds);
    const double saved = median(variants_[best_].seconds) - median(variant.seconds);
    const std::string pays = variant.isBaseline ? ""
                             : saved > 0        ? format("%10.0f", std::ceil(cost / saved))
                                                : "     never";
    return format("%10.0f %8ld %9ld   ", 1e6 * cost, made.buildMessages, variant.memoryBytes) + pays;
  }

  MPI_Comm mpi() const { return Tpetra::Details::extractMpiCommFromTeuchos(*comm_); }
  double gain(const Variant& variant) const { return median(ratios(variants_[best_].seconds, variant.seconds)); }

  /// Those asked for, or all that are something else than another one on these nodes.
  std::vector<RouteChoice> routes() const {
    std::vector<RouteChoice> result;
    for (const std::string& text : options_.routes) {
      result.push_back(parseRoute(text));
    }
    const NodeTopology& nodes = *exchange_.topology;
    if (options_.routes.empty() && nodes.numNodes() > 1) {
      result = {RouteChoice::threeStep, RouteChoice::twoStep, RouteChoice::split};
      if (AxisFactors::fitting(nodes).c * nodes.numNodes() == nodes.numRanks()) {
        result.push_back(RouteChoice::axis);
      }
    }
    if (options_.routes.empty() && exchange_.sockets && exchange_.sockets->numNodes() > nodes.numNodes()) {
      result.push_back(RouteChoice::sockets);
    }
    return result;
  }

  void addTpetra(const std::string& name, const RCP<const Import>& import) {
    if (options_.product) {
      const RCP<const Matrix> matrix = withImport(*matrix_, import);
      variants_.push_back({name, true, [this, matrix] { matrix->apply(*x_, *y_); }, nullptr});
    } else {
      variants_.push_back({name, true, [this, import] { y_->doImport(*x_, *import, Tpetra::INSERT); }, nullptr});
    }
  }

  void addOurs(const std::string& name, const RouteChoice& route, IntraNode intraNode, bool isBaseline) {
    ExchangeOptions options = exchange_;
    options.route = route;
    options.intraNode = intraNode;
    if (options_.product) {
      const auto matrix = rcp(new NodeAwareCrsMatrix<>(*matrix_, options));
      variants_.push_back({name, isBaseline, [this, matrix] { matrix->apply(*x_, *y_); }, matrix->importHalo()});
    } else {
      const auto halo = std::make_shared<NodeAwareImport<>>(*import_, options);
      variants_.push_back({name, isBaseline, [this, halo] { halo->doImport(*x_, *y_, Tpetra::INSERT); }, halo.get()});
    }
    variants_.back().makingSeconds = makingTime(*variants_.back().halo);
  }

  /// Seconds for an exchange like that of `halo`, maximum over ranks; the first one also makes what all share.
  double makingTime(const NodeAwareImport<>& halo) const {
    const auto plan = std::make_shared<const ExchangePlan>(halo.plan());
    double seconds = 0;
    for (int time = 0; time < 2; ++time) {
      comm_->barrier();
      const double start = MPI_Wtime();
      const Exchange<double, NodeAwareImport<>::device_type> made(mpi(), plan, 1, halo.report().intraNode);
      seconds = MPI_Wtime() - start;
    }
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, mpi()), "MPI_Allreduce");
    return seconds;
  }

  std::string name_;
  RCP<const Matrix> matrix_;
  const BenchHaloOptions& options_;
  const ExchangeOptions& exchange_;
  CommPtr comm_;
  long long entries_ = 0;
  RCP<const Import> import_;
  RCP<MultiVector> x_, y_;
  std::vector<Variant> variants_;
  std::size_t best_ = 0;
};

/// The matrix, and with --hierarchy the operators of every level below.
std::vector<std::pair<std::string, RCP<const Matrix>>> operators(const BenchHaloOptions& options,
                                                                 const Problem& problem) {
  std::vector<std::pair<std::string, RCP<const Matrix>>> result{{"level 0 A", problem.matrix}};
  if (options.hierarchy) {
    Teuchos::ParameterList muelu;
    muelu.set("coarse: max size", options.coarseSize);
    const ExchangeOptions nobodyApplies;
    makePreconditioner("muelu", problem, examine(*problem.matrix), problem.matrix, muelu, nobodyApplies,
                       [&](int level, const std::string& name, const Matrix& matrix) {
                         if (level > 0) {
                           result.emplace_back("level " + std::to_string(level) + " " + name, rcp(new Matrix(matrix)));
                         }
                       });
  }
  return result;
}

ExchangeOptions resolve(const BenchHaloOptions& options, const CommPtr& comm) {
  const MPI_Comm mpi = Tpetra::Details::extractMpiCommFromTeuchos(*comm);
  ExchangeOptions exchange;
  const Placement placement = placementOf(mpi, options.ranksPerNode, options.ranksPerSocket);
  exchange.topology = placement.nodes;
  exchange.sockets = placement.sockets;
  if (!options.machine.empty()) {
    exchange.machine = std::make_shared<const MachineModel>(machineByNameOrFile(mpi, options.machine));
  }
  return exchange;
}

}  // namespace

CLI::App& addBenchHaloCommand(CLI::App& app, BenchHaloOptions& options) {
  CLI::App& bench = *app.add_subcommand("bench", "Measure on this cluster");
  bench.require_subcommand(1);
  CLI::App& halo = *bench.add_subcommand("halo", "Every route against Tpetra's variants, on the halos of a problem");
  halo.footer(footer);
  addProblemOptions(halo, options);
  halo.add_option("--ranks-per-node", options.ranksPerNode,
                  "ranks on each node, on each in turn, or a node for each rank; default: as MPI says")
      ->type_name("K|K,K,...|@FILE");
  halo.add_option("--ranks-per-socket", options.ranksPerSocket, "consecutive ranks on each socket; default: as bound")
      ->check(CLI::PositiveNumber);
  halo.add_option_function<std::string>(
          "--routes", [&options](const std::string& text) { options.routes = splitRoutes(text); },
          "only these, as in `komvos solve --route`")
      ->type_name("ROUTE,ROUTE,...");
  halo.add_option("--machine", options.machine, "for the tuner: blue-waters, or a file of `komvos calibrate`")
      ->type_name("NAME|FILE");
  halo.add_option("--partition", options.partition, "which rank owns which rows")
      ->check(CLI::IsMember({"contiguous", "strided", "graph"}));
  halo.add_flag("--hierarchy", options.hierarchy, "also A, P and R of every level of MueLu's hierarchy");
  halo.add_option("--coarse-size", options.coarseSize, "rows at which the hierarchy ends")->capture_default_str();
  halo.add_flag("--product", options.product, "time matrix-vector products, not exchanges alone");
  halo.add_option("--samples", options.samples)->capture_default_str()->check(CLI::Range(1, 1000000));
  halo.add_option("--repeats", options.repeats, "exchanges a sample")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  halo.add_option("--network", options.network, "words for the report");
  halo.add_option("--json", options.jsonFile, "write all times; - is stdout, the table then goes to stderr")
      ->type_name("FILE|-");
  halo.add_flag("--quiet", options.quiet, "no table");
  return halo;
}

void checkBenchHaloOptions(const CLI::App& command, BenchHaloOptions& options) {
  checkProblemOptions(command, options);
  for (const std::string& text : options.routes) {
    if (parseRoute(text).kind == RouteChoice::Kind::automatic) {
      throw BadInput("bench halo: --routes takes routes; auto is always run");
    }
  }
  if (options.coarseSize < 1) {
    throw BadInput("bench halo: --coarse-size must be at least 1");
  }
}

int runBenchHalo(const BenchHaloOptions& options) {
  const CommPtr comm = Tpetra::getDefaultComm();
  const MPI_Comm mpi = Tpetra::Details::extractMpiCommFromTeuchos(*comm);
  const bool speaks = comm->getRank() == 0;
  const bool jsonOnStdout = options.jsonFile == "-";
  const ExchangeOptions exchange = resolve(options, comm);
  if (!options.jsonFile.empty() && !jsonOnStdout) {
    onRankZero(mpi, [&] { OutputFile::checkWritable(options.jsonFile); });
  }
  Problem problem = loadProblem(options, comm);
  partition(problem, options.partition);
  Json report{{"benchmark", "halo"},
              {"komvos_version", KOMVOS_VERSION},
              {"commit", KOMVOS_COMMIT},
              {"problem", problem.name},
              {"timed", options.product ? "matrix-vector product" : "halo exchange"},
              {"machine",
               {{"topology", exchange.topology->describe()},
                {"network", options.network},
                {"processor", Impl::processorName()},
                {"mpi", Impl::mpiLibraryName()}}},
              {"parameters",
               {{"samples", options.samples},
                {"repeats_per_sample", options.repeats},
                {"ranks", comm->getSize()},
                {"nodes", exchange.topology->numNodes()},
                {"partition", options.partition}}},
              {"results", Json::array()}};
  std::ostream& out = jsonOnStdout ? std::cerr : std::cout;
  if (speaks && !options.quiet) {
    out << problem.name << "; " << exchange.topology->describe() << "; " << report["timed"].get<std::string>()
        << "; medians of " << options.samples << " samples of " << options.repeats << "; b: baseline\n";
  }
  for (const auto& [name, matrix] : operators(options, problem)) {
    if (matrix->getCrsGraph()->getImporter().is_null()) {
      if (speaks && !options.quiet) {
        out << name << ": no halo, each rank has what it needs\n";
      }
      continue;
    }
    HaloBench bench(name, matrix, options, exchange);
    {
      StatusLine status(speaks && !options.quiet && isInteractive());
      bench.run(status);
    }
    report["results"].push_back(bench.toJson());
    if (speaks && !options.quiet) {
      out << bench.toText() << std::flush;
    }
  }
  onRankZero(mpi, [&] {
    if (jsonOnStdout) {
      std::cout << report.dump(1) << std::endl;
    } else if (!options.jsonFile.empty()) {
      OutputFile file(options.jsonFile);
      file.stream() << report.dump(1) << "\n";
      file.commit();
    }
  });
  return ExitCode::converged;
}

}  // namespace Komvos::Program
