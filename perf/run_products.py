#!/usr/bin/env python3
"""Times matrix-vector products on one node with perf_products: against Tpetra, PETSc and the time to read their bytes.

Problems elasticity3d, laplace3d and random; about 20,000 rows, which the caches hold, and 5 million entries on each rank,
which they do not; numbered naturally, by graph partitioning, and at random; 1, 2 and 4 ranks; 1, 2, 3, 4 and 8 columns.
Large matrices without a good numbering are slow with any library: 1 and 2 ranks, and 1 and 3 columns, must do for them.

Writes perf/results/<processor>/<date>-<commit>-products.json, after each case; --continue goes on with such a file. Run it
on a quiet machine; with everything it takes about a quarter of an hour. make_product_table.py then makes the page. PETSc
is compared if it was there when Komvos was configured (Debian: petsc-dev).
"""
import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import common

SMALL = {"elasticity3d": "--n 19", "laplace3d": "--n 27", "random": "--n 20000 --entries 25"}
# By the number of ranks: 5 million entries on each.
LARGE = {"elasticity3d": {1: "--n 29", 2: "--n 36", 4: "--n 45"}, "laplace3d": {1: "--n 91", 2: "--n 115", 4: "--n 145"},
         "random": {1: "--n 200000 --entries 25", 2: "--n 400000 --entries 25", 4: "--n 800000 --entries 25"}}
NUMBERINGS = ("natural", "graph", "random")
TIMEOUT = 600  # seconds


def cases(options):
    for problem in SMALL:
        for size in ("small", "large"):
            for numbering in NUMBERINGS:
                # A random matrix has no good numbering, and one rank needs no partition.
                if problem == "random" and numbering != "natural":
                    continue
                slow = size == "large" and (numbering == "random" or problem == "random")
                for ranks in options.ranks:
                    if (numbering == "graph" and ranks == 1) or (slow and ranks > 2):
                        continue
                    arguments = SMALL[problem] if size == "small" else LARGE[problem][ranks]
                    yield {"size": size, "ranks": ranks}, ["--problem", problem, *arguments.split(), "--numbering",
                                                           numbering, "--columns", "1,3" if slow else options.columns]


def measure(options, case, arguments):
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "products.json"
        command = ["mpirun", "-n", case["ranks"], options.program, *arguments, "--samples", options.samples, "--json", raw]
        subprocess.run([str(word) for word in command], check=True, env=common.environment(case["ranks"]),
                       timeout=TIMEOUT)
        return {**case, "arguments": " ".join(arguments), **json.loads(raw.read_text(encoding="utf-8"))}


def report_of(runs):
    shared = {key: runs[0][key] for key in ("benchmark", "commit", "samples", "processor", "mpi")}
    return {**shared, "cores": common.cores(),
            "runs": [{key: value for key, value in run.items() if key not in shared} for run in runs]}


def runs_of(path):
    """What report_of() was made from."""
    report = common.read_results(path)
    shared = {key: value for key, value in report.items() if key not in ("cores", "runs")}
    return [{**run, **shared} for run in report["runs"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="perf_products; otherwise the one in build/default, brought up to date")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4], choices=[1, 2, 4])
    parser.add_argument("--columns", default="1,2,3,4,8")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--continue", type=Path, dest="file", metavar="FILE", help="measure what this result lacks")
    options = parser.parse_args()
    if options.program is None:
        common.build(common.BUILD, "perf_products")
        options.program = common.BUILD / "perf" / "perf_products"
    path = options.file or common.results_folder() / f"{common.today()}-{common.commit()}-products.json"
    runs = runs_of(path) if options.file else []
    if any(run["commit"] != common.commit() for run in runs):
        parser.error(f"{path} is of another commit: {runs[0]['commit']}")
    if any(run["samples"] != options.samples for run in runs):
        parser.error(f"{path} has {runs[0]['samples']} samples of each case, not {options.samples}")
    done = {(run["ranks"], run["arguments"]) for run in runs}
    for case, arguments in cases(options):
        if (case["ranks"], " ".join(arguments)) in done:
            continue
        print("==", case["size"], case["ranks"], "ranks", " ".join(arguments), flush=True)
        runs.append(measure(options, case, arguments))
        common.write_results(path, report_of(runs))
    print(path)


if __name__ == "__main__":
    main()
