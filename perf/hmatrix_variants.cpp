// What does a product of a hierarchical matrix cost by each of the ways that Yamazaki et al. compare: one gemv after
// another, batches of gemv in several orders, with launches of fixed and of variable size, and the loops of
// KokkosBatched, beside our two passes over panels? All have the same blocks, and take turns. One process.
#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "Komvos_BlockBatches.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "hmatrix_points.hpp"

namespace {

using Komvos::Perf::OneOverDistance;
using Komvos::Perf::pointsOf;
using Komvos::Impl::BatchLaunches;
using Komvos::Impl::BatchLoop;
using Komvos::Impl::BatchOptions;
using Komvos::Impl::BatchOrder;
using Space = Kokkos::DefaultExecutionSpace;
using Matrix = Komvos::HMatrix<double, Space>;
using Batches = Komvos::Impl::BlockBatches<double, Space>;
using Vectors = Kokkos::View<double**, Kokkos::LayoutLeft, Matrix::memory_space>;

struct Options {
  std::string geometry = "cylinder", compression = "aca+";
  std::vector<std::string> variants{"all"};
  int n = 10000, leaf = 32, samples = 30, count = 20000;
  double accuracy = 1e-4, eta = 2;
};

struct NamedOptions {
  std::string name;
  BatchOptions options;
};

/// What can be asked for besides "panels" and "blas".
std::vector<NamedOptions> batchVariants() {
  using Order = BatchOrder;
  using Launches = BatchLaunches;
  using Loop = BatchLoop;
  const auto of = [](Order order, Launches launches, Loop loop = Loop::Own, bool cut = false) {
    BatchOptions options;
    options.order = order;
    options.launches = launches;
    options.loop = loop;
    options.cut = cut;
    return options;
  };
  std::vector<NamedOptions> variants{{"unsorted", of(Order::Tree, Launches::One)},
                                     {"by-size", of(Order::Size, Launches::One)},
                                     {"by-rows", of(Order::Rows, Launches::One)},
                                     {"cut-by-size", of(Order::Size, Launches::One, Loop::Own, true)},
                                     {"unsorted-fixed", of(Order::Tree, Launches::Fixed)},
                                     {"by-rows-fixed", of(Order::Rows, Launches::Fixed)},
                                     {"groups-fixed", of(Order::Groups, Launches::Fixed)},
                                     {"groups-variable", of(Order::Groups, Launches::Variable)}};
  if (Komvos::Impl::haveKokkosBatched()) {
    for (const auto& [suffix, loop] :
         {std::make_pair("-team-gemv", Loop::TeamGemv), std::make_pair("-team-vector-gemv", Loop::TeamVectorGemv)}) {
      variants.push_back({std::string("groups-fixed") + suffix, of(Order::Groups, Launches::Fixed, loop)});
      variants.push_back({std::string("groups-variable") + suffix, of(Order::Groups, Launches::Variable, loop)});
    }
  }
  return variants;
}

std::vector<std::string> namesOfVariants() {
  std::vector<std::string> names{"all", "panels", "blas"};
  for (const NamedOptions& variant : batchVariants()) {
    names.push_back(variant.name);
  }
  return names;
}

/// A way to multiply that is timed.
struct Candidate {
  nlohmann::json report;
  std::function<void(const Vectors& x, const Vectors& y)> multiply;
};

bool asksFor(const Options& o, const std::string& name) {
  return std::any_of(o.variants.begin(), o.variants.end(),
                     [&](const std::string& asked) { return asked == "all" || asked == name; });
}

/// Those that were asked for, without "panels". What is not where the product runs is copied before it is timed.
std::vector<Candidate> makeCandidates(const Options& o, const std::shared_ptr<const Batches>& blocks) {
  std::vector<Candidate> candidates;
  // Its vectors are on the host: where products run on a device, times have the copies in them.
  if (asksFor(o, "blas")) {
    candidates.push_back({{{"variant", "blas"}}, [blocks](const Vectors& x, const Vectors& y) {
                            const auto hostX = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), x);
                            const auto hostY = Kokkos::create_mirror_view(y);
                            blocks->multiplyByBlas(hostX.data(), hostY.data());
                            Kokkos::deep_copy(y, hostY);
                          }});
  }
  for (NamedOptions& variant : batchVariants()) {
    if (!asksFor(o, variant.name)) {
      continue;
    }
    variant.options.count = o.count;
    const auto batches = std::make_shared<const Batches::Batches>(blocks->prepare(variant.options));
    candidates.push_back(
        {{{"variant", variant.name}, {"launches", batches->numLaunches()}, {"teams", batches->numTeams()}},
         [blocks, batches](const Vectors& x, const Vectors& y) {
           blocks->multiply(Space(), *batches, Kokkos::subview(x, Kokkos::ALL(), 0),
                            Kokkos::subview(y, Kokkos::ALL(), 0));
           Space().fence();
         }});
  }
  return candidates;
}

Vectors randomVector(int n) {
  const Vectors x("x", n, 1);
  const auto host = Kokkos::create_mirror_view(x);
  std::mt19937 generator(1);
  std::generate(host.data(), host.data() + host.span(),
                [&] { return std::uniform_real_distribution<double>(-1, 1)(generator); });
  Kokkos::deep_copy(x, host);
  return x;
}

/// || y - expected || / || expected ||
double differenceOf(const Vectors& y, const Vectors& expected) {
  const auto a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  const auto b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), expected);
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < b.extent(0); ++i) {
    difference += (a(i, 0) - b(i, 0)) * (a(i, 0) - b(i, 0));
    all += b(i, 0) * b(i, 0);
  }
  return std::sqrt(difference / all);
}

/// A line for each variant: how long a product takes, and over ours, which is timed right before each.
nlohmann::json timeProducts(const Options& o, const Candidate& panels, const std::vector<Candidate>& candidates) {
  const Vectors x = randomVector(o.n), y("y", o.n, 1), expected("expected", o.n, 1);
  panels.multiply(x, expected);
  std::vector<double> ours;
  std::vector<std::vector<double>> times(candidates.size()), ratios(candidates.size());
  const auto secondsOf = [&](const Candidate& candidate) {
    const Kokkos::Timer timer;
    candidate.multiply(x, y);
    return timer.seconds();
  };
  for (int sample = -1; sample < o.samples; ++sample) {  // the first one does not count
    for (std::size_t c = 0; c < std::max<std::size_t>(candidates.size(), 1); ++c) {
      const double ofPanels = secondsOf(panels);
      const double seconds = candidates.empty() ? 0 : secondsOf(candidates[c]);
      if (sample < 0) {
        continue;
      }
      ours.push_back(ofPanels);
      if (!candidates.empty()) {
        times[c].push_back(seconds);
        ratios[c].push_back(seconds / ofPanels);
      }
    }
  }
  auto lines = nlohmann::json::array();
  lines.push_back(panels.report);
  lines.back()["seconds"] = Komvos::Impl::median(ours);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    nlohmann::json line = candidates[c].report;
    candidates[c].multiply(x, y);
    line["seconds"] = Komvos::Impl::median(times[c]);
    line["over_panels"] = Komvos::Impl::median(ratios[c]);
    line["difference"] = differenceOf(y, expected);
    lines.push_back(line);
  }
  return lines;
}

nlohmann::json measure(const Options& o) {
  const auto points = pointsOf(o.geometry, o.n);
  const OneOverDistance entry = Komvos::Perf::oneOverDistance(points, o.geometry);
  const Komvos::FunctionKernel<double, OneOverDistance> kernel(entry, true);
  const Komvos::ClusterTree tree(points, {}, {o.leaf});
  Komvos::HMatrixOptions options;
  options.storage = Komvos::Storage::Whole;  // as the batches
  options.eta = o.eta;
  options.lowRank.accuracy = o.accuracy;
  options.lowRank.approximation = o.compression == "aca" ? Komvos::Approximation::Aca : Komvos::Approximation::AcaPlus;
  const Matrix matrix(tree, tree, kernel, options);
  const auto blocks = std::make_shared<const Batches>(tree, tree, matrix.blocks(), kernel, options.lowRank);
  const Candidate panels{{{"variant", "panels"}}, [&](const Vectors& x, const Vectors& y) {
                           matrix.multiply(Space(), x, y);
                           Space().fence();
                         }};
  const auto& report = matrix.report();
  return {{"geometry", o.geometry},
          {"n", o.n},
          {"accuracy", o.accuracy},
          {"eta", o.eta},
          {"leaf", o.leaf},
          {"compression", o.compression},
          {"samples", o.samples},
          {"count", o.count},
          {"execution_space", Space::name()},
          {"threads", Space().concurrency()},
          {"low_rank_blocks", report.numLowRank},
          {"dense_blocks", report.numDense},
          {"largest_rank", report.largestRank()},
          {"bytes", report.bytes},
          {"products", timeProducts(o, panels, makeCandidates(o, blocks))}};
}

}  // namespace

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  CLI::App app("Products of hierarchical matrices by batches of gemv, and by passes over panels");
  Options o;
  app.add_option("--variant", o.variants, "one, several with commas, or all; each is compared with panels")
      ->delimiter(',')
      ->check(CLI::IsMember(namesOfVariants()))
      ->capture_default_str();
  app.add_option("--count", o.count, "tasks of a launch, at most")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--geometry", o.geometry)->check(CLI::IsMember({"sphere", "cylinder"}))->capture_default_str();
  app.add_option("--n", o.n, "points")->check(CLI::Range(1, 10000000))->capture_default_str();
  app.add_option("--accuracy", o.accuracy)->check(CLI::Range(1e-14, 0.5))->capture_default_str();
  app.add_option("--eta", o.eta)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--leaf", o.leaf, "leaf size")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--compression", o.compression)->check(CLI::IsMember({"aca", "aca+"}))->capture_default_str();
  app.add_option("--samples", o.samples)->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  nlohmann::json result{
      {"benchmark", "hmatrix_variants"}, {"commit", KOMVOS_COMMIT}, {"processor", Komvos::Impl::processorName()}};
  result.update(measure(o));
  std::cout << result.dump(2) << '\n';
}
