#include "Komvos_Transport.hpp"

#include <algorithm>
#include <numeric>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos {

MpiTransport::MpiTransport(std::shared_ptr<Impl::PrivateComm> comm) : comm_(std::move(comm)), me_{comm_->rank()} {}

int MpiTransport::numRanks() const { return comm_->size(); }

std::vector<std::vector<Packet>> MpiTransport::exchange(std::vector<std::vector<Packet>> outbox) {
  const MPI_Comm comm = comm_->get();
  const int tag = comm_->takeTags(1);
  const std::vector<Packet>& out = outbox.at(0);
  packetsSent_ += static_cast<long>(out.size());
  std::vector<MPI_Request> sends(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    // Synchronous: completion means that the receiver has matched it.
    mpiCheck(MPI_Issend(out[i].data.data(), static_cast<int>(out[i].data.size()), MPI_INT, out[i].peer, tag, comm,
                        &sends[i]),
             "MPI_Issend");
  }
  std::vector<Packet> in;
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
      Packet packet{status.MPI_SOURCE, std::vector<int>(length)};
      mpiCheck(MPI_Mrecv(packet.data.data(), length, MPI_INT, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
      in.push_back(std::move(packet));
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
  }
  std::sort(in.begin(), in.end(), [](const Packet& a, const Packet& b) { return a.peer < b.peer; });
  std::vector<std::vector<Packet>> inbox;
  inbox.push_back(std::move(in));
  return inbox;
}

void MpiTransport::agree(const std::string& error) { agreeOnError(comm_->get(), error); }

void InMemoryTransport::agree(const std::string& error) {
  if (!error.empty()) {
    throw BadInput(error);
  }
}

InMemoryTransport::InMemoryTransport(int numRanks) : all_(numRanks) { std::iota(all_.begin(), all_.end(), 0); }

std::vector<std::vector<Packet>> InMemoryTransport::exchange(std::vector<std::vector<Packet>> outbox) {
  std::vector<std::vector<Packet>> inbox(all_.size());
  for (int source = 0; source < numRanks(); ++source) {  // ascending, so each inbox is ordered by source
    maxPacketsPerStep_ = std::max(maxPacketsPerStep_, static_cast<int>(outbox[source].size()));
    totalPackets_ += static_cast<long>(outbox[source].size());
    for (Packet& packet : outbox[source]) {
      inbox.at(packet.peer).push_back({source, std::move(packet.data)});
    }
    outbox[source].clear();
  }
  return inbox;
}

}  // namespace Komvos
