"""Reads the results of run_halo.py, for the page and the picture."""
import common

PAIRINGS = ("by-volume", "least-loaded", "majority")
LARGE = ("large-blocks", "large-graph")
PROBLEMS = ("elasticity3d", "rotated2d", "random25", "random50", "random100", "laplace3d", *LARGE)


def median(variant, key="seconds"):
    return variant[key]["median"]


class Halo:
    """One result of one file: the variants that were timed on a halo."""

    def __init__(self, report, result):
        partition = report["parameters"].get("partition", "contiguous")
        self.problem = report["problem"] + ("" if partition == "contiguous" else f", partition {partition}")
        self.level = result["name"]
        self.rows = result["rows"]
        self.neighbours = result["neighbours_max"]
        self.best_baseline = result["best_baseline"]
        self.variants = {variant["name"]: variant for variant in result["variants"]}
        self.auto = self.variants["auto"]

    def best(self, route):
        """The faster of a route's two variants on the nodes; None if there is none."""
        variants = [variant for name, variant in self.variants.items() if name.startswith(route + ",")]
        return min(variants, key=median) if variants else None

    def tpetra(self):
        return min((self.variants["tpetra"], self.variants["tpetra-isend"]), key=median)

    def title(self):
        return self.problem if self.level == "level 0 A" else f"{self.problem}, {self.level}"


def load(folder, run):
    """The reports of a run, and all halos in them."""
    files = [common.newest(folder.glob(f"*-halo-{run}-{problem}.json")) for problem in PROBLEMS]
    reports = [common.read_results(file) for file in files if file]
    return reports, [Halo(report, result) for report in reports for result in report["results"]]


def describe(report):
    """What was measured, and on what."""
    machine, parameters = report["machine"], report["parameters"]
    return (f"{machine['network']}; {machine['topology']}; {report['timed']}; medians of {parameters['samples']} samples "
            f"of {parameters['repeats_per_sample']}; {machine['processor']}, {machine['cores']} cores; "
            f"commit {report['commit']}")
