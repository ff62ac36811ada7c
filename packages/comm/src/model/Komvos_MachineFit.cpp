#include "Komvos_MachineFit.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "Komvos_Error.hpp"

// How this works: the series of one pair of ranks gives latency and rate of each protocol, as straight lines through
// its points (fitProtocols, fitLine). Where the protocol changes is known, or tried: findLimits takes the two sizes at
// which three lines fit best. For messages between nodes, ContentionFit then keeps these lines and chooses B_inj and
// B_N of equation (10) from the series of more pairs, each reduced to three sums (contentionOf). All fits minimize the
// sum of squares of relative errors, so that small messages count as much as large ones.

namespace Komvos {

namespace {

using Point = MeasuredSeries::Point;
using Points = std::vector<Point>;
using Iterator = Points::const_iterator;

const double infinity = std::numeric_limits<double>::infinity();

/// t = latency + s * secondsPerByte, and the sum of squares of its relative errors.
struct Line {
  double latency;
  double secondsPerByte;
  double error;
};

/// Minimizes sum ((latency + s secondsPerByte) / t - 1)^2 over latency >= floor, secondsPerByte >= 0.
Line fitLine(Iterator begin, Iterator end, double floor) {
  // With a = 1/t and b = s/t: the normal equations of a latency + b secondsPerByte = 1.
  double a = 0, b = 0, aa = 0, ab = 0, bb = 0;
  for (Iterator p = begin; p != end; ++p) {
    const double ai = 1 / p->seconds;
    const double bi = static_cast<double>(p->bytes) / p->seconds;
    a += ai, b += bi, aa += ai * ai, ab += ai * bi, bb += bi * bi;
  }
  const auto line = [&](double latency, double secondsPerByte) {
    double error = 0;
    for (Iterator p = begin; p != end; ++p) {
      const double e = (latency + secondsPerByte * static_cast<double>(p->bytes)) / p->seconds - 1;
      error += e * e;
    }
    return Line{latency, secondsPerByte, error};
  };
  const double determinant = aa * bb - ab * ab;
  const Line free = line((a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant);
  if (free.latency >= floor && free.secondsPerByte >= 0) {
    return free;
  }
  const Line fixedStart = line(floor, std::max(0.0, (b - floor * ab) / bb));
  const Line flat = line(std::max(floor, a / aa), 0);
  return fixedStart.error < flat.error ? fixedStart : flat;
}

/// The points of each protocol are [bounds[p], bounds[p + 1]).
using Bounds = std::array<Iterator, numProtocols + 1>;

Bounds boundsOf(const ProtocolLimits& limits, const Points& points) {
  const auto after = [&](long bytes) {
    return std::find_if(points.begin(), points.end(), [bytes](const Point& p) { return p.bytes > bytes; });
  };
  return {points.begin(), after(limits.shortMax), after(limits.eagerMax), points.end()};
}

double halfOfFastest(const Points& points) {
  double fastest = infinity;
  for (const Point& point : points) {
    fastest = std::min(fastest, point.seconds);
  }
  return fastest / 2;
}

ProtocolLimits findLimits(const Points& points) {
  const std::ptrdiff_t least = 3;
  if (static_cast<std::ptrdiff_t>(points.size()) < numProtocols * least) {
    throw BadInput("fit: " + std::to_string(points.size()) + " sizes were measured, " +
                   std::to_string(numProtocols * least) + " are needed to find where the protocol changes");
  }
  const double floor = halfOfFastest(points);
  ProtocolLimits best{};
  double bestError = infinity;
  for (Iterator eager = points.begin() + least; points.end() - eager >= 2 * least; ++eager) {
    const double shortError = fitLine(points.begin(), eager, floor).error;
    for (Iterator rendezvous = eager + least; points.end() - rendezvous >= least; ++rendezvous) {
      const double error =
          shortError + fitLine(eager, rendezvous, floor).error + fitLine(rendezvous, points.end(), floor).error;
      if (error < bestError) {
        bestError = error;
        best = {(eager - 1)->bytes, (rendezvous - 1)->bytes};
      }
    }
  }
  return best;
}

std::array<Line, numProtocols> fitProtocols(const Points& points, const ProtocolLimits& limits) {
  const Bounds bounds = boundsOf(limits, points);
  double floor = halfOfFastest(points);
  std::array<Line, numProtocols> lines;
  for (int p = 0; p < numProtocols; ++p) {
    if (bounds[p + 1] - bounds[p] < 2) {
      throw BadInput("fit: of the sizes measured, up to " + std::to_string(points.empty() ? 0 : points.back().bytes) +
                     " bytes, less than two lie in one of the ranges that end at " + std::to_string(limits.shortMax) +
                     " and " + std::to_string(limits.eagerMax) + " bytes and at the largest size");
    }
    lines[p] = fitLine(bounds[p], bounds[p + 1], floor);
    floor = lines[p].latency;
  }
  return lines;
}

double rateOf(const Line& line) { return line.secondsPerByte > 0 ? 1 / line.secondsPerByte : infinity; }

/// What series of more pairs say of one protocol: with x seconds per byte of the node, the sum of squares of relative
/// errors is constant - 2 linear x + square x^2.
struct Contention {
  int pairs;
  double constant, linear, square;

  double errorAt(double rate) const { return constant - 2 * linear / rate + square / (rate * rate); }
  /// The rate that fits best; not positive if even an infinite one is too slow.
  double bestRate() const { return square / linear; }
};

/// Senders may also wait for each other before they start, as on shared cores. That is not in (10), and no rate: the
/// series keeps a latency of its own, at least that of one pair.
Contention contentionOf(const MeasuredSeries& series, const ProtocolLimits& limits, int protocol, double floor) {
  const Bounds bounds = boundsOf(limits, series.points);
  const double latency = fitLine(bounds[protocol], bounds[protocol + 1], floor).latency;
  Contention sum{series.pairs, 0, 0, 0};
  for (Iterator p = bounds[protocol]; p != bounds[protocol + 1]; ++p) {
    // (latency + pairs s x) / t - 1 = b x - r
    const double b = series.pairs * static_cast<double>(p->bytes) / p->seconds;
    const double r = 1 - latency / p->seconds;
    sum.constant += r * r;
    sum.linear += r * b;
    sum.square += b * b;
  }
  return sum;
}

/// Chooses B_inj and B_N. The error of (10) is smooth but for the kink where the two rates meet: B_inj comes from the
/// series on one side of a possible kink, B_N from those on the other, and the pair that fits all series best stays.
class ContentionFit {
 public:
  ContentionFit(double rate, std::vector<Contention> series) : rate_(rate), series_(std::move(series)) {}

  /// \param parameters in: latency and rate; out: all four
  void run(OffNodeModel::Parameters& parameters) const {
    double bestError = infinity;
    for (const double added : addedRates()) {
      for (const double nodeRate : nodeRates()) {
        const double error = errorOf(added, nodeRate);
        if (error < 0.99 * bestError - 1e-12) {  // else the simpler one, which came before
          bestError = error;
          parameters.addedRate = added;
          parameters.nodeRate = nodeRate;
        }
      }
    }
  }

 private:
  double errorOf(double added, double nodeRate) const {
    double error = 0;
    for (const Contention& one : series_) {
      error += one.errorAt(std::min(nodeRate, rate_ + (one.pairs - 1) * added));
    }
    return error;
  }

  /// Slopes of lines from (1, B_max) through the joint rates of the first series, as many as there may be.
  std::vector<double> addedRates() const {
    std::vector<double> rates{0};
    double xx = 0;
    double xy = 0;
    for (const Contention& one : series_) {
      const double joint = one.bestRate();
      if (joint > 0 && std::isfinite(joint) && std::isfinite(rate_)) {
        const double x = one.pairs - 1;
        xx += x * x;
        xy += x * (joint - rate_);
        propose(xy / xx, rates);
        propose((joint - rate_) / x, rates);
      }
    }
    return rates;
  }

  /// All measured numbers of senders must have a rate above 0, and none can have more than each alone.
  void propose(double added, std::vector<double>& rates) const {
    if (rate_ + (series_.back().pairs - 1) * added > 0) {
      rates.push_back(std::min(added, rate_));
    }
  }

  /// One rate for the last series, as many as there may be.
  std::vector<double> nodeRates() const {
    std::vector<double> rates{infinity};
    double linear = 0;
    double square = 0;
    for (auto one = series_.rbegin(); one != series_.rend(); ++one) {
      linear += one->linear;
      square += one->square;
      if (linear > 0) {
        rates.push_back(std::max(rate_, square / linear));
      }
    }
    return rates;
  }

  double rate_;
  std::vector<Contention> series_;  // by number of pairs, all more than one
};

}  // namespace

OnNodeModel fitOnNode(const MeasuredSeries& measured, const std::optional<ProtocolLimits>& limits) {
  OnNodeModel model{limits ? *limits : findLimits(measured.points), {}};
  const auto lines = fitProtocols(measured.points, model.limits);
  for (int p = 0; p < numProtocols; ++p) {
    model.parameters[p] = {lines[p].latency, rateOf(lines[p])};
  }
  return model;
}

OffNodeModel fitOffNode(const std::vector<MeasuredSeries>& measured, const std::optional<ProtocolLimits>& limits) {
  const auto single = std::find_if(measured.begin(), measured.end(), [](const auto& s) { return s.pairs == 1; });
  if (single == measured.end()) {
    throw BadInput("fit: there is no series of one pair of ranks on different nodes");
  }
  std::vector<MeasuredSeries> several;
  std::copy_if(measured.begin(), measured.end(), std::back_inserter(several),
               [](const auto& s) { return s.pairs > 1; });
  std::sort(several.begin(), several.end(), [](const auto& a, const auto& b) { return a.pairs < b.pairs; });

  OffNodeModel model{limits ? *limits : findLimits(single->points), {}, several.empty() ? 1 : several.back().pairs};
  const auto lines = fitProtocols(single->points, model.limits);
  for (int p = 0; p < numProtocols; ++p) {
    model.parameters[p] = {lines[p].latency, rateOf(lines[p]), 0};
    std::vector<Contention> contention;
    for (const MeasuredSeries& series : several) {
      contention.push_back(contentionOf(series, model.limits, p, lines[p].latency));
    }
    ContentionFit(rateOf(lines[p]), std::move(contention)).run(model.parameters[p]);
  }
  return model;
}

}  // namespace Komvos
