/// \file Komvos_PendingMaximum.hpp
/// A reduction that hides behind other work.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

namespace Komvos::Impl {

class PrivateComm;

/// A maximum over ranks, under way. It may be destroyed on some ranks while others still wait for it: what MPI writes
/// to then belongs to the communicator, and is completed before that is freed.
class PendingMaximum {
 public:
  explicit PendingMaximum(std::shared_ptr<PrivateComm> comm);
  ~PendingMaximum();
  PendingMaximum(const PendingMaximum&) = delete;
  PendingMaximum& operator=(const PendingMaximum&) = delete;

  /// \param mine equally many on all ranks
  /// \note Collective, but does not wait.
  void start(const std::vector<double>& mine);
  /// Waits for what was started, if it is not there yet.
  const std::vector<double>& finish();

 private:
  struct InFlight {
    std::vector<double> mine, most;
    MPI_Request request = MPI_REQUEST_NULL;
    ~InFlight();
  };
  struct LeftBehind;  // with the communicator

  std::shared_ptr<PrivateComm> comm_;
  std::unique_ptr<InFlight> inFlight_;
};

}  // namespace Komvos::Impl
