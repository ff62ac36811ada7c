/// \file Komvos_VirtualMessages.hpp
/// The messages of a halo exchange on virtual ranks, counted without building plans.
#pragma once

#include <functional>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_Traffic.hpp"
#include "Komvos_VirtualHalo.hpp"

namespace Komvos {

/// One message of a plan, as an observer of all ranks sees it.
struct VirtualMessage {
  int stage;  ///< of the route
  int from;
  int to;
  long values;  ///< times columns times sizeof(Scalar) = bytes
};

/// Counts the messages that buildPlans would make for this halo, by following every value along the route:
/// one copy of a value a message. Messages come by ascending sender, then receiver, then stage.
///
/// A route of one stage is counted sender by sender, in memory of a few bytes a rank. Of longer routes all messages are
/// kept until the end, 32 to 64 bytes each, and 96 while the table grows.
/// \param route prepared for this halo, where it needs that
/// \throws Error if the route loses a value
void visitMessages(const VirtualHalo& halo, const Route& route,
                   const std::function<void(const VirtualMessage&)>& visit);

/// Sums messages up by rank. Feed it the messages of visitMessages, in their order.
class TrafficCounter {
 public:
  explicit TrafficCounter(NodeTopology topology);
  void add(const VirtualMessage& message);

  /// As trafficOf(plans): what ranks send.
  Traffic sent() const;
  /// The same for what ranks receive; neighbours are those they receive from.
  Traffic received() const;

 private:
  NodeTopology topology_;
  std::vector<RankTraffic> sent_;
  std::vector<RankTraffic> received_;
  VirtualMessage last_{-1, -1, -1, 0};
};

}  // namespace Komvos
