#!/usr/bin/env python3
"""Counts what MueLu sends in set-up and in cycles, by part, with perf_multigrid_traffic: 16 ranks on 4 hosts.

Writes perf/results/<processor>/<date>-<commit>-traffic-<problem>.json. Counts are exact, times want a quiet machine. Run it
as root; it takes some minutes. make_traffic_page.py then makes the page.
"""
import argparse
import tempfile
from pathlib import Path

import common

PROBLEMS = {
    "elasticity3d": "--problem elasticity3d --n 20",
    "elasticity3d-repartitioned": "--problem elasticity3d --n 20 --repartition",
    "laplace3d": "--problem laplace3d --n 40",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    common.build(common.BUILD, "perf_multigrid_traffic")
    for problem, arguments in PROBLEMS.items():
        with tempfile.TemporaryDirectory() as folder:
            raw = Path(folder) / "traffic.json"
            common.run([*common.virtual_cluster(4, 4, 600), common.BUILD / "perf" / "perf_multigrid_traffic",
                        *arguments.split(), "--network", "virtual cluster, plain", "--json", raw], common.environment(16))
            report = common.read_results(raw)
        report["cores"] = common.cores()
        path = common.results_folder() / f"{common.today()}-{common.commit()}-traffic-{problem}.json"
        common.write_results(path, report)
        print(path)


if __name__ == "__main__":
    main()
