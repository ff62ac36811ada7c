#!/usr/bin/env python3
"""Writes test/data/napspmv_cases.json: communication patterns and what the reference answers for each.

The file holds Example 2.1 of the paper, then hand-made corner cases, then patterns drawn with a fixed seed:
  [{"name": ..., "owner": [rank of each index], "needs": {"rank": [indices]}, "node": [node of each rank],
    "reference": {P, D, N, E, T, U, G, gather, scatter, local, count}}, ...]
Run it again after a change of the reference; an unchanged reference gives an unchanged file, byte for byte.
A summary of what the cases cover goes to standard output, and a missing kind of case is an error.
"""
import argparse
import json
import os
import random
from collections import Counter

from napspmv_reference import example21, reference

SEED = 20190713
RANDOM_CASES = 200
UNEVEN = [[5, 2], [6, 4], [7, 4], [4, 7], [1, 5], [3, 1, 2], [1, 1, 6], [4, 4, 3], [8, 1], [2, 5, 3, 6], [1, 2, 3, 4, 5],
          [12, 11], [9, 8, 7]]


# --- rank -> node ---------------------------------------------------------------------------------------------------
def blocks(sizes, order=None):
    """Consecutive ranks share a node; `order` says which node each block is."""
    order = list(range(len(sizes))) if order is None else order
    return [n for n, size in zip(order, sizes) for _ in range(size)]


def random_sizes(rng, ranks, nodes):
    cuts = sorted(rng.sample(range(1, ranks), nodes - 1))
    return [b - a for a, b in zip([0] + cuts, cuts + [ranks])]


def even_sizes(ranks, nodes):
    return [ranks // nodes + (k < ranks % nodes) for k in range(nodes)]


def node_map(rng, kind):
    if kind == "one-node":
        return [0] * rng.randint(2, 12)
    if kind == "rank-per-node":
        return list(range(rng.randint(2, 8)))
    if kind == "listed":
        return blocks(rng.choice(UNEVEN))
    nodes = rng.randint(2, 8)
    ranks = rng.randint(max(nodes, 4), 24)
    if kind == "even":
        return blocks([max(1, ranks // nodes)] * nodes)
    if kind == "uneven":
        return blocks(random_sizes(rng, ranks, nodes))
    if kind == "round-robin":
        return [r % nodes for r in range(ranks)]
    if kind == "shuffled":
        node = blocks(random_sizes(rng, ranks, nodes))
        rng.shuffle(node)
        return node
    if kind == "reordered-blocks":
        order = list(range(nodes))
        while order == sorted(order):
            rng.shuffle(order)
        return blocks(random_sizes(rng, ranks, nodes), order)
    raise ValueError(kind)


# --- index -> rank --------------------------------------------------------------------------------------------------
def ownership(rng, kind, ranks, indices):
    """`ranks` lists the ranks that may own something."""
    if kind == "contiguous":
        return [ranks[i * len(ranks) // indices] for i in range(indices)]
    if kind == "strided":
        return [ranks[i % len(ranks)] for i in range(indices)]
    if kind == "random":
        return [rng.choice(ranks) for _ in range(indices)]
    if kind == "skewed":
        return [ranks[int(len(ranks) * rng.random() ** 3)] for _ in range(indices)]
    raise ValueError(kind)


# --- which rank needs what ------------------------------------------------------------------------------------------
def halo(rng, kind, owner, ranks):
    """`ranks` lists the ranks that may need something. Now and then a rank also names values of its own."""
    n = len(owner)
    if kind == "none":
        return {}
    if kind == "all-to-all":
        return {r: [i for i in range(n) if owner[i] != r] for r in ranks}
    if kind == "popular":
        star = rng.randrange(n)
        needs = {r: [star] for r in ranks if owner[star] != r}
        for r in rng.sample(ranks, len(ranks) // 3):
            needs.setdefault(r, []).append(rng.randrange(n))
        return needs
    if kind == "ties":                                  # the same number of values from every rank that owns enough
        of = {r: [i for i in range(n) if owner[i] == r] for r in set(owner)}
        k = min(len(v) for v in of.values())
        return {r: [i for s in sorted(of) if s != r for i in of[s][:min(k, 2)]] for r in ranks}
    if kind == "band":                                  # neighbours of a periodic chain of indices
        width = rng.randint(1, 3)
        return {r: [(i + d) % n for i in range(n) if owner[i] == r for d in range(-width, width + 1)] for r in ranks}
    if kind == "grid":                                  # neighbours in a rectangle of indices
        nx = max(2, int(n ** 0.5))
        return {r: [j for i in range(n) if owner[i] == r
                    for j in (i - nx, i - 1 if i % nx else -1, i + 1 if (i + 1) % nx else -1, i + nx) if 0 <= j < n]
                for r in ranks}
    if kind == "skewed":                                # few ranks need a lot
        return {r: [i for i in range(n) if rng.random() < 0.9 * rng.random() ** 4] for r in ranks}
    density = {"sparse": 0.05, "medium": 0.2, "dense": 0.6}[kind]
    return {r: [i for i in range(n) if rng.random() < density] for r in ranks}


def tidy(needs):
    return {str(r): sorted(set(v)) for r, v in sorted(needs.items()) if v}


def case(name, owner, needs, node):
    """`needs` may list values that the rank owns: the reference ignores them and so must the program."""
    problem = {"owner": owner, "needs": tidy(needs), "node": node}
    return {"name": name, **problem, "reference": reference(problem)}


# --- the cases ------------------------------------------------------------------------------------------------------
def corner_cases():
    rng = random.Random(SEED)
    yield case("Example 2.1", **example21())
    yield case("one rank", [0, 0, 0], {}, [0])
    yield case("one rank that lists its own values", [0, 0, 0], {0: [0, 2]}, [0])
    yield case("one rank on node 3", [0], {}, [3])
    yield case("two ranks, no indices at all", [], {}, [0, 1])
    yield case("two ranks on two nodes, one value", [0, 1], {1: [0]}, [0, 1])
    yield case("two ranks on two nodes, both ways", [0, 1], {0: [1], 1: [0]}, [0, 1])
    yield case("node numbers with gaps", [0, 1, 2, 3], {0: [2, 3], 3: [0, 1]}, [7, 2, 7, 2])
    yield case("every value owned by the last rank", [4] * 6, {r: list(range(6)) for r in range(4)}, [0, 0, 1, 1, 2])
    yield case("one rank needs everything", list(range(8)), {0: list(range(8))}, [0, 0, 0, 1, 1, 2, 2, 2])
    for sizes in UNEVEN:
        node = blocks(sizes)
        owner = ownership(rng, "contiguous", list(range(len(node))), 2 * len(node))
        yield case(f"uneven nodes {'/'.join(map(str, sizes))}", owner, halo(rng, "medium", owner, range(len(node))), node)
    for ranks, nodes in ((8, 2), (24, 8), (24, 3)):
        owner = ownership(rng, "strided", list(range(ranks)), ranks)
        yield case(f"all-to-all of {ranks} ranks on {nodes} nodes", owner, halo(rng, "all-to-all", owner, range(ranks)),
                   blocks([ranks // nodes] * nodes))
    node = blocks([3] * 8)
    owner = list(range(24))
    yield case("one value needed by all of 24 ranks", owner, {r: [13] for r in range(24) if r != 13}, node)
    yield case("ties in every volume", owner, {r: [(r + 3 * k) % 24 for k in range(1, 8)] for r in range(24)}, node)
    yield case("more nodes to send to than local ranks", owner[:9], {r: [0] for r in range(2, 9)},
               [0, 0, 1, 2, 3, 4, 5, 6, 7])


def random_cases():
    rng = random.Random(SEED + 1)
    node_kinds = ["even", "uneven", "listed", "round-robin", "shuffled", "reordered-blocks", "rank-per-node", "one-node"]
    node_weights = [3, 4, 4, 3, 5, 4, 1, 1]
    owner_kinds, owner_weights = ["contiguous", "strided", "random", "skewed"], [3, 2, 4, 2]
    halo_kinds = ["sparse", "medium", "dense", "band", "grid", "skewed", "popular", "ties", "all-to-all", "none"]
    halo_weights = [6, 6, 2, 5, 4, 4, 2, 3, 1, 1]
    for k in range(RANDOM_CASES):
        where = rng.choices(node_kinds, node_weights)[0]
        whose = rng.choices(owner_kinds, owner_weights)[0]
        what = rng.choices(halo_kinds, halo_weights)[0]
        node = node_map(rng, where)
        ranks = list(range(len(node)))
        empty = set(rng.sample(ranks, rng.randint(1, max(1, len(ranks) // 3)))) if k % 4 == 0 and len(ranks) > 2 else set()
        active = [r for r in ranks if r not in empty]
        owner = ownership(rng, whose, active, len(ranks) * rng.randint(1, 4))
        name = f"random {k}: nodes {where}, owner {whose}, halo {what}" + (", empty ranks" if empty else "")
        yield case(name, owner, halo(rng, what, owner, active), node)


# --- what they cover ------------------------------------------------------------------------------------------------
def kinds(c):
    """The properties of one case, measured on the case and not taken from its name."""
    node, owner = c["node"], c["owner"]
    ranks, per_node = range(len(node)), Counter(node)
    ref = c["reference"]
    needs = {int(r): set(v) for r, v in c["needs"].items()}
    first = [n for k, n in enumerate(node) if n not in node[:k]]
    grouped = all(a == b or b not in node[:k + 1] for k, (a, b) in enumerate(zip(node, node[1:])))
    volumes = {}
    for pair, values in ref["E"].items():
        volumes.setdefault(pair.split("->")[0], []).append(len(values))
    yield f"{len(node)} ranks"
    yield f"{len(per_node)} nodes"
    if len(set(per_node.values())) > 1:
        yield "uneven ranks per node"
    if not grouped:
        yield "ranks of a node not consecutive"
    if grouped and first != sorted(first):
        yield "blocks of nodes not ascending"
    if any(a > b for a, b in zip(owner, owner[1:])):
        yield "ownership not contiguous"
    if any(r not in owner and not needs.get(r) for r in ranks):
        yield "empty rank"
    if any(r not in owner and needs.get(r) for r in ranks):
        yield "rank that owns nothing and needs something"
    if any(owner[i] == r for r, v in needs.items() for i in v):
        yield "needs name own values"
    if len(node) == 1:
        yield "one rank"
    if len(per_node) == 1 and len(node) > 1:
        yield "one node"
    if not ref["D"]:
        yield "no halo"
    if len(ref["D"]) == len(node) * (len(node) - 1) > 0:
        yield "every rank sends to every other"
    if len(node) > 2 and any(all(owner[i] == r or i in needs.get(r, ()) for r in ranks) for i in range(len(owner))):
        yield "value needed by every rank"
    if any(len(set(v)) < len(v) for v in volumes.values()):
        yield "tie in volume"
    if any(len(v) > per_node[int(n)] for n, v in volumes.items()):
        yield "more target nodes than local ranks"
    if ref["count"]["node_aware"]["inter"]["total_values"] < ref["count"]["standard"]["inter"]["total_values"]:
        yield "duplicates removed"
    for name in ("G", "gather", "scatter", "local"):
        if ref[name]:
            yield f"has {name}"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", default=os.path.join(here, "..", "data", "napspmv_cases.json"))
    a = ap.parse_args()
    corner = list(corner_cases())
    cases = corner + list(random_cases())
    text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n"
    with open(a.out, "w", newline="\n") as out:
        out.write(text)

    seen = Counter(kind for c in cases for kind in kinds(c))
    print(f"{len(cases)} cases ({len(corner)} fixed, {len(cases) - len(corner)} random), {len(text)} bytes")
    for noun in ("ranks", "nodes"):
        print(f"{noun}:", " ".join(f"{k}:{seen.pop(f'{k} {noun}', 0)}" for k in range(1, 25 if noun == "ranks" else 9)))
    for kind, number in sorted(seen.items()):
        print(f"{number:5}  {kind}")
    missing = {"uneven ranks per node", "ranks of a node not consecutive", "blocks of nodes not ascending", "empty rank",
               "ownership not contiguous", "rank that owns nothing and needs something", "needs name own values",
               "one rank", "one node", "no halo", "every rank sends to every other", "value needed by every rank",
               "tie in volume", "more target nodes than local ranks", "duplicates removed"} - set(seen)
    if missing:
        raise SystemExit(f"no case has: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
