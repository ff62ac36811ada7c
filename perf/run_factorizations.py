#!/usr/bin/env python3
"""Sweeps Open MPI's eager limits with perf_factorizations: MUMPS, and SuperLU_DIST with and without looking ahead.

Cubic grids grow with the ranks, as in Table 7 of INRIA RR-4372. Writes perf/results/<processor>/<date>-<commit>-
factorizations.json. Run it as root on a quiet machine; it takes about a quarter of an hour. make_factorization_page.py then makes
the page and the picture.
"""
import argparse
import collections
import json
import statistics
import tempfile
from pathlib import Path

import common
from run_eager_limits import eager_limit_variables

SHAPES = {(1, 2): 33, (2, 1): 33, (2, 2): 36}  # hosts, ranks on each: points along an edge
LIMITS = (64, 4096, 65536, 8388608)  # Open MPI refuses 0; with 64 no message is eager, with 8 MB all are
VARIANTS = (("mumps", 10), ("superlu-dist", 1), ("superlu-dist", 10))
TIMELINE = ((2, 1), 33)  # shape and grid of the picture: a core for each rank


def measure(options, program):
    environment = common.environment(8)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.json"

        def run(shape, grid, limit, variant):
            method, look_ahead = variant
            variables = eager_limit_variables(limit) if limit else {}
            common.run([*common.virtual_cluster(*shape, 300), program, "--problem", "laplace3d", "--n", grid,
                        "--method", method, "--look-ahead", look_ahead, "--limit", limit or "default", "--samples",
                        options.samples, "--json", lines], {**environment, **variables, "OMP_NUM_THREADS": "1"})
            result = json.loads(lines.read_text().splitlines()[-1])
            return {"hosts": shape[0], **result}

        results = []
        for _ in range(options.rounds):
            for shape, grid in SHAPES.items():
                for limit in LIMITS:  # in turn, so that what disturbs the machine for a while disturbs every limit
                    for variant in VARIANTS:
                        results.append(run(shape, grid, limit, variant))
        shape, grid = TIMELINE
        lines_of_time = [run(shape, grid, 64, variant) for variant in VARIANTS if variant[0] == "superlu-dist"]
        return results, lines_of_time


def summarize(results):
    samples = collections.defaultdict(list)
    facts = {}
    for one in results:
        key = (one["hosts"], one["ranks"], one["method"], one["look_ahead"])
        samples[key, int(one["eager_limit"])] += one["seconds"]
        facts[key] = {name: one[name] for name in ("library", "problem", "rows", "factor_entries", "operations")}
    rows = []
    for key, fact in facts.items():
        medians = {str(limit): statistics.median(values) for (k, limit), values in samples.items() if k == key}
        rows.append({**dict(zip(("hosts", "ranks", "method", "look_ahead"), key)), **fact, "median_seconds": medians,
                     "spread": max(medians.values()) / min(medians.values()) - 1})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=3, help="in each round")
    options = parser.parse_args()
    common.build(common.BUILD, "perf_factorizations")
    commit = common.commit()
    results, lines_of_time = measure(options, common.BUILD / "perf" / "perf_factorizations")
    report = {"benchmark": "factorizations", "commit": commit,
              "machine": {"processor": common.processor(), "cores": common.cores()}, "rounds": options.rounds,
              "samples_per_round": options.samples, "results": summarize(results), "lines_of_time": lines_of_time}
    path = common.results_folder() / f"{common.today()}-{commit}-factorizations.json"
    common.write_results(path, report)
    print(path)


if __name__ == "__main__":
    main()
