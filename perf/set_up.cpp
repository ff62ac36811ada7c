// What does it take to plan a route: time, and messages of set-up?
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_Statistics.hpp"
#include "commit.hpp"

// How this works. Every rank computes the patterns of all ranks, so that nothing but planning communicates. A sample
// plans each route once, in turn; its time is the maximum over ranks.
namespace {

using namespace Komvos;
using Json = nlohmann::ordered_json;

struct Options {
  int ranksPerNode = 4;
  int samples = 30;
  std::string json = "-";
};

/// needs[r]: what rank r needs of other ranks, as (owner, owner's index).
using Needs = std::vector<std::set<std::pair<int, int>>>;

/// Each of a rank's rows has some entries in random columns.
Needs randomNeeds(int ranks, int rows, int entries) {
  std::mt19937 random(1);
  Needs needs(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int k = 0; k < rows * entries; ++k) {
      const int column = static_cast<int>(random() % static_cast<unsigned>(ranks * rows));
      if (column / rows != rank) {
        needs[rank].emplace(column / rows, column % rows);
      }
    }
  }
  return needs;
}

/// The ranks are the most compact grid of three dimensions, each has a cube of points, and a point needs the 26 others
/// around it.
Needs stencilNeeds(int ranks, int edge) {
  std::array<int, 3> grid{0, 0, 0};
  mpiCheck(MPI_Dims_create(ranks, 3, grid.data()), "MPI_Dims_create");
  const auto place = [&](const std::array<int, 3>& point) {
    int rank = 0, local = 0;
    for (int d = 0; d < 3; ++d) {
      rank = rank * grid[d] + point[d] / edge;
      local = local * edge + point[d] % edge;
    }
    return std::pair(rank, local);
  };
  Needs needs(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::array<int, 3> mine{rank / grid[2] / grid[1], rank / grid[2] % grid[1], rank % grid[2]};
    std::array<int, 3> at{};
    for (at[0] = mine[0] * edge - 1; at[0] <= (mine[0] + 1) * edge; ++at[0]) {
      for (at[1] = mine[1] * edge - 1; at[1] <= (mine[1] + 1) * edge; ++at[1]) {
        for (at[2] = mine[2] * edge - 1; at[2] <= (mine[2] + 1) * edge; ++at[2]) {
          bool isInside = true;
          for (int d = 0; d < 3; ++d) {
            isInside = isInside && at[d] >= 0 && at[d] < grid[d] * edge;
          }
          if (isInside && place(at).first != rank) {
            needs[rank].insert(place(at));
          }
        }
      }
    }
  }
  return needs;
}

Pattern patternOf(const Needs& needs, int rank, int rows) {
  Pattern pattern;
  pattern.rank = rank;
  pattern.numOwned = rows;
  for (const auto& [owner, local] : needs[rank]) {
    pattern.receives.push_back({{owner, local}, pattern.numTarget++});
  }
  for (std::size_t other = 0; other < needs.size(); ++other) {
    for (auto one = needs[other].lower_bound({rank, 0}); one != needs[other].end() && one->first == rank; ++one) {
      pattern.sends.push_back({static_cast<int>(other), one->second});
    }
  }
  pattern.normalize();
  return pattern;
}

Json measure(const Pattern& pattern, const NodeTopology& nodes, const Options& options) {
  const std::vector<RouteChoice> routes{RouteChoice::standard, RouteChoice::threeStep, RouteChoice::twoStep,
                                        RouteChoice::split, RouteChoice::axis};
  std::vector<std::vector<double>> seconds(routes.size());
  std::vector<std::array<long, 2>> messages(routes.size());    // most of a rank, total
  for (int sample = -1; sample < options.samples; ++sample) {  // the first one only warms up
    for (std::size_t i = 0; i < routes.size(); ++i) {
      MpiSetupTransport transport(MPI_COMM_WORLD);
      const auto route = makeRoute(routes[i], nodes, Pairing::byVolume, nullptr);
      mpiCheck(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
      const double start = MPI_Wtime();
      buildPlans(transport, nodes, *route, {pattern});
      double most = MPI_Wtime() - start;
      mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
      if (sample >= 0) {
        seconds[i].push_back(most);
      }
      const long sent = transport.messagesSent();
      mpiCheck(MPI_Allreduce(&sent, &messages[i][0], 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
      mpiCheck(MPI_Allreduce(&sent, &messages[i][1], 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    }
  }
  Json results = Json::array();
  for (std::size_t i = 0; i < routes.size(); ++i) {
    results.push_back({{"route", toString(routes[i])},
                       {"seconds", Impl::median(seconds[i])},
                       {"lower_quartile", Impl::quantile(seconds[i], 0.25)},
                       {"upper_quartile", Impl::quantile(seconds[i], 0.75)},
                       {"messages_of_a_rank", messages[i][0]},
                       {"messages", messages[i][1]}});
  }
  return results;
}

void run(const Options& options) {
  int rank = 0, ranks = 0;
  mpiCheck(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
  const NodeTopology nodes = NodeTopology::uniform(ranks, options.ranksPerNode);
  Json report{{"benchmark", "set-up"},
              {"commit", KOMVOS_COMMIT},
              {"ranks", ranks},
              {"nodes", nodes.numNodes()},
              {"samples", options.samples}};
  const int rows = 1000, coarseEdge = 3, fineEdge = 20;
  const std::vector<std::tuple<std::string, int, Needs>> cases{
      {"27 points, 27 rows a rank", coarseEdge * coarseEdge * coarseEdge, stencilNeeds(ranks, coarseEdge)},
      {"27 points, 8,000 rows a rank", fineEdge * fineEdge * fineEdge, stencilNeeds(ranks, fineEdge)},
      {"random, 25 entries a row, 1,000 rows a rank", rows, randomNeeds(ranks, rows, 25)}};
  for (const auto& [name, numOwned, needs] : cases) {
    const Json routes = measure(patternOf(needs, rank, numOwned), nodes, options);
    report["cases"].push_back({{"halo", name}, {"routes", routes}});
  }
  if (rank == 0) {
    std::ofstream file;
    std::ostream& out = options.json == "-" ? std::cout : (file.open(options.json), file);
    out << report.dump(1) << "\n" << std::flush;
    throwOnAllIfAny(MPI_COMM_SELF, out.good() ? "" : "cannot write " + options.json);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options;
  CLI::App app("Times the planning of each route");
  app.add_option("--ranks-per-node", options.ranksPerNode)->check(CLI::PositiveNumber);
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "set_up: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
