// Who chooses the route of a halo: you, the tuner, or the tuning cache of an earlier run.
//
// A report says what was considered and what was chosen. Here two consecutive ranks are taken as a node, so that there
// is something to choose on one machine too; leave `topology` out on a cluster.
//
//   mpirun -n 4 ./03_choose_and_save_routes [FILE]    writes FILE, by default tuning_cache.json
#include <Komvos_NodeAwareCrsMatrix.hpp>
#include <Komvos_NodeTopology.hpp>
#include <Komvos_TuningCache.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "laplacian.hpp"

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  const std::string file = argc > 1 ? argv[1] : "tuning_cache.json";
  const auto matrix = example::laplacian(30, example::cyclicRows(30));
  const int rank = matrix->getComm()->getRank(), size = matrix->getComm()->getSize();
  if (size == 1) {
    std::printf("one rank has no halo; run this on several\n");
    return 0;
  }
  Komvos::ExchangeOptions common;
  common.topology = std::make_shared<const Komvos::NodeTopology>(Komvos::NodeTopology::uniform(size, 2));

  // Your choice: nothing is measured.
  Komvos::ExchangeOptions chosen = common;
  chosen.route = Komvos::RouteChoice::threeStep;
  chosen.intraNode = Komvos::IntraNode::messages;
  const auto threeStep = Komvos::makeNodeAware(matrix, chosen);

  // The tuner's choice, recorded and saved. By default it tries routes while the matrix is used; here before that.
  Komvos::ExchangeOptions tuned = common;
  tuned.tuning = Komvos::Tuning::exhaustive;
  tuned.record = std::make_shared<Komvos::TuningCache>();
  const auto automatic = Komvos::makeNodeAware(matrix, tuned);
  if (rank == 0) {
    std::printf("%s\n", Komvos::describe(automatic->importHalo()->report()).c_str());
    tuned.record->save(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // the file is complete

  // The choice of the earlier run: nothing is measured. A halo that is not in the cache would be tuned
  // (with requireTuningCache: an error).
  Komvos::ExchangeOptions cached = common;
  cached.tuningCache = std::make_shared<const Komvos::TuningCache>(Komvos::TuningCache::load(MPI_COMM_WORLD, file));
  const auto again = Komvos::makeNodeAware(matrix, cached);

  const Komvos::HaloReport &first = automatic->importHalo()->report(), &second = again->importHalo()->report();
  if (rank == 0) {
    std::printf("from %s: %s, set up in %.2g s in place of %.2g s\n", file.c_str(), second.route.c_str(),
                second.setupSeconds, first.setupSeconds);
  }
  const bool right = threeStep->importHalo()->report().route == "three-step" && second.route == first.route &&
                     second.intraNode == first.intraNode && example::productDifference(*matrix, *threeStep) < 1e-14 &&
                     example::productDifference(*matrix, *again) < 1e-14;
  return right ? 0 : 1;
}
