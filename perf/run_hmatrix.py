#!/usr/bin/env python3
"""Measures hierarchical matrices: products, storage, beside hmat-oss and batches, published cases, ranks, preconditioners.

  bandwidth        products beside reads of as many bytes, 10,000 to 300,000 points; one core
  storage          values stored whole, reduced, and half of the symmetric matrix, in turn; 1, 4 and 16 vectors; one core
  hmat-oss         the same points, kernel and accuracy by hmat-oss (Debian: libhmat-oss-dev); one core
  variants         the products that Yamazaki et al. compare: single gemv, batches in several orders and launches; one core
  hacapk           two cases with published numbers of HACApK, by `komvos bem`; 1 and 2 ranks
  paper            two spheres, arrays of spheres and a human body, up to 300,000 unknowns, by `komvos bem`; 2 ranks
  ranks            the same matrix on 1, 2 and 4 ranks, and what 16 and 64 ranks would move
  preconditioners  solves of a human body and an array of spheres with each; 2 ranks

Each section writes a file perf/results/<processor>/<date>-<commit>-hmatrix-<section>.json, after each case; cases that it
has already are left out, unless the commit is dirty. Run it on a quiet machine with 16 GiB; with everything it takes about
half an hour. make_hmatrix_page.py then makes the page. With --build of a threaded Trilinos, bandwidth, storage and
variants run with two threads, into files of their own.
"""
import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import common

BODY = common.ROOT / "test" / "data" / "meshes" / "human_body.off"
TIMEOUT = 600  # seconds
CHECKERED = ",".join("1" if i % 2 == 0 else "-1" for i in range(27))  # potentials of an array of 3 x 3 x 3 spheres
# HACApK's, of its published runs; the tolerance of the solver is that of Yamazaki et al.
HACAPK = "--leaf-size 15 --eta 2 --accuracy 1e-3 --preconditioner none"
PAPER = "--leaf-size 15 --eta 2 --accuracy 1e-3 --approximation aca+ --tolerance 1e-7"


def count(number, quick):
    """Of points or triangles: a tenth for a quick look, and even."""
    return max(2000, number // 20 * 2) if quick else number


def products_case(geometry, n, accuracy, quick, rest):
    return "perf_hmatrix_products", 1, f"--geometry {geometry} --n {count(n, quick)} --accuracy {accuracy} {rest}"


def bem_case(ranks, geometry, triangles, quick, rest):
    # The mesh of a file is as large as it is.
    words = "human-body" if triangles is None else f"--geometry {geometry} --triangles {count(triangles, quick)}"
    return "komvos bem", ranks, f"{words} {rest}"


def bandwidth(quick):
    for geometry in ("sphere", "cylinder"):
        for n in (10000, 30000, 100000, 300000):
            yield products_case(geometry, n, "1e-4", quick, "--without-hmat-oss --samples 30")


def storage(quick):
    for geometry in ("sphere", "cylinder"):
        for accuracy in ("1e-3", "1e-4", "1e-6", "1e-8", "1e-10"):
            kinds = "whole,reduced,half,half-reduced" if accuracy == "1e-4" else "whole,reduced"
            yield products_case(geometry, 20000, accuracy, quick,
                                f"--without-hmat-oss --storage {kinds} --vectors 1,4,16 --samples 30")


def hmat_oss(quick):
    for geometry in ("cylinder", "sphere"):
        for n in (10000, 50000):
            for accuracy in ("1e-3", "1e-4", "1e-6"):
                yield products_case(geometry, n, accuracy, quick, "--storage whole,reduced --samples 30")


def variants(quick):
    for n in (10000, 100000):
        yield ("perf_hmatrix_variants", 1,
               f"--geometry sphere --n {count(n, quick)} --accuracy 1e-3 --leaf 15 --compression aca --samples 30")


def hacapk(quick):
    for storage_kind in ("whole", "reduced"):
        for ranks in (1, 2):
            rest = f"--storage {storage_kind} --products 30"
            yield bem_case(ranks, "sphere", 10400, quick, f"--radius 10 {HACAPK} {rest}")
            yield bem_case(ranks, "sphere", 10400, quick, f"--radius 10 {HACAPK.replace('1e-3', '1e-6')} {rest}")
            yield bem_case(ranks, "two-spheres", 21600, quick, f"{HACAPK} {rest}")


def paper(quick):
    for storage_kind in ("whole", "reduced"):
        rest = f"{PAPER} --storage {storage_kind} --products 30"
        yield bem_case(2, "two-spheres", 101248, quick, rest)
        yield bem_case(2, "sphere-array", 100000, quick, rest)
        yield bem_case(2, "", None, quick, f"--problem potential {rest}")
        yield bem_case(2, "", None, quick, f"--problem uniform-field {rest}")
    yield bem_case(2, "two-spheres", 288000, quick, f"{PAPER} --storage reduced --products 30")
    yield bem_case(2, "sphere-array", 300000, quick, f"{PAPER} --storage reduced --products 30")


def ranks_section(quick):
    for geometry, triangles in (("sphere-array", 54000), ("human-body", None)):
        for ranks in (1, 2, 4):
            yield bem_case(ranks, geometry, triangles, quick, "--tolerance 1e-8 --products 30")
        # More ranks than cores: what they would move, not how long it takes.
        yield bem_case(16, geometry, triangles, quick, "--solver none --products 0")
        yield bem_case(64, geometry, triangles, quick, "--solver none --products 0")


def preconditioners(quick):
    for kind in ("none", "diagonal", "block-jacobi", "overlapping", "hodlr"):
        rest = f"--preconditioner {kind} --products 5"
        yield bem_case(2, "human-body", None, quick, f"--problem potential {rest}")
        yield bem_case(2, "human-body", None, quick, f"--problem uniform-field {rest}")
        yield bem_case(2, "sphere-array", 54000, quick, f"--potentials {CHECKERED} {rest}")


SECTIONS = {"bandwidth": bandwidth, "storage": storage, "hmat-oss": hmat_oss, "variants": variants, "hacapk": hacapk,
            "paper": paper, "ranks": ranks_section, "preconditioners": preconditioners}
THREADED = ("bandwidth", "storage", "variants")


def environment(ranks, threads):
    return {**common.environment(ranks), "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "false",
            "OPENBLAS_NUM_THREADS": "1"}


def products_result(options, program, arguments):
    one_core = [] if options.threads > 1 else ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    command = [*one_core, options.build / "perf" / program, *arguments]
    with tempfile.TemporaryFile("w+") as raw:
        subprocess.run([str(word) for word in command], check=True, stdout=raw, timeout=TIMEOUT,
                       env=environment(1, options.threads))
        raw.seek(0)
        result = common.json.load(raw)
    return {key: value for key, value in result.items() if key not in ("benchmark", "commit", "processor")}


def short(report):
    """What the page needs of the report of `komvos bem`, and a little more."""
    matrix = {key: value for key, value in report["matrix"].items() if key != "blocks_of_rank"}
    physics = {key: report["result"][key] for key in ("known", "energy") if key in report["result"]} \
        if report["result"] else {}
    if report["result"] and len(report["result"].get("bodies", [])) <= 2:
        physics["bodies"] = report["result"]["bodies"]
    return {"geometry": {key: report["geometry"][key] for key in ("triangles", "bodies", "area", "warnings")},
            "route": report["route"], "kernel": report["kernel"], "problem": report["problem"], "matrix": matrix,
            "setup_seconds": report["setup_seconds"], "product": report["product"], "solve": report["solve"],
            "result": physics}


def bem_result(options, ranks, arguments):
    words = [BODY if word == "human-body" else word for word in arguments]
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "bem.json"
        command = ["mpirun", "-n", ranks, options.build / "src" / "komvos", "bem", *words, "--quiet", "--json", raw]
        done = subprocess.run([str(word) for word in command], timeout=TIMEOUT, env=environment(ranks, options.threads))
        if done.returncode not in (0, 2):  # 2: not converged, which the report says
            raise SystemExit(f"failed with {done.returncode}: {' '.join(map(str, command))}")
        return {"threads": options.threads, **short(common.read_results(raw))}


def with_samples(arguments, samples):
    """The same arguments with another number of samples, or of products."""
    words = arguments.split()
    for option in ("--samples", "--products"):
        if samples and option in words and words[words.index(option) + 1] != "0":
            words[words.index(option) + 1] = str(samples)
    return words


def measure(options, program, ranks, arguments):
    words = with_samples(arguments, options.samples)
    start = time.monotonic()
    result = (bem_result(options, ranks, words) if program == "komvos bem"
              else products_result(options, program, words))
    return {"program": program, "ranks": ranks, "arguments": " ".join(words),
            "seconds_of_run": round(time.monotonic() - start, 1), **result}


def run_section(options, name):
    suffix = f"-{options.threads}-threads" if options.threads > 1 else ""
    path = options.results / f"{common.today()}-{common.commit()}-hmatrix-{name}{suffix}.json"
    cases = []
    if path.exists() and not common.commit().endswith("-dirty"):
        cases = common.read_results(path)["cases"]
    done = {(case["ranks"], case["arguments"]) for case in cases}
    for program, ranks, arguments in SECTIONS[name](options.quick):
        if (ranks, " ".join(with_samples(arguments, options.samples))) in done:
            continue
        print(f"== {name}: {program}, {ranks} {'rank' if ranks == 1 else 'ranks'}: {arguments}", flush=True)
        cases.append(measure(options, program, ranks, arguments))
        common.write_results(path, {
            "benchmark": "hierarchical matrices", "section": name, "commit": common.commit(),
            "processor": common.processor(), "cores": common.cores(), "mpi": f"Open MPI {common.open_mpi.major_version()}",
            "threads": options.threads, "quick": options.quick,
            "seconds_of_runs": round(sum(case["seconds_of_run"] for case in cases), 1), "cases": cases})
    print(f"{path}: {sum(case['seconds_of_run'] for case in cases):.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="SECTION", help="of those above")
    parser.add_argument("--build", type=Path, default=common.BUILD,
                        help="the build to measure (default: %(default)s); another one with a threaded Trilinos")
    parser.add_argument("--threads", type=int, choices=(1, 2), help="otherwise 2 with --build, else 1")
    parser.add_argument("--as-built", action="store_true", help="do not bring its programs up to date")
    parser.add_argument("--results", type=Path, help="folder for the results; otherwise perf/results/<processor>")
    parser.add_argument("--samples", type=int, help="of each product, instead of 30")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, to see whether all runs")
    options = parser.parse_args()
    if options.threads is None:
        options.threads = 1 if options.build == common.BUILD else 2
    names = options.only or (THREADED if options.threads > 1 else list(SECTIONS))
    if options.threads > 1 and not set(names) <= set(THREADED):
        parser.error(f"with threads there are only {', '.join(THREADED)}")
    if not options.as_built:
        common.build(options.build, "perf_hmatrix_products", "perf_hmatrix_variants", *([] if options.threads > 1 else ["komvos"]))
    options.results = options.results or common.results_folder()
    options.results.mkdir(parents=True, exist_ok=True)
    for name in names:
        run_section(options, name)


if __name__ == "__main__":
    main()
