/// \file Komvos_StoragePlan.cpp
#include "Komvos_StoragePlan.hpp"

#include <algorithm>
#include <cmath>

namespace Komvos::Impl {
namespace {

/// The first format whose scale for values up to `largest` is at most `scale`; Whole if there is none.
template <class Real>
ValueFormat formatFor(double largest, double scale) {
  for (int bytes = 1; bytes <= static_cast<int>(widestFormat<Real>()); ++bytes) {
    const auto format = static_cast<ValueFormat>(bytes);
    if (largest <= scale * largestInteger(format)) {
      return format;
    }
  }
  return ValueFormat::Whole;
}

struct ColumnMeasure {
  double squaredNorm = 0, largest = 0;
};

template <class Real>
ColumnMeasure measure(const Real* values, int length) {
  ColumnMeasure column;
  for (int i = 0; i < length; ++i) {
    const auto value = static_cast<double>(values[i]);
    column.squaredNorm += value * value;
    column.largest = std::max(column.largest, std::abs(value));
  }
  return column;
}

}  // namespace

template <class Real>
std::vector<ColumnFormat> formatsOfFactors(const LowRank<Real>& block, double accuracy) {
  const auto rank = static_cast<std::size_t>(block.rank);
  std::vector<ColumnMeasure> u(rank), v(rank);
  double square = 0;  // of the block's norm
  for (std::size_t l = 0; l < rank; ++l) {
    u[l] = measure(block.u.data() + l * block.rows, block.rows);
    v[l] = measure(block.v.data() + l * block.columns, block.columns);
    square += u[l].squaredNorm * v[l].squaredNorm;
  }
  std::vector<ColumnFormat> formats(rank);
  for (std::size_t l = 0; l < rank; ++l) {
    // scale / 2 sqrt(m) || other factor's column || <= accuracy || block || / (2 sqrt(rank))
    const double allowed = accuracy * std::sqrt(square / static_cast<double>(rank));
    const double uScale = allowed / std::sqrt(block.rows * v[l].squaredNorm);
    const double vScale = allowed / std::sqrt(block.columns * u[l].squaredNorm);
    const ValueFormat forU = formatFor<Real>(u[l].largest, uScale), forV = formatFor<Real>(v[l].largest, vScale);
    if (forU == ValueFormat::Whole || forV == ValueFormat::Whole) {
      continue;
    }
    formats[l].format = std::max(forU, forV);
    formats[l].uScale = u[l].largest / largestInteger(formats[l].format);
    formats[l].vScale = v[l].largest / largestInteger(formats[l].format);
  }
  return formats;
}

template <class Real>
BlockFormat formatOfDense(const std::vector<Real>& values, double accuracy) {
  if (values.empty()) {
    return {};
  }
  std::vector<double> sizes(values.size());
  std::transform(values.begin(), values.end(), sizes.begin(),
                 [](Real value) { return std::abs(static_cast<double>(value)); });
  const double largest = *std::max_element(sizes.begin(), sizes.end());
  const std::size_t counted = sizes.size() - sizes.size() / 16;
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(counted - 1), sizes.end());
  const double square = measure(sizes.data(), static_cast<int>(counted)).squaredNorm;
  // scale / 2 sqrt(number of values) <= accuracy || values ||
  const double scale = 2 * accuracy * std::sqrt(square / static_cast<double>(sizes.size()));
  BlockFormat block{formatFor<Real>(largest, scale), 1};
  if (block.format != ValueFormat::Whole) {
    block.scale = largest / largestInteger(block.format);
  }
  return block;
}

#define KOMVOS_INSTANTIATE_STORAGE_PLAN(S)                                            \
  template std::vector<ColumnFormat> formatsOfFactors(const LowRank<S>&, double);     \
  template BlockFormat formatOfDense(const std::vector<S>&, double);
KOMVOS_INSTANTIATE_STORAGE_PLAN(float)
KOMVOS_INSTANTIATE_STORAGE_PLAN(double)
#undef KOMVOS_INSTANTIATE_STORAGE_PLAN

}  // namespace Komvos::Impl
