/// \file Komvos_Poison.hpp
/// For tests of staged exchanges: fills memory that must not be read yet, so that a forgotten copy shows in results.
#pragma once

#include <limits>
#include <string>

#include "Komvos_GatherKernels.hpp"

namespace Komvos::Impl {

/// NaN, or for integers a number that is too large for any test.
template <class Scalar>
struct Poison {
  static Scalar value() {
    using Limits = std::numeric_limits<Scalar>;
    return Limits::has_quiet_NaN ? Limits::quiet_NaN() : static_cast<Scalar>(Limits::max() / 2);
  }
};
template <class Real>
struct Poison<Kokkos::complex<Real>> {
  static Kokkos::complex<Real> value() { return {Poison<Real>::value(), Poison<Real>::value()}; }
};

/// target(to(i), j) = value for all columns j; an empty list stands for i.
template <class Scalar, class Target, class IndexView>
struct FillRows {
  Target target;
  IndexView to;
  int columns;
  Scalar value;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    const int row = to.extent(0) == 0 ? i : to(i);
    for (int j = 0; j < columns; ++j) {
      target(row, j) = value;
    }
  }
};

// Kokkos wants labels as strings; made once, since making them allocates.
inline const std::string poisonLabel = "Komvos::Exchange::poison";

/// The first `length` positions of a message buffer. \param space can access it
template <class ExecutionSpace, class Scalar>
void poisonBuffer(const ExecutionSpace& space, const BufferAccess<Scalar>& buffer, int length) {
  using Fill = FillRows<Scalar, BufferAccess<Scalar>, typename DeviceGatherList<Kokkos::HostSpace>::index_view>;
  runItems(space, poisonLabel, length, buffer.columns, Fill{buffer, {}, buffer.columns, Poison<Scalar>::value()});
}

/// The entries of a vector that `list` writes. \param vector VectorAccess or BufferAccess
template <class Scalar, class ExecutionSpace, class Vector, class MemorySpace>
void poisonTargets(const ExecutionSpace& space, const DeviceGatherList<MemorySpace>& list, const Vector& vector,
                   int columns) {
  using Fill = FillRows<Scalar, Vector, typename DeviceGatherList<MemorySpace>::index_view>;
  runItems(space, poisonLabel, list.rows, columns, Fill{vector, list.to, columns, Poison<Scalar>::value()});
}

}  // namespace Komvos::Impl
