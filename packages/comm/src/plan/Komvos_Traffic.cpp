#include "Komvos_Traffic.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"

namespace Komvos {

namespace {

using Fields = std::array<long, 5>;

Fields fields(const RankTraffic& traffic) {
  return {traffic.neighbours, traffic.interNodeMessages, traffic.interNodeValues, traffic.onNodeMessages,
          traffic.onNodeValues};
}

RankTraffic fromFields(const Fields& f) { return {f[0], f[1], f[2], f[3], f[4]}; }

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
  Fields max{};
  Fields total{};
  for (const ExchangePlan& plan : plans) {
    const Fields mine = fields(trafficOf(plan));
    for (std::size_t i = 0; i < mine.size(); ++i) {
      max[i] = std::max(max[i], mine[i]);
      total[i] += mine[i];
    }
  }
  return {fromFields(max), fromFields(total)};
}

Traffic reduceTraffic(MPI_Comm comm, const RankTraffic& traffic) {
  const Fields mine = fields(traffic);
  Fields max{};
  Fields total{};
  const int count = static_cast<int>(mine.size());
  MPI_Request both[2];
  mpiCheck(MPI_Iallreduce(mine.data(), max.data(), count, MPI_LONG, MPI_MAX, comm, &both[0]), "MPI_Iallreduce");
  mpiCheck(MPI_Iallreduce(mine.data(), total.data(), count, MPI_LONG, MPI_SUM, comm, &both[1]), "MPI_Iallreduce");
  mpiCheck(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), "MPI_Waitall");
  return {fromFields(max), fromFields(total)};
}

}  // namespace Komvos
