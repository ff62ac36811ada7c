/// \file Komvos_MessageEngine.hpp
/// Runs the messages of a schedule: persistent requests, receives first, each send as soon as its inputs are there.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "Komvos_NodeMemory.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Schedule.hpp"

namespace Komvos::Impl {

/// The MPI side of an exchange; knows neither scalars nor memory spaces.
///
/// Order of calls: startReceives, (pack what has no predecessor), startReadySends, then poll / popReady / startSend
/// until receivesDone, then finish. All receives are posted to user buffers before any message leaves this rank, so
/// the time of a message does not depend on what MPI buffers.
///
/// Messages that have a slot in the node's mailbox make no MPI call, unless their values are too wide for it; then the
/// signal of the slot still comes first, so that ranks which disagree about the width find out and none waits.
///
/// A rank that cannot take part calls abandon() instead: it sends an empty message in place of each planned one. A
/// rank that receives one passes it on, so that every rank downstream finishes and throws, and none waits for ever.
class MessageEngine {
 public:
  struct Mail {
    const NodeMailbox* box;  ///< null: everything goes by MPI
    NodeMailbox::Direction direction;
  };
  MessageEngine(std::shared_ptr<PrivateComm> comm, int firstTag, const Schedule& schedule, Mail mail);
  ~MessageEngine();
  MessageEngine(const MessageEngine&) = delete;
  MessageEngine& operator=(const MessageEngine&) = delete;

  /// Selects the requests for these buffers, created on first use. Position p of a buffer is at p * bytesPerValue.
  /// \param targets if not null, receives with a directTarget go there, target t at t * bytesPerValue
  void bind(const void* sendBuffer, void* receiveBuffer, int bytesPerValue, void* targets = nullptr);
  /// Frees all requests: the buffers are about to go.
  void unbind();

  void startReceives();
  /// Starts all sends that wait for nothing.
  void startReadySends();
  /// Looks for completed receives. \param wait blocks until at least one completes, if any is outstanding.
  void poll(bool wait);
  /// Once nothing is left to receive, poll makes no MPI call any more, and with most MPI libraries a long message moves
  /// only during MPI calls of its sender.
  void pollSends();
  /// Blocks until every receive is complete. Only when no send waits for one: !relaysPending().
  void waitForAll();
  /// A send whose inputs are all there, or -1.
  int popReady();
  void startSend(int send);
  /// Whether this send leaves its values in the receive buffer, where the receiver finds them: nothing is to be packed.
  bool isRelayed(int send) const { return sendSlots_[send].relayed && fitsMailbox(now_->bytesPerValue); }
  /// \return whether every receive is complete; sends may still be waiting in popReady().
  bool receivesDone() const { return outstandingReceives_ == 0; }
  bool onNodeReceivesDone() const { return outstandingOnNode_ == 0; }
  /// True while a send waits for a receive: poll() now and then keeps values travelling.
  bool relaysPending() const { return startedSends_ < static_cast<int>(schedule_.sends.size()); }
  /// Completes all sends. \throws PlanMismatch if the exchange was abandoned somewhere or a message had a wrong size.
  void finish();
  std::size_t memoryBytes() const;  ///< on this side of MPI
  /// Takes part in this exchange without values, so that no other rank hangs. Instead of startReceives; needs no bind.
  void abandon();

 private:
  struct Binding {
    const void* sendBuffer;
    const void* receiveBuffer;
    const void* targets;
    int bytesPerValue;
    MPI_Datatype type;
    std::vector<MPI_Request> sends;     // null where the values go through the mailbox
    std::vector<MPI_Request> receives;  // likewise
  };

  void resetCounts();
  /// Open MPI 4 may return MPI_SUCCESS although a persistent receive failed, but sets MPI_ERROR of its status. Others
  /// set it only when they return MPI_ERR_IN_STATUS; so it is cleared before each call, and looked at after it.
  void clearErrors();
  bool isMailed(const NodeMailbox::Slot& slot) const { return slot.signal != nullptr; }
  bool fitsMailbox(int bytesPerValue) const { return mail_ != nullptr && bytesPerValue <= mail_->maxBytesPerValue(); }
  void* receiveAddress(int receive) const;
  void pollMpi(bool wait);
  /// Takes what has arrived in the mailbox.
  void pollMail();
  void openMail(int receive);
  void copyMail(int receive, const NodeMailbox::Slot& slot);
  void drain(const Schedule::Message& message);
  void complete(int receive, const MPI_Status& status);
  void completed(int receive);
  void sendNothing(int send);
  void waitForEmptySends();
  /// Leaves the current requests and their datatype to MPI. After a truncated message Open MPI 4 frees the persistent
  /// request, and with it a reference to the datatype that is ours: freeing them again corrupts its memory.
  void forget();
  void fail(const std::string& text);

  std::shared_ptr<PrivateComm> comm_;
  int firstTag_;
  const Schedule& schedule_;
  const NodeMailbox* mail_;
  std::vector<NodeMailbox::Slot> sendSlots_;
  std::vector<NodeMailbox::Slot> receiveSlots_;
  std::vector<int> mailedReceives_;  // all that have a slot
  std::vector<int> unopened_;        // those whose signal has not been seen in this exchange
  std::uint64_t exchange_ = 0;       // counts from 1
  std::vector<Binding> bindings_;
  Binding* now_ = nullptr;
  std::vector<int> waitingFor_;  // per send
  std::vector<int> ready_;       // stack of sends to pack and start
  std::vector<bool> received_;   // per receive
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  int outstandingReceives_ = 0;
  int outstandingOnNode_ = 0;
  int startedSends_ = 0;
  bool sendsComplete_ = false;  // as far as pollSends knows
  std::string failure_;
  bool requestsLost_ = false;  // a receive ended with an error, see forget()
  std::vector<MPI_Request> emptySends_;
  std::vector<char> unread_;
};

}  // namespace Komvos::Impl
