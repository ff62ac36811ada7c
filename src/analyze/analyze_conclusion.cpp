// The closing sentence of `komvos analyze`.
#include <algorithm>

#include "analyze/analyze_report.hpp"
#include "support/text_format.hpp"

namespace Komvos::Program {

namespace {

/// Less than this factor is not worth choosing routes.
const double worthwhile = 1.1;

double savedSeconds(const OperatorResult& op) { return op.standard().modelledSeconds - op.fastest().modelledSeconds; }

std::string change(double before, double after) {
  return format("from %.3g to %.3g ms (a factor of %.2f)", 1e3 * before, 1e3 * after, before / after);
}

/// " Most is gained at 2 P, ... . Standard remains the fastest at 3 A."
std::string whereItHelps(const AnalyzeReport& report) {
  const auto most = std::max_element(
      report.operators.begin(), report.operators.end(),
      [](const OperatorResult& a, const OperatorResult& b) { return savedSeconds(a) < savedSeconds(b); });
  std::string text = " Most is gained at " + most->label() + ", with " + most->fastest().route + ": " +
                     change(most->standard().modelledSeconds, most->fastest().modelledSeconds) + ".";
  std::string unchanged;
  for (const OperatorResult& op : report.operators) {
    if (savedSeconds(op) == 0 && op.needs > 0) {
      unchanged += (unchanged.empty() ? "" : ", ") + op.label();
    }
  }
  return unchanged.empty() ? text : text + " Standard remains the fastest at " + unchanged + ".";
}

std::string modelledConclusion(const AnalyzeReport& report) {
  const double before = report.standardSeconds();
  const double after = report.fastestSeconds();
  const std::string where = " on " + report.cluster();
  if (before == 0) {
    return "There is nothing to exchange" + where + ".";
  }
  const bool single = report.operators.size() == 1;
  const std::string what =
      single ? "the halo exchange of " + report.operators.front().label() : std::string("one exchange of every halo");
  const std::string gain =
      ": according to the model, choosing a route for each halo shortens " + what + " " + change(before, after) + where;
  if (before < worthwhile * after) {
    return "No" + gain + ", which is not worthwhile.";
  }
  return single ? "Yes" + gain + ", with " + report.operators.front().fastest().route + "."
                : "Yes" + gain + "." + whereItHelps(report);
}

/// What SimGrid says about the routes that the model chooses; empty where nothing was simulated.
std::string simulatedConclusion(const AnalyzeReport& report) {
  std::string text;
  for (const std::string& kind : report.simulatedKinds()) {
    double before = 0;
    double after = 0;
    for (const OperatorResult& op : report.operators) {
      const auto& standard = op.standard().simulatedSeconds;
      const auto& fastest = op.fastest().simulatedSeconds;
      if (standard.count(kind) > 0 && fastest.count(kind) > 0) {
        before += standard.at(kind);
        after += fastest.at(kind);
      }
    }
    if (after > 0) {
      text += (text.empty() ? " SimGrid, with the same routes: " : "; ") + change(before, after) + " on its " + kind;
    }
  }
  return text.empty() ? "" : text + ".";
}

}  // namespace

std::string conclusion(const AnalyzeReport& report) { return modelledConclusion(report) + simulatedConclusion(report); }

}  // namespace Komvos::Program
