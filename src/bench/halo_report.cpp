#include "bench/halo_report.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "Komvos_Statistics.hpp"
#include "support/text_format.hpp"
#include "support/traffic_json.hpp"

namespace Komvos::Program {

namespace {

using Impl::median;
using Impl::quantile;
using Json = nlohmann::ordered_json;

const char* const tableHead =
    "    variant                          us   quartiles           messages, bytes between nodes     gain   set-up: "
    "us, "
    "messages, bytes   pays after\n";

Json summary(const std::vector<double>& values) {
  return {{"median", median(values)},
          {"lower_quartile", quantile(values, 0.25)},
          {"upper_quartile", quantile(values, 0.75)}};
}

const TimedVariant& baselineOf(const HaloTimes& times) { return times.variants[times.bestBaseline]; }
const HaloReport& tunedReport(const HaloTimes& times) { return *times.variants.back().report; }

/// Sample by sample.
std::vector<double> gains(const HaloTimes& times, const TimedVariant& variant) {
  return Impl::ratios(baselineOf(times).seconds, variant.seconds);
}

const HaloCandidate& chosenOf(const HaloReport& report) {
  return *std::find_if(report.candidates.begin(), report.candidates.end(),
                       [](const HaloCandidate& one) { return one.rejectionReason.empty(); });
}

/// The cost of making the variant, and after how many exchanges it pays against the fastest baseline.
std::string setUpText(const HaloTimes& times, const TimedVariant& variant) {
  if (!variant.report) {
    return "";
  }
  const HaloCandidate& chosen = chosenOf(*variant.report);
  const double cost = variant.exchangeSeconds + (variant.isTuned ? variant.report->setupSeconds : chosen.buildSeconds);
  const double saved = median(baselineOf(times).seconds) - median(variant.seconds);
  const std::string pays = variant.isBaseline ? ""
                           : saved > 0        ? format("%10.0f", std::ceil(cost / saved))
                                              : "     never";
  return format("%10.0f %8ld %9ld   ", 1e6 * cost, chosen.buildMessages, variant.memoryBytes) + pays;
}

std::string tableRow(const HaloTimes& times, const TimedVariant& variant) {
  const RankTraffic& traffic = variant.report ? variant.report->chosen.total : tunedReport(times).standard.total;
  return format("  %s %-24s %8.1f   %8.1f %8.1f   %8ld %12ld   %8.2f   %s\n", variant.isBaseline ? "b" : " ",
                variant.name.c_str(), 1e6 * median(variant.seconds), 1e6 * quantile(variant.seconds, 0.25),
                1e6 * quantile(variant.seconds, 0.75), traffic.interNodeMessages, bytes(traffic.interNodeValues),
                median(gains(times, variant)), setUpText(times, variant).c_str());
}

Json variantToJson(const HaloTimes& times, const TimedVariant& variant) {
  Json json{{"name", variant.name}, {"baseline", variant.isBaseline}, {"seconds", summary(variant.seconds)}};
  json["gain"] = summary(gains(times, variant));
  if (variant.report) {
    const HaloCandidate& chosen = chosenOf(*variant.report);
    json["route"] = variant.report->route;
    json["on_node"] = toString(variant.report->intraNode);
    json["set_up"] = {{"seconds", chosen.buildSeconds},
                      {"messages_max", chosen.buildMessages},
                      {"plan_bytes_max", chosen.planBytes},
                      {"exchange_bytes_max", variant.memoryBytes},
                      {"exchange_seconds", variant.exchangeSeconds},
                      {"seconds_with_tuning", variant.report->setupSeconds}};
    json["traffic"] = trafficToJson(variant.report->chosen);
  }
  return json;
}

}  // namespace

std::string toText(const HaloTimes& times) {
  const HaloReport& tuned = tunedReport(times);
  std::string text = format("%s: %lld rows, at most %ld neighbours; auto is %s, %s\n", times.name.c_str(), times.rows,
                            tuned.standard.max.neighbours, tuned.route.c_str(), toString(tuned.intraNode).c_str());
  text += tableHead;
  for (const TimedVariant& variant : times.variants) {
    text += tableRow(times, variant);
  }
  return text;
}

Json toJson(const HaloTimes& times) {
  Json json{{"name", times.name},
            {"rows", times.rows},
            {"entries", times.entries},
            {"neighbours_max", tunedReport(times).standard.max.neighbours},
            {"best_baseline", baselineOf(times).name},
            {"variants", Json::array()}};
  for (const TimedVariant& variant : times.variants) {
    json["variants"].push_back(variantToJson(times, variant));
  }
  return json;
}

}  // namespace Komvos::Program
