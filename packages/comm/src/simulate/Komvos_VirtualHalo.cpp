#include "Komvos_VirtualHalo.hpp"

#include <string>

#include "Komvos_Error.hpp"

namespace Komvos {

namespace {

/// Items sorted by a rank: those of rank r are item[first[r]] .. item[first[r + 1] - 1], in their old order.
struct ByRank {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> place;  // of each item
};

ByRank sortByRank(int numRanks, const std::vector<int>& rankOf, const char* what) {
  ByRank sorted{std::vector<std::int64_t>(static_cast<std::size_t>(numRanks) + 1, 0), {}};
  for (const int rank : rankOf) {
    if (rank < 0 || rank >= numRanks) {
      throw BadInput(std::string("VirtualHalo: a ") + what + " belongs to rank " + std::to_string(rank) + " of " +
                     std::to_string(numRanks));
    }
    ++sorted.first[rank + 1];
  }
  for (int rank = 0; rank < numRanks; ++rank) {
    sorted.first[rank + 1] += sorted.first[rank];
  }
  std::vector<std::int64_t> next(sorted.first.begin(), sorted.first.end() - 1);
  sorted.place.reserve(rankOf.size());
  for (const int rank : rankOf) {
    sorted.place.push_back(next[rank]++);
  }
  return sorted;
}

/// The items by ascending place.
std::vector<std::size_t> inOrder(const ByRank& sorted) {
  std::vector<std::size_t> items(sorted.place.size());
  for (std::size_t item = 0; item < items.size(); ++item) {
    items[sorted.place[item]] = item;
  }
  return items;
}

/// Calls visit(column, rank) once for each column that a rank needs of another rank, ranks ascending.
template <class Visit>
void visitNeeds(const CsrStructure& matrix, const ByRank& rows, const std::vector<std::size_t>& rowsByRank,
                const std::vector<int>& columnOwner, const Visit& visit) {
  const int numRanks = static_cast<int>(rows.first.size()) - 1;
  std::vector<int> lastRank(columnOwner.size(), -1);  // that was found to need the column
  for (int rank = 0; rank < numRanks; ++rank) {
    for (std::int64_t k = rows.first[rank]; k < rows.first[rank + 1]; ++k) {
      const std::size_t row = rowsByRank[k];
      for (std::size_t p = matrix.offset[row]; p < matrix.offset[row + 1]; ++p) {
        const int column = matrix.column[p];
        if (columnOwner[column] != rank && lastRank[column] != rank) {
          lastRank[column] = rank;
          visit(column, rank);
        }
      }
    }
  }
}

void checkColumns(const CsrStructure& matrix, std::size_t numColumns) {
  for (std::size_t p = matrix.offset[0]; p < matrix.offset[matrix.numRows]; ++p) {
    if (matrix.column[p] < 0 || static_cast<std::size_t>(matrix.column[p]) >= numColumns) {
      throw BadInput("VirtualHalo: column " + std::to_string(matrix.column[p]) + " of " + std::to_string(numColumns));
    }
  }
}

}  // namespace

VirtualHalo VirtualHalo::ofProduct(int numRanks, const CsrStructure& matrix, const std::vector<int>& rowOwner,
                                   const std::vector<int>& columnOwner) {
  if (rowOwner.size() != matrix.numRows) {
    throw BadInput("VirtualHalo: " + std::to_string(matrix.numRows) + " rows, owners for " +
                   std::to_string(rowOwner.size()));
  }
  checkColumns(matrix, columnOwner.size());
  const ByRank rows = sortByRank(numRanks, rowOwner, "row");
  const ByRank values = sortByRank(numRanks, columnOwner, "column");
  const std::vector<std::size_t> rowsByRank = inOrder(rows);
  // Twice over the matrix, first to count and then to fill, so that nothing larger than the result is allocated.
  const auto forEachNeed = [&](const auto& visit) {
    visitNeeds(matrix, rows, rowsByRank, columnOwner, [&](int column, int rank) { visit(values.place[column], rank); });
  };
  VirtualHalo halo;
  halo.firstValue_ = values.first;
  halo.offset_.assign(columnOwner.size() + 1, 0);
  forEachNeed([&](std::int64_t value, int) { ++halo.offset_[value + 1]; });
  for (std::size_t value = 0; value < columnOwner.size(); ++value) {
    halo.offset_[value + 1] += halo.offset_[value];
  }
  std::vector<std::int64_t> next(halo.offset_.begin(), halo.offset_.end() - 1);
  halo.destination_.resize(halo.offset_.back());
  forEachNeed([&](std::int64_t value, int rank) { halo.destination_[next[value]++] = rank; });
  return halo;
}

std::vector<Pattern> VirtualHalo::patterns() const {
  std::vector<Pattern> patterns(numRanks());
  std::vector<std::size_t> numSends(numRanks(), 0);
  std::vector<std::size_t> numReceives(numRanks(), 0);
  const auto forEachNeed = [this](const auto& visit) {
    for (int owner = 0; owner < numRanks(); ++owner) {
      for (int local = 0; local < numValuesOf(owner); ++local) {
        for (const int destination : destinationsOf(owner, local)) {
          visit(owner, local, destination);
        }
      }
    }
  };
  forEachNeed([&](int owner, int, int destination) {
    ++numSends[owner];
    ++numReceives[destination];
  });
  for (int rank = 0; rank < numRanks(); ++rank) {
    patterns[rank].rank = rank;
    patterns[rank].numOwned = numValuesOf(rank);
    patterns[rank].sends.reserve(numSends[rank]);
    patterns[rank].receives.reserve(numReceives[rank]);
  }
  forEachNeed([&](int owner, int local, int destination) {
    patterns[owner].sends.push_back({destination, local});
    patterns[destination].receives.push_back({{owner, local}, patterns[destination].numTarget++});
  });
  for (Pattern& pattern : patterns) {
    pattern.normalize();
  }
  return patterns;
}

}  // namespace Komvos
