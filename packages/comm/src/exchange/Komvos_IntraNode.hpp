/// \file Komvos_IntraNode.hpp
/// How values travel between ranks of one node, as a value and as text.
#pragma once

#include <string>

namespace Komvos {

/// How values travel between ranks of one node.
enum class IntraNode {
  messages,      ///< MPI messages, as between nodes
  sharedMemory,  ///< the receiver reads the sender's send buffer, in memory from MPI_Win_allocate_shared
  automatic,     ///< neither by itself: begins with shared memory where there is any; tuned like a route (Tuning)
};

/// "messages", "shared-memory" or "auto".
std::string toString(IntraNode intraNode);

/// \throws BadInput unless `text` is "messages", "shared-memory" or "auto".
IntraNode parseIntraNode(const std::string& text);

}  // namespace Komvos
