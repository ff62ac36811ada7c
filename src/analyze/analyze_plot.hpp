/// \file analyze_plot.hpp
/// The plot of `komvos analyze`.
#pragma once

#include <string>

#include "analyze/analyze_report.hpp"

namespace Komvos::Program {

/// Writes grouped bars as SVG, a group for each operator and a colour for each route: above the messages that the
/// busiest rank sends between nodes, below the modelled time of an exchange. Needs gnuplot, see gnuplot.hpp.
void drawPlot(const std::string& path, const AnalyzeReport& report);

}  // namespace Komvos::Program
