// What does a product of a hierarchical matrix cost: of the bandwidth at which memory can be read, with values stored
// whole or reduced, all or half of a symmetric matrix, and beside hmat-oss on the same points, with the same kernel and
// accuracy? All matrices are made first; their products, and reads of as many bytes, take turns. One process. With
// --on-device the same on Kokkos' default execution space: a GPU, where there is one.
#include <CLI/CLI.hpp>
#include <Kokkos_Core.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "Komvos_HMatrix.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "Komvos_VectorUnit.hpp"
#include "commit.hpp"
#include "hmatrix_points.hpp"
#include "stream_read.hpp"
#ifdef KOMVOS_HAVE_HMAT_OSS
#include <hmat/hmat.h>
#endif

namespace {

using Komvos::Point3;
using Komvos::Perf::OneOverDistance;
using Komvos::Perf::pointsOf;
using Komvos::Perf::StreamRead;
using HostSpace = Kokkos::DefaultHostExecutionSpace;
template <class Space>
using Vectors = Kokkos::View<double**, Kokkos::LayoutLeft, typename Komvos::Impl::BufferSpace<Space>::type>;
using HostVectors = Vectors<HostSpace>;

/// || y - A x || / || y || in some rows, without hierarchical matrices.
double errorIn(const OneOverDistance& entry, const HostVectors& x, const HostVectors& y) {
  const int n = static_cast<int>(x.extent(0)), rows = std::min(n, 200);
  double difference = 0, all = 0;
  for (int k = 0; k < rows; ++k) {
    const int i = static_cast<int>(static_cast<std::int64_t>(k) * n / rows);
    double sum = 0;
    for (int j = 0; j < n; ++j) {
      sum += entry(i, j) * x(j, 0);
    }
    difference += (y(i, 0) - sum) * (y(i, 0) - sum);
    all += sum * sum;
  }
  return std::sqrt(difference / all);
}

#ifdef KOMVOS_HAVE_HMAT_OSS
class HmatOss {
 public:
  HmatOss(std::vector<Point3>& points, const OneOverDistance& entry, double accuracy, int leaf, double eta,
          const std::string& compression) {
    hmat_init_default_interface(&hmat_, HMAT_DOUBLE_PRECISION);
    hmat_settings_t settings;
    hmat_get_parameters(&settings);
    settings.maxLeafSize = leaf;
    hmat_set_parameters(&settings);
    hmat_.init();
    Kokkos::Timer timer;
    auto* clustering = hmat_create_clustering_median();
    tree_ = hmat_create_cluster_tree(&points[0].x, 3, static_cast<int>(points.size()), clustering);
    hmat_delete_clustering(clustering);
    auto* admissibility = hmat_create_admissibility_standard(eta);
    matrix_ = hmat_.create_empty_hmatrix_admissibility(tree_, tree_, 0, admissibility);
    hmat_delete_admissibility(admissibility);
    hmat_.set_low_rank_epsilon(matrix_, accuracy);  // of the recompression after ACA, else 1e-4
    hmat_assemble_context_t context;
    hmat_assemble_context_init(&context);
    context.user_context = const_cast<OneOverDistance*>(&entry);
    context.compression = compression == "aca" ? hmat_create_compression_aca_partial(accuracy)
                                               : hmat_create_compression_aca_plus(accuracy);
    context.simple_compute = [](void* user, int i, int j, void* result) {
      *static_cast<double*>(result) = (*static_cast<OneOverDistance*>(user))(i, j);
    };
    hmat_.assemble_generic(matrix_, &context);
    hmat_delete_compression(context.compression);
    seconds_ = timer.seconds();
    hmat_.get_info(matrix_, &info_);
  }
  ~HmatOss() {
    hmat_.destroy(matrix_);
    hmat_delete_cluster_tree(tree_);
    hmat_.finalize();
  }
  HmatOss(const HmatOss&) = delete;
  HmatOss& operator=(const HmatOss&) = delete;

  void multiply(const HostVectors& x, const HostVectors& y) {
    double one = 1, zero = 0;
    hmat_.gemv('N', &one, matrix_, x.data(), &zero, y.data(), static_cast<int>(x.extent(1)));
  }
  nlohmann::json report() const {
    return {{"matrix", "hmat_oss"},
            {"seconds_set_up", seconds_},
            {"low_rank_blocks", info_.rk_count},
            {"dense_blocks", info_.full_count},
            {"bytes", 8 * info_.compressed_size}};
  }

 private:
  hmat_interface_t hmat_{};
  hmat_cluster_tree_t* tree_ = nullptr;
  hmat_matrix_t* matrix_ = nullptr;
  hmat_info_t info_{};
  double seconds_ = 0;
};
#endif

struct Options {
  std::string geometry = "cylinder", compression = "aca+";
  std::vector<std::string> storage{"whole"};
  std::vector<int> vectors{1};
  int n = 10000, leaf = 32, samples = 30;
  double accuracy = 1e-4, eta = 2;
  bool withHmatOss = true, onDevice = false, transposed = false;
  std::string vectorUnit = "widest";
};

/// A matrix whose products are timed.
template <class Space>
struct Candidate {
  std::string name;
  nlohmann::json report;
  std::int64_t bytesRead = 0;  ///< 0: not compared with reads
  std::function<void(const Vectors<Space>& x, const Vectors<Space>& y)> multiply;
};

/// \param storage "whole", "reduced", "half" or "half-reduced"
template <class Space>
Candidate<Space> makeOurs(const Options& o, const std::string& storage, const Komvos::ClusterTree& tree,
                          const Komvos::EntryKernel<double>& kernel, double treeSeconds) {
  using Matrix = Komvos::HMatrix<double, Space>;
  Komvos::HMatrixOptions options;
  options.eta = o.eta;
  options.lowRank.accuracy = o.accuracy;
  options.lowRank.approximation = o.compression == "aca" ? Komvos::Approximation::Aca : Komvos::Approximation::AcaPlus;
  const bool reduced = storage == "reduced" || storage == "half-reduced";
  options.storage = reduced ? Komvos::Storage::Reduced : Komvos::Storage::Whole;
  options.halfIfSymmetric = storage.rfind("half", 0) == 0;
  const Kokkos::Timer timer;
  const auto matrix = std::make_shared<Matrix>(tree, tree, kernel, options);
  if (o.vectorUnit != "widest") {
    using Komvos::Impl::VectorUnit;
    matrix->useVectorUnit(o.vectorUnit == "plain"  ? VectorUnit::Plain
                          : o.vectorUnit == "avx2" ? VectorUnit::Avx2
                                                   : VectorUnit::Avx512);
  }
  const double seconds = treeSeconds + timer.seconds();
  const auto& report = matrix->report();
  return {storage,
          {{"matrix", storage},
           {"seconds_set_up", seconds},
           {"low_rank_blocks", report.numLowRank},
           {"dense_blocks", report.numDense},
           {"largest_rank", report.largestRank()},
           {"bytes", report.bytes},
           {"bytes_read", matrix->bytesRead()}},
          matrix->bytesRead(),
          [matrix, transposed = o.transposed](const Vectors<Space>& x, const Vectors<Space>& y) {
            if (transposed) {
              matrix->multiplyTransposed(Space(), x, y);
            } else {
              matrix->multiply(Space(), x, y);
            }
            Space().fence();
          }};
}

HostVectors randomVectors(int n, int count) {
  HostVectors x("x", n, count);
  std::mt19937 generator(1);
  std::generate(x.data(), x.data() + x.span(),
                [&] { return std::uniform_real_distribution<double>(-1, 1)(generator); });
  return x;
}

/// A line for each matrix: how long a product with so many vectors takes, and over those of the others.
template <class Space>
nlohmann::json timeProducts(const Options& o, const std::vector<Candidate<Space>>& candidates, StreamRead<Space>& read,
                            int vectors) {
  const Vectors<Space> x("x", o.n, vectors), y("y", o.n, vectors);
  Kokkos::deep_copy(x, randomVectors(o.n, vectors));
  std::vector<std::vector<double>> times(candidates.size()), reads(candidates.size());
  Kokkos::Timer timer;
  for (int sample = -1; sample < o.samples; ++sample) {  // the first one does not count
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      timer.reset();
      candidates[c].multiply(x, y);
      const double ofProduct = timer.seconds();
      timer.reset();
      read.run(candidates[c].bytesRead);
      const double ofRead = timer.seconds();
      if (sample >= 0) {
        times[c].push_back(ofProduct);
        reads[c].push_back(ofRead);
      }
    }
  }
  const auto medianOfRatios = [](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios(a.size());
    std::transform(a.begin(), a.end(), b.begin(), ratios.begin(), std::divides<>());
    return Komvos::Impl::median(ratios);
  };
  auto lines = nlohmann::json::array();
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    nlohmann::json line{
        {"vectors", vectors}, {"matrix", candidates[c].name}, {"seconds", Komvos::Impl::median(times[c])}};
    if (candidates[c].bytesRead > 0) {
      line["read_seconds"] = Komvos::Impl::median(reads[c]);
      line["of_read_speed"] = medianOfRatios(reads[c], times[c]);
    }
    for (std::size_t other = 0; other < candidates.size(); ++other) {
      if (other != c) {
        line["over_" + candidates[other].name] = medianOfRatios(times[c], times[other]);
      }
    }
    lines.push_back(line);
  }
  return lines;
}

template <class Space>
nlohmann::json measure(const Options& o) {
  auto points = pointsOf(o.geometry, o.n);
  const OneOverDistance entry = Komvos::Perf::oneOverDistance(points, o.geometry);
  const Komvos::FunctionKernel<double, OneOverDistance> kernel(entry, true);
  const Kokkos::Timer timer;
  const Komvos::ClusterTree tree(points, {}, {o.leaf});
  const double treeSeconds = timer.seconds();
  std::vector<Candidate<Space>> candidates;
  std::int64_t mostBytes = 0;
  for (const std::string& storage : o.storage) {
    candidates.push_back(makeOurs<Space>(o, storage, tree, kernel, treeSeconds));
    mostBytes = std::max(mostBytes, candidates.back().bytesRead);
  }
#ifdef KOMVOS_HAVE_HMAT_OSS
  if constexpr (Komvos::Impl::runsOnHost<Space>()) {
    if (o.withHmatOss) {
      const auto other = std::make_shared<HmatOss>(points, entry, o.accuracy, o.leaf, o.eta, o.compression);
      candidates.push_back({"hmat_oss", other->report(), 0,
                            [other](const HostVectors& x, const HostVectors& y) { other->multiply(x, y); }});
    }
  }
#endif
  nlohmann::json result{{"geometry", o.geometry}, {"n", o.n},
                        {"accuracy", o.accuracy}, {"eta", o.eta},
                        {"leaf", o.leaf},         {"compression", o.compression},
                        {"samples", o.samples},   {"threads", Space().concurrency()},
                        {"space", Space::name()}, {"transposed", o.transposed}};
  const HostVectors onHost = randomVectors(o.n, 1);
  const Vectors<Space> x("x", o.n, 1), y("y", o.n, 1);
  Kokkos::deep_copy(x, onHost);
  for (Candidate<Space>& one : candidates) {
    one.multiply(x, y);
    one.report["error"] = errorIn(entry, onHost, Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y));
    result["matrices"].push_back(one.report);
  }
  StreamRead<Space> read(mostBytes);
  result["products"] = nlohmann::json::array();
  for (const int vectors : o.vectors) {
    for (const auto& line : timeProducts(o, candidates, read, vectors)) {
      result["products"].push_back(line);
    }
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  CLI::App app("Products of hierarchical matrices beside reads of as many bytes, and beside hmat-oss");
  Options o;
  app.add_option("--geometry", o.geometry)->check(CLI::IsMember({"sphere", "cylinder"}))->capture_default_str();
  app.add_option("--n", o.n, "points")->check(CLI::Range(1, 10000000))->capture_default_str();
  app.add_option("--accuracy", o.accuracy)->check(CLI::Range(1e-14, 0.5))->capture_default_str();
  app.add_option("--eta", o.eta)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--leaf", o.leaf, "leaf size")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--compression", o.compression)->check(CLI::IsMember({"aca", "aca+"}))->capture_default_str();
  app.add_option("--vectors", o.vectors, "of a product; one number, or several with commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--samples", o.samples)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--storage", o.storage, "of the values; one or several with commas, all in memory and timed in turn")
      ->delimiter(',')
      ->check(CLI::IsMember({"whole", "reduced", "half", "half-reduced"}))
      ->capture_default_str();
  app.add_flag("!--without-hmat-oss", o.withHmatOss);
  app.add_option("--vector-unit", o.vectorUnit, "of the CPU, at most; the widest by default")
      ->check(CLI::IsMember({"plain", "avx2", "avx512", "widest"}));
  std::string json;
  app.add_option("--json", json, "file to write; otherwise it is written to the output");
  app.add_flag("--on-device", o.onDevice, "on the default execution space, which may be a GPU");
  app.add_flag("--transposed", o.transposed, "products of the transposed matrix, which is the same here");
  CLI11_PARSE(app, argc, argv);
  nlohmann::json result{
      {"benchmark", "hmatrix_products"}, {"commit", KOMVOS_COMMIT}, {"processor", Komvos::Impl::processorName()}};
  result.update(o.onDevice ? measure<Kokkos::DefaultExecutionSpace>(o) : measure<HostSpace>(o));
  if (json.empty()) {
    std::cout << result.dump(2) << '\n';
    return 0;
  }
  std::ofstream file(json);
  file << result.dump(2) << '\n';
  file.close();
  for (const auto& product : result["products"]) {
    std::cout << product.dump() << '\n';
  }
  return file ? 0 : 1;
}
