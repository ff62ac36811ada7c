#include "Komvos_Backoff.hpp"

#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

bool mpiYieldsWhenIdle() {
  // What Open MPI's loop of progress asks, a byte, in 4.1 and in 6. MPI's tool interface has the setting behind it,
  // too, but to start that costs 0.3 s a process.
  static const void* const variable = dlsym(RTLD_DEFAULT, "opal_progress_yield_when_idle");
  return variable != nullptr && *static_cast<const bool*>(variable);
}

void Backoff::pause() {
  // About a microsecond: the partner is about to store. Where ranks share cores, it may wait for this one.
  const unsigned spins = mpiYieldsWhenIdle() ? 0 : 32;
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
    yieldUnlessMpiDoes();
  } else {
    sched_yield();
  }
}

void Backoff::yieldUnlessMpiDoes() {
  if (!mpiYieldsWhenIdle()) {
    sched_yield();
  }
}

}  // namespace Komvos::Impl
