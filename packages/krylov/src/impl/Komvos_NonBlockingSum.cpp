#include "Komvos_NonBlockingSum.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "Komvos_Backoff.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_NodeSum.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ProgressHook.hpp"

// How this works. Through shared memory, a sum has three parts: all ranks of a node lay down their numbers, its leader
// adds them up and takes part in a reduction among leaders, and announces the result. Where there is one node, each
// rank adds up itself. Each part can start when somebody looks: progress() does, and wait(), and exchanges that wait
// meanwhile.
//
// A solver may be the preconditioner of another one, whose sum is under way meanwhile: the inner sums find the memory
// taken, on all ranks until the outer caller waits, and go through MPI.
namespace Komvos::Impl {

namespace {

MPI_Datatype mpiType(float) { return MPI_FLOAT; }
MPI_Datatype mpiType(double) { return MPI_DOUBLE; }

}  // namespace

template <class Real>
NonBlockingSum<Real>::NonBlockingSum(std::shared_ptr<PrivateComm> comm, int capacity, const NodeTopology* topology,
                                     const std::string& error)
    : comm_(std::move(comm)), buffers_(new Buffers) {
  for (std::vector<Real>* numbers : {&buffers_->own, &buffers_->partial, &buffers_->sums}) {
    numbers->resize(capacity);
  }
  if (topology != nullptr && capacity * sizeof(Real) <= NodeSum::maxBytes) {
    node_ = NodeSum::of(*comm_, *topology);
  }
  if (node_ == nullptr || node_->agree(!error.empty())) {
    throwOnAllIfAny(comm_->get(), error);
  }
  hook_ = std::make_unique<ProgressHook>([this] { progress(); });
}

template <class Real>
NonBlockingSum<Real>::~NonBlockingSum() {
  hook_->switchOn(false);
  if (request_ != MPI_REQUEST_NULL) {
    buffers_.release();  // a collective operation cannot be cancelled
  }
}

template <class Real>
void NonBlockingSum<Real>::requireStartable(int count) const {
  if (state_ != State::idle || count < 0 || count > static_cast<int>(buffers_->own.size())) {
    std::ostringstream text;
    text << "NonBlockingSum: asked for " << count << " sums, has room for " << buffers_->own.size()
         << (state_ == State::idle ? "" : ", and one is under way");
    throw Error(text.str());
  }
}

template <class Real>
bool NonBlockingSum<Real>::reducesAlone() const {
  return comm_->size() == 1;
}

template <class Real>
void NonBlockingSum<Real>::begin(int count) {
  requireStartable(count);
  count_ = count;
  shares_ = node_ != nullptr && node_->take();
  if (shares_) {
    node_->layDown(buffers_->own.data(), count * sizeof(Real));
    state_ = node_->addsUp() ? State::gathering : State::awaitingResult;
  }
}

template <class Real>
void NonBlockingSum<Real>::start(int count) {
  begin(count);
  if (!shares_) {
    if (reducesAlone()) {
      buffers_->sums = buffers_->own;
    } else {
      mpiCheck(MPI_Iallreduce(buffers_->own.data(), buffers_->sums.data(), count, mpiType(Real()), MPI_SUM,
                              comm_->get(), &request_),
               "MPI_Iallreduce");
    }
    state_ = State::reducing;
  }
  hook_->switchOn(shares_ || request_ != MPI_REQUEST_NULL);
}

template <class Real>
void NonBlockingSum<Real>::run(int count) {
  begin(count);
  if (shares_) {
    wait();
  } else if (reducesAlone()) {
    buffers_->sums = buffers_->own;
  } else {
    mpiCheck(MPI_Allreduce(buffers_->own.data(), buffers_->sums.data(), count, mpiType(Real()), MPI_SUM, comm_->get()),
             "MPI_Allreduce");
  }
}

template <class Real>
void NonBlockingSum<Real>::progress() {
  if (state_ == State::gathering && node_->allAreThere()) {
    gather();
  }
  if (state_ == State::reducing && request_ != MPI_REQUEST_NULL) {
    int done = 0;
    mpiCheck(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  }
  if (state_ == State::reducing && request_ == MPI_REQUEST_NULL) {
    if (shares_ && node_->numNodes() > 1) {
      node_->announce(buffers_->sums.data(), count_ * sizeof(Real));
    }
    deliver();
  }
  if (state_ == State::awaitingResult && node_->isAnnounced()) {
    std::memcpy(buffers_->sums.data(), node_->sums(), count_ * sizeof(Real));
    deliver();
  }
}

/// Adds up what the node's ranks have laid down, and starts the reduction among leaders, where there are several.
template <class Real>
void NonBlockingSum<Real>::gather() {
  std::vector<Real>& partial = buffers_->partial;
  for (int i = 0; i < node_->numRanks(); ++i) {
    const Real* const numbers = static_cast<const Real*>(node_->numbersOf(i));
    for (int j = 0; j < count_; ++j) {
      partial[j] = i == 0 ? numbers[j] : partial[j] + numbers[j];
    }
  }
  if (node_->numNodes() == 1) {
    std::copy_n(partial.begin(), count_, buffers_->sums.begin());
  } else {
    mpiCheck(MPI_Iallreduce(partial.data(), buffers_->sums.data(), count_, mpiType(Real()), MPI_SUM, node_->leaders(),
                            &request_),
             "MPI_Iallreduce");
  }
  state_ = State::reducing;
}

/// The sum is here.
template <class Real>
void NonBlockingSum<Real>::deliver() {
  hook_->switchOn(false);
  state_ = State::arrived;
}

template <class Real>
void NonBlockingSum<Real>::wait() {
  if (state_ == State::reducing && !shares_) {
    mpiCheck(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait");
  }
  Backoff backoff(*comm_);
  for (progress(); state_ != State::idle && state_ != State::arrived; progress()) {
    state_ == State::reducing ? Backoff::yieldUnlessMpiDoes() : backoff.pause();
  }
  state_ = State::idle;
  if (shares_) {
    node_->giveBack();
    shares_ = false;
  }
}

template class NonBlockingSum<float>;
template class NonBlockingSum<double>;

}  // namespace Komvos::Impl
