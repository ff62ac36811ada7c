#!/usr/bin/env python3
"""Times V-cycles of MueLu by perf_v_cycles, node-aware and not, with what makeNodeAware() costs, in all and by level.

  plain     4 hosts x 4 ranks of the virtual cluster
  100us     the same, with a cost of 100 us a message at each host's card
  wide      4 hosts x 16 ranks
  one-node  4 ranks on this machine

Writes perf/results/<processor>/<date>-<commit>-cycles-<run>-<problem>.json. Run it as root on a quiet machine; it takes
about an hour. make_cycle_table.py then makes the page.
"""
import argparse
import tempfile
from pathlib import Path

import common

PROBLEMS = {
    "elasticity3d": "--problem elasticity3d --n 20",
    "rotated2d": "--problem rotated-anisotropic2d --n 200",
    "laplace3d": "--problem laplace3d --n 40",
}
TIMEOUT = 1800  # seconds


def runs():
    slow = common.virtual_cluster(4, 4, TIMEOUT, "--message-cost", "100us")
    return {
        "plain": (common.virtual_cluster(4, 4, TIMEOUT), 16, "virtual cluster, plain", "10,30,100"),
        "100us": (slow, 16, "virtual cluster, 100 us a message at each host's card", "10,30,100"),
        "wide": (common.virtual_cluster(4, 16, TIMEOUT), 64, "virtual cluster, plain", "10,30"),
        "one-node": (["mpirun", "-n", 4], 4, "one node", "10,30,100"),
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
    common.build(common.BUILD, "perf_v_cycles")
    for name in options.runs or known:
        launcher, ranks, network, cycles = known[name]
        for problem, arguments in PROBLEMS.items():
            if options.problem and problem not in options.problem:
                continue
            print(f"== {name} {problem}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                raw = Path(folder) / "cycles.json"
                common.run([*launcher, common.BUILD / "perf" / "perf_v_cycles", *arguments.split(), "--cycles", cycles,
                            "--network", network, "--samples", options.samples, "--json", raw],
                           common.environment(ranks))
                report = common.read_results(raw)
            report["cores"] = common.cores()
            path = common.results_folder() / f"{common.today()}-{common.commit()}-cycles-{name}-{problem}.json"
            common.write_results(path, report)


if __name__ == "__main__":
    main()
