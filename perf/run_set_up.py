#!/usr/bin/env python3
"""Times the planning of each route by perf_set_up, on 16 and 64 ranks of the virtual cluster.

  16  4 hosts x 4 ranks
  64  8 hosts x 8 ranks

With --before PROGRAM, perf_set_up as another commit builds it, the two take turns. Writes
perf/results/<processor>/<date>-<commit>-setup-<ranks>.json, from which make_set_up_table.py makes the page. Run it as root
on a quiet machine; it takes about ten minutes.
"""
import argparse
import statistics
import tempfile
from pathlib import Path

import common

TIMEOUT = 900  # seconds
SIZES = {16: (4, 4), 64: (8, 8)}
TURNS = 5


def measure(program, ranks, samples):
    hosts, ranks_per_host = SIZES[ranks]
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "set_up.json"
        common.run([*common.virtual_cluster(hosts, ranks_per_host, TIMEOUT), program, "--ranks-per-node", ranks_per_host,
                    "--samples", samples, "--json", raw], common.environment(ranks))
        return common.read_results(raw)


def merged(reports):
    """One report, with the medians of what several launches measured."""
    result = reports[0]
    result["samples"] = sum(report["samples"] for report in reports)
    for case, halo in enumerate(result["cases"]):
        for number, route in enumerate(halo["routes"]):
            for key in ("seconds", "lower_quartile", "upper_quartile"):
                route[key] = statistics.median(report["cases"][case]["routes"][number][key] for report in reports)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", nargs="*", type=int, metavar="RANKS", help="16 and 64 if none is given")
    parser.add_argument("--before", type=Path, metavar="PROGRAM")
    parser.add_argument("--samples", type=int, default=10, help=f"in each of {TURNS} launches")
    options = parser.parse_args()
    for ranks in options.ranks or SIZES:
        if ranks not in SIZES:
            parser.error(f"no run with {ranks} ranks, only {', '.join(map(str, SIZES))}")
    common.build(common.BUILD, "perf_set_up")
    programs = {"now": common.BUILD / "perf" / "perf_set_up"}
    if options.before:
        programs = {"before": options.before, **programs}
    for ranks in options.ranks or SIZES:
        reports = {name: [] for name in programs}
        for _ in range(TURNS):
            for name, program in programs.items():
                reports[name].append(measure(program, ranks, options.samples))
        report = {"processor": common.processor(), "cores": common.cores(), "network": "virtual cluster, plain",
                  **{name: merged(turns) for name, turns in reports.items()}}
        path = common.results_folder() / f"{common.today()}-{common.commit()}-setup-{ranks}.json"
        common.write_results(path, report)


if __name__ == "__main__":
    main()
