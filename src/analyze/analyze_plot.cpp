#include "analyze/analyze_plot.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "support/gnuplot.hpp"
#include "support/text_format.hpp"

// How this works: drawPlot writes a gnuplot script. It decides on the size of the picture, then comes a Panel for each
// quantity: the values as a table in the script, a row for each operator and a column for each route, and the commands
// that draw them. Margins are in pixels of the whole picture, so that the bars of both panels stand below one another.

namespace Komvos::Program {

namespace {

struct Colour {
  int red, green, blue;
};

/// Of Okabe and Ito, for people with any colour vision. A route has the same colour in every plot.
Colour colourOf(const std::string& routeFamily) {
  static const std::map<std::string, Colour> colours{
      {"standard", {77, 77, 77}}, {"two-step", {230, 159, 0}}, {"three-step", {213, 94, 0}},
      {"split", {0, 114, 178}},   {"axis", {0, 158, 115}},     {"sockets", {204, 121, 167}},
  };
  const auto found = colours.find(routeFamily);
  return found == colours.end() ? Colour{86, 180, 233} : found->second;
}

/// A colour for each route. Routes that differ in their numbers only, as split and split:100, have tints of one colour.
std::vector<std::string> coloursOf(const std::vector<RouteResult>& routes) {
  std::vector<std::string> colours;
  std::map<std::string, int> seen;
  for (const RouteResult& route : routes) {
    const std::string family = route.route.substr(0, route.route.find(':'));
    const Colour full = colourOf(family);
    const double strength = std::pow(0.6, seen[family]++);
    const auto tint = [strength](int part) { return static_cast<int>(std::lround(255 - strength * (255 - part))); };
    colours.push_back(format("#%02x%02x%02x", tint(full.red), tint(full.green), tint(full.blue)));
  }
  return colours;
}

/// In pixels, but for the counts.
struct Layout {
  int numOperators, numRoutes;
  int left = 90, right = 0, width = 0, height = 260;

  explicit Layout(const AnalyzeReport& report)
      : numOperators(static_cast<int>(report.operators.size())),
        numRoutes(static_cast<int>(report.operators.front().routes.size())) {
    std::size_t longestName = 0;
    for (const RouteResult& route : report.operators.front().routes) {
      longestName = std::max(longestName, route.route.size());
    }
    right = 50 + 8 * static_cast<int>(longestName);
    width = std::clamp(numOperators * (10 * numRoutes + 18), 520, 1800);
  }

  int pictureWidth() const { return left + width + right; }
  int pictureHeight() const { return 2 * height + 225; }

  std::string margins(int top) const {
    const double wide = pictureWidth();
    const double high = pictureHeight();
    return format("set lmargin at screen %.4f\nset rmargin at screen %.4f\n", left / wide, (left + width) / wide) +
           format("set tmargin at screen %.4f\nset bmargin at screen %.4f\n", 1 - top / high,
                  1 - (top + height) / high);
  }
};

using Quantity = double (*)(const RouteResult&);

/// The values of one quantity, and how they are drawn.
class Panel {
 public:
  /// \param unit of the axis, named `unitName`, in the quantity's own
  Panel(const AnalyzeReport& report, Quantity quantity, double unit, std::string unitName)
      : report_(report), quantity_(quantity), unit_(unit), unitName_(std::move(unitName)) {
    for (const OperatorResult& op : report.operators) {
      for (const RouteResult& route : op.routes) {
        if (const double value = quantity(route) / unit; value > 0) {
          least_ = least_ == 0 ? value : std::min(least_, value);
          most_ = std::max(most_, value);
        }
      }
    }
  }

  /// \param name of the table in the script
  std::string script(const std::string& name) const {
    std::string text = "$" + name + " << END\n";
    for (const OperatorResult& op : report_.operators) {
      text += "\"" + op.label() + "\"";
      for (const RouteResult& route : op.routes) {
        const double value = quantity_(route) / unit_;
        text += value > 0 ? format(" %.6g", value) : " NaN";  // no bar for zero, which a logarithm does not have
      }
      text += "\n";
    }
    text += "END\n" + axis() + "plot ";
    const std::vector<RouteResult>& routes = report_.operators.front().routes;
    const std::vector<std::string> colours = coloursOf(routes);
    for (std::size_t r = 0; r < routes.size(); ++r) {
      text += format("%s using %d:xtic(1) title ", r == 0 ? ("$" + name).c_str() : ", ''", static_cast<int>(r) + 2) +
              Gnuplot::quoted(routes[r].route) + " linecolor rgb '" + colours[r] + "'";
    }
    return text + "\n";
  }

 private:
  std::string axis() const {
    if (most_ > 10 * least_) {
      // Begins below the least value, so that its bar has a height.
      return format("set logscale y 10\nset yrange [%.6g:%.6g]\n", least_ / 2, 1.4 * most_) + "set ylabel '" +
             unitName_ + " (logarithmic)'\n";
    }
    return format("unset logscale y\nset yrange [0:%.6g]\n", most_ > 0 ? 1.1 * most_ : 1) + "set ylabel '" + unitName_ +
           "'\n";
  }

  const AnalyzeReport& report_;
  Quantity quantity_;
  double unit_;
  std::string unitName_;
  double least_ = 0;  // above zero
  double most_ = 0;
};

double longestTime(const AnalyzeReport& report) {
  double longest = 0;
  for (const OperatorResult& op : report.operators) {
    for (const RouteResult& route : op.routes) {
      longest = std::max(longest, route.modelledSeconds);
    }
  }
  return longest;
}

std::string count(int number, const char* what) { return format("%d %s%s", number, what, number == 1 ? "" : "s"); }

std::string styleCommands(const Layout& layout) {
  return "set style data histograms\n"
         "set style histogram clustered gap 1\n"
         "set style fill solid 1 noborder\n"
         "set boxwidth 0.9 relative\n"
         "set border 3 linecolor rgb '#606060'\n"
         "set grid ytics back linecolor rgb '#d8d8d8' linewidth 1\n"
         "set xtics nomirror scale 0\n"
         "set ytics nomirror\n"
         "set format y '%g'\n"
         "set title offset 0,-0.6\n" +
         format("set xrange [-0.6:%.1f]\n", layout.numOperators - 0.4);
}

}  // namespace

void drawPlot(const std::string& path, const AnalyzeReport& report) {
  const Quantity messages = [](const RouteResult& r) { return static_cast<double>(r.sent.max.interNodeMessages); };
  const Quantity time = [](const RouteResult& r) { return r.modelledSeconds; };
  const bool milliseconds = longestTime(report) >= 10e-3;
  const Layout layout(report);
  const std::string title =
      "Halo exchange of " + report.problem + " on " + count(report.ranks, "rank") + ", " + count(report.nodes, "node");
  const std::string script =
      styleCommands(layout) + "set multiplot title " + Gnuplot::quoted(title) + " font ',16'\n" + layout.margins(70) +
      "set key outside right top Left reverse samplen 1.5 spacing 1.2 title 'route'\n" +
      "set title 'Messages between nodes, sent by the busiest rank (fewer is better)'\n" +
      Panel(report, messages, 1, "messages").script("messages") + layout.margins(70 + layout.height + 90) +
      "unset key\n" + "set title " +
      Gnuplot::quoted("Modelled time of one exchange on " + report.machine + " (shorter is better)") + "\nset xlabel " +
      Gnuplot::quoted(report.hierarchy ? "multigrid level and operator (A: matrix, P: prolongation, R: restriction, G: "
                                         "gather, S: scatter of the coarse solve)"
                                       : "level and operator (A: matrix)") +
      "\n" +
      Panel(report, time, milliseconds ? 1e-3 : 1e-6, milliseconds ? "milliseconds" : "microseconds").script("times") +
      "unset multiplot\n";
  Gnuplot::drawSvg(path, layout.pictureWidth(), layout.pictureHeight(), script);
}

}  // namespace Komvos::Program
