/// \file product_times.hpp
/// How long products take, beside plain reads of as many bytes.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>

namespace Komvos::Program {

/// Medians; of each product and read, the time of the slowest rank counts.
struct ProductTimes {
  int count = 0;
  double seconds = 0, readSeconds = 0;
  std::int64_t bytes = 0;      ///< of the matrix that one product reads, all ranks
  std::int64_t readBytes = 0;  ///< of a plain read, all ranks at once

  double bandwidth() const { return static_cast<double>(bytes) / seconds; }  ///< bytes per second
  double readBandwidth() const { return static_cast<double>(readBytes) / readSeconds; }
};

/// Products and reads in turns, after one of each that does not count.
/// \param bytes that a product of this rank reads \param count nothing is done if it is 0
/// \note Collective on `comm`.
ProductTimes timeProducts(MPI_Comm comm, std::int64_t bytes, int count, const std::function<void()>& product);

}  // namespace Komvos::Program
