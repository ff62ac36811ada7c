#include "Komvos_Backoff.hpp"

#include <mpi.h>
#include <sched.h>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

void Backoff::pause() {
  const unsigned spins = 32;           // about a microsecond: the partner is about to store
  const unsigned turnsToProgress = 8;  // a call into MPI costs about as much as these
  if (++turns_ <= spins) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    return;
  }
  if (turns_ % turnsToProgress == 0) {
    int found = 0;  // looking for a message that nobody sends makes progress; ours are larger than 0
    mpiCheck(MPI_Iprobe(comm_.rank(), 0, comm_.get(), &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
  }
  yield();
}

void Backoff::yield() { sched_yield(); }

}  // namespace Komvos::Impl
