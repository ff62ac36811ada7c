#!/usr/bin/env python3
"""Writes perf/MULTIGRID_TRAFFIC.md from the results of run_multigrid_traffic.py."""
import argparse

import common

HEAD = """# What a run with MueLu sends, by part

Made by `perf/make_traffic_page.py` from the JSON files that `perf/run_multigrid_traffic.py` wrote to `{folder}`; commit
{commit}, {processor}, {cores} cores, {ranks} ranks on 4 hosts of the virtual cluster, plain network. Messages and bytes are
point-to-point, means over ranks; collectives are those of the rank that makes most. Times are means over ranks, in
milliseconds, of one set-up, or of one of 100 cycles. Set-up is MueLu's, by the factory at work, with our coarse solver in
"other". A cycle of Komvos has no message between ranks of a node where shared memory carries them; fractions of a
collective are the non-blocking ones of the tuner.

What remains in set-up, and what would take it away:

- RAPFactory, the triple product R A P, sends most: rows of P for the ghosts of A, then columns of the result, whose
  fillComplete finds its neighbours anew by reductions. Rows could travel along the routes of the halo of A, packed by
  threads; the neighbours of the product follow from those of its factors.
- SaPFactory and Ifpack2Smoother estimate eigenvalues: ten steps of a power method each, a product and a reduction or two a
  step. `chebyshev: max eigenvalue` and `sa: max eigenvalue` name them where they are known; `reuse: type` keeps them.
- TransPFactory makes R, and sends the rows of P that belong to others; `transpose: use implicit` leaves that out.
- AmalgamationFactory, CoarseMapFactory and TentativePFactory reduce and scan numbers of rows, some times a level, and
  wait for the slowest rank there: most of their time is waiting.

`makeNodeAware` itself is one line below each. Its collectives do not grow with the number of halos, but with the number of
communicators: where levels are repartitioned, each has one of its own, which is duplicated and split by nodes.
"""


def phase_rows(report):
    for phase in report["phases"]:
        sums = {"messages": 0, "bytes": 0, "collectives": 0, "mpi_seconds": 0, "seconds": 0}
        for part in phase["parts"]:
            for name in sums:
                sums[name] += part[name]
        for part in [*phase["parts"], {"part": "**all**", **sums}]:
            yield [phase["phase"], part["part"], f"{part['messages']:,.1f}", f"{part['bytes']:,.0f}",
                   f"{part['collectives']:.1f}", f"{1e3 * part['mpi_seconds']:,.1f}", f"{1e3 * part['seconds']:,.1f}"]


def page(folder, files):
    reports = [common.read_results(file) for file in files]
    first = reports[0]
    parts = [HEAD.format(folder=folder.relative_to(common.ROOT), commit=common.commits_of(reports), processor=first["processor"],
                         cores=first["cores"], ranks=first["ranks"])]
    for report in reports:
        moved = ", coarse levels repartitioned onto fewer ranks" if report["repartition"] else ""
        table = common.markdown_table(["phase", "part", "messages", "bytes", "collectives", "ms in MPI", "ms"],
                                      phase_rows(report), ["---", "---", *["--:"] * 5])
        parts.append(f"\n## {report['problem']}{moved}\n\n{table}")
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    files = common.newest_of_each("traffic")
    if not files:
        parser.error(f"no result of run_multigrid_traffic.py in {common.shown('traffic')}")
    common.write_page("MULTIGRID_TRAFFIC.md", page(files[0].parent, files), options.check, "make_traffic_page.py")


if __name__ == "__main__":
    main()
