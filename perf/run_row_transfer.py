#!/usr/bin/env python3
"""Times how rows of a matrix are packed, unpacked and moved, and how a matrix is assembled, against Tpetra's ways.

  serial    one rank: packing and unpacking; rows that stay, or are permuted, on the rank
  moved     two ranks: all rows of each go to the other
  openmp    as serial, with two threads; needs a build with a threaded Trilinos, see --build
  assembly  two ranks: finite elements, a million of them and 27,000

Writes perf/results/<processor>/<date>-<commit>-rows-<run>.json, with --label <run>-<label>: for another Trilinos, or other
settings in the environment. Run it on a quiet machine; it takes a quarter of an hour. make_row_transfer_page.py then makes
the page.
"""
import argparse
import tempfile
from pathlib import Path

import common

SWEEP = [("sweep", rows, entries) for entries in (50, 100) for rows in (100, 1000, 10000, 100000)]
OTHERS = [("permuted", 100000, 5), ("permuted", 10000, 50), ("dense-rows", 20000, 5)]
RUNS = {"serial": (1, SWEEP + OTHERS), "moved": (2, SWEEP + OTHERS), "openmp": (1, SWEEP + OTHERS)}
ASSEMBLY = [(30, 30), (100, 5)]  # elements along an edge, samples


def measure(program, arguments, environment, ranks):
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "result.json"
        common.run(["mpirun", "-n", ranks, program, *arguments, "--json", raw], environment)
        return common.read_results(raw)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="serial, moved and assembly if none is named")
    parser.add_argument("--build", type=Path, default=common.BUILD, help="the build to measure (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--label", help="what is special about this build or environment")
    options = parser.parse_args()
    for name in options.runs:
        if name not in (*RUNS, "assembly"):
            parser.error(f"no run '{name}'")
    common.build(options.build, "perf_row_transfer", "perf_assembly")
    for name in options.runs or ("serial", "moved", "assembly"):
        print(f"== {name}", flush=True)
        environment = common.environment(2)
        if name == "openmp":
            environment |= {"OMP_NUM_THREADS": "2", "OMP_PROC_BIND": "false"}
        if name == "assembly":
            cases = [measure(options.build / "perf" / "perf_assembly", ["--n", n, "--samples", samples], environment, 2)
                     for n, samples in ASSEMBLY]
        else:
            ranks, problems = RUNS[name]
            cases = [measure(options.build / "perf" / "perf_row_transfer",
                             ["--problem", problem, "--rows", rows, "--entries", entries, "--samples", options.samples],
                             environment, ranks) for problem, rows, entries in problems]
        run = f"{name}-{options.label}" if options.label else name
        report = {"benchmark": "rows of a sparse matrix", "run": run, "commit": cases[0]["commit"],
                  "processor": cases[0]["processor"], "cores": common.cores(), "mpi": cases[0]["mpi"], "cases": cases}
        common.write_results(common.results_folder() / f"{common.today()}-{common.commit()}-rows-{run}.json", report)


if __name__ == "__main__":
    main()
