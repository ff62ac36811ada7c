/// \file Komvos_Backoff.hpp
/// How a rank waits for another rank of its node.
#pragma once

namespace Komvos::Impl {

class PrivateComm;

/// Whether MPI lets another process run in each call that finds nothing to do. Open MPI has a setting for it, which
/// mpirun switches on where there are more ranks than cores. False for other MPIs. To be called after MPI_Init.
bool mpiYieldsWhenIdle();

/// What a rank does while it waits for others of its node: spin, then let another process run; and let MPI make
/// progress, as every blocking MPI call would.
class Backoff {
 public:
  explicit Backoff(const PrivateComm& comm) : comm_(comm) {}
  /// One turn of waiting.
  void pause();
  /// Lets another process run, unless MPI does: for loops in which each turn calls MPI and finds nothing. Whoever
  /// yields twice a turn looks half as often where ranks share cores.
  static void yieldUnlessMpiDoes();

 private:
  const PrivateComm& comm_;
  unsigned turns_ = 0;  // goes round after half an hour of waiting: some more spins
};

}  // namespace Komvos::Impl
