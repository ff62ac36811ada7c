#include "Komvos_MessageEngine.hpp"

#include <algorithm>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

MessageEngine::MessageEngine(std::shared_ptr<PrivateComm> comm, int firstTag, const Schedule& schedule)
    : comm_(std::move(comm)), firstTag_(firstTag), schedule_(schedule) {
  waitingFor_.resize(schedule.sends.size());
  ready_.reserve(schedule.sends.size());
  indices_.resize(schedule.receives.size());
  statuses_.resize(schedule.receives.size());
  received_.resize(schedule.receives.size());
}

MessageEngine::~MessageEngine() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) {
    unbind();
  }
}

void MessageEngine::bind(const void* sendBuffer, void* receiveBuffer, int bytesPerValue, void* targets) {
  for (Binding& binding : bindings_) {
    if (binding.bytesPerValue == bytesPerValue && binding.sendBuffer == sendBuffer &&
        binding.receiveBuffer == receiveBuffer && binding.targets == targets) {
      now_ = &binding;
      return;
    }
  }
  Binding made{sendBuffer, receiveBuffer, targets, bytesPerValue, MPI_DATATYPE_NULL, {}, {}};
  // Counts are values, not bytes: a message may be larger than 2 GiB.
  mpiCheck(MPI_Type_contiguous(bytesPerValue, MPI_BYTE, &made.type), "MPI_Type_contiguous");
  mpiCheck(MPI_Type_commit(&made.type), "MPI_Type_commit");
  const auto at = [bytesPerValue](const void* buffer, int position) {
    return const_cast<char*>(static_cast<const char*>(buffer)) + static_cast<std::size_t>(position) * bytesPerValue;
  };
  for (const Schedule::Message& m : schedule_.receives) {
    made.receives.emplace_back();
    const bool direct = targets != nullptr && m.directTarget >= 0;
    void* buffer = direct ? at(targets, m.directTarget) : at(receiveBuffer, m.first);
    mpiCheck(
        MPI_Recv_init(buffer, m.count, made.type, m.peer, firstTag_ + m.stage, comm_->get(), &made.receives.back()),
        "MPI_Recv_init");
  }
  for (const Schedule::Message& m : schedule_.sends) {
    made.sends.emplace_back();
    mpiCheck(MPI_Send_init(at(sendBuffer, m.first), m.count, made.type, m.peer, firstTag_ + m.stage, comm_->get(),
                           &made.sends.back()),
             "MPI_Send_init");
  }
  bindings_.push_back(std::move(made));
  now_ = &bindings_.back();
}

void MessageEngine::unbind() {
  for (Binding& binding : bindings_) {
    for (std::vector<MPI_Request>* requests : {&binding.sends, &binding.receives}) {
      for (MPI_Request& request : *requests) {
        if (request != MPI_REQUEST_NULL) {
          MPI_Request_free(&request);
        }
      }
    }
    MPI_Type_free(&binding.type);
  }
  bindings_.clear();
  now_ = nullptr;
}

void MessageEngine::forget() {
  requestsLost_ = false;
  bindings_.erase(bindings_.begin() + (now_ - bindings_.data()));
  now_ = nullptr;
}

void MessageEngine::resetCounts() {
  outstandingReceives_ = static_cast<int>(schedule_.receives.size());
  outstandingOnNode_ =
      static_cast<int>(std::count(schedule_.onNodeReceive.begin(), schedule_.onNodeReceive.end(), true));
  startedSends_ = 0;
  ready_.clear();
  failure_.clear();
  std::fill(received_.begin(), received_.end(), false);
  for (std::size_t i = 0; i < schedule_.sends.size(); ++i) {
    waitingFor_[i] = schedule_.sends[i].waitsFor;
  }
}

void MessageEngine::startReceives() {
  resetCounts();
  if (!now_->receives.empty()) {
    mpiCheck(MPI_Startall(static_cast<int>(now_->receives.size()), now_->receives.data()), "MPI_Startall");
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
  ++startedSends_;
  if (!failure_.empty()) {
    sendNothing(send);
    return;
  }
  mpiCheck(MPI_Start(&now_->sends[send]), "MPI_Start");
}

void MessageEngine::sendNothing(int send) {
  const Schedule::Message& m = schedule_.sends[send];
  emptySends_.emplace_back();
  mpiCheck(MPI_Isend(nullptr, 0, MPI_BYTE, m.peer, firstTag_ + m.stage, comm_->get(), &emptySends_.back()),
           "MPI_Isend");
}

void MessageEngine::clearErrors() {
  for (MPI_Status& status : statuses_) {
    status.MPI_ERROR = MPI_SUCCESS;
  }
}

void MessageEngine::poll(bool wait) {
  if (outstandingReceives_ == 0) {
    return;
  }
  clearErrors();
  int count = 0;
  const auto some = wait ? MPI_Waitsome : MPI_Testsome;
  const int code =
      some(static_cast<int>(now_->receives.size()), now_->receives.data(), &count, indices_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    mpiCheck(code, wait ? "MPI_Waitsome" : "MPI_Testsome");
  }
  if (count == MPI_UNDEFINED) {
    return;
  }
  for (int i = 0; i < count; ++i) {
    complete(indices_[i], statuses_[i]);
  }
}

void MessageEngine::waitForAll() {
  while (outstandingReceives_ > 0) {  // an error ends MPI_Waitall early
    clearErrors();
    const int code = MPI_Waitall(static_cast<int>(now_->receives.size()), now_->receives.data(), statuses_.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
      mpiCheck(code, "MPI_Waitall");
    }
    for (std::size_t i = 0; i < statuses_.size(); ++i) {
      if (!received_[i] && statuses_[i].MPI_ERROR != MPI_ERR_PENDING) {
        complete(static_cast<int>(i), statuses_[i]);
      }
    }
  }
}

void MessageEngine::complete(int receive, const MPI_Status& status) {
  const int error = status.MPI_ERROR;
  received_[receive] = true;
  requestsLost_ = requestsLost_ || error != MPI_SUCCESS;
  const Schedule::Message& m = schedule_.receives[receive];
  MPI_Count bytes = -1;
  MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  const MPI_Count values = bytes / now_->bytesPerValue;
  if (error != MPI_SUCCESS || values != m.count) {
    const std::string from = " from rank " + std::to_string(m.peer) + " (rank " + std::to_string(comm_->rank()) + ")";
    if (values == 0) {
      fail("the exchange was abandoned: no values arrived" + from);
    } else {
      fail("a message of " + (error != MPI_SUCCESS ? "too many" : std::to_string(values)) + " values arrived" + from +
           "; the plan has " + std::to_string(m.count));
    }
  }
  --outstandingReceives_;
  outstandingOnNode_ -= schedule_.onNodeReceive[receive] ? 1 : 0;
  for (int d = schedule_.dependentOffset[receive]; d < schedule_.dependentOffset[receive + 1]; ++d) {
    if (--waitingFor_[schedule_.dependents[d]] == 0) {
      ready_.push_back(schedule_.dependents[d]);
    }
  }
}

void MessageEngine::fail(const std::string& text) {
  if (failure_.empty()) {
    failure_ = text;
  }
}

int MessageEngine::popReady() {
  if (ready_.empty()) {
    return -1;
  }
  const int send = ready_.back();
  ready_.pop_back();
  return send;
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

void MessageEngine::waitForEmptySends() {
  if (!emptySends_.empty()) {
    mpiCheck(MPI_Waitall(static_cast<int>(emptySends_.size()), emptySends_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    emptySends_.clear();
  }
}

void MessageEngine::finish() {
  if (now_ != nullptr && !now_->sends.empty()) {
    mpiCheck(MPI_Waitall(static_cast<int>(now_->sends.size()), now_->sends.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }
  waitForEmptySends();
  if (requestsLost_) {
    forget();
  }
  if (!failure_.empty()) {
    throw PlanMismatch("Exchange: " + failure_);
  }
}

void MessageEngine::abandon() {
  for (int i = 0; i < static_cast<int>(schedule_.sends.size()); ++i) {
    sendNothing(i);
  }
  // Of whatever length: this rank may not know how many columns the others send.
  std::vector<char> unread;
  for (const Schedule::Message& m : schedule_.receives) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Count bytes = 0;
    mpiCheck(MPI_Mprobe(m.peer, firstTag_ + m.stage, comm_->get(), &message, &status), "MPI_Mprobe");
    mpiCheck(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
    receiveBytes(message, bytes, unread);
  }
  waitForEmptySends();
}

}  // namespace Komvos::Impl
