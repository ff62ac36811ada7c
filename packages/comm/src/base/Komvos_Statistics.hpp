/// \file Komvos_Statistics.hpp
/// Robust summaries of measured times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace Komvos::Impl {

/// The value below which a share `q` of the values lies, linear between neighbours.
/// \param values not empty
/// \param q      from 0 (least) to 1 (largest)
inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// numerators[i] / denominators[i].
inline std::vector<double> ratios(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  std::vector<double> result(numerators.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = numerators[i] / denominators[i];
  }
  return result;
}

}  // namespace Komvos::Impl
