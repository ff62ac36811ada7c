/// \file Komvos_RowFormat.hpp
/// How a row of a sparse matrix is laid out in a message.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace Komvos::Impl {

/// A row of n entries, in words of 8 bytes: a check, n, global columns, values; columns and values are padded to 16
/// bytes, so that complex numbers are aligned. Where only values travel, columns are left out.
///
/// The check is a sum over the bits of all entries, and of the row's global id, which the receiver knows. Where only
/// values travel it is that of id and n alone: then each value is read once on either side.
template <class Value>
struct RowFormat {
  using word = std::uint64_t;
  static_assert(sizeof(Value) == 4 || sizeof(Value) == 8 || sizeof(Value) == 16, "values of 4, 8 or 16 bytes");
  static constexpr int header = 2;

  bool withColumns = true;

  KOKKOS_INLINE_FUNCTION static std::int64_t even(std::int64_t words) { return (words + 1) / 2 * 2; }
  KOKKOS_INLINE_FUNCTION std::int64_t columnWords(std::int64_t n) const { return withColumns ? even(n) : 0; }
  KOKKOS_INLINE_FUNCTION std::int64_t valuesAt(std::int64_t n) const { return header + columnWords(n); }
  KOKKOS_INLINE_FUNCTION static std::int64_t valueWords(std::int64_t n) {
    return even((n * static_cast<std::int64_t>(sizeof(Value)) + 7) / 8);
  }
  KOKKOS_INLINE_FUNCTION std::int64_t words(std::int64_t n) const { return valuesAt(n) + valueWords(n); }

  /// What the check of an empty row is.
  KOKKOS_INLINE_FUNCTION static word label(std::int64_t row, std::int64_t n) {
    return (static_cast<word>(row) + 1) * 0x9e3779b97f4a7c15ULL ^ static_cast<word>(n) * 0xc2b2ae3d27d4eb4fULL;
  }
  /// What an entry adds to it.
  KOKKOS_INLINE_FUNCTION static word bits(const Value& value) {
    if constexpr (sizeof(Value) == 4) {
      std::uint32_t part;
      memcpy(&part, &value, sizeof(part));
      return part;
    } else {
      constexpr int parts = sizeof(Value) / sizeof(word);
      word part[parts];
      memcpy(part, &value, sizeof(part));
      word sum = part[0];
      for (int i = 1; i < parts; ++i) {
        sum += part[i];
      }
      return sum;
    }
  }
};

}  // namespace Komvos::Impl
