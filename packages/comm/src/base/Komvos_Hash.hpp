/// \file Komvos_Hash.hpp
/// A hash of 64 bits.
#pragma once

#include <cstdint>
#include <string>

namespace Komvos::Impl {

/// The hash of what was hashed so far and one more number: splitmix64 of their sum, so begin with 0 or with a hash.
inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t z = hash + 0x9e3779b97f4a7c15u + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Of a text, the same in all processes and programs.
inline std::uint64_t hashOf(const std::string& text) {
  std::uint64_t hash = text.size();
  for (const char c : text) {
    hash = mix(hash, static_cast<unsigned char>(c));
  }
  return hash;
}

}  // namespace Komvos::Impl
