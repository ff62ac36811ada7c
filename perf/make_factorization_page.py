#!/usr/bin/env python3
"""Writes perf/FACTORIZATIONS.md and perf/look_ahead.svg from a result of run_factorizations.py."""
import argparse
import io

import common

HEAD = """# Does the time of a factorization depend on how much MPI buffers?

Made by `perf/make_factorization_page.py` from `{file}`, which `perf/run_factorizations.py` wrote; commit {commit},
processor {processor}, {cores} cores, which all ranks share. Seconds of the numerical factorization, medians of {samples}
samples in {rounds}; 7-point Laplacians on cubes that grow with the ranks. Columns: Open MPI's eager limit in bytes,
of shared memory and TCP alike. It refuses 0; with 64 no message is eager, with 8 MB all are. Spread: by how much the
longest time exceeds the shortest.

INRIA RR-4372 asked this of MUMPS and SuperLU on a Cray T3E, whose MPI buffered all messages or those to 4 KB. With
blocking sends SuperLU took up to 1.74 times as long with 4 KB (its Table 7: 108.2 s against 62.3 on 2 processors); with
immediate sends and receives that are posted early 1.00 to 1.04 times (Table 8). Here the limit matters little inside a
host, where the longest time exceeds the shortest by at most {inside}. Between hosts it does: by at most {between}.

{table}
## Looking ahead

SuperLU_DIST factors so many panels ahead of the updates that they wait for (its `num_lookaheads`; 1 is as good as none).
Shares of time that ranks spend waiting in MPI, of one factorization on {ranks} ranks, each on a host and a core of its own,
no message eager: {shares}.

![What ranks do during a factorization, with and without looking ahead](look_ahead.svg)
"""


def rows_of(results):
    for one in sorted(results, key=lambda one: (one["ranks"], one["hosts"], one["method"], one["look_ahead"])):
        name = one["library"] + (f", look-ahead {one['look_ahead']}" if one["method"] == "superlu-dist" else "")
        yield [f"{one['ranks']} on {one['hosts']}", one["problem"].split(" ", 1)[1], name,
               f"{one['operations'] / 1e9:.1f}", *(f"{seconds:.2f}" for seconds in one["median_seconds"].values()),
               f"{100 * one['spread']:.0f} %"]


def share_of(line):
    shares = [share for rank in line["shares_waiting"] for share in rank]
    return sum(shares) / len(shares)


def largest_spreads(results):
    """Of each library, the largest spread among these results."""
    spreads = {}
    for one in results:
        spreads[one["library"]] = max(spreads.get(one["library"], 0), one["spread"])
    return " and ".join(f"{100 * spread:.0f} % ({library})" for library, spread in sorted(spreads.items()))


def page(report, file):
    limits = list(report["results"][0]["median_seconds"])
    table = common.markdown_table(
        ["ranks, hosts", "grid", "library", "billion operations", *limits, "spread"], rows_of(report["results"]),
        ["---", "---", "---", *["--:"] * (len(limits) + 2)])
    lines = report["lines_of_time"]
    shares = ", ".join(f"{100 * share_of(line):.0f} % with a look-ahead of {line['look_ahead']} "
                       f"({line['recorded_seconds']:.2f} s)" for line in lines)
    return HEAD.format(file=file.relative_to(common.ROOT), commit=report["commit"], **report["machine"],
                       samples=report["rounds"] * report["samples_per_round"], table=table,
                       rounds=f"{report['rounds']} round{'s' if report['rounds'] > 1 else ''}",
                       ranks=lines[0]["ranks"], shares=shares,
                       inside=largest_spreads(one for one in report["results"] if one["hosts"] == 1),
                       between=largest_spreads(one for one in report["results"] if one["hosts"] > 1))


def picture(report):
    pyplot = common.pyplot()
    lines = report["lines_of_time"]
    longest = max(line["recorded_seconds"] for line in lines)
    figure, panels = pyplot.subplots(len(lines), 1, sharex=True, figsize=(9, 1 + 1.5 * len(lines)), squeeze=False)
    for panel, line in zip(panels[:, 0], lines):
        slices = len(line["shares_waiting"][0])
        width = line["recorded_seconds"] / slices
        for rank, shares in enumerate(line["shares_waiting"]):
            lefts = [i * width for i in range(slices)]
            panel.bar(lefts, [0.8] * slices, width, bottom=rank - 0.4, align="edge", color="#999999", linewidth=0)
            panel.bar(lefts, [0.8 * min(1, share) for share in shares], width, bottom=rank - 0.4, align="edge",
                      color="#d55e00", linewidth=0)
        panel.set_title(f"{line['library']}, look-ahead {line['look_ahead']}", fontsize=10, loc="left")
        panel.set_yticks(range(len(line["shares_waiting"])))
        panel.set_ylabel("rank")
        panel.set_xlim(0, longest)
    panels[-1, 0].set_xlabel("seconds; grey: work, orange: share of a slice of time that is spent waiting in MPI")
    figure.tight_layout()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    file = common.newest(common.RESULTS.glob("*/*-factorizations.json"))
    if file is None:
        parser.error(f"no result of run_factorizations.py in {common.RESULTS}")
    report = common.read_results(file)
    common.write_page("FACTORIZATIONS.md", page(report, file), options.check, "make_factorization_page.py")
    if not options.check:
        common.write(common.PERF / "look_ahead.svg", picture(report))


if __name__ == "__main__":
    main()
