// What do node-aware exchanges gain in MueLu's V-cycles, their set-up included?
#include <CLI/CLI.hpp>
#include <MueLu_CreateTpetraPreconditioner.hpp>
#include <MueLu_Hierarchy.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Teuchos_TimeMonitor.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareHierarchy.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "problem/preconditioner.hpp"
#include "problem/problem.hpp"
#include "support/text_format.hpp"

// How this works. Each run of a variant lets MueLu set up a hierarchy, makes it node-aware or not, with nothing known
// from runs before, and applies so many V-cycles, each followed by an all-reduce of one number, as in a Krylov solver.
// The coarsest level is solved by the same solver in all variants. A sample runs each variant once, in an order that
// rotates; its times are maxima over ranks, but those of levels, by MueLu's timers, means: a rank that waits there for
// another one, waits for a level. Then one hierarchy is set up again and again, as far as "reuse: type" RP
// says, for two matrices in turn, and made node-aware each time.
namespace {

using namespace Komvos::Program;
using namespace Komvos;
using Json = nlohmann::ordered_json;
using Teuchos::RCP;
using Hierarchy = MueLu::TpetraOperator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

struct Options {
  ProblemOptions problem;
  int coarseSize = 100;
  std::vector<int> cycles = {10, 30, 100};
  int samples = 15;
  std::string network = "unknown";
  std::string json = "-";
};

struct Variant {
  std::string name;
  std::optional<ExchangeOptions> exchange;  // none: the hierarchy stays as MueLu made it
  std::vector<double> muelu, convert;       // set-up, of each sample
  std::vector<std::vector<double>> cycles;  // by count of cycles: of each sample
  std::vector<std::vector<double>> levels;  // by level: of all cycles of each sample, means over ranks
};

/// What a cycle takes on each level; its timers stop while it is on a coarser one.
class LevelClock {
 public:
  /// \param hierarchy starts its timers from now on
  explicit LevelClock(
      MueLu::Hierarchy<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>& hierarchy) {
    hierarchy.SetVerbLevel(MueLu::Timings0);
    const int levels = hierarchy.GetGlobalNumLevels();  // collective
    for (int level = 0; level < levels; ++level) {
      timers_.push_back(
          Teuchos::TimeMonitor::getNewCounter("MueLu: Hierarchy: Solve (level=" + std::to_string(level) + ")"));
      timers_.back()->reset();
    }
  }
  /// Means over ranks. \note Collective.
  std::vector<double> seconds(MPI_Comm comm) const {
    std::vector<double> sums;
    for (const RCP<Teuchos::Time>& timer : timers_) {
      sums.push_back(timer->totalElapsedTime());
    }
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_DOUBLE, MPI_SUM, comm),
             "MPI_Allreduce");
    int ranks = 0;
    mpiCheck(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    for (double& sum : sums) {
      sum /= ranks;
    }
    return sums;
  }

 private:
  std::vector<RCP<Teuchos::Time>> timers_;
};

class VCycles {
 public:
  VCycles(const Options& options, const Problem& problem, MPI_Comm comm)
      : options_(options), problem_(problem), traits_(examine(*problem.matrix)), comm_(comm) {
    ExchangeOptions online, off;
    online.reuseDecisions = off.reuseDecisions = false;
    off.tuning = Tuning::off;
    variants_ = {
        {"MueLu", {}, {}, {}, {}, {}}, {"komvos", online, {}, {}, {}, {}}, {"komvos, tuning off", off, {}, {}, {}, {}}};
  }

  void run() {
    for (int sample = -1; sample < options_.samples; ++sample) {  // the first one only warms up
      for (std::size_t i = 0; i < variants_.size(); ++i) {
        measure(variants_[(i + sample + 1) % variants_.size()], sample >= 0);
      }
    }
  }

  Json results() const;
  /// \return times of set-up for another matrix
  Json reuse(const Teuchos::RCP<Matrix>& another) const;

 private:
  void measure(Variant& variant, bool counts);

  const Options& options_;
  const Problem& problem_;
  MatrixTraits traits_;
  MPI_Comm comm_;
  std::vector<Variant> variants_;
};

void VCycles::measure(Variant& variant, bool counts) {
  Teuchos::ParameterList muelu;
  muelu.set("coarse: max size", options_.coarseSize);
  MultiVector b(problem_.matrix->getRangeMap(), 1), x(problem_.matrix->getDomainMap(), 1);
  b.randomize();
  mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
  std::vector<double> clock{MPI_Wtime()};
  const Preconditioner preconditioner = makePreconditioner("muelu", problem_, traits_, problem_.matrix, muelu, {});
  clock.push_back(MPI_Wtime());
  const auto hierarchy = Teuchos::rcp_dynamic_cast<Hierarchy>(preconditioner.op, true);
  if (variant.exchange) {
    makeNodeAware(*hierarchy, *variant.exchange);
  }
  clock.push_back(MPI_Wtime());
  const LevelClock levelClock(*hierarchy->GetHierarchy());
  const double cyclesBegin = MPI_Wtime();
  int done = 0;
  for (const int upTo : options_.cycles) {
    for (; done < upTo; ++done) {
      preconditioner.op->apply(b, x);
      double number = done, sum = 0;
      mpiCheck(MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM, comm_), "MPI_Allreduce");
    }
    clock.push_back(MPI_Wtime());
  }
  std::vector<double> most{clock[1] - clock[0], clock[2] - clock[1]};
  for (std::size_t i = 3; i < clock.size(); ++i) {
    most.push_back(clock[i] - cyclesBegin);
  }
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, most.data(), static_cast<int>(most.size()), MPI_DOUBLE, MPI_MAX, comm_),
           "MPI_Allreduce");
  const std::vector<double> ofLevels = levelClock.seconds(comm_);
  const std::size_t levels = variants_.front().levels.size();
  if (levels > 0 && ofLevels.size() != levels) {
    throw Error("MueLu made " + std::to_string(ofLevels.size()) + " levels, and then, of the same matrix, " +
                std::to_string(levels) + ": with threads aggregates may differ; use one thread");
  }
  if (counts) {
    variant.muelu.push_back(most[0]);
    variant.convert.push_back(most[1]);
    variant.cycles.resize(options_.cycles.size());
    for (std::size_t i = 0; i < options_.cycles.size(); ++i) {
      variant.cycles[i].push_back(most[i + 2]);
    }
    variant.levels.resize(ofLevels.size());
    for (std::size_t level = 0; level < ofLevels.size(); ++level) {
      variant.levels[level].push_back(ofLevels[level]);
    }
  }
}

Json VCycles::reuse(const Teuchos::RCP<Matrix>& another) const {
  Teuchos::ParameterList muelu;
  muelu.set("coarse: max size", options_.coarseSize);
  muelu.set("reuse: type", "RP");
  MultiVector b(problem_.matrix->getRangeMap(), 1), x(problem_.matrix->getDomainMap(), 1);
  b.randomize();
  const Preconditioner preconditioner = makePreconditioner("muelu", problem_, traits_, problem_.matrix, muelu, {});
  const auto hierarchy = Teuchos::rcp_dynamic_cast<Hierarchy>(preconditioner.op, true);
  std::vector<double> mueluSeconds, convertSeconds;
  for (int sample = -1; sample < options_.samples; ++sample) {  // the first one plans
    mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
    const double start = MPI_Wtime();
    if (sample >= 0) {
      MueLu::ReuseTpetraPreconditioner(sample % 2 == 0 ? another : problem_.matrix, *hierarchy);
    }
    mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
    const double reused = MPI_Wtime();
    makeNodeAware(*hierarchy);
    std::array<double, 2> most{reused - start, MPI_Wtime() - reused};
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, most.data(), 2, MPI_DOUBLE, MPI_MAX, comm_), "MPI_Allreduce");
    preconditioner.op->apply(b, x);
    if (sample >= 0) {
      mueluSeconds.push_back(most[0]);
      convertSeconds.push_back(most[1]);
    }
  }
  return {{"muelu_seconds", Impl::median(mueluSeconds)}, {"conversion_seconds", Impl::median(convertSeconds)}};
}

/// What of a run is compared: cycles alone, with makeNodeAware(), with all of set-up.
enum class Part { cycles, withConversion, whole };

std::vector<double> secondsOf(const Variant& variant, std::size_t checkpoint, Part part) {
  std::vector<double> seconds = variant.cycles[checkpoint];
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    seconds[i] += (part == Part::cycles ? 0 : variant.convert[i]) + (part == Part::whole ? variant.muelu[i] : 0);
  }
  return seconds;
}

Json VCycles::results() const {
  Json json = Json::array();
  for (const Variant& variant : variants_) {
    Json times = Json::array();
    for (std::size_t i = 0; i < options_.cycles.size(); ++i) {
      const auto ratio = [&](Part part) {
        return Impl::median(Impl::ratios(secondsOf(variant, i, part), secondsOf(variants_.front(), i, part)));
      };
      times.push_back({{"cycles", options_.cycles[i]},
                       {"seconds", Impl::median(variant.cycles[i])},
                       {"lower_quartile", Impl::quantile(variant.cycles[i], 0.25)},
                       {"upper_quartile", Impl::quantile(variant.cycles[i], 0.75)},
                       {"of_muelu", ratio(Part::cycles)},
                       {"of_muelu_with_conversion", ratio(Part::withConversion)},
                       {"of_muelu_with_set_up", ratio(Part::whole)}});
    }
    Json levels = Json::array();
    for (std::size_t level = 0; level < variant.levels.size(); ++level) {
      const std::vector<double>& seconds = variant.levels[level];
      const std::vector<double> ratios = Impl::ratios(seconds, variants_.front().levels[level]);
      levels.push_back({{"level", level},
                        {"seconds", Impl::median(seconds) / options_.cycles.back()},
                        {"of_muelu", Impl::median(ratios)}});
    }
    json.push_back({{"variant", variant.name},
                    {"muelu_set_up_seconds", Impl::median(variant.muelu)},
                    {"conversion_seconds", Impl::median(variant.convert)},
                    {"times", times},
                    {"levels", levels}});
  }
  return json;
}

void print(const Json& results) {
  for (const Json& variant : results) {
    std::cout << format(
        "  %-20s MueLu's set-up %7.1f ms, conversion %6.1f ms;", variant["variant"].get<std::string>().c_str(),
        1e3 * variant["muelu_set_up_seconds"].get<double>(), 1e3 * variant["conversion_seconds"].get<double>());
    for (const Json& time : variant["times"]) {
      std::cout << format("   %d: %7.1f ms (%.2f, %.2f, %.2f)", time["cycles"].get<int>(),
                          1e3 * time["seconds"].get<double>(), time["of_muelu"].get<double>(),
                          time["of_muelu_with_conversion"].get<double>(), time["of_muelu_with_set_up"].get<double>());
    }
    std::cout << "\n" << std::string(23, ' ') << "a cycle by level, ms:";
    for (const Json& level : variant["levels"]) {
      std::cout << format("   %d: %.3f (%.2f)", level["level"].get<int>(), 1e3 * level["seconds"].get<double>(),
                          level["of_muelu"].get<double>());
    }
    std::cout << "\n";
  }
  std::cout << std::flush;
}

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  const Problem problem = loadProblem(options.problem, comm);
  VCycles cycles(options, problem, Tpetra::Details::extractMpiCommFromTeuchos(*comm));
  cycles.run();
  const Json report{{"benchmark", "V-cycles"},
                    {"commit", KOMVOS_COMMIT},
                    {"problem", problem.name},
                    {"rows", problem.matrix->getGlobalNumRows()},
                    {"entries", problem.matrix->getGlobalNumEntries()},
                    {"ranks", comm->getSize()},
                    {"network", options.network},
                    {"samples", options.samples},
                    {"processor", Impl::processorName()},
                    {"mpi", Impl::mpiLibraryName()},
                    {"results", cycles.results()},
                    {"reuse", cycles.reuse(loadProblem(options.problem, comm).matrix)}};
  if (comm->getRank() == 0) {
    std::cout << problem.name << ", " << comm->getSize() << " ranks\n";
    print(report["results"]);
    std::cout << format("  set up again: MueLu %.1f ms, conversion %.1f ms\n",
                        1e3 * report["reuse"]["muelu_seconds"].get<double>(),
                        1e3 * report["reuse"]["conversion_seconds"].get<double>());
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
  CLI::App app("Times V-cycles of MueLu, node-aware and not");
  addProblemOptions(app, options.problem);
  app.add_option("--coarse-size", options.coarseSize)->check(CLI::PositiveNumber);
  app.add_option("--cycles", options.cycles, "ascending")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--network", options.network, "for the report");
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    checkProblemOptions(app, options.problem);
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "v_cycles: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
