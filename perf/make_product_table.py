#!/usr/bin/env python3
"""Writes perf/PRODUCTS.md from a result of run_products.py."""
import argparse
from pathlib import Path

import common

HEAD = """# What does a whole matrix-vector product take on one node?

Made by `perf/make_product_table.py` from `{file}`,
which `perf/run_products.py` wrote; commit {commit}, {processor}, {cores} cores, {mpi}. Each sample runs all variants in
turn; times are medians of {samples} samples, in microseconds, of the slowest rank. "Komvos" is what a user gets: shared
memory or messages as the tuner decides, overlap as the first products show. Ratios are medians of ratios within a sample;
below 1 Komvos is faster. "Of reading" compares with a loop that only reads as many bytes as the product must read and
write at the least (`leastProductBytes`): 1 would be as fast as memory. With 4 ranks, two share a core. Tpetra with Isend
uses the matrix that Tpetra has just used: where the caches hold it, it has that for an advantage over all others.

{summary}
"""


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
        yield [f"{run['numbering']}", str(run["ranks"]), str(result["columns"]),
               f"{1e6 * variant_of(result, 'tpetra')['seconds']:,.0f}",
               "-" if petsc is None else f"{1e6 * petsc['seconds']:,.0f}", f"{1e6 * komvos['seconds']:,.0f}",
               text(ratio(result, "tpetra")), text(ratio(result, "tpetra-isend")), text(ratio(result, "petsc")),
               text(ratio(result, "read")), result["overlap"]]


def summary(report):
    results = [result for run in report["runs"] for result in run["results"]]
    lines = []
    for name, label in (("tpetra", "Tpetra"), ("tpetra-isend", "Tpetra, Isend"), ("petsc", "PETSc")):
        ratios = sorted(one for one in (ratio(result, name) for result in results) if one is not None)
        if ratios:
            slower = sum(one > 1 for one in ratios)
            lines.append(f"- against {label}: {ratios[0]:.2f} to {ratios[-1]:.2f}, median "
                         f"{ratios[len(ratios) // 2]:.2f}; Komvos is slower in {slower} of {len(ratios)} cases")
    return "\n".join(lines)


def page(path):
    report = common.read_results(path)
    parts = [HEAD.format(file=path.relative_to(common.ROOT), summary=summary(report),
                         **{key: report[key] for key in ("commit", "processor", "cores", "mpi", "samples")})]
    head = ["numbering", "ranks", "columns", "Tpetra", "PETSc", "Komvos", "of Tpetra", "of Isend", "of PETSc",
            "of reading", "overlap"]
    titles = []
    for run in report["runs"]:
        title = (run["problem"].split(",")[0].split(" ")[0], run["size"])
        if title not in titles:
            titles.append(title)
    for name, size in titles:
        runs = [run for run in report["runs"] if run["problem"].split(",")[0].split(" ")[0] == name and
                run["size"] == size]
        sizes = ", ".join(f"{run['ranks']} ranks: {run['rows']:,} rows, {run['entries']:,} entries"
                          for run in runs if run["numbering"] == "natural")
        rows = [row for run in runs for row in rows_of(run)]
        table = common.markdown_table(head, rows, ["---", *["--:"] * (len(head) - 2), "---"])
        parts.append(f"\n## {name}, {size}\n\n{sizes}\n\n{table}")
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
