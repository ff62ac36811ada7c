/// \file stream_read.hpp
/// How fast memory can be read.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

namespace Komvos::Program {

/// Reads memory by all threads of the host, and does next to nothing with it: what a product of a matrix of as many
/// bytes can hope for.
class StreamRead {
 public:
  /// \param bytes that run() reads, rounded to 32 kB; from an array of at most 1 GB, which is far above any cache
  explicit StreamRead(std::int64_t bytes);
  void run() const;
  std::int64_t bytes() const { return pieces_ * pieceLength * 8; }

 private:
  static constexpr std::int64_t pieceLength = 4096;
  std::int64_t pieces_, piecesOfArray_;
  Kokkos::View<double*, Kokkos::HostSpace> values_;
};

}  // namespace Komvos::Program
