#!/usr/bin/env python3
"""Writes perf/AMG_SOLVES.md from the results of run_amg_solves.py."""
import argparse

import common

HEAD = """# Whole solves with algebraic multigrid: MueLu, Komvos, PETSc

Made by `perf/make_amg_table.py` from the JSON files that `perf/run_amg_solves.py` wrote to `{folder}`;
commit {commit}, {processor}, {cores} cores. Conjugate gradients until the true residual is {tolerance:g} of the right-hand
side, the same matrices, partition and tolerance for all. "MueLu" is MueLu with Tpetra's exchanges, "Komvos" the same with
`use node-aware` and the defaults, nothing known before, "off" without tuning; all with the same coarse solver.
"Repartitioned" has coarse levels of fewer than 500 rows a rank on fewer ranks (`repartition: enable`), as GAMG does by
default.
PETSc's GAMG and hypre's BoomerAMG run with PETSc's defaults; GAMG is told the near null space. Milliseconds, medians of
{samples} samples in turn; set-up is that of halos and preconditioner, the matrix is there. Ratios to MueLu are medians of
ratios within a sample.

What it shows: Komvos takes a fifth to a half off MueLu's solve phase, and a whole run is never slower than MueLu's. In 11
iterations set-up is most of it, and that is MueLu's. In so few iterations, trying routes does not pay: "off" is a little
faster. PETSc's GAMG needs fewer iterations, and less time for them than MueLu; less than Komvos on 16 ranks, and on the
surface of a body (body_heat) on 4, else more on 4. Its set-up is slower than MueLu's, but for elasticity on 16 ranks and on that surface.
Repartitioned, MueLu's set-up for elasticity on 16 ranks is a third shorter, and a whole run with Komvos shorter than with
GAMG; for rotated anisotropy and on one node that does not help. BoomerAMG takes a fifth of the iterations on rotated anisotropy, which is a matter of the method, and wins
there and on the surface; its set-up is the slowest elsewhere, but for laplace3d on one node.
"""
NAMES = {"MueLu": "MueLu", "komvos": "Komvos", "komvos, tuning off": "Komvos, off",
         "MueLu, repartitioned": "MueLu, repartitioned", "komvos, repartitioned": "Komvos, repartitioned",
         "PETSc, gamg": "PETSc, GAMG", "PETSc, hypre": "PETSc, hypre"}


def rows_of(report, newest):
    older = "" if report["commit"] == newest else f" (commit {report['commit']})"
    for one in report["results"]:
        yield [report["problem"] + older, NAMES[one["variant"]], str(one["iterations"]), f"{1e3 * one['set_up_seconds']:,.0f}",
               f"{1e3 * one['solve_seconds']:,.0f}", f"{1e3 * one['whole_seconds']:,.0f}",
               f"{one['solve_of_muelu']:.2f}", f"{one['whole_of_muelu']:.2f}"]


def page(folder, files):
    reports = [common.read_results(file) for file in files]
    first = reports[0]
    parts = [HEAD.format(folder=folder.relative_to(common.ROOT), commit=common.commits_of(reports), processor=first["processor"],
                         cores=first["cores"], samples=first["samples"], tolerance=first["tolerance"])]
    head = ["problem", "by", "iterations", "set-up", "solve", "whole", "solve of MueLu's", "whole of MueLu's"]
    for network, ranks in dict.fromkeys((report["network"], report["ranks"]) for report in reports):
        rows = [row for report in reports if (report["network"], report["ranks"]) == (network, ranks)
                for row in rows_of(report, first["commit"])]
        table = common.markdown_table(head, rows, ["---", "---", *["--:"] * (len(head) - 2)])
        parts.append(f"\n## {network[0].upper()}{network[1:]}, {ranks} ranks\n\n{table}")
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    files = common.newest_of_each("amg")
    if not files:
        parser.error(f"no result of run_amg_solves.py in {common.shown('amg')}")
    common.write_page("AMG_SOLVES.md", page(files[0].parent, files), options.check, "make_amg_table.py")


if __name__ == "__main__":
    main()
