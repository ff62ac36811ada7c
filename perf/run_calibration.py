#!/usr/bin/env python3
"""Calibrates the machine model on a virtual cluster of 2 hosts x 4 ranks.

Writes perf/results/<processor>/<date>-<commit>-calibration.json and a picture of it, which needs matplotlib (Debian:
python3-matplotlib, for /usr/bin/python3). Run it as root on a quiet machine. With more ranks than cores short messages
take longer the more pairs there are; the max-rate model has no parameter for that.
"""
import argparse
import os
import tempfile
from pathlib import Path

import common
import plot_calibration


def calibrate(komvos, samples, path):
    load = os.getloadavg()[0]  # others at work on the machine show in the name
    commit = common.commit()
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "machine.json"
        common.run([*common.virtual_cluster(2, 4, 600), komvos, "calibrate", "--name",
                    f"virtual cluster, load {load:.2f} before", "--samples", samples, "--output", raw],
                   common.environment(8))
        machine = common.read_results(raw)
    head = ("format", "version", "name", "date", "host")
    common.write_results(path, {**{key: machine.pop(key) for key in head}, "processor": common.processor(),
                                "cores": common.cores(), "commit": commit, **machine})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--komvos", help="the program; otherwise the one in build/default, brought up to date")
    parser.add_argument("--samples", type=int, default=400)
    options = parser.parse_args()
    if options.komvos is None:
        common.build(common.BUILD, "komvos")
        options.komvos = common.BUILD / "src" / "komvos"
    path = common.results_folder() / f"{common.today()}-{common.commit()}-calibration.json"
    calibrate(options.komvos, options.samples, path)
    print(path)
    plot_calibration.draw_file(path, path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
