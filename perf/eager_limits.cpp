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

struct Variant {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds;
};

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  const MPI_Comm comm = MPI_COMM_WORLD;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int count = 4096;
  int samples = 40;
  double workSeconds = 2e-3;
  int slices = 40;
  std::string routeName = "standard";
  std::string json = "-";
  std::string limit = "default";
  CLI::App app("Times an exchange that MPI may or may not buffer");
  app.add_option("--values", count, "a message, doubles")->capture_default_str()->check(CLI::Range(1, 100000000));
  app.add_option("--samples", samples)->capture_default_str()->check(CLI::Range(1, 1000000));
  app.add_option("--work", workSeconds, "seconds of work between start and wait; 0: none")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--route", routeName, "of our exchange")->capture_default_str();
  app.add_option("--slices", slices, "of work, with a look at the messages after each")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--limit", limit, "words for the report: the eager limit that was set");
  app.add_option("--json", json, "file for the results, - for standard output")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  if (size < 2 || static_cast<long>(count) * (size - 1) > std::numeric_limits<int>::max()) {
    if (rank == 0) {
      std::fprintf(stderr, "%d ranks, %d values for each other: at least 2 ranks, fewer than 2^31 values on each\n",
                   size, count);
    }
    return 1;
  }
  Komvos::MpiSetupTransport transport(comm);
  const auto topology = Komvos::NodeTopology::detect(comm);
  const auto route = Komvos::makeRoute(Komvos::parseRoute(routeName), topology);
  const auto plan = std::make_shared<const Komvos::ExchangePlan>(
      Komvos::buildPlans(transport, topology, *route, {allToAll(rank, size, count)}).front());
  Exchange messages(comm, plan, 1, Komvos::IntraNode::messages);
  Exchange memory(comm, plan, 1, Komvos::IntraNode::sharedMemory);
  const Vector owned("owned", count, 1);
  const Vector ghosts("ghosts", static_cast<std::size_t>(count) * (size - 1), 1);
  long operations = operationsFor(workSeconds / slices);
  MPI_Bcast(&operations, 1, MPI_LONG, 0, comm);
  const auto work = [&](const auto& look) {
    for (int i = 0; i < slices && workSeconds > 0; ++i) {
      compute(operations);
      look();
    }
  };
  const auto ours = [&](Exchange& exchange) {
    exchange.begin(Space(), owned, ghosts);
    work([&] { exchange.progress(); });
    exchange.end(Space(), ghosts);
  };
  std::vector<MPI_Request> requests(2 * (size - 1));
  const auto sends = [&] {
    for (int k = 1; k < size; ++k) {
      MPI_Isend(owned.data(), count, MPI_DOUBLE, (rank + k) % size, 1, comm, &requests[size - 2 + k]);
    }
  };
  const auto receives = [&] {
    for (int k = 1; k < size; ++k) {
      MPI_Irecv(ghosts.data() + static_cast<std::size_t>(k - 1) * count, count, MPI_DOUBLE, (rank + size - k) % size, 1,
                comm, &requests[k - 1]);
    }
  };
  const auto test = [&](int first, int count) {
    int done = 0;
    MPI_Testall(count, &requests[first], &done, MPI_STATUSES_IGNORE);
  };
  const auto wait = [&] { MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE); };
  std::vector<Variant> variants{{"komvos, messages", [&] { ours(messages); }, {}},
                                {"komvos, shared memory", [&] { ours(memory); }, {}},
                                {"receives early",
                                 [&] {
                                   receives();
                                   sends();
                                   work([&] { test(0, 2 * (size - 1)); });
                                   wait();
                                 },
                                 {}},
                                {"receives late",
                                 [&] {
                                   sends();
                                   work([&] { test(size - 1, size - 1); });
                                   receives();
                                   wait();
                                 },
                                 {}}};
  if (workSeconds > 0) {
    variants.push_back({"work alone", [&] { work([] {}); }, {}});
  }
  for (int s = -3; s < samples; ++s) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      Variant& variant = variants[(i + s + 3) % variants.size()];
      MPI_Barrier(comm);
      const double start = MPI_Wtime();
      variant.run();
      double seconds = MPI_Wtime() - start;
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm);
      if (s >= 0) {
        variant.seconds.push_back(seconds);
      }
    }
  }
  bool written = true;
  if (rank == 0) {
    Json report{{"benchmark", "eager limits"},
                {"eager_limit", limit},
                {"ranks", size},
                {"nodes", topology.numNodes()},
                {"message_bytes", 8L * count},
                {"work_seconds", workSeconds},
                {"slices", slices},
                {"route", routeName},
                {"samples", samples}};
    for (const Variant& variant : variants) {
      report["seconds"][variant.name] = {{"median", median(variant.seconds)},
                                         {"lower_quartile", quantile(variant.seconds, 0.25)},
                                         {"upper_quartile", quantile(variant.seconds, 0.75)}};
      std::fprintf(stderr, "%-12s %9ld bytes  %-24s %9.1f us\n", limit.c_str(), 8L * count, variant.name.c_str(),
                   1e6 * median(variant.seconds));
    }
    if (json == "-") {
      std::cout << report.dump(1) << std::endl;
    } else {
      std::ofstream file(json, std::ios::app);
      file << report.dump() << "\n" << std::flush;
      written = file.good();
    }
    if (!written) {
      std::fprintf(stderr, "cannot write %s\n", json.c_str());
    }
  }
  return written ? 0 : 1;
}
