#include "Komvos_HaloReport.hpp"

#include <cstdio>

namespace Komvos {

namespace {

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 1e6 * seconds);
  return seconds > 0 ? text : "-";
}

/// What online tuning tried, a line each.
std::string trials(const HaloReport& report) {
  std::string text;
  char line[256];
  for (const HaloTrial& one : report.trials) {
    std::snprintf(line, sizeof line, "  uses %ld to %ld, %s: %s, %s takes %s us, in use %s us: %s\n", one.firstUse,
                  one.lastUse,
                  one.columns == 1   ? "1 column"
                  : one.columns == 2 ? "2 or 3 columns"
                                     : "4 columns or more",
                  toString(one.route).c_str(), toString(one.intraNode).c_str(), microseconds(one.seconds).c_str(),
                  microseconds(one.secondsInUse).c_str(), one.outcome.c_str());
    text += line;
  }
  if (report.online) {
    std::snprintf(
        line, sizeof line, "  %ld uses, %s; tuning took %s us more than without\n", report.uses,
        report.settledAt > 0 ? ("settled after use " + std::to_string(report.settledAt)).c_str() : "not settled yet",
        report.tuningSeconds > 0 ? microseconds(report.tuningSeconds).c_str() : "0");
    text += line;
  }
  return text;
}

}  // namespace

std::string describe(const HaloReport& report) {
  std::string text =
      "  route               on node         messages between nodes   bytes between nodes   modelled    "
      "measured\n                                      most     total           most     total         us"
      "          us\n";
  for (const HaloCandidate& one : report.candidates) {
    char line[256];
    std::snprintf(line, sizeof line, "%c %-18s  %-13s %6ld  %8ld     %10ld  %8ld  %9s   %9s  %s\n",
                  one.rejectionReason.empty() ? '*' : ' ', toString(one.route).c_str(), toString(one.intraNode).c_str(),
                  one.traffic.max.interNodeMessages, one.traffic.total.interNodeMessages,
                  8 * one.traffic.max.interNodeValues, 8 * one.traffic.total.interNodeValues,
                  microseconds(one.modelledSeconds).c_str(), microseconds(one.measuredSeconds).c_str(),
                  one.rejectionReason.c_str());
    text += line;
  }
  if (report.decisionReused) {
    text += "  decided when a halo of the same pattern was tuned before\n";
  }
  if (report.beganAsSimilar) {
    text += "  began as the tuning cache guesses, or as a similar halo was decided before\n";
  }
  if (report.beganAsForecast) {
    text += "  began along a route that promised much\n";
  }
  if (!report.tuningCacheNote.empty()) {
    text += "  " + report.tuningCacheNote + "\n";
  }
  text += trials(report);
  return text;
}

}  // namespace Komvos
