#!/usr/bin/env python3
"""Times set-up together with 20, 50 and 200 cycles by perf_whole_runs, with some problems also 1,000: what a user with
the defaults waits for in all.

  plain     4 hosts x 4 ranks of the virtual cluster
  100us     the same, with a cost of 100 us a message at each host's card
  one-node  4 ranks on this machine
  large     2 ranks on this machine, a matrix of 5 million entries a rank

Writes perf/results/<processor>/<date>-<commit>-whole-<run>-<problem>.json. Run it as root on a quiet machine; it takes
about 40 minutes. make_whole_table.py then makes the page. "simulation" runs the tuner alone, with noise that is drawn
(perf_tuner_simulation), and writes perf/results/simulated/tuner.json and tuner-slow-periods.json.
"""
import argparse
import tempfile
from pathlib import Path

import common

HIERARCHIES = {
    "elasticity3d": "--problem elasticity3d --n 20 --hierarchy",
    "rotated2d": "--problem rotated-anisotropic2d --n 200 --hierarchy",
    "laplace3d": "--problem laplace3d --n 40 --hierarchy",
}
RANDOM = {f"random{entries}": f"--problem random --n 16000 --entries {entries} --routes" for entries in (25, 50, 100)}
LARGE = {"elasticity3d-large": "--problem elasticity3d --n 36", "laplace3d-large": "--problem laplace3d --n 115"}
LONG = {("plain", "random25"), *(("one-node", problem) for problem in HIERARCHIES)}
TIMEOUT = 1500  # seconds


def runs():
    plain = common.virtual_cluster(4, 4, TIMEOUT)
    slow = common.virtual_cluster(4, 4, TIMEOUT, "--message-cost", "100us")
    return {
        "plain": (plain, 16, "virtual cluster, plain", {**RANDOM, **HIERARCHIES}),
        "100us": (slow, 16, "virtual cluster, 100 us a message at each host's card", {**RANDOM, **HIERARCHIES}),
        "one-node": (["mpirun", "-n", 4], 4, "one node", HIERARCHIES),
        "large": (["mpirun", "-n", 2], 2, "one node", LARGE),
    }


def measure(program, launcher, ranks, network, arguments, samples, path):
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "whole.json"
        common.run([*launcher, program, *arguments.split(), "--network", network, "--samples", samples, "--json", raw],
                   common.environment(ranks))
        report = common.read_results(raw)
    report["cores"] = common.cores()
    common.write_results(path, report)


SIMULATIONS = {"tuner.json": [],
               "tuner-slow-periods.json": ["--slow-share", "0.2", "--slow-uses", "30", "--slow-factor", "2"]}


def main():
    known = runs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="all of them, and simulation, if none is named")
    parser.add_argument("--problem", action="append", help="this one only; can be repeated")
    parser.add_argument("--samples", type=int, default=15)
    options = parser.parse_args()
    names = options.runs or [*known, "simulation"]
    for name in names:
        if name not in known and name != "simulation":
            parser.error(f"no run '{name}', only {', '.join([*known, 'simulation'])}")
    common.build(common.BUILD, "perf_whole_runs", "perf_tuner_simulation")
    for name in names:
        if name == "simulation":
            for file, arguments in SIMULATIONS.items():
                with tempfile.TemporaryDirectory() as folder:
                    raw = Path(folder) / file
                    common.run([common.BUILD / "perf" / "perf_tuner_simulation", *arguments, "--json", raw], None)
                    common.write_results(common.SIMULATED / file, common.read_results(raw))
            continue
        launcher, ranks, network, problems = known[name]
        for problem, arguments in problems.items():
            if options.problem and problem not in options.problem:
                continue
            print(f"== {name} {problem}", flush=True)
            path = common.results_folder() / f"{common.today()}-{common.commit()}-whole-{name}-{problem}.json"
            arguments += " --cycles 20,50,200,1000" if (name, problem) in LONG else ""
            measure(common.BUILD / "perf" / "perf_whole_runs", launcher, ranks, network, arguments, options.samples, path)


if __name__ == "__main__":
    main()
