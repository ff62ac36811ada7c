/// \file halo_bench.hpp
/// Times a halo by Tpetra and by every variant of Komvos.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_HaloReport.hpp"
#include "problem/problem.hpp"
#include "support/progress_line.hpp"

namespace Komvos::Program {

struct HaloBenchSettings {
  bool product = false;             ///< time matrix-vector products, not exchanges alone
  int samples = 30;                 ///< of each variant
  int repeats = 4;                  ///< in one sample
  std::vector<RouteChoice> routes;  ///< beside the standard one
  /// Of all variants of Komvos; each sets route and intraNode itself.
  ExchangeOptions exchange;
};

struct TimedVariant {
  std::string name;
  bool isBaseline = false;             ///< gains are told over the fastest of these
  bool isTuned = false;                ///< chosen by the tuner
  std::vector<double> seconds{};       ///< of one exchange or product, one for each sample, maximum over ranks
  std::optional<HaloReport> report{};  ///< none for Tpetra's
  double exchangeSeconds = 0;          ///< to make an Exchange for its plan
  long memoryBytes = 0;                ///< of its Exchange, the most on any rank
};

/// What was measured on one halo, the same on all ranks.
struct HaloTimes {
  std::string name;
  long long rows = 0;
  long long entries = 0;
  std::vector<TimedVariant> variants;  ///< the tuned one last
  std::size_t bestBaseline = 0;        ///< index into variants
};

/// Runs all variants in each sample, in an order that rotates, each after a barrier.
/// \param matrix whose import is timed; it has one
/// \param status shows the progress
/// \note Collective on the communicator of the matrix.
HaloTimes timeHalo(const std::string& name, const Teuchos::RCP<const Matrix>& matrix, const HaloBenchSettings& settings,
                   StatusLine& status);

}  // namespace Komvos::Program
