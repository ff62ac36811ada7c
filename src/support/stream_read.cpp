#include "support/stream_read.hpp"

#include <algorithm>
#include <stdexcept>

namespace Komvos::Program {

StreamRead::StreamRead(std::int64_t bytes)
    : pieces_(std::max<std::int64_t>(1, (bytes / 8 + pieceLength / 2) / pieceLength)),
      piecesOfArray_(std::min<std::int64_t>(pieces_, 1'000'000'000 / 8 / pieceLength)),
      values_("Komvos::Program::StreamRead", static_cast<std::size_t>(piecesOfArray_ * pieceLength)) {}

void StreamRead::run() const {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const double* values = values_.data();
  const std::int64_t piecesOfArray = piecesOfArray_;
  double sum = 0;
  Kokkos::parallel_reduce(
      "Komvos::Program::StreamRead", Kokkos::RangePolicy<Host, Kokkos::IndexType<std::int64_t>>(0, pieces_),
      [=](std::int64_t p, double& to) {
        const double* piece = values + p % piecesOfArray * pieceLength;
        double sums[16] = {};
        for (std::int64_t i = 0; i < pieceLength; i += 16) {
          for (int k = 0; k < 16; ++k) {
            sums[k] += piece[i + k];
          }
        }
        for (const double s : sums) {
          to += s;
        }
      },
      sum);
  if (sum != 0) {
    throw std::logic_error("a sum of zeros is not zero");
  }
}

}  // namespace Komvos::Program
