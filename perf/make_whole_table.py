#!/usr/bin/env python3
"""Writes perf/WHOLE_RUNS.md from the results of run_whole_runs.py."""
import argparse
import statistics

import common

HEAD = """# What does a user wait for in all?

Made by `perf/make_whole_table.py` from the JSON files that `perf/run_whole_runs.py` wrote to `{folder}`;
commit {commit}, {processor}, {cores} cores. Times are of the whole run, in milliseconds: the node-aware matrices are set
up, with nothing known from runs before and those of a hierarchy together, and then there are so many cycles. A cycle is one product with each operator of
the problem, and an all-reduce as in any Krylov solver; `operators` says how many there are: the matrix, or all of MueLu's
hierarchy in turn. Tpetra's Imports exist before the clock starts, so its
set-up is not counted. Medians of {samples} samples; ratios
are medians of ratios within a sample, below 1 Komvos is faster. The machine was two to three times slower on some days
than on others, so times of different commits say nothing about each other. "Komvos" is what the defaults give: tuned
online, and between nodes calibrated in each sample, as in the first halo of a run. "Best" is the fastest of what was
compared, known afterwards, routes by themselves included where they were run: its ratio, of medians, is what not knowing
costs.
"""

SIMULATION = """
## The tuner on many ranks

`perf_tuner_simulation` runs the tuner itself with times that are drawn: a use takes what was measured for its variant on
the virtual cluster, longer by the noise of the slowest rank (exponential, {noise:.0%} a rank) and by interruptions
({spike_rate:g} a rank and use, {spike_microseconds:g} us each); forecasts are off by a factor of up to {forecast_factor:g}
either way, drawn for each variant, and all of a halo by one of up to {calibration_factor:g}. {runs} runs of each case. "Wrong" is the share of runs that end with a variant more
than 5 % slower than the best one, as all runs do that end before another route pays its plan. Time is that of the whole
run, planning included, over that of the standard route and of the best one: median, and 95 % of all runs are below.
"""
SLOW_PERIODS = """
The same with periods in which everything takes {slow_factor:g} times as long, as when others use the network: {slow_share:.0%} of
all uses, {slow_uses:g} uses each on average, beginning and ending by chance.
"""


def median_time(result, cycles):
    return next(time for time in result["times"] if time["cycles"] == cycles)


def rows_of(report):
    by_name = {result["variant"]: result for result in report["results"]}
    komvos = by_name["komvos"]
    for time in komvos["times"]:
        cycles = time["cycles"]
        at = {name: median_time(result, cycles) for name, result in by_name.items()}
        best = min(one["seconds"] for one in at.values())
        yield [report["problem"].split(" each")[0], str(report["operators"]), f"{cycles:,}",
               *(f"{1e3 * at[name]['seconds']:,.0f}" for name in ("Tpetra", "Tpetra, Isend", "standard, persistent",
                                                                  "komvos")),
               f"{time['of_tpetra']:.2f}", f"{time['of_isend']:.2f}", f"{time['of_persistent']:.2f}",
               f"{time['seconds'] / best:.2f}"]


def title_of(report):
    return f"{report['network']}, {report['ranks']} ranks (commit {report['commit']})"


def summary(reports):
    lines = []
    for cycles in (20, 50, 200, 1000):
        ours = [next(result for result in report["results"] if result["variant"] == "komvos") for report in reports]
        times = [time for result in ours for time in result["times"] if time["cycles"] == cycles]
        if not times:
            continue
        for key, label in (("of_tpetra", "Tpetra"), ("of_isend", "Tpetra, Isend"), ("of_persistent", "persistent")):
            ratios = sorted(time[key] for time in times)
            lines.append([f"{cycles:,}", label, f"{ratios[0]:.2f}", f"{statistics.median(ratios):.2f}", f"{ratios[-1]:.2f}",
                          f"{sum(ratio > 1.02 for ratio in ratios)} of {len(ratios)}"])
    return common.markdown_table(["cycles", "against", "least", "median", "most", "more than 2 % slower"], lines,
                                 ["--:", "---", "--:", "--:", "--:", "--:"])


def simulation():
    report = common.read_results(common.SIMULATED / "tuner.json")
    slow = common.read_results(common.SIMULATED / "tuner-slow-periods.json")
    return (SIMULATION.format(**report) + "\n" + simulation_table(report) + SLOW_PERIODS.format(**slow) + "\n" +
            simulation_table(slow))


def simulation_table(report):
    rows = [[one["halo"], f"{one['ranks']:,.0f}", f"{one['uses']:,}", f"{one['wrong']:.3f}",
             f"{one['of_standard']:.2f}", f"{one['of_standard_95_percent']:.2f}", f"{one['of_best']:.2f}",
             f"{one['of_best_95_percent']:.2f}"] for one in report["results"]]
    return common.markdown_table(["halo", "ranks", "uses", "wrong", "of standard", "95 %", "of best", "95 %"], rows,
                                 ["---", *["--:"] * 7])


def page(folder, files):
    reports = [common.read_results(file) for file in files]
    first = reports[0]
    commits = ", ".join(dict.fromkeys(report["commit"] for report in reports))
    parts = [HEAD.format(folder=folder.relative_to(common.ROOT), commit=commits, processor=first["processor"],
                         cores=first["cores"], samples=first["samples"]), "\n", summary(reports)]
    head = ["problem", "operators", "cycles", "Tpetra", "Isend", "persistent", "Komvos", "of Tpetra", "of Isend",
            "of persistent", "of best"]
    networks = []
    for report in reports:
        if title_of(report) not in networks:
            networks.append(title_of(report))
    for title in networks:
        rows = [row for report in reports if title_of(report) == title for row in rows_of(report)]
        table = common.markdown_table(head, rows, ["---", *["--:"] * (len(head) - 1)])
        parts.append(f"\n## {title[0].upper()}{title[1:]}\n\n{table}")
    return "".join(parts) + simulation()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    found = sorted(common.RESULTS.glob("*-cores/*-whole-*.json"))
    if not found:
        parser.error(f"no result of run_whole_runs.py in {common.RESULTS}")
    cases = sorted({file.name.split("-whole-")[1] for file in found})
    files = [common.newest(file for file in found if file.name.endswith("-whole-" + case)) for case in cases]
    common.write_page("WHOLE_RUNS.md", page(files[0].parent, files), options.check, "make_whole_table.py")


if __name__ == "__main__":
    main()
