#!/usr/bin/env python3
"""komvos solve across the hosts of the virtual cluster: nodes are detected, and every route gives the same solve."""
import argparse
import json
import pathlib
import subprocess
import sys

CLUSTER = pathlib.Path(__file__).resolve().parent / "cluster" / "virtual_cluster.py"
SKIPPED = 77


LAPLACE = ("--problem", "laplace3d", "--n", "10", "--partition", "strided")


def solve(arguments, shape, *options, problem=LAPLACE):
    command = [CLUSTER, "--shape", shape, "--timeout", "100", "--mpirun", arguments.mpiexec, "--", arguments.program,
               "solve", *problem, "--prec", "jacobi", *options, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150)
    if done.returncode != 0:
        sys.exit(f"{shape}, {options}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout)


def check_across_hosts(arguments, iterations):
    """Two "nodes" of three ranks on three hosts of two: some ranks of a node share no memory, and send messages."""
    for route in ("three-step", "axis"):
        report = solve(arguments, "2,2,2", "--ranks-per-node", "3", "--route", route, "--on-node", "shared-memory")
        halo = report["halos"][0]
        assert (report["converged"], report["iterations"]) == (True, iterations), report
        assert (halo["route"].partition(":")[0], halo["on_node"]) == (route, "shared-memory"), halo
        assert halo["chosen"]["inter_node"]["messages_total"] == 2, halo
        print(f"2,2,2 as 3,3, {route}, shared-memory: {report['iterations']} iterations")


def check_bicgstab_variants(arguments):
    """Pipelining pays between hosts, and where ranks have few rows: up to 8,000 each."""
    for shape, n, variant in (("2,2", 20, "pipelined"), ("2,2", 32, "merged"), ("4", 20, "merged")):
        report = solve(arguments, shape, "--solver", "pipelined-bicgstab",
                       problem=("--problem", "convection3d", "--n", str(n)))
        assert (report["converged"], report["solver"]) == (True, f"PIPELINED BICGSTAB, {variant}"), report
        print(f"{shape}, {n**3} rows: {report['solver']}, {report['iterations']} iterations")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpiexec", default="mpirun")
    arguments = parser.parse_args()
    check = subprocess.run([CLUSTER, "--check", "--mpirun", arguments.mpiexec], capture_output=True, text=True)
    if check.returncode != 0:
        print(check.stderr.strip())
        sys.exit(check.returncode)
    for shape in ("5,2", "2,2,2"):
        nodes = [int(n) for n in shape.split(",")]
        runs = (("standard", "messages"), ("three-step", "messages"), ("three-step", "shared-memory"))
        reports = {run: solve(arguments, shape, "--route", run[0], "--on-node", run[1]) for run in runs}
        iterations = reports["standard", "messages"]["iterations"]
        for run, report in reports.items():
            halo = report["halos"][0]
            assert report["topology_source"] == "detected", report["topology_source"]
            assert report["ranks_per_node"] == nodes, report["ranks_per_node"]
            assert (report["converged"], report["iterations"]) == (True, iterations), report
            assert (halo["route"], halo["on_node"]) == run, halo
        pairs = len(nodes) * (len(nodes) - 1)
        halo = reports["three-step", "messages"]["halos"][0]
        assert halo["chosen"]["inter_node"]["messages_total"] == pairs, halo
        assert halo["standard"]["inter_node"]["messages_total"] > pairs, halo
        print(f"{shape}: {iterations} iterations, {pairs} instead of "
              f"{halo['standard']['inter_node']['messages_total']} messages between nodes")
    check_across_hosts(arguments, iterations)
    check_bicgstab_variants(arguments)


if __name__ == "__main__":
    main()
