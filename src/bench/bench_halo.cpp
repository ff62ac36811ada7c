#include "bench/bench_halo.hpp"

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "Komvos_Error.hpp"
#include "Komvos_MachineFile.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_RouteCandidates.hpp"
#include "Komvos_SystemInfo.hpp"
#include "bench/halo_bench.hpp"
#include "bench/halo_report.hpp"
#include "commit.hpp"
#include "problem/partition.hpp"
#include "problem/preconditioner.hpp"
#include "problem/problem.hpp"
#include "support/output_file.hpp"
#include "support/placement.hpp"
#include "support/progress_line.hpp"
#include "support/report_output.hpp"
#include "support/run_collectively.hpp"

// How this works. runBenchHalo() turns the command line into HaloBenchSettings, loads the problem, and hands each
// operator that has a halo to timeHalo() (halo_bench). What it measured is formatted by toText() and toJson()
// (halo_report); rank 0 prints and writes.
namespace Komvos::Program {

namespace {

using Json = nlohmann::ordered_json;
using Teuchos::RCP;
using Teuchos::rcp;

const char* const footer =
    "Times each halo by Tpetra as it comes, Tpetra with Isend and persistent requests along the standard route (the\n"
    "baselines), by every route of Komvos with messages and with shared memory on the nodes, and as the tuner decides\n"
    "(auto). A sample is a few exchanges in a row after a barrier, its time the maximum over ranks; every sample runs\n"
    "all variants, in an order that rotates. Gains are medians of ratios within a sample, over the fastest baseline.";

/// The matrix, and with --hierarchy the operators of every level below.
std::vector<std::pair<std::string, RCP<const Matrix>>> operators(const BenchHaloOptions& options,
                                                                 const Problem& problem) {
  std::vector<std::pair<std::string, RCP<const Matrix>>> result{{"level 0 A", problem.matrix}};
  if (options.hierarchy) {
    Teuchos::ParameterList muelu;
    muelu.set("coarse: max size", options.coarseSize);
    const ExchangeOptions nobodyApplies{};
    makePreconditioner("muelu", problem, examine(*problem.matrix), problem.matrix, muelu, nobodyApplies,
                       [&](int level, const std::string& name, const Matrix& matrix) {
                         if (level > 0) {
                           result.emplace_back("level " + std::to_string(level) + " " + name, rcp(new Matrix(matrix)));
                         }
                       });
  }
  return result;
}

/// Route and intra-node communication are left open: each variant has its own. \note Collective.
ExchangeOptions exchangeOptions(const BenchHaloOptions& options, MPI_Comm comm) {
  const Placement placement = placementOf(comm, options.ranksPerNode, options.ranksPerSocket);
  ExchangeOptions exchange;
  exchange.tuning = Tuning::exhaustive;
  exchange.reuseDecisions = false;  // what measuring costs is part of the report
  exchange.topology = placement.nodes;
  exchange.sockets = placement.sockets;
  if (!options.pairing.empty()) {
    exchange.pairing = parsePairing(options.pairing);
  }
  if (!options.machine.empty()) {
    exchange.machine = std::make_shared<const MachineModel>(machineByNameOrFile(comm, options.machine));
  }
  return exchange;
}

/// Those asked for, or all that differ from each other on these nodes.
std::vector<RouteChoice> routesToTime(const BenchHaloOptions& options, const ExchangeOptions& exchange) {
  std::vector<RouteChoice> routes;
  for (const std::string& text : options.routes) {
    routes.push_back(parseRoute(text));
  }
  return options.routes.empty() ? Impl::combiningRoutes(*exchange.topology, exchange.sockets.get()) : routes;
}

Json reportHead(const BenchHaloOptions& options, const std::string& problem, const NodeTopology& nodes) {
  return {{"benchmark", "halo"},
          {"komvos_version", KOMVOS_VERSION},
          {"commit", KOMVOS_COMMIT},
          {"problem", problem},
          {"timed", options.product ? "matrix-vector product" : "halo exchange"},
          {"machine",
           {{"topology", nodes.describe()},
            {"network", options.network},
            {"processor", Impl::processorName()},
            {"mpi", Impl::mpiLibraryName()}}},
          {"parameters",
           {{"samples", options.samples},
            {"repeats_per_sample", options.repeats},
            {"ranks", nodes.numRanks()},
            {"nodes", nodes.numNodes()},
            {"partition", options.partition},
            {"pairing", options.pairing.empty() ? "default" : options.pairing}}},
          {"results", Json::array()}};
}

/// Times the halos of all operators, and prints each table as soon as it is there.
/// \param out null where nothing is to be printed
/// \return "results" of the report \note Collective.
Json timeOperators(const BenchHaloOptions& options, const Problem& problem, const HaloBenchSettings& settings,
                   std::ostream* out) {
  Json results = Json::array();
  for (const auto& [name, matrix] : operators(options, problem)) {
    if (matrix->getCrsGraph()->getImporter().is_null()) {
      if (out != nullptr) {
        *out << name << ": no halo, each rank has what it needs\n";
      }
      continue;
    }
    StatusLine status(out != nullptr && isInteractive());
    const HaloTimes times = timeHalo(name, matrix, settings, status);
    status.clear();
    results.push_back(toJson(times));
    if (out != nullptr) {
      *out << toText(times) << std::flush;
    }
  }
  return results;
}

void writeReport(const Json& report, const std::string& path) {
  const std::string text = report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (path == "-") {
    writeToStdout(text);
  } else if (!path.empty()) {
    OutputFile file(path);
    file.stream() << text;
    file.commit();
  }
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
      ->check(CLI::Range(1, 1 << 24));
  halo.add_option_function<std::string>(
          "--routes", [&options](const std::string& text) { options.routes = splitRoutes(text); },
          "only these, as in `komvos solve --route`")
      ->type_name("ROUTE,ROUTE,...");
  halo.add_option("--pairing", options.pairing, "which ranks carry what crosses nodes (default by-volume)")
      ->check(CLI::IsMember({"by-volume", "least-loaded", "majority"}));
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
  const bool jsonOnStdout = options.jsonFile == "-";
  HaloBenchSettings settings;
  settings.product = options.product;
  settings.samples = options.samples;
  settings.repeats = options.repeats;
  settings.exchange = exchangeOptions(options, mpi);
  settings.routes = routesToTime(options, settings.exchange);
  requireWritable({options.jsonFile}, {options.matrixFile}, mpi);
  keepStdoutFor(options.jsonFile);
  Problem problem = loadProblem(options, comm);
  partition(problem, options.partition);
  Json report = reportHead(options, problem.name, *settings.exchange.topology);
  std::ostream* out = jsonOnStdout ? &std::cerr : &std::cout;
  if (comm->getRank() != 0 || options.quiet) {
    out = nullptr;
  } else {
    *out << problem.name << "; " << settings.exchange.topology->describe() << "; " << report["timed"].get<std::string>()
         << "; medians of " << options.samples << " samples of " << options.repeats << "; b: baseline\n";
  }
  report["results"] = timeOperators(options, problem, settings, out);
  onRankZero(mpi, [&] { writeReport(report, options.jsonFile); });
  return ExitCode::converged;
}

}  // namespace Komvos::Program
