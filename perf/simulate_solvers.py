#!/usr/bin/env python3
"""Simulates iterations of BiCGStab on clusters that are not at hand, by SimGrid's replay.

The halo of convection3d is that of `komvos analyze`, in blocks, with 16 ranks a node on a fat tree. An iteration is
written as a trace: exchanges, local work, and reductions by recursive doubling, whose messages are written out, so that
those of a pipelined solver can travel while the product works. Local work is the bytes that it moves, at BANDWIDTH for
each rank. Four solvers:

  Belos      5 reductions among all ranks, each waited for
  merged     2 reductions, waited for; within nodes first, then among one rank of each
  pipelined  the same, but each begins before a product, and moves on at SLICES points of the product's work
  flat       merged, with reductions among all ranks

Writes perf/results/simulated/<date>-<commit>-bicgstab-simulated.json; takes an hour. make_bicgstab_table.py then makes
the page. Needs SimGrid (Debian: libsimgrid-dev).
"""
import argparse
import re
import subprocess
import tempfile
from pathlib import Path

import common

PER_NODE = 16
BANDWIDTH = 8e9  # bytes/s of a rank
FLOPS = 10e9  # of a core in the platform, whose computations are given in flops
CASES = [(ranks, rows) for rows in (10, 30) for ranks in (1024, 4096, 16384, 32768)]  # rows of a rank along an edge
ITERATIONS = {1024: 3, 4096: 3, 16384: 1, 32768: 1}  # by ranks; each takes about as long as the first
PASSES = {"Belos": 26, "merged": 18, "flat": 18, "pipelined": 32}  # vectors that an iteration reads or writes
NUMBERS = {"Belos": 1, "merged": 5, "flat": 5, "pipelined": 9}  # that a reduction adds up
SLICES = 24


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


class Rank:
    """Writes the actions of one rank."""

    def __init__(self, number, ranks, exchange):
        self.number, self.ranks, self.exchange = number, ranks, exchange
        self.actions, self.tag, self.pending = [], 1000, []

    def add(self, *words):
        self.actions.append(" ".join(str(word) for word in (self.number, *words)))

    def work(self, seconds):
        self.add("compute", f"{seconds * FLOPS:.0f}")

    def rounds(self, node_aware):
        """Of a reduction: for each that this rank takes part in, (number, sends to, receives from); None: nobody."""
        me, found, number, step = self.number, [], 0, 1
        local, leader = me % PER_NODE, me - me % PER_NODE
        while step < PER_NODE and node_aware:  # to the first rank of the node, as a tree
            if local % (2 * step) == step:
                found.append((number, me - step, None))
            elif local % (2 * step) == 0:
                found.append((number, None, me + step))
            step *= 2
            number += 1
        while step < self.ranks:
            if me == leader or not node_aware:
                found.append((number, me ^ step, me ^ step))
            step *= 2
            number += 1
        step = PER_NODE // 2
        while step >= 1 and node_aware:  # and back
            if local % (2 * step) == 0:
                found.append((number, me + step, None))
            elif local % (2 * step) == step:
                found.append((number, None, me - step))
            step //= 2
            number += 1
        return found

    def start_round(self, to, source, size):
        if source is not None:
            self.add("irecv", source, self.tag, size)
        if to is not None:
            self.add("isend", to, self.tag, size)

    def finish_round(self, to, source):
        if source is not None:
            self.add("wait", source, self.number, self.tag)
        if to is not None:
            self.add("wait", self.number, to, self.tag)

    def reduce(self, node_aware, numbers):
        for _, to, source in self.rounds(node_aware):
            self.start_round(to, source, 8 * numbers)
            self.finish_round(to, source)
        self.tag += 1

    def product(self, seconds, hidden=None):
        """\\param hidden (node-aware, numbers) of a reduction that travels meanwhile"""
        rounds = self.rounds(hidden[0]) if hidden else []

        def start():
            if rounds:
                self.start_round(*rounds[0][1:], 8 * hidden[1])

        def finish():
            self.finish_round(*rounds.pop(0)[1:])
            start()

        start()
        self.actions.extend(self.exchange)
        slices = SLICES if hidden else 1
        for now in range(slices):
            self.work(seconds / slices)
            if rounds and rounds[0][0] <= now:  # all ranks have come so far, or nearly
                finish()
        while rounds:
            finish()
        self.tag += 1

    def iteration(self, solver, rows):
        product = rows * (7 * 12 + 4 + 16) / BANDWIDTH
        vectors = rows * 8 * PASSES[solver] / BANDWIDTH
        if solver == "pipelined":
            for _ in range(2):
                self.work(vectors / 2)
                self.product(product, (True, NUMBERS[solver]))
            return
        reductions = (2, 3) if solver == "Belos" else (1, 1)
        for count in reductions:
            self.product(product)
            self.work(vectors / 2)
            for _ in range(count):
                self.reduce(solver == "merged", NUMBERS[solver])


def halo(folder, ranks, rows):
    """Traces of an exchange along the standard route: the actions of each rank, and the command that replays."""
    x, y, z = edges(ranks)
    command = [common.BUILD / "src" / "komvos", "analyze", "--problem", "convection3d", "--n",
               f"{x * rows},{y * rows},{z * rows}", "--partition", "blocks", "--ranks", ranks, "--ranks-per-node", PER_NODE,
               "--routes", "standard", "--simgrid", "fat-tree", "--trace", folder, "--quiet"]
    subprocess.run([str(word) for word in command], check=True)
    replay = next(Path(folder).rglob("replay.sh"))
    actions = [[] for _ in range(ranks)]
    for line in (replay.parent / "actions").read_text().splitlines():
        words = line.split()
        if words[1] not in ("init", "finalize"):
            actions[int(words[0])].append(line)
    return replay, actions


def simulate(replay, exchanges, solver, rows, iterations):
    path = replay.parent / "actions"
    with open(path, "w", encoding="utf-8") as file:
        for number, exchange in enumerate(exchanges):
            rank = Rank(number, len(exchanges), exchange)
            rank.add("init")
            for _ in range(iterations):
                rank.iteration(solver, rows)
            rank.add("finalize")
            file.write("\n".join(rank.actions) + "\n")
    output = subprocess.run(["sh", str(replay)], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Simulated time: ([0-9.eE+-]+)", output)
    if not found:
        raise SystemExit(f"SimGrid reported no time:\n{output[-2000:]}")
    return float(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=32768, help="ranks, at most")
    options = parser.parse_args()
    common.build(common.BUILD, "komvos")
    results = []
    report = {"benchmark": "iterations of BiCGStab, simulated by SimGrid", "commit": common.commit(),
              "bandwidth": BANDWIDTH, "slices": SLICES, "passes": PASSES, "results": results}
    path = common.RESULTS / "simulated" / f"{common.today()}-{common.commit()}-bicgstab-simulated.json"
    for ranks, edge in CASES:
        if ranks > options.most:
            continue
        with tempfile.TemporaryDirectory() as folder:
            # The halo of 10 rows along an edge; that of 30 has messages nine times as long, which are counted here.
            replay, exchanges = halo(folder, ranks, 10)
            if edge != 10:
                scale = (edge / 10) ** 2
                exchanges = [[re.sub(r"^(\d+ i(?:send|recv) \d+ \d+ )(\d+)$",
                                     lambda m: f"{m.group(1)}{int(int(m.group(2)) * scale)}", line) for line in one]
                             for one in exchanges]
            case = {"ranks": ranks, "ranks_per_node": PER_NODE, "rows_per_rank": edge ** 3,
                    "iterations": ITERATIONS[ranks]}
            for solver in PASSES:
                iterations = ITERATIONS[ranks]
                case[solver] = simulate(replay, exchanges, solver, edge ** 3, iterations) / iterations
            results.append(case)
            print({key: f"{1e6 * value:.1f} us" if isinstance(value, float) else value for key, value in case.items()},
                  flush=True)
            common.write_results(path, report)  # after each, for the last ones take long


if __name__ == "__main__":
    main()
