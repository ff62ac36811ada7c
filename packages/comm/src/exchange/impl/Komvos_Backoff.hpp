/// \file Komvos_Backoff.hpp
/// How a rank waits for another rank of its node.
#pragma once

namespace Komvos::Impl {

class PrivateComm;

/// What a rank does while it waits for others of its node: spin, then let another process run; and let MPI make
/// progress, as every blocking MPI call would.
class Backoff {
 public:
  explicit Backoff(const PrivateComm& comm) : comm_(comm) {}
  /// One turn of waiting.
  void pause();
  /// Only lets another process run: for loops that call MPI themselves.
  static void yield();

 private:
  const PrivateComm& comm_;
  unsigned turns_ = 0;  // goes round after half an hour of waiting: some more spins
};

}  // namespace Komvos::Impl
