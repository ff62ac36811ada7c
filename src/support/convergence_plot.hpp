/// \file convergence_plot.hpp
/// A picture of how a solve converged.
#pragma once

#include <string>

#include "support/residual_history.hpp"

namespace Komvos::Program {

/// Residuals over iterations, estimated and computed, as SVG.
/// \param what was solved, and by what \throws as Gnuplot::drawSvg
void drawConvergence(const std::string& path, const std::string& what, const ResidualHistory& history,
                     double tolerance);

}  // namespace Komvos::Program
