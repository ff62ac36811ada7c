#!/usr/bin/env python3
"""Whole-program tests of `komvos solve`, with the standard library only.

test_solve.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import argparse
import concurrent.futures
import json
import math
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
MATRICES = HERE / "data" / "matrices"
BAD = MATRICES / "bad"
PATIENCE = {"OMP_WAIT_POLICY": "passive", "OMPI_MCA_odls_base_sigkill_timeout": "0"}
LIMIT = 90  # seconds for one run; a hang is a failure, not a wait
OPTIONS = argparse.Namespace(program="komvos", mpiexec="mpirun")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.errors = [line for line in (out + err).splitlines() if "komvos: error:" in line]


def run(ranks, *arguments, environment=None, command=None, stdout=subprocess.PIPE):
    """Runs the program under MPI; a run over the limit is killed with all its ranks. Threads that spin would starve
    the others where there are more of them than cores. Open MPI's mpirun waits two seconds for others after a rank has
    failed, if it is not told to end them at once."""
    command = command or [OPTIONS.mpiexec, "-n", str(ranks), OPTIONS.program, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                               env={**PATIENCE, **os.environ, **(environment or {})},
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise AssertionError(f"no end after {LIMIT} s: {' '.join(command)}") from None
    return Result(process.returncode, out or "", err)


def read_matrix(path):
    """Entries (i, j, a) and the number of rows, with the other half of a symmetric matrix."""
    with open(path, encoding="utf-8") as file:
        symmetric = "symmetric" in file.readline()
        lines = [line.split() for line in file if not line.startswith("%") and line.strip()]
    entries = [(int(i) - 1, int(j) - 1, float(a)) for i, j, a in lines[1:]]
    if symmetric:
        entries += [(j, i, a) for i, j, a in entries if i != j]
    return entries, int(lines[0][0])


def read_vector(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if not line.startswith("%") and line.strip()]
    values = [float(line[0]) for line in lines[1:]]
    assert int(lines[0][0]) == len(values) and int(lines[0][1]) == 1
    return values


def norm(vector):
    return math.sqrt(math.fsum(x * x for x in vector))


def residual(entries, x, b):
    r = list(b)
    for i, j, a in entries:
        r[i] -= a * x[j]
    return norm(r) / norm(b)


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


class CommandLine(ProgramTest):
    @classmethod
    def setUpClass(cls):
        """A rank that fails alone gives up after ten seconds. They pass beside the other tests; the one that waits for
        it has the last name."""
        good = [OPTIONS.program, "solve", str(BAD / "small_good.mtx")]
        pool = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        cls.addClassCleanup(pool.shutdown)
        cls.lonely = pool.submit(run, 2, command=[OPTIONS.mpiexec, "-n", "1", *good,
                                                  ":", "-n", "1", *good, "--no-such-option"])

    def test_version_and_help_are_printed_once(self):
        version = run(3, "--version")
        self.assertEqual(version.code, 0)
        self.assertRegex(version.out, r"\Akomvos \d+\.\d+\.\d+\n\Z")
        for arguments, word in ((["--help"], "solve"), (["solve", "--help"], "--ranks-per-node")):
            result = run(3, *arguments)
            self.assertEqual(result.code, 0)
            self.assertEqual(result.out.count("Usage:"), 1)
            self.assertIn(word, result.out)
            self.assertIn("Exit status", result.out)

    def test_the_quickstart_command(self):
        result = run(4, "solve", "--problem", "elasticity3d", "--n", 12, "--ranks-per-node", 2)
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("4 ranks on 2 nodes", result.out)
        self.assertIn("converged", result.out)
        self.assertIn("halos in use", result.out)

    def test_three_step_says_what_it_gained(self):
        result = run(6, "solve", "--problem", "random", "--n", 600, "--ranks-per-node", 3, "--route", "three-step")
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("three-step sends 2 instead of 18 messages between nodes", result.out)

    def test_quiet_says_nothing(self):
        result = run(2, "solve", BAD / "small_good.mtx", "--quiet")
        self.assertEqual((result.code, result.out, result.err), (0, "", ""))

    def test_json_on_stdout_leaves_the_text_to_stderr(self):
        result = run(2, "solve", BAD / "small_good.mtx", "--json", "-")
        self.assertEqual(json.loads(result.out)["rows"], 5)
        self.assertIn("iterations", result.err)

    def test_progress_is_for_terminals_only(self):
        arguments = ("solve", "--problem", "rotated-anisotropic2d", "--n", 150, "--prec", "jacobi")
        piped = run(2, *arguments)
        self.assertEqual(piped.code, 0)
        self.assertNotIn("\r", piped.out)
        self.assertNotIn("\033", piped.out)
        master, slave = pty.openpty()
        reader = os.fork()
        if reader == 0:  # drains the terminal, or its buffer would stop the program
            os.close(slave)
            with open(self.folder / "seen", "wb") as file:
                while True:
                    try:
                        data = os.read(master, 65536)
                    except OSError:
                        break
                    if not data:
                        break
                    file.write(data)
                    file.flush()
            os._exit(0)
        os.close(master)
        self.assertEqual(run(2, *arguments, stdout=slave).code, 0)
        os.close(slave)
        os.waitpid(reader, 0)
        seen = (self.folder / "seen").read_bytes().decode()
        self.assertRegex(seen, r"\r\033\[Kiteration \d+, residual \d")
        self.assertIn("converged", seen)

    def test_not_converged_is_status_2_with_a_report(self):
        arguments = ("--problem", "laplace3d", "--n", 20, "--prec", "none", "--max-iterations", 5)
        for ranks in (1, 4):
            report = self.solve(ranks, *arguments, code=2)
            self.assertFalse(report["converged"])
            self.assertEqual(report["iterations"], 5)
            result = run(ranks, "solve", *arguments)
            self.assertEqual(len(result.errors), 1)
            self.assertIn("not converged", result.errors[0])

    def test_an_unreachable_tolerance_is_not_reported_as_reached(self):
        report = self.solve(2, "--problem", "laplace3d", "--n", 10, "--tolerance", "1e-19", code=2)
        self.assertGreater(report["true_residual"], 1e-19)
        self.assertFalse(report["converged"])

    def test_when_one_rank_alone_fails_all_end(self):
        result = self.lonely.result()
        self.assertNotEqual(result.code, 0)
        self.assertEqual(len(result.errors), 1)
        self.assertIn("rank 1 alone", result.errors[0])


class BadInput(ProgramTest):
    # What the one line of error must name.
    FILES = {
        "not_matrix_market.mtx": ["line 1"],
        "empty.mtx": ["empty"],
        "truncated_header.mtx": ["line 1"],
        "nonsquare.mtx": ["4 rows", "5 columns"],
        "complex.mtx": ["complex"],
        "pattern.mtx": ["pattern"],
        "nan_entry.mtx": ["line 10", "nan"],
        "inf_entry.mtx": ["line 6", "inf"],
        "zero_row.mtx": ["row 3"],
        "zero_diagonal_row.mtx": ["row 3", "zero"],
        "index_out_of_range.mtx": ["line 15", "column 6"],
        "negative_index.mtx": ["line 7", "row -2"],
        "too_few_entries.mtx": ["13", "10"],
        "index_past_2_31.mtx": ["3000000000"],
    }

    def test_each_bad_file_is_named_by_one_line(self):
        present = {path.name for path in BAD.glob("*.mtx")} - {"small_good.mtx", "rhs_wrong_length.mtx"}
        self.assertEqual(present, set(self.FILES))
        self.check_refusals([(["solve", BAD / name], [name, *words]) for name, words in self.FILES.items()], ranks=(4,))
        self.check_refusals([(["solve", BAD / "zero_row.mtx"], ["row 3"])], ranks=(1,))

    def test_bad_files_written_here(self):
        banner = "%%MatrixMarket matrix coordinate real general\n"
        texts = {
            "cancelled": (banner + "2 2 4\n1 1 1\n2 1 1\n2 2 1\n2 2 -1\n", ["diagonal", "row 2"]),
            "more": (banner + "1 1 1\n1 1 1\n1 1 1\n", ["line 4", "more"]),
            "huge": (banner + "1000000000000 1000000000000 1000000000000\n1 1 1\n", ["1000000000000"]),
            "index": (banner + "1 1 1\n99999999999999999999 1 1\n", ["64 bits"]),
            "large value": (banner + "1 1 1\n1 1 1e999\n", ["1e999"]),
            "words": (banner + "1 1 1\n1 one 1\n", ["one"]),
            "short line": (banner + "1 1 1\n1 1\n", ["line 3"]),
            "no size": (banner, ["rows"]),
            "column": (banner + "2 2 2\n1 1 1\n2 1 1\n", ["column 2"]),
        }
        for name, (text, _) in texts.items():
            (self.folder / name).write_text(text)
        self.check_refusals([(["solve", self.folder / name], words) for name, (_, words) in texts.items()])

    def test_bad_right_hand_sides(self):
        nan = self.folder / "nan.mtx"
        nan.write_text("%%MatrixMarket matrix array real general\n5 1\n0\n0\nnan\n0\n6\n")
        short = self.folder / "short.mtx"
        short.write_text("%%MatrixMarket matrix array real general\n5 1\n0\n")
        cases = ((BAD / "rhs_wrong_length.mtx", ["4 x 1", "5 x 1"]), (nan, ["line 5", "nan"]), (short, ["after 1"]),
                 (self.folder / "none", ["no such file"]), (BAD / "small_good.mtx", ["coordinate"]))
        self.check_refusals([(["solve", BAD / "small_good.mtx", "--rhs", rhs], words) for rhs, words in cases])

    def test_bad_options(self):
        good = BAD / "small_good.mtx"
        xml = self.folder / "broken.xml"
        xml.write_text("<ParameterList>")
        other = self.folder / "other.xml"
        other.write_text('<ParameterList name="x"><ParameterList name="Ifpack"/></ParameterList>')
        unknown = self.folder / "unknown.xml"
        unknown.write_text('<ParameterList name="x"><ParameterList name="MueLu">'
                           '<Parameter name="no such thing" type="int" value="1"/></ParameterList></ParameterList>')
        readonly = "/proc/x.mtx"
        cases = [
            ([], []),
            (["solve"], ["solve: needs a Matrix Market file or --problem"]),
            (["frobnicate"], ["frobnicate"]),
            (["solve", self.folder / "missing.mtx"], ["no such file"]),
            (["solve", self.folder], ["directory"]),
            (["solve", good, "--no-such-option"], ["--no-such-option"]),
            (["solve", good, "--problem", "laplace3d", "--n", 4], ["both"]),
            (["solve", "--problem", "laplace3d"], ["--n"]),
            (["solve", "--problem", "nonsense", "--n", 4], ["nonsense"]),
            (["solve", "--problem", "laplace3d", "--n", 0], ["--n"]),
            (["solve", "--problem", "laplace3d", "--n", "4,4"], ["--n"]),
            (["solve", "--problem", "laplace3d", "--n", "4,x,4"], ["4,x,4"]),
            (["solve", "--problem", "laplace3d", "--n", 4000000], ["too many"]),
            (["solve", "--problem", "elasticity3d", "--n", 1], ["2 points"]),
            (["solve", "--problem", "random", "--n", 60], ["--entries"]),
            (["solve", good, "--entries", 25], ["--entries"]),
            (["solve", good, "--tolerance", 0], ["--tolerance"]),
            (["solve", good, "--tolerance", -1], ["--tolerance"]),
            (["solve", good, "--tolerance", "nan"], ["--tolerance"]),
            (["solve", good, "--tolerance", "x"], ["--tolerance"]),
            (["solve", good, "--max-iterations", 0], ["--max-iterations"]),
            (["solve", good, "--max-iterations", 99999999999], ["--max-iterations"]),
            (["solve", good, "--solver", "nonsense"], ["nonsense", "CG"]),
            (["solve", good, "--prec", "ilu"], ["ilu"]),
            (["solve", good, "--route", "fast"], ["fast", "three-step"]),
            (["solve", good, "--route", "axis:1,1"], ["axis:1,1"]),
            (["solve", good, "--route", "split:0"], ["split:0"]),
            (["solve", good, "--on-node", "pigeons"], ["--on-node", "pigeons", "shared-memory"]),
            (["solve", good, "--machine", "green-waters"], ["green-waters", "blue-waters"]),
            (["solve", good, "--machine", xml], ["broken.xml"]),
            (["solve", good, "--tuning-cache", self.folder / "none.json"], ["cannot read decisions", "none.json"]),
            (["solve", good, "--tuning-cache", self.folder], ["cannot read decisions", self.folder]),
            (["solve", good, "--save-tuning-cache", self.folder], ["directory"]),
            (["solve", good, "--save-tuning-cache", self.folder / "no" / "d.json"], ["d.json"]),
            (["solve", good, "--partition", "x"], ["--partition"]),
            (["solve", good, "--ranks-per-node", "x"], ["x"]),
            (["solve", good, "--ranks-per-node", 0], ["0"]),
            (["solve", good, "--ranks-per-node", "7,1"], ["7"]),
            (["solve", good, "--ranks-per-node", "@/none"], ["/none"]),
            (["solve", good, "--xml", self.folder / "none.xml"], ["none.xml"]),
            (["solve", good, "--xml", xml], ["broken.xml"]),
            (["solve", good, "--xml", other], ["Ifpack"]),
            (["solve", good, "--xml", unknown], ["no such thing"]),
            (["solve", good, "--output", readonly], [readonly]),
            (["solve", good, "--output", self.folder], ["directory"]),
            (["solve", good, "--json", self.folder / "no" / "x.json"], ["x.json"]),
        ]
        self.check_refusals(cases)
        for ranks in (1, 4):
            grid = (["solve", good, "--route", "axis:7,1,1,1"], ["axis:7,1,1,1", f"product {ranks}"])
            self.check_refusals([grid], ranks=(ranks,))
        self.check_refusals([(["solve", good, "--route", "standard", "--tuning-cache", xml], ["--tuning-cache", "--route"])])
        sockets = (["solve", good, "--ranks-per-node", 2, "--route", "sockets"], ["route sockets", "socket"])
        self.check_refusals([sockets], ranks=(4,))

    def test_bad_environment(self):
        for name, value, word in (("KOMVOS_ROUT", "auto", "KOMVOS_ROUT "), ("KOMVOS_ROUTE", "fast", "fast"),
                                  ("KOMVOS_RANKS_PER_NODE", "x", "x"), ("KOMVOS_GPU_AWARE_MPI", "perhaps", "perhaps"),
                                  ("KOMVOS_ON_NODE", "pigeons", "'pigeons' is not one of messages, shared-memory, auto"),
                                  ("KOMVOS_MACHINE", "none", "none"),
                                  ("KOMVOS_TUNING_CACHE", "/none", "/none")):
            self.check_refusal(run(2, "solve", BAD / "small_good.mtx", environment={name: value}), [word])


class RealMatrices(ProgramTest):
    EVERY_ROUTE = ("standard", "two-step", "three-step", "split", "axis", "auto")
    RUNS = {  # matrix: {ranks: routes}
        "dcpf_case_ACTIVSg2000": {4: EVERY_ROUTE},
        "dcpf_case8387pegase": {5: ("standard", "auto")},
        "body_heat": {1: ("auto",), 4: ("standard", "three-step", "auto"), 5: ("standard", "auto")},
    }

    def test_the_routes_give_the_same_numbers(self):
        for name in self.RUNS:
            entries, rows = read_matrix(MATRICES / f"{name}.mtx")
            b = read_vector(MATRICES / f"{name}_rhs.mtx")
            for ranks, routes in self.RUNS[name].items():
                iterations = set()
                for route in routes:
                    with self.subTest(name, ranks=ranks, route=route):
                        output = self.folder / "x.mtx"
                        report = self.solve(ranks, MATRICES / f"{name}.mtx", "--rhs", MATRICES / f"{name}_rhs.mtx",
                                            "--ranks-per-node", 2, "--route", route, "--output", output)
                        self.assertEqual((report["rows"], report["solver"], report["symmetric"]), (rows, "CG", True))
                        self.assertEqual(report["entries"], len(entries))
                        self.assertEqual(report["ranks_per_node"], [2] * (ranks // 2) + [1] * (ranks % 2))
                        iterations.add(report["iterations"])
                        true = residual(entries, read_vector(output), b)
                        self.assertLessEqual(true, 1.01e-8)
                        self.assertAlmostEqual(true / report["true_residual"], 1, delta=0.02 if true > 1e-12 else 1e9)
                # With threads, the random start of Chebyshev's eigenvalue estimate differs from run to run.
                threaded = int(os.environ.get("OMP_NUM_THREADS", "1")) > 1
                self.assertLessEqual(max(iterations) - min(iterations), 3 if threaded else 0,
                                     "the route must not change the numbers")

    def test_the_indefinite_one_is_solved_by_gmres(self):
        name = "dcpf_case13659pegase"
        for ranks in (4, 5):
            report = self.solve(ranks, MATRICES / f"{name}.mtx", "--rhs", MATRICES / f"{name}_rhs.mtx",
                                "--ranks-per-node", 2)
            self.assertEqual(report["solver"], "GMRES")

    def test_partitions_give_the_same_solution(self):
        solutions = {}
        for name in ("contiguous", "strided", "graph"):
            output = self.folder / f"{name}.mtx"
            report = self.solve(5, MATRICES / "body_heat.mtx", "--rhs", MATRICES / "body_heat_rhs.mtx",
                                "--ranks-per-node", 2,
                                "--partition", name, "--output", output, "--tolerance", "1e-11")
            self.assertEqual(report["partition"], name)
            solutions[name] = read_vector(output)
        reference = solutions["contiguous"]
        for name in ("strided", "graph"):
            difference = norm([x - y for x, y in zip(solutions[name], reference)]) / norm(reference)
            self.assertLess(difference, 1e-7)

    def test_three_step_sends_fewer_messages_between_nodes(self):
        report = self.solve(8, MATRICES / "dcpf_case_ACTIVSg2000.mtx", "--ranks-per-node", 4, "--route", "three-step")
        halo = report["halos"][0]
        self.assertEqual(halo["standard"]["inter_node"]["messages_total"], 26)
        self.assertEqual(halo["chosen"]["inter_node"]["messages_total"], 2)
        self.assertLess(halo["chosen"]["inter_node"]["bytes_total"], halo["standard"]["inter_node"]["bytes_total"])


class SmallSystems(ProgramTest):
    def test_the_known_solution_also_with_more_ranks_than_rows(self):
        rhs = self.folder / "b.mtx"
        rhs.write_text("%%MatrixMarket matrix array integer general\r\n% six\r\n5 1\r\n0\r\n0\r\n0\r\n0\r\n6\r\n")
        for ranks, partition in {1: "contiguous", 3: "strided", 8: "contiguous"}.items():
            for preconditioner in ("muelu", "jacobi", "none"):
                output = self.folder / "x.mtx"
                self.solve(ranks, BAD / "small_good.mtx", "--rhs", rhs, "--output", output, "--partition", partition,
                           "--prec", preconditioner, "--ranks-per-node", 3, "--tolerance", "1e-12")
                for value, expected in zip(read_vector(output), (1, 2, 3, 4, 5)):
                    self.assertAlmostEqual(value, expected, delta=1e-10)

    def test_duplicates_are_summed_and_integers_and_comments_read(self):
        matrix = self.folder / "a.mtx"
        matrix.write_text("%%MatrixMarket Matrix Coordinate Integer General\n% comment\n\n"
                          "2 2 5\n1 1 1\n1 1 2\n% inside\n1 2 1\n2 1 1\n2 2 2\n")
        rhs = self.folder / "b.mtx"
        rhs.write_text("%%MatrixMarket matrix array real general\n2 1\n5\n5\n")
        output = self.folder / "x.mtx"
        for ranks in (1, 2):
            report = self.solve(ranks, matrix, "--rhs", rhs, "--output", output)
            self.assertEqual(report["entries"], 4)
            for value, expected in zip(read_vector(output), (1, 2)):
                self.assertAlmostEqual(value, expected, delta=1e-7)

    def test_a_zero_right_hand_side_has_the_zero_solution(self):
        rhs = self.folder / "b.mtx"
        rhs.write_text("%%MatrixMarket matrix array real general\n5 1\n0\n0\n0\n0\n0\n")
        output = self.folder / "x.mtx"
        report = self.solve(2, BAD / "small_good.mtx", "--rhs", rhs, "--output", output)
        self.assertEqual(report["iterations"], 0)
        self.assertEqual(read_vector(output), [0] * 5)

    def test_output_files_are_whole_or_not_there(self):
        self.solve(2, BAD / "small_good.mtx", "--output", self.folder / "x.mtx")
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"x.mtx", "report.json"})
        target, link = self.folder / "target.mtx", self.folder / "link.mtx"
        target.write_text("old")
        link.symlink_to(target)
        self.solve(2, BAD / "small_good.mtx", "--output", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(len(read_vector(target)), 5)
        self.solve(2, BAD / "small_good.mtx", "--output", "/dev/null")
        self.assertTrue(Path("/dev/null").is_char_device())

    def test_a_topology_from_a_file_and_from_the_environment(self):
        placement = self.folder / "nodes"
        placement.write_text("0 1 0 1\n")
        report = self.solve(4, BAD / "small_good.mtx", "--ranks-per-node", f"@{placement}")
        self.assertEqual((report["nodes"], report["ranks_per_node"], report["topology_source"]), (2, [2, 2], "given"))
        report = self.solve(4, BAD / "small_good.mtx", environment={"KOMVOS_RANKS_PER_NODE": "1,3",
                                                                    "KOMVOS_ROUTE": "standard"})
        self.assertEqual((report["ranks_per_node"], report["route"]), ([1, 3], "standard"))
        report = self.solve(4, BAD / "small_good.mtx", "--ranks-per-node", 4,
                            environment={"KOMVOS_RANKS_PER_NODE": "1,3"})
        self.assertEqual(report["ranks_per_node"], [4])
        report = self.solve(2, BAD / "small_good.mtx")
        self.assertEqual(report["topology_source"], "detected")

    def test_parameters_from_xml(self):
        sample = HERE.parent / "src" / "examples" / "parameters.xml"
        report = self.solve(4, "--problem", "laplace3d", "--n", 12, "--xml", sample)
        self.assertEqual((report["tolerance"], report["max_iterations"]), (1e-10, 500))
        report = self.solve(4, "--problem", "laplace3d", "--n", 12, "--xml", sample, "--tolerance", "1e-4")
        self.assertEqual(report["tolerance"], 1e-4)


class Generators(ProgramTest):
    PROBLEMS = (  # arguments, rows, entries, most iterations
        (("laplace3d", "--n", 16), 4096, 27136, 15),
        (("elasticity3d", "--n", 10), 3000, 197568, 20),
        (("elasticity3d", "--n", "20,5,4"), 1200, None, 20),
        (("rotated-anisotropic2d", "--n", 80), 6400, 56644, 60),
        (("random", "--n", 1200, "--entries", 25), 1200, 30000, 20),
    )

    def test_the_problem_does_not_depend_on_the_number_of_ranks(self):
        for problem, rows, entries, _ in self.PROBLEMS:
            solutions = []
            for ranks in (1, 4, 5):
                with self.subTest(problem, ranks=ranks):
                    output = self.folder / "x.mtx"
                    report = self.solve(ranks, "--problem", *problem, "--ranks-per-node", 2, "--output", output,
                                        "--tolerance", "1e-11", "--partition", "graph" if ranks == 5 else "contiguous")
                    self.assertEqual(report["rows"], rows)
                    self.assertEqual(report["entries"], entries or report["entries"])
                    self.assertLess(report["relative_error"], 1e-7)
                    solutions.append(read_vector(output))
            for other in solutions[1:]:
                self.assertLess(norm([x - y for x, y in zip(other, solutions[0])]) / norm(solutions[0]), 1e-7)

    def test_iterations_stay_sensible(self):
        for problem, _, _, most in self.PROBLEMS:
            with self.subTest(problem):
                self.assertLessEqual(self.solve(4, "--problem", *problem)["iterations"], most)

    def test_strided_and_graph_partitions_keep_nodes_together(self):
        for partition in ("strided", "graph"):
            report = self.solve(5, "--problem", "elasticity3d", "--n", "20,5,4", "--partition", partition,
                                "--ranks-per-node", 2)
            self.assertLessEqual(report["iterations"], 20)


class OneRank(ProgramTest):
    """What is solved on several ranks elsewhere: a class of its own, for it needs one core only."""

    def test_iterations_stay_sensible(self):
        for problem, _, _, most in Generators.PROBLEMS:
            with self.subTest(problem):
                self.assertLessEqual(self.solve(1, "--problem", *problem)["iterations"], most)

    def test_the_indefinite_one_is_solved_by_gmres(self):
        name = "dcpf_case13659pegase"
        report = self.solve(1, MATRICES / f"{name}.mtx", "--rhs", MATRICES / f"{name}_rhs.mtx", "--ranks-per-node", 2)
        self.assertEqual(report["solver"], "GMRES")


class Solvers(ProgramTest):
    def test_solvers_by_name(self):
        for solver in ("cg", "bicgstab", "gmres", "minres", "tfqmr", "block gmres", "Pseudoblock CG", "flexible gmres"):
            for preconditioner in ("muelu", "jacobi", "none") if solver in ("cg", "bicgstab", "gmres") else ("jacobi",):
                with self.subTest(solver, preconditioner=preconditioner):
                    report = self.solve(2, "--problem", "laplace3d", "--n", 8, "--solver", solver, "--prec",
                                        preconditioner)
                    self.assertEqual(report["solver"], solver.upper())

    def test_the_default_solver_follows_the_matrix(self):
        self.assertEqual(self.solve(2, "--problem", "random", "--n", 400)["solver"], "BICGSTAB")
        self.assertEqual(self.solve(2, "--problem", "laplace3d", "--n", 6)["solver"], "CG")

    def test_a_breakdown_is_reported(self):
        name = "dcpf_case13659pegase"
        result = run(2, "solve", MATRICES / f"{name}.mtx", "--rhs", MATRICES / f"{name}_rhs.mtx", "--solver", "cg",
                     "--prec", "jacobi")
        self.assertEqual(result.code, 2)
        self.assertEqual(len(result.errors), 1)


class Tuner(ProgramTest):
    PROBLEM = ("--problem", "random", "--n", 1200)  # everybody needs values of everybody

    def test_every_route_is_obeyed(self):
        iterations = set()
        routes = {"standard": "standard", "two-step": "two-step", "three-step": "three-step", "split": "split",
                  "split:2": "split:2", "axis": "axis:2,2,1,1", "axis:1,2,2,1": "axis:1,2,2,1",
                  "axis:1,1,4,1": "axis:1,1,4,1"}
        for asked, name in routes.items():
            report = self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--route", asked)
            iterations.add(report["iterations"])
            self.assertEqual((report["route"], report["halos"][0]["route"]), (asked, name))
            chosen = [one for one in report["halos"][0]["candidates"] if not one["not_chosen_because"]]
            self.assertEqual([one["route"] for one in chosen], [asked])
        report = self.solve(4, *self.PROBLEM, "--route", "sockets")  # as detected
        self.assertEqual(report["halos"][0]["route"], "sockets")
        self.assertEqual(len(iterations), 1, "the route must not change the numbers")

    def test_both_ways_on_the_node_are_obeyed(self):
        for on_node in ("messages", "shared-memory", "auto"):
            report = self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--on-node", on_node)
            halo = report["halos"][0]
            self.assertEqual(report["on_node"], on_node)
            self.assertIn(halo["on_node"], ("messages", "shared-memory") if on_node == "auto" else (on_node,))
            measured = {one["on_node"] for one in halo["candidates"] if one["measured_seconds"] is not None}
            self.assertEqual(measured, {"messages", "shared-memory"} if on_node == "auto" else {on_node})
        report = self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, environment={"KOMVOS_ON_NODE": "shared-memory"})
        self.assertEqual(report["on_node"], "shared-memory")
        report = self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--on-node", "auto",
                            environment={"KOMVOS_ON_NODE": "messages"})
        measured = {one["on_node"] for one in report["halos"][0]["candidates"] if one["measured_seconds"] is not None}
        self.assertEqual(measured, {"messages", "shared-memory"}, "the option goes first, auto too")

    def test_a_machine_gives_every_candidate_a_modelled_time(self):
        halo = self.solve(6, *self.PROBLEM, "--ranks-per-node", 3, "--machine", "blue-waters")["halos"][0]
        least = min(one["modelled_seconds"] for one in halo["candidates"])
        for one in halo["candidates"]:
            if one["not_chosen_because"].startswith("the model says"):
                self.assertGreater(one["modelled_seconds"], 4 * least)
                self.assertIsNone(one["measured_seconds"])
        halo = self.solve(6, *self.PROBLEM, "--ranks-per-node", 3)["halos"][0]
        self.assertEqual({one["modelled_seconds"] for one in halo["candidates"]}, {None})

    def test_a_saved_decision_is_taken_and_nothing_is_measured(self):
        file = self.folder / "decisions.json"
        for route, option, environment in (("auto", ("--tuning-cache", file), {}),
                                           ("three-step", (), {"KOMVOS_TUNING_CACHE": str(file)})):
            first = self.solve(6, *self.PROBLEM, "--ranks-per-node", 3, "--route", route, "--save-tuning-cache", file)
            book = json.loads(file.read_text())
            self.assertEqual((book["format"], book["version"]), ("komvos-tuning-cache", 1))
            second = self.solve(6, *self.PROBLEM, "--ranks-per-node", 3, *option, environment=environment)
            self.assertEqual(second["iterations"], first["iterations"])
            self.assertEqual(len(second["halos"]), len(first["halos"]))
            for before, after in zip(first["halos"], second["halos"]):
                for key in ("name", "route", "on_node", "chosen"):
                    self.assertEqual(after[key], before[key])
                self.assertIsNone(after["chosen_seconds"])
                self.assertEqual({one["measured_seconds"] for one in after["candidates"]}, {None})

    def test_decisions_are_taken_for_every_halo_that_is_exchanged(self):
        file = self.folder / "decisions.json"
        arguments = ("--problem", "laplace3d", "--n", 20, "--ranks-per-node", 2)
        first = self.solve(4, *arguments, "--save-tuning-cache", file)
        second = self.solve(4, *arguments, "--tuning-cache", file)
        self.assertEqual(second["iterations"], first["iterations"])
        self.assertEqual([halo["route"] for halo in second["halos"]], [halo["route"] for halo in first["halos"]])
        self.assertTrue(any(not halo["used"] for halo in first["halos"]))

    def test_the_report_says_why_a_halo_keeps_the_standard_route(self):
        file = self.folder / "decisions.json"
        on_pairs = (*self.PROBLEM, "--ranks-per-node", 2, "--on-node", "messages")
        result = run(4, "solve", *on_pairs, "--route", "standard", "--save-tuning-cache", file)
        self.assertIn("A: the standard route, by messages on nodes, as asked for.", result.out)
        result = run(4, "solve", *self.PROBLEM, "--ranks-per-node", 2, "--tuning-cache", file)
        self.assertIn("A: the standard route, by messages on nodes, as decided before.", result.out)
        result = run(4, "solve", *on_pairs)
        self.assertRegex(result.out, r"A: (the standard route, by messages on nodes, no other of \d+ ways that were "
                                     r"measured is clearly faster\.|[a-z-]+ sends \d+ instead of \d+ messages).* One "
                                     r"exchange took \d+ us")

    def test_decisions_that_do_not_fit_are_refused_with_the_reason(self):
        file, other = self.folder / "decisions.json", self.folder / "other.json"
        self.solve(4, *self.PROBLEM, "--ranks-per-node", 2, "--save-tuning-cache", file)
        text = file.read_text()
        machine = json.loads(text)["decisions"][0]["machine"]
        other.write_text(text.replace(machine, "a computer of 1950"))
        cut, typo, grid = (self.folder / f"{name}.json" for name in ("cut", "typo", "grid"))
        route = json.loads(text)["decisions"][0]["route"]
        grid.write_text(text.replace(f'"route": "{route}"', '"route": "axis:3,1,1,1"'))
        cut.write_text(text[:len(text) // 2])
        typo.write_text(text.replace('"on_node"', '"an_node"'))
        solve = ("solve", *self.PROBLEM)
        self.check_refusals([
            ((*solve, "--ranks-per-node", "1,3", "--tuning-cache", file), [file, "made for other nodes: 4 ranks"]),
            ((*solve, "--ranks-per-node", 2, "--entries", 7, "--tuning-cache", file), [file, "for this pattern"]),
            ((*solve, "--ranks-per-node", 2, "--tuning-cache", other),
             [other, "made on another machine: a computer of 1950; here: " + machine]),
            ((*solve, "--ranks-per-node", 2, "--tuning-cache", cut), [cut, "damaged"]),
            ((*solve, "--ranks-per-node", 2, "--tuning-cache", typo), [typo, "on_node"]),
            ((*solve, "--ranks-per-node", 2, "--tuning-cache", grid), [grid, "axis:3,1,1,1", "product 4"]),
        ], ranks=(4,))


class BenchHalo(ProgramTest):
    PROBLEM = ("--problem", "random", "--n", 400, "--entries", 10)
    QUICK = ("--samples", 3, "--repeats", 1)
    BASELINES = ["tpetra", "tpetra-isend", "standard, persistent"]

    def bench(self, ranks, *arguments, **how):
        file = self.folder / "bench.json"
        result = run(ranks, "bench", "halo", *arguments, *self.QUICK, "--json", file, **how)
        self.assertEqual((result.code, result.errors), (0, []), result.out + result.err)
        return json.loads(file.read_text()), result.out

    def test_every_variant_is_timed_and_counted(self):
        report, text = self.bench(4, *self.PROBLEM, "--ranks-per-node", 2, "--routes", "three-step,axis:2,2,1,1,split:5")
        self.assertEqual((report["parameters"]["ranks"], report["parameters"]["nodes"]), (4, 2))
        (halo,) = report["results"]
        names = [variant["name"] for variant in halo["variants"]]
        self.assertEqual(names, [*self.BASELINES, "standard, shared-memory"] +
                         [f"{route}, {by}" for route in ("three-step", "axis:2,2,1,1", "split:5")
                          for by in ("messages", "shared-memory")] + ["auto"])
        self.assertEqual([variant["name"] for variant in halo["variants"] if variant["baseline"]], self.BASELINES)
        medians = {variant["name"]: variant["seconds"]["median"] for variant in halo["variants"]}
        self.assertEqual(halo["best_baseline"], min(self.BASELINES, key=medians.get))
        for variant in halo["variants"]:
            self.assertGreater(variant["seconds"]["median"], 0)
            self.assertIn(variant["name"], text)
        variants = {variant["name"]: variant for variant in halo["variants"]}
        sent = {name: variant["traffic"]["inter_node"]["messages_total"] for name, variant in variants.items() if "traffic" in variant}
        self.assertEqual((sent["standard, persistent"], sent["three-step, messages"]), (8, 2))
        self.assertGreater(variants["auto"]["set_up"]["seconds_with_tuning"], variants["auto"]["set_up"]["seconds"])
        for variant in variants.values():
            if "set_up" in variant:
                self.assertGreater(variant["set_up"]["exchange_bytes_max"], variant["set_up"]["plan_bytes_max"])

    def test_the_hierarchy_and_nodes_from_the_environment(self):
        report, _ = self.bench(3, "--problem", "laplace3d", "--n", 10, "--hierarchy", "--coarse-size", 300, "--product",
                               environment={"KOMVOS_RANKS_PER_NODE": "2,1"})
        self.assertEqual((report["timed"], report["parameters"]["nodes"]), ("matrix-vector product", 2))
        self.assertEqual([halo["name"] for halo in report["results"]],
                         ["level 0 A", "level 1 A", "level 1 P", "level 1 R"])

    def test_wrong_input_is_refused_before_anything_is_measured(self):
        bench = ["bench", "halo", *self.PROBLEM, "--ranks-per-node", 2]
        self.check_refusals([
            (["bench", "halo"], ["bench halo: needs a Matrix Market file", "komvos bench halo --help"]),
            ([*bench, "--routes", "auto"], ["bench halo", "auto"]),
            ([*bench, "--routes", "axis:3,1,1,1"], ["axis:3,1,1,1", "product 2"]),
            ([*bench, "--samples", 1000000, "--json", self.folder / "no" / "b.json"], ["b.json"]),
            ([*bench, "--machine", self.folder / "none.json"], ["none.json"]),
        ])


class Report(ProgramTest):
    TRAFFIC = {side: {f"{what}_{over}": int for what in ("messages", "bytes") for over in ("max", "total")}
               for side in ("inter_node", "on_node")}
    SECONDS = (float, int, type(None))
    SCHEMA = {
        "komvos_version": str, "problem": str, "rows": int, "entries": int, "symmetric": bool,
        "ranks": int, "nodes": int,
        "ranks_per_node": list, "topology_source": str, "partition": str, "route": str, "pairing": str, "on_node": str,
        "solver": str, "preconditioner": str, "tolerance": float, "max_iterations": int, "iterations": int, "restarts": int,
        "true_residual": float, "belos_residual": float, "belos_converged": bool, "converged": bool,
        "relative_error": SECONDS, "read_seconds": float, "setup_seconds": float, "solve_seconds": float, "halos": list,
    }
    HALO = {"name": str, "used": bool, "route": str, "pairing": str, "neighbours_max": int, "standard": TRAFFIC,
            "chosen": TRAFFIC, "standard_seconds": SECONDS, "chosen_seconds": SECONDS, "setup_seconds": float, "on_node": str,
            "candidates": list}
    CANDIDATE = {"route": str, "on_node": str, "modelled_seconds": SECONDS, "measured_seconds": SECONDS,
                 "traffic": TRAFFIC, "not_chosen_because": str}

    def check(self, value, schema, where):
        if not isinstance(schema, dict):
            self.assertIsInstance(value, schema, where)
            return
        self.assertEqual(set(value), set(schema), where)
        for key, inner in schema.items():
            self.check(value[key], inner, f"{where}.{key}")

    def test_the_json_report_has_these_keys(self):
        for route in ("standard", "three-step", "auto"):
            report = self.solve(4, "--problem", "elasticity3d", "--n", 8, "--ranks-per-node", 2, "--route", route,
                                "--partition", "strided")
            self.check(report, self.SCHEMA, "report")
            self.assertEqual((report["route"], report["nodes"], report["ranks"]), (route, 2, 4))
            self.assertEqual([halo["name"] for halo in report["halos"] if halo["used"]], ["A"])
            for halo in report["halos"]:
                self.check(halo, self.HALO, "halo")
                self.check_candidates(halo)
            halo = report["halos"][0]
            measured = {one["route"] for one in halo["candidates"] if one["measured_seconds"] is not None}
            self.assertEqual(halo["standard_seconds"] is not None, "standard" in measured)
            if route == "auto":
                self.assertIn("standard", measured)
            else:  # by messages and by shared memory
                self.assertEqual((halo["route"], measured), (route, {route}))

    def check_candidates(self, halo):
        for one in halo["candidates"]:
            self.check(one, self.CANDIDATE, "candidate")
        chosen = [one for one in halo["candidates"] if one["not_chosen_because"] == ""]
        self.assertEqual(len(chosen), 1, halo["candidates"])
        self.assertEqual(chosen[0]["route"].partition(":")[0], halo["route"].partition(":")[0])
        self.assertEqual((chosen[0]["on_node"], chosen[0]["traffic"], chosen[0]["measured_seconds"]),
                         (halo["on_node"], halo["chosen"], halo["chosen_seconds"]))
        standard = halo["candidates"][0]
        self.assertEqual((standard["route"], standard["on_node"]), ("standard", "messages"))
        self.assertEqual((standard["traffic"], standard["measured_seconds"]),
                         (halo["standard"], halo["standard_seconds"]))


def main():
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("tests", nargs="*")
    parser.parse_args(namespace=OPTIONS)
    outcome = unittest.main(argv=[sys.argv[0], *OPTIONS.tests], verbosity=2, exit=False)
    return 0 if outcome.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
