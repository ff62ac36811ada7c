"""Matrix Market files of the tests, and residuals computed from them."""
import math


def read_matrix(path):
    """Entries (i, j, a) and the number of rows, with the other half of a symmetric matrix."""
    with open(path, encoding="utf-8") as file:
        symmetric = "symmetric" in file.readline()
        lines = [line.split() for line in file if not line.startswith("%") and line.strip()]
    entries = [(int(i) - 1, int(j) - 1, float(a)) for i, j, a in lines[1:]]
    if symmetric:
        entries += [(j, i, a) for i, j, a in entries if i != j]
    return entries, int(lines[0][0])


def read_vector(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if not line.startswith("%") and line.strip()]
    values = [float(line[0]) for line in lines[1:]]
    assert int(lines[0][0]) == len(values) and int(lines[0][1]) == 1
    return values


def norm(vector):
    return math.sqrt(math.fsum(x * x for x in vector))


def residual(entries, x, b):
    r = list(b)
    for i, j, a in entries:
        r[i] -= a * x[j]
    return norm(r) / norm(b)
