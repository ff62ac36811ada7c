#!/usr/bin/env python3
"""Sweeps Open MPI's eager limits with perf_eager_limits, by shared memory and by TCP on the virtual cluster.

Writes perf/results/<processor>/<date>-<commit>-eager-limits.json: the median over rounds for each limit, message size and
variant, and how much each variant varies with the limit. Run it as root on a quiet machine; it takes about a quarter of
an hour. make_eager_table.py then makes the page.
"""
import argparse
import collections
import json
import statistics
import tempfile
from pathlib import Path

import common

# Hosts, ranks on each, route, seconds of work. Two ranks, so that each has a core: on one host (shared memory) and on two
# (TCP), with work and without; and two on each of two hosts along three steps.
RUNS = ((1, 2, "standard", 2e-3), (2, 1, "standard", 2e-3), (1, 2, "standard", 0), (2, 1, "standard", 0),
        (2, 2, "three-step", 0))
# Open MPI needs room for its own header in an eager message, and refuses 0: with 64 bytes no message of ours is eager.
LIMITS = (64, 4096, 65536, 1048576, 8388608)
VALUES = (1024, 16384, 131072)


def eager_limit_variables(limit):
    """A message is at least as large as an eager one."""
    on_node = f"OMPI_MCA_btl_{common.shared_memory_transport()}"
    return {f"{on_node}_eager_limit": str(limit), f"{on_node}_max_send_size": str(max(limit, 32768)),
            "OMPI_MCA_btl_tcp_eager_limit": str(limit),
            "OMPI_MCA_btl_tcp_max_send_size": str(max(limit, 131072))}


def measure(options):
    """The reports of all runs. Rounds in turn, so that what disturbs the machine for a while disturbs every limit."""
    environment = common.environment(8)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.json"
        for _ in range(options.rounds):
            for limit in LIMITS:
                for hosts, ranks, route, work in RUNS:
                    for values in VALUES:
                        common.run([*common.virtual_cluster(hosts, ranks, 120), options.program, "--values", values,
                                    "--limit", limit, "--route", route, "--work", work, "--samples", options.samples,
                                    "--json", lines], {**environment, **eager_limit_variables(limit)})
        return [json.loads(line) for line in lines.read_text().splitlines()]


def summarize(runs, commit):
    times = collections.defaultdict(list)
    for run in runs:
        for variant, seconds in run["seconds"].items():
            key = (run["nodes"], run["ranks"], run["route"], run["work_seconds"], run["message_bytes"], variant)
            times[key, int(run["eager_limit"])].append(seconds["median"])
    report = {"benchmark": "eager limits", "commit": commit,
              "machine": {"processor": common.processor(), "cores": common.cores()}, "slices": runs[0]["slices"],
              "rounds": len(next(iter(times.values()))), "samples_per_round": runs[0]["samples"], "results": []}
    for key in sorted({key for key, _ in times}):
        nodes, ranks, route, work, size, variant = key
        series = {limit: statistics.median(values) for (k, limit), values in sorted(times.items()) if k == key}
        report["results"].append({"nodes": nodes, "ranks": ranks, "route": route, "work_seconds": work,
                                  "message_bytes": size, "variant": variant,
                                  "spread": max(series.values()) / min(series.values()) - 1,
                                  "median_seconds": {str(limit): seconds for limit, seconds in series.items()}})
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="perf_eager_limits; otherwise the one in build/default, brought up to date")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--samples", type=int, default=30, help="in each round")
    options = parser.parse_args()
    if options.program is None:
        common.build(common.BUILD, "perf_eager_limits")
        options.program = common.BUILD / "perf" / "perf_eager_limits"
    commit = common.commit()
    report = summarize(measure(options), commit)
    path = common.results_folder() / f"{common.today()}-{commit}-eager-limits.json"
    common.write_results(path, report)
    print(path)


if __name__ == "__main__":
    main()
