# shellcheck shell=bash
# To be sourced by ./quickstart and .ci/run: settings for MPI on small machines and in containers, and how many
# compilations fit into this machine.

# Whether one process may read the memory of a sibling, which Open MPI's shared-memory transport does by default.
# Containers often forbid it, and Open MPI then fails instead of copying through shared memory.
cross_memory_attach_works() {
  python3 - <<'PYTHON' 2>/dev/null
import ctypes, os, sys

libc = ctypes.CDLL(None, use_errno=True)
class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

source = ctypes.create_string_buffer(b"komvos")
target = ctypes.create_string_buffer(6)
ready, done = os.pipe(), os.pipe()
sibling = os.fork()
if sibling == 0:
    PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, ctypes.c_ulong(-1)
    libc.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    os.close(done[1])
    os.write(ready[1], b"x")
    os.read(done[0], 1)
    os._exit(0)
os.read(ready[0], 1)
reader = os.fork()
if reader == 0:
    local = IoVec(ctypes.addressof(target), 6)
    remote = IoVec(ctypes.addressof(source), 6)
    count = libc.process_vm_readv(sibling, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    os._exit(0 if count == 6 and target.raw == b"komvos" else 1)
status = os.waitpid(reader, 0)[1]
os.write(done[1], b"x")
os.waitpid(sibling, 0)
sys.exit(0 if status == 0 else 1)
PYTHON
}

# Free kilobytes in a folder that can be written to, else 0.
free_kilobytes() {
  local free=
  [[ -d $1 && -w $1 ]] && free=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')
  echo "${free:-0}"
}

# mpi_environment RANKS: lets Open MPI run as root, and on fewer cores than ranks. What the user has set stays.
mpi_environment() {
  local ranks=$1 folder=${TMPDIR:-/tmp}
  if [[ $(id -u) == 0 ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
  if (($(nproc) < ranks)); then
    export OMPI_MCA_rmaps_base_oversubscribe=${OMPI_MCA_rmaps_base_oversubscribe-1}
    export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle-1}
    export OMPI_MCA_hwloc_base_binding_policy=${OMPI_MCA_hwloc_base_binding_policy-none}
    # The same for Open MPI 5.
    export PRTE_MCA_rmaps_default_mapping_policy=${PRTE_MCA_rmaps_default_mapping_policy-:oversubscribe}
    export PRTE_MCA_hwloc_default_binding_policy=${PRTE_MCA_hwloc_default_binding_policy-none}
  fi
  if ! cross_memory_attach_works; then
    export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism-none}
  fi
  # Containers often have 64 MB of /dev/shm or none; Open MPI takes about 4 MB a rank for messages, and windows more.
  if (($(free_kilobytes /dev/shm) < 262144)); then
    export OMPI_MCA_btl_vader_backing_directory=${OMPI_MCA_btl_vader_backing_directory-$folder}
    export OMPI_MCA_osc_sm_backing_directory=${OMPI_MCA_osc_sm_backing_directory-$folder}
    export OMPI_MCA_osc_rdma_backing_directory=${OMPI_MCA_osc_rdma_backing_directory-$folder}
  fi
}

# How many compilations may run at once: one a core, 2.5 GB of memory each (of the container's share, if it has one).
build_jobs() {
  local jobs available limit=max kilobytes_a_job=2500000
  jobs=$(nproc)
  available=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || true)
  [[ -r /sys/fs/cgroup/memory.max ]] && limit=$(</sys/fs/cgroup/memory.max)
  if [[ $limit != max && -n $available ]] && ((limit / 1024 < available)); then
    available=$((limit / 1024))
  fi
  if [[ -n $available ]] && ((available / kilobytes_a_job < jobs)); then
    jobs=$((available / kilobytes_a_job))
  fi
  echo $((jobs > 0 ? jobs : 1))
}
