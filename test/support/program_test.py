"""What the whole-program tests of `komvos` share: starting it under MPI, and checking what it reports."""
import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MATRICES = ROOT / "test" / "data" / "matrices"
BAD = MATRICES / "bad"
# Threads that spin would starve the others where there are more of them than cores. Open MPI's mpirun waits two seconds
# for others after a rank has failed, if it is not told to end them at once.
PATIENCE = {"OMP_WAIT_POLICY": "passive", "OMPI_MCA_odls_base_sigkill_timeout": "0"}
LIMIT = 90  # seconds for one run; a hang is a failure, not a wait
OPTIONS = argparse.Namespace(program="komvos", mpiexec="mpirun")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.errors = [line for line in (out + err).splitlines() if "komvos: error:" in line]


def run(ranks, *arguments, environment=None, command=None, stdout=subprocess.PIPE):
    """Runs the program under MPI, one rank without mpirun; a run over the limit is killed with all its ranks.

    Each mpirun keeps its files in a folder of its own: the default one is shared by all of a user, and one mpirun may
    remove it while another makes it."""
    launcher = [OPTIONS.mpiexec, "-n", str(ranks)] if ranks > 1 else []
    command = command or [*launcher, OPTIONS.program, *map(str, arguments)]
    with tempfile.TemporaryDirectory(prefix="mpi-") as session:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                                   env={**PATIENCE, **os.environ, "TMPDIR": session, **(environment or {})},
                                   start_new_session=True)
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise AssertionError(f"no end after {LIMIT} s: {' '.join(command)}") from None
    return Result(process.returncode, out or "", err)


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="komvos-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def solve(self, ranks, *arguments, code=0, **how):
        """Runs `komvos solve` and returns its JSON report."""
        file = self.folder / "report.json"
        result = run(ranks, "solve", *arguments, "--json", file, **how)
        self.assertEqual(result.code, code, f"{arguments}\n{result.out}{result.err}")
        report = json.loads(file.read_text())
        if code == 0:
            self.assertTrue(report["converged"])
            self.assertLessEqual(report["true_residual"], 1.001 * report["tolerance"])
            self.assertEqual(result.errors, [])
        return report

    def check_refusal(self, result, words):
        """The program must have ended with one line of error that names what it is about."""
        self.assertEqual(result.code, 1, result.out + result.err)
        self.assertEqual(len(result.errors), 1, result.out + result.err)
        self.assertTrue(result.errors[0].startswith("komvos: error: "))
        for word in words:
            self.assertIn(str(word), result.errors[0])
        self.assertNotIn("terminate called", result.err)
        self.assertNotIn("MPI_ABORT", result.err)

    def check_refusals(self, cases, ranks=(2,)):
        """cases: (arguments, words). Several at once, for mpirun takes a second to notice a failure."""
        jobs = [(arguments, words, count) for arguments, words in cases for count in ranks]
        with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
            for job, result in zip(jobs, pool.map(lambda job: run(job[2], *job[0]), jobs)):
                with self.subTest(arguments=job[0], ranks=job[2]):
                    self.check_refusal(result, job[1])


def main():
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=OPTIONS)
    outcome = unittest.main(argv=[sys.argv[0], *OPTIONS.tests], verbosity=2, exit=False)
    return 0 if outcome.result.wasSuccessful() else 1
