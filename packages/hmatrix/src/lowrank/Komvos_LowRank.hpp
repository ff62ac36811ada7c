/// \file Komvos_LowRank.hpp
/// Blocks of low rank: adaptive cross approximation, and recompression.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_EntryKernel.hpp"
#include "Komvos_Error.hpp"

namespace Komvos {

/// A block, approximately u v^T (without conjugation).
template <class Scalar>
struct LowRank {
  int rows = 0, columns = 0, rank = 0;
  std::vector<Scalar> u;  ///< [rows x rank], column by column
  std::vector<Scalar> v;  ///< [columns x rank], column by column
};

enum class Approximation {
  Aca,      ///< adaptive cross approximation with partial pivoting
  AcaPlus,  ///< pivots are chosen by a reference row and a reference column
  Svd       ///< the whole block, and its singular values: slow; to compare with
};

struct LowRankOptions {
  /// Of each block: ||B - u v^T|| <= accuracy ||B||, in the Frobenius norm, as estimated by crosses and samples, see
  /// approximate(). For an HMatrix at least 50 machine epsilons of the scalar: 1.1e-14, 6e-6 for float.
  double accuracy = 1e-4;
  Approximation approximation = Approximation::Aca;
  bool recompress = true;  ///< to the least rank that keeps the accuracy
};

/// Approximates the block of these rows and columns, in the user's order.
///
/// Bebendorf's adaptive cross approximation stops when a step changes the block by less than the accuracy. That alone
/// is not safe: a row of zeros, or rows that see only some of the columns (corners, parallel surfaces under the
/// double-layer kernel), end it too early. So the residual of a few other rows and columns, spread over the block, is
/// looked at before it stops, and where it is too large they are the next pivots. ACA+ is that of Grasedyck.
///
/// A sample proves nothing: of a block in which only a few rows and columns are not zero, as of kernels with compact
/// support, it may see none. For such kernels take Svd, or a smaller `eta`, so that these blocks are dense.
/// \throws BadInput if an entry that was looked at is not finite
/// \return nothing where the factors would take as much memory as the block itself
template <class Scalar>
std::optional<LowRank<Scalar>> approximate(const EntryKernel<Scalar>& kernel, const std::vector<int>& rows,
                                           const std::vector<int>& columns, const LowRankOptions& options);

/// Truncates to the least rank for which what is dropped is at most `accuracy` of the block, in the Frobenius norm: QR
/// of both factors, and singular values of the product of the triangles. Singular values go half to each factor.
template <class Scalar>
void recompress(LowRank<Scalar>& block, double accuracy);

namespace Impl {
/// \param block from EntryKernel::block() \throws BadInput naming the first entry that is not finite
template <class Scalar>
void requireFinite(const std::vector<Scalar>& block, const int* rows, int numRows, const int* columns) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (!std::isfinite(std::abs(block[i]))) {
      const std::size_t n = static_cast<std::size_t>(numRows);
      throw BadInput("entry (" + std::to_string(rows[i % n]) + ", " + std::to_string(columns[i / n]) +
                     ") of the kernel is not finite");
    }
  }
}
}  // namespace Impl

}  // namespace Komvos
