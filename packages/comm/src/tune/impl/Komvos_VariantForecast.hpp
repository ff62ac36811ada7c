/// \file Komvos_VariantForecast.hpp
/// What the variants of a surveyed halo promise, as OnlineChoice wants it.
#pragma once

#include <optional>
#include <vector>

#include "Komvos_IntraNode.hpp"
#include "Komvos_OnlineChoice.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_RouteForecast.hpp"

namespace Komvos {

class NodeTopology;

namespace Impl {

struct MessageCosts;
struct SurveyedHalo;

/// The same on all ranks if the costs are.
class VariantForecast {
 public:
  VariantForecast(const SurveyedHalo& halo, const NodeTopology& nodes, const MessageCosts& costs);

  Forecast of(const RouteChoice& route, IntraNode intraNode, bool isPlanned) const;

  /// The best of these routes if it promises much beside the standard one, with vectors of so many columns.
  std::optional<RouteChoice> promising(const std::vector<RouteChoice>& routes, IntraNode intraNode, int columns) const;

 private:
  RouteForecast forecast_;
  bool inSeconds_;
  double planSeconds_;  // of a route
};

}  // namespace Impl

}  // namespace Komvos
