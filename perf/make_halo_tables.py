#!/usr/bin/env python3
"""Writes perf/HALOS.md from the results of run_halo.py in one folder of perf/results."""
import argparse
import math
import statistics
from pathlib import Path

import common
from halo_results import PAIRINGS, describe, load, median

RUNS = {  # and what their sections are called
    "plain": "Matrix-vector product, plain network",
    "100us": "Matrix-vector product, 100 us a message",
    "one-node": "Matrix-vector product on one node",
    "large": "Matrix-vector product on one node, 5 million entries a rank",
    "exchange": "Halo exchange alone, plain network",
    "many": "Matrix-vector product, 63 neighbours a rank",
}
ROUTES = ("standard", "three-step", "two-step", "split", "axis", "sockets")
HEAD = """# Every halo by every variant

Made by `perf/make_halo_tables.py` from the JSON files that `perf/run_halo.py` wrote to `{folder}`; they hold the quartiles
too. Times are microseconds. A variant is a route and how values move inside a node: by messages (m) or through shared
memory (s). Baselines are Tpetra, Tpetra with Isend, and Komvos along the standard route with persistent requests.
A gain is the median of the ratios to the fastest baseline; bold is 5 % faster or more. `auto` is the variant that the tuner
chose. Each node has one socket here, so the route sockets is left out.

Set-up is that of the faster variant of each route: time, messages and bytes of the rank that has most, and break-even:
after how many exchanges the route has saved what its set-up costs, against the fastest baseline. For `auto` the time
includes everything that the tuner tried.
"""
SUMMARY = """
The matrices of MueLu's hierarchies, each by itself ("level n A"), and random ones. Three-step is shown with the faster of
messages and shared memory.
"""

BEFORE = common.RESULTS / "intel-xeon-2-cores"  # results of an older version

def microseconds(variant):
    return f"{1e6 * median(variant):,.0f}"


def gain(variant):
    value = median(variant, "gain")
    return f"**{value:.2f}**" if value >= 1.05 else f"{value:.2f}"


def choice(halo):
    return f"{halo.auto['route']}, {halo.auto['on_node']}"


# --- the summary: matrices only, few columns ---

def is_in_summary(halo):
    if not halo.level.endswith("A") or halo.best("three-step") is None or "rotated" in halo.problem:
        return False
    return "laplace" not in halo.problem or halo.level == "level 0 A"


def summary_table(halos):
    def messages(variant):
        return f"{variant['traffic']['inter_node']['messages_total']:,}"

    rows = []
    for halo in filter(is_in_summary, halos):
        standard, three = halo.variants["standard, persistent"], halo.best("three-step")
        rows.append([halo.title(), f"{halo.rows:,}", messages(standard), messages(three),
                     microseconds(halo.variants["tpetra"]), microseconds(halo.variants["tpetra-isend"]),
                     microseconds(standard), microseconds(three), gain(three), microseconds(halo.auto), choice(halo),
                     gain(halo.auto)])
    head = ["matrix", "rows", "messages between nodes, standard", "messages, three-step", "Tpetra", "Tpetra Isend",
            "standard, persistent", "three-step", "gain of three-step", "auto", "auto chose", "gain of auto"]
    return common.markdown_table(head, rows, ["---", *["--:"] * 9, "---", "--:"])


def summary(folder):
    text = "\n## Summary\n" + SUMMARY
    for run in ("plain", "100us"):
        reports, halos = load(folder, run)
        if halos:
            text += f"\n{RUNS[run]}: {describe(reports[-1])}.\n\n{summary_table(halos)}"
    _, halos = load(folder, "many")
    if halos:
        gains = sorted(median(halo.auto, "gain") for halo in halos)
        text += (f"\nWith {max(halo.neighbours for halo in halos)} neighbours a rank (random matrices, 64 ranks on 4 hosts, "
                 f"plain network) `auto` gains {gains[0]:.1f} to {gains[-1]:.1f}. There 32 ranks share a core, so each message "
                 "that a rank waits for also costs a context switch.\n")
    return text


def before(folder):
    """The gains of `auto` beside those of the oldest code that was measured; empty without results of it."""
    rows, described = [], []
    for run in ("plain", "100us"):
        old_reports, old = load(BEFORE, run)
        gains = {halo.title(): median(halo.auto, "gain") for halo in old}
        for halo in filter(is_in_summary, load(folder, run)[1]):
            if halo.title() in gains:
                rows.append([halo.title(), RUNS[run].split(", ", 1)[1], f"{gains[halo.title()]:.2f}",
                             f"{median(halo.auto, 'gain'):.2f}"])
        described += [f"{old_reports[-1]['machine']['processor']}, commit {old_reports[-1]['commit']}"] if old else []
    if not rows or BEFORE == folder:
        return ""
    return f"""
## Before and after

Gains of `auto` over the fastest baseline of the same run, as above, and those of an older version ({described[0]}).
Processor and code both changed, so a difference cannot be credited to either alone.

{common.markdown_table(["matrix", "network", "before", "now"], rows, ["---", "---", "--:", "--:"])}"""


# --- one section a run: all halos, all variants ---

def routes_of(halos):
    return [route for route in ROUTES if any(halo.best(route) for halo in halos)]


def times_table(halos):
    rows = []
    for halo in halos:
        cells = []
        for route in routes_of(halos):
            for hops in ("messages", "shared-memory"):
                name = "standard, persistent" if (route, hops) == ("standard", "messages") else f"{route}, {hops}"
                cells.append(microseconds(halo.variants[name]) if name in halo.variants else "")
        rows.append([halo.title(), f"{halo.rows:,}", halo.neighbours, microseconds(halo.variants["tpetra"]),
                     microseconds(halo.variants["tpetra-isend"]), *cells, choice(halo), microseconds(halo.auto),
                     gain(halo.auto), f"{median(halo.tpetra()) / median(halo.auto):.2f}"])
    hops = [f"{route} {letter}" for route in routes_of(halos) for letter in "ms"]
    head = ["halo", "rows", "neighbours", "Tpetra", "Isend", *hops, "auto chose", "auto", "gain over best baseline",
            "gain over Tpetra's best"]
    return common.markdown_table(head, rows, ["---", *["--:"] * (4 + len(hops)), "---", "--:", "--:", "--:"])


def least_gains(halos):
    over_tpetra, tpetra_halo = min((median(halo.tpetra()) / median(halo.auto), halo.title()) for halo in halos)
    over_best, best_halo = min((median(halo.auto, "gain"), halo.title()) for halo in halos)
    return (f"Least gain of `auto` over Tpetra's faster variant (ratio of medians): {over_tpetra:.2f}, on {tpetra_halo}. "
            f"Over the best baseline: {over_best:.2f}, on {best_halo}.\n")


def break_even(halo, variant, seconds):
    """After how many exchanges the variant has saved what its set-up costs, against the fastest baseline."""
    saved = median(halo.variants[halo.best_baseline]) - median(variant)
    return seconds / saved if saved > 0 else math.inf


def count(exchanges):
    return f"{exchanges:,.0f}" if exchanges < math.inf else "never"


def set_up_cell(halo, route):
    variant = halo.best(route)
    if variant is None:
        return ""
    cost = variant["set_up"]
    seconds = cost["seconds"] + cost.get("exchange_seconds", 0)
    held = cost.get("exchange_bytes_max", cost["plan_bytes_max"])
    return (f"{1e6 * seconds:,.0f}, {cost['messages_max']}, {held:,}, "
            f"{count(break_even(halo, variant, seconds))}")


def set_up_table(halos):
    """The table, and the break-even points of tuning."""
    routes, rows, tuned = routes_of(halos), [], []
    for halo in halos:
        cost = halo.auto["set_up"]
        seconds = cost["seconds_with_tuning"] + cost.get("exchange_seconds", 0)
        tuned.append(break_even(halo, halo.auto, seconds))
        rows.append([halo.title(), *(set_up_cell(halo, route) for route in routes),
                     f"{1e6 * seconds:,.0f}, {count(tuned[-1])}"])
    head = ["halo", *(f"{route}: us, messages, bytes, break-even" for route in routes), "auto: us, break-even"]
    return common.markdown_table(head, rows), tuned


def folder_with(run, preferred):
    """The preferred folder, or another one that has results of this run."""
    folders = {path.parent for path in common.RESULTS.glob(f"*/*-halo-{run}-*.json")}
    return preferred if preferred in folders or not folders else max(folders)


def break_even_text(tuned):
    finite = sorted(exchanges for exchanges in tuned if exchanges < math.inf)
    never = len(tuned) - len(finite)
    if not finite:
        return "Tuning never pays here."
    median = statistics.median(tuned)
    return (f"Break-even of tuning: {f'{median:,.0f} exchanges' if median < math.inf else 'never'} (median of halos; "
            f"{finite[0]:,.0f} to {finite[-1]:,.0f}{f', never on {never} of {len(tuned)}' if never else ''}).")


def section(folder, run):
    reports, halos = load(folder_with(run, folder), run)
    if not halos:
        return ""
    table, tuned = set_up_table(halos)
    return f"""
## {RUNS[run]}

{describe(reports[-1])}.

{times_table(halos)}
{least_gains(halos)}
Set-up:

{table}
{break_even_text(tuned)}
"""


# --- which ranks of a node send for the others ---

def pairings():
    """Three-step under each pairing, from whichever folder has it; empty without results."""
    folder = folder_with(PAIRINGS[0], common.shown("halo"))
    results = {pairing: load(folder, pairing) for pairing in PAIRINGS}
    if not results[PAIRINGS[0]][0]:
        return ""
    rows = []
    for halos in zip(*(results[pairing][1] for pairing in PAIRINGS)):
        times = [halo.best("three-step") for halo in halos]
        if all(times):
            ratios = [median(one) / median(halo.variants["standard, persistent"]) for one, halo in zip(times, halos)]
            sent = [f"{one['traffic']['inter_node']['bytes_max']:,}" for one in times]
            rows.append([halos[0].title(), *sent, *(f"{ratio:.2f}" for ratio in ratios)])
    return f"""
## Which pairing

Three steps with the faster of messages and shared memory, and what the rank that sends most sends to other nodes.
Times are ratios to the standard route with persistent requests in the same run, smaller is better. by-volume is the
default; the tuner does not try the other two.
{describe(results[PAIRINGS[0]][0][-1])}.

{common.markdown_table(["halo", *(f"bytes, {one}" for one in PAIRINGS), *(f"time, {one}" for one in PAIRINGS)], rows,
                       ["---", *["--:"] * 6])}"""


def page(folder):
    text = HEAD.format(folder=folder.relative_to(common.ROOT)) + summary(folder) + before(folder)
    return text + "".join(section(folder, run) for run in RUNS) + pairings()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", default=common.shown("halo"), help="the folder (%(default)s)")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    folder = Path(options.results).resolve()
    if not any(load(folder, run)[1] for run in RUNS):
        parser.error(f"no results of run_halo.py in {folder}")
    common.write_page("HALOS.md", page(folder), options.check, "make_halo_tables.py")


if __name__ == "__main__":
    main()
