#!/usr/bin/env python3
"""Writes perf/SET_UP.md from the results of run_set_up.py."""
import argparse

import common

HEAD = """# What does it take to plan a route?

Made by `perf/make_set_up_table.py` from the JSON files that `perf/run_set_up.py` wrote to `{folder}`; {processor},
{cores} cores, {network}. Times are of `buildPlans` alone, in milliseconds, the slowest rank, medians of {samples} samples;
with 16 and 64 ranks on {cores} cores, 8 and 32 ranks share a core, so that much of them is waiting for a turn.
Messages are those of set-up, of the busiest rank and in all: every one that travels, known to its receiver or not.
{before}"""

BEFORE = """"Before" is commit {before}, "now" is {now}; the two took turns. Before, ranks found out by consensus who sends to them
in each stage (a barrier that does not block, after synchronous sends); now they know it from the agreement on pairs of
nodes, from the grid, or from the halo, all but the first stage of two-step.
"""


def rows_of(report):
    now = report["now"]
    before = report.get("before", now)
    for halo, halo_before in zip(now["cases"], before["cases"]):
        for one, was in zip(halo["routes"], halo_before["routes"]):
            yield [halo["halo"], one["route"], f"{1e3 * was['seconds']:.2f}", f"{1e3 * one['seconds']:.2f}",
                   f"{one['seconds'] / was['seconds']:.2f}", f"{was['messages_of_a_rank']:,}",
                   f"{one['messages_of_a_rank']:,}", f"{was['messages']:,}", f"{one['messages']:,}"]


def page(folder, files):
    reports = [common.read_results(file) for file in files]
    first = reports[0]
    before = ""
    if "before" in first:
        before = BEFORE.format(before=first["before"]["commit"], now=first["now"]["commit"])
    parts = [HEAD.format(folder=folder.relative_to(common.ROOT), processor=first["processor"], cores=first["cores"],
                         network=first["network"], samples=first["now"]["samples"], before=before)]
    head = ["halo", "route", "before", "now", "of before", "messages of a rank, before", "now", "messages, before", "now"]
    for report in reports:
        now = report["now"]
        table = common.markdown_table(head, rows_of(report), ["---", "---", *["--:"] * (len(head) - 2)])
        parts.append(f"\n## {now['ranks']} ranks on {now['nodes']} nodes\n\n{table}")
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    files = common.newest_of_each("setup")
    if not files:
        parser.error(f"no result of run_set_up.py in {common.shown('setup')}")
    common.write_page("SET_UP.md", page(files[0].parent, files), options.check, "make_set_up_table.py")


if __name__ == "__main__":
    main()
