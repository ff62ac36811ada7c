#include "Komvos_PendingMaximum.hpp"

#include <algorithm>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

/// Reductions whose PendingMaximum is gone. Those that are not complete before that are completed when the communicator
/// is freed, on all ranks together.
struct PendingMaximum::LeftBehind {
  std::vector<std::unique_ptr<InFlight>> all;

  void add(std::unique_ptr<InFlight> one) {
    const auto isDone = [](const std::unique_ptr<InFlight>& before) {
      int done = 0;
      return MPI_Test(&before->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
    };
    all.erase(std::remove_if(all.begin(), all.end(), isDone), all.end());
    all.push_back(std::move(one));
  }
};

PendingMaximum::InFlight::~InFlight() {
  if (request != MPI_REQUEST_NULL) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

PendingMaximum::PendingMaximum(std::shared_ptr<PrivateComm> comm)
    : comm_(std::move(comm)), inFlight_(std::make_unique<InFlight>()) {
  comm_->attached<LeftBehind>([] { return std::make_shared<LeftBehind>(); });
}

PendingMaximum::~PendingMaximum() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized || inFlight_->request == MPI_REQUEST_NULL) {
    inFlight_->request = MPI_REQUEST_NULL;
    return;
  }
  int done = 0;
  if (MPI_Test(&inFlight_->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
    comm_->attached<LeftBehind>([] { return std::make_shared<LeftBehind>(); }).add(std::move(inFlight_));
  }
}

void PendingMaximum::start(const std::vector<double>& mine) {
  inFlight_->mine = mine;
  inFlight_->most.resize(mine.size());
  mpiCheck(MPI_Iallreduce(inFlight_->mine.data(), inFlight_->most.data(), static_cast<int>(mine.size()), MPI_DOUBLE,
                          MPI_MAX, comm_->get(), &inFlight_->request),
           "MPI_Iallreduce");
}

const std::vector<double>& PendingMaximum::finish() {
  mpiCheck(MPI_Wait(&inFlight_->request, MPI_STATUS_IGNORE), "MPI_Wait");
  return inFlight_->most;
}

}  // namespace Komvos::Impl
