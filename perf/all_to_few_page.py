"""Writes ALL_TO_FEW.md: a coarse level gathered onto few ranks."""
from common import markdown_table
from papers_tables import NETWORKS, times

INTRODUCTION = """# A coarse level, gathered from 27,000 ranks onto few and scattered back

Made by `perf/reproduce_papers.py`; raw results in `perf/results/simulated/all-to-few.json`. The level has 4,000 rows, one on
each of 4,000 ranks that are spread evenly over {topology}; 1, 5 or 28 ranks, on nodes of their own, take
equal shares. Sockets: two of 10 ranks on each node. One vector of doubles. Messages and bytes are exact, of the busiest
rank, between nodes, sent or received whichever is more. Modelled: max-rate model, parameters of {machine},
sending or receiving whichever is longer. Factors are against direct sends (standard).

"""
CONCLUSION = """## What it says

One rank that takes part in thousands of messages is what costs. Routes that leave it tens of them win by more than ten
onto 1 and 5 ranks, in the model and in SimGrid. Onto one rank axis communication is best, for its collectors merge
messages on the way; onto 5 it is level with three steps in the model and on the fat tree, and a quarter slower on the
torus; onto 28 three steps win, which need fewer hops. So say both, although a message costs several microseconds in the
model and 350 ns at each end in SimGrid. Neither knows the queues of unexpected messages that make such gathers still
slower on real machines.

Sockets change what happens on the nodes: by the model a gather gains by them, for fewer messages meet at a node's sender;
SimGrid, where messages cost less and hops remain, sees up to 12 % lost, and a scatter loses in both. Split is three-step
here: no pair of nodes has enough to send.
"""


def networks_of(result):
    return [kind for kind in NETWORKS if kind in result.get("simulated_seconds", {})]


def row(result, standard):
    busiest = [max(result[direction]["inter_node"][what] for direction in ("sent", "received"))
               for what in ("messages_max", "bytes_max")]
    cells = [result["route"], *busiest, f"{1e6 * result['modelled_seconds']:.0f} "
             f"({times(standard['modelled_seconds'], result['modelled_seconds'])}x)"]
    for kind in networks_of(result):
        before, after = standard["simulated_seconds"][kind], result["simulated_seconds"][kind]
        cells.append(f"{1e6 * after:.1f} ({times(before, after)}x)")
    return cells


def section(op):
    title = f"{op['operator'].capitalize()}, {op['level']} rank{'s' if op['level'] > 1 else ''}"
    standard = op["routes"][0]
    head = ["route", "messages", "bytes", "modelled us", *(f"{kind} us" for kind in networks_of(standard))]
    table = markdown_table(head,
                           [row(result, standard) for result in op["routes"]])
    return f"## {title}\n\n{table}\n"


def page(report):
    networks = "\n".join("- " + network for network in report.get("networks", []))
    return (INTRODUCTION.format(**report) + "".join(section(op) for op in report["operators"]) + CONCLUSION +
            f"\n{networks}\n")
