#include "Komvos_Traffic.hpp"

#include <algorithm>
#include <set>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Reduction.hpp"

namespace Komvos {

namespace {

constexpr long RankTraffic::*allFields[] = {&RankTraffic::neighbours, &RankTraffic::interNodeMessages,
                                            &RankTraffic::interNodeValues, &RankTraffic::onNodeMessages,
                                            &RankTraffic::onNodeValues};

}  // namespace

RankTraffic trafficOf(const ExchangePlan& plan) {
  RankTraffic traffic;
  std::set<int> peers;
  for (const PlanMessage& send : plan.sends) {
    peers.insert(send.peer);
    (send.onNode ? traffic.onNodeMessages : traffic.interNodeMessages) += 1;
    (send.onNode ? traffic.onNodeValues : traffic.interNodeValues) += send.count;
  }
  traffic.neighbours = static_cast<long>(peers.size());
  return traffic;
}

Traffic trafficOf(const std::vector<ExchangePlan>& plans) {
  Traffic traffic;
  for (const ExchangePlan& plan : plans) {
    const RankTraffic mine = trafficOf(plan);
    for (long RankTraffic::*const field : allFields) {
      traffic.max.*field = std::max(traffic.max.*field, mine.*field);
      traffic.total.*field += mine.*field;
    }
  }
  return traffic;
}

void reduceWith(Impl::Reduction& reduction, Traffic& traffic) {
  for (long RankTraffic::*const field : allFields) {
    reduction.maximum(traffic.max.*field);
    reduction.sum(traffic.total.*field);
  }
}

Traffic reduceTraffic(MPI_Comm comm, const RankTraffic& mine) {
  Traffic traffic{mine, mine};
  Impl::Reduction reduction;
  reduceWith(reduction, traffic);
  reduction.run(*Impl::PrivateComm::of(comm));
  return traffic;
}

}  // namespace Komvos
