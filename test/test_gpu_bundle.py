#!/usr/bin/env python3
"""The script inside the GPU bundle, with programs that only pretend: what it starts, what it reports, how it ends."""
import json
import os
import shutil
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

import gpu_bundle

GPU = '{"driver_supports_cuda": "13.0", "gpus": [{"name": "NVIDIA H200", "compute_capability": "%s"}]}'
RUNS = """\
exchange.np2\t2\tcomm_exchange_test\t--gtest_filter=*Messages1\t-
exchange.staged.np4\t4\tcomm_exchange_test\t--gtest_filter=*Staged*\tKOMVOS_STAGED=1
says.np2\t2\tcomm_mpi_plan_test\t-\tTPETRA_ASSUME_CUDA_AWARE_MPI=1
"""
TEST = """\
echo "staged=$KOMVOS_STAGED aware=$TPETRA_ASSUME_CUDA_AWARE_MPI btl=$OMPI_MCA_btl arguments=$*"
case "$*" in *list_tests) echo "  ATestOfExchange";; *Nothing*) ;; *) echo '[       OK ] A.Test (1 ms)';; esac
"""


class Bundle:
    """A folder with the script and such programs."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for name in ("bin", "lib", "home", "tools"):
            (self.folder / name).mkdir()
        shutil.copy(gpu_bundle.PARTS / "run", self.folder)
        (self.folder / "glibc-needed").write_text("2.1\n")
        (self.folder / "manifest.json").write_text('{"commit": "abc"}\n')
        (self.folder / "runs.tsv").write_text(RUNS)
        self.program("mpirun", 'shift 2; exec "$@"')
        self.set_cuda_of_mpi(True)
        self.program("gpu_info", f"echo '{GPU % '9.0'}'")
        for name in ("comm_exchange", "comm_mpi_plan", "comm_matrix", "comm_import", "hmatrix"):
            self.program(f"{name}_test", TEST)
        for name in ("komvos", "perf_products", "perf_row_transfer", "perf_hmatrix_products"):
            self.program(name, 'for file; do :; done; echo "{}" >"$file"; echo "table: $*"')

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def set_cuda_of_mpi(self, cuda):
        self.program("mpi_check", f"""echo '{{"library": "Open MPI", "ranks": 2, "cuda": {str(cuda).lower()}}}'""")

    def run(self, *arguments):
        """Exit status, output, and the report if there is one."""
        environment = {**os.environ, "PATH": f"{self.folder}/tools:/usr/sbin:/usr/bin:/sbin:/bin",
                       "KOMVOS_ROUTE": "standard"}
        done = subprocess.run([self.folder / "run", *arguments], cwd=self.folder / "home", env=environment, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        report = self.folder / "home/report/report.json"
        return done.returncode, done.stdout, json.loads(report.read_text()) if report.exists() else None

    def log(self, name):
        return (self.folder / "home/report/logs" / f"{name}.log").read_text()


class Script(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.bundle = Bundle(temporary.name)

    def test_runs_every_test_staged_and_gpu_aware_and_times_exchanges(self):
        status, out, report = self.bundle.run("--modes", "staged,gpu-aware,gpu-aware-copied,bench")
        self.assertEqual(0, status, out)
        names = [f"{run['mode']}/{run['name']}" for run in report["runs"]]
        self.assertEqual(["staged/exchange.np2", "staged/exchange.staged.np4", "staged/says.np2",
                          "gpu-aware/exchange.np2", "gpu-aware-copied/exchange.np2"],
                         [name for name in names if not name.startswith("bench")])
        self.assertIn("bench/gpu-aware.laplace3d.product.np4", names)
        self.assertIn("bench/hmatrix.sphere.30000", names)
        self.assertEqual({"passed"}, {run["status"] for run in report["runs"]})
        self.assertEqual("abc", report["bundle"]["commit"])
        self.assertEqual("9.0", report["machine"]["driver"]["gpus"][0]["compute_capability"])
        self.assertIn("staged= aware=0 btl=self,vader arguments=--gtest_filter=*Messages1",
                      self.bundle.log("staged.exchange.np2"))
        self.assertIn("staged=1 aware=0", self.bundle.log("staged.exchange.staged.np4"))
        self.assertIn("aware=1", self.bundle.log("staged.says.np2"))
        self.assertIn("staged= aware=1 btl=self,smcuda", self.bundle.log("gpu-aware.exchange.np2"))
        self.assertIn("table: bench halo", (self.bundle.folder / "home/report/report.txt").read_text())

    def test_says_that_gpu_aware_runs_are_skipped_where_mpi_has_no_cuda(self):
        self.bundle.set_cuda_of_mpi(False)
        status, out, report = self.bundle.run("--modes", "staged,gpu-aware")
        self.assertEqual(0, status, out)
        self.assertEqual(["passed"] * 3 + ["skipped"], [run["status"] for run in report["runs"]])
        self.assertIn("built without CUDA", report["runs"][-1]["remark"])

    def test_reports_what_failed_what_ran_too_long_and_what_ran_nothing(self):
        self.bundle.program("comm_exchange_test", 'echo "[rank 1] x.cpp:3: no"; exit 1')
        self.bundle.program("comm_mpi_plan_test", "sleep 60")
        status, _, report = self.bundle.run("--modes", "staged", "--limit", "1")
        self.assertEqual(1, status)
        self.assertEqual(["FAILED"] * 3, [run["status"] for run in report["runs"]])
        self.assertIn("[rank 1] x.cpp:3: no", report["runs"][0]["remark"])
        self.assertEqual("ended after 1 s", report["runs"][2]["remark"])
        self.bundle.program("comm_exchange_test", "true")
        status, _, report = self.bundle.run("--modes", "staged", "--ranks", "4")
        self.assertEqual((1, "no test ran"), (status, report["runs"][0]["remark"]))

    def test_starts_nothing_once_the_time_is_over(self):
        status, _, report = self.bundle.run("--modes", "staged", "--minutes", "0")
        self.assertEqual((1, 3), (status, report["summary"]["not_run"]))

    def test_says_why_no_gpu_can_be_used(self):
        for text, reason in (("echo 'no NVIDIA driver: nothing'; exit 3", "no NVIDIA driver: nothing"),
                             (f"echo '{GPU % '8.0'}'", "compute capability 9")):
            self.bundle.program("gpu_info", text)
            status, out, report = self.bundle.run()
            self.assertEqual(3, status)
            self.assertIn(f"no GPU: {reason if reason.startswith('no') else 'the programs are for'}", out)
            self.assertIn(reason, report["machine"]["problem"])
            self.assertEqual([], report["runs"])

    def test_says_why_the_programs_cannot_start(self):
        self.bundle.program("mpi_check", "echo no network; exit 1")
        status, out, report = self.bundle.run()
        self.assertEqual(4, status)
        self.assertIn("no network", out)
        self.assertIn("MPI does not start", report["machine"]["problem"])
        (self.bundle.folder / "glibc-needed").write_text("2.999\n")
        status, out, _ = self.bundle.run()
        self.assertEqual(4, status)
        self.assertIn("glibc 2.999 or newer", out)

    def test_lists_runs_and_tests_without_a_gpu(self):
        self.bundle.program("gpu_info", "exit 3")
        status, out, report = self.bundle.run("--list", "--only", "np2$")
        self.assertEqual((0, None), (status, report))
        self.assertIn("ATestOfExchange", out)
        self.assertIn("sanitizer         memcheck.exchange.np2", out)
        self.assertNotIn("np4", out)

    def test_refuses_what_it_does_not_know(self):
        for arguments in (("--modes", "other"), ("--ranks", "two"), ("--limit",), ("--unknown",)):
            self.assertEqual(2, self.bundle.run(*arguments)[0], arguments)

    def test_counts_what_the_sanitizer_finds(self):
        self.bundle.program("../tools/compute-sanitizer", """\
[ "$1" = --version ] && exit 0
echo '[       OK ] A.Test (1 ms)'
case "$2" in racecheck) errors=2 status=66;; initcheck) errors=1 status=66;; *) errors=0 status=0;; esac
echo "========= ERROR SUMMARY: $errors errors"; exit $status""")
        status, _, report = self.bundle.run("--modes", "sanitizer")
        self.assertEqual(1, status)
        for run in report["runs"]:
            tool = run["name"].split(".")[0].split("-")[0]
            self.assertEqual({"racecheck": "FAILED"}.get(tool, "passed"), run["status"], run)
            self.assertEqual({"racecheck": 2, "initcheck": 1}.get(tool, 0), run["sanitizer_errors"])


if __name__ == "__main__":
    unittest.main()
