/// \file Komvos_ColumnDots.hpp
/// Where the dots of a kernel stand in a sum over ranks: those of a column side by side.
#pragma once

#include <array>
#include <cstring>
#include <type_traits>

#include "Komvos_NonBlockingSum.hpp"

namespace Komvos::Impl {

template <class Scalar, bool = std::is_floating_point_v<Scalar>>
struct RealOf {
  using type = Scalar;
};
template <class Complex>
struct RealOf<Complex, false> {
  using type = typename Complex::value_type;
};

/// \tparam Row a kernel of Komvos_BiCGStabKernels.hpp
template <class Row>
class ColumnDots {
 public:
  using scalar = typename Row::scalar;
  using real = typename RealOf<scalar>::type;

  explicit ColumnDots(NonBlockingSum<real>& sum) : sum_(sum) {}

  /// Of so many columns together.
  static constexpr int numbers(int columns) { return columns * perColumn; }

  void set(int column, const std::array<scalar, Row::dots>& dots) const {
    std::memcpy(sum_.own() + column * perColumn, dots.data(), sizeof dots);
  }
  /// After the sum has arrived.
  scalar get(int column, int dot) const {
    scalar value;
    std::memcpy(static_cast<void*>(&value), sum_.sums() + column * perColumn + dot * perScalar, sizeof value);
    return value;
  }

 private:
  static constexpr int perScalar = sizeof(scalar) / sizeof(real);
  static constexpr int perColumn = Row::dots * perScalar;
  NonBlockingSum<real>& sum_;
};

}  // namespace Komvos::Impl
