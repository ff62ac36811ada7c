/// \file Komvos_PrivateComm.hpp
/// A communicator of our own beside the user's, so that our messages never meet his.
#pragma once

#include <mpi.h>

#include <memory>

#include "Komvos_NodeTopology.hpp"

namespace Komvos::Impl {

class NodeMemory;

/// A duplicate of a communicator, and the tags handed out on it. MPI errors are returned, not fatal.
///
/// One duplicate is made per user communicator and found again through an MPI attribute: thousands of exchanges
/// cost one MPI_Comm_dup. It lives as long as the user's communicator or any plan that uses it.
class PrivateComm {
 public:
  /// The duplicate that belongs to `parent`. \note Collective on `parent` the first time.
  static std::shared_ptr<PrivateComm> of(MPI_Comm parent);

  ~PrivateComm();
  PrivateComm(const PrivateComm&) = delete;
  PrivateComm& operator=(const PrivateComm&) = delete;

  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// First of `count` tags that no other live user of this communicator has (until MPI_TAG_UB wraps round).
  /// \note Collective in the sense that all ranks must ask in the same order; it does not communicate.
  int takeTags(int count);

  /// Which ranks share a node, as MPI says; asked once. \note Collective the first time.
  std::shared_ptr<const NodeTopology> detectedTopology();

  /// Which ranks share a socket, as hwloc says; asked once. \note Collective the first time.
  std::shared_ptr<const NodeTopology> detectedSockets();

  /// Memory shared with the ranks of this node. \note Collective the first time.
  NodeMemory& nodeMemory();

 private:
  explicit PrivateComm(MPI_Comm parent);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
  int nextTag_ = 1;
  int maxTag_ = 32767;
  std::shared_ptr<const NodeTopology> topology_;
  std::shared_ptr<const NodeTopology> sockets_;
  std::unique_ptr<NodeMemory> nodeMemory_;
};

}  // namespace Komvos::Impl
