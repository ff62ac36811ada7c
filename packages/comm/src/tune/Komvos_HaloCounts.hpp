/// \file Komvos_HaloCounts.hpp
/// What a halo demands of a rank, before any route is planned.
#pragma once

namespace Komvos {

/// What a halo demands of one rank, or the most of each number on any rank. Values have one column.
struct HaloCounts {
  long ranksOffNode = 0;   ///< ranks on other nodes that it sends to
  long valuesOffNode = 0;  ///< values for them, one for each rank that needs it
  long nodes = 0;          ///< other nodes that it sends to
  long valuesOfNodes = 0;  ///< values for them, one for each node that needs it
  long ranksOnNode = 0;    ///< ranks of its own node
  long valuesOnNode = 0;
};

}  // namespace Komvos
