/// \file Komvos_Broadcast.hpp
/// Text that one rank has, or reads, and all need.
#pragma once

#include <mpi.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

/// The text of `root`. \throws BadInput on all ranks if it is longer than 1 GiB \note Collective on `comm`.
inline std::string broadcast(MPI_Comm comm, std::string text, int root = 0) {
  unsigned long long bytes = text.size();
  mpiCheck(MPI_Bcast(&bytes, 1, MPI_UNSIGNED_LONG_LONG, root, comm), "MPI_Bcast");
  if (bytes > 1ull << 30) {
    throw BadInput("a text of " + std::to_string(bytes) + " bytes is too long to be sent to all ranks");
  }
  text.resize(bytes);
  mpiCheck(MPI_Bcast(text.data(), static_cast<int>(bytes), MPI_CHAR, root, comm), "MPI_Bcast");
  return text;
}

/// The text of a file, which rank 0 reads. \param error to be thrown if it cannot be read, as a directory cannot
/// \note Collective on `comm`. \throws BadInput on all ranks
inline std::string broadcastFile(MPI_Comm comm, const std::string& file, const std::string& error) {
  int rank = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  std::string text;
  throwOnAllIfAny(comm, errorIn([&] {
                    if (rank != 0) {
                      return;
                    }
                    std::ifstream in(file, std::ios::binary);
                    if (!in || std::filesystem::is_directory(file)) {
                      throw BadInput(error);
                    }
                    text.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
                  }));
  return broadcast(comm, std::move(text));
}

}  // namespace Komvos::Impl
