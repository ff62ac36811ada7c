/// \file Komvos_PartLists.hpp
/// Sums of many parts, each of which is at a place of its own: who has to add what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "Komvos_PanelLayout.hpp"

namespace Komvos::Impl {

/// Which parts are added to each place of an array, in what order.
struct PartLists {
  std::vector<std::int64_t> offset;  ///< [places + 1]
  std::vector<std::int64_t> part;

  /// \param target the place of each part; -1: nowhere
  PartLists(int places, const std::vector<int>& target) : offset(static_cast<std::size_t>(places) + 1) {
    for (const int place : target) {
      offset[static_cast<std::size_t>(place) + 1] += place >= 0 ? 1 : 0;
    }
    std::partial_sum(offset.begin(), offset.end(), offset.begin());
    part.resize(static_cast<std::size_t>(offset.back()));
    std::vector<std::int64_t> next(offset.begin(), offset.end() - 1);
    for (std::size_t p = 0; p < target.size(); ++p) {
      if (target[p] >= 0) {
        part[next[target[p]]++] = static_cast<std::int64_t>(p);
      }
    }
  }
};

/// The input place of each column of each strip.
inline std::vector<int> inputsOf(const PanelLayout& layout) {
  std::vector<int> inputs;
  inputs.reserve(static_cast<std::size_t>(layout.numColumns()));
  for (const PanelRun& run : layout.runs()) {
    for (int c = 0; c < run.columns; ++c) {
      inputs.push_back(run.input + c);
    }
  }
  return inputs;
}

}  // namespace Komvos::Impl
