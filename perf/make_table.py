#!/usr/bin/env python3
"""Writes the table of README.md, between its markers, from result files of perf_spmv.

usage: perf/make_table.py [--check] RESULT.json...     (--check: exit 1 if README.md is not up to date)
"""
import json
import pathlib
import sys

BEGIN, END = "<!-- spmv table: perf/make_table.py -->", "<!-- end of table -->"
README = pathlib.Path(__file__).resolve().parent.parent / "README.md"


def microseconds(entry, name):
    return f"{1e6 * entry['seconds'][name]['median']:,.0f}"


def messages(entry):
    if "standard" not in entry:
        return "0", "0"
    return tuple(f"{entry[route]['inter_node']['messages_total']:,}" for route in ("standard", "three_step"))


def rows(report):
    for entry in report["results"]:
        before, after = messages(entry)
        gain = entry["gain"]
        shown = f"**{gain:.1f}x**" if gain >= 1.05 else f"{gain:.2f}x"
        yield (f"| {entry['name']} | {entry['rows']:,} | {before} | {after} | {microseconds(entry, 'tpetra')} "
               f"| {microseconds(entry, 'tpetra-isend')} | {microseconds(entry, 'standard')} "
               f"| {microseconds(entry, 'three-step')} | {shown} over {entry['best_baseline']} |")


def table(paths):
    lines = [BEGIN]
    for path in paths:
        report = json.loads(pathlib.Path(path).read_text())
        machine, parameters = report["machine"], report["parameters"]
        lines += [f"Network: {machine['network']}; {machine['topology']}; medians of {parameters['samples']} samples of "
                  f"{parameters['products_per_sample']} products; commit {report['commit']}.", "",
                  "| matrix | rows | messages between nodes, standard | three-step | Tpetra, us | Tpetra Isend | "
                  "standard, persistent | three-step | gain (median of ratios) |",
                  "|---|--:|--:|--:|--:|--:|--:|--:|---|", *rows(report), ""]
    return "\n".join(lines + [END])


def main(arguments):
    check = "--check" in arguments
    paths = [a for a in arguments if a != "--check"]
    if not paths:
        sys.exit(__doc__)
    text = README.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{README.name} has no lines '{BEGIN}' and '{END}'")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    updated = before + table(paths) + after
    if check:
        sys.exit(0 if updated == text else "README.md does not show these results")
    temporary = README.with_suffix(".tmp")
    temporary.write_text(updated)
    temporary.replace(README)


if __name__ == "__main__":
    main(sys.argv[1:])
