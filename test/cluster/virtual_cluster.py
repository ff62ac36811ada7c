#!/usr/bin/env python3
"""A cluster on one machine: every "host" is a Linux network namespace with a host name, a network card and a /dev/shm
of its own. See USAGE below and README.md beside this file.

How it works, from the end of the file: main() reads the options and run_outside() starts the script again, with
--inside, in private PID, mount, network and IPC namespaces, where it is PID 1. run_inside() builds the hosts there
(build_cluster) and starts mpirun on host0 (run_program).

How it cleans up: the whole cluster belongs to that PID 1. When it ends, however it ends, the kernel kills every process
in its namespaces and drops every mount, namespace, veth pair and temporary file. Nothing is ever created outside, so
two runs cannot collide either.
"""
import dataclasses
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import open_mpi  # noqa: E402

SKIPPED, TIMED_OUT = 77, 124
TAG = "VIRTUAL_CLUSTER_RUN"  # marks our processes, for --clean
RUN_DIR = Path("/run/virtual-cluster")  # on a private tmpfs, see build_private_files
SUBNET = "10.77.0"

USAGE = """\
Run a program with Open MPI on several virtual hosts of one machine.

  virtual_cluster.py [options] -- PROGRAM [ARGUMENT...]
  virtual_cluster.py --check     exit 0 if this machine permits it, 77 if not
  virtual_cluster.py --clean     end what is left of runs whose script is gone

Shape (ranks are numbered host by host):
  --hosts N            number of hosts (default 2)
  --ranks-per-host N   ranks on each host (default 2)
  --shape A,B,...      ranks of each host, instead of the two options above

Network (default: as fast as the kernel passes the packets on):
  --message-cost TIME  what each packet costs the card of the sending host, as
                       in 100us or 1ms. This is a gap, not a latency: a card
                       with K packets waiting needs K * TIME to send them, and
                       a lone packet on an idle card leaves at once. A message
                       of up to 64 kB is one packet; pure TCP
                       acknowledgements are free.
  --bandwidth RATE     bandwidth out of each host, as in 500mbit or 1gbit
                       (1gbit if there is a --message-cost; TIME * RATE must
                       not exceed 65535 bytes, that is 524us at 1gbit)

Running:
  --timeout SECONDS    end the run after that long, with exit code 124
  --mpirun PATH        the mpirun to use (default: mpirun)
  --mpirun-args 'A B'  more arguments for mpirun, split at blanks; they win over
                       the settings made here, which are environment variables

The exit code is mpirun's, hence the program's; 2 for wrong usage, 77 with one
line of explanation where the machine does not permit a cluster, 128 + signal
after INT, TERM or HUP."""


def leave(message, status):
    print(f"virtual-cluster: {message}", file=sys.stderr, flush=True)
    sys.exit(status)


def wrong_usage(message):
    leave(f"{message} (see --help)", 2)


def skip(reason):
    leave(f"skipped: {reason}", SKIPPED)


# --- options -----------------------------------------------------------------


@dataclasses.dataclass
class Options:
    hosts: str = ""
    ranks_per_host: str = ""
    shape: str = ""
    message_cost: str = ""
    bandwidth: str = ""
    timeout: str = ""
    mpirun: str = "mpirun"
    mpirun_args: str = ""
    mode: str = "run"
    program: list = dataclasses.field(default_factory=list)


WITH_VALUE = ("--hosts", "--ranks-per-host", "--shape", "--message-cost", "--bandwidth", "--timeout", "--mpirun",
              "--mpirun-args")


def parse_options(words):
    options = Options()
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("--check", "--clean"):
            options.mode = word[2:]
        elif word in ("--help", "-h"):
            print(USAGE)
            sys.exit(0)
        elif word == "--":
            options.program, words = words, []
        elif word not in WITH_VALUE:
            wrong_usage(f"unknown option '{word}'")
        elif not words:
            wrong_usage(f"{word} needs a value")
        else:
            setattr(options, word[2:].replace("-", "_"), words.pop(0))
    return options


class Cluster:
    """The options in numbers; wrong ones end the script."""

    def __init__(self, options):
        self.options = options
        self.slots = ranks_of_hosts(options)
        self.message_ns, self.bits_per_second = network_limits(options)  # 0: no limit
        # Bytes that take as long at the card's rate as a packet is to cost. The kernel keeps them in 16 bits.
        self.overhead_bytes = self.message_ns * self.bits_per_second // (8 * 10**9)
        if self.overhead_bytes > 65535:
            wrong_usage(f"--message-cost {options.message_cost} at {options.bandwidth or '1gbit'} is more than 65535 "
                        "bytes a packet; lower one of them")
        if options.timeout and not re.fullmatch("[1-9][0-9]{0,6}", options.timeout):
            wrong_usage(f"--timeout '{options.timeout}' is not a number of seconds")
        if options.mode == "run" and not options.program:
            wrong_usage("no program after --")

    @property
    def hosts(self):
        return range(len(self.slots))


def ranks_of_hosts(options):
    number = "[1-9][0-9]{0,3}"
    if options.shape:
        if options.hosts or options.ranks_per_host:
            wrong_usage("--shape takes the place of --hosts and --ranks-per-host")
        if not re.fullmatch(f"{number}(,{number})*", options.shape):
            wrong_usage(f"--shape '{options.shape}' is not a list like 5,2")
        slots = [int(ranks) for ranks in options.shape.split(",")]
    else:
        hosts, ranks = options.hosts or "2", options.ranks_per_host or "2"
        if not re.fullmatch(number, hosts):
            wrong_usage(f"--hosts '{hosts}' is not a positive number")
        if not re.fullmatch(number, ranks):
            wrong_usage(f"--ranks-per-host '{ranks}' is not a positive number")
        slots = [int(ranks)] * int(hosts)
    if len(slots) > 250:
        wrong_usage("at most 250 hosts")
    return slots


def network_limits(options):
    """Nanoseconds a packet, and bits a second."""
    message_ns, bandwidth = 0, options.bandwidth
    if options.message_cost not in ("", "0"):
        found = re.fullmatch("([0-9]{1,6})(ns|us|ms)", options.message_cost)
        if not found:
            wrong_usage(f"--message-cost '{options.message_cost}' is not a time like 100us")
        message_ns = int(found[1]) * {"ns": 1, "us": 10**3, "ms": 10**6}[found[2]]
        bandwidth = bandwidth or "1gbit"
    if not bandwidth:
        return message_ns, 0
    found = re.fullmatch("([1-9][0-9]{0,5})(kbit|mbit|gbit)", bandwidth)
    if not found:
        wrong_usage(f"--bandwidth '{bandwidth}' is not a rate like 1gbit")
    return message_ns, int(found[1]) * {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}[found[2]]


# --- inside: build the cluster and run ---------------------------------------


def call(*command):
    """Runs a command that builds the cluster. That it fails means that the machine does not permit one: the options
    have been checked before."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"{shlex.join(command)}: {last_line(done.stderr)}")


def last_line(text):
    return text.strip().rpartition("\n")[2]


def build_cluster(cluster):
    try:
        build_private_files(cluster)
        build_network(cluster)
    except OSError as error:
        skip(str(error))


def build_private_files(cluster):
    """/run is hidden by a tmpfs of this run alone: `ip netns` keeps its namespaces there, and we our files."""
    call("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/run")
    RUN_DIR.mkdir()
    write_names(cluster)
    call("mount", "--bind", str(RUN_DIR / "names"), "/etc/hosts")
    write_agent()


def write_names(cluster):
    """Open MPI looks its hosts up by name; without this it would ask a name server."""
    names = "".join(f"{SUBNET}.{h + 1} host{h}\n" for h in cluster.hosts)
    (RUN_DIR / "names").write_text(f"127.0.0.1 localhost\n{names}")
    (RUN_DIR / "hostfile").write_text("".join(f"host{h} slots={cluster.slots[h]}\n" for h in cluster.hosts))


def write_agent():
    """The agent takes the place of ssh: `agent HOST COMMAND...` runs a shell command on a host. Its own UTS namespace
    gives it the name by which MPI_Comm_split_type tells nodes apart; `ip netns exec` has already made the mounts
    private, so the /dev/shm is this host's alone, as on a real node."""
    agent = RUN_DIR / "agent"
    agent.write_text("""#!/bin/sh
set -eu
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c '
  hostname "$1" && mount -t tmpfs -o mode=1777 tmpfs /dev/shm && eval "$2"
' on-host "$host" "$*"
""")
    agent.chmod(0o755)


def build_network(cluster):
    call("ip", "netns", "add", "switch")
    call("ip", "-n", "switch", "link", "add", "bridge", "type", "bridge")
    call("ip", "-n", "switch", "link", "set", "bridge", "up")
    for h in cluster.hosts:
        add_host(h)
        if cluster.bits_per_second:
            limit_card(f"host{h}", cluster)


def add_host(h):
    """A host is a namespace with a card (eth0) and a cable to the switch."""
    host = f"host{h}"
    call("ip", "netns", "add", host)
    # IPv6 would only add packets of its own; not every kernel has it.
    subprocess.run(["ip", "netns", "exec", host, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6"],
                   stderr=subprocess.DEVNULL, check=False)
    call("ip", "-n", host, "link", "set", "lo", "up")
    call("ip", "-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{h}", "netns", "switch")
    call("ip", "-n", host, "address", "add", f"{SUBNET}.{h + 1}/24", "dev", "eth0")
    call("ip", "-n", host, "link", "set", "eth0", "up")
    call("ip", "-n", "switch", "link", "set", f"port{h}", "master", "bridge", "up")


def limit_card(host, cluster):
    """Class 1:2 holds all packets, class 1:1 the pure acknowledgements: IP packets of 52 (0x34) bytes, which are the
    TCP headers alone. They are the protocol's and not the program's, so they cost nothing. htb and not tbf, for only
    htb charges `overhead`. The small burst keeps an idle card from saving up time."""
    def tc(kind, *words):
        call("tc", "-n", host, kind, "add", "dev", "eth0", *words)

    rate = f"{cluster.bits_per_second}bit"
    tc("qdisc", "root", "handle", "1:", "htb", "default", "2", "r2q", "10000")
    tc("class", "parent", "1:", "classid", "1:1", "htb", "rate", "100gbit", "quantum", "60000")
    tc("class", "parent", "1:", "classid", "1:2", "htb", "rate", rate, "ceil", rate, "burst", "1600", "cburst", "1600",
       "overhead", str(cluster.overhead_bytes), "quantum", "60000")
    tc("filter", "parent", "1:", "protocol", "ip", "u32", "match", "u16", "0x34", "0xffff", "at", "2", "flowid", "1:1")


def open_mpi_settings(mpirun):
    """Environment variables, so that --mpirun-args may override them."""
    version = open_mpi.major_version(mpirun)
    # Daemons that leave the session (which on_hosts() forbids) put the ranks of each host in a scheduling group of its
    # own (autogroup), and the kernel (6.18) then sometimes lets the yielding ranks of one host starve the others for
    # minutes.
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        **open_mpi.on_hosts(version, str(RUN_DIR / "hostfile"), str(RUN_DIR), str(RUN_DIR / "agent"), f"{SUBNET}.0/24"),
        "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": f"self,{open_mpi.shared_memory(version)},tcp",
        **open_mpi.mapped(version, "slot"), **open_mpi.unbound(version),
        # The ranks share the machine's cores: one that waits must let go of its core.
        "OMPI_MCA_mpi_yield_when_idle": os.environ.get("OMPI_MCA_mpi_yield_when_idle") or "1",
    }


def run_program(cluster):
    options = cluster.options
    mpirun = [options.mpirun, *options.mpirun_args.split(), *options.program]
    limit = ["timeout", "--kill-after=5", options.timeout] if options.timeout else []
    start = time.monotonic()
    # `exec`, so that the timeout's signal reaches mpirun and no shell before it.
    process = subprocess.Popen([*limit, str(RUN_DIR / "agent"), "host0", f"exec {shlex.join(mpirun)}"],
                               env={**os.environ, **open_mpi_settings(options.mpirun)})
    code = exit_code(wait_as_init(process))
    # 137: mpirun had to be killed, which `timeout` reports in this way.
    if options.timeout and code in (124, 137) and time.monotonic() - start >= int(options.timeout):
        print(f"virtual-cluster: ended after {options.timeout} s", file=sys.stderr, flush=True)
        code = TIMED_OUT
    return code


def wait_as_init(process):
    """Waits for a child, and meanwhile for the orphans that PID 1 inherits."""
    while True:
        pid, status = os.wait()
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


def exit_code(returncode):
    """As a shell would tell it: 128 + signal for a process that was killed."""
    return returncode if returncode >= 0 else 128 - returncode


def run_inside(cluster):
    build_cluster(cluster)
    return run_program(cluster) if cluster.options.mode == "run" else 0


# --- outside: hold the cluster and end it ------------------------------------

# The parent's death kills `unshare`, whose death kills the cluster (--kill-child): not even a killed script leaves
# anything behind.
UNSHARE_ALL = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--ipc", "--pid", "--fork",
               "--kill-child", "--mount-proc"]


def check_permission(mpirun):
    if os.geteuid() != 0:
        skip("network namespaces need root")
    for tool in ("ip", "tc", "unshare", "setpriv", "pgrep", "hostname", "timeout", "mount", mpirun):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    if open_mpi.major_version(mpirun) is None:
        skip(f"{mpirun} is not Open MPI 4 or newer")
    trial = subprocess.run([*UNSHARE_ALL, "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if trial.returncode != 0:
        skip(last_line(trial.stdout))


def end_cluster(holder):
    """Killing PID 1 of the cluster kills all of it, and `unshare` returns only when the last process is gone. If PID 1
    is not there yet, `unshare` itself goes."""
    if holder.poll() is not None:
        return
    init = subprocess.run(["pgrep", "-P", str(holder.pid)], capture_output=True, text=True).stdout.split()
    for pid in init or [holder.pid]:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    holder.wait()


def end_by_signal(number, _):
    sys.exit(128 + number)


def run_outside(words):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, end_by_signal)
    # A Ctrl-C goes to all processes of the terminal. This one alone acts on it, and ends the cluster.
    holder = subprocess.Popen([*UNSHARE_ALL, sys.executable, os.path.realpath(__file__), "--inside", *words],
                              env={**os.environ, TAG: str(os.getpid())},
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    try:
        return exit_code(holder.wait())
    finally:
        end_cluster(holder)


def processes_with_tag():
    """(pid, pid of the script that started it)"""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended, or is not ours to read
        for variable in variables:
            name, _, owner = variable.partition(b"=")
            if name == TAG.encode() and owner.isdigit():
                yield int(folder.name), int(owner)


def clean():
    """Ends processes that bear our tag but whose script is gone. There should be none (see UNSHARE_ALL); this is for
    the case that there are."""
    for pid, owner in processes_with_tag():
        try:
            if b"virtual_cluster" in Path(f"/proc/{owner}/cmdline").read_bytes():
                continue
        except OSError:
            pass
        print(f"virtual-cluster: ending process {pid} of the run {owner}")
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def main(words):
    inside = words[:1] == ["--inside"]
    cluster = Cluster(parse_options(words[1:] if inside else words))
    if inside:
        return run_inside(cluster)
    if cluster.options.mode == "clean":
        return clean()
    check_permission(cluster.options.mpirun)
    return run_outside(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
