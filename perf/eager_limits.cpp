// Does the time of an exchange depend on how much MPI buffers?
//
// Every rank exchanges messages of one size with all others, works for a while in between, and waits. The work is a
// fixed number of operations in slices; after each slice every variant gives MPI a chance to move messages, as
// NodeAwareCrsMatrix does. Four variants, in turn, in one run: our exchange with messages, our exchange with shared
// memory on the nodes, plain MPI with receives posted first, and plain MPI with receives posted last, after the work;
// and the work alone, so that one knows what a time has besides. Without work the times are those of the exchange
// alone. run_eager_limits.py repeats this for eager limits of Open MPI from none to 8 MB. The question is that of P.
// Amestoy, I. Duff, J.-Y. L'Excellent, X. Li, "Impact of the implementation of MPI point-to-point communications on the
// performance of two general sparse solvers", INRIA RR-4372.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_DefaultTypes.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_Statistics.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Device = Tpetra::Details::DefaultTypes::node_type::device_type;
using Space = Device::execution_space;
using Vector = Kokkos::View<double**, Kokkos::LayoutLeft, Device>;
using Exchange = Komvos::Exchange<double, Device>;
using Komvos::Impl::median;
using Komvos::Impl::quantile;

/// A chain of operations that no compiler can drop, without a call into MPI.
void compute(long operations) {
  static volatile double result = 1;
  double x = result;
  for (long i = 0; i < operations; ++i) {
    x = 0.999999 * x + 1e-6;
  }
  result = x;
}

/// How many operations take so many seconds, the median of some tries.
long operationsFor(double seconds) {
  const long some = 100000;
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const double start = MPI_Wtime();
    compute(some);
    times.push_back(MPI_Wtime() - start);
  }
  return static_cast<long>(seconds / median(times) * some);
}

/// Everybody sends `count` values to everybody else.
Komvos::Pattern allToAll(int rank, int size, int count) {
  Komvos::Pattern pattern;
  pattern.rank = rank;
  pattern.numOwned = count;
  pattern.numTarget = count * (size - 1);
  int target = 0;
  for (int peer = 0; peer < size; ++peer) {
    for (int i = 0; i < count && peer != rank; ++i) {
      pattern.sends.push_back({peer, i});
      pattern.receives.push_back({{peer, i}, target++});
    }
  }
  pattern.normalize();
  return pattern;
}

struct Options {
  int values = 4096;
  int samples = 40;
  double workSeconds = 2e-3;
  int slices = 40;
  std::string route = "standard";
  std::string limit = "default";
  std::string json = "-";
};

void addOptions(CLI::App& app, Options& options) {
  app.add_option("--values", options.values, "a message, doubles")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000000));
  app.add_option("--samples", options.samples)->capture_default_str()->check(CLI::Range(1, 1000000));
  app.add_option("--work", options.workSeconds, "seconds of work between start and wait; 0: none")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--route", options.route, "of our exchange")->capture_default_str();
  app.add_option("--slices", options.slices, "of work, with a look at the messages after each")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--limit", options.limit, "words for the report: the eager limit that was set");
  app.add_option("--json", options.json, "file for the results, - for standard output")->capture_default_str();
}

/// All that is timed shares the same vectors.
class EagerBench {
 public:
  EagerBench(MPI_Comm comm, const Options& options);

  void run();
  Json report() const;
  void print() const;

 private:
  struct Variant {
    std::string name;
    std::function<void()> run;
    std::vector<double> seconds;
  };

  /// Works in slices, and calls look() after each.
  template <class Look>
  void work(const Look& look) const {
    for (int i = 0; i < options_.slices && options_.workSeconds > 0; ++i) {
      compute(operations_);
      look();
    }
  }
  void exchange(Exchange& exchange);
  void receivesEarly();
  void receivesLate();

  // Plain MPI: requests of receives, then of sends, size - 1 of each.
  void postReceives();
  void postSends();
  void test(int first, int count);
  void waitForAll();

  MPI_Comm comm_;
  const Options& options_;
  int rank_ = 0;
  int size_ = 0;
  Komvos::NodeTopology topology_;
  std::unique_ptr<Exchange> messages_, memory_;
  Vector owned_, ghosts_;
  long operations_ = 0;  // of a slice
  std::vector<MPI_Request> requests_;
  std::vector<Variant> variants_;
};

EagerBench::EagerBench(MPI_Comm comm, const Options& options)
    : comm_(comm), options_(options), topology_(Komvos::NodeTopology::detect(comm)) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  Komvos::MpiSetupTransport transport(comm);
  const auto route = Komvos::makeRoute(Komvos::parseRoute(options.route), topology_);
  const auto plan = std::make_shared<const Komvos::ExchangePlan>(
      Komvos::buildPlans(transport, topology_, *route, {allToAll(rank_, size_, options.values)}).front());
  messages_ = std::make_unique<Exchange>(comm, plan, 1, Komvos::IntraNode::messages);
  memory_ = std::make_unique<Exchange>(comm, plan, 1, Komvos::IntraNode::sharedMemory);
  owned_ = Vector("owned", options.values, 1);
  ghosts_ = Vector("ghosts", static_cast<std::size_t>(options.values) * (size_ - 1), 1);
  requests_.resize(2 * (size_ - 1));
  operations_ = operationsFor(options.workSeconds / options.slices);
  MPI_Bcast(&operations_, 1, MPI_LONG, 0, comm);
  variants_ = {{"komvos, messages", [this] { exchange(*messages_); }, {}},
               {"komvos, shared memory", [this] { exchange(*memory_); }, {}},
               {"receives early", [this] { receivesEarly(); }, {}},
               {"receives late", [this] { receivesLate(); }, {}}};
  if (options.workSeconds > 0) {
    variants_.push_back({"work alone", [this] { work([] {}); }, {}});
  }
}

void EagerBench::exchange(Exchange& exchange) {
  exchange.begin(Space(), owned_, ghosts_);
  work([&] { exchange.progress(); });
  exchange.end(Space(), ghosts_);
}

void EagerBench::receivesEarly() {
  postReceives();
  postSends();
  work([this] { test(0, 2 * (size_ - 1)); });
  waitForAll();
}

void EagerBench::receivesLate() {
  postSends();
  work([this] { test(size_ - 1, size_ - 1); });
  postReceives();
  waitForAll();
}

void EagerBench::postReceives() {
  const int count = options_.values;
  for (int k = 1; k < size_; ++k) {
    MPI_Irecv(ghosts_.data() + static_cast<std::size_t>(k - 1) * count, count, MPI_DOUBLE, (rank_ + size_ - k) % size_,
              1, comm_, &requests_[k - 1]);
  }
}

void EagerBench::postSends() {
  for (int k = 1; k < size_; ++k) {
    MPI_Isend(owned_.data(), options_.values, MPI_DOUBLE, (rank_ + k) % size_, 1, comm_, &requests_[size_ - 2 + k]);
  }
}

void EagerBench::test(int first, int count) {
  int done = 0;
  MPI_Testall(count, &requests_[first], &done, MPI_STATUSES_IGNORE);
}

void EagerBench::waitForAll() {
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
}

void EagerBench::run() {
  const int warmUps = 3;
  for (int sample = -warmUps; sample < options_.samples; ++sample) {
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      Variant& variant = variants_[(i + sample + warmUps) % variants_.size()];
      MPI_Barrier(comm_);
      const double start = MPI_Wtime();
      variant.run();
      double seconds = MPI_Wtime() - start;
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm_);
      if (sample >= 0) {
        variant.seconds.push_back(seconds);
      }
    }
  }
}

Json EagerBench::report() const {
  Json report{{"benchmark", "eager limits"},
              {"eager_limit", options_.limit},
              {"ranks", size_},
              {"nodes", topology_.numNodes()},
              {"message_bytes", 8L * options_.values},
              {"work_seconds", options_.workSeconds},
              {"slices", options_.slices},
              {"route", options_.route},
              {"samples", options_.samples}};
  for (const Variant& variant : variants_) {
    report["seconds"][variant.name] = {{"median", median(variant.seconds)},
                                       {"lower_quartile", quantile(variant.seconds, 0.25)},
                                       {"upper_quartile", quantile(variant.seconds, 0.75)}};
  }
  return report;
}

void EagerBench::print() const {
  for (const Variant& variant : variants_) {
    std::fprintf(stderr, "%-12s %9ld bytes  %-24s %9.1f us\n", options_.limit.c_str(), 8L * options_.values,
                 variant.name.c_str(), 1e6 * median(variant.seconds));
  }
}

/// Appends a line to a file, or prints. \return whether that worked
bool write(const Json& report, const std::string& where) {
  if (where == "-") {
    std::cout << report.dump(1) << std::endl;
    return true;
  }
  std::ofstream file(where, std::ios::app);
  file << report.dump() << "\n" << std::flush;
  if (!file.good()) {
    std::fprintf(stderr, "cannot write %s\n", where.c_str());
  }
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  const MPI_Comm comm = MPI_COMM_WORLD;
  Options options;
  CLI::App app("Times an exchange that MPI may or may not buffer");
  addOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (size < 2 || static_cast<long>(options.values) * (size - 1) > std::numeric_limits<int>::max()) {
    if (rank == 0) {
      std::fprintf(stderr, "%d ranks, %d values for each other: at least 2 ranks, fewer than 2^31 values on each\n",
                   size, options.values);
    }
    return 1;
  }
  EagerBench bench(comm, options);
  bench.run();
  if (rank != 0) {
    return 0;
  }
  bench.print();
  return write(bench.report(), options.json) ? 0 : 1;
}
