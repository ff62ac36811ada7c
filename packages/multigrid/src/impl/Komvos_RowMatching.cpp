#include "Komvos_RowMatching.hpp"

#include <btf.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "Komvos_Error.hpp"

// How this works. BTF finds as many pairs of rows and columns as there can be, whatever the entries are. So it is asked
// again and again, each time with those entries only that are larger than a bound, until the bound cannot be doubled.
// BTF searches without end where many rows cannot be matched: with a bound, it gives up.
namespace Komvos::Impl {

namespace {

constexpr int maxHalvings = 64;  // of the bound; then all entries are taken

/// How much comes from each rank, and where it goes on rank 0.
struct Place {
  std::vector<int> counts, first;
  Place() = default;
  explicit Place(int ranks) : counts(ranks), first(ranks) {}
  void gather(MPI_Comm comm, int mine) {
    mpiCheck(MPI_Gather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm), "MPI_Gather");
    for (std::size_t rank = 1; rank < counts.size(); ++rank) {
      first[rank] = first[rank - 1] + counts[rank - 1];
    }
  }
  std::size_t total() const { return static_cast<std::size_t>(first.back()) + static_cast<std::size_t>(counts.back()); }
};

/// \note Collective.
void requireFewEnough(MPI_Comm comm, int numRows, long long entries) {
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &entries, 1, MPI_LONG_LONG, MPI_SUM, comm), "MPI_Allreduce");
  if (entries > std::numeric_limits<int>::max()) {
    throw BadInput("SuperLU_DIST: pivots of the matrix of " + std::to_string(numRows) + " rows and " +
                   std::to_string(entries) + " entries cannot be chosen; at most 2147483647 are possible");
  }
}

}  // namespace

RowMatching::RowMatching(MPI_Comm comm, const DistributedRows& rows, Prefer prefer)
    : comm_(comm), prefer_(prefer), numRows_(rows.whole) {
  mpiCheck(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  gather(rows);
  throwOnAllIfAny(comm_, errorIn([&] { sortRows(); }));
}

void RowMatching::gather(const DistributedRows& rows) {
  int ranks = 0;
  mpiCheck(MPI_Comm_size(comm_, &ranks), "MPI_Comm_size");
  const int count = rows.count(), entries = static_cast<int>(rows.columns.size());
  std::vector<int> lengths;
  Place byRow, byEntry;
  throwOnAllIfAny(comm_, errorIn([&] {
                    byRow = Place(ranks);
                    byEntry = Place(ranks);
                    columnOf_.resize(numRows_);
                    for (int row = 0; row < count; ++row) {
                      lengths.push_back(rows.offsets[row + 1] - rows.offsets[row]);
                    }
                  }));
  requireFewEnough(comm_, numRows_, entries);
  byRow.gather(comm_, count);
  byEntry.gather(comm_, entries);
  throwOnAllIfAny(comm_, errorIn([&] {
                    if (rank_ == 0) {
                      offsets_.resize(static_cast<std::size_t>(numRows_) + 1);
                      columns_.resize(byEntry.total());
                      sizes_.resize(byEntry.total());
                      large_.reserve(byEntry.total());
                      largeOffsets_.resize(static_cast<std::size_t>(numRows_) + 1);
                      match_.resize(numRows_);
                      work_.resize(5 * static_cast<std::size_t>(numRows_));
                    }
                  }));
  mpiCheck(MPI_Gatherv(lengths.data(), count, MPI_INT, rank_ == 0 ? offsets_.data() + 1 : nullptr, byRow.counts.data(),
                       byRow.first.data(), MPI_INT, 0, comm_),
           "MPI_Gatherv");
  mpiCheck(MPI_Gatherv(rows.columns.data(), entries, MPI_INT, columns_.data(), byEntry.counts.data(),
                       byEntry.first.data(), MPI_INT, 0, comm_),
           "MPI_Gatherv");
  mpiCheck(MPI_Gatherv(rows.sizes.data(), entries, MPI_DOUBLE, sizes_.data(), byEntry.counts.data(),
                       byEntry.first.data(), MPI_DOUBLE, 0, comm_),
           "MPI_Gatherv");
  for (std::size_t row = 1; row < offsets_.size(); ++row) {
    offsets_[row] += offsets_[row - 1];
  }
}

/// Large entries first, for BTF takes the first column that is free; before them the diagonal, if it is preferred.
void RowMatching::sortRows() {
  std::vector<std::pair<double, int>> row;
  for (int i = 0; i < static_cast<int>(offsets_.size()) - 1; ++i) {
    row.clear();
    for (int k = offsets_[i]; k < offsets_[i + 1]; ++k) {
      row.emplace_back(sizes_[k] > 0 ? sizes_[k] : 0.0, columns_[k]);  // nothing that is not a number
    }
    const auto rank = [&](const auto& entry) {
      const bool isFirst = prefer_ == Prefer::diagonal && entry.second == i && entry.first >= strongPivot;
      return isFirst ? 2.0 : entry.first;
    };
    std::stable_sort(row.begin(), row.end(), [&](const auto& a, const auto& b) { return rank(a) > rank(b); });
    for (std::size_t k = 0; k < row.size(); ++k) {
      std::tie(sizes_[offsets_[i] + k], columns_[offsets_[i] + k]) = row[k];
    }
  }
}

int RowMatching::match() {
  int matched = 0;
  if (rank_ == 0) {
    const double most = prefer_ == Prefer::diagonal ? strongPivot : 1;
    matched = matchWith(0);
    int can = maxHalvings, cannot = -1;
    for (int halvings = 0; matched == numRows_ && can - cannot > 1; halvings = (can + cannot) / 2) {
      (matchWith(std::ldexp(most, -halvings)) == numRows_ ? can : cannot) = halvings;
    }
    if (matched == numRows_) {
      matchWith(can == maxHalvings ? 0 : std::ldexp(most, -can));
      for (int column = 0; column < numRows_; ++column) {
        columnOf_[match_[column]] = column;
      }
    }
  }
  mpiCheck(MPI_Bcast(&matched, 1, MPI_INT, 0, comm_), "MPI_Bcast");
  mpiCheck(MPI_Bcast(columnOf_.data(), numRows_, MPI_INT, 0, comm_), "MPI_Bcast");
  return matched;
}

/// With entries that are not 0, and at least this large. BTF's columns are our rows.
int RowMatching::matchWith(double smallest) {
  large_.clear();
  std::fill(match_.begin(), match_.end(), 0);
  int rows = 0, columns = 0;  // with such an entry
  for (int row = 0; row < numRows_; ++row) {
    for (int k = offsets_[row]; k < offsets_[row + 1]; ++k) {
      if (sizes_[k] == 0 || sizes_[k] < smallest) {
        continue;
      }
      large_.push_back(columns_[k]);
      columns += match_[columns_[k]] == 0 ? 1 : 0;
      match_[columns_[k]] = 1;
    }
    largeOffsets_[row + 1] = static_cast<int>(large_.size());
    rows += largeOffsets_[row + 1] > largeOffsets_[row] ? 1 : 0;
  }
  if (std::min(rows, columns) < numRows_) {
    return std::min(rows, columns);
  }
  const double mostWork = smallest > 0 ? 20 : 0;  // for each entry; 0: no limit
  double work = 0;
  return btf_maxtrans(numRows_, numRows_, largeOffsets_.data(), large_.data(), mostWork, &work, match_.data(),
                      work_.data());
}

}  // namespace Komvos::Impl
