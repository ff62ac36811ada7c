/// \file Komvos_LevelOptions.hpp
/// Options of exchanges on levels that some ranks have no part of.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "Komvos_ExchangeOptions.hpp"

namespace Komvos::Impl {

/// Whether they have the same ranks in the same order.
bool haveTheSameRanks(MPI_Comm a, MPI_Comm b);

/// Options for the ranks of the finest level, made to fit those of any level: nodes and sockets have fewer ranks there.
class LevelOptions {
 public:
  /// \note Collective on `finest`. \throws BadInput on all its ranks if the options cannot be used
  LevelOptions(MPI_Comm finest, const ExchangeOptions& options);

  /// \param level of ranks of the finest level; must live as long as this \note Collective on it, the first time.
  const ExchangeOptions& on(MPI_Comm level);
  /// Of all that exchanges depend on beside their halo, on this rank, but for ExchangeOptions::record; nothing where
  /// they are not to be reused.
  const std::optional<std::uint64_t>& fingerprint() const { return fingerprint_; }

 private:
  struct OnLevel {
    MPI_Comm comm;
    ExchangeOptions options;
  };
  int rank_ = 0;  // on the finest level
  std::optional<std::uint64_t> fingerprint_;
  std::vector<OnLevel> known_;
};

}  // namespace Komvos::Impl
