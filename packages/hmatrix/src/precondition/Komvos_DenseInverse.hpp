/// \file Komvos_DenseInverse.hpp
/// Inverses of dense blocks that must not be singular.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Lapack.hpp"

namespace Komvos::Impl {

template <class Scalar>
void requireFiniteInverse(const std::vector<Scalar>& inverse, const std::string& what) {
  if (!std::all_of(inverse.begin(), inverse.end(), [](const Scalar& v) { return std::isfinite(std::abs(v)); })) {
    throw BadInput("HMatrixPreconditioner: " + what + " is singular to rounding: its inverse is not finite");
  }
}

/// \param a [n x n], overwritten \param what of errors, as "block 3 of 7" \throws BadInput if it is singular
template <class Scalar>
std::vector<int> factored(int n, std::vector<Scalar>& a, const std::string& what) {
  std::vector<int> pivots(n);
  if (const int zero = factorLu(n, a.data(), pivots.data())) {
    throw BadInput("HMatrixPreconditioner: " + what + ", of " + std::to_string(n) + " unknowns, is singular: pivot " +
                   std::to_string(zero) + " is zero");
  }
  return pivots;
}

template <class Scalar>
std::vector<Scalar> inverseOf(int n, std::vector<Scalar> a, const std::string& what) {
  const std::vector<int> pivots = factored(n, a, what);
  invertLu(n, a.data(), pivots.data());
  requireFiniteInverse(a, what);
  return a;
}

/// Rows [first, first + rows) of the inverse of a [n x n]. \return [n x rows]: a row of the inverse is a column
template <class Scalar>
std::vector<Scalar> rowsOfInverse(int n, std::vector<Scalar> a, int first, int rows, const std::string& what) {
  const std::vector<int> pivots = factored(n, a, what);
  // Row i of A^-1, as a column, is A^-T e_i.
  std::vector<Scalar> result(static_cast<std::size_t>(n) * rows);
  for (int r = 0; r < rows; ++r) {
    result[static_cast<std::size_t>(r) * n + first + r] = 1;
  }
  solveLu(n, a.data(), pivots.data(), true, result.data(), rows);
  requireFiniteInverse(result, what);
  return result;
}

}  // namespace Komvos::Impl
