#include "support/traffic_json.hpp"

#include <nlohmann/json.hpp>

namespace Komvos::Program {

nlohmann::ordered_json trafficToJson(const Traffic& t) {
  return {{"inter_node",
           {{"messages_max", t.max.interNodeMessages},
            {"messages_total", t.total.interNodeMessages},
            {"bytes_max", bytes(t.max.interNodeValues)},
            {"bytes_total", bytes(t.total.interNodeValues)}}},
          {"on_node",
           {{"messages_max", t.max.onNodeMessages},
            {"messages_total", t.total.onNodeMessages},
            {"bytes_max", bytes(t.max.onNodeValues)},
            {"bytes_total", bytes(t.total.onNodeValues)}}}};
}

}  // namespace Komvos::Program
