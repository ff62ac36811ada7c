// Lets MPICH share a core among waiting ranks, which Debian's does not do by itself: where nothing has happened, it
// asks UCX for progress again at once, until the system takes the core away. Tests have more ranks than there are
// cores, and each step of a message would take a time slice. Open MPI has a setting for this (mpi_yield_when_idle).
//
// The executable's ucp_worker_progress() takes the place of that in UCX's library; an MPICH over another network never
// calls it.
#include <dlfcn.h>
#include <sched.h>

extern "C" unsigned ucp_worker_progress(void* worker) {
  using Progress = unsigned (*)(void*);
  static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned events = progress(worker);
  if (events == 0) {
    sched_yield();
  }
  return events;
}
