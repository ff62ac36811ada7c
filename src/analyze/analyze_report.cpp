#include "analyze/analyze_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commit.hpp"
#include "support/text_format.hpp"
#include "support/traffic_json.hpp"

namespace Komvos::Program {

namespace {

using Json = nlohmann::ordered_json;

/// What a table has in a column.
struct Column {
  const char* head;
  std::string (*text)(const OperatorResult&, const RouteResult&);
};

std::string number(long long value) { return std::to_string(value); }
std::string seconds(double value) { return format("%.3e", value); }

// The names of CSV. Bytes are those of one vector of doubles.
const Column columns[] = {
    {"level", [](const OperatorResult& o, const RouteResult&) { return number(o.level); }},
    {"operator", [](const OperatorResult& o, const RouteResult&) { return o.name; }},
    {"rows", [](const OperatorResult& o, const RouteResult&) { return number(o.rows); }},
    {"route", [](const OperatorResult&, const RouteResult& r) { return r.route; }},
    {"neighbours_max", [](const OperatorResult&, const RouteResult& r) { return number(r.sent.max.neighbours); }},
    {"inter_messages_max",
     [](const OperatorResult&, const RouteResult& r) { return number(r.sent.max.interNodeMessages); }},
    {"inter_messages_total",
     [](const OperatorResult&, const RouteResult& r) { return number(r.sent.total.interNodeMessages); }},
    {"inter_bytes_max",
     [](const OperatorResult&, const RouteResult& r) { return number(bytes(r.sent.max.interNodeValues)); }},
    {"inter_bytes_total",
     [](const OperatorResult&, const RouteResult& r) { return number(bytes(r.sent.total.interNodeValues)); }},
    {"received_max",
     [](const OperatorResult&, const RouteResult& r) { return number(r.received.max.interNodeMessages); }},
    {"on_messages_max", [](const OperatorResult&, const RouteResult& r) { return number(r.sent.max.onNodeMessages); }},
    {"on_bytes_max",
     [](const OperatorResult&, const RouteResult& r) { return number(bytes(r.sent.max.onNodeValues)); }},
    {"modelled_s", [](const OperatorResult&, const RouteResult& r) { return seconds(r.modelledSeconds); }},
};

/// The kinds of networks that were simulated.
std::vector<std::string> simulatedKinds(const AnalyzeReport& report) {
  std::vector<std::string> kinds;
  for (const OperatorResult& op : report.operators) {
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

/// All cells of all rows, heads first.
std::vector<std::vector<std::string>> table(const AnalyzeReport& report) {
  const std::vector<std::string> kinds = simulatedKinds(report);
  std::vector<std::vector<std::string>> rows(1);
  for (const Column& column : columns) {
    rows[0].emplace_back(column.head);
  }
  for (const std::string& kind : kinds) {
    rows[0].push_back(kind + "_s");
  }
  for (const OperatorResult& op : report.operators) {
    for (const RouteResult& route : op.routes) {
      rows.emplace_back();
      for (const Column& column : columns) {
        rows.back().push_back(column.text(op, route));
      }
      for (const std::string& kind : kinds) {
        const auto found = route.simulatedSeconds.find(kind);
        rows.back().push_back(found == route.simulatedSeconds.end() ? "" : seconds(found->second));
      }
    }
  }
  return rows;
}

std::string machineText(const AnalyzeReport& r) { return r.topology + " of " + r.machine; }

double standardSum(const AnalyzeReport& report) {
  double sum = 0;
  for (const OperatorResult& op : report.operators) {
    sum += op.routes.front().modelledSeconds;
  }
  return sum;
}

double fastestSum(const AnalyzeReport& report) {
  double sum = 0;
  for (const OperatorResult& op : report.operators) {
    sum += op.fastest().modelledSeconds;
  }
  return sum;
}

double saved(const OperatorResult& op) { return op.routes.front().modelledSeconds - op.fastest().modelledSeconds; }

std::string timesText(double before, double after) {
  return format("from %.3g to %.3g ms (%.2f times)", 1e3 * before, 1e3 * after, before / after);
}

Json routeToJson(const RouteResult& r) {
  Json json{{"route", r.route},
            {"neighbours_max", r.sent.max.neighbours},
            {"sent", trafficToJson(r.sent)},
            {"received", trafficToJson(r.received)},
            {"sources_max", r.received.max.neighbours},
            {"modelled_seconds", r.modelledSeconds}};
  for (const auto& [kind, time] : r.simulatedSeconds) {
    json["simulated_seconds"][kind] = time;
  }
  return json;
}

}  // namespace

const RouteResult& OperatorResult::fastest() const {
  return *std::min_element(routes.begin(), routes.end(), [](const RouteResult& a, const RouteResult& b) {
    return a.modelledSeconds < b.modelledSeconds;
  });
}

void writeText(std::ostream& out, const AnalyzeReport& report) {
  out << report.problem << ", " << report.partition << " on " << machineText(report) << "\n\n";
  const auto rows = table(report);
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
  out << "\nmax: of the rank with most, each by itself; bytes and times of one column of doubles.\n"
         "modelled: max-rate model, a stage lasts as long as the rank that is busiest sending or receiving.\n";
  for (const std::string& network : report.networks) {
    out << (simulatedKinds(report).empty() ? "trace for SimGrid: " : "SimGrid: ") << network << ".\n";
  }
  if (report.hierarchy) {
    out << "Hierarchy: set up in one process, aggregates do not end where ranks do.\n";
  }
  out << '\n' << conclusion(report) << '\n';
}

void writeCsv(std::ostream& out, const AnalyzeReport& report) {
  for (const auto& row : table(report)) {
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
    Json entry{{"level", op.level},
               {"operator", op.name},
               {"rows", op.rows},
               {"entries", op.entries},
               {"ranks_with_rows", op.ranksWithRows},
               {"needs", op.needs},
               {"fastest", op.fastest().route},
               {"routes", Json::array()}};
    for (const RouteResult& route : op.routes) {
      entry["routes"].push_back(routeToJson(route));
    }
    json["operators"].push_back(entry);
  }
  json["standard_seconds"] = standardSum(report);
  json["fastest_seconds"] = fastestSum(report);
  json["conclusion"] = conclusion(report);
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

namespace {

/// What SimGrid makes of the same choices, as a sentence that begins with a space; empty where nothing was simulated.
std::string simulatedGain(const AnalyzeReport& report) {
  std::string text;
  for (const std::string& kind : simulatedKinds(report)) {
    double before = 0;
    double after = 0;
    for (const OperatorResult& op : report.operators) {
      const auto& standard = op.routes.front().simulatedSeconds;
      const auto& fastest = op.fastest().simulatedSeconds;
      if (standard.count(kind) > 0 && fastest.count(kind) > 0) {
        before += standard.at(kind);
        after += fastest.at(kind);
      }
    }
    if (after > 0) {
      text += (text.empty() ? " SimGrid, for the same choices: " : "; ") + timesText(before, after) + " on its " + kind;
    }
  }
  return text.empty() ? "" : text + ".";
}

/// The sentence by the modelled times.
std::string modelledConclusion(const AnalyzeReport& report) {
  const double before = standardSum(report);
  const double after = fastestSum(report);
  const std::string where = " on " + machineText(report);
  if (before == 0) {
    return "There is nothing to exchange" + where + ".";
  }
  const double worthwhile = 1.1;
  const std::string what = report.operators.size() == 1 ? "the halo exchange of " + report.operators.front().label()
                                                        : "one halo exchange of every operator";
  if (before < worthwhile * after) {
    return "No: by the model, choosing a route for each halo would take " + what + " " + timesText(before, after) +
           where + ", which is not worth it.";
  }
  const auto most =
      std::max_element(report.operators.begin(), report.operators.end(),
                       [](const OperatorResult& a, const OperatorResult& b) { return saved(a) < saved(b); });
  std::string text =
      "Yes: by the model, choosing a route for each halo would take " + what + " " + timesText(before, after) + where;
  if (report.operators.size() == 1) {
    return text + ", with " + most->fastest().route + ".";
  }
  text += ", most of it at " + most->label() + ", with " + most->fastest().route + " " +
          timesText(most->routes.front().modelledSeconds, most->fastest().modelledSeconds);
  std::string stays;
  for (const OperatorResult& op : report.operators) {
    if (saved(op) == 0 && op.needs > 0) {
      stays += (stays.empty() ? "" : ", ") + op.label();
    }
  }
  return text + (stays.empty() ? "" : "; standard stays best at " + stays) + ".";
}

}  // namespace

std::string conclusion(const AnalyzeReport& report) { return modelledConclusion(report) + simulatedGain(report); }

}  // namespace Komvos::Program
