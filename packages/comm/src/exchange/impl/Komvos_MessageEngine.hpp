/// \file Komvos_MessageEngine.hpp
/// Runs the messages of a schedule: receives first, each send as soon as its inputs are there.
#pragma once

#include <memory>
#include <string>

#include "Komvos_BufferAddresses.hpp"
#include "Komvos_DependencyTracker.hpp"
#include "Komvos_MpiChannel.hpp"
#include "Komvos_Schedule.hpp"
#include "Komvos_SharedMemoryChannel.hpp"

namespace Komvos::Impl {

/// The communication of one direction of an exchange; knows neither scalars nor memory spaces. Each message goes
/// through one of two channels, or through both; a tracker says which sends are ready.
///
/// Order of calls: bind, startReceives, (pack what has no predecessor), startReadySends, then poll / popReady /
/// startSend until receivesDone, then finish. All receives are posted to user buffers before any message leaves this
/// rank, so the time of a message does not depend on what MPI buffers.
///
/// A rank that cannot take part calls abandon() instead: it sends an empty message in place of each planned one. A
/// rank that receives one passes it on, so that every rank downstream finishes and throws, and none waits for ever.
class MessageEngine {
 public:
  /// \param shared where on-node messages go; null: everything goes by MPI
  MessageEngine(std::shared_ptr<PrivateComm> comm, int firstTag, const Schedule& schedule,
                const SharedMemoryBuffers* shared, Direction direction);
  ~MessageEngine();  ///< waits for sends: the buffers may go
  MessageEngine(const MessageEngine&) = delete;
  MessageEngine& operator=(const MessageEngine&) = delete;

  /// Selects the requests for these buffers, created on first use.
  void bind(const BufferAddresses& buffers);
  /// Frees all requests: the buffers are about to go. Not while sends are on their way.
  void unbind() { mpi_.freeBindings(); }

  void startReceives();
  /// Starts all sends that wait for nothing.
  void startReadySends();
  /// Looks for completed receives. \param wait blocks until at least one completes, if any is outstanding.
  void poll(bool wait);
  /// Once nothing is left to receive, poll makes no MPI call any more, and with most MPI libraries a long message moves
  /// only during MPI calls of its sender. Also after finish().
  void pollSends();
  /// Blocks until every receive is complete. Only when no send waits for one: !relaysPending().
  void waitForAll();
  /// A send whose inputs are all there, or -1.
  int popReady() { return tracker_.popReady(); }
  void startSend(int send);
  /// False where the receiver of a relayed message finds its values in our receive buffer.
  bool needsPacking(int send) const { return !shared_.isReadFromReceiveBuffer(send, mpi_.buffers().bytesPerValue); }
  /// \return whether every receive is complete; sends may still be waiting in popReady().
  bool receivesDone() const { return tracker_.outstandingReceives() == 0; }
  bool onNodeReceivesDone() const { return tracker_.outstandingOnNode() == 0; }
  /// True while a send waits for a receive: poll() now and then keeps values travelling.
  bool relaysPending() const { return !tracker_.allSendsStarted(); }
  /// This rank has no values to send from now on: later sends are empty, and finish() throws with this reason.
  void giveUp(const std::string& reason);
  /// The exchange is over for this rank: everything has arrived. Sends may still be on their way, see completeSends().
  /// \throws PlanMismatch if the exchange was abandoned somewhere or a message had a wrong size; then no send is.
  void finish();
  /// Waits until the send buffer may be written again, and the receive buffer of the other direction, which is the
  /// same.
  void completeSends();
  /// Takes part in this exchange without values, so that no other rank hangs. Instead of startReceives; needs no bind.
  void abandon();

  std::size_t memoryBytes() const;  ///< on this side of MPI

 private:
  void beginExchange();
  void pollMpi(bool wait);
  void receiveByMpi(int receive, const MPI_Status& status);
  /// The flag of `receive` has been seen.
  void receiveBySharedMemory(int receive);
  void sendNothing(int send);
  /// Keeps the first failure: "<what> arrived from rank p (rank r)<expected>".
  void fail(int receive, const std::string& what, const std::string& expected = {});

  const Schedule& schedule_;
  DependencyTracker tracker_;
  MpiChannel mpi_;
  SharedMemoryChannel shared_;
  bool sendsComplete_ = true;  // as far as pollSends knows
  std::string failure_;
};

}  // namespace Komvos::Impl
