#!/usr/bin/env python3
"""Writes perf/BICGSTAB.md from the results of run_pipelined_solvers.py, count_bicgstab_bytes.py and
simulate_solvers.py."""
import argparse

import common

HEAD = """# What does pipelined BiCGStab gain?

Made by `perf/make_bicgstab_table.py` from the JSON files that `perf/run_pipelined_solvers.py` wrote to `{folder}`;
commit {commit}, {processor}, {cores} cores. The same system, partition and tolerance ({tolerance:g}) for all, and Jacobi's
preconditioner from the right. "merged" and "pipelined" are variants of `Komvos::PipelinedBiCGStab`; "MPI's reductions"
are those without `Node-Aware Reductions`; "replicated" are those with whole vectors on every rank, timed on hierarchical
matrices only. Belos' and ours run on Tpetra's matrix and on the node-aware one, PETSc's solvers on PETSc's. Each iteration
of each has two products. Medians of samples in turn, 30 on up to 16 ranks and 15 on 64; a sample is a whole solve. Ratios
are medians of ratios within a sample, to Belos' BICGSTAB on Tpetra's matrix: of the time of an iteration, and of a digit
of the true residual. How long PETSc's best takes is the quotient of two of these; ratios to "MPI's reductions", and among the
variants on two spheres, are quotients of median times.

`auto`, the default, takes the pipelined variant between hosts, and the merged one on one node; "by default" is that one, with
Komvos' products.

"""
READING = """What it shows: between hosts, with a partition of the graph, an iteration takes {ours} of Belos' time by default, and the best of
PETSc's takes {petsc_plain} times as long as ours on a plain network, {petsc_cost} times where a message costs 100 us; as
long as the faster of our two variants, {petsc_plain_best} and {petsc_cost_best} times. Most of it is merging reductions and adding up within hosts first: with "MPI's reductions" an iteration takes
{mpi_sums} times as long. Hiding them saves little here, for all ranks share two cores, and a rank that waits leaves its core to others.
Contiguous slabs give every rank two neighbours at most, so there is little for node-aware products to save: {ours_slabs} of
Belos' time, and PETSc's best takes {petsc_slabs} times as long as ours by default, {petsc_slabs_best} times as long as our
best. On one node, with a core for each rank, {ours_own_core} of Belos' time by default, and PETSc's best takes {petsc_own_core} times as long;
where two ranks share a core, {ours_on_node} and {petsc_on_node} times.
{replicated}"""
BYTES = """
## Memory traffic of an iteration

Bytes that the vector kernels of an iteration move, by `perf/count_bicgstab_bytes.py` (cachegrind, a simulated cache of
64 KiB, vectors of 256 KiB), commit {commit}; products and preconditioner are not counted. "Least" is each vector once for each of the
two halves of an iteration (three kernels and an update where it is merged): what a kernel reads or overwrites, brought
in once.

"""
SIMULATED = """
## At scale, simulated

An iteration on more ranks than are at hand, by `perf/simulate_solvers.py`; commit {commit}. What an iteration asks of MPI,
in which order with its work, is recorded from the solvers (`perf_solver_traces`, {recorded_ranks} ranks), and repeated on all
ranks in SimGrid, on a fat tree with {ranks_per_node} ranks a node; exchanges are those of convection3d in blocks, along the
standard route. Work is the bytes that it moves, at {bandwidth}. Microseconds.
"Belos" waits for 5 reductions among all ranks, "flat" for 2, "merged" for 2 in the memory of a node first and then among one
rank of each, "pipelined" lets these travel while products work: a message goes out when the solver looks at the reduction,
which the recorded one does between rows and while it waits for ghosts. All have Jacobi's preconditioner. A simulation has no
noise, and its ranks are never late: what hiding saves beyond that, it does not show. {reading}

"""


def rows_of(report):
    for one in report["results"]:
        yield [report["problem"], report["partition"], one["variant"], f"{one['iterations']:.0f}",
               f"{one['worst_residual']:.1e}", f"{1e6 * one['seconds_per_iteration']:,.0f}",
               f"{one['iteration_of_belos']:.2f}", f"{one['digit_of_belos']:.2f}"]


def best(report, start):
    return min(one["iteration_of_belos"] for one in report["results"] if one["variant"].startswith(start))


def by_default(report):
    """Of what `auto` takes: the time of an iteration, over Belos'."""
    variant = "merged" if report["network"] == "one node" else "pipelined"
    return next(one["iteration_of_belos"] for one in report["results"]
                if one["variant"] == f"Komvos {variant}, Komvos' products")


def shares_cores(report):
    return report["ranks"] > report["cores"]


def span(values):
    values = list(values)
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low}-{high}"


def of_merged(report, variant):
    seconds = {one["variant"]: one["seconds_per_iteration"] for one in report["results"]}
    return seconds[f"Komvos {variant}"] / seconds["Komvos merged"]


def replicated(spheres):
    if not spheres:
        return ""
    plain, hiding = (span([of_merged(report, variant) for report in spheres])
                     for variant in ("replicated", "replicated-pipelined"))
    best = span([min(of_merged(report, variant) for variant in ("pipelined", "replicated", "replicated-pipelined"))
                 for report in spheres])
    return (f"\nTwo spheres are boundary elements on a hierarchical matrix, without a preconditioner. With whole vectors on "
            f"every\nrank, an iteration takes {plain} of the time of the merged one, and {hiding} where gathers hide "
            f"behind dots; the best\nof the three variants that are not merged takes {best}.\n")


def mpi_reductions(reports):
    """By the number of ranks: an iteration between hosts with MPI's reductions, over one with ours."""
    times = {}
    for report in reports:
        seconds = {one["variant"]: one["seconds_per_iteration"] for one in report["results"]}
        for variant in seconds:
            ours = variant.replace(", MPI's reductions", "")
            if ours != variant and "cluster" in report["network"]:
                times.setdefault(report["ranks"], []).append(seconds[variant] / seconds[ours])
    return dict(sorted(times.items()))


def reading(reports):
    with_petsc = [report for report in reports
                  if any(one["variant"].startswith("PETSc") for one in report["results"])]
    between = [report for report in with_petsc if "cluster" in report["network"]]
    graph = [report for report in between if report["partition"] == "graph"]
    all_graph = [report for report in reports if "cluster" in report["network"] and report["partition"] == "graph"]
    slabs = [report for report in between if report["partition"] != "graph"]
    on_node = [report for report in with_petsc if report["network"] == "one node" and shares_cores(report)]
    own_core = [report for report in with_petsc if report["network"] == "one node" and not shares_cores(report)]
    spheres = [report for report in reports if report["problem"].startswith("two spheres")]

    def ours(chosen):
        return span([by_default(report) for report in chosen])

    def petsc(chosen):
        return span([best(report, "PETSc") / by_default(report) for report in chosen])

    def petsc_to_best(chosen):
        return span([best(report, "PETSc") / best(report, "Komvos") for report in chosen])

    plain = [one for one in graph if "100 us" not in one["network"]]
    cost = [one for one in graph if "100 us" in one["network"]]
    mpi_sums = " and ".join(f"{span(times)} (on {ranks} ranks)" for ranks, times in mpi_reductions(reports).items())
    return READING.format(mpi_sums=mpi_sums, ours=ours(all_graph),
                          petsc_plain=petsc(plain), petsc_cost=petsc(cost), petsc_plain_best=petsc_to_best(plain),
                          petsc_cost_best=petsc_to_best(cost), ours_slabs=ours(slabs), petsc_slabs=petsc(slabs),
                          petsc_slabs_best=petsc_to_best(slabs), ours_on_node=ours(on_node),
                          petsc_on_node=petsc(on_node), ours_own_core=ours(own_core), petsc_own_core=petsc(own_core),
                          replicated=replicated(spheres))


def elsewhere(shown):
    """What other machines say of PETSc's best, each in a sentence."""
    text = ""
    for folder in sorted(common.RESULTS.iterdir()):
        reports = [common.read_results(file) for file in sorted(folder.glob("*-bicgstab-*-*.json")) if folder != shown]
        reports = [report for report in reports
                   if any(one["variant"].startswith("PETSc") for one in report["results"])]
        wide = [report for report in reports if report["ranks"] > 16]
        reports = [report for report in reports if report["ranks"] <= 16 and shares_cores(report)]
        if not reports:
            continue

        def petsc(network, partition, reports=reports):
            chosen = [best(one, "PETSc") / by_default(one) for one in reports
                      if one["network"].endswith(network) and one["partition"] == partition]
            return span(chosen) if chosen else "-"

        plain, cost = "ranks", "100 us a message at each host's card"
        processors = " and ".join(dict.fromkeys(report["processor"] for report in reports))
        text += (f"\nOn {processors}, {reports[0]['cores']} cores (`{folder.relative_to(common.ROOT)}`, commit "
                 f"{common.commits_of(reports)}), PETSc's best takes, on 16 ranks,\n{petsc(plain, 'graph')} times as long as ours "
                 f"by default on a plain network with a partition of the graph, {petsc(plain, 'contiguous')} with slabs;\n"
                 f"{petsc(cost, 'graph')} and {petsc(cost, 'contiguous')} where a message costs 100 us; on one node "
                 f"{petsc('one node', 'graph')} and {petsc('one node', 'contiguous')}.\n")
        if wide:
            times = [(petsc(network, partition, wide), f"{where} with {how}")
                     for network, where in ((plain, "on a plain network"), (cost, "where a message costs 100 us"))
                     for partition, how in (("graph", "a partition of the graph"), ("contiguous", "slabs"))]
            text += (f"On 64 ranks ({wide[0]['processor']}, commit {common.commits_of(wide)}) it takes\n"
                     + ",\n".join(f"{time} times as long {where}" for time, where in times if time != "-") + ".\n")
    return text


def traffic(report):
    head = ["variant", "preconditioner", "vectors brought in, least", "counted", "ratio", "vectors written"]
    rows = [[one["variant"], one["preconditioner"], str(one["least_vectors"]), f"{one['counted_vectors']:.2f}",
             f"{one['counted_vectors'] / one['least_vectors']:.2f}", str(one["written_vectors"])]
            for one in report["results"]]
    return BYTES.format(commit=report["commit"]) + common.markdown_table(head, rows, ["---", "---", *["--:"] * 4])


def simulated(report):
    head = ["ranks", "rows of a rank", "Belos", "flat", "merged", "pipelined", "pipelined of Belos", "of flat", "of merged"]
    rows = [[f"{one['ranks']:,}", f"{one['rows_per_rank']:,}",
             *(f"{1e6 * one[name]:,.0f}" for name in ("Belos", "flat", "merged", "pipelined")),
             *(f"{one['pipelined'] / one[name]:.2f}" for name in ("Belos", "flat", "merged"))]
            for one in report["results"]]
    of_merged = {size: [one["pipelined"] / one["merged"] for one in report["results"] if one["rows_per_rank"] == size]
                 for size in dict.fromkeys(one["rows_per_rank"] for one in report["results"])}
    verdicts = [f"with {size:,} rows a rank, pipelining takes {span(ratios)} of the time of merging"
                for size, ratios in of_merged.items()]
    reading = "; ".join(verdicts).capitalize() + ": the vectors that it moves cost more than they hide where there are many"
    bandwidth = " and ".join(f"{rate / 1e9:.0f} GB/s of a rank with {size}" for size, rate in report["bandwidth"].items())
    text = SIMULATED.format(ranks_per_node=report["results"][0]["ranks_per_node"], commit=report["commit"],
                            recorded_ranks=report["recorded_ranks"], bandwidth=bandwidth,
                            reading=reading + " rows (`auto` merges there).")
    return text + common.markdown_table(head, rows, ["--:"] * len(head))


def page(folder, files, counted, at_scale):
    reports = [common.read_results(file) for file in files]
    first = reports[0]
    commits = ", ".join(dict.fromkeys(report["commit"] for report in reports))
    parts = [HEAD.format(folder=folder.relative_to(common.ROOT), commit=commits, processor=first["processor"],
                         cores=first["cores"], tolerance=first["tolerance"]), reading(reports), elsewhere(folder)]
    head = ["problem", "partition", "solver", "iterations", "true residual", "iteration, us", "of Belos'",
            "digit, of Belos'"]
    for network, ranks in dict.fromkeys((report["network"], report["ranks"]) for report in reports):
        for commit in dict.fromkeys(report["commit"] for report in reports):
            rows = [row for report in reports
                    if (report["network"], report["ranks"], report["commit"]) == (network, ranks, commit)
                    for row in rows_of(report)]
            if rows:
                table = common.markdown_table(head, rows, [*["---"] * 3, *["--:"] * (len(head) - 3)])
                at = f" (commit {commit})" if "," in commits else ""
                parts.append(f"\n## {network[0].upper()}{network[1:]}, {ranks} ranks{at}\n\n{table}")
    parts.append(traffic(common.read_results(counted)))
    if at_scale is not None:
        parts.append(simulated(common.read_results(at_scale)))
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    found = sorted(common.shown("bicgstab").glob("*-bicgstab-*.json"))
    if not found:
        parser.error(f"no result of run_pipelined_solvers.py in {common.shown('bicgstab')}")
    cases = dict.fromkeys(file.name.split("-bicgstab-")[1] for file in found)
    files = [common.newest(file for file in found if file.name.endswith("-bicgstab-" + case)) for case in cases]
    counted = common.newest(common.RESULTS.glob("simulated/*-bicgstab-bytes.json"))
    at_scale = common.newest(common.RESULTS.glob("simulated/*-bicgstab-simulated.json"))
    common.write_page("BICGSTAB.md", page(files[0].parent, files, counted, at_scale), options.check, "make_bicgstab_table.py")


if __name__ == "__main__":
    main()
