/// \file Komvos_Broadcast.hpp
/// Text that one rank has and all need.
#pragma once

#include <mpi.h>

#include <string>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

/// The text of rank 0. \throws BadInput on all ranks if it is longer than 1 GiB \note Collective on `comm`.
inline std::string broadcast(MPI_Comm comm, std::string text) {
  unsigned long long bytes = text.size();
  mpiCheck(MPI_Bcast(&bytes, 1, MPI_UNSIGNED_LONG_LONG, 0, comm), "MPI_Bcast");
  if (bytes > 1ull << 30) {
    throw BadInput("a text of " + std::to_string(bytes) + " bytes is too long to be sent to all ranks");
  }
  text.resize(bytes);
  mpiCheck(MPI_Bcast(text.data(), static_cast<int>(bytes), MPI_CHAR, 0, comm), "MPI_Bcast");
  return text;
}

}  // namespace Komvos::Impl
