/// \file largest.hpp
/// Maxima that show what is not a number: std::max and Tpetra's normInf() pass over it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace KomvosTest {

/// The larger one, or infinity if one is not a number.
inline double largerOf(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::infinity() : std::max(a, b);
}

/// The largest magnitude of each column, or infinity where an entry is not a number. \note Collective.
template <class MultiVector>
std::vector<double> largestEntries(const MultiVector& vectors) {
  std::vector<double> largest;
  for (std::size_t j = 0; j < vectors.getNumVectors(); ++j) {
    const auto column = vectors.getVector(j);
    const double sum = column->norm1();  // not a number if an entry is not
    largest.push_back(std::isnan(sum) ? std::numeric_limits<double>::infinity() : column->normInf());
  }
  return largest;
}

/// Of all columns. \note Collective.
template <class MultiVector>
double largestEntry(const MultiVector& vectors) {
  double largest = 0;
  for (const double one : largestEntries(vectors)) {
    largest = std::max(largest, one);
  }
  return largest;
}

}  // namespace KomvosTest
