/// \file Komvos_ExchangePlan.hpp
/// A halo exchange compiled along a route: one rank's messages, and what is in them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_Pattern.hpp"
#include "Komvos_Route.hpp"

namespace Komvos {

/// One message of a plan. Its values are `count` consecutive positions of the send or receive buffer.
struct PlanMessage {
  int peer;     ///< destination of a send, source of a receive
  int stage;    ///< of the route
  int first;    ///< first position in the buffer
  int count;    ///< values
  bool onNode;  ///< peer is on this rank's node
};

/// Everything one rank needs to run an exchange. Plain data, no MPI; positions count values of one column.
///
/// The send buffer holds all sends one after the other, the receive buffer all receives. A value in the send buffer
/// is an owned one, or one that arrived earlier and travels on.
struct ExchangePlan {
  /// A received value that this rank was waiting for.
  struct Delivery {
    int position;  ///< in the receive buffer
    int target;    ///< index into the target vector
    bool onNode;   ///< its owner is on this rank's node
  };

  std::string route;
  int rank = 0;
  int numRanks = 0;
  int numStages = 0;
  int numOwned = 0;                   ///< length of the owned vector
  int numTarget = 0;                  ///< length of the target vector
  std::vector<PlanMessage> sends;     ///< by stage, then destination
  std::vector<PlanMessage> receives;  ///< by stage, then source
  /// For each position of the send buffer: an owned index i >= 0, or ~p for position p of the receive buffer.
  std::vector<int> sendSource;
  /// For each position of the send buffer: the highest rank that the value reaches this way.
  std::vector<int> sendHighest;
  std::vector<Delivery> deliveries;  ///< by target

  int sendLength() const { return static_cast<int>(sendSource.size()); }
  int receiveLength() const { return receives.empty() ? 0 : receives.back().first + receives.back().count; }
  std::size_t memoryBytes() const;
};

/// Compiles patterns along a route, for each rank the transport plays.
///
/// The builder knows no route. Unless the route is direct, at every stage it asks `route` for the next hop of each
/// (value, destination), puts one copy of each value into one message per next hop, and sends the list of values and
/// destinations along that hop. Calls route.prepare().
/// \param patterns one for each rank the transport plays, normalized
/// \note Collective on the transport.
/// \throws BadInput on all ranks if a pattern is inconsistent, on any rank, or a route loses a value.
std::vector<ExchangePlan> buildPlans(SetupTransport& transport, const NodeTopology& topology, Route& route,
                                     const std::vector<Pattern>& patterns);

/// The same for patterns and nodes of which buildPlans() has made plans, along a route that is the same on all ranks:
/// saves the collective operation that makes sure of it. \note Collective. \throws BadInput if a route loses a value
std::vector<ExchangePlan> buildPlansAgain(SetupTransport& transport, const NodeTopology& topology, Route& route,
                                          const std::vector<Pattern>& patterns);

namespace Impl {

// Steps of buildPlans(), for callers who agree on several halos in one round.

/// The plan of the standard route, which every rank can make by itself. It can be used if balanceOf() is 0 in sum.
/// \throws BadInput on this rank if the pattern is inconsistent by itself
ExchangePlan standardPlan(const Pattern& pattern, const NodeTopology& topology, int numRanks);

/// What a rank sends, less what it needs, hashed: modulo 2^64, the sum over all ranks is 0 if their patterns fit.
std::uint64_t balanceOf(const Pattern& pattern);

/// Finds, with messages, which value is needed and not sent, or sent and not needed.
/// \param patterns of which each is consistent by itself, and that do not fit each other
/// \note Collective on the transport. \throws BadInput on all ranks
[[noreturn]] void throwMisfit(SetupTransport& transport, const NodeTopology& topology,
                              const std::vector<Pattern>& patterns);

}  // namespace Impl

}  // namespace Komvos
