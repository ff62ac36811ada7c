#include "analyze/analyze_report.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "commit.hpp"
#include "support/text_format.hpp"
#include "support/traffic_json.hpp"

// How this works: `columns` says what the table has in each column, `cells` fills it, a row for each operator and
// route, and writeText and writeCsv print these cells. writeJson is independent of the table: it holds more, unrounded.
// All three are pure functions of the report; the closing sentence is made in analyze_conclusion.cpp.

namespace Komvos::Program {

namespace {

using Json = nlohmann::ordered_json;

struct Column {
  const char* name;
  std::string (*text)(const OperatorResult&, const RouteResult&);
};

std::string number(long long value) { return std::to_string(value); }
std::string seconds(double value) { return format("%.3e", value); }

// Bytes are those of one vector of doubles.
const Column columns[] = {
    {"level", [](const auto& op, const auto&) { return number(op.level); }},
    {"operator", [](const auto& op, const auto&) { return op.name; }},
    {"rows", [](const auto& op, const auto&) { return number(op.rows); }},
    {"route", [](const auto&, const auto& route) { return route.route; }},
    {"neighbours_max", [](const auto&, const auto& route) { return number(route.sent.max.neighbours); }},
    {"inter_messages_max", [](const auto&, const auto& route) { return number(route.sent.max.interNodeMessages); }},
    {"inter_messages_total", [](const auto&, const auto& route) { return number(route.sent.total.interNodeMessages); }},
    {"inter_bytes_max", [](const auto&, const auto& route) { return number(bytes(route.sent.max.interNodeValues)); }},
    {"inter_bytes_total",
     [](const auto&, const auto& route) { return number(bytes(route.sent.total.interNodeValues)); }},
    {"received_max", [](const auto&, const auto& route) { return number(route.received.max.interNodeMessages); }},
    {"on_messages_max", [](const auto&, const auto& route) { return number(route.sent.max.onNodeMessages); }},
    {"on_bytes_max", [](const auto&, const auto& route) { return number(bytes(route.sent.max.onNodeValues)); }},
    {"modelled_s", [](const auto&, const auto& route) { return seconds(route.modelledSeconds); }},
};

// With --set-up.
const Column columnsOfSetUp[] = {
    {"set_up_messages_max", [](const auto&, const auto& route) { return number(route.setUp->messagesMax); }},
    {"set_up_messages_total", [](const auto&, const auto& route) { return number(route.setUp->messages); }},
    {"set_up_bytes_total", [](const auto&, const auto& route) { return number(route.setUp->bytes); }},
    {"set_up_agreements", [](const auto&, const auto& route) { return number(route.setUp->agreements); }},
    {"set_up_modelled_s", [](const auto&, const auto& route) { return seconds(route.setUp->modelledSeconds); }},
};

/// Rows of cells; the first row holds the names of the columns.
using Cells = std::vector<std::vector<std::string>>;

Cells cells(const AnalyzeReport& report) {
  const std::vector<std::string> networks = report.simulatedKinds();
  std::vector<Column> all(std::begin(columns), std::end(columns));
  if (!report.operators.empty() && report.operators.front().standard().setUp) {
    all.insert(all.end(), std::begin(columnsOfSetUp), std::end(columnsOfSetUp));
  }
  Cells rows(1);
  for (const Column& column : all) {
    rows[0].emplace_back(column.name);
  }
  for (const std::string& network : networks) {
    rows[0].push_back(network + "_s");
  }
  for (const OperatorResult& op : report.operators) {
    for (const RouteResult& route : op.routes) {
      std::vector<std::string>& row = rows.emplace_back();
      for (const Column& column : all) {
        row.push_back(column.text(op, route));
      }
      for (const std::string& network : networks) {
        const auto found = route.simulatedSeconds.find(network);
        row.push_back(found == route.simulatedSeconds.end() ? "" : seconds(found->second));
      }
    }
  }
  return rows;
}

/// In columns that are as wide as their widest cell.
void printAligned(std::ostream& out, const Cells& rows) {
  std::vector<std::size_t> width(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      width[c] = std::max(width[c], row[c].size());
    }
  }
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      out << (c == 0 ? "" : "  ") << std::string(width[c] - row[c].size(), ' ') << row[c];
    }
    out << '\n';
  }
}

Json routeToJson(const RouteResult& route) {
  Json json{{"route", route.route},
            {"neighbours_max", route.sent.max.neighbours},
            {"sent", trafficToJson(route.sent)},
            {"received", trafficToJson(route.received)},
            {"sources_max", route.received.max.neighbours},
            {"modelled_seconds", route.modelledSeconds}};
  for (const auto& [network, time] : route.simulatedSeconds) {
    json["simulated_seconds"][network] = time;
  }
  if (route.setUp) {
    json["set_up"] = {{"rounds", route.setUp->rounds},     {"agreements", route.setUp->agreements},
                      {"messages", route.setUp->messages}, {"messages_max", route.setUp->messagesMax},
                      {"bytes", route.setUp->bytes},       {"modelled_seconds", route.setUp->modelledSeconds}};
  }
  return json;
}

Json operatorToJson(const OperatorResult& op) {
  Json json{{"level", op.level},
            {"operator", op.name},
            {"rows", op.rows},
            {"entries", op.entries},
            {"ranks_with_rows", op.ranksWithRows},
            {"needs", op.needs},
            {"fastest", op.fastest().route},
            {"routes", Json::array()}};
  for (const RouteResult& route : op.routes) {
    json["routes"].push_back(routeToJson(route));
  }
  return json;
}

}  // namespace

const RouteResult& OperatorResult::fastest() const {
  return *std::min_element(routes.begin(), routes.end(), [](const RouteResult& a, const RouteResult& b) {
    return a.modelledSeconds < b.modelledSeconds;
  });
}

double AnalyzeReport::standardSeconds() const {
  double sum = 0;
  for (const OperatorResult& op : operators) {
    sum += op.standard().modelledSeconds;
  }
  return sum;
}

double AnalyzeReport::fastestSeconds() const {
  double sum = 0;
  for (const OperatorResult& op : operators) {
    sum += op.fastest().modelledSeconds;
  }
  return sum;
}

std::vector<std::string> AnalyzeReport::simulatedKinds() const {
  std::vector<std::string> kinds;
  for (const OperatorResult& op : operators) {
    for (const RouteResult& route : op.routes) {
      for (const auto& [kind, time] : route.simulatedSeconds) {
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
          kinds.push_back(kind);
        }
      }
    }
  }
  return kinds;
}

void writeText(std::ostream& out, const AnalyzeReport& report) {
  out << report.problem << ", " << report.partition << " on " << report.cluster() << "\n\n";
  printAligned(out, cells(report));
  out << "\n_max is the largest value of any rank, in each column separately. Bytes and times are those of one vector "
         "of "
         "doubles.\n"
         "modelled_s is by the max-rate model: each stage lasts until the busiest rank has sent and received.\n";
  if (!report.operators.empty() && report.operators.front().standard().setUp) {
    out << "set_up_ is what planning takes once; its agreements, reductions and barriers, are not in its time.\n";
  }
  for (const std::string& network : report.networks) {
    out << (report.simulatedKinds().empty() ? "Trace for SimGrid: " : "SimGrid: ") << network << ".\n";
  }
  if (report.hierarchy) {
    out << "The hierarchy was set up in one process, so aggregates may span several ranks.\n";
  }
  out << '\n' << conclusion(report) << '\n';
}

void writeCsv(std::ostream& out, const AnalyzeReport& report) {
  for (const auto& row : cells(report)) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool quote = row[c].find(',') != std::string::npos;  // axis:C,X,Y,Z
      out << (c == 0 ? "" : ",") << (quote ? "\"" + row[c] + "\"" : row[c]);
    }
    out << '\n';
  }
}

void writeJson(std::ostream& out, const AnalyzeReport& report) {
  Json json{{"commit", KOMVOS_COMMIT},     {"problem", report.problem},   {"ranks", report.ranks},
            {"nodes", report.nodes},       {"topology", report.topology}, {"partition", report.partition},
            {"pairing", report.pairing},   {"machine", report.machine},   {"hierarchy", report.hierarchy},
            {"networks", report.networks}, {"operators", Json::array()}};
  for (const OperatorResult& op : report.operators) {
    json["operators"].push_back(operatorToJson(op));
  }
  json["standard_seconds"] = report.standardSeconds();
  json["fastest_seconds"] = report.fastestSeconds();
  json["conclusion"] = conclusion(report);
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace Komvos::Program
