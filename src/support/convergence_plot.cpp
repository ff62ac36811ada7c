#include "support/convergence_plot.hpp"

#include "support/gnuplot.hpp"
#include "support/text_format.hpp"

namespace Komvos::Program {

void drawConvergence(const std::string& path, const std::string& what, const ResidualHistory& history,
                     double tolerance) {
  std::string script = "$residuals << END\n";
  for (std::size_t i = 0; i < history.estimated.size(); ++i) {
    script += format("%d %.6g %.6g\n", static_cast<int>(i), history.estimated[i], history.computed[i]);
  }
  script +=
      "END\nset logscale y\nset format y '1e%T'\nset border 3 linecolor rgb '#606060'\n"
      "set grid back linecolor rgb '#d8d8d8' linewidth 1\nset tics nomirror\nset key top right\n"
      "set xlabel 'iteration'\nset ylabel 'residual, relative to |b|'\n";
  script += "set title " + Gnuplot::quoted("Convergence: " + what) + "\n";
  script += format("tolerance = %.6g\n", tolerance);
  script +=
      "plot $residuals using 1:3 with lines linewidth 3 linecolor rgb '#999999' title 'computed, |b - A x|', "
      "'' using 1:2 with lines linewidth 1.5 linecolor rgb '#d55e00' title 'estimated by the recurrence', "
      "tolerance with lines dashtype 2 linecolor rgb '#606060' title 'tolerance'\n";
  Gnuplot::drawSvg(path, 720, 420, script);
}

}  // namespace Komvos::Program
