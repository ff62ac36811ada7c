#!/usr/bin/env python3
"""Times whole solves by perf_amg_solves: conjugate gradients with MueLu, node-aware and not, and with PETSc's multigrids.

  plain     4 hosts x 4 ranks of the virtual cluster
  100us     the same, with a cost of 100 us a message at each host's card
  wide      4 hosts x 16 ranks
  one-node  4 ranks on this machine

Writes perf/results/<processor>/<date>-<commit>-amg-<run>-<problem>.json. Run it as root on a quiet machine; it takes about
two hours. make_amg_table.py then makes the page. PETSc takes part where it is installed (Debian: petsc-dev).
"""
import argparse
import tempfile
from pathlib import Path

import common

PROBLEMS = {
    "elasticity3d": "--problem elasticity3d --n 20",
    "rotated2d": "--problem rotated-anisotropic2d --n 200",
    "laplace3d": "--problem laplace3d --n 40",
    "body-heat": f"{common.ROOT / 'test/data/matrices/body_heat.mtx'} --partition graph",
}
TIMEOUT = 1800  # seconds


def runs():
    slow = common.virtual_cluster(4, 4, TIMEOUT, "--message-cost", "100us")
    return {
        "plain": (common.virtual_cluster(4, 4, TIMEOUT), 16, "virtual cluster, plain"),
        "100us": (slow, 16, "virtual cluster, 100 us a message at each host's card"),
        "wide": (common.virtual_cluster(4, 16, TIMEOUT), 64, "virtual cluster, plain"),
        "one-node": (["mpirun", "-n", 4], 4, "one node"),
    }


def main():
    known = runs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="all of them if none is named")
    parser.add_argument("--problem", action="append", help="this one only; can be repeated")
    parser.add_argument("--samples", type=int, default=15)
    options = parser.parse_args()
    for name in options.runs:
        if name not in known:
            parser.error(f"no run '{name}', only {', '.join(known)}")
    common.build(common.BUILD, "perf_amg_solves")
    for name in options.runs or known:
        launcher, ranks, network = known[name]
        for problem, arguments in PROBLEMS.items():
            if options.problem and problem not in options.problem:
                continue
            print(f"== {name} {problem}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                raw = Path(folder) / "solves.json"
                common.run([*launcher, common.BUILD / "perf" / "perf_amg_solves", *arguments.split(), "--network",
                            network, "--samples", options.samples, "--json", raw], common.environment(ranks))
                report = common.read_results(raw)
            report["cores"] = common.cores()
            path = common.results_folder() / f"{common.today()}-{common.commit()}-amg-{name}-{problem}.json"
            common.write_results(path, report)


if __name__ == "__main__":
    main()
