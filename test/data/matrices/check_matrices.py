#!/usr/bin/env python3
"""Prints the figures of README.md, measured on the .mtx files beside this script. Needs numpy and scipy."""
import glob
import os

import numpy as np
import scipy.io as io
import scipy.sparse as sp
import scipy.sparse.linalg as sla


def figures(path):
    A = sp.csc_matrix(io.mmread(path))
    b = np.asarray(io.mmread(path.replace(".mtx", "_rhs.mtx"))).ravel()
    n, d = A.shape[0], A.diagonal()

    # Without pivoting, the signs of U's diagonal are the signs of the eigenvalues (Sylvester).
    ldl = sla.splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    assert np.array_equal(ldl.perm_r, ldl.perm_c)
    negative = int((ldl.U.diagonal() < 0).sum())

    lu = sla.splu(A)
    inverse = sla.LinearOperator((n, n), matvec=lu.solve, dtype=float)
    v0 = np.random.default_rng(1).standard_normal(n)
    nearest = sla.eigsh(A, 1, sigma=0, OPinv=inverse, v0=v0, return_eigenvectors=False)[0]
    largest = sla.eigsh(A, 1, which="LA", v0=v0, return_eigenvectors=False)[0]
    lowest = nearest if negative == 0 else sla.eigsh(A, 1, which="SA", ncv=60, v0=v0, return_eigenvectors=False)[0]
    x = lu.solve(b)

    steps = []
    jacobi = sla.LinearOperator((n, n), matvec=lambda r: r / d, dtype=float)
    y, failed = sla.cg(A, b, rtol=1e-8, atol=0, maxiter=20000, M=jacobi, callback=steps.append)
    off = A - sp.diags(d)
    residual = lambda u: np.linalg.norm(b - A @ u) / np.linalg.norm(b)
    print(f"{os.path.basename(path)}: {n} rows, {A.nnz} entries, {sp.tril(A).nnz} stored\n"
          f"  eigenvalues: lowest {lowest:.6g}, nearest to 0 {nearest:.6g}, highest {largest:.6g}, {negative} negative\n"
          f"  condition (2-norm): {max(largest, -lowest) / abs(nearest):.3g}\n"
          f"  diagonal: {int((d <= 0).sum())} entries <= 0; off-diagonal: {int((off.data > 0).sum()) // 2} pairs > 0\n"
          f"  direct solve: residual {residual(x):.2g}, solution from {x.min():.6g} to {x.max():.6g}, "
          f"2-norm {np.linalg.norm(x):.10g}\n"
          f"  CG + Jacobi to 1e-8: {len(steps)} steps, {'NO CONVERGENCE' if failed else 'converged'}, residual "
          f"{residual(y):.2g}, error {np.linalg.norm(x - y) / np.linalg.norm(x):.2g}")


for name in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "*.mtx"))):
    if not name.endswith("_rhs.mtx"):
        figures(name)
