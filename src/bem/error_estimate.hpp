/// \file error_estimate.hpp
/// How far a hierarchical matrix is from the matrix that it stands for.
#pragma once

#include <Kokkos_Core.hpp>
#include <complex>
#include <cstdint>
#include <vector>

#include "Komvos_EntryKernel.hpp"

namespace Komvos::Program {

/// ||A - H|| / ||A|| in the Frobenius norm, estimated from rows S and vectors z of random signs: the root of
///   sum over S and z of |(A z)_i - (H z)_i|^2  /  (number of z * sum over S of the squares of A's entries in row i),
/// since E |(B z)_i|^2 is the sum of the squares of row i of B. Rows and signs are the same on any number of ranks.
struct ErrorEstimate {
  double relative = 0;
  int rows = 0;
  int vectors = 0;
};

/// Numerator and denominator of some of the rows; sums of different ranks can be added.
struct ErrorSums {
  double difference = 0, all = 0;
};

constexpr int errorVectors = 4;

/// +1 or -1.
double errorSign(std::int64_t unknown, int vector);

/// Rows that are looked at, ascending: one at random in each of up to 100 parts of the list.
std::vector<int> errorRows(int unknowns);

/// \param rows of the kernel, those that this rank looks at
/// \param product [rows x errorVectors], H times the signs, a row after the other
template <class Scalar>
ErrorSums errorSums(const EntryKernel<Scalar>& kernel, int unknowns, const std::vector<int>& rows,
                    const std::vector<Scalar>& product) {
  std::vector<int> columns(unknowns);
  for (int j = 0; j < unknowns; ++j) {
    columns[j] = j;
  }
  std::vector<ErrorSums> sums(rows.size());
  using Host = Kokkos::DefaultHostExecutionSpace;
  Kokkos::parallel_for("Komvos::Program::errorSums",
                       Kokkos::RangePolicy<Host>(0, static_cast<std::int64_t>(rows.size())), [&](std::int64_t k) {
                         std::vector<Scalar> entries(unknowns);
                         kernel.block(&rows[k], 1, columns.data(), unknowns, entries.data());
                         ErrorSums& sum = sums[k];
                         for (const Scalar& entry : entries) {
                           sum.all += errorVectors * std::norm(entry);
                         }
                         for (int vector = 0; vector < errorVectors; ++vector) {
                           Scalar exact = 0;
                           for (int j = 0; j < unknowns; ++j) {
                             exact += errorSign(j, vector) * entries[j];
                           }
                           sum.difference += std::norm(exact - product[k * errorVectors + vector]);
                         }
                       });
  ErrorSums total;
  for (const ErrorSums& sum : sums) {
    total.difference += sum.difference;
    total.all += sum.all;
  }
  return total;
}

}  // namespace Komvos::Program
