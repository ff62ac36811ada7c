/// \file Komvos_SortRuns.hpp
/// Sorts lists that are nearly sorted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace Komvos::Impl {

/// Sorts lists that consist of sorted runs, as those do that come from several ranks, by merging neighbours: the fewer
/// runs, the fewer passes. Keeps its work space from list to list.
template <class T>
class RunSorter {
 public:
  /// \param list [size], sorted upwards in place
  void sort(T* list, std::size_t size) {
    findRuns(list, size);
    if (shortRun * ends_.size() > size) {
      std::sort(list, list + size);
      return;
    }
    if (ends_.size() < 2) {
      return;
    }
    if (room_.size() < size) {
      room_.resize(size);
    }
    T *from = list, *to = room_.data();
    while (ends_.size() > 1) {
      mergeNeighbours(from, to);
      std::swap(from, to);
    }
    if (from != list) {
      std::copy_n(from, size, list);
    }
  }

 private:
  static constexpr std::size_t shortRun = 3;  // on average; shorter ones are no runs

  void findRuns(const T* list, std::size_t size) {
    ends_.clear();
    for (std::size_t i = 1; i < size; ++i) {
      if (list[i] < list[i - 1]) {
        ends_.push_back(i);
      }
    }
    if (size > 0) {
      ends_.push_back(size);
    }
  }
  void mergeNeighbours(const T* from, T* to) {
    std::size_t begin = 0, merged = 0;
    for (std::size_t run = 0; run < ends_.size(); run += 2) {
      const std::size_t middle = ends_[run], end = run + 1 < ends_.size() ? ends_[run + 1] : middle;
      std::merge(from + begin, from + middle, from + middle, from + end, to + begin);
      ends_[merged++] = end;
      begin = end;
    }
    ends_.resize(merged);
  }

  std::vector<std::size_t> ends_;  // of runs
  std::vector<T> room_;
};

/// The same for one list, in contiguous memory.
template <class Iterator>
void sortRuns(Iterator begin, Iterator end) {
  if (begin != end) {
    RunSorter<typename std::iterator_traits<Iterator>::value_type>().sort(&*begin,
                                                                          static_cast<std::size_t>(end - begin));
  }
}

}  // namespace Komvos::Impl
