#include "Komvos_SetupTransport.hpp"

#include <sched.h>

#include <algorithm>
#include <numeric>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos {

MpiSetupTransport::MpiSetupTransport(MPI_Comm comm) : comm_(Impl::PrivateComm::of(comm)), me_{comm_->rank()} {}

int MpiSetupTransport::numRanks() const { return comm_->size(); }

std::vector<std::vector<SetupMessage>> MpiSetupTransport::exchange(std::vector<std::vector<SetupMessage>> outbox) {
  const MPI_Comm comm = comm_->get();
  const int tag = comm_->nextSetupTag();
  const std::vector<SetupMessage>& out = outbox.at(0);
  messagesSent_ += static_cast<long>(out.size());
  std::vector<MPI_Request> sends(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    // Synchronous: completion means that the receiver has matched it.
    mpiCheck(MPI_Issend(out[i].data.data(), static_cast<int>(out[i].data.size()), MPI_INT, out[i].peer, tag, comm,
                        &sends[i]),
             "MPI_Issend");
  }
  std::vector<SetupMessage> in;
  MPI_Request barrier = MPI_REQUEST_NULL;
  bool inBarrier = false;
  for (int done = 0; !done;) {
    int arrived = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    mpiCheck(MPI_Improbe(MPI_ANY_SOURCE, tag, comm, &arrived, &message, &status), "MPI_Improbe");
    if (arrived) {
      int length = 0;
      mpiCheck(MPI_Get_count(&status, MPI_INT, &length), "MPI_Get_count");
      in.push_back({status.MPI_SOURCE, std::vector<int>(length)});
      mpiCheck(MPI_Mrecv(in.back().data.data(), length, MPI_INT, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    }
    if (inBarrier) {
      mpiCheck(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE), "MPI_Test");
    } else {
      int sent = 0;
      mpiCheck(MPI_Testall(static_cast<int>(sends.size()), sends.data(), &sent, MPI_STATUSES_IGNORE), "MPI_Testall");
      if (sent) {
        mpiCheck(MPI_Ibarrier(comm, &barrier), "MPI_Ibarrier");
        inBarrier = true;
      }
    }
    if (!arrived && !done) {
      sched_yield();  // where ranks share cores, MPI does not do it everywhere: the one we wait for may need this core
    }
  }
  std::sort(in.begin(), in.end(), [](const SetupMessage& a, const SetupMessage& b) { return a.peer < b.peer; });
  std::vector<std::vector<SetupMessage>> inbox;
  inbox.push_back(std::move(in));
  return inbox;
}

void MpiSetupTransport::throwOnAllIfAny(const std::string& error) { Komvos::throwOnAllIfAny(comm_->get(), error); }

void InMemorySetupTransport::throwOnAllIfAny(const std::string& error) {
  if (!error.empty()) {
    throw BadInput(error);
  }
}

InMemorySetupTransport::InMemorySetupTransport(int numRanks) : all_(numRanks) {
  std::iota(all_.begin(), all_.end(), 0);
}

std::vector<std::vector<SetupMessage>> InMemorySetupTransport::exchange(std::vector<std::vector<SetupMessage>> outbox) {
  std::vector<std::vector<SetupMessage>> inbox(all_.size());
  for (int source = 0; source < numRanks(); ++source) {  // ascending, so each inbox is ordered by source
    for (SetupMessage& message : outbox[source]) {
      inbox.at(message.peer).push_back({source, std::move(message.data)});
    }
    outbox[source].clear();
  }
  return inbox;
}

}  // namespace Komvos
