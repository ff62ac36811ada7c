#!/usr/bin/env python3
"""Counts the vectors that an iteration of Komvos' BiCGStab brings into a small cache, by valgrind's cachegrind.

Solves the same system with 6 and with 16 iterations, one rank, and takes the difference of the cache misses of our
kernels. Vectors of 256 KiB, a last-level cache of 64 KiB: each use of a vector by another kernel brings it in again.
Writes perf/results/simulated/<date>-<commit>-bicgstab-bytes.json; takes two minutes. make_bicgstab_table.py then makes
the page.
"""
import argparse
import random
import re
import subprocess
import tempfile
from pathlib import Path

import common

ROWS = 32768
LINES_PER_VECTOR = ROWS * 8 / 64
FEW, MANY = 6, 16  # iterations
CACHES = ["--D1=8192,8,64", "--LL=65536,16,64"]
# (variant, preconditioner): vectors that the kernels of an iteration read or overwrite, and those that they write
LEAST = {("pipelined", "none"): (7 + 9, 3 + 3), ("pipelined", "jacobi"): (11 + 13, 4 + 4),
         ("merged", "none"): (2 + 2 + 3 + 5, 1 + 3), ("merged", "jacobi"): (2 + 2 + 3 + 7, 1 + 3)}


def write_matrix(path):
    """Nobody reaches the tolerance on it within 16 iterations."""
    numbers = random.Random(1)
    lines = ["%%MatrixMarket matrix coordinate real general", f"{ROWS} {ROWS} {2 * ROWS - 1}"]
    for row in range(1, ROWS + 1):
        diagonal = 1 + 99 * numbers.random()
        lines.append(f"{row} {row} {diagonal:.6f}")
        if row < ROWS:
            lines.append(f"{row} {row + 1} {0.9 * diagonal * numbers.choice([-1, 1]):.6f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def misses(counts):
    """Of data in the last-level cache, by functions of our iterations and kernels."""
    total, ours, events = 0, False, []
    for line in counts.read_text(encoding="utf-8").splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
            columns = [events.index(event) for event in ("DLmr", "DLmw")]
        elif line.startswith("fn="):
            ours = re.search(r"Komvos::Impl::(Pipelined|Merged)", line) is not None
        elif ours and line[:1].isdigit():
            fields = line.split()[1:]
            total += sum(int(fields[column]) for column in columns)
    return total


def count(folder, variant, preconditioner, iterations):
    parameters = folder / "belos.xml"
    parameters.write_text(f"""<ParameterList><ParameterList name="Belos">
<Parameter name="Variant" type="string" value="{variant}"/></ParameterList></ParameterList>""", encoding="utf-8")
    counts = folder / "cachegrind.out"
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *CACHES, f"--cachegrind-out-file={counts}",
               common.BUILD / "src" / "komvos", "solve", folder / "matrix.mtx", "--solver", "pipelined-bicgstab",
               "--prec", preconditioner, "--tolerance", 1e-14, "--max-iterations", iterations, "--xml", parameters]
    done = subprocess.run([str(word) for word in command], env=common.environment(1), capture_output=True, text=True,
                          check=False)
    expected = f"PIPELINED BICGSTAB, {variant}"
    if expected not in done.stdout or f"{iterations}, NOT converged" not in done.stdout:
        raise SystemExit(f"no {iterations} iterations of {expected}:\n{done.stdout}{done.stderr}")
    return misses(counts)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    common.build(common.BUILD, "komvos")
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_matrix(folder / "matrix.mtx")
        for (variant, preconditioner), (least, written) in LEAST.items():
            lines = (count(folder, variant, preconditioner, MANY) - count(folder, variant, preconditioner, FEW)) / (
                MANY - FEW)
            results.append({"variant": variant, "preconditioner": preconditioner, "least_vectors": least,
                            "counted_vectors": round(lines / LINES_PER_VECTOR, 3), "written_vectors": written})
            print(results[-1], flush=True)
    report = {"benchmark": "vectors brought in by an iteration of BiCGStab", "commit": common.commit(), "rows": ROWS,
              "iterations": [FEW, MANY], "caches": CACHES, "results": results}
    path = common.RESULTS / "simulated" / f"{common.today()}-{common.commit()}-bicgstab-bytes.json"
    common.write_results(path, report)


if __name__ == "__main__":
    main()
