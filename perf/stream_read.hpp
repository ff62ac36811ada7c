// The time to read so many bytes, beside which products are timed.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "Komvos_KokkosShim.hpp"

namespace Komvos::Perf {

/// 4,096 values by a thread of a CPU, one after the other.
struct SumOfPiece {
  const double* values;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t piece, double& to) const {
    double sums[16] = {};
    for (std::int64_t i = piece * 4096; i < (piece + 1) * 4096; i += 16) {
      for (int k = 0; k < 16; ++k) {
        sums[k] += values[i + k];
      }
    }
    for (const double sum : sums) {
      to += sum;
    }
  }
};

/// 16 bytes by a thread of a GPU, beside those of the next thread.
struct alignas(16) PairOfValues {
  double first, second;
};
struct SumOfPair {
  const PairOfValues* values;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, double& to) const {
    const PairOfValues pair = values[i];
    to += pair.first + pair.second;
  }
};

/// Reads as many bytes as a product, and does next to nothing with them.
template <class Space>
class StreamRead {
 public:
  explicit StreamRead(std::int64_t mostBytes)
      : values_("Komvos::StreamRead", static_cast<std::size_t>(mostBytes) / 8 + 2) {}
  void run(std::int64_t bytes) {
    using Policy = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
    double sum = 0;
    if constexpr (Impl::runsOnHost<Space>()) {
      Kokkos::parallel_reduce("Komvos::StreamRead", Policy(0, bytes / 8 / 4096), SumOfPiece{values_.data()}, sum);
    } else {
      Kokkos::parallel_reduce("Komvos::StreamRead", Policy(0, bytes / 16),
                              SumOfPair{reinterpret_cast<const PairOfValues*>(values_.data())}, sum);
    }
    if (sum != 0) {
      throw std::logic_error("a sum of zeros is not zero");
    }
  }

 private:
  Kokkos::View<double*, typename Impl::BufferSpace<Space>::type> values_;
};

}  // namespace Komvos::Perf
