/// \file Komvos_ValueFormat.hpp
/// Values in as few bytes as their accuracy needs.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace Komvos::Impl {

/// How a value is stored: whole, or as an integer of so many bytes, which a scale multiplies. No exponent is stored, for
/// errors count in proportion to the largest value of a column or block, not to each.
///
/// Integers of 5 and 6 bytes are stored in two planes, one behind the other: all upper parts (4 bytes, with the sign),
/// then all lower parts (1 or 2 bytes, without). Both are read by vector instructions.
enum class ValueFormat : int { Whole = 0, Bytes1 = 1, Bytes2 = 2, Bytes3 = 3, Bytes4 = 4, Bytes5 = 5, Bytes6 = 6 };
constexpr int numValueFormats = 7;

/// Of a value in the upper plane; of Whole, none.
KOKKOS_INLINE_FUNCTION constexpr int upperBytes(ValueFormat format) {
  const int bytes = static_cast<int>(format);
  return bytes >= 4 ? 4 : bytes;
}
KOKKOS_INLINE_FUNCTION constexpr int lowerBytes(ValueFormat format) {
  return static_cast<int>(format) - upperBytes(format);
}

/// So many bytes has a value.
template <class Value>
KOKKOS_INLINE_FUNCTION constexpr int bytesOf(ValueFormat format) {
  return format == ValueFormat::Whole ? static_cast<int>(sizeof(Value)) : static_cast<int>(format);
}

/// The largest integer: they go from -most to most.
inline double largestInteger(ValueFormat format) { return std::ldexp(1.0, 8 * static_cast<int>(format) - 1) - 1; }

/// The most bytes that save something over a whole value.
template <class Real>
constexpr ValueFormat widestFormat() {
  return sizeof(Real) == 4 ? ValueFormat::Bytes3 : ValueFormat::Bytes6;
}

/// The integer at `index` of the planes; a value is this times its scale.
template <class Real>
KOKKOS_INLINE_FUNCTION Real integerAt(ValueFormat format, const unsigned char* upper, const unsigned char* lower,
                                      std::int64_t index) {
  switch (format) {
    case ValueFormat::Bytes1:
      return static_cast<Real>(reinterpret_cast<const std::int8_t*>(upper)[index]);
    case ValueFormat::Bytes2:
      return static_cast<Real>(reinterpret_cast<const std::int16_t*>(upper)[index]);
    case ValueFormat::Bytes3:
      return static_cast<Real>(upper[3 * index] + 256 * upper[3 * index + 1] +
                               65536 * static_cast<std::int8_t>(upper[3 * index + 2]));
    case ValueFormat::Bytes4:
      return static_cast<Real>(reinterpret_cast<const std::int32_t*>(upper)[index]);
    case ValueFormat::Bytes5:
      return static_cast<Real>(reinterpret_cast<const std::int32_t*>(upper)[index]) * Real(256) +
             static_cast<Real>(lower[index]);
    default:
      return static_cast<Real>(reinterpret_cast<const std::int32_t*>(upper)[index]) * Real(65536) +
             static_cast<Real>(reinterpret_cast<const std::uint16_t*>(lower)[index]);
  }
}

/// The integer nearest to a value of less than 2^51. (std::llround is a call, and this a vector instruction.)
inline std::int64_t nearestInteger(double value) {
  const double shifted = value + 0x1.8p52;
  std::int64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  return bits - 0x4338000000000000;
}

/// Writes integers of values / scale to the planes. On the host.
/// \param index, step of the first value in the planes, and to the next \param count, values, stride of the values
template <class Real>
void storeIntegers(ValueFormat format, double scale, unsigned char* upper, unsigned char* lower, std::int64_t index,
                   std::int64_t step, std::int64_t count, const Real* values, std::ptrdiff_t stride) {
  const double factor = scale > 0 ? 1 / scale : 0;
  const auto store = [&](auto high, auto low, int shift) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t integer = nearestInteger(static_cast<double>(values[i * stride]) * factor);
      reinterpret_cast<decltype(high)*>(upper)[index + i * step] = static_cast<decltype(high)>(integer >> shift);
      if (shift > 0) {
        reinterpret_cast<decltype(low)*>(lower)[index + i * step] = static_cast<decltype(low)>(integer);
      }
    }
  };
  switch (format) {
    case ValueFormat::Whole:
      return;
    case ValueFormat::Bytes1:
      return store(std::int8_t(), std::uint8_t(), 0);
    case ValueFormat::Bytes2:
      return store(std::int16_t(), std::uint8_t(), 0);
    case ValueFormat::Bytes3:
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t integer = nearestInteger(static_cast<double>(values[i * stride]) * factor);
        for (int byte = 0; byte < 3; ++byte) {
          upper[3 * (index + i * step) + byte] = static_cast<unsigned char>(integer >> (8 * byte));
        }
      }
      return;
    case ValueFormat::Bytes4:
      return store(std::int32_t(), std::uint8_t(), 0);
    case ValueFormat::Bytes5:
      return store(std::int32_t(), std::uint8_t(), 8);
    case ValueFormat::Bytes6:
      return store(std::int32_t(), std::uint16_t(), 16);
  }
}

}  // namespace Komvos::Impl
