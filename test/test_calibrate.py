#!/usr/bin/env python3
"""Whole-program tests of `komvos calibrate`, with the standard library only. Nodes are virtual: times say nothing here.

test_calibrate.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import json
import math
import re
import sys

from support.program_test import ROOT, ProgramTest, main, run

sys.path.insert(0, str(ROOT / "perf"))
from plot_calibration import model_time  # noqa: E402

PROTOCOLS = ("short", "eager", "rendezvous")
QUICK = ("--samples", 3, "--max-bytes", "16K")


class Calibrate(ProgramTest):
    def calibrate(self, ranks, *arguments):
        """Runs `komvos calibrate` and returns its file and what it printed."""
        file = self.folder / "machine.json"
        result = run(ranks, "calibrate", *QUICK, "--output", file, *arguments)
        self.assertEqual((result.code, result.errors), (0, []), result.out + result.err)
        return json.loads(file.read_text()), result.out

    def check_link(self, link, rates):
        self.assertLessEqual(link["short_max_bytes"], link["eager_max_bytes"])
        for protocol in PROTOCOLS:
            self.assertEqual(set(link[protocol]), {"latency_s", *rates})
            self.assertGreater(link[protocol]["latency_s"], 0)
            self.assertGreater(link[protocol]["bytes_per_s"] or math.inf, 0)

    def test_four_ranks_on_two_nodes_give_both_links(self):
        machine, text = self.calibrate(4, "--ranks-per-node", 2, "--name", "two nodes")
        self.assertEqual((machine["format"], machine["version"], machine["name"]), ("komvos-machine", 1, "two nodes"))
        self.assertRegex(machine["date"], r"\A\d{4}-\d\d-\d\d\Z")
        self.assertIn("4 ranks on 2 nodes (2 each)", machine["host"])
        self.check_link(machine["on_node"], {"bytes_per_s"})
        self.check_link(machine["off_node"],
                        {"bytes_per_s", "bytes_per_s_added_by_each_sender", "bytes_per_s_of_node"})
        self.assertEqual(machine["off_node"]["measured_senders_per_node"], 2)
        self.assertEqual([(series["between"], series["pairs"]) for series in machine["measured"]],
                         [("ranks of a node", 1), ("nodes", 1), ("nodes", 2)])
        for series in machine["measured"]:
            sizes = [point["bytes"] for point in series["points"]]
            self.assertEqual(sizes, [8, *(f * 2**e for e in range(4, 14) for f in (1, 1.5)), 2**14])
            self.assertTrue(all(point["seconds"] > 0 for point in series["points"]))
            self.assertEqual(text.count(f"\n{16384:10d} "), len(machine["measured"]))
        for words in ("on a node, 1 pair\n", "between nodes, 1 pair\n", "between nodes, 2 pairs\n", "model/measured"):
            self.assertIn(words, text)

        self.check_that_the_plot_draws_what_the_table_shows(machine, text)

    def check_that_the_plot_draws_what_the_table_shows(self, machine, text):
        shown = [float(row) for row in re.findall(r"^ *\d+ +[\d.]+ +([\d.]+) +[\d.]+$", text, re.MULTILINE)]
        drawn = [1e6 * model_time(machine["on_node" if series["between"] == "ranks of a node" else "off_node"],
                                  point["bytes"], series["pairs"])
                 for series in machine["measured"] for point in series["points"]]
        self.assertEqual(len(shown), len(drawn))
        for a, b in zip(shown, drawn):
            self.assertAlmostEqual(a, b, delta=6e-4)

    def test_two_ranks_on_one_node_leave_out_the_network(self):
        machine, text = self.calibrate(2, "--ranks-per-node", 2)
        self.assertIsNone(machine["off_node"])
        self.check_link(machine["on_node"], {"bytes_per_s"})
        self.assertEqual(len(machine["measured"]), 1)
        self.assertIn("between nodes: not measured, all ranks are on one node", text)

    def test_uneven_nodes_are_paired_as_far_as_the_smaller_goes(self):
        machine, _ = self.calibrate(6, "--ranks-per-node", "1,3,2")
        self.assertEqual([series["pairs"] for series in machine["measured"]], [1, 1, 2])

    def test_limits_can_be_given(self):
        machine, text = self.calibrate(4, "--ranks-per-node", 2, "--on-node-limits", "64,1024", "--off-node-limits",
                                       "100,2000")
        limits = [(machine[link]["short_max_bytes"], machine[link]["eager_max_bytes"]) for link in
                  ("on_node", "off_node")]
        self.assertEqual(limits, [(64, 1024), (100, 2000)])
        self.assertIn("on a node: short up to 64 bytes, eager up to 1024, rendezvous above", text)

    def test_the_environment_places_ranks_and_the_option_goes_first(self):
        file = self.folder / "machine.json"
        for arguments, pairs in (((), [1, 1]), (("--ranks-per-node", "4"), [1])):
            result = run(4, "calibrate", *QUICK, "--quiet", "--output", file, *arguments,
                         environment={"KOMVOS_RANKS_PER_NODE": "1,3"})
            self.assertEqual((result.code, result.out, result.err), (0, "", ""))
            self.assertEqual([series["pairs"] for series in json.loads(file.read_text())["measured"]], pairs)

    def test_help_is_printed_once(self):
        result = run(2, "calibrate", "--help")
        self.assertEqual((result.code, result.out.count("Usage:")), (0, 1))
        self.assertIn("--max-bytes", result.out)


class CalibrateBadInput(ProgramTest):
    def test_one_rank_cannot_send_messages(self):
        self.check_refusals([(["calibrate"], ["calibrate", "two ranks", "there is 1"])], ranks=(1,))

    def test_bad_options_are_refused(self):
        nowhere = self.folder / "nowhere" / "machine.json"
        cases = [
            (["--samples", 0], ["--samples", "0"]),
            (["--max-bytes", "many"], ["--max-bytes"]),
            (["--max-bytes", 100], ["--max-bytes", "100"]),
            (["--max-bytes", "3G"], ["--max-bytes", 3221225472]),
            (["--on-node-limits", "512"], ["--on-node-limits"]),
            (["--off-node-limits", "512,100"], ["--off-node-limits 512,100"]),
            (["--on-node-limits", "512,1048576", *QUICK], ["fit", 16384, 1048576]),
            (["--ranks-per-node", 0], ["0"]),
            (["--ranks-per-node", "7,7"], ["7,7"]),
            (["--ranks-per-node", 1], ["two ranks on one"]),
            (["--output", nowhere], ["cannot write", nowhere]),
            (["--output", self.folder], ["cannot write", "directory"]),
            (["--loud"], ["--loud", "komvos calibrate --help"]),
        ]
        self.check_refusals([(["calibrate", *arguments], words) for arguments, words in cases])
        self.check_refusals([(["calibrate", "--ranks-per-node", 2, "--off-node-limits", "64,1024"],
                              ["--off-node-limits", "one node"])], ranks=(2,))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_failed_run_leaves_the_old_file(self):
        file = self.folder / "machine.json"
        file.write_text("old")
        result = run(2, "calibrate", *QUICK, "--on-node-limits", "8,1048576", "--output", file)
        self.check_refusal(result, ["fit"])
        self.assertEqual(file.read_text(), "old")
        self.assertEqual(list(self.folder.iterdir()), [file])


if __name__ == "__main__":
    sys.exit(main())
