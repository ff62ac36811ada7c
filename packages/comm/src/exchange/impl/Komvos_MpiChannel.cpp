#include "Komvos_MpiChannel.hpp"

#include <sched.h>

#include <numeric>

#include "Komvos_Error.hpp"

// How this works. A binding is one set of persistent requests, for one pair of buffers, one width and, where messages
// are received in place, one vector. An exchange selects its binding by these addresses and starts its requests; only
// the first exchange with them makes requests (addBinding, then initReceive and initSend for each message that goes by
// MPI). Nothing is allocated after that.
//
// MPI errors are returned, not fatal, by MPICH too: see arraysReturnErrors(). A receive that got a wrong message
// completes with an error in its status or with another number of values: arrivalOf() says which, the caller decides.
// After an error the requests cannot be trusted, so finishFailed() drops the binding and the next exchange makes a new
// one. Any other error of an MPI call is thrown.
//
// A rank that abandons an exchange uses no binding: it sends empty messages and drains what was sent to it.

namespace Komvos::Impl {

namespace {

/// The size of a message that arrived. MPI 4 replaces the function that MPI 3 has for it.
int getBytes(const MPI_Status& status, MPI_Count& bytes) {
#if MPI_VERSION >= 4
  return MPI_Get_elements_c(&status, MPI_BYTE, &bytes);
#else
  return MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
#endif
}

/// MPICH, or one of its relatives, which differ from Open MPI in what they do about errors.
constexpr bool isMpich() {
#ifdef MPICH_NUMVERSION
  return true;
#else
  return false;
#endif
}

/// Whether calls that complete any of several requests return the error of one, as our communicator demands. MPICH asks
/// the error handler of MPI_COMM_SELF or MPI_COMM_WORLD instead, which as a rule ends the program. So receives, for a
/// message may have a wrong size, are completed one by one there.
constexpr bool arraysReturnErrors() { return !isMpich(); }

}  // namespace

MpiChannel::MpiChannel(std::shared_ptr<PrivateComm> comm, int firstTag, const Schedule& schedule)
    : comm_(std::move(comm)),
      firstTag_(firstTag),
      schedule_(schedule),
      indices_(schedule.receives.size()),
      statuses_(schedule.receives.size()) {
  started_.reserve(arraysReturnErrors() ? 0 : schedule.receives.size());
}

MpiChannel::~MpiChannel() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) {
    freeBindings();
  }
}

bool MpiChannel::select(const BufferAddresses& buffers) {
  for (Binding& binding : bindings_) {
    if (binding.buffers == buffers) {
      binding_ = &binding;
      return true;
    }
  }
  return false;
}

void MpiChannel::addBinding(const BufferAddresses& buffers) {
  const std::size_t most = 16;  // a caller may come with ever new vectors
  binding_ = nullptr;           // what follows may throw
  if (bindings_.size() == most) {
    freeBinding(bindings_.front());
    bindings_.erase(bindings_.begin());
  }
  Binding binding{buffers, MPI_DATATYPE_NULL, {}, {}};
  mpiCheck(MPI_Type_contiguous(buffers.bytesPerValue, MPI_BYTE, &binding.type), "MPI_Type_contiguous");
  mpiCheck(MPI_Type_commit(&binding.type), "MPI_Type_commit");
  binding.receives.assign(schedule_.receives.size(), MPI_REQUEST_NULL);
  binding.sends.assign(schedule_.sends.size(), MPI_REQUEST_NULL);
  bindings_.push_back(std::move(binding));
  binding_ = &bindings_.back();
}

void MpiChannel::initReceive(int receive) {
  const Schedule::Message& m = schedule_.receives[receive];
  mpiCheck(MPI_Recv_init(buffers().receiveAddress(m), m.count, binding_->type, m.peer, tagOf(m), comm_->get(),
                         &binding_->receives[receive]),
           "MPI_Recv_init");
}

void MpiChannel::initSend(int send) {
  const Schedule::Message& m = schedule_.sends[send];
  mpiCheck(MPI_Send_init(buffers().sendAddress(m), m.count, binding_->type, m.peer, tagOf(m), comm_->get(),
                         &binding_->sends[send]),
           "MPI_Send_init");
}

void MpiChannel::freeBinding(Binding& binding) {
  for (std::vector<MPI_Request>* requests : {&binding.sends, &binding.receives}) {
    for (MPI_Request& request : *requests) {
      if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
      }
    }
  }
  MPI_Type_free(&binding.type);
}

void MpiChannel::freeBindings() {
  for (Binding& binding : bindings_) {
    freeBinding(binding);
  }
  bindings_.clear();
  binding_ = nullptr;
}

void MpiChannel::dropBinding() {
  receiveFailed_ = false;
  if (isMpich()) {
    freeBinding(*binding_);
  }
  bindings_.erase(bindings_.begin() + (binding_ - bindings_.data()));
  binding_ = nullptr;
}

void MpiChannel::startReceive(int receive) {
  mpiCheck(MPI_Start(&binding_->receives[receive]), "MPI_Start");
  if (!arraysReturnErrors()) {
    started_.push_back(receive);
  }
}

void MpiChannel::startAllReceives() {
  if (!arraysReturnErrors()) {
    started_.resize(binding_->receives.size());
    std::iota(started_.begin(), started_.end(), 0);
  }
  if (!binding_->receives.empty()) {
    mpiCheck(MPI_Startall(static_cast<int>(binding_->receives.size()), binding_->receives.data()), "MPI_Startall");
  }
}

void MpiChannel::startSend(int send) {
  if (binding_->sends[send] != MPI_REQUEST_NULL) {
    mpiCheck(MPI_Start(&binding_->sends[send]), "MPI_Start");
  }
}

void MpiChannel::clearErrors() {
  for (MPI_Status& status : statuses_) {
    status.MPI_ERROR = MPI_SUCCESS;
  }
}

int MpiChannel::completeOneByOne(bool wait) {
  int count = 0;
  while (count == 0 && !started_.empty()) {
    for (std::size_t i = 0; i < started_.size();) {
      const int receive = started_[i];
      int done = 0;
      const int code = MPI_Test(&binding_->receives[receive], &done, &statuses_[count]);
      if (code == MPI_SUCCESS && done == 0) {
        ++i;
        continue;
      }
      statuses_[count].MPI_ERROR = code;
      indices_[count++] = receive;
      started_[i] = started_.back();
      started_.pop_back();
    }
    if (!wait) {
      break;
    }
    if (count == 0) {
      sched_yield();
    }
  }
  return count;
}

int MpiChannel::completeSome(bool wait) {
  clearErrors();
  if (!arraysReturnErrors()) {
    return completeOneByOne(wait);
  }
  int count = 0;
  std::vector<MPI_Request>& receives = binding_->receives;
  const auto some = wait ? MPI_Waitsome : MPI_Testsome;
  const int code = some(static_cast<int>(receives.size()), receives.data(), &count, indices_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    mpiCheck(code, wait ? "MPI_Waitsome" : "MPI_Testsome");
  }
  return count == MPI_UNDEFINED ? 0 : count;
}

void MpiChannel::completeAll() {
  clearErrors();
  std::vector<MPI_Request>& receives = binding_->receives;
  if (!arraysReturnErrors()) {
    for (const int receive : started_) {
      const int code = MPI_Wait(&receives[receive], &statuses_[receive]);
      statuses_[receive].MPI_ERROR = code;
    }
    started_.clear();
    return;
  }
  const int code = MPI_Waitall(static_cast<int>(receives.size()), receives.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    mpiCheck(code, "MPI_Waitall");
  }
}

MpiChannel::Arrival MpiChannel::arrivalOf(const MPI_Status& status) {
  const bool failed = status.MPI_ERROR != MPI_SUCCESS;
  receiveFailed_ = receiveFailed_ || failed;
  MPI_Count bytes = -1;
  getBytes(status, bytes);
  return {bytes / buffers().bytesPerValue, failed};
}

bool MpiChannel::testSends() {
  int done = 0;
  std::vector<MPI_Request>& sends = binding_->sends;
  mpiCheck(MPI_Testall(static_cast<int>(sends.size()), sends.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done != 0;
}

void MpiChannel::completeSends() {
  if (binding_ != nullptr && !binding_->sends.empty()) {
    mpiCheck(MPI_Waitall(static_cast<int>(binding_->sends.size()), binding_->sends.data(), MPI_STATUSES_IGNORE),
             "MPI_Waitall");
  }
}

void MpiChannel::finishFailed() {
  waitForEmptySends();
  if (receiveFailed_) {
    dropBinding();
  }
}

void MpiChannel::sendEmpty(int send) {
  const Schedule::Message& m = schedule_.sends[send];
  emptySends_.emplace_back();
  mpiCheck(MPI_Isend(nullptr, 0, MPI_BYTE, m.peer, tagOf(m), comm_->get(), &emptySends_.back()), "MPI_Isend");
}

void MpiChannel::waitForEmptySends() {
  if (!emptySends_.empty()) {
    mpiCheck(MPI_Waitall(static_cast<int>(emptySends_.size()), emptySends_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    emptySends_.clear();
  }
}

namespace {

/// Takes a message of any size; counts of more than an int can hold come as two blocks of one type.
void receiveBytes(MPI_Message message, MPI_Count bytes, std::vector<char>& buffer) {
  buffer.resize(static_cast<std::size_t>(bytes));
  const MPI_Count unit = 1 << 30;
  const int lengths[2] = {static_cast<int>(bytes / unit), static_cast<int>(bytes % unit)};
  const MPI_Aint places[2] = {0, static_cast<MPI_Aint>(bytes - bytes % unit)};
  MPI_Datatype block = MPI_DATATYPE_NULL;
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  mpiCheck(MPI_Type_contiguous(static_cast<int>(unit), MPI_BYTE, &block), "MPI_Type_contiguous");
  const MPI_Datatype types[2] = {block, MPI_BYTE};
  mpiCheck(MPI_Type_create_struct(2, lengths, places, types, &whole), "MPI_Type_create_struct");
  mpiCheck(MPI_Type_commit(&whole), "MPI_Type_commit");
  mpiCheck(MPI_Mrecv(buffer.data(), 1, whole, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
  MPI_Type_free(&whole);
  MPI_Type_free(&block);
}

}  // namespace

void MpiChannel::drain(int receive) {
  const Schedule::Message& m = schedule_.receives[receive];
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Count bytes = 0;
  mpiCheck(MPI_Mprobe(m.peer, tagOf(m), comm_->get(), &message, &status), "MPI_Mprobe");
  mpiCheck(getBytes(status, bytes), "MPI_Get_elements");
  receiveBytes(message, bytes, discarded_);
}

std::size_t MpiChannel::memoryBytes() const {
  const std::size_t receives = schedule_.receives.size();
  const std::size_t sends = schedule_.sends.size();
  return bindings_.size() * (sizeof(Binding) + (sends + receives) * sizeof(MPI_Request)) +
         receives * (sizeof(int) + sizeof(MPI_Status)) + discarded_.capacity();
}

}  // namespace Komvos::Impl
