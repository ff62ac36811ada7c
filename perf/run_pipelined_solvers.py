#!/usr/bin/env python3
"""Times BiCGStab, pipelined and not, by perf_pipelined_solvers: Belos', Komvos', PETSc's.

  plain       4 hosts x 4 ranks of the virtual cluster
  100us       the same, with a cost of 100 us a message at each host's card
  wide        4 hosts x 16 ranks
  wide-100us  the same, with that cost of a message
  one-node    4 ranks on this machine
  two-ranks   2 ranks on this machine

Writes perf/results/<processor>/<date>-<commit>-bicgstab-<run>-<problem>.json. Run it as root on a quiet machine; it takes
more than an hour. make_bicgstab_table.py then makes the page. PETSc takes part where it is installed (Debian:
petsc-dev).
"""
import argparse
import tempfile
from pathlib import Path

import common

PROBLEMS = {
    "convection3d": "--problem convection3d --n 20 --partition graph",
    "slabs": "--problem convection3d --n 20 --partition contiguous",
    "small": "--problem convection3d --n 12 --partition graph",
    "rotated2d": "--problem rotated-anisotropic2d --n 64 --partition graph",
    "spheres": "--triangles 8000",
    "small-spheres": "--triangles 2000",
}
TIMEOUT = 1500  # seconds


def runs():
    slow = common.virtual_cluster(4, 4, TIMEOUT, "--message-cost", "100us")
    return {
        "plain": (common.virtual_cluster(4, 4, TIMEOUT), 16, "virtual cluster, 4 hosts x 4 ranks", 30),
        "100us": (slow, 16, "virtual cluster, 4 hosts x 4 ranks, 100 us a message at each host's card", 30),
        "wide": (common.virtual_cluster(4, 16, TIMEOUT), 64, "virtual cluster, 4 hosts x 16 ranks", 15),
        "wide-100us": (common.virtual_cluster(4, 16, TIMEOUT, "--message-cost", "100us"), 64,
                       "virtual cluster, 4 hosts x 16 ranks, 100 us a message at each host's card", 15),
        "one-node": (["mpirun", "-n", 4], 4, "one node", 30),
        "two-ranks": (["mpirun", "-n", 2], 2, "one node", 30),
    }


def main():
    known = runs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="all of them if none is named")
    parser.add_argument("--problem", action="append", help="this one only; can be repeated")
    parser.add_argument("--samples", type=int, help="default: 30, 15 on 64 ranks")
    options = parser.parse_args()
    for name in options.runs:
        if name not in known:
            parser.error(f"no run '{name}', only {', '.join(known)}")
    common.build(common.BUILD, "perf_pipelined_solvers")
    for name in options.runs or known:
        launcher, ranks, network, samples = known[name]
        for problem, arguments in PROBLEMS.items():
            if options.problem and problem not in options.problem:
                continue
            print(f"== {name} {problem}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                raw = Path(folder) / "solves.json"
                common.run([*launcher, common.BUILD / "perf" / "perf_pipelined_solvers", *arguments.split(), "--network",
                            network, "--samples", options.samples or samples, "--json", raw], common.environment(ranks))
                report = common.read_results(raw)
            report["cores"] = common.cores()
            path = common.results_folder() / f"{common.today()}-{common.commit()}-bicgstab-{name}-{problem}.json"
            common.write_results(path, report)


if __name__ == "__main__":
    main()
