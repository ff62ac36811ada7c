/// \file Komvos_Traffic.hpp
/// What a plan costs: messages and values a rank sends, on its node and across the network.
#pragma once

#include <mpi.h>

#include <vector>

namespace Komvos {

struct ExchangePlan;
namespace Impl {
class Reduction;
}

/// What one rank sends in one exchange, or a sum or a maximum of that over ranks.
struct RankTraffic {
  long neighbours = 0;  ///< distinct ranks it sends to
  long interNodeMessages = 0;
  long interNodeValues = 0;  ///< times columns times sizeof(Scalar) = bytes
  long onNodeMessages = 0;
  long onNodeValues = 0;
};

/// Over all ranks. Each maximum is taken by itself: they may belong to different ranks.
struct Traffic {
  RankTraffic max;
  RankTraffic total;
};

RankTraffic trafficOf(const ExchangePlan& plan);
Traffic trafficOf(const std::vector<ExchangePlan>& plans);

/// \note Collective on `comm`.
Traffic reduceTraffic(MPI_Comm comm, const RankTraffic& mine);

/// The same together with other numbers. \param traffic with what this rank sends in both parts
void reduceWith(Impl::Reduction& reduction, Traffic& traffic);

}  // namespace Komvos
