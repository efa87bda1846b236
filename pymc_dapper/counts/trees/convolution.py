"""Convolutions of windows, written out."""

import numpy as np
from numba import njit

from pymc_dapper.kernels.arrays import copy_into


@njit(fastmath={"reassoc", "contract", "nsz"})
def convolve(a: np.ndarray, b: np.ndarray, first: int, out: np.ndarray) -> None:
    """Write entries ``first, first + 1, ...`` of the convolution of two arrays.

    Terms aren't negative, so each entry is right to a few last digits, in the far tails, too.
    """
    if a.size > b.size:
        a, b = b, a
    out[:] = 0.0
    # Four overlapping rows are added at once: the sum is loaded and stored once. Beyond the ends of
    # both arrays are zeros.
    padded, factors = np.zeros(b.size + 6), np.zeros(4)
    copy_into(padded, 3, b)
    end = min(a.size, first + out.size)
    for i in range(max(0, first - b.size + 1), end, 4):
        for k in range(4):
            factors[k] = a[i + k] if i + k < end else 0.0
        begin, stop = max(0, i - first), min(out.size, b.size + i + 3 - first)
        start = first - i + begin
        o, x = out[begin:stop], padded[start : start + stop - begin + 3]
        f0, f1, f2, f3 = factors
        for j in range(stop - begin):
            o[j] += f0 * x[j + 3] + f1 * x[j + 2] + f2 * x[j + 1] + f3 * x[j]
