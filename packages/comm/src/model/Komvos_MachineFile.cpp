#include "Komvos_MachineFile.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>

#include "Komvos_Broadcast.hpp"
#include "Komvos_Error.hpp"

// How this works: the functions toJson write a machine part by part, and the functions read... read the same parts
// back, in the same order. They see the file through Value, which knows the path of a key within the file and throws
// BadInput with source, key and value whenever something is missing or out of range.

namespace Komvos {

namespace {

using Json = nlohmann::ordered_json;

const char* const formatName = "komvos-machine";
const int formatVersion = 1;
const std::array<const char*, numProtocols> protocolNames{"short", "eager", "rendezvous"};

Json finiteOrNull(double rate) { return std::isfinite(rate) ? Json(rate) : Json(nullptr); }

Json limitsToJson(const ProtocolLimits& limits) {
  return {{"short_max_bytes", limits.shortMax}, {"eager_max_bytes", limits.eagerMax}};
}

Json toJson(const OnNodeModel& model) {
  Json json = limitsToJson(model.limits);
  for (int p = 0; p < numProtocols; ++p) {
    const OnNodeModel::Parameters& one = model.parameters[p];
    json[protocolNames[p]] = {{"latency_s", one.latency}, {"bytes_per_s", finiteOrNull(one.rate)}};
  }
  return json;
}

Json toJson(const OffNodeModel& model) {
  Json json = limitsToJson(model.limits);
  json["measured_senders_per_node"] = model.measuredSenders;
  for (int p = 0; p < numProtocols; ++p) {
    const OffNodeModel::Parameters& one = model.parameters[p];
    json[protocolNames[p]] = {{"latency_s", one.latency},
                              {"bytes_per_s", finiteOrNull(one.rate)},
                              {"bytes_per_s_added_by_each_sender", one.addedRate},
                              {"bytes_per_s_of_node", finiteOrNull(one.nodeRate)}};
  }
  return json;
}

Json toJson(const MeasuredSeries& series) {
  Json points = Json::array();
  for (const MeasuredSeries::Point& point : series.points) {
    points.push_back({{"bytes", point.bytes}, {"seconds", point.seconds}});
  }
  return {{"between", series.onNode ? "ranks of a node" : "nodes"}, {"pairs", series.pairs}, {"points", points}};
}

/// A value in a file, with the way to it: every complaint names both.
class Value {
 public:
  Value(const Json& json, std::string source, std::string key)
      : json_(json), source_(std::move(source)), key_(std::move(key)) {}

  [[noreturn]] void refuse(const std::string& must) const {
    const std::string shown = json_.is_structured() ? json_.type_name() : json_.dump();
    throw BadInput(source_ + ": " + (key_.empty() ? "the text" : "'" + key_ + "'") + " is " + shown + ", must be " +
                   must);
  }

  Value at(const std::string& key) const {
    if (!json_.is_object()) {
      refuse("an object");
    }
    const std::string path = key_.empty() ? key : key_ + "." + key;
    const auto found = json_.find(key);
    if (found == json_.end()) {
      throw BadInput(source_ + ": '" + path + "' is missing");
    }
    return {*found, source_, path};
  }

  bool isNull() const { return json_.is_null(); }

  std::string text() const {
    if (!json_.is_string()) {
      refuse("a text");
    }
    return json_.get<std::string>();
  }

  double number() const {
    if (!json_.is_number() || !std::isfinite(json_.get<double>())) {
      refuse("a finite number");
    }
    return json_.get<double>();
  }

  double positive() const {
    if (!json_.is_number() || !std::isfinite(json_.get<double>()) || json_.get<double>() <= 0) {
      refuse("a number above 0");
    }
    return json_.get<double>();
  }

  double positiveOrUnlimited() const { return isNull() ? std::numeric_limits<double>::infinity() : positive(); }

  long integer(long least, long most = std::numeric_limits<long>::max()) const {
    const bool tooLarge = json_.is_number_unsigned() && json_.get<unsigned long>() > static_cast<unsigned long>(most);
    if (!json_.is_number_integer() || tooLarge || json_.get<long>() < least || json_.get<long>() > most) {
      refuse("an integer of " + std::to_string(least) + " or more");
    }
    return json_.get<long>();
  }

  std::vector<Value> elements() const {
    if (!json_.is_array()) {
      refuse("a list");
    }
    std::vector<Value> list;
    for (std::size_t i = 0; i < json_.size(); ++i) {
      list.emplace_back(json_[i], source_, key_ + "[" + std::to_string(i) + "]");
    }
    return list;
  }

 private:
  const Json& json_;
  std::string source_;
  std::string key_;
};

ProtocolLimits readLimits(const Value& value) {
  const ProtocolLimits limits{value.at("short_max_bytes").integer(0), value.at("eager_max_bytes").integer(0)};
  if (limits.eagerMax < limits.shortMax) {
    value.at("eager_max_bytes").refuse("at least short_max_bytes, " + std::to_string(limits.shortMax));
  }
  return limits;
}

OnNodeModel readOnNode(const Value& value) {
  OnNodeModel model{readLimits(value), {}};
  for (int p = 0; p < numProtocols; ++p) {
    const Value one = value.at(protocolNames[p]);
    model.parameters[p] = {one.at("latency_s").positive(), one.at("bytes_per_s").positiveOrUnlimited()};
  }
  return model;
}

OffNodeModel::Parameters readOffNode(const Value& value, int measuredSenders) {
  const OffNodeModel::Parameters one{value.at("latency_s").positive(), value.at("bytes_per_s").positiveOrUnlimited(),
                                     value.at("bytes_per_s_added_by_each_sender").number(),
                                     value.at("bytes_per_s_of_node").positiveOrUnlimited()};
  if (one.addedRate > one.rate) {
    value.at("bytes_per_s_added_by_each_sender").refuse("at most bytes_per_s: no sender is faster than one alone");
  }
  if (one.rate + (measuredSenders - 1) * one.addedRate <= 0) {
    value.at("bytes_per_s_added_by_each_sender")
        .refuse("larger: " + std::to_string(measuredSenders) + " senders would send nothing");
  }
  if (one.nodeRate < one.rate) {
    value.at("bytes_per_s_of_node").refuse("at least bytes_per_s: one sender alone reaches that");
  }
  return one;
}

OffNodeModel readOffNode(const Value& value) {
  OffNodeModel model{readLimits(value), {}, 1};
  model.measuredSenders =
      static_cast<int>(value.at("measured_senders_per_node").integer(1, std::numeric_limits<int>::max()));
  for (int p = 0; p < numProtocols; ++p) {
    model.parameters[p] = readOffNode(value.at(protocolNames[p]), model.measuredSenders);
  }
  return model;
}

MeasuredSeries readSeries(const Value& value) {
  const std::string between = value.at("between").text();
  if (between != "nodes" && between != "ranks of a node") {
    value.at("between").refuse("\"nodes\" or \"ranks of a node\"");
  }
  MeasuredSeries series{
      between != "nodes", static_cast<int>(value.at("pairs").integer(1, std::numeric_limits<int>::max())), {}};
  for (const Value& point : value.at("points").elements()) {
    series.points.push_back({point.at("bytes").integer(0), point.at("seconds").positive()});
  }
  return series;
}

}  // namespace

std::string machineToJson(const MachineModel& machine) {
  Json json{{"format", formatName}, {"version", formatVersion}, {"name", machine.name},
            {"date", machine.date}, {"host", machine.host},     {"on_node", toJson(machine.onNode)},
            {"off_node", nullptr},  {"measured", Json::array()}};
  if (machine.offNode) {
    json["off_node"] = toJson(*machine.offNode);
  }
  for (const MeasuredSeries& series : machine.measured) {
    json["measured"].push_back(toJson(series));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

MachineModel machineFromJson(const std::string& text, const std::string& source) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw BadInput(source + ": no JSON, or broken off: " + error.what());
  } catch (const Json::out_of_range& error) {
    throw BadInput(source + ": " + error.what());
  }
  const Value root(json, source, "");
  if (root.at("format").text() != formatName) {
    root.at("format").refuse(std::string("\"") + formatName + "\"");
  }
  if (root.at("version").integer(0) != formatVersion) {
    root.at("version").refuse(std::to_string(formatVersion) + ", the only one this library reads");
  }
  MachineModel machine;
  machine.name = root.at("name").text();
  machine.date = root.at("date").text();
  machine.host = root.at("host").text();
  machine.onNode = readOnNode(root.at("on_node"));
  if (const Value offNode = root.at("off_node"); !offNode.isNull()) {
    machine.offNode = readOffNode(offNode);
  }
  for (const Value& series : root.at("measured").elements()) {
    machine.measured.push_back(readSeries(series));
  }
  return machine;
}

MachineModel machineByNameOrFile(const std::string& what) {
  if (what == blueWaters().name) {
    return blueWaters();
  }
  std::ifstream file(what);
  if (!file || std::filesystem::is_directory(what)) {
    throw BadInput("machine '" + what + "': neither a file that can be read nor the name of a machine, blue-waters");
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return machineFromJson(text, what);
}

MachineModel machineByNameOrFile(MPI_Comm comm, const std::string& what) {
  int rank = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  std::string text;
  std::string error;
  try {
    text = rank == 0 ? machineToJson(machineByNameOrFile(what)) : "";
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm, error);
  return machineFromJson(Impl::broadcast(comm, text), what);
}

}  // namespace Komvos
