/// \file Komvos_StoragePlan.hpp
/// How many bytes the values of a block need.
#pragma once

#include <cstddef>
#include <vector>

#include "Komvos_LowRank.hpp"
#include "Komvos_ValueFormat.hpp"

namespace Komvos::Impl {

/// A format for a column of u and the same of v, each with a scale.
struct ColumnFormat {
  ValueFormat format = ValueFormat::Whole;
  double uScale = 1, vScale = 1;
};

/// The fewest bytes for each column of the factors with || block - its stored values || <= accuracy || block ||, in the
/// Frobenius norm.
///
/// With singular values s_l, u_l and v_l have norm sqrt(s_l), and the columns of each factor are orthogonal. If u_l is
/// changed by at most a, and v_l too, the block changes by at most (sum of s_l a_l^2)^(1/2) for each factor. Rounding
/// to multiples of a scale changes a column of m values by at most scale / 2 sqrt(m). Each column gets an equal part.
/// \param block from recompress() \return [rank]
template <class Real>
std::vector<ColumnFormat> formatsOfFactors(const LowRank<Real>& block, double accuracy);

struct BlockFormat {
  ValueFormat format = ValueFormat::Whole;
  double scale = 1;
};

/// The fewest bytes for a dense block with the same bound, where the norm is that of the block without its largest
/// entries, one in 16: those next to a singularity of the kernel shall not decide how accurate the others are.
template <class Real>
BlockFormat formatOfDense(const std::vector<Real>& values, double accuracy);

}  // namespace Komvos::Impl
