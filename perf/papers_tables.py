"""The tables of PAPERS.md and ALL_TO_FEW.md, from reports of `komvos analyze` and of the programs in perf/."""
import statistics

from common import markdown_table

NETWORKS = ("torus", "fat-tree")
COMPARED = 2048  # ranks that SimGrid replays exactly and coarsely
COARSER_TOO = 8192  # and coarsely and more coarsely, weak scaling
LONG = 32768  # ranks from which on a replay takes hours
# Of Fujii and Marques: cores, most neighbours on levels and between them.
TABLE_3 = {32: "19/31", 128: "35/127", 192: "48/191", 1536: "105/1533", 3072: "136/3007"}


def ms(seconds):
    return f"{1e3 * seconds:.3g}"


def times(before, after):
    return f"{before / after:.1f}"


def route(entry, name):
    return next(one for one in entry["routes"] if one["route"] == name)


def standard_and_aware(entry):
    return route(entry, "standard"), route(entry, "three-step")


def gain_at_the_end(reports):
    standard, aware = standard_and_aware(reports[-1])
    return times(standard["modelled_seconds"], aware["modelled_seconds"])


def levels(report):
    """Maxima per rank of the products with A, standard and three-step, as figures 8 to 10 show them."""
    rows = []
    for op in (op for op in report["operators"] if op["operator"] == "A"):
        standard, aware = standard_and_aware(op)
        cells = [op["level"], op["rows"]]
        for kind in ("inter_node", "on_node"):
            for what in ("messages_max", "bytes_max"):
                cells.append(f"{standard['sent'][kind][what]} / {aware['sent'][kind][what]}")
        fastest = route(op, op["fastest"])
        cells += [f"{ms(standard['modelled_seconds'])} / {ms(aware['modelled_seconds'])}",
                  f"{op['fastest']} {times(standard['modelled_seconds'], fastest['modelled_seconds'])}x"]
        rows.append(cells)
    return markdown_table(["level", "rows", "messages between nodes", "bytes between nodes", "messages on nodes",
                           "bytes on nodes", "modelled ms", "fastest of all routes"], rows)


def simulated_levels(report):
    """Modelled and simulated microseconds of every operator, standard and three-step."""
    rows = []
    for op in report["operators"]:
        standard, aware = standard_and_aware(op)
        cells = [f"{op['level']} {op['operator']}", op["rows"], f"{standard['sent']['inter_node']['messages_max']} / "
                 f"{aware['sent']['inter_node']['messages_max']}",
                 f"{1e6 * standard['modelled_seconds']:.1f} / {1e6 * aware['modelled_seconds']:.1f} "
                 f"({times(standard['modelled_seconds'], aware['modelled_seconds'])}x)"]
        for kind in NETWORKS:
            a, b = (one["simulated_seconds"][kind] for one in (standard, aware))
            cells.append(f"{1e6 * a:.1f} / {1e6 * b:.1f} ({times(a, b)}x)")
        rows.append(cells)
    return markdown_table(["operator", "rows", "messages between nodes", "modelled us",
                           *(f"{kind} us" for kind in NETWORKS)], rows)


def random_rows(reports):
    """One row for each number of ranks or entries, standard and three-step; SimGrid's times where there are any."""
    rows = []
    for report in reports:
        standard, aware = standard_and_aware(report)
        cells = [report["ranks"], report["rows"], report["entries"]]
        for what in ("inter_messages_max", "inter_bytes_max"):
            cells.append(f"{standard[what]} / {aware[what]}")
        cells += [f"{ms(standard['modelled_seconds'])} / {ms(aware['modelled_seconds'])}",
                  times(standard["modelled_seconds"], aware["modelled_seconds"]) + "x"]
        if "networks" in report:
            cells += [simulated_cell(standard, aware, kind) for kind in NETWORKS]
        rows.append(cells)
    head = ["ranks", "rows", "entries", "messages, most", "bytes, most", "modelled ms", "gain"]
    return markdown_table(head + (list(NETWORKS) if "networks" in reports[0] else []), rows)


def simulated_cell(standard, aware, kind):
    after = aware["simulated_seconds"][kind]
    if "simulated_seconds" in standard:
        before, least = standard["simulated_seconds"][kind], ""
    else:
        before, least = standard["least_replay_seconds"], "&ge; "
    return f"{least}{ms(before)} / {ms(after)} ({least}{times(before, after)}x)"


def neighbours(reports):
    """Table 3 of Fujii and Marques beside ours."""
    rows = []
    for ranks, report in reports.items():
        def most(names):
            halos = [route(op, "standard") for op in report["operators"] if op["operator"] in names]
            return max(max(halo["neighbours_max"], halo["sources_max"]) for halo in halos)
        matrices = [op for op in report["operators"] if op["operator"] == "A"]
        gathered = max(op["ranks_with_rows"] for op in matrices[-2:-1])
        rows.append([ranks, TABLE_3[ranks], f"{most('A')}/{most('PR')}", gathered - 1, len(matrices)])
    return markdown_table(["cores", "table 3, 1st problem: levels/between", "ours: levels/between",
                           "ours with the coarsest level on one rank: between", "our levels (theirs: 4)"], rows)


def crossover(reports):
    """(neighbours, gain of the best axis topology) of every halo."""
    points = []
    for report in reports.values():
        for op in report["operators"]:
            standard = route(op, "standard")
            axis = min(one["modelled_seconds"] for one in op["routes"] if one["route"] != "standard")
            if axis > 0:
                points.append((max(standard["neighbours_max"], standard["sources_max"]),
                               standard["modelled_seconds"] / axis))
    return sorted(points)


def crossover_table(points):
    rows = []
    for low, high in ((1, 10), (11, 20), (21, 44), (45, 100), (101, 300), (301, 10**6)):
        gains = sorted(gain for n, gain in points if low <= n <= high)
        if gains:
            rows.append([f"{low} to {high}" if high < 10**6 else f"{low} and more", len(gains),
                         f"{gains[0]:.2f}", f"{statistics.median(gains):.2f}", f"{gains[-1]:.2f}"])
    return markdown_table(["neighbours", "halos", "least gain", "median", "most"], rows)
