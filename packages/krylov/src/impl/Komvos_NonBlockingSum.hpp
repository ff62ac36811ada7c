/// \file Komvos_NonBlockingSum.hpp
/// Sums over all ranks that travel while the caller computes.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace Komvos {
class NodeTopology;
}

namespace Komvos::Impl {

class PrivateComm;
class ProgressHook;
class NodeSum;

/// One sum at a time, of up to a fixed count of numbers. All ranks get the same bits, the same in each run.
///
/// Within nodes numbers travel through shared memory, and only one rank of each node takes part in an MPI_Iallreduce:
/// a host sends as many messages as it would with one rank. Where a node has no shared memory to give, or another sum
/// of the same communicator is under way in this manner, all ranks take part.
///
/// While a sum is under way, node-aware exchanges keep it going (ProgressHook); else progress() does.
///
/// If it is destroyed under way, its buffers stay until the end of the program: MPI may still write there. Sums that
/// are made afterwards go through MPI. A sum in which one rank does not take part to the end never arrives on the
/// others, as with MPI's.
/// \tparam Real float or double
template <class Real>
class NonBlockingSum {
 public:
  /// \param topology  ranks that it puts on a node share one; null: MPI's own reduction among all ranks
  /// \param error that this rank has met before, or nothing: saves asking for it in a reduction of its own
  /// \note Collective. \throws BadInput on all ranks if one has an error
  NonBlockingSum(std::shared_ptr<PrivateComm> comm, int capacity, const NodeTopology* topology,
                 const std::string& error = {});
  ~NonBlockingSum();
  NonBlockingSum(const NonBlockingSum&) = delete;
  NonBlockingSum& operator=(const NonBlockingSum&) = delete;

  /// What this rank adds; to be written before start(). [capacity]
  Real* own() { return buffers_->own.data(); }

  /// \note Collective; returns at once. \throws Error if a sum is under way, or `count` exceeds the capacity
  void start(int count);
  /// As start(), and waits for it, in one blocking operation where MPI does it.
  void run(int count);
  /// Does what can be done without waiting, if a sum is under way.
  void progress();
  /// Waits for the sum that is under way.
  void wait();
  /// Of the last sum that was waited for. They stay until the next start().
  const Real* sums() const { return buffers_->sums.data(); }

 private:
  enum class State { idle, gathering, reducing, awaitingResult, arrived };
  struct Buffers {
    std::vector<Real> own, partial, sums;
  };

  void requireStartable(int count) const;
  void begin(int count);
  void gather();
  void deliver();
  bool reducesAlone() const;

  std::shared_ptr<PrivateComm> comm_;
  std::unique_ptr<Buffers> buffers_;
  std::shared_ptr<NodeSum> node_;  // null: MPI alone
  std::unique_ptr<ProgressHook> hook_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  State state_ = State::idle;
  bool shares_ = false;  // the sum under way goes through shared memory
  int count_ = 0;
};

}  // namespace Komvos::Impl
