#include "bem/error_estimate.hpp"

#include <algorithm>

namespace Komvos::Program {

namespace {

/// Mixes the bits of a number (SplitMix64, of Steele, Lea and Flood).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

double errorSign(std::int64_t unknown, int vector) {
  return ((mixed(static_cast<std::uint64_t>(unknown)) >> vector) & 1U) != 0 ? 1 : -1;
}

std::vector<int> errorRows(int unknowns) {
  const std::int64_t count = std::min(100, unknowns);
  std::vector<int> rows;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t begin = k * unknowns / count, end = (k + 1) * unknowns / count;
    const auto offset =
        mixed(static_cast<std::uint64_t>(k) + 0x6b6f6d766f73U) % static_cast<std::uint64_t>(end - begin);
    rows.push_back(static_cast<int>(begin + static_cast<std::int64_t>(offset)));
  }
  return rows;
}

}  // namespace Komvos::Program
