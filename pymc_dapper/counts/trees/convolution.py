"""Convolutions of windows, written out."""

import numpy as np
from numba import njit


@njit(fastmath={"reassoc", "contract", "nsz"})
def convolve(a: np.ndarray, b: np.ndarray, first: int, out: np.ndarray) -> None:
    """Write entries ``first, first + 1, ...`` of the convolution of two arrays.

    Terms aren't negative, so each entry is right to a few last digits, in the far tails, too.
    """
    if a.size > b.size:
        a, b = b, a
    n, m = out.size, b.size
    for j in range(n):
        out[j] = 0.0
    i = max(0, first - m + 1)
    end = min(a.size, first + n)
    while i + 4 <= end:
        # Four overlapping rows are added at once: the sum is loaded and stored once.
        begin, stop = max(0, i + 3 - first), min(n, m + i - first)
        if stop - begin < 8:
            begin = stop = 0
        shift = first - i
        if stop > begin:
            a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
            width = stop - begin
            o = out[begin:stop]
            b0 = b[begin + shift : begin + shift + width]
            b1 = b[begin + shift - 1 : begin + shift - 1 + width]
            b2 = b[begin + shift - 2 : begin + shift - 2 + width]
            b3 = b[begin + shift - 3 : begin + shift - 3 + width]
            for j in range(width):
                o[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]
        for k in range(4):
            low, high = max(0, i + k - first), min(n, m + i + k - first)
            x, s = a[i + k], shift - k
            if stop > begin:
                for j in range(low, min(begin, high)):
                    out[j] += x * b[j + s]
                low = max(low, stop)
            for j in range(low, high):
                out[j] += x * b[j + s]
        i += 4
    while i < end:
        x, s = a[i], first - i
        for j in range(max(0, -s), min(n, m - s)):
            out[j] += x * b[j + s]
        i += 1
