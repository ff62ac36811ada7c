/// \file Komvos_RouteForecast.hpp
/// What routes will cost, from counts that every rank has before anything is planned.
#pragma once

#include "Komvos_HaloCounts.hpp"
#include "Komvos_IntraNode.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_RouteChoice.hpp"

namespace Komvos {

struct MachineModel;

namespace Impl {

/// Of this rank alone; none if the pattern names ranks that do not exist.
/// \param pattern normalized
HaloCounts countsOfRank(const Pattern& pattern, const NodeTopology& nodes);

/// The messages that the busiest rank sends one after the other, modelled by their latency and rate. It is rough: what
/// three steps combine is estimated, and contention is not known. Good for which route to try first, and for whether to
/// try it at all.
class RouteForecast {
 public:
  /// \param machine may be null: then latency and rate stand in a ratio that is usual in clusters
  RouteForecast(const HaloCounts& counts, const NodeTopology& nodes, const MachineModel* machine);

  /// Of one exchange of `columns` columns of double. In seconds with a machine, else in units of the latency between
  /// nodes.
  double of(const RouteChoice& route, IntraNode intraNode, int columns) const;

  /// Messages of one rank between nodes, along the standard route.
  long messagesBetweenNodes() const { return counts_.ranksOffNode; }

 private:
  double between(double messages, double values, int columns) const;
  double onNode(double messages, double values, int columns) const;

  HaloCounts counts_;
  double numNodes_;
  double ranksPerNode_;
  int axisMessages_ = 0;
  int axisHops_ = 0;
  // Of a message between nodes, and of a step on a node.
  double latency_ = 1, secondsPerByte_ = 1.0 / 32768;
  double onNodeLatency_ = 0.5, onNodeSecondsPerByte_ = 0.25 / 32768;
};

/// The route of exchanges in the reverse direction. Sums have an order that depends on the route, so it must not depend
/// on anything measured: it follows from the counts alone, whatever the machine.
RouteChoice reverseRoute(const HaloCounts& counts, const NodeTopology& nodes);

}  // namespace Impl

}  // namespace Komvos
