/// \file Komvos_VirtualMessages.hpp
/// The messages of a halo exchange on simulated ranks, counted without building plans.
#pragma once

#include <functional>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_Traffic.hpp"
#include "Komvos_VirtualHalo.hpp"

namespace Komvos {

/// One message between two ranks.
struct VirtualMessage {
  int stage;  ///< of the route
  int from;
  int to;
  long values;  ///< of each vector that is exchanged
};

/// Counts the messages that buildPlans would make for this halo, by following every value along the route. A message
/// holds one copy of a value. Messages come by ascending sender, then receiver, then stage.
///
/// A route of one stage is counted sender by sender, in a few bytes per rank. The messages of longer routes are kept
/// until the end, in 32 to 64 bytes each, and up to 96 while the table grows.
/// \param route prepared for this halo if it needs preparation
/// \throws Error if the route loses a value
void visitMessages(const VirtualHalo& halo, const Route& route,
                   const std::function<void(const VirtualMessage&)>& visit);

/// Adds up the messages of each rank. Expects them in the order of visitMessages.
class TrafficCounter {
 public:
  explicit TrafficCounter(NodeTopology topology);
  void add(const VirtualMessage& message);

  /// What ranks send, as trafficOf(plans).
  Traffic sent() const;
  /// What ranks receive; neighbours are the ranks they receive from.
  Traffic received() const;

 private:
  NodeTopology topology_;
  std::vector<RankTraffic> sent_;
  std::vector<RankTraffic> received_;
  VirtualMessage last_{-1, -1, -1, 0};
};

}  // namespace Komvos
