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

void MessageEngine::poll(bool wait) {
  if (outstandingReceives_ == 0) {
    return;
  }
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
    complete(indices_[i], statuses_[i], code == MPI_ERR_IN_STATUS);
  }
}

void MessageEngine::waitForAll() {
  if (outstandingReceives_ == 0) {
    return;
  }
  const int code = MPI_Waitall(static_cast<int>(now_->receives.size()), now_->receives.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    mpiCheck(code, "MPI_Waitall");
  }
  for (std::size_t i = 0; i < statuses_.size(); ++i) {
    if (!received_[i]) {
      complete(static_cast<int>(i), statuses_[i], code == MPI_ERR_IN_STATUS);
    }
  }
}

void MessageEngine::complete(int receive, const MPI_Status& status, bool checkError) {
  const int error = checkError ? status.MPI_ERROR : MPI_SUCCESS;
  received_[receive] = true;
  requestsLost_ = requestsLost_ || error != MPI_SUCCESS;
  const Schedule::Message& m = schedule_.receives[receive];
  int values = -1;
  MPI_Get_count(&status, now_->type, &values);
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

void MessageEngine::finish() {
  if (now_ != nullptr && !now_->sends.empty()) {
    mpiCheck(MPI_Waitall(static_cast<int>(now_->sends.size()), now_->sends.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }
  if (!emptySends_.empty()) {
    mpiCheck(MPI_Waitall(static_cast<int>(emptySends_.size()), emptySends_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    emptySends_.clear();
  }
  if (requestsLost_) {
    requestsLost_ = false;
    unbind();
  }
  if (!failure_.empty()) {
    throw PlanMismatch("Exchange: " + failure_);
  }
}

void MessageEngine::abandon() {
  startReceives();
  fail("abandoned here");
  for (int i = 0; i < static_cast<int>(schedule_.sends.size()); ++i) {
    sendNothing(i);
  }
  while (!receivesDone()) {
    poll(true);
  }
  ready_.clear();
  try {
    finish();
  } catch (const PlanMismatch&) {  // ours; the caller throws the reason
  }
}

}  // namespace Komvos::Impl
