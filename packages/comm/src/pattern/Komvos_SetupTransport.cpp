#include "Komvos_SetupTransport.hpp"

#include <algorithm>
#include <numeric>

#include "Komvos_Backoff.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos {

MpiSetupTransport::MpiSetupTransport(MPI_Comm comm) : comm_(Impl::PrivateComm::of(comm)), me_{comm_->rank()} {}

int MpiSetupTransport::numRanks() const { return comm_->size(); }

std::vector<MPI_Request> MpiSetupTransport::startSends(const std::vector<SetupMessage>& out, int tag,
                                                       bool synchronous) {
  messagesSent_ += static_cast<long>(out.size());
  std::vector<MPI_Request> requests(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto send = synchronous ? MPI_Issend : MPI_Isend;
    mpiCheck(send(out[i].data.data(), static_cast<int>(out[i].data.size()), MPI_INT, out[i].peer, tag, comm_->get(),
                  &requests[i]),
             "MPI_Issend or MPI_Isend");
  }
  return requests;
}

namespace {

/// A message from `source` if one is there.
bool receiveIfThere(MPI_Comm comm, int source, int tag, std::vector<SetupMessage>& in) {
  int arrived = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  mpiCheck(MPI_Improbe(source, tag, comm, &arrived, &message, &status), "MPI_Improbe");
  if (arrived) {
    int length = 0;
    mpiCheck(MPI_Get_count(&status, MPI_INT, &length), "MPI_Get_count");
    in.push_back({status.MPI_SOURCE, std::vector<int>(length)});
    mpiCheck(MPI_Mrecv(in.back().data.data(), length, MPI_INT, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
  }
  return arrived != 0;
}

}  // namespace

std::vector<std::vector<SetupMessage>> MpiSetupTransport::exchange(std::vector<std::vector<SetupMessage>> outbox) {
  const MPI_Comm comm = comm_->get();
  const int tag = comm_->nextSetupTag();
  const std::vector<SetupMessage>& out = outbox.at(0);
  std::vector<MPI_Request> sends = startSends(out, tag, true);  // completion means that the receiver has matched it
  std::vector<SetupMessage> in;
  MPI_Request barrier = MPI_REQUEST_NULL;
  bool inBarrier = false;
  for (int done = 0; !done;) {
    const bool arrived = receiveIfThere(comm, MPI_ANY_SOURCE, tag, in);
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
      Impl::Backoff::yieldUnlessMpiDoes();  // where ranks share cores, the one we wait for may need this one
    }
  }
  std::sort(in.begin(), in.end(), [](const SetupMessage& a, const SetupMessage& b) { return a.peer < b.peer; });
  std::vector<std::vector<SetupMessage>> inbox;
  inbox.push_back(std::move(in));
  return inbox;
}

std::vector<std::vector<SetupMessage>> MpiSetupTransport::exchangeKnown(std::vector<std::vector<SetupMessage>> outbox,
                                                                        const std::vector<std::vector<int>>& sources) {
  const std::vector<SetupMessage>& out = outbox.at(0);
  // One tag will do: messages of one sender stay in order, and receivers name the sender of each.
  std::vector<MPI_Request> sends = startSends(out, Impl::PrivateComm::knownSetupTag, false);
  std::vector<SetupMessage> in;
  for (const int source : sources.at(0)) {
    while (!receiveIfThere(comm_->get(), source, Impl::PrivateComm::knownSetupTag, in)) {
      Impl::Backoff::yieldUnlessMpiDoes();
    }
  }
  mpiCheck(MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  std::vector<std::vector<SetupMessage>> inbox;
  inbox.push_back(std::move(in));
  return inbox;
}

std::vector<std::uint64_t> MpiSetupTransport::sum(std::vector<std::uint64_t> mine) {
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, mine.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_SUM, comm_->get()),
           "MPI_Allreduce");
  return mine;
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

std::vector<std::vector<SetupMessage>> InMemorySetupTransport::exchangeKnown(
    std::vector<std::vector<SetupMessage>> outbox, const std::vector<std::vector<int>>& sources) {
  std::vector<std::vector<SetupMessage>> inbox = exchange(std::move(outbox));
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto from = [](const SetupMessage& message, int source) { return message.peer == source; };
    if (!std::equal(inbox[i].begin(), inbox[i].end(), sources.at(i).begin(), sources.at(i).end(), from)) {
      throw Error("set-up messages to rank " + std::to_string(all_[i]) + " come from other ranks than it expects");
    }
  }
  return inbox;
}

std::vector<std::uint64_t> InMemorySetupTransport::sum(std::vector<std::uint64_t> mine) { return mine; }

}  // namespace Komvos
