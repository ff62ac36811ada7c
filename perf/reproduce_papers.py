#!/usr/bin/env python3
"""Reproduces what papers print about node-aware exchanges at scale, on simulated ranks, and writes perf/PAPERS.md,
perf/ALL_TO_FEW.md and perf/AMG_BICGSTAB.md. Every number is in a JSON file under perf/results/simulated.

Takes one to two hours and 10 GB on two cores. Counts are exact. They are the same on every machine, but for MueLu's
hierarchies of elasticity, where another processor's rounding in BLAS adds or drops a few entries of P. SimGrid's times are
left out where smpirun is not installed. Those of 32,768 ranks take hours and 24 GB: without --full the stored results are
shown, and no row where there are none.
"""
import argparse
import json
import shutil
import subprocess
import sys
import types
from pathlib import Path

import all_to_few_page
import amg_page
import common
import papers_page
from papers_tables import COMPARED, COARSER_TOO, LONG, NETWORKS

CLUSTER = ["--ranks", 32768, "--ranks-per-node", 16]
SMALL_AGGREGATES = common.PERF / "hierarchies" / "small-aggregates.xml"
GROUNDWATER = common.PERF / "hierarchies" / "groundwater.xml"
DROP_WEAK = common.PERF / "hierarchies" / "drop-weak.xml"
# Cores and topologies (C,X,Y,Z) of table 1 of Fujii and Marques.
AXIS_TABLE = {
    32: "16,2,1,1 4,8,1,1 2,16,1,1 4,4,2,1",
    128: "16,2,2,2 4,8,2,2 2,16,2,2 1,32,4,1",
    192: "16,2,3,2 4,8,3,2 4,8,6,1 1,32,6,1",
    1536: "16,4,6,4 4,16,6,4 8,8,24,1 4,16,24,1 1,64,24,1",
    3072: "16,4,6,8 4,16,6,8 1,16,12,16 1,64,48,1",
}
# Ranks: points along an edge, topologies. The paper's last test has 300^3 points.
AMG_TABLE = {3072: (200, AXIS_TABLE[3072]), 12288: (200, "16,8,12,8 4,16,24,8 1,64,192,1"),
             23040: (300, "16,10,12,12 4,20,24,12 1,96,240,1")}
WEAK_RANKS = (512, 2048, 8192, 32768)
ROWS = {"weak": lambda ranks: 1000 * ranks, "strong": lambda ranks: 4_096_000}
ALL_TO_FEW_ROUTES = ("standard", "two-step", "three-step", "split", "axis:20,15,10,9", "axis:20,1350,1,1",
                     "axis:1,30,30,30", "sockets")
# Ranks, and how SimGrid replays them: the routes, and what makes it faster (SimulatedNetwork). Its time for the standard
# route grows with about the third power of the ranks.
EXACT = {"routes": ("standard", "three-step"), "max_flows_per_link": 64, "time_step": 1e-8, "max_concurrent_sends": 0}
COARSE = {"routes": ("three-step",), "max_flows_per_link": 16, "time_step": 3e-8, "max_concurrent_sends": 4}
COARSER = {**COARSE, "time_step": 1e-7}  # for long messages: it shortens the 350 ns of each by up to 50
TO_8192 = {32: EXACT, 128: EXACT, 256: EXACT, 2048: COARSE, 8192: COARSE}
SIMULATED = {"weak": {**TO_8192, LONG: COARSER}, "strong": {**TO_8192, LONG: COARSE}}


class Runner:
    """Runs what makes the results, or reads those that are stored.
    simgrid: whether there are times of SimGrid
    """

    def __init__(self, options):
        self.build = Path(options.build).resolve()
        self.stored, self.full = options.stored, options.full
        self.reuse = options.reuse or options.stored
        self.simgrid = options.stored or shutil.which("smpirun") is not None

    @staticmethod
    def file(name):
        return common.SIMULATED / f"{name}.json"

    def run(self, name, command):
        """The JSON that `command` writes to stdout."""
        return self.run_all({name: command}, self.reuse)[0]

    def run_all(self, commands, reuse):
        """The same for several commands by name, all started at once."""
        started = {}
        for name, command in commands.items():
            if reuse and self.file(name).exists():
                continue
            if self.stored:
                sys.exit(f"no {self.file(name)}")
            print(f"{name} ...", flush=True)
            started[name] = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE)
        outputs = {name: process.communicate()[0] for name, process in started.items()}  # all end before one fails
        for name, output in outputs.items():
            if started[name].returncode != 0:
                sys.exit(f"{name} failed")
            common.write_results(self.file(name), json.loads(output))
        return [common.read_results(self.file(name)) for name in commands]

    def analyze(self, name, *arguments):
        return self.run(name, [self.build / "src" / "komvos", "analyze", *arguments, "--quiet", "--json", "-"])

    def scaling(self, ranks, rows, entries):
        return [self.build / "perf" / "perf_random_scaling", "--ranks", ranks, "--rows", rows, "--entries", entries]

    def random(self, name, ranks, rows, entries):
        return self.run(name, self.scaling(ranks, rows, entries))

    def simulated(self, name, ranks, rows, how):
        """One report with the times of all networks; None if it would take too long."""
        # A stored matrix of LONG would not fit.
        command = self.scaling(ranks, rows, 25) + [
            "--simulated", *how["routes"], "--max-flows-per-link", how["max_flows_per_link"], "--time-step",
            how["time_step"], "--max-concurrent-sends", how["max_concurrent_sends"],
            *(["--stored"] if ranks < LONG else [])]
        commands = {f"{name}-{kind}": command + ["--simgrid", kind] for kind in NETWORKS}
        kept = ranks >= LONG and not self.full
        if kept and not all(self.file(one).exists() for one in commands):
            return None
        return merge_networks(self.run_all(commands, self.reuse or kept))


def merge_networks(reports):
    """One report of the same halos on several networks."""
    merged = reports[0]
    merged["cpu_seconds"] = [report["cpu_seconds"] for report in reports]
    for report in reports[1:]:
        merged["networks"] += report["networks"]
        for a, b in zip(merged["routes"], report["routes"]):
            a.get("simulated_seconds", {}).update(b.get("simulated_seconds", {}))
    return merged


def hierarchies(runner):
    blocks = ["--hierarchy", "--partition", "blocks"]
    elasticity = ["--problem", "elasticity3d", "--n", 80, *blocks, *CLUSTER]
    rotated = ["--problem", "rotated-anisotropic2d", "--n", 2048, *blocks, *CLUSTER]
    reports = {"elasticity": runner.analyze("elasticity", *elasticity), "replayed": None}
    if runner.simgrid:
        reports["replayed"] = runner.analyze(
            "elasticity-1024-simgrid", "--problem", "elasticity3d", "--n", 30, *blocks, "--xml", SMALL_AGGREGATES,
            "--ranks", 1024, "--ranks-per-node", 16, "--routes", "three-step",
            *(f"--simgrid={kind}" for kind in NETWORKS))
    reports["dense"] = runner.analyze("elasticity-small-aggregates", *elasticity, "--xml", SMALL_AGGREGATES)
    reports["rotated"] = runner.analyze("rotated", *rotated, "--xml", DROP_WEAK)
    return reports


def random_matrices(runner):
    weak, strong = ROWS["weak"], ROWS["strong"]
    return {"weak": [runner.random(f"random-weak-{p}-100", p, weak(p), 100) for p in WEAK_RANKS],
            "density": [runner.random(f"random-weak-2048-{k}", 2048, weak(2048), k) for k in (25, 50, 100)],
            "strong": [runner.random(f"random-strong-{p}-100", p, strong(p), 100) for p in WEAK_RANKS]}


def simulated_random_matrices(runner):
    """For papers_page.simulated_scaling(); nothing without SimGrid."""
    if not runner.simgrid:
        return {"simulated": {}}
    simulated = {kind: [report for p, how in SIMULATED[kind].items()
                        if (report := runner.simulated(f"random-simulated-{kind}-{p}", p, rows(p), how))]
                 for kind, rows in ROWS.items()}
    exact = {kind: runner.simulated(f"random-simulated-{kind}-{COMPARED}-exact", COMPARED, rows(COMPARED),
                                    {**EXACT, "routes": COARSE["routes"]}) for kind, rows in ROWS.items()}
    coarser = runner.simulated(f"random-simulated-weak-{COARSER_TOO}-coarser", COARSER_TOO,
                               ROWS["weak"](COARSER_TOO), COARSER)
    most_exact = max(ranks for ranks, how in TO_8192.items() if how is EXACT)
    return {"simulated": simulated, "exact": exact, "coarser": coarser, "most_exact": most_exact}


def poisson(runner):
    return {ranks: runner.analyze(f"poisson-{ranks}", "--problem", "laplace3d", "--n", 100, "--hierarchy",
                                  "--partition", "blocks", "--ranks", ranks, "--ranks-per-node", 16, "--routes",
                                  ",".join("axis:" + factors for factors in topologies.split()))
            for ranks, topologies in AXIS_TABLE.items()}


def amg(runner):
    """With SimGrid's times, and set-up, on 3,072 ranks; more take hours, or much memory."""
    reports = []
    for problem, parameters in (("poisson3d", []), ("groundwater3d", ["--xml", GROUNDWATER])):
        for ranks, (points, topologies) in AMG_TABLE.items():
            routes = ["two-step", "three-step", "split", *("axis:" + factors for factors in topologies.split())]
            simgrid = ["--simgrid=torus"] if ranks == 3072 and runner.simgrid else []
            planned = ["--set-up"] if ranks == 3072 else []
            reports.append(runner.analyze(
                f"amg-{problem}-{ranks}", "--problem", problem, "--n", points, "--hierarchy", *parameters, "--partition",
                "blocks", "--ranks", ranks, "--ranks-per-node", 16, "--routes", ",".join(routes), *simgrid, *planned))
    return reports


def papers(runner):
    return types.SimpleNamespace(**hierarchies(runner), **random_matrices(runner), **simulated_random_matrices(runner),
                                 poisson=poisson(runner))


def all_to_few(runner):
    return runner.run("all-to-few", [
        runner.build / "perf" / "perf_all_to_few", "--routes", *ALL_TO_FEW_ROUTES, "--ranks-per-socket", 10,
        *(["--simgrid", *NETWORKS] if runner.simgrid else [])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=common.BUILD, help="the build folder (%(default)s)")
    parser.add_argument("--reuse", action="store_true", help="run only what has no stored result")
    parser.add_argument("--full", action="store_true", help="SimGrid's times of 32,768 ranks too")
    parser.add_argument("--stored", action="store_true", help="run nothing: make the pages from the stored results")
    parser.add_argument("--check", action="store_true",
                        help="run and change nothing; fail if the pages do not show the stored results")
    options = parser.parse_args()
    options.stored = options.stored or options.check
    runner = Runner(options)
    if not options.stored:
        common.SIMULATED.mkdir(parents=True, exist_ok=True)
        common.build(runner.build, "komvos", "perf_all_to_few", "perf_random_scaling")
    if not runner.simgrid:
        print("SimGrid's smpirun is not installed: no simulated times")
    common.write_page("ALL_TO_FEW.md", all_to_few_page.page(all_to_few(runner)), options.check,
                      "reproduce_papers.py --stored")
    common.write_page("AMG_BICGSTAB.md", amg_page.page(amg(runner)), options.check, "reproduce_papers.py --stored")
    common.write_page("PAPERS.md", papers_page.page(papers(runner)), options.check,
                      "reproduce_papers.py --stored")


if __name__ == "__main__":
    main()
