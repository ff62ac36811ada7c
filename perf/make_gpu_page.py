#!/usr/bin/env python3
"""Writes perf/GPU.md from the newest results of a GPU, or stores what a bundle for GPUs reported.

  perf/make_gpu_page.py --store REPORT...   the folders that `komvos-gpu-bundle/run` wrote, as a file of perf/results
  perf/make_gpu_page.py                     the page

Several reports of one bundle are stored as one.
"""
import argparse
import json
import sys
from pathlib import Path

import common

HEAD = """# On a GPU

Made by `perf/make_gpu_page.py` from `{file}`:
what `komvos-gpu-bundle/run` (test/gpu_bundle.py) reported; commit {commit}, {gpu}, CUDA {cuda} in the bundle. Times
are medians, ratios are medians of ratios within a sample, in which all that is compared takes turns; every sample waits
for the GPU. "Reading" is the time to read as many bytes as the product must, by a sum over 16 bytes a thread; it has the
time of a launch and of a result in it, as the products have.
"""
PRODUCTS = """One rank, so that nothing travels: the kernels alone. Tpetra's are those of Kokkos Kernels 3.4, without cuSPARSE.
{verdict}
"""
HMATRIX = """Points on a sphere or a cylinder, 1/r, accuracy 1e-4, as in HMATRIX.md. GB/s are 10^9 bytes a second of the stored
matrix. Set-up is by one thread of the host: that is what the Trilinos of the bundle has.
{verdict}
"""
TESTS = """"Staged": messages through pinned memory of the host; "gpu-aware": MPI gets pointers to GPU memory. All ranks share the
GPU. {verdict}
{remarks}"""


# --- what bundles reported ---

def merged(reports):
    """One of several reports of a bundle; of a run that was repeated, the last one counts."""
    runs = {}
    for report in reports:
        runs.update({(run["mode"], run["name"]): run for run in report["runs"]})
    return {**reports[0], "runs": list(runs.values())}


def store(folders, remarks):
    reports, benches = [], {}
    for folder in folders:
        reports.append(json.loads((folder / "report.json").read_text()))
        benches.update({file.stem: json.loads(file.read_text()) for file in sorted((folder / "bench").glob("*.json"))})
    bundles = {report["bundle"]["commit"] for report in reports}
    if len(bundles) != 1:
        sys.exit(f"these reports are of several bundles: {', '.join(sorted(bundles))}")
    report = merged(reports)
    gpu = report["machine"]["driver"]["gpus"][0]
    result = {"benchmark": "gpu", "commit": report["bundle"]["commit"], "date": common.today(), "gpu": gpu["name"],
              "nvcc": report["bundle"]["nvcc"], "driver_supports_cuda": report["machine"]["driver"]["driver_supports_cuda"],
              "mpi": report["machine"]["mpi"]["library"], "remarks": remarks,
              "runs": [{key: run[key] for key in ("mode", "name", "ranks", "status", "seconds", "tests_passed",
                                                  "tests_skipped", "sanitizer_errors") if key in run}
                       for run in report["runs"] if run["mode"] != "bench"],
              "products": [benches[name] for name in benches if name.startswith("products.")],
              "hmatrix": [benches[name] for name in benches if name.startswith("hmatrix.")]}
    folder = common.RESULTS / gpu["name"].lower().replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-{result['commit'][:10]}-gpu.json"
    common.write_results(path, result)
    print(path)


# --- the page ---

def microseconds(seconds):
    return f"{1e6 * seconds:,.0f}"


def products(reports):
    rows, ratios = [], []
    for report in reports:
        for result in report["results"]:
            variants = {variant["name"]: variant for variant in result["variants"]}
            ours, theirs, read = variants["komvos"], variants["tpetra"], variants["read"]
            ratios.append(result["komvos_of"]["tpetra"])
            rows.append([report["problem"].split(",")[0], f"{report['rows']:,}", result["columns"], microseconds(ours["seconds"]),
                         microseconds(theirs["seconds"]), f"{ratios[-1]:.2f}", f"{1 / result['komvos_of']['read']:.2f}",
                         f"{1e-9 * result['least_bytes'] / ours['seconds']:,.0f}", f"{1e-9 * result['least_bytes'] / read['seconds']:,.0f}"])
    verdict = f"Komvos takes {min(ratios):.2f} to {max(ratios):.2f} of Tpetra's time."
    return PRODUCTS.format(verdict=verdict) + "\n" + common.markdown_table(
        ["problem", "rows", "columns", "Komvos, us", "Tpetra, us", "of Tpetra's time", "of reading", "GB/s", "reading, GB/s"],
        rows, ["---"] + ["--:"] * 8)


def hmatrix(reports):
    rows, reached, gains = [], [], []
    for report in sorted(reports, key=lambda one: (one["geometry"], one["transposed"], one["n"])):
        made = {matrix["matrix"]: matrix for matrix in report["matrices"]}
        for product in report["products"]:
            matrix = made[product["matrix"]]
            if product["vectors"] == 1 and not report["transposed"]:
                if product["matrix"] == "whole":
                    reached.append(product["of_read_speed"])
                if product["matrix"] == "reduced":
                    gains.append(1 / product["over_whole"])
            rows.append([report["geometry"] + (", transposed" if report["transposed"] else ""), f"{report['n']:,}", product["matrix"],
                         f"{1e-6 * matrix['bytes']:,.0f}", product["vectors"], microseconds(product["seconds"]),
                         f"{product['of_read_speed']:.2f}", f"{1e-9 * matrix['bytes_read'] / product['seconds']:,.0f}",
                         f"{matrix['error']:.0e}", f"{matrix['seconds_set_up']:.1f}"])
    verdict = (f"Of the speed of reading, products with whole values and one vector reach {min(reached):.2f} to {max(reached):.2f}; "
               f"reduced values make those of one vector {min(gains):.1f} to {max(gains):.1f} times faster.")
    return HMATRIX.format(verdict=verdict) + "\n" + common.markdown_table(
        ["points", "n", "values", "MB", "vectors", "us", "of reading", "GB/s", "error", "set-up, s"], rows,
        ["---", "--:", "---"] + ["--:"] * 7)


def tests(runs, remarks):
    rows = [[run["mode"], run["name"], run["ranks"], run["status"], run["tests_passed"], run["tests_skipped"],
             run.get("sanitizer_errors", ""), run["seconds"]] for run in runs]
    failed = [f"{run['mode']}/{run['name']}" for run in runs if run["status"] == "FAILED"]
    verdict = (f"{sum(run['status'] == 'passed' for run in runs)} runs passed, {len(failed)} failed"
               + f", {sum(run['status'] == 'not run' for run in runs)} had no time.")
    return TESTS.format(verdict=verdict, remarks="".join(f"\n- {remark}" for remark in remarks) + ("\n" if remarks else "")) + "\n" + common.markdown_table(
        ["messages", "run", "ranks", "", "tests passed", "skipped", "errors found", "s"],
        rows, ["---", "---", "--:", "---", "--:", "--:", "--:", "--:"])


def page(path):
    result = common.read_results(path)
    parts = [HEAD.format(file=path.relative_to(common.ROOT), commit=result["commit"], gpu=result["gpu"], cuda=result["nvcc"])]
    for key, title, make in (("products", "Sparse products", products), ("hmatrix", "Hierarchical matrices", hmatrix),
                             ("runs", "Tests", lambda runs: tests(runs, result["remarks"]))):
        if result[key]:
            parts.append(f"\n## {title}\n\n" + make(result[key]))
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, nargs="+", metavar="REPORT")
    parser.add_argument("--remark", action="append", default=[], metavar="TEXT", help="with --store: why something failed")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page says anything else")
    options = parser.parse_args()
    if options.store:
        store(options.store, options.remark)
        return
    path = common.newest(common.RESULTS.glob("nvidia-*/*-gpu.json"))
    if path is None:
        parser.error("no results of a GPU in perf/results")
    common.write_page("GPU.md", page(path), options.check, "make_gpu_page.py")


if __name__ == "__main__":
    main()
