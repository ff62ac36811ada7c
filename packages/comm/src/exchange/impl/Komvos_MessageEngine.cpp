#include "Komvos_MessageEngine.hpp"

#include "Komvos_Backoff.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_ProgressHook.hpp"

// How this works. The engine has no thread: it works while the exchange calls it. startReceives() opens both channels,
// startReadySends() starts what waits for nothing. Each poll() looks at the flags in shared memory, then at MPI's
// receives; what has arrived is counted in the tracker, which makes sends ready. The exchange pops these, packs them
// and starts them. Its own sends, by MPI or in shared memory, are waited for when the next exchange begins
// (completeSends): a partner that is late does not hold up what this rank does with values that it has.
//
// A message goes by shared memory if both ranks share memory and its values fit, otherwise by MPI. One that does not
// fit uses both: the flag tells the width, and the receive is started when the flag is seen.
//
// A wrong message never ends the exchange early, for others wait for what travels on here. fail() keeps the first
// reason, later sends are empty, and finish() throws once everything is complete. Errors of MPI itself are thrown at
// once.

namespace Komvos::Impl {

MessageEngine::MessageEngine(std::shared_ptr<PrivateComm> comm, int firstTag, const Schedule& schedule,
                             const SharedMemoryBuffers* shared, Direction direction)
    : schedule_(schedule),
      tracker_(schedule),
      mpi_(std::move(comm), firstTag, schedule),
      shared_(shared, direction, schedule) {}

MessageEngine::~MessageEngine() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  try {
    if (!finalized) {
      completeSends();
    }
  } catch (const Error&) {  // MPI is broken: nothing is left to do
  }
}

void MessageEngine::bind(const BufferAddresses& buffers) {
  if (mpi_.select(buffers)) {
    return;
  }
  mpi_.addBinding(buffers);
  const bool fits = shared_.fits(buffers.bytesPerValue);
  try {
    for (int i = 0; i < static_cast<int>(schedule_.receives.size()); ++i) {
      if (!fits || !shared_.hasReceive(i)) {
        mpi_.initReceive(i);
      }
    }
    for (int i = 0; i < static_cast<int>(schedule_.sends.size()); ++i) {
      if (!fits || !shared_.hasSend(i)) {
        mpi_.initSend(i);
      }
    }
  } catch (...) {
    mpi_.dropBinding();  // a message without a request would be taken for one that goes another way
    throw;
  }
}

void MessageEngine::beginExchange() {
  completeSends();
  shared_.beginExchange();
  tracker_.reset();
  sendsComplete_ = schedule_.sends.empty();
  failure_.clear();
}

void MessageEngine::startReceives() {
  beginExchange();
  if (!shared_.hasReceives()) {
    mpi_.startAllReceives();
    return;
  }
  for (int i = 0; i < static_cast<int>(schedule_.receives.size()); ++i) {
    if (!shared_.hasReceive(i)) {
      mpi_.startReceive(i);
    }
  }
}

void MessageEngine::startReadySends() {
  for (int i = 0; i < static_cast<int>(schedule_.sends.size()); ++i) {
    if (schedule_.sends[i].waitsFor == 0) {
      startSend(i);
    }
  }
}

void MessageEngine::startSend(int send) {
  tracker_.sendStarted();
  if (!failure_.empty()) {
    sendNothing(send);
    return;
  }
  mpi_.startSend(send);
  if (shared_.hasSend(send)) {
    shared_.publish(send, mpi_.buffers().bytesPerValue);
  }
}

void MessageEngine::sendNothing(int send) {
  if (shared_.hasSend(send)) {
    shared_.publish(send, 0);
  } else {
    mpi_.sendEmpty(send);
  }
}

void MessageEngine::poll(bool wait) {
  const bool hooked = ProgressHook::any();
  if (hooked) {
    ProgressHook::runAll();
  }
  if (receivesDone()) {
    return;
  }
  if (shared_.numPending() == 0 && !(hooked && wait)) {
    pollMpi(wait);
    return;
  }
  const int before = tracker_.outstandingReceives();
  Backoff backoff(mpi_.comm());
  for (;;) {
    shared_.forArrived([this](int receive) { receiveBySharedMemory(receive); });
    const bool waitsForMpi = tracker_.outstandingReceives() > shared_.numPending();
    if (waitsForMpi) {
      pollMpi(false);
    }
    if (!wait || tracker_.outstandingReceives() < before) {
      return;
    }
    if (hooked) {
      ProgressHook::runAll();
    }
    waitsForMpi ? Backoff::yieldUnlessMpiDoes() : backoff.pause();
  }
}

void MessageEngine::pollMpi(bool wait) {
  const int count = mpi_.completeSome(wait);
  for (int i = 0; i < count; ++i) {
    receiveByMpi(mpi_.completedReceive(i), mpi_.status(i));
  }
}

void MessageEngine::pollSends() {
  if (!sendsComplete_ && receivesDone() && !relaysPending()) {
    sendsComplete_ = mpi_.testSends();
  }
}

void MessageEngine::waitForAll() {
  while (shared_.numPending() > 0 || (ProgressHook::any() && !receivesDone())) {
    poll(true);
  }
  while (!receivesDone()) {  // a receive that fails ends completeAll() early
    mpi_.completeAll();
    for (int i = 0; i < static_cast<int>(schedule_.receives.size()); ++i) {
      if (!tracker_.isComplete(i) && !MpiChannel::isPending(mpi_.status(i))) {
        receiveByMpi(i, mpi_.status(i));
      }
    }
  }
}

void MessageEngine::receiveByMpi(int receive, const MPI_Status& status) {
  const MpiChannel::Arrival arrival = mpi_.arrivalOf(status);
  const int expected = schedule_.receives[receive].count;
  if (arrival.failed || arrival.values != expected) {
    if (arrival.values == 0 && !arrival.failed) {  // MPICH does not say how long a message was that is too long
      fail(receive, "the exchange was abandoned: no values");
    } else {
      fail(receive, "a message of " + (arrival.failed ? "too many" : std::to_string(arrival.values)) + " values",
           "; the plan has " + std::to_string(expected));
    }
  }
  tracker_.complete(receive);
}

void MessageEngine::receiveBySharedMemory(int receive) {
  const int bytesPerValue = shared_.bytesPerValueOf(receive);
  const BufferAddresses& buffers = mpi_.buffers();
  if (bytesPerValue == buffers.bytesPerValue) {
    if (mpi_.hasReceive(receive)) {  // too wide: the values come by MPI, and are completed there
      shared_.acknowledge(receive);
      mpi_.startReceive(receive);
      return;
    }
    shared_.copy(receive, buffers);
  } else {
    if (bytesPerValue == 0) {
      fail(receive, "the exchange was abandoned: no values");
    } else {
      fail(receive, "a message of " + std::to_string(bytesPerValue) + " bytes a value",
           "; here it is " + std::to_string(buffers.bytesPerValue));
    }
    if (!shared_.fits(bytesPerValue)) {
      mpi_.drain(receive);
    }
  }
  shared_.acknowledge(receive);
  tracker_.complete(receive);
}

void MessageEngine::fail(int receive, const std::string& what, const std::string& expected) {
  if (failure_.empty()) {
    failure_ = what + " arrived from rank " + std::to_string(schedule_.receives[receive].peer) + " (rank " +
               std::to_string(mpi_.comm().rank()) + ")" + expected;
  }
}

void MessageEngine::giveUp(const std::string& reason) {
  if (failure_.empty()) {
    failure_ = "values could not be packed (rank " + std::to_string(mpi_.comm().rank()) + "): " + reason;
  }
}

void MessageEngine::finish() {
  if (failure_.empty()) {
    pollSends();
    return;
  }
  completeSends();
  mpi_.finishFailed();
  throw PlanMismatch("Exchange: " + failure_);
}

void MessageEngine::completeSends() {
  if (!sendsComplete_) {
    mpi_.completeSends();
    sendsComplete_ = true;
  }
}

void MessageEngine::abandon() {
  beginExchange();
  for (int i = 0; i < static_cast<int>(schedule_.sends.size()); ++i) {
    sendNothing(i);
  }
  // Of whatever length: this rank may not know how many columns the others send.
  for (int i = 0; i < static_cast<int>(schedule_.receives.size()); ++i) {
    if (!shared_.hasReceive(i)) {
      mpi_.drain(i);
      continue;
    }
    Backoff backoff(mpi_.comm());
    while (!shared_.arrived(i)) {
      backoff.pause();
    }
    if (!shared_.fits(shared_.bytesPerValueOf(i))) {
      mpi_.drain(i);
    }
    shared_.acknowledge(i);
  }
  mpi_.waitForEmptySends();
}

std::size_t MessageEngine::memoryBytes() const {
  return mpi_.memoryBytes() + shared_.memoryBytes() + tracker_.memoryBytes();
}

}  // namespace Komvos::Impl
