/// \file Komvos_RouteChoice.hpp
/// Which route a halo takes, as a value, as text, and as the object that does it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "Komvos_AxisFactors.hpp"
#include "Komvos_Pairing.hpp"

namespace Komvos {

class NodeTopology;
class Route;

/// A route by its kind and numbers, independent of ranks and nodes.
struct RouteChoice {
  enum class Kind {
    standard,
    twoStep,
    threeStep,
    split,
    axis,
    sockets,
    automatic,  ///< not a route: one of these, as Tuning says
  };

  Kind kind = Kind::automatic;
  std::optional<AxisFactors> factors;  ///< axis only; empty: AxisFactors::fitting
  std::optional<int> splitValues;      ///< split only; empty: SplitRoute::defaultSplitValues

  static const RouteChoice standard, twoStep, threeStep, split, axis, sockets, automatic;

  friend bool operator==(const RouteChoice& a, const RouteChoice& b) {
    return a.kind == b.kind && a.factors == b.factors && a.splitValues == b.splitValues;
  }
  friend bool operator!=(const RouteChoice& a, const RouteChoice& b) { return !(a == b); }
};

inline constexpr RouteChoice RouteChoice::standard{Kind::standard, {}, {}};
inline constexpr RouteChoice RouteChoice::twoStep{Kind::twoStep, {}, {}};
inline constexpr RouteChoice RouteChoice::threeStep{Kind::threeStep, {}, {}};
inline constexpr RouteChoice RouteChoice::split{Kind::split, {}, {}};
inline constexpr RouteChoice RouteChoice::axis{Kind::axis, {}, {}};
inline constexpr RouteChoice RouteChoice::sockets{Kind::sockets, {}, {}};
inline constexpr RouteChoice RouteChoice::automatic{Kind::automatic, {}, {}};

/// \throws BadInput unless `text` is one of "standard", "two-step", "three-step", "split", "split:V", "axis",
/// "axis:C,X,Y,Z", "sockets", "auto", with positive numbers.
RouteChoice parseRoute(const std::string& text);

/// The text that reads back as `choice`. Where the choice leaves nothing open it is the Route's name().
std::string toString(const RouteChoice& choice);

/// The route of `choice` for these ranks and nodes, not yet prepared. Its class is in Komvos_Route.hpp.
/// \param sockets used by the kind sockets alone, may be null for others
/// \throws BadInput if choice is automatic, its numbers do not fit the number of ranks, or sockets are missing or do
/// not refine the nodes.
std::unique_ptr<Route> makeRoute(const RouteChoice& choice, const NodeTopology& nodes,
                                 Pairing pairing = Pairing::byVolume, const NodeTopology* sockets = nullptr);

}  // namespace Komvos
