#!/usr/bin/env python3
"""Simulates iterations of BiCGStab on clusters that are not at hand, by SimGrid.

What an iteration asks of MPI, in which order with its work, is recorded from the solvers themselves, by
perf_solver_traces on 8 ranks with as many rows each. solver_replay.cpp repeats it on many ranks in SimGrid, with 16 ranks
a node on a fat tree. There, exchanges are those of convection3d in blocks, by `komvos analyze`, and work is the bytes
that it moves, at BANDWIDTH for each rank. Four solvers, with Jacobi's preconditioner:

  Belos      5 reductions among all ranks, each waited for
  flat       2 reductions, waited for, among all ranks
  merged     the same, within nodes first, then among one rank of each
  pipelined  these, but each begins before a product, and travels on when the solver looks at it

Writes perf/results/simulated/<date>-<commit>-bicgstab-simulated.json; takes two hours. make_bicgstab_table.py then makes
the page. Needs SimGrid (Debian: libsimgrid-dev).
"""
import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import common

PER_NODE = 16
# Bytes/s of a rank, by its rows along an edge: in the caches, about as an iteration of 4,000 rows has it on one node
# (BICGSTAB.md), and from a memory that many cores share.
BANDWIDTH = {10: 35e9, 30: 8e9}
CASES = [(ranks, edge) for edge in BANDWIDTH for ranks in (1024, 4096, 16384, 32768)]
RECORDED_RANKS = 8
ITERATIONS = {1024: 3, 4096: 3, 16384: 1, 32768: 1}  # by ranks, after one that is not timed; they take equally long
LOOK = 1e-7  # seconds of a call of MPI_Test
# Vectors that an iteration of Belos' reads or writes: p = r + beta (p - omega v), (r^, v), s = r - alpha v, |s|, (t, s),
# (t, t), x += alpha y + omega z, r = s - omega t, (r^, r), |r|. Those of the others are counted (BICGSTAB.md).
PASSES_OF_BELOS = 26
PASSES_OF_PRECONDITIONER = 6
KINDS = {"precondition", "rows", "kernel", "exchange-start", "exchange-wait", "sum", "look", "sum-wait", "allreduce"}


def edges(ranks):
    """A grid of ranks, as cubic as it can be."""
    x = y = 1
    rest = ranks
    while rest > 1:
        if x * x * x <= ranks // 2 and x <= rest:
            x *= 2
        elif y * y <= ranks // x and y <= rest:
            y *= 2
        rest = ranks // (x * y)
        if x * y * rest == ranks and max(x, y, rest) <= 2 * min(x, y, rest):
            break
    return x, y, ranks // (x * y)


def recorded(rows):
    """The events of an iteration by solver, with `rows` rows of a rank along an edge."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.json"
        common.run(["mpirun", "-n", RECORDED_RANKS, common.BUILD / "perf" / "perf_solver_traces", "--problem",
                    "convection3d", "--n", 2 * rows, "--json", path],
                   {**common.environment(RECORDED_RANKS), "KOMVOS_TUNING": "off"})
        report = common.read_results(path)
    # Tpetra's products, and what BLAS does for Belos, are no kernels of Kokkos: after the exchange, before reductions.
    belos = []
    for event in report["Belos"]:
        if event.startswith("allreduce"):
            belos.append("kernel")
        if event != "kernel":
            belos.append(event)
        if event == "exchange-wait":
            belos.append("rows")
    traces = {"Belos": belos, "merged": report["merged"], "pipelined": report["pipelined"]}
    for solver, reductions in (("Belos", 5), ("merged", 2), ("pipelined", 2)):
        found = [event.split()[0] for event in traces[solver]]
        if (found.count("exchange-start"), found.count("allreduce") + found.count("sum")) != (2, reductions):
            raise SystemExit(f"not 2 products and {reductions} reductions: {traces[solver]}")
        if unknown := set(found) - KINDS:
            raise SystemExit(f"an iteration should not do that: {unknown}")
    first = next(i for i, event in enumerate(traces["pipelined"]) if event.startswith("sum "))
    traces["pipelined"] = traces["pipelined"][first:] + traces["pipelined"][:first]  # so that none is under way before
    return {**traces, "flat": traces["merged"]}


def passes():
    """Vectors that the kernels of an iteration read or write, by solver."""
    counted = common.read_results(common.newest(common.SIMULATED.glob("*-bicgstab-bytes.json")))["results"]
    found = {one["variant"]: one["counted_vectors"] + one["written_vectors"] for one in counted
             if one["preconditioner"] == "jacobi"}
    ours = {"Belos": PASSES_OF_BELOS, "flat": found["merged"], "merged": found["merged"], "pipelined": found["pipelined"]}
    return {solver: round(one + PASSES_OF_PRECONDITIONER, 1) for solver, one in ours.items()}


def events_of(trace, product, vectors):
    """For solver_replay: an iteration in which all products and all vector kernels take so many seconds."""
    rows, kernels = trace.count("rows"), trace.count("kernel")
    lines = []
    for i, event in enumerate(trace):
        kind, *numbers = event.split()
        if kind == "rows":
            lines.append(f"work {product / rows}")
        elif kind == "kernel":
            lines.append(f"work {vectors / kernels}")
        elif kind == "exchange-wait":
            lines.append("exchange-wait look" if "look" in (trace[i - 1], trace[(i + 1) % len(trace)]) else kind)
        elif kind == "allreduce":
            lines += [f"sum {numbers[0]}", "sum-wait"]
        elif kind != "precondition":
            lines.append(event)
    return "\n".join(lines) + "\n"


def halo(folder, ranks, rows):
    r"""Writes the messages of an exchange along the standard route. \return the command that runs SimGrid there"""
    x, y, z = edges(ranks)
    # The halo of 10 rows along an edge; that of more has the same messages, only longer.
    command = [common.BUILD / "src" / "komvos", "analyze", "--problem", "convection3d", "--n", f"{x * 10},{y * 10},{z * 10}",
               "--partition", "blocks", "--ranks", ranks, "--ranks-per-node", PER_NODE, "--routes", "standard", "--simgrid",
               "fat-tree", "--trace", folder, "--quiet"]
    subprocess.run([str(word) for word in command], check=True)
    replay = next(Path(folder).rglob("replay.sh"))
    actions = replay.parent / "actions"
    scale = (rows / 10) ** 2
    actions.write_text(re.sub(r"^(\d+ i(?:send|recv) \d+ \d+ )(\d+)$",
                              lambda m: f"{m.group(1)}{int(int(m.group(2)) * scale)}", actions.read_text(), flags=re.M))
    return replay


def simulate(replay, program, events, iterations, node_aware):
    (replay.parent / "events").write_text(events)
    run = (f" --cfg=smpi/simulate-computation:no --cfg=smpi/test:{LOOK} --cfg=smpi/grow-injected-times:no {program} actions "
           f"events {iterations} {PER_NODE} {'node-aware' if node_aware else 'flat'} 2>&1")
    command = replay.read_text().replace(" -replay list 2>&1", run)
    output = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout
    found = re.search(r"seconds of an iteration: ([0-9.eE+-]+)", output)
    if not found:
        raise SystemExit(f"SimGrid reported no time:\n{output[-2000:]}")
    return float(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=32768, help="ranks, at most")
    options = parser.parse_args()
    common.build(common.BUILD, "komvos", "perf_solver_traces")
    traces = {edge: recorded(edge) for edge in BANDWIDTH}
    results = []
    report = {"benchmark": "iterations of BiCGStab, simulated by SimGrid", "commit": common.commit(),
              "bandwidth": {f"{edge ** 3} rows": rate for edge, rate in BANDWIDTH.items()},
              "recorded_ranks": RECORDED_RANKS, "passes": passes(),
              "traces": {f"{edge ** 3} rows": one for edge, one in traces.items()}, "results": results}
    path = common.RESULTS / "simulated" / f"{common.today()}-{common.commit()}-bicgstab-simulated.json"
    for ranks, edge in CASES:
        if ranks > options.most:
            continue
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "solver_replay"
            common.run(["smpicxx", "-O2", "-std=c++17", common.PERF / "solver_replay.cpp", "-o", program])
            replay = halo(folder, ranks, edge)
            rows = edge ** 3
            case = {"ranks": ranks, "ranks_per_node": PER_NODE, "rows_per_rank": rows, "iterations": ITERATIONS[ranks]}
            for solver in ("Belos", "flat", "merged", "pipelined"):
                events = events_of(traces[edge][solver], 2 * rows * (7 * 12 + 4 + 16) / BANDWIDTH[edge],
                                   rows * 8 * report["passes"][solver] / BANDWIDTH[edge])
                case[solver] = simulate(replay, program, events, ITERATIONS[ranks], solver in ("merged", "pipelined"))
            results.append(case)
            print({key: f"{1e6 * value:.1f} us" if isinstance(value, float) else value for key, value in case.items()},
                  flush=True)
            common.write_results(path, report)  # after each, for the last ones take long


if __name__ == "__main__":
    main()
