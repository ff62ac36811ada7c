#!/usr/bin/env python3
"""Draws what `komvos calibrate` measured, and the model fitted to it, from its JSON file. Needs matplotlib (Debian:
python3-matplotlib, for /usr/bin/python3).
"""
import argparse
import math
from pathlib import Path

import common


def rate_of(number):
    return math.inf if number is None else number


def model_time(link, size, pairs):
    """Equations (10) and (12) of Bienz, Gropp and Olson, as in Komvos_MachineModel.cpp; with one pair (10) is (11)."""
    protocol = ("short" if size <= link["short_max_bytes"] else
                "eager" if size <= link["eager_max_bytes"] else "rendezvous")
    parameters = link[protocol]
    further = min(pairs, link.get("measured_senders_per_node", 1)) - 1
    joint = rate_of(parameters["bytes_per_s"]) + further * parameters.get("bytes_per_s_added_by_each_sender", 0)
    joint = min(joint, rate_of(parameters.get("bytes_per_s_of_node")))
    return parameters["latency_s"] + pairs * size / joint


def label(series):
    return f"{series['pairs']} pair{'s' if series['pairs'] > 1 else ''}"


def draw_panel(axes, title, link, all_series):
    axes.set(title=title, xlabel="message, bytes", xscale="log", yscale="log")
    axes.set_xscale("log", base=2)
    axes.grid(True, which="major", alpha=0.3)
    for number, series in enumerate(all_series):
        sizes = [point["bytes"] for point in series["points"]]
        color = f"C{number}"
        axes.plot(sizes, [1e6 * point["seconds"] for point in series["points"]], "o", markersize=3, color=color)
        axes.plot(sizes, [1e6 * model_time(link, size, series["pairs"]) for size in sizes], "-", linewidth=1,
                  color=color, label=label(series))
    for limit in (link["short_max_bytes"], link["eager_max_bytes"]):
        axes.axvline(limit, color="gray", linewidth=0.8, linestyle=":")
    axes.legend(title="points: measured\nlines: model", fontsize="small", title_fontsize="small")


def draw(machine, path):
    pyplot = common.pyplot()
    between = {"ranks of a node": "on_node", "nodes": "off_node"}
    panels = [(title, machine[key], [s for s in machine["measured"] if s["between"] == title])
              for title, key in between.items() if machine[key] is not None]
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(5.5 * len(panels), 4.5), sharey=True, squeeze=False)
    for axes, (title, link, series) in zip(all_axes[0], panels):
        draw_panel(axes, f"between {title}", link, series)
    all_axes[0][0].set_ylabel("time of one message, us")
    figure.suptitle(f"{machine['name']}, {machine['date']}: {machine['host']}", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def draw_file(source, target):
    machine = common.read_results(source)
    if machine.get("format") != "komvos-machine" or machine.get("version") != 1:
        raise SystemExit(f"{source}: not a komvos-machine file of version 1")
    draw(machine, target)
    print(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine", help="the JSON file")
    parser.add_argument("picture", nargs="?", help="beside the file if it is not named")
    options = parser.parse_args()
    source = Path(options.machine)
    draw_file(source, Path(options.picture) if options.picture else source.with_suffix(".svg"))


if __name__ == "__main__":
    main()
