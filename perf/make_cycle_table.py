#!/usr/bin/env python3
"""Writes perf/V_CYCLES.md from the results of run_v_cycles.py."""
import argparse

import common

HEAD = """# What do node-aware exchanges gain in MueLu's V-cycles?

Made by `perf/make_cycle_table.py` from the JSON files that `perf/run_v_cycles.py` wrote to `{folder}`;
commit {commit}, {processor}, {cores} cores. "MueLu" is MueLu with Tpetra's exchanges, "Komvos" the same hierarchy after
`makeNodeAware` with the defaults, tuned online with nothing known before, "off" without tuning: persistent requests
along the standard route, by shared memory on nodes. All solve the coarsest level by the same solver. Times are of the
cycles, in milliseconds, medians of {samples} samples. Ratios to MueLu are medians of ratios within a sample: of cycles,
with `makeNodeAware` added, and with all of MueLu's set-up, which is the same for all and noisy.
"""


def rows_of(report):
    by_name = {result["variant"]: result for result in report["results"]}
    stock, online, off = (by_name[name] for name in ("MueLu", "komvos", "komvos, tuning off"))
    for i, time in enumerate(online["times"]):
        yield [report["problem"], str(time["cycles"]), f"{1e3 * stock['muelu_set_up_seconds']:,.0f}",
               f"{1e3 * online['conversion_seconds']:.0f}",
               *(f"{1e3 * one['times'][i]['seconds']:,.0f}" for one in (stock, online, off)),
               f"{time['of_muelu']:.2f}", f"{time['of_muelu_with_conversion']:.2f}",
               f"{time['of_muelu_with_set_up']:.2f}", f"{off['times'][i]['of_muelu']:.2f}",
               f"{off['times'][i]['of_muelu_with_conversion']:.2f}"]


def page(folder, files):
    reports = [common.read_results(file) for file in files]
    first = reports[0]
    parts = [HEAD.format(folder=folder.relative_to(common.ROOT), commit=common.commits_of(reports), processor=first["processor"],
                         cores=first["cores"], samples=first["samples"])]
    head = ["problem", "cycles", "MueLu's set-up", "`makeNodeAware`", "MueLu", "Komvos", "off", "Komvos of MueLu",
            "with `makeNodeAware`", "with set-up", "off of MueLu", "with `makeNodeAware`"]
    networks = list(dict.fromkeys((report["network"], report["ranks"]) for report in reports))
    for network, ranks in networks:
        rows = [row for report in reports if (report["network"], report["ranks"]) == (network, ranks)
                for row in rows_of(report)]
        table = common.markdown_table(head, rows, ["---", *["--:"] * (len(head) - 1)])
        parts.append(f"\n## {network[0].upper()}{network[1:]}, {ranks} ranks\n\n{table}")
    return "".join(parts) + levels(reports) + reuse(reports)


LEVELS = """
## By level

A cycle on each level, in milliseconds, by MueLu's timers, which stop while the cycle is on a coarser one; the coarsest
is the direct solve. Means over ranks, for a rank that waits does so on some level; medians of {samples} samples, of all cycles,
those in which routes are tried included. Ratios are medians of ratios within a sample.

"""


def levels(reports):
    rows = []
    for report in reports:
        by_name = {result["variant"]: result for result in report["results"]}
        stock, online, off = (by_name[name].get("levels", []) for name in ("MueLu", "komvos", "komvos, tuning off"))
        for of_stock, of_online, of_off in zip(stock, online, off):
            rows.append([report["problem"], f"{report['network']}, {report['ranks']} ranks", str(of_stock["level"]),
                         *(f"{1e3 * one['seconds']:.2f}" for one in (of_stock, of_online, of_off)),
                         f"{of_online['of_muelu']:.2f}", f"{of_off['of_muelu']:.2f}"])
    if not rows:
        return ""
    head = ["problem", "network", "level", "MueLu", "Komvos", "off", "Komvos of MueLu", "off of MueLu"]
    return LEVELS.format(samples=reports[0]["samples"]) + common.markdown_table(head, rows, ["---", "---", *["--:"] * 6])


REUSE = """
## Set up again

Two matrices on equal graphs in turn, set up again by `MueLu::ReuseTpetraPreconditioner` as far as `reuse: type` RP says;
then `makeNodeAware`, which reuses its exchanges. Milliseconds, medians of {samples} samples.

"""


def reuse(reports):
    rows = []
    for report in reports:
        if "reuse" in report:
            online = next(result for result in report["results"] if result["variant"] == "komvos")
            again = report["reuse"]
            rows.append([report["problem"], f"{report['network']}, {report['ranks']} ranks",
                         f"{1e3 * again['muelu_seconds']:.0f}", f"{1e3 * online['conversion_seconds']:.1f}",
                         f"{1e3 * again['conversion_seconds']:.1f}"])
    if not rows:
        return ""
    head = ["problem", "network", "MueLu", "`makeNodeAware` the first time", "again"]
    return REUSE.format(samples=reports[0]["samples"]) + common.markdown_table(head, rows, ["---", "---", "--:", "--:", "--:"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    files = common.newest_of_each("cycles")
    if not files:
        parser.error(f"no result of run_v_cycles.py in {common.shown('cycles')}")
    common.write_page("V_CYCLES.md", page(files[0].parent, files), options.check, "make_cycle_table.py")


if __name__ == "__main__":
    main()
