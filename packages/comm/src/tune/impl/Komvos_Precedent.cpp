#include "Komvos_Precedent.hpp"

#include <unordered_map>
#include <utility>

#include "Komvos_Hash.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

/// What was decided on a communicator, the same on all its ranks: by a hash of pattern and options.
struct Precedent::Earlier {
  struct Decision {
    TuningDecision chosen;
    std::vector<TuningDecision> lost;
  };
  std::unordered_map<std::uint64_t, Decision> byHalo;
};

Precedent::Precedent(MPI_Comm comm, const Pattern& pattern, ResolvedOptions& options,
                     std::shared_ptr<TuningCache> cache)
    : remembers_(options.reuseDecisions && !options.tuningCache && options.leavesOpen()), cache_(std::move(cache)) {
  const auto follow = [&options](const TuningDecision& decision) {
    options.route = decision.route;
    options.pairing = decision.pairing;
    options.intraNode = decision.intraNode;
  };
  if (options.tuningCache || options.someRankRecords || remembers_) {
    key_ = makeHaloKey(comm, pattern, *options.topology.nodes);
  }
  if (options.tuningCache) {
    follow(options.tuningCache->find(key_));
  } else if (remembers_) {
    const std::shared_ptr<PrivateComm> ours = PrivateComm::of(comm);
    struct Holder {
      std::shared_ptr<Earlier> earlier = std::make_shared<Earlier>();
    };
    earlier_ = ours->attached<Holder>([] { return std::make_shared<Holder>(); }).earlier;
    hash_ = mix(key_.pattern, options.fingerprint());
    const auto found = earlier_->byHalo.find(hash_);
    if (found != earlier_->byHalo.end()) {
      reused_ = true;
      lost_ = found->second.lost;
      follow(found->second.chosen);
    }
  }
}

void Precedent::keep(const TuningDecision& decision, const std::vector<TuningDecision>& lost) {
  if (cache_) {
    cache_->add(key_, decision);
  }
  if (remembers_) {
    earlier_->byHalo[hash_] = {decision, lost};
  }
}

}  // namespace Komvos::Impl
