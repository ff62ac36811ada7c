#!/usr/bin/env python3
"""Tests virtual_cluster.py. Exits with 77 where the machine does not permit one.

test_virtual_cluster.py [--mpicc mpicc] [--mpirun mpirun] [CASE ...]
"""
import argparse
import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "virtual_cluster.py"
TAG = "VIRTUAL_CLUSTER_RUN"
OPTIONS = argparse.Namespace(mpicc="mpicc", mpirun="mpirun", program=None)  # program: who_is_where
FOREVER = ("gap", 100000000)
# Or mpirun waits two seconds for other ranks after one has failed.
ENVIRONMENT = {**os.environ, "OMPI_MCA_odls_base_sigkill_timeout": "0"}


def words_of(*arguments, limit=60):
    return list(map(str, [SCRIPT, "--mpirun", OPTIONS.mpirun, "--timeout", limit, *arguments]))


def cluster(*arguments, **how):
    return subprocess.run(words_of(*arguments), capture_output=True, text=True, env=ENVIRONMENT, **how)


def start(*arguments, **how):
    return subprocess.Popen(words_of(*arguments, **how), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=ENVIRONMENT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def nodes_in(output):
    """Ranks on each node, "host0:2 host1:2", in the order of the nodes' numbers."""
    found = re.findall(r"^rank \d+ host (\S+) node (\d+)$", output, re.MULTILINE)
    if not found:
        raise AssertionError(f"no rank says where it is:\n{output}")
    count = collections.Counter((int(node), host) for host, node in found)
    return " ".join(f"{host}:{ranks}" for (_, host), ranks in sorted(count.items()))


def processes_of(run):
    tag, found = f"{TAG}={run}".encode(), []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if tag in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
    return found


def traces():
    """What a run could leave on this machine. Its mounts and files are told from those of others by their names."""
    def lines_of(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    folders = {Path(folder) for folder in ("/tmp", "/dev/shm", "/run", tempfile.gettempdir())}
    names = ("ompi.host[0-9]*", "prte*host[0-9]*", "vader_segment.host[0-9]*", "sm_segment.host[0-9]*",
             "virtual-cluster*")
    return (lines_of("ip", "netns", "list"), [line.split()[1] for line in lines_of("ip", "-o", "link")],
            sorted(mount for mount in mounts if re.fullmatch("/run|/run/netns.*|/etc/hosts", mount)),
            sorted(path for folder in folders for name in names for path in folder.glob(name)))


class ClusterTest(unittest.TestCase):
    def assert_within(self, value, low, high):
        self.assertTrue(low <= value <= high, f"{value} is not within {low} and {high}")


class Nodes(ClusterTest):
    def nodes(self, *arguments):
        return nodes_in(cluster(*arguments, "--", OPTIONS.program).stdout)

    def test_the_shape_is_what_mpi_sees(self):
        self.assertEqual(self.nodes("--hosts", 4, "--ranks-per-host", 2), "host0:2 host1:2 host2:2 host3:2")
        self.assertEqual(self.nodes("--shape", "5,2"), "host0:5 host1:2")

    def test_arguments_for_mpirun(self):
        self.assertEqual(self.nodes("--hosts", 2, "--mpirun-args", "-n 3 --map-by node"), "host0:2 host1:1")


class Network(ClusterTest):
    def gap_us(self, *arguments):
        """Median time for 64 messages that leave each card."""
        run = cluster("--hosts", 2, "--ranks-per-host", 8, *arguments, "--", OPTIONS.program, "gap", 15)
        return float(re.search(r"^gap(?: \S+){3} (\S+)", run.stdout, re.MULTILINE)[1])

    def test_the_cost_of_a_message(self):
        """64 messages leave each card a round, so a round takes 64 times the cost at least. It may take much longer
        where the machine has other work to do."""
        self.assert_within(self.gap_us(), 0, 64 * 500 / 2)
        for cost in (100, 500):
            with self.subTest(cost=cost):
                self.assert_within(self.gap_us("--message-cost", f"{cost}us"), 60 * cost, 64 * cost * 2.5 + 10000)

    def test_bandwidth(self):
        """1 MB at 100mbit takes 80,000 us."""
        run = cluster("--hosts", 2, "--ranks-per-host", 1, "--bandwidth", "100mbit", "--", OPTIONS.program, "pingpong",
                      3, 1000000)
        self.assert_within(float(re.search(r"^pingpong \S+ (\S+)", run.stdout, re.MULTILINE)[1]), 76000, 160000)


class ExitStatus(ClusterTest):
    def test_it_is_the_programs(self):
        self.assertEqual(cluster("--", "bash", "-c", "exit 7").returncode, 7)

    def test_arguments_and_standard_input_arrive_unchanged(self):
        run = cluster("--shape", 1, "--", "printf", "<%s>", "a  b", '$c "d"', "it's")
        self.assertEqual((run.returncode, run.stdout), (0, "<a  b><$c \"d\"><it's>"))
        self.assertEqual(cluster("--shape", "1,1", "--", "cat", input="hello").stdout, "hello")

    def test_wrong_usage(self):
        for arguments, word in ((("--hosts", "x", "--", "true"), "--hosts 'x'"), (("--hosts",), "needs a value"),
                                (("--message-cost", "1ms", "--", "true"), "65535"), ((), "no program"),
                                (("--shape", "5,", "--", "true"), "'5,'"), (("--loud",), "unknown option '--loud'"),
                                (("--shape", 5, "--hosts", 2, "--", "true"), "takes the place"),
                                (("--bandwidth", 5, "--", "true"), "is not a rate"),
                                (("--hosts", 251, "--", "true"), "at most 250 hosts")):
            with self.subTest(arguments):
                run = cluster(*arguments)
                self.assertEqual((run.returncode, run.stderr.count("\n")), (2, 1), run.stderr)
                self.assertIn(word, run.stderr)

    def test_help(self):
        run = cluster("--help")
        self.assertEqual(run.returncode, 0)
        self.assertIn("--ranks-per-host N", run.stdout)


class Skipping(ClusterTest):
    def check_skipped(self, command, reason):
        run = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd="/")
        self.assertEqual((run.returncode, run.stderr.count("\n"), run.stdout), (77, 1, ""), run.stderr)
        self.assertIn(reason, run.stderr)

    def test_without_root(self):
        with tempfile.TemporaryDirectory() as folder:  # for nobody may not be allowed into the one of the script
            os.chmod(folder, 0o755)
            for file in (SCRIPT, HERE.parent / "support" / "open_mpi.py"):
                copy = Path(folder, file.relative_to(HERE.parent))
                copy.parent.mkdir()
                shutil.copy(file, copy)
            script = Path(folder, SCRIPT.relative_to(HERE.parent))
            nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/env", "python3"]
            if subprocess.run([*nobody, "-c", ""], capture_output=True).returncode != 0:
                self.skipTest("nobody may not run this Python")
            for last in ((script, "--", "true"), (script, "--check")):
                self.check_skipped([*nobody, *last], "need root")

    def test_without_the_capability(self):
        self.check_skipped(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", "--", SCRIPT, "--",
                            "true"], "unshare")

    def test_without_mpirun(self):
        self.check_skipped([SCRIPT, "--mpirun", "no-such-mpirun", "--", "true"], "no-such-mpirun is not installed")


class NothingIsLeftBehind(ClusterTest):
    def setUp(self):
        self.before = traces()

    def check_nothing_left(self, run):
        self.assertEqual(processes_of(run.pid), [])
        self.assertEqual(traces(), self.before)

    def check_interrupted(self, name, status):
        """Starts a run that would go on for minutes, and sends it a signal as soon as its ranks are busy."""
        with tempfile.TemporaryDirectory() as folder:
            started = Path(folder, "started")
            run = start("--hosts", 3, "--", "bash", "-c", 'echo >>"$1"; shift; exec "$@"', "rank", started,
                        OPTIONS.program, *FOREVER)
            deadline = time.monotonic() + 30
            while not started.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(0.5)
            self.assertGreaterEqual(len(processes_of(run.pid)), 6)
            run.send_signal(name)
            run.communicate()
        if name == signal.SIGKILL:
            time.sleep(1)  # nobody waits for the cluster of a killed script: the kernel ends it soon
        self.assertEqual(run.returncode, status)
        self.check_nothing_left(run)

    def test_after_a_signal(self):
        for name, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129),
                             (signal.SIGKILL, -signal.SIGKILL)):
            with self.subTest(name):
                self.check_interrupted(name, status)

    def test_after_the_time_limit(self):
        run = start("--", OPTIONS.program, *FOREVER, limit=2)
        self.assertIn("virtual-cluster: ended after 2 s", run.communicate()[0])
        self.assertEqual(run.returncode, 124)
        self.check_nothing_left(run)

    def test_two_runs_at_once(self):
        first = start("--hosts", 2, "--", OPTIONS.program)
        second = cluster("--hosts", 3, "--", OPTIONS.program)
        self.assertEqual(nodes_in(second.stdout), "host0:2 host1:2 host2:2")
        self.assertEqual(nodes_in(first.communicate()[0]), "host0:2 host1:2")
        self.assertEqual(first.returncode, 0)
        self.check_nothing_left(first)

    def test_clean_ends_what_is_left(self):
        """There is no such run: pids end at 4194304."""
        left = subprocess.Popen(["sleep", "100"], env={**os.environ, TAG: "99999999"})
        run = subprocess.run([SCRIPT, "--clean"], capture_output=True, text=True, check=True)
        self.assertEqual(left.wait(), -signal.SIGKILL)
        self.assertIn(f"ending process {left.pid} of the run 99999999", run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpicc", default="mpicc")
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=OPTIONS)
    check = subprocess.run([SCRIPT, "--mpirun", OPTIONS.mpirun, "--check"])
    if check.returncode != 0:
        return check.returncode
    with tempfile.TemporaryDirectory() as folder:
        OPTIONS.program = Path(folder, "who_is_where")
        subprocess.run([OPTIONS.mpicc, "-std=c99", "-O1", HERE / "who_is_where.c", "-o", OPTIONS.program], check=True)
        outcome = unittest.main(argv=[sys.argv[0], *OPTIONS.tests], verbosity=2, exit=False)
    return 0 if outcome.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
