#include "Komvos_MessageEngine.hpp"

#include <algorithm>
#include <cstring>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

char* address(const void* buffer, std::int64_t position, int bytesPerValue) {
  return const_cast<char*>(static_cast<const char*>(buffer)) + position * bytesPerValue;
}

/// Value toIndex[i] gets value fromIndex[i], i < count; null stands for i. \tparam Size of a value, or 0: `size`
template <int Size>
void copyValues(char* to, const int* toIndex, const char* from, const int* fromIndex, int count, int size) {
  const std::size_t bytes = Size > 0 ? Size : size;
  for (int i = 0; i < count; ++i) {
    const std::size_t t = toIndex != nullptr ? toIndex[i] : i;
    const std::size_t f = fromIndex != nullptr ? fromIndex[i] : i;
    std::memcpy(to + t * bytes, from + f * bytes, bytes);
  }
}

}  // namespace

MessageEngine::MessageEngine(std::shared_ptr<PrivateComm> comm, int firstTag, const Schedule& schedule, Mail mail)
    : comm_(std::move(comm)), firstTag_(firstTag), schedule_(schedule), mail_(mail.box) {
  sendSlots_.resize(schedule.sends.size());
  receiveSlots_.resize(schedule.receives.size());
  if (mail_ != nullptr) {
    sendSlots_ = mail_->sends(mail.direction);
    receiveSlots_ = mail_->receives(mail.direction);
  }
  for (std::size_t i = 0; i < receiveSlots_.size(); ++i) {
    if (isMailed(receiveSlots_[i])) {
      mailedReceives_.push_back(static_cast<int>(i));
    }
  }
  unopened_.reserve(mailedReceives_.size());
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
  made.receives.assign(schedule_.receives.size(), MPI_REQUEST_NULL);
  made.sends.assign(schedule_.sends.size(), MPI_REQUEST_NULL);
  bindings_.push_back(std::move(made));
  now_ = &bindings_.back();
  const bool mailFits = fitsMailbox(bytesPerValue);
  for (std::size_t i = 0; i < schedule_.receives.size(); ++i) {
    const Schedule::Message& m = schedule_.receives[i];
    if (!mailFits || !isMailed(receiveSlots_[i])) {
      mpiCheck(MPI_Recv_init(receiveAddress(static_cast<int>(i)), m.count, now_->type, m.peer, firstTag_ + m.stage,
                             comm_->get(), &now_->receives[i]),
               "MPI_Recv_init");
    }
  }
  for (std::size_t i = 0; i < schedule_.sends.size(); ++i) {
    const Schedule::Message& m = schedule_.sends[i];
    if (!mailFits || !isMailed(sendSlots_[i])) {
      mpiCheck(MPI_Send_init(address(sendBuffer, m.first, bytesPerValue), m.count, now_->type, m.peer,
                             firstTag_ + m.stage, comm_->get(), &now_->sends[i]),
               "MPI_Send_init");
    }
  }
}

void* MessageEngine::receiveAddress(int receive) const {
  const Schedule::Message& m = schedule_.receives[receive];
  const bool direct = now_->targets != nullptr && m.directTarget >= 0;
  return direct ? address(now_->targets, m.directTarget, now_->bytesPerValue)
                : address(now_->receiveBuffer, m.first, now_->bytesPerValue);
}

std::size_t MessageEngine::memoryBytes() const {
  const std::size_t receives = schedule_.receives.size();
  const std::size_t sends = schedule_.sends.size();
  return bindings_.size() * (sizeof(Binding) + (sends + receives) * sizeof(MPI_Request)) +
         (sends + receives) * sizeof(NodeMailbox::Slot) + sends * 2 * sizeof(int) +
         receives * (3 * sizeof(int) + sizeof(MPI_Status)) + unread_.capacity();
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
  sendsComplete_ = schedule_.sends.empty();
  ready_.clear();
  failure_.clear();
  std::fill(received_.begin(), received_.end(), false);
  unopened_ = mailedReceives_;
  ++exchange_;
  for (std::size_t i = 0; i < schedule_.sends.size(); ++i) {
    waitingFor_[i] = schedule_.sends[i].waitsFor;
  }
}

void MessageEngine::startReceives() {
  if (mail_ != nullptr) {
    mail_->waitUntilTaken();
  }
  resetCounts();
  if (mailedReceives_.empty() && !now_->receives.empty()) {
    mpiCheck(MPI_Startall(static_cast<int>(now_->receives.size()), now_->receives.data()), "MPI_Startall");
    return;
  }
  for (std::size_t i = 0; i < receiveSlots_.size(); ++i) {
    if (!isMailed(receiveSlots_[i])) {
      mpiCheck(MPI_Start(&now_->receives[i]), "MPI_Start");
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
  ++startedSends_;
  if (!failure_.empty()) {
    sendNothing(send);
    return;
  }
  if (now_->sends[send] != MPI_REQUEST_NULL) {
    mpiCheck(MPI_Start(&now_->sends[send]), "MPI_Start");
  }
  if (isMailed(sendSlots_[send])) {
    mail_->publish(sendSlots_[send], exchange_, now_->bytesPerValue);
  }
}

void MessageEngine::sendNothing(int send) {
  if (isMailed(sendSlots_[send])) {
    mail_->publish(sendSlots_[send], exchange_, 0);
    return;
  }
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
  if (unopened_.empty()) {
    pollMpi(wait);
    return;
  }
  const int before = outstandingReceives_;
  NodeWait idle(*comm_);
  for (;;) {
    pollMail();
    const bool others = outstandingReceives_ > static_cast<int>(unopened_.size());
    if (others) {
      pollMpi(false);
    }
    if (!wait || outstandingReceives_ < before) {
      return;
    }
    others ? idle.yield() : idle();
  }
}

void MessageEngine::pollSends() {
  if (!sendsComplete_ && receivesDone() && !relaysPending()) {
    int done = 0;
    mpiCheck(MPI_Testall(static_cast<int>(now_->sends.size()), now_->sends.data(), &done, MPI_STATUSES_IGNORE),
             "MPI_Testall");
    sendsComplete_ = done != 0;
  }
}

void MessageEngine::pollMail() {
  for (std::size_t i = 0; i < unopened_.size();) {
    const int receive = unopened_[i];
    if (mail_->arrived(receiveSlots_[receive], exchange_)) {
      unopened_[i] = unopened_.back();
      unopened_.pop_back();
      openMail(receive);
    } else {
      ++i;
    }
  }
}

void MessageEngine::openMail(int receive) {
  const NodeMailbox::Slot& slot = receiveSlots_[receive];
  const Schedule::Message& m = schedule_.receives[receive];
  const int bytesPerValue = slot.signal->bytesPerValue;
  if (bytesPerValue == now_->bytesPerValue) {
    if (now_->receives[receive] != MPI_REQUEST_NULL) {  // too wide: the values come by MPI, and are completed there
      NodeMailbox::take(slot, exchange_);
      mpiCheck(MPI_Start(&now_->receives[receive]), "MPI_Start");
      return;
    }
    copyMail(receive, slot);
  } else {
    const std::string from = " from rank " + std::to_string(m.peer) + " (rank " + std::to_string(comm_->rank()) + ")";
    if (bytesPerValue == 0) {
      fail("the exchange was abandoned: no values arrived" + from);
    } else {
      fail("a message of " + std::to_string(bytesPerValue) + " bytes a value arrived" + from + "; here it is " +
           std::to_string(now_->bytesPerValue));
    }
    if (bytesPerValue > mail_->maxBytesPerValue()) {
      drain(m);
    }
  }
  NodeMailbox::take(slot, exchange_);
  completed(receive);
}

void MessageEngine::copyMail(int receive, const NodeMailbox::Slot& slot) {
  const Schedule::Message& m = schedule_.receives[receive];
  const int bytesPerValue = now_->bytesPerValue;
  const bool scatters = now_->targets != nullptr && m.scatter >= 0;
  char* const to = scatters ? address(now_->targets, 0, bytesPerValue) : static_cast<char*>(receiveAddress(receive));
  const int* const toIndex = scatters ? &schedule_.scatterTargets[m.scatter] : nullptr;
  const char* const from = address(slot.buffer, slot.positions != nullptr ? 0 : slot.first, bytesPerValue);
  if (toIndex == nullptr && slot.positions == nullptr) {
    std::memcpy(to, from, static_cast<std::size_t>(m.count) * bytesPerValue);
  } else if (bytesPerValue == 8) {
    copyValues<8>(to, toIndex, from, slot.positions, m.count, 8);
  } else if (bytesPerValue == 4) {
    copyValues<4>(to, toIndex, from, slot.positions, m.count, 4);
  } else {
    copyValues<0>(to, toIndex, from, slot.positions, m.count, bytesPerValue);
  }
}

void MessageEngine::pollMpi(bool wait) {
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
  while (!unopened_.empty()) {
    poll(true);
  }
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
  completed(receive);
}

void MessageEngine::completed(int receive) {
  received_[receive] = true;
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

/// Takes the message of whatever length that is on its way.
void MessageEngine::drain(const Schedule::Message& m) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Count bytes = 0;
  mpiCheck(MPI_Mprobe(m.peer, firstTag_ + m.stage, comm_->get(), &message, &status), "MPI_Mprobe");
  mpiCheck(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  receiveBytes(message, bytes, unread_);
}

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
  if (mail_ != nullptr) {
    mail_->waitUntilTaken();
  }
  resetCounts();
  for (int i = 0; i < static_cast<int>(schedule_.sends.size()); ++i) {
    sendNothing(i);
  }
  // Of whatever length: this rank may not know how many columns the others send.
  for (std::size_t i = 0; i < schedule_.receives.size(); ++i) {
    const NodeMailbox::Slot& slot = receiveSlots_[i];
    if (!isMailed(slot)) {
      drain(schedule_.receives[i]);
      continue;
    }
    NodeWait idle(*comm_);
    while (!mail_->arrived(slot, exchange_)) {
      idle();
    }
    if (slot.signal->bytesPerValue > mail_->maxBytesPerValue()) {
      drain(schedule_.receives[i]);
    }
    NodeMailbox::take(slot, exchange_);
  }
  waitForEmptySends();
}

}  // namespace Komvos::Impl
