#include "Komvos_LevelOptions.hpp"

#include <algorithm>
#include <memory>

#include "Komvos_Error.hpp"
#include "Komvos_Hash.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"

namespace Komvos::Impl {

namespace {

/// Those of its ranks that `comm` has. \param rank of this process, in `topology` \note Collective on `comm`.
std::shared_ptr<const NodeTopology> restricted(const std::shared_ptr<const NodeTopology>& topology, int rank,
                                               MPI_Comm comm) {
  if (!topology) {
    return nullptr;
  }
  int here = 0;
  mpiCheck(MPI_Comm_rank(comm, &here), "MPI_Comm_rank");
  MPI_Comm node = MPI_COMM_NULL;
  mpiCheck(MPI_Comm_split(comm, topology->nodeOf(rank), here, &node), "MPI_Comm_split");
  auto fewer = std::make_shared<const NodeTopology>(NodeTopology::fromCommunicators(comm, node));
  MPI_Comm_free(&node);
  return fewer;
}

}  // namespace

bool haveTheSameRanks(MPI_Comm a, MPI_Comm b) {
  int result = MPI_UNEQUAL;
  mpiCheck(MPI_Comm_compare(a, b, &result), "MPI_Comm_compare");
  return result == MPI_IDENT || result == MPI_CONGRUENT;
}

LevelOptions::LevelOptions(MPI_Comm finest, const ExchangeOptions& options) {
  mpiCheck(MPI_Comm_rank(finest, &rank_), "MPI_Comm_rank");
  const ResolvedOptions all = resolveOptions(*PrivateComm::of(finest), options);
  if (all.reuseDecisions && !all.tuningCache) {
    fingerprint_ =
        mix(mix(all.fingerprint(), all.calibrates), static_cast<std::uint64_t>(resolveOverlap(options.overlap)));
  }
  ExchangeOptions resolved = all.toOptions();
  resolved.overlap = options.overlap;
  resolved.record = options.record;
  known_.push_back({finest, resolved});
}

const ExchangeOptions& LevelOptions::on(MPI_Comm level) {
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const OnLevel& one) { return haveTheSameRanks(one.comm, level); });
  if (found != known_.end()) {
    return found->options;
  }
  ExchangeOptions options = known_.front().options;
  options.topology = restricted(options.topology, rank_, level);
  options.sockets = restricted(options.sockets, rank_, level);
  known_.push_back({level, options});
  return known_.back().options;
}

}  // namespace Komvos::Impl
