// The plot of `komvos analyze`, as SVG.
#include <algorithm>
#include <cmath>

#include "analyze/analyze_report.hpp"
#include "support/text_format.hpp"

namespace Komvos::Program {

namespace {

const double width = 640;
const double height = 260;
const double left = 70;
const char* const colours[] = {"#1b1b1b", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

using Quantity = double (*)(const RouteResult&);

/// One diagram, the operators side by side, a line for each route, with a logarithmic axis. Zeros are left out.
class Panel {
 public:
  Panel(std::ostream& out, const AnalyzeReport& report, double top, const char* title, Quantity quantity)
      : out_(out), report_(report), top_(top), quantity_(quantity) {
    for (const OperatorResult& op : report.operators) {
      for (const RouteResult& route : op.routes) {
        if (const double value = quantity(route); value > 0) {
          low_ = std::min(low_, std::floor(std::log10(value)));
          high_ = std::max(high_, std::floor(std::log10(value)) + 1);
        }
      }
    }
    text(left, top - 8, "start", title);
    drawAxes();
    for (std::size_t route = 0; !report.operators.empty() && route < report.operators[0].routes.size(); ++route) {
      drawRoute(route);
    }
  }

 private:
  double x(std::size_t op) const {
    return left + width * (static_cast<double>(op) + 0.5) / static_cast<double>(report_.operators.size());
  }
  double y(double logValue) const { return top_ + height * (high_ - logValue) / std::max(1.0, high_ - low_); }

  void text(double at, double down, const char* anchor, const std::string& words) {
    out_ << format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", at, down, anchor, words.c_str());
  }

  void drawAxes() {
    for (double decade = low_; decade <= high_; ++decade) {
      out_ << format("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ccc\"/>\n", left, left + width,
                     y(decade), y(decade));
      text(left - 6, y(decade) + 4, "end", format("1e%d", static_cast<int>(decade)));
    }
    for (std::size_t op = 0; op < report_.operators.size(); ++op) {
      text(x(op), top_ + height + 16, "middle", report_.operators[op].label());
    }
  }

  void drawRoute(std::size_t route) {
    const char* const colour = colours[route % std::size(colours)];
    std::string points;
    for (std::size_t op = 0; op < report_.operators.size(); ++op) {
      if (const double value = quantity_(report_.operators[op].routes[route]); value > 0) {
        points += format("%.1f,%.1f ", x(op), y(std::log10(value)));
        out_ << format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x(op), y(std::log10(value)), colour);
      }
    }
    out_ << "<polyline fill=\"none\" stroke=\"" << colour << "\" points=\"" << points << "\"/>\n";
    out_ << "<g fill=\"" << colour << "\">";
    text(left + width + 12, top_ + 16 + 18 * static_cast<double>(route), "start",
         report_.operators[0].routes[route].route);
    out_ << "</g>\n";
  }

  std::ostream& out_;
  const AnalyzeReport& report_;
  double top_;
  Quantity quantity_;
  double low_ = 300;
  double high_ = -300;
};

}  // namespace

void writeSvg(std::ostream& out, const AnalyzeReport& report) {
  out << format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      left + width + 160, 2 * height + 150);
  const Quantity messages = [](const RouteResult& r) { return static_cast<double>(r.sent.max.interNodeMessages); };
  const Quantity time = [](const RouteResult& r) { return r.modelledSeconds; };
  Panel(out, report, 40, "messages between nodes, of the rank that sends most", messages);
  Panel(out, report, 100 + height, "modelled time of an exchange, seconds; level and operator below", time);
  out << "</svg>\n";
}

}  // namespace Komvos::Program
