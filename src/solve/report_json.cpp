#include <nlohmann/json.hpp>

#include "solve/report.hpp"
#include "support/traffic_json.hpp"

namespace Komvos::Program {

namespace {

nlohmann::ordered_json secondsOrNull(double seconds) { return seconds > 0 ? nlohmann::ordered_json(seconds) : nullptr; }

nlohmann::ordered_json candidatesToJson(const HaloReport& report) {
  auto json = nlohmann::ordered_json::array();
  for (const HaloCandidate& one : report.candidates) {
    json.push_back({{"route", toString(one.route)},
                    {"on_node", toString(one.intraNode)},
                    {"modelled_seconds", secondsOrNull(one.modelledSeconds)},
                    {"measured_seconds", secondsOrNull(one.measuredSeconds)},
                    {"traffic", trafficToJson(one.traffic)},
                    {"not_chosen_because", one.rejectionReason}});
  }
  return json;
}

nlohmann::ordered_json trialsToJson(const HaloReport& report) {
  auto json = nlohmann::ordered_json::array();
  for (const HaloTrial& one : report.trials) {
    json.push_back({{"route", toString(one.route)},
                    {"on_node", toString(one.intraNode)},
                    {"columns_at_least", one.columns},
                    {"first_use", one.firstUse},
                    {"last_use", one.lastUse},
                    {"seconds", one.seconds},
                    {"seconds_in_use", one.secondsInUse},
                    {"outcome", one.outcome}});
  }
  return json;
}

nlohmann::ordered_json haloToJson(const HaloEntry& halo) {
  const HaloReport& r = halo.report;
  return {{"name", halo.name},
          {"used", halo.used},
          {"route", r.route},
          {"pairing", toString(r.pairing)},
          {"neighbours_max", r.standard.max.neighbours},
          {"standard", trafficToJson(r.standard)},
          {"chosen", trafficToJson(r.chosen)},
          {"standard_seconds", secondsOrNull(r.standardSeconds)},
          {"chosen_seconds", secondsOrNull(r.chosenSeconds)},
          {"setup_seconds", r.setupSeconds},
          {"on_node", toString(r.intraNode)},
          {"from_tuning_cache", r.fromTuningCache},
          {"tuning_cache_note", r.tuningCacheNote.empty() ? nullptr : nlohmann::ordered_json(r.tuningCacheNote)},
          {"decision_reused", r.decisionReused},
          {"began_as_similar", r.beganAsSimilar},
          {"began_as_forecast", r.beganAsForecast},
          {"uses", r.uses},
          {"settled_at_use", r.settledAt > 0 ? nlohmann::ordered_json(r.settledAt) : nullptr},
          {"tuning_seconds", r.tuningSeconds},
          {"trials", trialsToJson(r)},
          {"candidates", candidatesToJson(r)}};
}

nlohmann::ordered_json cyclesToJson(const CycleTimes& times) {
  auto levels = nlohmann::ordered_json::array();
  for (std::size_t level = 0; level < times.before.size(); ++level) {
    levels.push_back({{"level", level},
                      {"work_seconds_before", times.before[level].work},
                      {"exchange_seconds_before", times.before[level].exchange},
                      {"work_seconds", times.after[level].work},
                      {"exchange_seconds", times.after[level].exchange}});
  }
  return {{"samples", times.samples}, {"cycles_of_a_sample", times.cyclesOfSample}, {"levels", levels}};
}

}  // namespace

std::string toJson(const SolveReport& r) {
  nlohmann::ordered_json json{{"komvos_version", KOMVOS_VERSION},
                              {"problem", r.problem},
                              {"rows", r.rows},
                              {"entries", r.entries},
                              {"symmetric", r.symmetric},
                              {"ranks", r.ranks},
                              {"nodes", r.ranksPerNode.size()},
                              {"ranks_per_node", r.ranksPerNode},
                              {"topology_source", r.topologyGiven ? "given" : "detected"},
                              {"partition", r.partition},
                              {"route", r.route},
                              {"pairing", r.pairing},
                              {"on_node", r.intraNode},
                              {"tuning", r.tuning},
                              {"solver", r.solver},
                              {"preconditioner", r.preconditioner},
                              {"tolerance", r.tolerance},
                              {"max_iterations", r.maxIterations},
                              {"iterations", r.iterations},
                              {"restarts", r.restarts},
                              {"true_residual", r.trueResidual},
                              {"belos_residual", r.belosResidual},
                              {"belos_converged", r.belosConverged},
                              {"converged", r.converged},
                              {"relative_error", nullptr},
                              {"read_seconds", r.readSeconds},
                              {"setup_seconds", r.setupSeconds},
                              {"solve_seconds", r.solveSeconds},
                              {"kept_by_muelu", r.keptByMueLu},
                              {"halos", nlohmann::ordered_json::array()}};
  if (r.direct) {
    json["belos_residual"] = nullptr;
    json["belos_converged"] = nullptr;
    json["factors"] = {{"library", r.direct->library},
                       {"entries", r.direct->factorEntries},
                       {"operations", r.direct->operations},
                       {"analysis_seconds", r.direct->analysisSeconds},
                       {"factorization_seconds", r.direct->factorSeconds},
                       {"memory_max_bytes", r.direct->largestMemory}};
  }
  if (!r.history.computed.empty()) {
    json["residuals"] = {{"estimated", r.history.estimated}, {"computed", r.history.computed}};
  }
  if (r.cycles) {
    json["cycle"] = cyclesToJson(*r.cycles);
  }
  if (r.exactKnown) {
    json["relative_error"] = r.relativeError;
  }
  for (const HaloEntry& halo : r.halos) {
    json["halos"].push_back(haloToJson(halo));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace Komvos::Program
