#include "Komvos_HaloReport.hpp"

#include <cstdio>

namespace Komvos {

namespace {

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 1e6 * seconds);
  return seconds > 0 ? text : "-";
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
    text += "  decided when a halo of the same pattern was measured before\n";
  }
  return text;
}

}  // namespace Komvos
