#!/usr/bin/env python3
"""Writes perf/PRODUCTS.md from a result of run_products.py."""
import argparse
import statistics
from pathlib import Path

import common

HEAD = """# What does a whole matrix-vector product take on one node?

Made by `perf/make_product_table.py` from `{file}`,
which `perf/run_products.py` wrote; commit {commit}, {processor}, {cores} cores, {mpi}. Each sample runs all variants in
turn; times are medians of {samples} samples, in microseconds, of the slowest rank. "Komvos" is what a user gets who sets
nothing, once online tuning and the choice of overlap have settled; "tuned" is its time over that of a matrix that was
tuned before, with room for all columns in shared memory. Ratios are medians of ratios within a sample; below 1 Komvos is
faster. "MB" is what a product must read and write at the least on a rank (`leastProductBytes`, 10^6 bytes), GB/s that over
Komvos' time; "of reading" compares with a loop that only reads as many bytes: 1 would be as fast as memory. With 4 ranks,
two share a core. {order}Matrices beyond the caches without a good numbering are slow with any library: 1 and 2 ranks,
and 1 and 3 columns, stand for them. One rank needs no partition by a graph, and a random matrix has one numbering.

The goal is to be no slower than any of the others. {verdict}

{summary}
"""


REASONS = """Where each entry of x is in a cache line of its own, waiting for x is most of a product with one column. Where x
is larger than 1 MiB it is prefetched, or, where rows are long, loops are not unrolled, which was found to be faster; that
does not make up for all of it. PETSc multiplies owned entries and ghosts one after the other, and so
reads from half of x at a time.
"""

# Of results from before the order was drawn anew in each sample.
ROTATION = """The order of the variants is rotated, so that each
follows the same one: where the caches hold a matrix, Tpetra with Isend finds what Tpetra has just read there, and "tuned"
what Komvos has. """

TUNED = "komvos, tuned before"
SLOWER = 1.02  # noise is below


def variant_of(result, name):
    return next((one for one in result["variants"] if one["name"] == name), None)


def ratio(result, name):
    """Komvos' time over that of another variant; None without it."""
    return result["komvos_of"].get(name)


def text(number):
    return "-" if number is None else f"{number:.2f}"


def rows_of(run):
    for result in run["results"]:
        komvos = variant_of(result, "komvos")
        petsc = variant_of(result, "petsc")
        megabytes = result["least_bytes"] / 1e6
        yield [f"{run['numbering']}", str(run["ranks"]), str(result["columns"]),
               f"{1e6 * variant_of(result, 'tpetra')['seconds']:,.0f}",
               "-" if petsc is None else f"{1e6 * petsc['seconds']:,.0f}", f"{1e6 * komvos['seconds']:,.0f}",
               text(ratio(result, "tpetra")), text(ratio(result, "tpetra-isend")), text(ratio(result, "petsc")),
               text(ratio(result, TUNED)), f"{megabytes:.1f}", f"{megabytes / 1e3 / komvos['seconds']:.1f}",
               text(ratio(result, "read")), result["overlap"]]


def summary(report):
    results = [result for run in report["runs"] for result in run["results"]]
    lines = []
    for name, label in (("tpetra", "Tpetra"), ("tpetra-isend", "Tpetra, Isend"), ("petsc", "PETSc")):
        ratios = sorted(one for one in (ratio(result, name) for result in results) if one is not None)
        if ratios:
            slower = sum(one > 1 for one in ratios)
            lines.append(f"- against {label}: {ratios[0]:.2f} to {ratios[-1]:.2f}, median "
                         f"{statistics.median(ratios):.2f}; Komvos is slower in {slower} of {len(ratios)} cases")
    return "\n".join(lines)


def losses(report):
    """(problem, size, ...) of all cases in which Komvos is slower than one of the others."""
    rows = []
    for run in report["runs"]:
        for result in run["results"]:
            ratios = [ratio(result, name) for name in ("tpetra", "tpetra-isend", "petsc")]
            if max(one or 0 for one in ratios) > SLOWER:
                rows.append([run["problem"].split(",")[0].split(" ")[0], run["size"], run["numbering"], str(run["ranks"]),
                             str(result["columns"]), *(text(one) for one in ratios), text(ratio(result, "read"))])
    return rows


def loss_table(report):
    head = ["problem", "size", "numbering", "ranks", "columns", "of Tpetra", "of Isend", "of PETSc", "of reading"]
    table = common.markdown_table(head, losses(report), ["---", "---", "---", *["--:"] * 6])
    return f"\n## Where Komvos is slower, by more than {100 * (SLOWER - 1):.0f} %\n\n{REASONS}\n{table}"


def page(path):
    report = common.read_results(path)
    total = sum(len(run["results"]) for run in report["runs"])
    verdict = f"It is missed by more than {100 * (SLOWER - 1):.0f} % in {len(losses(report))} of {total} cases."
    parts = [HEAD.format(file=path.relative_to(common.ROOT), summary=summary(report), verdict=verdict,
                         order="" if all("order" in run for run in report["runs"]) else ROTATION,
                         **{key: report[key] for key in ("commit", "processor", "cores", "mpi", "samples")})]
    head = ["numbering", "ranks", "columns", "Tpetra", "PETSc", "Komvos", "of Tpetra", "of Isend", "of PETSc",
            "tuned", "MB", "GB/s", "of reading", "overlap"]
    titles = []
    for run in report["runs"]:
        title = (run["problem"].split(",")[0].split(" ")[0], run["size"])
        if title not in titles:
            titles.append(title)
    for name, size in titles:
        runs = [run for run in report["runs"] if run["problem"].split(",")[0].split(" ")[0] == name and
                run["size"] == size]
        sizes = ", ".join(f"{run['ranks']} rank{'s' if run['ranks'] > 1 else ''}: {run['rows']:,} rows, {run['entries']:,} entries"
                          for run in runs if run["numbering"] == "natural")
        rows = [row for run in runs for row in rows_of(run)]
        table = common.markdown_table(head, rows, ["---", *["--:"] * (len(head) - 2), "---"])
        parts.append(f"\n## {name}, {size}\n\n{sizes}\n\n{table}")
    parts.append(loss_table(report))
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", nargs="?", help="the file; otherwise the newest")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    path = common.newest(common.RESULTS.glob("*/*-products.json"))
    if options.result:
        path = Path(options.result).resolve()
    if path is None:
        parser.error(f"no result of run_products.py in {common.RESULTS}")
    common.write_page("PRODUCTS.md", page(path), options.check, "make_product_table.py")


if __name__ == "__main__":
    main()
