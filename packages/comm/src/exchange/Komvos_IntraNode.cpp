#include "Komvos_IntraNode.hpp"

#include "Komvos_Error.hpp"

namespace Komvos {

std::string toString(IntraNode intraNode) {
  switch (intraNode) {
    case IntraNode::sharedMemory:
      return "shared-memory";
    case IntraNode::automatic:
      return "auto";
    default:
      return "messages";
  }
}

IntraNode parseIntraNode(const std::string& text) {
  for (const IntraNode one : {IntraNode::messages, IntraNode::sharedMemory, IntraNode::automatic}) {
    if (text == toString(one)) {
      return one;
    }
  }
  throw BadInput("'" + text + "' is not one of messages, shared-memory, auto");
}

}  // namespace Komvos
