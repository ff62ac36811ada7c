#!/usr/bin/env python3
"""Whole-program tests of `komvos bench halo`. Times say nothing here.

test_bench_halo.py --program build/default/src/komvos [--mpiexec mpirun] [CLASS ...]
"""
import json
import sys

from support.program_test import ProgramTest, main, run


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
        report, text = self.bench(4, *self.PROBLEM, "--ranks-per-node", 2, "--routes",
                                  "standard,three-step,axis:2,2,1,1,split:5")  # standard is there anyhow
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

    def test_the_pairing_is_obeyed(self):
        # The same crosses the network, and the majority moves the least on the nodes.
        sent = {}
        for pairing in ("by-volume", "majority"):
            report, _ = self.bench(6, "--problem", "random", "--n", 600, "--entries", 20, "--ranks-per-node", 2,
                                   "--routes", "three-step", "--pairing", pairing)
            self.assertEqual(report["parameters"]["pairing"], pairing)
            traffic = report["results"][0]["variants"]
            sent[pairing] = next(one["traffic"] for one in traffic if one["name"] == "three-step, messages")
        self.assertEqual(sent["by-volume"]["inter_node"]["bytes_total"], sent["majority"]["inter_node"]["bytes_total"])
        self.assertLess(sent["majority"]["on_node"]["bytes_total"], sent["by-volume"]["on_node"]["bytes_total"])

    def test_the_hierarchy_and_nodes_from_the_environment(self):
        report, _ = self.bench(3, "--problem", "laplace3d", "--n", 10, "--hierarchy", "--coarse-size", 300, "--product",
                               environment={"KOMVOS_RANKS_PER_NODE": "2,1"})
        self.assertEqual((report["timed"], report["parameters"]["nodes"]), ("matrix-vector product", 2))
        self.assertEqual([halo["name"] for halo in report["results"]],
                         ["level 0 A", "level 1 A", "level 1 P", "level 1 R"])

    def test_words_that_are_no_text_do_not_lose_the_report(self):
        report, _ = self.bench(2, *self.PROBLEM, "--routes", "standard", "--network", "caf\udce9")  # a byte, Latin-1
        self.assertEqual(report["machine"]["network"], "caf\ufffd")

    def test_wrong_input_is_refused_before_anything_is_measured(self):
        bench = ["bench", "halo", *self.PROBLEM, "--ranks-per-node", 2]
        self.check_refusals([
            (["bench", "halo"], ["bench halo: needs a Matrix Market file", "komvos bench halo --help"]),
            ([*bench, "--routes", "auto"], ["bench halo", "auto"]),
            ([*bench, "--pairing", "pigeons"], ["--pairing", "pigeons", "majority"]),
            ([*bench, "--routes", "axis:3,1,1,1"], ["axis:3,1,1,1", "product 2"]),
            ([*bench, "--samples", 1000000, "--json", self.folder / "no" / "b.json"], ["b.json"]),
            ([*bench, "--machine", self.folder / "none.json"], ["none.json"]),
        ])


if __name__ == "__main__":
    sys.exit(main())
