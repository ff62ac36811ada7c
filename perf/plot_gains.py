#!/usr/bin/env python3
"""Draws perf/gains.svg, the picture of the README, from the results of run_halo.py. Needs matplotlib (Debian:
python3-matplotlib, for /usr/bin/python3); --check does not, for the picture holds its numbers as text, too.
"""
import argparse
import html
import re
from pathlib import Path

import common
from halo_results import load, median

PICTURE = common.PERF / "gains.svg"
PANELS = {"plain": "Network without extra cost", "100us": "100 us per message at each node's card"}  # by run
MATRICES = {  # what the picture calls a halo, by the halo's title
    "elasticity3d 20 x 20 x 20": "Elasticity, level 0",
    "elasticity3d 20 x 20 x 20, level 1 A": "Elasticity, level 1",
    "elasticity3d 20 x 20 x 20, level 2 A": "Elasticity, level 2",
    "elasticity3d 20 x 20 x 20, level 3 A": "Elasticity, level 3",
    "random 16000 rows, 25 entries each": "Random, 25 per row",
    "random 16000 rows, 100 entries each": "Random, 100 per row",
    "laplace3d 40 x 40 x 40": "Laplace",
}
# Variant, its name in the picture, color. Okabe and Ito's colors, apart for the colour-blind; Tpetra's are grey.
BARS = (("tpetra", "Tpetra", "#b0b0b0"), ("tpetra-isend", "Tpetra, Isend", "#707070"),
        ("standard, persistent", "Komvos, standard route", "#56b4e9"), ("auto", "Komvos, auto", "#d55e00"))


class Row:
    """What the picture says about a matrix."""

    def __init__(self, halo):
        self.times = [round(1e6 * median(halo.variants[variant])) for variant, _, _ in BARS]
        self.gain = f"{median(halo.auto, 'gain'):.1f}x"


def rows_of_panels(folder):
    """{run: {matrix: Row}}"""
    panels = {}
    for run in PANELS:
        halos = {halo.title(): halo for halo in load(folder, run)[1]}
        missing = [title for title in MATRICES if title not in halos]
        if missing:
            raise SystemExit(f"no results of '{run}' for {', '.join(missing)} in {folder}")
        panels[run] = {name: Row(halos[title]) for title, name in MATRICES.items()}
    return panels


def description(panels):
    """The numbers of the picture, as text: for readers who cannot see it, and for --check."""
    lines = ["Time of one matrix-vector product on 16 ranks on 4 nodes, in us: " +
             ", ".join(label for _, label, _ in BARS) + "; gain of auto over the fastest of the others."]
    for run, title in PANELS.items():
        lines += [f"{title}: {name}: {', '.join(map(str, row.times))}; {row.gain}." for name, row in panels[run].items()]
    return " ".join(lines)


def draw_panel(axes, title, rows):
    height = 0.2
    for number, (_, label, color) in enumerate(BARS):
        places = [i + (number - 1.5) * height for i in range(len(rows))]
        axes.barh(places, [row.times[number] for row in rows.values()], height, label=label, color=color)
    for i, row in enumerate(rows.values()):  # beside the last bar
        axes.annotate(row.gain, (row.times[-1], i + 1.5 * height), xytext=(4, -1), textcoords="offset points",
                      va="center", fontsize=9, fontweight="bold", color=BARS[-1][2])
    axes.set_title(title, fontsize=11)
    axes.set_xlabel("time of one product, us (shorter is better)")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(True, axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)  # the first on top


def draw(panels, path):
    pyplot = common.pyplot()
    figure, all_axes = pyplot.subplots(1, len(PANELS), figsize=(9, 5), sharey=True)
    for axes, (run, title) in zip(all_axes, PANELS.items()):
        draw_panel(axes, title, panels[run])
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(BARS), frameon=False)
    figure.text(0.5, 0.015, "Numbers: gain of auto over the fastest of the other three. Matrix-vector product on 16 ranks, 4 virtual nodes.",
                ha="center", fontsize=9)
    figure.tight_layout(rect=(0, 0.04, 1, 0.93))
    figure.savefig(path, metadata={"Date": None, "Description": description(panels)})


def check(panels):
    found = re.search(r"<dc:description>(.*?)</dc:description>", PICTURE.read_text(encoding="utf-8"), re.DOTALL)
    if not found or html.unescape(found.group(1)) != description(panels):
        raise SystemExit("perf/gains.svg does not show the stored results: run perf/plot_gains.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", default=common.shown("halo"), help="the folder (%(default)s)")
    parser.add_argument("--check", action="store_true", help="draw nothing; fail if the picture shows other numbers")
    options = parser.parse_args()
    panels = rows_of_panels(Path(options.results).resolve())
    if options.check:
        check(panels)
    else:
        draw(panels, PICTURE)


if __name__ == "__main__":
    main()
