// How do the messages of random matrices grow with the ranks, up to more entries than fit into memory?
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangeModel.hpp"
#include "analyze/virtual_cluster.hpp"
#include "commit.hpp"
#include "support/text_format.hpp"

namespace {

using namespace Komvos::Program;
using namespace Komvos;
using Visit = std::function<void(const VirtualMessage&)>;

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Equal shares of rows on each rank, and in each column some entries in random rows, made anew whenever they are asked
/// for. As many entries in each column, not row: then a sender sees at once all that need its value.
struct RandomMatrix {
  int ranks;
  int rowsPerRank;
  int entries;
  std::uint64_t seed;

  std::int64_t rows() const { return static_cast<std::int64_t>(ranks) * rowsPerRank; }
  std::int64_t row(std::int64_t column, int entry) const {
    const std::uint64_t key =
        static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(entries) + static_cast<std::uint64_t>(entry);
    // The upper half of the product maps 64 random bits to 0 .. rows - 1.
    return static_cast<std::int64_t>(
        (static_cast<unsigned __int128>(mix(mix(seed) + key)) * static_cast<unsigned __int128>(rows())) >> 64);
  }
  int rank(std::int64_t row) const { return static_cast<int>(row / rowsPerRank); }

  /// The same as a stored matrix' halo.
  VirtualHalo halo() const {
    std::vector<std::size_t> offset(static_cast<std::size_t>(rows()) + 1, 0);
    forEachEntry([&](std::int64_t i, std::int64_t) { ++offset[i + 1]; });
    std::partial_sum(offset.begin(), offset.end(), offset.begin());
    std::vector<int> column(offset.back());
    std::vector<std::size_t> next(offset.begin(), offset.end() - 1);
    forEachEntry([&](std::int64_t i, std::int64_t j) { column[next[i]++] = static_cast<int>(j); });
    std::vector<int> owner(rows());
    for (std::int64_t i = 0; i < rows(); ++i) {
      owner[i] = rank(i);
    }
    return VirtualHalo::ofProduct(ranks, {owner.size(), offset.data(), column.data()}, owner, owner);
  }

 private:
  template <class Use>
  void forEachEntry(const Use& use) const {
    for (std::int64_t column = 0; column < rows(); ++column) {
      for (int entry = 0; entry < entries; ++entry) {
        use(row(column, entry), column);
      }
    }
  }
};

/// Messages of the standard and of the three-step route, from the generator alone: counters of the size of ranks or of
/// pairs of nodes, never of the matrix. Nodes are consecutive ranks, as many on each.
class StreamedMessages {
 public:
  StreamedMessages(const RandomMatrix& matrix, int ranksPerNode)
      : matrix_(matrix),
        ppn_(ranksPerNode),
        nodes_(matrix.ranks / ranksPerNode),
        rankSeen_(matrix.ranks, -1),
        nodeSeen_(nodes_, -1) {}

  void standard(const Visit& visit) {
    std::vector<long> values(matrix_.ranks, 0);
    for (int from = 0; from < matrix_.ranks; ++from) {
      forEachValue(from, [&](std::int64_t) {
        for (const int rank : destinations_) {
          ++values[rank];
        }
      });
      for (int to = 0; to < matrix_.ranks; ++to) {
        if (values[to] > 0) {
          visit({0, from, to, values[to]});
          values[to] = 0;
        }
      }
    }
  }

  /// Pairing by volume, as NodePairing does it.
  void threeStep(const Visit& visit) {
    choosePairs();
    std::vector<long> first(static_cast<std::size_t>(matrix_.ranks) * ppn_, 0);  // [rank][local receiver]
    std::vector<long> last(first.size(), 0);
    for (int from = 0; from < matrix_.ranks; ++from) {
      const int home = from / ppn_;
      std::vector<std::int64_t> given(ppn_, -1);  // the last value handed to a local rank
      forEachValue(from, [&](std::int64_t value) {
        for (const int rank : destinations_) {
          const int node = rank / ppn_;
          const int local = node == home ? rank % ppn_ : sender_[pair(home, node)];
          if (local != from % ppn_ && given[local] != value) {
            given[local] = value;
            ++first[static_cast<std::size_t>(from) * ppn_ + local];
          }
          const int receiver = node == home ? rank % ppn_ : receiver_[pair(home, node)];
          if (receiver != rank % ppn_) {
            ++last[static_cast<std::size_t>(node * ppn_ + receiver) * ppn_ + rank % ppn_];
          }
        }
      });
    }
    for (int from = 0; from < nodes_; ++from) {
      for (int to = 0; to < nodes_; ++to) {
        if (volume_[pair(from, to)] > 0) {
          visit({1, from * ppn_ + sender_[pair(from, to)], to * ppn_ + receiver_[pair(from, to)],
                 volume_[pair(from, to)]});
        }
      }
    }
    for (std::size_t k = 0; k < first.size(); ++k) {
      const int from = static_cast<int>(k) / ppn_;
      const int to = from / ppn_ * ppn_ + static_cast<int>(k) % ppn_;
      for (const auto& [stage, values] : {std::make_pair(0, first[k]), std::make_pair(2, last[k])}) {
        if (values > 0) {
          visit({stage, from, to, values});
        }
      }
    }
  }

 private:
  std::size_t pair(int from, int to) const { return static_cast<std::size_t>(from) * nodes_ + to; }

  /// Calls use(value) for each value of a rank, with the other ranks that need it in destinations_.
  template <class Use>
  void forEachValue(int from, const Use& use) {
    const std::int64_t begin = static_cast<std::int64_t>(from) * matrix_.rowsPerRank;
    for (std::int64_t value = begin; value < begin + matrix_.rowsPerRank; ++value) {
      destinations_.clear();
      for (int entry = 0; entry < matrix_.entries; ++entry) {
        const int rank = matrix_.rank(matrix_.row(value, entry));
        if (rank != from && rankSeen_[rank] != value) {
          rankSeen_[rank] = value;
          destinations_.push_back(rank);
        }
      }
      use(value);
    }
    std::fill(rankSeen_.begin(), rankSeen_.end(), -1);
  }

  void choosePairs() {
    volume_.assign(pair(nodes_, 0), 0);
    for (int from = 0; from < matrix_.ranks; ++from) {
      const int home = from / ppn_;
      forEachValue(from, [&](std::int64_t value) {
        for (const int rank : destinations_) {
          const int node = rank / ppn_;
          if (node != home && nodeSeen_[node] != value) {
            nodeSeen_[node] = value;
            ++volume_[pair(home, node)];
          }
        }
      });
    }
    sender_.assign(volume_.size(), 0);
    receiver_.assign(volume_.size(), 0);
    std::vector<int> order(nodes_);
    for (int node = 0; node < nodes_; ++node) {
      const auto byVolume = [&](const auto& key) {
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return volume_[key(a)] > volume_[key(b)]; });
      };
      const auto to = [&](int other) { return pair(node, other); };
      const auto from = [&](int other) { return pair(other, node); };
      byVolume(to);
      for (int k = 0; k < nodes_; ++k) {
        sender_[to(order[k])] = k % ppn_;
      }
      byVolume(from);
      for (int k = 0; k < nodes_; ++k) {
        receiver_[from(order[k])] = ppn_ - 1 - k % ppn_;
      }
    }
  }

  RandomMatrix matrix_;
  int ppn_;
  int nodes_;
  std::vector<std::int64_t> rankSeen_;  // the last value that this rank was found to need
  std::vector<std::int64_t> nodeSeen_;
  std::vector<int> destinations_;
  std::vector<long> volume_;  // by pair of nodes
  std::vector<int> sender_, receiver_;
};

nlohmann::ordered_json toJson(const RouteResult& r) {
  nlohmann::ordered_json json{{"route", r.route},
                              {"inter_messages_max", r.sent.max.interNodeMessages},
                              {"inter_messages_total", r.sent.total.interNodeMessages},
                              {"inter_bytes_max", 8 * r.sent.max.interNodeValues},
                              {"inter_bytes_total", 8 * r.sent.total.interNodeValues},
                              {"on_messages_max", r.sent.max.onNodeMessages},
                              {"on_bytes_max", 8 * r.sent.max.onNodeValues},
                              {"modelled_seconds", r.modelledSeconds}};
  for (const auto& [kind, time] : r.simulatedSeconds) {
    json["simulated_seconds"][kind] = time;
  }
  return json;
}

RouteResult count(const VirtualCluster& cluster, const std::string& name, int stages,
                  const std::function<void(const Visit&)>& visitAll) {
  TrafficCounter counter(cluster.topology());
  ModelAccumulator model(cluster.machine(), cluster.topology(), stages);
  visitAll([&](const VirtualMessage& m) {
    counter.add(m);
    model.add(m.stage, m.from, m.to, 8 * m.values);
  });
  return {name, counter.sent(), counter.received(), model.time(), {}, {}};
}

/// What a halo costs, and the least that a replay by SimGrid can take.
struct Streamed {
  RouteResult result;
  double leastReplaySeconds = 0;
};

class StreamedRoutes {
 public:
  /// \param simulated the routes whose messages SimGrid replays on the networks of the cluster
  StreamedRoutes(const VirtualCluster& cluster, const RandomMatrix& matrix, int ppn, std::vector<std::string> simulated)
      : cluster_(cluster), ranks_(matrix.ranks), messages_(matrix, ppn), simulated_(std::move(simulated)) {}

  std::vector<Streamed> results() {
    return {follow("standard", 1, [this](const Visit& visit) { messages_.standard(visit); }),
            follow("three-step", 3, [this](const Visit& visit) { messages_.threeStep(visit); })};
  }

 private:
  Streamed follow(const std::string& name, int stages, const std::function<void(const Visit&)>& visitAll) {
    // Messages are kept only for SimGrid: at 32,768 ranks the standard route has a billion.
    const bool replay =
        !cluster_.networks().empty() && std::find(simulated_.begin(), simulated_.end(), name) != simulated_.end();
    LeastReplayTime least(ranks_);
    std::vector<VirtualMessage> kept;
    RouteResult result = count(cluster_, name, stages, [&](const Visit& visit) {
      visitAll([&](const VirtualMessage& message) {
        visit(message);
        least.add(message.from, message.to, 8 * message.values);
        if (replay) {
          kept.push_back(message);
        }
      });
    });
    if (replay) {
      cluster_.simulate(
          kept, "random", [](const std::string& what) { std::cerr << what << '\n'; }, result);
    }
    for (const auto& [kind, seconds] : result.simulatedSeconds) {
      if (seconds < least.seconds()) {
        throw Error(name + " took SimGrid's " + kind +
                    " less than its ranks are busy at least: " + format("%g s against %g s", seconds, least.seconds()));
      }
    }
    return {std::move(result), least.seconds()};
  }

  const VirtualCluster& cluster_;
  int ranks_;
  StreamedMessages messages_;
  std::vector<std::string> simulated_;
};

/// What is counted in a stream must be what is counted from the stored matrix.
void compare(const RouteResult& a, const RouteResult& b) {
  nlohmann::ordered_json left = toJson(a);
  nlohmann::ordered_json right = toJson(b);
  for (auto* const json : {&left, &right}) {
    json->erase("simulated_seconds");
  }
  if (left != right) {
    throw Error("streamed and stored counts differ: " + left.dump() + " " + right.dump());
  }
}

double cpuSeconds(int who) {
  rusage used{};
  getrusage(who, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

void run(const ClusterOptions& options, int ppn, const RandomMatrix& matrix, bool stored,
         const std::vector<std::string>& simulated) {
  const VirtualCluster cluster(options);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Streamed> results = StreamedRoutes(cluster, matrix, ppn, simulated).results();
  if (stored) {
    ClusterOptions counting = options;
    counting.platforms.clear();
    const std::vector<RouteResult> all = VirtualCluster(counting).compare(matrix.halo(), "random", [](const auto&) {});
    compare(results[0].result, all[0]);
    compare(results[1].result, all[1]);
  }
  nlohmann::ordered_json json{{"commit", KOMVOS_COMMIT},
                              {"ranks", matrix.ranks},
                              {"ranks_per_node", ppn},
                              {"rows", matrix.rows()},
                              {"entries", matrix.entries},
                              {"seed", matrix.seed},
                              {"machine", cluster.machine().name},
                              {"stored", stored},
                              {"routes", nlohmann::ordered_json::array()}};
  for (const Streamed& route : results) {
    json["routes"].push_back(toJson(route.result));
    if (!options.platforms.empty()) {
      json["routes"].back()["least_replay_seconds"] = route.leastReplaySeconds;
    }
  }
  for (const SimulatedNetwork& network : cluster.networks()) {
    json["networks"].push_back(network.describe());
  }
  json["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  json["cpu_seconds"] = cpuSeconds(RUSAGE_SELF) + cpuSeconds(RUSAGE_CHILDREN);
  std::cout << json.dump() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Halo of a random matrix along the standard and the three-step route; one line of JSON to stdout");
  ClusterOptions options;
  int ppn = 16;
  options.routes = {"standard", "three-step"};
  options.maxFlowsPerLink = 64;
  std::vector<std::string> simulated = options.routes;
  std::int64_t rows = 0;
  int entries = 100;
  std::uint64_t seed = 1;
  bool stored = false;
  app.add_option("--ranks", options.ranks, "virtual ranks")->required()->check(CLI::PositiveNumber);
  app.add_option("--ranks-per-node", ppn, "(16)")->check(CLI::PositiveNumber);
  app.add_option("--rows", rows, "of the matrix")->required()->check(CLI::Range(1, INT32_MAX - 1));
  app.add_option("--entries", entries, "in each column (100)")->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "(1)");
  app.add_flag("--stored", stored, "count from the stored matrix too, and compare");
  CLI::Option* const simgrid = app.add_option("--simgrid", options.platforms, "torus, fat-tree");
  app.add_option("--simulated", simulated, "routes that SimGrid replays (standard three-step)")
      ->check(CLI::IsMember(options.routes))
      ->needs(simgrid);
  app.add_option("--max-flows-per-link", options.maxFlowsPerLink, "messages that share a link at once, 0 all (64)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--time-step", options.timeStep, "seconds within which SimGrid takes events together (1e-8)")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-concurrent-sends", options.maxConcurrentSends,
                 "sends of a rank that are under way at once, 0 all (0)")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.ranks % ppn != 0 || rows < options.ranks) {
      throw BadInput("ranks must fill the nodes, and rows the ranks: " + std::to_string(options.ranks) + " ranks, " +
                     std::to_string(ppn) + " on a node, " + std::to_string(rows) + " rows");
    }
    options.ranksPerNode = std::to_string(ppn);
    run(options, ppn, {options.ranks, static_cast<int>(rows / options.ranks), entries, seed}, stored, simulated);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
