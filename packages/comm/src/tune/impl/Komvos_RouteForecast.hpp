/// \file Komvos_RouteForecast.hpp
/// What routes will cost, from counts that every rank has before anything is planned.
#pragma once

#include "Komvos_HaloCounts.hpp"
#include "Komvos_IntraNode.hpp"
#include "Komvos_MessageCosts.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_RouteChoice.hpp"

namespace Komvos::Impl {

/// Of this rank alone.
/// \param pattern one that check() accepts
HaloCounts countsOfRank(const Pattern& pattern, const NodeTopology& nodes);

/// The messages that the busiest rank sends one after the other, modelled by their latency and rate. It is rough: what
/// three steps combine is estimated, and contention is not known. Good for which route to try first, and for whether to
/// try it at all.
class RouteForecast {
 public:
  RouteForecast(const HaloCounts& counts, const NodeTopology& nodes, const MessageCosts& costs);

  /// Of one exchange of `columns` columns of double, in the unit of the costs.
  double of(const RouteChoice& route, IntraNode intraNode, int columns) const;

 private:
  double between(double messages, double values, int columns) const;
  double onNode(double messages, double values, int columns) const;

  HaloCounts counts_;
  double numNodes_;
  double ranksPerNode_;
  int axisMessages_ = 0;
  int axisHops_ = 0;
  MessageCosts costs_;
};

/// The route of exchanges in the reverse direction. Sums have an order that depends on the route, so it must not depend
/// on anything measured: it follows from the counts alone, whatever the machine.
RouteChoice reverseRoute(const HaloCounts& counts, const NodeTopology& nodes);

}  // namespace Komvos::Impl
