#include "Komvos_CandidateTimer.hpp"

#include <Tpetra_Details_DefaultTypes.hpp>
#include <algorithm>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_NodeMemory.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Statistics.hpp"

namespace Komvos::Impl {

namespace {

using DefaultDevice = Tpetra::Details::DefaultTypes::node_type::device_type;
using HaloExchange = Exchange<double, DefaultDevice>;
using Vector = Kokkos::View<double**, Kokkos::LayoutLeft, DefaultDevice>;

constexpr int warmUps = 2;
constexpr int exchangesPerRepeat = 2;

/// Seconds of one exchange on this rank, all ranks starting together.
double timeRepeat(MPI_Comm comm, HaloExchange& exchange, const Vector& owned, const Vector& ghosts) {
  const HaloExchange::execution_space space;
  mpiCheck(MPI_Barrier(comm), "MPI_Barrier");
  const double start = MPI_Wtime();
  for (int again = 0; again < exchangesPerRepeat; ++again) {
    exchange.begin(space, owned, ghosts);
    exchange.end(space, ghosts);
  }
  fence(space, "Komvos::CandidateTimer: unpacked before the clock is read");
  return (MPI_Wtime() - start) / exchangesPerRepeat;
}

}  // namespace

void CandidateTimer::measure(const std::vector<Candidate*>& contenders, int repeats) const {
  const MPI_Comm comm = PrivateComm::of(comm_)->get();
  const Vector owned("Komvos::CandidateTimer::owned", numOwned_, 1);
  const Vector ghosts("Komvos::CandidateTimer::ghosts", numTarget_, 1);
  std::vector<HaloExchange> exchanges;
  for (const Candidate* one : contenders) {
    exchanges.emplace_back(comm_, one->plan, 1, one->report.intraNode, mpiIsGpuAware_, forceStaging_);
  }
  const std::size_t count = contenders.size();
  std::vector<std::vector<double>> seconds(count);
  for (int repeat = 0; repeat < warmUps + repeats; ++repeat) {
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t turn = (k + repeat) % count;
      seconds[turn].push_back(timeRepeat(comm, exchanges[turn], owned, ghosts));
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<double>& ofOne = seconds[k];
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, ofOne.data(), static_cast<int>(ofOne.size()), MPI_DOUBLE, MPI_MAX, comm),
             "MPI_Allreduce");
    contenders[k]->seconds.assign(ofOne.begin() + warmUps, ofOne.end());
    contenders[k]->report.measuredSeconds = median(contenders[k]->seconds);
  }
  const bool shared = std::any_of(exchanges.begin(), exchanges.end(), [](const HaloExchange& exchange) {
    return exchange.intraNode() == IntraNode::sharedMemory;
  });
  exchanges.clear();
  if (shared) {
    NodeMemory::of(*PrivateComm::of(comm_)).freeUnused();
  }
}

}  // namespace Komvos::Impl
