/// \file Komvos_ProductInput.hpp
/// What the product of the rows of a rank takes, on the host and on devices.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "Komvos_CrsRowKernels.hpp"

namespace Komvos::Impl {

/// x for the product. Entries of the column map: the first numSame are owned, the others ghosts.
template <class Scalar>
struct ProductInput {
  const Scalar* owned;   ///< the owned entries of one column, in place
  const Scalar* ghosts;  ///< the ghosts of one column
  const Scalar* copied;  ///< all entries, the columns of an entry side by side; null: one column, not copied
  int columns;
};

// Kokkos wants labels as strings; made once, since making them allocates.
inline const std::string multiplyRowsLabel = "Komvos::NodeAwareCrsMatrix::multiplyRows";
inline const std::string addTransposedRowsLabel = "Komvos::NodeAwareCrsMatrix::addTransposedRows";

/// Rows of this rank by RowClass.
using RowClassCounts = std::size_t[numRowClasses];

/// Calls work(width, firstColumn) until all columns are covered, `width` an integral constant: the fewest passes over
/// the matrix.
template <class Work>
void forColumns(int columns, const Work& work) {
  for (int first = 0; first < columns;) {
    const int left = columns - first;
    if (left >= 8) {
      work(std::integral_constant<int, 8>(), first);
      first += 8;
    } else if (left >= 4) {
      work(std::integral_constant<int, 4>(), first);
      first += 4;
    } else if (left == 3) {
      work(std::integral_constant<int, 3>(), first);
      first += 3;
    } else if (left == 2) {
      work(std::integral_constant<int, 2>(), first);
      first += 2;
    } else {
      work(std::integral_constant<int, 1>(), first);
      ++first;
    }
  }
}

/// Where rows with ghosts have more entries than there are owned values, copying these beside the ghosts costs less
/// than asking for each entry which of two arrays it is in.
inline bool copyPays(std::size_t entriesOfRowsWithGhosts, int numSame) {
  return entriesOfRowsWithGhosts > static_cast<std::size_t>(numSame);
}

}  // namespace Komvos::Impl
