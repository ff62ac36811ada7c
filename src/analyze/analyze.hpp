/// \file analyze.hpp
/// The subcommand `komvos analyze`.
#pragma once

#include "analyze/analyze_options.hpp"

namespace Komvos::Program {

/// Counts, models and, if asked, simulates the halos of a problem on virtual ranks.
/// \return exit code \note One process. \throws BadInput
int runAnalyze(const AnalyzeOptions& options);

}  // namespace Komvos::Program
