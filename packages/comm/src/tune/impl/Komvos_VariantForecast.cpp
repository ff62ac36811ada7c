#include "Komvos_VariantForecast.hpp"

#include "Komvos_HaloSurvey.hpp"
#include "Komvos_HaloUse.hpp"

namespace Komvos::Impl {

namespace {

/// What other routes take to plan: so many rounds of agreement or messages, and as much work as there was before, for
/// the standard route and all that precedes it. Measured on 16 ranks that share two cores, for halos of 0 to 12,000
/// values a rank: 0.7 to 1.3 of what this says.
constexpr double rounds = 6.5, workOfStandard = 1.1;

}  // namespace

VariantForecast::VariantForecast(const SurveyedHalo& halo, const NodeTopology& nodes, const MessageCosts& costs)
    : forecast_(halo.counts, nodes, costs),
      inSeconds_(costs.inSeconds),
      planSeconds_(rounds * halo.roundSeconds + workOfStandard * halo.workSeconds) {}

Forecast VariantForecast::of(const RouteChoice& route, IntraNode intraNode, bool isPlanned) const {
  Forecast expected;
  for (int c = 0; c < numWidthClasses; ++c) {
    expected.seconds[c] = forecast_.of(route, intraNode, columnsOfClass(c));
  }
  expected.planSeconds = isPlanned ? 0 : planSeconds_;
  expected.inSeconds = inSeconds_;
  return expected;
}

std::optional<RouteChoice> VariantForecast::promising(const std::vector<RouteChoice>& routes, IntraNode intraNode,
                                                      int columns) const {
  const int width = widthClass(columns);
  const Forecast usual = of(RouteChoice::standard, intraNode, true);
  double least = usual.seconds[width];
  std::optional<RouteChoice> best;
  for (const RouteChoice& route : routes) {
    const Forecast one = of(route, intraNode, false);
    if (one.seconds[width] < least && promisesMuch(one, usual, width)) {
      least = one.seconds[width];
      best = route;
    }
  }
  return best;
}

}  // namespace Komvos::Impl
