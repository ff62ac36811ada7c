#!/usr/bin/env python3
"""Writes perf/ROWS.md and rows.svg from the results of run_row_transfer.py."""
import argparse
import io

import common

HEAD = """# How fast do rows of a matrix move?

Made by `perf/make_row_transfer_page.py` from the JSON files that `perf/run_row_transfer.py` wrote to `{folder}`;
commit {commit}, {processor}, {cores} cores, {samples} samples in turn unless it says otherwise. N rows on each rank with n
entries each, columns all over the matrix. Times are medians, in microseconds; ratios to Tpetra's are medians of ratios within a sample, others ratios of medians.

"pack" and "unpack" are local: all rows of a rank into one message and back. Tpetra's are `packCrsMatrixNew` and
`unpackCrsMatrixAndCombineNew` (REPLACE, into a matrix that has the graph); ours are the kernels of
`RowTransfer::transfer()`, columns and values, and those of `transferValues()`. "memcpy" copies the bytes of our message,
which is the limit. "moved" is a whole transfer: `importAndFillCompleteCrsMatrix` against `transfer()`, and `doImport` into
a matrix with the graph against `transferValues()`, along the lists of an earlier transfer.

![Packing and unpacking](rows.svg)

What it shows: {reading}
"""
READING = """on one thread, from 10,000 rows on, packing takes {pack} of Tpetra's time. Unpacking takes {unpack}, but of
other work: Tpetra's finds each column in the graph of a matrix, ours are arrays of global columns, which a transfer looks
up afterwards. They reach
{pack_limit} and {unpack_limit} of the speed of memcpy, and {values_pack_limit} and {values_unpack_limit} for values alone.
Tpetra's packing is close to memcpy too. A whole transfer takes {moved} of Tpetra's time ({moved_others} for permuted and uneven matrices), for it
also finds the columns of the new matrix, and MPI moves the same bytes; values alone take {moved_values}
({moved_values_others}). From 10,000 rows on, those that stay on their rank take {stay} of Tpetra's time, and {stay_copies} times that of copying the arrays of the
matrix, for the new one has memory of its own; values alone {stay_values} times. Permuted and uneven ones take {stay_copies_others} and
{stay_values_others} times a copy: a row of 5 entries costs more than its entries. {elements:,} elements are assembled
in {first} of FECrsMatrix' time at first, {second} and in {again} of it again. Below 1,000 rows, starting threads and lists cost
more than they save. Neither a GPU nor more cores were at hand."""

OTHERS = {
    "serial-trilinos-16.1": (
        "One rank, Trilinos 16.1", "Of Debian sid, with its compiler. This Tpetra does not know the variable "
        "TPETRA_USE_NEW_COPY_AND_PERMUTE: it\nrefuses to start with it."),
    "serial-trilinos-17.0": ("One rank, Trilinos 17.0", "Of Debian experimental, with its compiler."),
    "serial-trilinos-17.0-new-copy-and-permute": (
        "One rank, Trilinos 17.0 with TPETRA_USE_NEW_COPY_AND_PERMUTE", "The same with that variable set to 1, for "
        "Tpetra and for ours."),
}


def ways(case, group):
    return {one["way"]: one for one in case["results"] if one["group"] == group}


def label(case):
    names = {"sweep": "", "permuted": "permuted, ", "dense-rows": "4 rows half full, else "}
    return f"{names[case['problem']]}{case['rows_per_rank']:,} rows of {case['entries_per_row']}"


def span(values):
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def local_rows(cases, group):
    for case in cases:
        of = ways(case, group)
        us = {name: 1e6 * one["seconds"] for name, one in of.items()}
        yield [label(case), *(f"{us[name]:,.0f}" for name in ("Tpetra", "Komvos", "memcpy")),
               f"{of['Komvos']['of_tpetra']:.2f}", f"{us['memcpy'] / us['Komvos']:.2f}",
               f"{us['Komvos, values alone']:,.0f}", f"{us['memcpy, values alone'] / us['Komvos, values alone']:.2f}"]


def moved_rows(cases, names=("Tpetra", "Komvos")):
    for case in cases:
        cells = [label(case)]
        for of in (ways(case, "transfer"), ways(case, "transfer values")):
            cells += [*(f"{1e6 * of[name]['seconds']:,.0f}" for name in names), f"{of['Komvos']['of_tpetra']:.2f}"]
        yield cells


def other_rows(cases):
    """With another Trilinos: packing and unpacking, and rows that stay."""
    for case in cases:
        cells = [label(case)]
        for group in ("pack", "unpack", "transfer", "transfer values"):
            of = ways(case, group)
            cells += [f"{1e6 * of['Tpetra']['seconds']:,.0f}", f"{of['Komvos']['of_tpetra']:.2f}"]
        yield cells


def table(head, rows):
    return common.markdown_table(head, rows, ["---", *["--:"] * (len(head) - 1)])


def reading(serial, moved, assembly):
    large = [case for case in serial if case["problem"] == "sweep" and case["rows_per_rank"] >= 10000]
    far = [case for case in moved if case["problem"] == "sweep" and case["rows_per_rank"] >= 10000]
    others = [case for case in moved if case["problem"] != "sweep"]
    other_stays = [case for case in serial if case["problem"] != "sweep"]

    def ratio(cases, group):
        return span([ways(case, group)["Komvos"]["of_tpetra"] for case in cases])

    def limit(group, tail=""):
        return span([ways(case, group)["memcpy" + tail]["seconds"] / ways(case, group)["Komvos" + tail]["seconds"]
                     for case in large])

    def copies(cases, group):
        return span([ways(case, group)["Komvos"]["seconds"] / ways(case, group)["memcpy"]["seconds"] for case in cases])

    most = max(assembly, key=lambda case: case["elements"])
    by = {one["way"]: one for one in most["results"]}

    def of_fe(key):
        return f"{by['Komvos, RowTransfer'][key] / by['Tpetra, FECrsMatrix'][key]:.2f}"

    return READING.format(stay=ratio(large, "transfer"), stay_copies=copies(large, "transfer"),
                          stay_values=copies(large, "transfer values"),
                          stay_copies_others=copies(other_stays, "transfer"),
                          stay_values_others=copies(other_stays, "transfer values"), elements=most["elements"], first=of_fe("first_seconds"),
                          second=of_second(by), again=of_fe("again_seconds"), pack=ratio(large, "pack"), unpack=ratio(large, "unpack"), pack_limit=limit("pack"),
                          unpack_limit=limit("unpack"), values_pack_limit=limit("pack", ", values alone"),
                          values_unpack_limit=limit("unpack", ", values alone"), moved=ratio(far, "transfer"),
                          moved_values=ratio(far, "transfer values"),
                          moved_others=ratio(others, "transfer"),
                          moved_values_others=ratio(others, "transfer values"))


def of_second(by):
    if "second_seconds" not in by["Komvos, RowTransfer"]:
        return "the second time slower, as lists for values alone are made (not timed on its own),"
    ratio = by["Komvos, RowTransfer"]["second_seconds"] / by["Tpetra, FECrsMatrix"]["second_seconds"]
    return f"in {ratio:.2f} of it the second time, when lists for values alone are made,"


def assembly_rows(cases):
    for case in cases:
        for one in case["results"]:
            cells = [f"{case['elements']:,}", one["way"]]
            for which in ("first", "second", "again"):
                known = f"{which}_seconds" in one
                cells += [f"{1e3 * one[f'{which}_seconds']:,.1f}" if known else "-",
                          f"{one[f'{which}_of_export']:.2f}" if known else "-"]
            yield [*cells, str(case["samples"])]


def page(folder, reports):
    serial, moved = reports["serial"]["cases"], reports["moved"]["cases"]
    parts = [HEAD.format(folder=folder.relative_to(common.ROOT), commit=reports["serial"]["commit"],
                         processor=reports["serial"]["processor"], cores=reports["serial"]["cores"],
                         samples=serial[0]["samples"], reading=reading(serial, moved, reports["assembly"]["cases"]))]
    head = ["rows", "Tpetra", "Komvos", "memcpy", "of Tpetra's", "of memcpy's speed", "values alone", "of memcpy's speed"]
    for name, title in (("serial", "one rank, one thread"), ("openmp", "one rank, two threads (OpenMP)")):
        if name in reports:
            for group in ("pack", "unpack"):
                at = reports[name]["commit"]
                title_at = title if at == reports["serial"]["commit"] else f"{title} (commit {at})"
                parts.append(f"\n## {group.capitalize()}, {title_at}\n\n"
                             + table(head, local_rows(reports[name]["cases"], group)))
    head = ["rows", "Tpetra", "Komvos", "of Tpetra's", "values: Tpetra", "Komvos", "of Tpetra's"]
    parts.append("\n## Moved between two ranks\n\n" + table(head, moved_rows(moved)))
    head = ["rows", "Tpetra", "Komvos", "memcpy", "of Tpetra's", "values: Tpetra", "Komvos", "memcpy", "of Tpetra's"]
    parts.append("\n## Rows that stay on the rank, and permuted ones\n\n\"memcpy\" copies the arrays of the matrix into memory "
                 "that is there; a transfer makes a new matrix,\nwith its maps.\n\n"
                 + table(head, moved_rows(serial, ("Tpetra", "Komvos", "memcpy"))))
    head = ["rows", "pack: Tpetra", "Komvos of it", "unpack: Tpetra", "Komvos of it", "rows that stay: Tpetra",
            "Komvos of it", "values: Tpetra", "Komvos of it"]
    for name, (title, which) in OTHERS.items():
        if name in reports:
            at = reports[name]["commit"]
            title_at = title if at == reports["serial"]["commit"] else f"{title} (commit {at})"
            parts.append(f"\n## {title_at}\n\n{which}\n\n" + table(head, other_rows(reports[name]["cases"])))
    parts.append("\n## Assembly of finite elements, two ranks\n\nHeat conduction on hexahedra in slabs; milliseconds, element "
                 "matrices included. \"second\" and \"again\" are with new values; the second time ours makes lists for "
                 "values\nalone.\n\n")
    parts.append(table(["elements", "by", "first", "of doExport's", "second", "of doExport's", "again", "of doExport's",
                        "samples"],
                       assembly_rows(reports["assembly"]["cases"])))
    return "".join(parts)


def picture(reports):
    """Time for an entry over rows, for each way."""
    plt = common.pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.4), sharey=True)
    colours = {"Tpetra": "#d55e00", "Komvos": "#0072b2", "memcpy": "#999999"}
    cases = [case for case in reports["serial"]["cases"] if case["problem"] == "sweep"]
    for axis, group in zip(axes, ("pack", "unpack")):
        for name, colour in colours.items():
            for entries, style in ((50, "-"), (100, "--")):
                chosen = [case for case in cases if case["entries_per_row"] == entries]
                axis.plot([case["rows_per_rank"] for case in chosen],
                          [1e9 * ways(case, group)[name]["seconds"] / case["rows_per_rank"] / entries for case in chosen],
                          style, color=colour, label=f"{name}, {entries} entries a row")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(group)
        axis.set_xlabel("rows")
        axis.grid(True, color="#dddddd", linewidth=0.5)
    axes[0].set_ylabel("ns for an entry")
    axes[1].legend(fontsize=7, loc="upper right")
    figure.tight_layout()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    folder = common.shown("rows")
    found = list(folder.glob("*-rows-*.json"))
    if not found:
        parser.error(f"no result of run_row_transfer.py in {folder}")
    runs = sorted({file.name.split("-rows-")[1] for file in found})
    files = [common.newest(file for file in found if file.name.endswith("-rows-" + run)) for run in runs]
    reports = {report["run"]: report for report in map(common.read_results, files)}
    common.write_page("ROWS.md", page(folder, reports), options.check, "make_row_transfer_page.py")
    if not options.check:
        common.write(common.PERF / "rows.svg", picture(reports))


if __name__ == "__main__":
    main()
