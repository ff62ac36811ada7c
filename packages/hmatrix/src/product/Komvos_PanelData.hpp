/// \file Komvos_PanelData.hpp
/// What kernels read of panels.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <type_traits>

#include "Komvos_PanelLayout.hpp"
#include "Komvos_ValueFormat.hpp"

namespace Komvos::Impl {

template <class Value>
struct RealPart {
  using type = Value;
};
template <class Real>
struct RealPart<Kokkos::complex<Real>> {
  using type = Real;
};

/// In double: the scale alone may be too small for a float.
template <class Value>
KOKKOS_INLINE_FUNCTION Value timesScale(const Value& value, double scale) {
  if constexpr (std::is_floating_point_v<Value>) {
    return static_cast<Value>(static_cast<double>(value) * scale);
  } else {
    return value * static_cast<typename RealPart<Value>::type>(scale);
  }
}

/// What kernels need of Panels.
template <class Value>
struct PanelData {
  const unsigned char* values;
  const Panel* panels;
  const PanelStrip* strips;
  const PanelRun* runs;
  const double* outputScale;  ///< or nullptr

  /// Values of a strip, without the scale of their run. \param index of the value in the strip
  KOKKOS_INLINE_FUNCTION Value valueAt(const PanelStrip& strip, std::ptrdiff_t index) const {
    const unsigned char* const upper = values + strip.firstByte;
    if (strip.format == ValueFormat::Whole) {
      return reinterpret_cast<const Value*>(upper)[index];
    }
    if constexpr (std::is_floating_point_v<Value>) {
      return integerAt<Value>(strip.format, upper, values + strip.lowerByte, index);
    } else {
      return Value(0);  // complex values are whole
    }
  }
  KOKKOS_INLINE_FUNCTION Value scaled(Value sum, std::ptrdiff_t output) const {
    return outputScale != nullptr ? timesScale(sum, outputScale[output]) : sum;
  }
};

}  // namespace Komvos::Impl
