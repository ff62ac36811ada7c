#!/usr/bin/env python3
"""Times the halo exchange of every problem by every variant: `komvos bench halo` on virtual clusters.

  plain     4 hosts x 4 ranks
  100us     the same, with a cost of 100 us a message at each host's card
  one-node  4 ranks on this machine
  large     2 ranks on this machine, a matrix of 5 million entries a rank
  exchange  as plain, the exchange alone instead of the matrix-vector product
  many      4 hosts x 16 ranks, random matrices only: each rank has 63 neighbours
  by-volume, least-loaded, majority
            as plain, three-step only, with this pairing of nodes and ranks

Writes perf/results/<processor>/<date>-<commit>-halo-<run>-<problem>.json. Run it as root on a quiet machine.
make_halo_tables.py and plot_gains.py then make the page and the picture.
"""
import argparse
import tempfile
from pathlib import Path

import common
from halo_results import LARGE, PAIRINGS

PROBLEMS = {
    "elasticity3d": "--problem elasticity3d --n 20 --hierarchy",
    "rotated2d": "--problem rotated-anisotropic2d --n 200 --hierarchy",
    "random25": "--problem random --n 16000 --entries 25",
    "random50": "--problem random --n 16000 --entries 50",
    "random100": "--problem random --n 16000 --entries 100",
    "laplace3d": "--problem laplace3d --n 40 --hierarchy",
    "large-blocks": "--problem elasticity3d --n 36 --routes standard",
    "large-graph": "--problem elasticity3d --n 36 --partition graph --routes standard",
}
USUAL = tuple(name for name in PROBLEMS if name not in LARGE)
RANDOM = ("random25", "random50", "random100")
TIMEOUT = 1500  # seconds


class Run:
    def __init__(self, launcher, ranks, network, product=True, problems=USUAL, options=()):
        self.launcher = launcher
        self.ranks = ranks
        self.network = network  # in words, for the result
        self.options = [*(["--product"] if product else []), *options]
        self.problems = problems


def runs():
    plain = common.virtual_cluster(4, 4, TIMEOUT)
    slow = common.virtual_cluster(4, 4, TIMEOUT, "--message-cost", "100us")
    return {
        "plain": Run(plain, 16, "virtual cluster, plain"),
        "100us": Run(slow, 16, "virtual cluster, 100 us a message at each host's card"),
        "one-node": Run(["mpirun", "-n", 4], 4, "one node"),
        "large": Run(["mpirun", "-n", 2], 2, "one node", problems=LARGE),
        "exchange": Run(plain, 16, "virtual cluster, plain; exchange alone", product=False),
        "many": Run(common.virtual_cluster(4, 16, TIMEOUT), 64, "virtual cluster, plain, 32 ranks on a core",
                    problems=RANDOM),
        **{pairing: Run(plain, 16, f"virtual cluster, plain; pairing {pairing}",
                        options=["--pairing", pairing, "--routes", "three-step"]) for pairing in PAIRINGS},
    }


def measure(komvos, run, problem, samples, path):
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "halo.json"
        common.run([*run.launcher, komvos, "bench", "halo", *PROBLEMS[problem].split(), *run.options,
                    "--network", run.network, "--samples", samples, "--json", raw], common.environment(run.ranks))
        report = common.read_results(raw)
    report["machine"]["cores"] = common.cores()
    common.write_results(path, report)


def main():
    known = runs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="all of them if none is named")
    parser.add_argument("--problem", action="append", choices=PROBLEMS, help="this one only; can be repeated")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--komvos", help="the program; otherwise the one in build/default, brought up to date")
    options = parser.parse_args()
    for name in options.runs:
        if name not in known:
            parser.error(f"no run '{name}', only {', '.join(known)}")
    if options.komvos is None:
        common.build(common.BUILD, "komvos")
        options.komvos = common.BUILD / "src" / "komvos"
    stamp = f"{common.today()}-{common.commit()}"
    for name in options.runs or known:
        for problem in known[name].problems:
            if options.problem and problem not in options.problem:
                continue
            print(f"== {name} {problem}", flush=True)
            path = common.results_folder() / f"{stamp}-halo-{name}-{problem}.json"
            measure(options.komvos, known[name], problem, options.samples, path)


if __name__ == "__main__":
    main()
