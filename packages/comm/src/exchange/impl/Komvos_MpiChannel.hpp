/// \file Komvos_MpiChannel.hpp
/// The MPI messages of one direction of an exchange: persistent requests, one set for each set of buffers.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "Komvos_BufferAddresses.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Schedule.hpp"

namespace Komvos::Impl {

/// Knows requests, not dependencies: who calls it decides when a message starts. Counts are values, not bytes, so that
/// a message may be larger than 2 GiB.
class MpiChannel {
 public:
  /// \param firstTag messages have tags firstTag + stage
  MpiChannel(std::shared_ptr<PrivateComm> comm, int firstTag, const Schedule& schedule);
  ~MpiChannel();
  MpiChannel(const MpiChannel&) = delete;
  MpiChannel& operator=(const MpiChannel&) = delete;

  /// Selects the requests for these buffers. \return whether there are any
  bool select(const BufferAddresses& buffers);
  /// Makes a set without requests for these buffers, and selects it.
  void addBinding(const BufferAddresses& buffers);
  void initReceive(int receive);
  void initSend(int send);
  /// Drops the selected set after an error: leaves its requests and their datatype to MPI, but for MPICH. After a
  /// truncated message Open MPI 4 frees the persistent request, and with it a reference to the datatype that is ours:
  /// freeing them again corrupts its memory.
  void dropBinding();
  /// Frees all requests: the buffers are about to go.
  void freeBindings();

  // On the selected requests:
  const BufferAddresses& buffers() const { return binding_->buffers; }
  bool hasReceive(int receive) const { return binding_->receives[receive] != MPI_REQUEST_NULL; }
  void startReceive(int receive);
  void startAllReceives();
  /// Does nothing if the send has no request.
  void startSend(int send);
  /// Completes some receives, see completedReceive(). \param wait blocks until there is one, if any was started
  /// \return how many
  int completeSome(bool wait);
  int completedReceive(int i) const { return indices_[i]; }
  /// Of the i-th receive that completeSome() completed; after completeAll(), of receive i.
  const MPI_Status& status(int i) const { return statuses_[i]; }
  /// Waits for all receives, or until one fails: then some may be pending, and it is to be called again.
  void completeAll();
  static bool isPending(const MPI_Status& status) { return status.MPI_ERROR == MPI_ERR_PENDING; }
  /// \return whether all started sends are complete
  bool testSends();
  /// Waits for all started sends.
  void completeSends();
  /// Waits for empty sends too. Drops the binding if a receive failed.
  void finishFailed();

  /// What a completed receive brought.
  struct Arrival {
    MPI_Count values;
    bool failed;
  };
  Arrival arrivalOf(const MPI_Status& status);

  // Without buffers:
  /// Sends an empty message in place of a planned one.
  void sendEmpty(int send);
  void waitForEmptySends();
  /// Receives a message of whatever length in place of a planned one, and discards it.
  void drain(int receive);

  const PrivateComm& comm() const { return *comm_; }
  std::size_t memoryBytes() const;  ///< on this side of MPI

 private:
  struct Binding {
    BufferAddresses buffers;
    MPI_Datatype type;
    std::vector<MPI_Request> sends;     // null where the values go another way
    std::vector<MPI_Request> receives;  // likewise
  };

  static void freeBinding(Binding& binding);
  /// Open MPI 4 may return MPI_SUCCESS although a persistent receive failed, but sets MPI_ERROR of its status. Others
  /// set it only when they return MPI_ERR_IN_STATUS; so it is cleared before each call, and looked at after it.
  void clearErrors();
  /// Completes started receives, each by an MPI call of its own, see arraysReturnErrors().
  /// \param wait until there is one
  int completeOneByOne(bool wait);
  int tagOf(const Schedule::Message& message) const { return firstTag_ + message.stage; }

  std::shared_ptr<PrivateComm> comm_;
  int firstTag_;
  const Schedule& schedule_;
  std::vector<Binding> bindings_;
  Binding* binding_ = nullptr;  // selected
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> started_;    // receives that completeOneByOne() has not completed; empty where it is not used
  bool receiveFailed_ = false;  // in this exchange
  std::vector<MPI_Request> emptySends_;
  std::vector<char> discarded_;
};

}  // namespace Komvos::Impl
