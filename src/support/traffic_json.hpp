/// \file traffic_json.hpp
/// Traffic of halos of doubles in reports.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "Komvos_Traffic.hpp"

namespace Komvos::Program {

/// Bytes of so many doubles.
inline long bytes(long values) { return values * static_cast<long>(sizeof(double)); }

/// {"inter_node": {"messages_max", "messages_total", "bytes_max", "bytes_total"}, "on_node": ...}
nlohmann::ordered_json trafficToJson(const Traffic& traffic);

}  // namespace Komvos::Program
