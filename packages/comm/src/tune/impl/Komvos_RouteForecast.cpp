#include "Komvos_RouteForecast.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "Komvos_AxisFactors.hpp"
#include "Komvos_SplitRoute.hpp"

namespace Komvos::Impl {

namespace {

constexpr double bytesPerValue = sizeof(double);

/// What goes to one rank of another node.
struct OffNode {
  int node;
  const Pattern::Send *begin, *end;
};

}  // namespace

HaloCounts countsOfRank(const Pattern& pattern, const NodeTopology& nodes) {
  HaloCounts counts;
  const int here = nodes.nodeOf(pattern.rank);
  std::vector<OffNode> others;
  const Pattern::Send* const end = pattern.sends.data() + pattern.sends.size();
  for (const Pattern::Send *first = pattern.sends.data(), *last; first != end; first = last) {
    last = std::find_if(first, end, [&](const auto& send) { return send.destination != first->destination; });
    const int node = nodes.nodeOf(first->destination);
    if (node == here) {
      ++counts.ranksOnNode;
      counts.valuesOnNode += last - first;
    } else {
      ++counts.ranksOffNode;
      counts.valuesOffNode += last - first;
      others.push_back({node, first, last});
    }
  }
  std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  std::vector<int> lastNode(pattern.numOwned, -1);  // that a value goes to
  int node = -1;
  for (const OffNode& one : others) {
    counts.nodes += one.node != node ? 1 : 0;
    node = one.node;
    for (const Pattern::Send* send = one.begin; send != one.end; ++send) {
      counts.valuesOfNodes += lastNode[send->local] != node ? 1 : 0;
      lastNode[send->local] = node;
    }
  }
  return counts;
}

RouteForecast::RouteForecast(const HaloCounts& counts, const NodeTopology& nodes, const MessageCosts& costs)
    : counts_(counts),
      numNodes_(nodes.numNodes()),
      ranksPerNode_(std::max(1.0, static_cast<double>(nodes.numRanks()) / nodes.numNodes())),
      costs_(costs) {
  const AxisFactors grid = AxisFactors::fitting(nodes);
  for (const int length : {grid.x, grid.y, grid.z}) {
    axisMessages_ += length - 1;
    axisHops_ += length > 1 ? 1 : 0;
  }
}

double RouteForecast::between(double messages, double values, int columns) const {
  return messages * costs_.latency + values * columns * bytesPerValue * costs_.perByte;
}

double RouteForecast::onNode(double messages, double values, int columns) const {
  return messages * costs_.onNodeLatency + values * columns * bytesPerValue * costs_.onNodePerByte;
}

/// A route that combines gathers on the node, sends between nodes, and scatters on the node.
double RouteForecast::of(const RouteChoice& route, IntraNode intraNode, int columns) const {
  using Kind = RouteChoice::Kind;
  const auto values = static_cast<double>(counts_.valuesOfNodes);  // of each rank, combined
  // The ranks of a node have many of their nodes in common.
  const double nodesOfNode = std::min(numNodes_ - 1, 2.0 * static_cast<double>(counts_.nodes));
  const double gatherAndScatter = counts_.ranksOffNode > 0 ? onNode(2, 2 * values, columns) : 0;
  double seconds = counts_.ranksOnNode > 0 ? onNode(1, static_cast<double>(counts_.valuesOnNode), columns) : 0;
  switch (route.kind) {
    case Kind::twoStep:
      seconds += 0.5 * gatherAndScatter + between(static_cast<double>(counts_.nodes), values, columns);
      break;
    case Kind::threeStep:
    case Kind::sockets: {
      const double senders = std::max(1.0, std::min(ranksPerNode_, nodesOfNode));
      seconds += gatherAndScatter * (route.kind == Kind::sockets ? 1.25 : 1.0) +
                 between(std::ceil(nodesOfNode / ranksPerNode_), values * ranksPerNode_ / senders, columns);
      break;
    }
    case Kind::split: {
      const double valuesOfPair = values * ranksPerNode_ / std::max(1.0, nodesOfNode);
      const double pieces =
          std::clamp(valuesOfPair / route.splitValues.value_or(SplitRoute::defaultSplitValues), 1.0, ranksPerNode_);
      const double senders = std::max(1.0, std::min(ranksPerNode_, nodesOfNode * pieces));
      seconds += 1.1 * gatherAndScatter +
                 between(std::ceil(nodesOfNode * pieces / ranksPerNode_), values * ranksPerNode_ / senders, columns);
      break;
    }
    case Kind::axis:
      seconds += gatherAndScatter + between(axisMessages_, values * axisHops_, columns);
      break;
    default:
      seconds +=
          between(static_cast<double>(counts_.ranksOffNode), static_cast<double>(counts_.valuesOffNode), columns);
  }
  const bool slowOnNode = intraNode == IntraNode::messages && counts_.ranksOnNode > 0;
  return seconds + (slowOnNode ? onNode(0.5, 0, columns) : 0);
}

RouteChoice reverseRoute(const HaloCounts& counts, const NodeTopology& nodes) {
  constexpr double clearlyFaster = 0.6;
  const RouteForecast forecast(counts, nodes, MessageCosts());
  const auto seconds = [&](const RouteChoice& route) { return forecast.of(route, IntraNode::sharedMemory, 1); };
  return seconds(RouteChoice::threeStep) < clearlyFaster * seconds(RouteChoice::standard) ? RouteChoice::threeStep
                                                                                          : RouteChoice::standard;
}

}  // namespace Komvos::Impl
