#!/usr/bin/env python3
"""Settings for Open MPI on small machines and in containers, and how many compilations fit into this machine.

mpi_environment.py RANKS         prints "export NAME=value" lines for eval in a shell
mpi_environment.py --build-jobs  prints the number of compilations that may run at once
"""
import argparse
import ctypes
import os
import shlex
import tempfile
from pathlib import Path

import open_mpi

MESSAGE = b"komvos"


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def exit_status_of(task):
    """Runs task() in a child process of its own; the status is 0 if it returns True."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if task() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def cross_memory_attach_works():
    """Whether one process may read the memory of a sibling, which Open MPI's shared-memory transport does by default.
    Containers often forbid it, and Open MPI then fails instead of copying through shared memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    source = ctypes.create_string_buffer(MESSAGE)
    ready, done = os.pipe(), os.pipe()
    sibling = os.fork()
    if sibling == 0:
        set_ptracer, any_process = 0x59616D61, ctypes.c_ulong(-1)
        libc.prctl(set_ptracer, any_process, 0, 0, 0)
        os.close(done[1])
        os.write(ready[1], b"x")
        os.read(done[0], 1)
        os._exit(0)

    def read_sibling():
        target = ctypes.create_string_buffer(len(MESSAGE))
        local = IoVec(ctypes.addressof(target), len(MESSAGE))
        remote = IoVec(ctypes.addressof(source), len(MESSAGE))
        count = libc.process_vm_readv(sibling, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        return count == len(MESSAGE) and target.raw == MESSAGE

    os.read(ready[0], 1)
    status = exit_status_of(read_sibling)
    os.write(done[1], b"x")
    os.waitpid(sibling, 0)
    for end in (*ready, *done):
        os.close(end)
    return status == 0


def free_bytes(folder):
    """Free space in a folder that can be written to, else 0."""
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        return 0
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize


def cores():
    return len(os.sched_getaffinity(0))


def mpi_environment(ranks):
    """Variables to add to the environment, so that Open MPI runs as root, on fewer cores than ranks and in a container.
    What the user has set stays."""
    defaults = {}
    version = open_mpi.major_version() or 4  # what another MPI does not know does no harm
    if os.geteuid() == 0:
        defaults.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if cores() < ranks:
        defaults.update(OMPI_MCA_mpi_yield_when_idle="1", **open_mpi.oversubscribed(version),
                        **open_mpi.unbound(version))
    if not cross_memory_attach_works():
        defaults.update(open_mpi.without_single_copy(version))
    # Containers often have 64 MB of /dev/shm or none; Open MPI takes about 4 MB a rank for messages, and windows more.
    if free_bytes("/dev/shm") < 256 << 20:
        for component in (f"btl_{open_mpi.shared_memory(version)}", "osc_sm", "osc_rdma"):
            defaults[f"OMPI_MCA_{component}_backing_directory"] = tempfile.gettempdir()
    return {name: value for name, value in defaults.items() if name not in os.environ}


def available_bytes():
    """Memory that is free, or the container's share of it if that is less; None where it is not known."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    try:
        return min(available, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    except (OSError, ValueError):  # no such file, or "max"
        return available


def build_jobs():
    """How many compilations may run at once: one a core, 2.5 GB of memory each."""
    available = available_bytes()
    return cores() if available is None else max(1, min(cores(), available // (2_500_000 << 10)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("ranks", nargs="?", type=int, metavar="RANKS", help="the most ranks of any run")
    what.add_argument("--build-jobs", action="store_true")
    arguments = parser.parse_args()
    if arguments.build_jobs:
        print(build_jobs())
    else:
        for name, value in mpi_environment(arguments.ranks).items():
            print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
