/// \file convergence_plot.hpp
/// A picture of how a solve converged.
#pragma once

#include <string>

namespace Komvos::Program {

struct SolveReport;

/// Residuals over iterations, estimated and computed, as SVG. \throws as Gnuplot::drawSvg
void drawConvergence(const std::string& path, const SolveReport& report);

}  // namespace Komvos::Program
