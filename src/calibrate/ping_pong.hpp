/// \file ping_pong.hpp
/// One way times of messages.
#pragma once

#include <mpi.h>

#include <functional>
#include <utility>
#include <vector>

#include "Komvos_MachineModel.hpp"

namespace Komvos::Program {

/// 8, 16, 24, 32, 48, 64, 96 ... up to `maxBytes`: two sizes for each doubling, all of them multiples of 8.
std::vector<long> messageSizes(long maxBytes);

struct PingPongSettings {
  std::vector<long> sizes;  ///< bytes
  int samples;  ///< round trips of each size, at least; above 256 KiB fewer, but 10 if so many are asked for
};

/// All `pairs` of ranks bounce a message at the same time; the time of a size is half a round trip, the median over
/// samples, and the maximum over pairs. The other ranks sleep.
/// \param onSize called before each size is measured, with its index; each comes several times
/// \return one time for each size, on all ranks
/// \note Collective on `comm`.
std::vector<MeasuredSeries::Point> pingPong(MPI_Comm comm, const std::vector<std::pair<int, int>>& pairs,
                                            const PingPongSettings& settings, const std::function<void(int)>& onSize);

}  // namespace Komvos::Program
