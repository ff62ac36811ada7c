#include "Komvos_Backoff.hpp"

#include <mpi.h>
#include <sched.h>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

namespace {

/// A control variable of MPI's tool interface that is yes or no; false if there is none.
bool controlVariable(const char* name) {
  int provided = 0, index = 0, count = 0, value = 0;  // Open MPI 4.1 writes one byte of the number
  MPI_T_cvar_handle handle;
  if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
    return false;
  }
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    if (count != 1 || MPI_T_cvar_read(handle, &value) != MPI_SUCCESS) {
      value = 0;
    }
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return value != 0;
}

}  // namespace

bool mpiYieldsWhenIdle() {
  static const bool yields = controlVariable("mpi_yield_when_idle");
  return yields;
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
