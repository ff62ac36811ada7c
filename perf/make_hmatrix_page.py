#!/usr/bin/env python3
"""Writes perf/HMATRIX.md and hmatrix.svg from the newest results of run_hmatrix.py. The picture needs matplotlib
(Debian: python3-matplotlib, for /usr/bin/python3); --check does not, for the picture holds its numbers as text, too.
"""
import argparse
import html
import math
import re
from pathlib import Path

import common

PICTURE = "hmatrix.svg"
READ_GOAL, REDUCED_GOAL, COMPRESSION_GOAL, HMAT_GOAL = 0.8, 1.8, 1.05, 2.0

HEAD = """# How fast are hierarchical matrices, and how small?

Made by `perf/make_hmatrix_page.py` from the JSON files that `perf/run_hmatrix.py` wrote. Below each title stand the file,
the commit and the machine. Times are medians, ratios are medians of ratios within a sample, in which all that is compared
takes turns; a set-up is timed once. MB are 10^6 bytes, GB/s 10^9 bytes a second of the stored matrix. "Error" is that of a
product with random values, relative, against all entries of some rows. Points are on a spiral around a sphere, or
around a cylinder of radius 1 and length 4.8; the kernel is 1/r there, its mean over a point's share of the
surface where r is 0, and the Laplace single layer on triangles for `komvos bem`.

![Time of a product](hmatrix.svg)
"""

BANDWIDTH = """A product must read the matrix once: "of reading" is its speed over that of a loop that only reads as many
bytes; the goal is {goal}. {verdict}
"""
STORAGE = """All matrices are in memory at once. "Times faster" is the time with whole values over that with reduced ones;
the goal is {goal} at 1e-4 with one vector. {verdict}
"""
HALF = """Half of the symmetric matrix (`halfIfSymmetric`) takes about half of the memory. A product reads dense blocks and
factors u once, for both triangles, and factors v twice. With reduced values it takes longer than that of the whole matrix,
the more so for several vectors: decoding costs more than reading there.
"""
HMAT = """Points, kernel, leaf size (32), eta (2), ACA+ and accuracy, also of hmat-oss' recompression, are the same; the rest is as
hmat-oss sets it by itself. It stores all blocks here, too. Goals:
bytes of whole storage at most {compression:.2f} of hmat-oss', set-up not slower, products at least {times:.0f} times faster.
{verdict}
"""
VARIANTS = """The ways to multiply that "Analyzing Performance of BiCGStab with Hierarchical Matrix on GPU Clusters" (Yamazaki et
al., IPDPS 2018) compares, all with the same blocks, beside ours: "panels", two passes over memory. Batches take one gemv
for each block, or factor of it. "Fixed" and "variable" are the numbers of gemv in a launch; "groups" are those of its
figure 7(b). "-team-gemv" and "-team-vector-gemv" are KokkosBatched's loops inside. {verdict}
"""
HACAPK = """`komvos bem` with HACApK's leaf size 15, eta 2 and ACA beside published runs of HACApK, which were on other machines:
times cannot be compared as if they were on one. HACApK makes clusters and chooses blocks by rules of its own, and its mesh
of the sphere is another one with as many triangles, so numbers of blocks differ, too. No solve is preconditioned. Its log of the sphere says 150.7 MB
and 18.26 %, which fits MiB, shown here as MB, and names a tolerance of 1e-6; ours is shown with blocks of 1e-3, HACApK's
default, and of 1e-6. "Charge" is the relative error against the exact one, that of the mesh included.
"""
PAPER = """Two spheres at 1 V and -1 V, an array of 27 spheres at 1 V and a human body, alone at 1 V or in a uniform field, which
takes two right-hand sides; accuracy 1e-3, ACA+, residuals of 1e-7. They resemble the cases of "Analyzing
Performance of BiCGStab with Hierarchical Matrix on GPU Clusters" (Yamazaki et al., IPDPS 2018), whose meshes are not
public; its figure 3 names 16.0 for 101,250 unknowns of spheres, 16.7 for 288,000 and 17.3 for 78,656 of humans, as values
over n log2 n. It must count in another way: HACApK's own log of the sphere above would give {hacapk:.0f}. With reduced
storage, 8 bytes count as a value here.
"""
RANKS = """Gathered are values of x that come from other ranks, sent are parts of y that go to the ranks that own them, both of
all ranks together; a full all-gather moves (ranks - 1) n. With few ranks nearly all of x is needed everywhere. There are
{cores} cores: 4 ranks share them, and of 16 and 64 only what they would move is shown. "Differs" is the relative
difference of the energy from that on one rank. {verdict}
"""
PRECONDITIONERS = """A residual of 1e-6 by pipelined BiCGStab, accuracy of the blocks 1e-4. The array of 27 spheres has 1 V and
-1 V in turn. One application is the time in the preconditioner over the number of products. "In all" is its set-up and
the solve, without that of the matrix. {verdict}
"""


# --- results ---

def newest_reports(folder):
    """{section: (path, report)} of what was measured, "bandwidth-2-threads" among the sections."""
    pattern = re.compile(r"\d{4}-\d\d-\d\d-[0-9a-f]+(-dirty)?-hmatrix-(.*)\.json")
    paths = {}
    for path in folder if isinstance(folder, list) else Path(folder).glob("*-hmatrix-*.json"):
        match = pattern.fullmatch(path.name)
        if match:
            paths.setdefault(match[2], []).append(path)
    found = {name: common.newest(list_of) for name, list_of in paths.items()}
    return {name: (path, common.read_results(path)) for name, path in found.items()}


def shown(path):
    return path.relative_to(common.ROOT) if path.is_relative_to(common.ROOT) else path.name


def several(values, word):
    values = sorted(set(values))
    text = ", ".join(map(str, values[:-1])) + (" or " if len(values) > 1 else "") + str(values[-1])
    return f"{text} {word}{'' if values == [1] else 's'}"


def minutes(seconds):
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def caption(path, report):
    cases = report["cases"]
    samples = [case["samples"] if "samples" in case else case["product"]["count"]
               for case in cases if "samples" in case or case["product"]]
    return (f"`{shown(path)}`: commit {report['commit']}, {report['processor']}, {report['cores']} cores, "
            f"{several([case['ranks'] for case in cases], 'rank')} of {several([report['threads']], 'thread')}, "
            f"{several(samples, 'sample')}; {minutes(report['seconds_of_runs'])} to measure.\n")


def table(head, rows, words=1):
    """The first columns hold words, the others numbers."""
    return common.markdown_table(head, rows, ["---"] * words + ["--:"] * (len(head) - words))


def milliseconds(seconds):
    return f"{1e3 * seconds:,.2f}" if seconds < 0.1 else f"{1e3 * seconds:,.0f}"


def megabytes(count):
    return f"{count / 1e6:,.1f}" if count < 1e9 else f"{count / 1e6:,.0f}"


def span(values, digits=2):
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def goal_met(values, test, what):
    met = sum(map(test, values))
    return f"{what}: {met} of {len(values)} cases ({span(values)})."


# --- cases of perf_hmatrix_products ---

def matrix_of(case, name):
    return next(one for one in case["matrices"] if one["matrix"] == name)


def has(case, name):
    return any(one["matrix"] == name for one in case["matrices"])


def product_of(case, name, vectors=1):
    return next(one for one in case["products"] if one["matrix"] == name and one["vectors"] == vectors)


def bandwidth(path, report):
    rows = []
    for case in report["cases"]:
        whole, product = matrix_of(case, "whole"), product_of(case, "whole")
        rows.append([case["geometry"], f"{case['n']:,}", megabytes(whole["bytes"]), f"{whole['error']:.1e}",
                     f"{whole['seconds_set_up']:.1f}", milliseconds(product["seconds"]),
                     milliseconds(product["read_seconds"]), f"{whole['bytes_read'] / product['seconds'] / 1e9:.1f}",
                     f"{product['of_read_speed']:.2f}"])
    ratios = [product_of(case, "whole")["of_read_speed"] for case in report["cases"]]
    verdict = goal_met(ratios, lambda one: one >= READ_GOAL, "Reached")
    return (caption(path, report) + "\n" + BANDWIDTH.format(goal=READ_GOAL, verdict=verdict) + "\n"
            + table(["accuracy 1e-4", "points", "MB", "error", "set-up, s", "product, ms", "read, ms", "GB/s", "of reading"],
                    rows))


def storage_rows(cases):
    for case in cases:
        whole, reduced = matrix_of(case, "whole"), matrix_of(case, "reduced")
        yield [case["geometry"], f"{case['accuracy']:.0e}", megabytes(whole["bytes"]), megabytes(reduced["bytes"]),
               f"{whole['bytes'] / reduced['bytes']:.2f}", f"{whole['error']:.1e}", f"{reduced['error']:.1e}",
               milliseconds(product_of(case, "whole")["seconds"]), milliseconds(product_of(case, "reduced")["seconds"]),
               *(f"{product_of(case, 'whole', vectors)['over_reduced']:.2f}" for vectors in (1, 4, 16))]


def half_rows(cases):
    for case in cases:
        for name in ("whole", "half", "reduced", "half-reduced"):
            if has(case, "half") and has(case, name):
                matrix = matrix_of(case, name)
                yield [case["geometry"], name, megabytes(matrix["bytes"]), f"{matrix['error']:.1e}",
                       f"{matrix['seconds_set_up']:.1f}",
                       *(milliseconds(product_of(case, name, vectors)["seconds"]) for vectors in (1, 4, 16))]


def storage(path, report):
    cases = report["cases"]

    def faster(vectors, chosen):
        return [product_of(case, "whole", vectors)["over_reduced"] for case in chosen]

    goal_cases = [case for case in cases if case["accuracy"] == 1e-4]
    verdict = goal_met(faster(1, goal_cases), lambda one: one >= REDUCED_GOAL, "Reached")
    for vectors in (4, 16):
        slower = sum(one < 1 for one in faster(vectors, cases))
        verdict += f" With {vectors} vectors reduced values are slower than whole ones in {slower} of {len(cases)} cases."
    text = caption(path, report) + "\n" + STORAGE.format(goal=REDUCED_GOAL, verdict=verdict) + "\n" + table(
        [f"{cases[0]['n']:,} points", "accuracy", "MB, whole", "reduced", "ratio", "error, whole", "reduced",
         "product, ms, whole", "reduced", "times faster, 1 vector", "4 vectors", "16 vectors"], storage_rows(cases), 2)
    half = list(half_rows(cases))
    if half:
        text += "\n" + HALF + "\n" + table(["accuracy 1e-4", "stored", "MB", "error", "set-up, s", "1 vector, ms",
                                            "4 vectors", "16 vectors"], half, 2)
    return text


def hmat_oss(path, report):
    cases = [case for case in report["cases"] if has(case, "hmat_oss")]
    if not cases:
        return caption(path, report) + "\nhmat-oss was not installed.\n"
    memory, times, bytes_of, set_up, faster = [], [], [], [], []
    for case in cases:
        other, whole, reduced = (matrix_of(case, name) for name in ("hmat_oss", "whole", "reduced"))
        name = [case["geometry"], f"{case['n']:,}", f"{case['accuracy']:.0e}"]
        bytes_of.append(whole["bytes"] / other["bytes"])
        set_up.append(whole["seconds_set_up"] / other["seconds_set_up"])
        faster.append(product_of(case, "hmat_oss")["over_whole"])
        memory.append([*name, *(megabytes(one["bytes"]) for one in (other, whole, reduced)), f"{bytes_of[-1]:.2f}",
                       f"{reduced['bytes'] / other['bytes']:.2f}",
                       *(f"{one['error']:.1e}" for one in (other, whole, reduced))])
        times.append([*name, *(f"{one['seconds_set_up']:.2f}" for one in (other, whole, reduced)), f"{set_up[-1]:.2f}",
                      *(milliseconds(product_of(case, one)["seconds"]) for one in ("hmat_oss", "whole", "reduced")),
                      f"{faster[-1]:.1f}", f"{product_of(case, 'hmat_oss')['over_reduced']:.1f}"])
    verdict = " ".join([goal_met(bytes_of, lambda one: one <= COMPRESSION_GOAL, "Bytes reached"),
                        goal_met(set_up, lambda one: one <= 1, "Set-up, time over hmat-oss', reached"),
                        goal_met(faster, lambda one: one >= HMAT_GOAL, "Products, times faster, reached")])
    words = ["geometry", "points", "accuracy"]
    return (caption(path, report) + "\n" + HMAT.format(compression=COMPRESSION_GOAL, times=HMAT_GOAL, verdict=verdict) + "\n"
            + table([*words, "MB, hmat-oss", "whole", "reduced", "whole of hmat-oss'", "reduced of hmat-oss'",
                     "error, hmat-oss", "whole", "reduced"], memory, 1)
            + "\n" + table([*words, "set-up, s, hmat-oss", "whole", "reduced", "whole of hmat-oss'", "product, ms, hmat-oss",
                            "whole", "reduced", "whole times faster", "reduced times faster"], times, 1))


def variants(path, report):
    cases = report["cases"]
    names = [line["variant"] for line in cases[0]["products"]]
    lines = [{line["variant"]: line for line in case["products"]} for case in cases]
    rows = [[name, *(text for line in lines for text in (
        f"{line[name].get('launches', ''):,}" if "launches" in line[name] else "", milliseconds(line[name]["seconds"]),
        f"{line[name].get('over_panels', 1):.2f}"))] for name in names]
    verdict = "Their times over that of panels: " + ", ".join(
        f"{span([line[name]['over_panels'] for name in names if name != 'panels'])} at {case['n']:,} points"
        for line, case in zip(lines, cases)) + "."
    head = [word for case in cases for word in (f"{case['n']:,} points: launches", "ms", "over panels")]
    return (caption(path, report) + "\n" + VARIANTS.format(verdict=verdict) + "\n"
            + table(["sphere, accuracy 1e-3", *head], rows))


# --- cases of komvos bem ---

def name_of(case):
    words = case["arguments"].split()
    if words[0] == "human-body":
        return "human body" + (" in a field" if case["problem"] == "uniform-field" else "")
    geometry = words[words.index("--geometry") + 1]
    return {"two-spheres": "two spheres", "sphere-array": f"{case['geometry']['bodies']} spheres"}.get(geometry, geometry)


def gigabytes_a_second(case):
    return f"{case['product']['bytes_per_second'] / 1e9:.1f}"


def iterations(case):
    return f"{case['solve']['iterations']}{'' if case['solve']['converged'] else ', not converged'}"


# Published numbers: perf/run_hmatrix.py runs the same cases.
HACAPK_BYTES = 150.7 * 2 ** 20
PUBLISHED = {"sphere": [["HACApK, Ivy Bridge, 10 threads", "", "whole", "8,430 + 14,860", "23", megabytes(HACAPK_BYTES),
                         "18.26", "4", "3.30", f"{HACAPK_BYTES / 3.3e-3 / 1e9:.1f}", "", ""],
                        ["HACApK-MAGMA, P100", "", "whole", "", "", "135.7 as logged", "", "", "0.56", "243", "", ""]],
             "two spheres": [["HACApK, V100, FP64", "", "whole", "", "", "", "", "", "0.90", "", "", ""],
                             ["HACApK, V100, FP32", "", "", "", "", "", "", "", "0.65", "", "", ""]]}


def hacapk(path, report):
    text = caption(path, report) + "\n" + HACAPK
    for name in ("sphere", "two spheres"):
        cases = [case for case in report["cases"] if name_of(case) == name]
        if not cases:
            continue
        rows = PUBLISHED[name][:]
        for case in cases:
            matrix, known = case["matrix"], case["result"].get("known", [])
            rows.append([f"Komvos, {several([case['ranks']], 'rank')}", f"{matrix['accuracy']:.0e}", matrix["storage"],
                         f"{matrix['low_rank_blocks']:,} + {matrix['dense_blocks']:,}", matrix["largest_rank"],
                         megabytes(matrix["bytes"]), f"{100 * matrix['part_of_dense_matrix']:.2f}", iterations(case),
                         milliseconds(case["product"]["seconds"]), gigabytes_a_second(case), f"{matrix['error']:.1e}",
                         f"{known[0]['relative_error']:.1e}" if known else ""])
        text += f"\n### {name.capitalize()}, {cases[0]['matrix']['unknowns']:,} triangles\n\n" + table(
            ["by", "accuracy", "storage", "blocks, low rank + dense", "largest rank", "MB", "% of dense", "iterations",
             "product, ms", "GB/s", "error", "charge"], rows, 3)
    return text


def per_n_log_n(count, n):
    return count / 8 / n / math.log2(n)


def shares(solve):
    seconds = solve["seconds_of"]
    return [f"{100 * seconds[part] / solve['seconds']:.0f}" for part in ("products", "exchanges", "vectors_and_reductions")]


def paper(path, report):
    rows = []
    for case in report["cases"]:
        matrix = case["matrix"]
        rows.append([name_of(case), matrix["storage"], f"{matrix['unknowns']:,}", megabytes(matrix["bytes"]),
                     f"{100 * matrix['part_of_dense_matrix']:.2f}", f"{per_n_log_n(matrix['bytes'], matrix['unknowns']):.0f}",
                     matrix["largest_rank"], f"{case['setup_seconds']:.1f}", milliseconds(case["product"]["seconds"]),
                     gigabytes_a_second(case), iterations(case), f"{case['solve']['seconds']:.2f}", *shares(case["solve"])])
    return (caption(path, report) + "\n" + PAPER.format(hacapk=per_n_log_n(HACAPK_BYTES, 10400)) + "\n"
            + table(["case", "storage", "unknowns", "MB", "% of dense", "values / (n log2 n)", "largest rank", "set-up, s",
                     "product, ms", "GB/s", "iterations", "solve, s", "% products", "% gather and scatter", "% vectors"],
                    rows, 2))


def ranks(path, report):
    rows, differences, imbalances = [], [], []
    alone = {name_of(case): case for case in report["cases"] if case["ranks"] == 1}
    for case in report["cases"]:
        matrix, count = case["matrix"], case["ranks"]
        gathered, full = sum(matrix["gathered_values_of_mpi_rank"]), (count - 1) * matrix["unknowns"]
        sent = sum(matrix["sent_back_values_of_mpi_rank"])
        imbalances.append(matrix["imbalance"])
        row = [name_of(case), f"{matrix['unknowns']:,}", count,
               f"{megabytes(min(matrix['bytes_of_mpi_rank']))} to {megabytes(max(matrix['bytes_of_mpi_rank']))}",
               f"{matrix['imbalance']:.3f}", f"{gathered:,}", *(f"{part / full:.2f}" if full else "" for part in (gathered, sent))]
        if case["solve"]:
            expected = alone[name_of(case)]["result"]["energy"]
            differences.append(abs(case["result"]["energy"] / expected - 1))
            row += [f"{case['setup_seconds']:.1f}", milliseconds(case["product"]["seconds"]), f"{case['solve']['seconds']:.2f}", iterations(case),
                    f"{differences[-1]:.1e}"]
        rows.append([*row, *[""] * (13 - len(row))])
    verdict = (f"Bytes of the rank with most are up to {max(imbalances):.3f} of the mean; energies differ by up to "
               f"{max(differences):.1e}, solved to 1e-8.")
    return (caption(path, report) + "\n" + RANKS.format(cores=report["cores"], verdict=verdict) + "\n"
            + table(["case", "unknowns", "ranks", "MB of a rank", "largest of the mean", "gathered",
                     "of all-gather", "sent of it", "set-up, s", "product, ms", "solve, s", "iterations", "differs"], rows))


def in_all(case):
    return case["solve"]["preconditioner"]["seconds"] + case["solve"]["seconds"]


def preconditioners(path, report):
    cases = sorted(report["cases"], key=lambda case: name_of(case))  # stable: kinds stay in order
    plain = {name_of(case): in_all(case) for case in cases if case["solve"]["preconditioner"]["kind"] == "none"}
    rows = []
    for case in cases:
        solve = case["solve"]
        made = solve["preconditioner"]
        without = made["kind"] == "none"
        rows.append([name_of(case), made["kind"], solve["right_hand_sides"], f"{made['seconds']:.2f}",
                     megabytes(made["bytes"]), "" if without else
                     milliseconds(solve["seconds_of"]["preconditioner"] / solve["products"]),
                     milliseconds(case["product"]["seconds"]), iterations(case), f"{solve['seconds']:.2f}",
                     f"{in_all(case):.2f}", f"{in_all(case) / plain[name_of(case)]:.2f}"])
    best = {name: min((case for case in cases if name_of(case) == name), key=in_all) for name in plain}
    verdict = "Least time in all: " + "; ".join(
        f"{name}: {case['solve']['preconditioner']['kind']}" for name, case in best.items()) + "."
    return (caption(path, report) + "\n" + PRECONDITIONERS.format(verdict=verdict) + "\n"
            + table(["case", "preconditioner", "right-hand sides", "its set-up, s", "MB", "one application, ms",
                     "product, ms", "iterations", "solve, s", "in all, s", "of none"], rows, 2))


SECTIONS = (("bandwidth", "Products beside reading, one thread", bandwidth),
            ("bandwidth-2-threads", "Products beside reading, two threads", bandwidth),
            ("storage", "Whole and reduced values", storage),
            ("storage-2-threads", "Whole and reduced values, two threads", storage),
            ("hmat-oss", "Beside hmat-oss", hmat_oss),
            ("variants", "Beside batches of small products, one thread", variants),
            ("variants-2-threads", "Beside batches of small products, two threads", variants), ("hacapk", "Published cases of HACApK", hacapk),
            ("paper", "Spheres and humans", paper), ("ranks", "One, two and four ranks", ranks),
            ("preconditioners", "Preconditioners", preconditioners))


def page(reports):
    parts = [HEAD]
    for section, title, make in SECTIONS:
        if section in reports:
            parts.append(f"\n## {title}\n\n" + make(*reports[section]))
    return "".join(parts)


# --- the picture ---

def curves(report):
    """{geometry: [(points, ms of a product, ms of a read)]}"""
    found = {}
    for case in report["cases"]:
        product = product_of(case, "whole")
        found.setdefault(case["geometry"], []).append(
            (case["n"], round(1e3 * product["seconds"], 3), round(1e3 * product["read_seconds"], 3)))
    return {geometry: sorted(points) for geometry, points in found.items()}


def description(lines):
    """The numbers of the picture, as text: for readers who cannot see it, and for --check."""
    return "Time of a product and of a read of the same bytes, in ms, accuracy 1e-4, one core. " + " ".join(
        f"{geometry}: " + "; ".join(f"{n} points: {product}, {read}" for n, product, read in points) + "."
        for geometry, points in lines.items())


def draw(lines, path):
    pyplot = common.pyplot()
    figure, axes = pyplot.subplots(figsize=(6.5, 4))
    for (geometry, points), colour in zip(lines.items(), ("#d55e00", "#0072b2")):
        n = [one[0] for one in points]
        axes.plot(n, [one[1] for one in points], "o-", color=colour, label=f"product, {geometry}")
        axes.plot(n, [one[2] for one in points], "--", color=colour, linewidth=1, label=f"reading as many bytes, {geometry}")
    first = next(iter(lines.values()))
    scale = first[0][1] / (first[0][0] * math.log(first[0][0]))
    axes.plot([one[0] for one in first], [scale * one[0] * math.log(one[0]) for one in first], ":", color="#707070",
              label="n log n")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("points n")
    axes.set_ylabel("ms")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(True, color="#dddddd", linewidth=0.5)
    axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Description": description(lines)})


def check_picture(lines):
    path = common.PERF / PICTURE
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    if not found or html.unescape(found.group(1)) != description(lines):
        raise SystemExit(f"perf/{PICTURE} does not show the stored results: run perf/make_hmatrix_page.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, help="the folder; otherwise the newest in perf/results")
    parser.add_argument("--out", type=Path, help="another folder for page and picture than perf")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if they say anything else")
    options = parser.parse_args()
    reports = newest_reports(options.results or sorted(common.RESULTS.glob("*-cores/*-hmatrix-*.json")))
    if "bandwidth" not in reports:
        parser.error("no result of run_hmatrix.py --only bandwidth")
    if options.out:
        common.PERF = options.out.resolve()
    common.write_page("HMATRIX.md", page(reports), options.check, "make_hmatrix_page.py")
    lines = curves(reports["bandwidth"][1])
    if options.check:
        check_picture(lines)
    else:
        draw(lines, common.PERF / PICTURE)


if __name__ == "__main__":
    main()
