/// \file residual_history.hpp
/// How the residuals of a solve fell.
#pragma once

#include <vector>

namespace Komvos::Program {

/// Of each iteration, the first one before any step, relative to |b|.
struct ResidualHistory {
  std::vector<double> estimated;  ///< by the solver's recurrence
  std::vector<double> computed;   ///< |b - A x| by Tpetra's own product
};

}  // namespace Komvos::Program
