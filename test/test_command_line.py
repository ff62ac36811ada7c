#!/usr/bin/env python3
"""Whole-program tests of the command line of `komvos`: help, output, exit statuses.

test_command_line.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import concurrent.futures
import json
import os
import pty
import sys

from support.program_test import BAD, OPTIONS, ProgramTest, main, run


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

    def test_what_belos_prints_is_not_in_the_json(self):
        result = run(2, "solve", "--problem", "laplace3d", "--n", 8, "--solver", "pcpg", "--quiet", "--json", "-")
        self.assertEqual(json.loads(result.out)["solver"], "PCPG", result.err)

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


if __name__ == "__main__":
    sys.exit(main())
