/// \file Komvos_SortRuns.hpp
/// Sorts lists that are nearly sorted.
#pragma once

#include <algorithm>
#include <vector>

namespace Komvos::Impl {

/// Sorts what consists of sorted runs, as lists that come from several ranks do, by merging neighbours: the fewer
/// runs, the fewer passes.
template <class Iterator>
void sortRuns(Iterator begin, Iterator end) {
  std::vector<Iterator> bounds{begin};
  while (bounds.back() != end) {
    bounds.push_back(std::is_sorted_until(bounds.back(), end));
  }
  while (bounds.size() > 2) {
    std::vector<Iterator> merged{begin};
    for (std::size_t i = 0; i + 1 < bounds.size(); i += 2) {
      if (i + 2 < bounds.size()) {
        std::inplace_merge(bounds[i], bounds[i + 1], bounds[i + 2]);
      }
      merged.push_back(bounds[std::min(i + 2, bounds.size() - 1)]);
    }
    bounds.swap(merged);
  }
}

}  // namespace Komvos::Impl
