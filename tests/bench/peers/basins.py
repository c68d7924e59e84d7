"""Escape from the two-factor map on a grid, with numba: basins.py SIDE STEPS MU THREADS; prints seconds, compilation left out.

160 points move together through all steps, so that the compiler can use vectors: the fastest of several ways to write it.
"""
import sys
import time

import numba
import numpy as np

SIDE, STEPS, MU = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
LANES, LIMIT = 160, 1e6
numba.set_num_threads(int(sys.argv[4]))


@numba.njit(parallel=True)
def escaped(a, b, mu, steps):
    out = np.zeros(a.size, np.bool_)
    for block in numba.prange(a.size // LANES):
        x, y = a[block * LANES:(block + 1) * LANES].copy(), b[block * LANES:(block + 1) * LANES].copy()
        for _ in range(steps):
            for j in range(LANES):
                e, p, q = x[j] * y[j] - mu, x[j], y[j]
                x[j] = p - e * q
                y[j] = q - e * p
        for j in range(LANES):
            out[block * LANES + j] = not (abs(x[j]) <= LIMIT and abs(y[j]) <= LIMIT)
    return out


axis = -3 + 6 * (np.arange(SIDE) + 0.5) / SIDE
a, b = (x.ravel().copy() for x in np.meshgrid(axis, axis))
assert a.size % LANES == 0
escaped(a, b, MU, 2)
start = time.perf_counter()
gone = escaped(a, b, MU, STEPS).sum()
print(time.perf_counter() - start, gone)
