#!/usr/bin/env python3
"""Writes perf/EAGER_LIMITS.md from a result of run_eager_limits.py."""
import argparse
from pathlib import Path

import common

VARIANTS = {"komvos, shared memory": "Komvos, shared memory on nodes", "komvos, messages": "Komvos, messages",
            "receives early": "receives early", "receives late": "receives late"}
HEAD = """# Does the time of an exchange depend on how much MPI buffers?

Made by `perf/make_eager_table.py` from `{file}`,
which `perf/run_eager_limits.py` wrote. The question is that of INRIA RR-4372. Ranks exchange messages of one size. Times
are medians over {rounds} rounds of {samples} samples, in microseconds; commit {commit}, processor {processor}, {cores} cores.
Columns: Open MPI's eager limit in bytes, of shared memory and TCP alike. It refuses 0; with 64 no message here is eager,
with 8 MB all are. Spread: by how much the longest time exceeds the shortest.

The tuner takes shared memory on a node; between nodes both variants of Komvos send the same messages.

With work: what a solver sees, {work:.0f} ms of it in {slices} slices, with a look at the messages after each. "Receives
late" posts them after the work, as codes do that receive when they need the data. The work is in these times, and makes
their spread smaller; the row "work alone" says how much it is. Messages posted early hide behind the work what the limit
costs, but for one thing: an eager message of 1 MB between ranks of a node is copied into and out of MPI's buffer.

Without work: the exchange alone. Nothing hides there what the limit costs. Between nodes a message of 8 KB beyond the
limit first asks its receiver, a round trip more. On a node it is the other way round: large eager messages are copied
into and out of MPI's buffers, which costs more than asking. Plain MPI calls with receives posted early vary as well, on
most lines more than Komvos with shared memory, which sends no message on a node; that its times there still grow with
the limit may be the cache that MPI's buffers take, as the variants run in turn. Four ranks share two cores; that 128 KB
along three steps vary more than plain calls there is not explained.

Spreads for messages of {sizes}:

{summary}"""


def bytes_text(size):
    for unit, name in ((2**20, "MB"), (2**10, "KB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return str(size)


def percent(fraction):
    return f"{100 * fraction:.0f} %"


def kind_of(result):
    return result["nodes"], result["ranks"], result["route"], result["work_seconds"]


def kinds(results):
    """(nodes, ranks, route, work) of the runs: with work first."""
    return sorted({kind_of(result) for result in results}, key=lambda kind: (-kind[3], kind[:3]))


def of_kind(results, kind):
    return [result for result in results if kind_of(result) == kind]


def title(kind):
    nodes, ranks, route, work = kind
    where = "on one node" if nodes == 1 else f"on {nodes} nodes, TCP"
    return f"{'With' if work > 0 else 'Without'} work: {ranks} ranks {where}, route {route}"


def summary(results):
    """One line for each kind of run: the spreads of each variant, for all sizes."""
    rows = []
    for kind in kinds(results):
        spreads = [", ".join(percent(one["spread"]) for one in of_kind(results, kind) if one["variant"] == variant)
                   for variant in VARIANTS]
        rows.append([title(kind), *spreads])
    return common.markdown_table(["", *VARIANTS.values()], rows, ["---", *["--:"] * len(VARIANTS)])


def section(results, kind):
    rows = of_kind(results, kind)
    limits = [bytes_text(int(limit)) for limit in rows[0]["median_seconds"]]
    cells = [[bytes_text(row["message_bytes"]), row["variant"],
              *(f"{1e6 * seconds:,.0f}" for seconds in row["median_seconds"].values()), percent(row["spread"])]
             for row in rows]
    table = common.markdown_table(["message", "variant", *limits, "spread"], cells,
                                  ["--:", "---", *["--:"] * (len(limits) + 1)])
    return f"\n## {title(kind)}\n\n{table}"


def page(path):
    report = common.read_results(path)
    results = report["results"]
    head = HEAD.format(file=path.relative_to(common.ROOT), work=1e3 * max(one["work_seconds"] for one in results),
                       slices=report["slices"], rounds=report["rounds"], samples=report["samples_per_round"],
                       commit=report["commit"], **report["machine"], summary=summary(results),
                       sizes=", ".join(bytes_text(size) for size in sorted({one["message_bytes"] for one in results})))
    return head + "".join(section(results, kind) for kind in kinds(results))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", nargs="?", help="the file; otherwise the newest")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    path = common.newest(common.RESULTS.glob("*/*-eager-limits.json"))
    if options.result:
        path = Path(options.result).resolve()
    if path is None:
        parser.error(f"no result of run_eager_limits.py in {common.RESULTS}")
    common.write_page("EAGER_LIMITS.md", page(path), options.check, "make_eager_table.py")


if __name__ == "__main__":
    main()
