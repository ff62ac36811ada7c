/// \file Komvos_BufferAddresses.hpp
/// Where the messages of an exchange start and end.
#pragma once

#include <cstdint>

#include "Komvos_Schedule.hpp"

namespace Komvos::Impl {

/// The memory of one exchange in one direction. Position p of a buffer is at p * bytesPerValue, and so is entry p of
/// the vector to fill.
struct BufferAddresses {
  void* sendBuffer = nullptr;
  void* receiveBuffer = nullptr;
  /// To be filled in place, see Schedule; null: all messages go to the receive buffer. Must be null where values are
  /// too wide for shared memory, if there is any: MPI cannot scatter.
  void* vector = nullptr;
  int bytesPerValue = 0;  ///< of all columns

  const char* sendAddress(const Schedule::Message& send) const {
    return static_cast<const char*>(sendBuffer) + bytes(send.first);
  }
  /// Not for messages that are scattered.
  char* receiveAddress(const Schedule::Message& receive) const {
    const bool inPlace = vector != nullptr && receive.contiguousTarget >= 0;
    return inPlace ? static_cast<char*>(vector) + bytes(receive.contiguousTarget)
                   : static_cast<char*>(receiveBuffer) + bytes(receive.first);
  }
  bool scatters(const Schedule::Message& receive) const { return vector != nullptr && receive.isScattered; }

  bool operator==(const BufferAddresses& other) const {
    return bytesPerValue == other.bytesPerValue && sendBuffer == other.sendBuffer &&
           receiveBuffer == other.receiveBuffer && vector == other.vector;
  }

 private:
  std::int64_t bytes(int position) const { return static_cast<std::int64_t>(position) * bytesPerValue; }
};

}  // namespace Komvos::Impl
