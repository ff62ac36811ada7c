#include "Komvos_TagPool.hpp"

#include <algorithm>
#include <string>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

TagPool::TagPool(int first, int last) : free_{{first, last - first + 1}}, first_(first), last_(last) {}

TagPool::Intervals::iterator TagPool::findFree(int count) {
  return std::find_if(free_.begin(), free_.end(), [count](const auto& interval) { return interval.second >= count; });
}

TagRange TagPool::take(MPI_Comm comm, int count) {
  auto found = findFree(count);
  if (found == free_.end()) {
    reclaim(comm);
    found = findFree(count);
  }
  if (found == free_.end()) {
    throw Error("no " + std::to_string(count) + " consecutive MPI tags are free: " + std::to_string(issued_.size()) +
                " exchanges on this communicator hold most of the " + std::to_string(last_ - first_ + 1) +
                "; destroy some on all ranks, or use another communicator");
  }
  const auto [first, length] = *found;
  free_.erase(found);
  if (length > count) {
    free_[first + count] = length - count;
  }
  TagRange range(first);
  issued_.push_back({first, count, range.first_});
  return range;
}

/// Forgets the ranges that all ranks have given back, and makes free what the others leave.
void TagPool::reclaim(MPI_Comm comm) {
  std::vector<unsigned char> inUse(issued_.size());
  std::transform(issued_.begin(), issued_.end(), inUse.begin(),
                 [](const Issued& one) -> unsigned char { return one.owner.expired() ? 0 : 1; });
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, inUse.data(), static_cast<int>(inUse.size()), MPI_UNSIGNED_CHAR, MPI_MAX, comm),
           "MPI_Allreduce");
  std::vector<Issued> kept;
  for (std::size_t i = 0; i < issued_.size(); ++i) {
    if (inUse[i] != 0) {
      kept.push_back(issued_[i]);
    }
  }
  std::sort(kept.begin(), kept.end(), [](const Issued& a, const Issued& b) { return a.first < b.first; });
  issued_ = std::move(kept);
  free_.clear();
  int next = first_;
  for (const Issued& one : issued_) {
    if (one.first > next) {
      free_[next] = one.first - next;
    }
    next = std::max(next, one.first + one.count);
  }
  if (next <= last_) {
    free_[next] = last_ - next + 1;
  }
}

}  // namespace Komvos::Impl
