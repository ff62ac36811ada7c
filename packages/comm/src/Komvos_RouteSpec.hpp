/// \file Komvos_RouteSpec.hpp
/// Which route a halo takes, as a value, as text, and as the object that does it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "Komvos_AxisRoute.hpp"
#include "Komvos_NodePairing.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_Route.hpp"
#include "Komvos_SplitRoute.hpp"

namespace Komvos {

/// A route by its kind and numbers, independent of ranks and nodes.
struct RouteSpec {
  enum class Kind {
    standard,
    twoStep,
    threeStep,
    split,
    axis,
    sockets,
    automatic,  ///< not a route: measure the candidates on this halo, keep standard unless another is clearly faster
  };

  Kind kind = Kind::automatic;
  std::optional<AxisFactors> axis;                   ///< axis only; empty: AxisFactors::fitting
  int splitValues = SplitRoute::defaultSplitValues;  ///< split only

  friend bool operator==(const RouteSpec& a, const RouteSpec& b) {
    return a.kind == b.kind && a.axis == b.axis && a.splitValues == b.splitValues;
  }
  friend bool operator!=(const RouteSpec& a, const RouteSpec& b) { return !(a == b); }
};

/// \throws BadInput unless `text` is one of "standard", "two-step", "three-step", "split", "split:V", "axis",
/// "axis:C,X,Y,Z", "sockets", "auto", with positive numbers.
RouteSpec parseRouteSpec(const std::string& text);

/// The text that reads back as `spec`. Where the spec leaves nothing open it is the Route's name().
std::string toString(const RouteSpec& spec);

/// The route of `spec` for these ranks and nodes, not yet prepared.
/// \param sockets used by the kind sockets alone, may be null for others
/// \throws BadInput if spec is automatic, its numbers do not fit the number of ranks, or sockets are missing or do not
/// refine the nodes.
std::unique_ptr<Route> makeRoute(const RouteSpec& spec, const NodeTopology& nodes, const NodeTopology* sockets,
                                 Pairing pairing);

}  // namespace Komvos
