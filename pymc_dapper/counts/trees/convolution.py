"""Convolutions of windows: written out while that is fastest, by Fourier transform beyond."""

import math

import numpy as np
from numba import njit

SLOWER = 250.0
"""By how many multiplications an entry of a transform must save at each of its log2 levels.

It costs about 12. But its errors are absolute, so that a tree of which the posterior lies in tails
has to be done again without, and windows of up to some thousands are fast as they are.
"""

PRECISION = 2.0**-52


@njit(fastmath={"reassoc", "contract", "nsz"})
def convolve_directly(a: np.ndarray, b: np.ndarray, first: int, out: np.ndarray) -> None:
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
        # Where four rows overlap they are added at once: the sum is loaded and stored once.
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


@njit
def transform(x: np.ndarray, y: np.ndarray, sign: float) -> np.ndarray:
    """Fourier transform of a complex array whose length is a power of 2 (Stockham's order).

    ``y`` is room of the same size. Which of both the result is in depends on the length.
    """
    n, stride = x.size, 1
    while n > 1:
        half = n // 2
        for p in range(half):
            angle = sign * 2 * math.pi * p / n
            turn = complex(math.cos(angle), math.sin(angle))
            a, b = (
                x[stride * p : stride * (p + 1)],
                x[stride * (p + half) : stride * (p + half + 1)],
            )
            c = y[stride * 2 * p : stride * (2 * p + 1)]
            d = y[stride * (2 * p + 1) : stride * (2 * p + 2)]
            for q in range(stride):
                u, v = a[q], b[q]
                c[q] = u + v
                d[q] = (u - v) * turn
        x, y = y, x
        n, stride = half, 2 * stride
    return x


@njit
def convolve_by_transform(a: np.ndarray, b: np.ndarray, first: int, out: np.ndarray) -> None:
    """Do the same by Fourier transforms: each entry is right up to some 1e-16 of the sum of all."""
    n = 1
    while n < a.size + b.size - 1:
        n *= 2
    x, y = np.zeros(n, dtype=np.complex128), np.empty(n, dtype=np.complex128)
    for j in range(a.size):
        x[j] = a[j]
    for j in range(b.size):
        x[j] += 1j * b[j]
    z = transform(x, y, -1.0)
    other = y if z is x else x
    product = np.empty(n, dtype=np.complex128)
    for k in range(n):
        u, v = z[k], z[(n - k) % n].conjugate()
        product[k] = (u + v) * (u - v) * (-0.25j)
    z = transform(product, other, 1.0)
    for j in range(out.size):
        at = first + j
        out[j] = max(z[at].real / n, 0.0) if 0 <= at < a.size + b.size - 1 else 0.0


@njit
def convolve(a: np.ndarray, b: np.ndarray, first: int, out: np.ndarray, transforms: bool) -> float:
    """Write entries of the convolution of two arrays of non-negative numbers.

    Parameters
    ----------
    a, b : ndarray of float64
        The arrays.
    first : int
        The first entry that is wanted.
    out : ndarray of float64
        Is written.
    transforms : bool
        Whether Fourier transforms may be used, where they are faster.

    Returns
    -------
    float
        Bound on the Euclidean norm of the entries' errors, for arrays whose sums are at most 1; 0
        if it was done directly.
    """
    if transforms:
        n = 2.0 ** math.ceil(math.log2(a.size + b.size))
        shorter = min(min(a.size, b.size), out.size)
        longer = min(max(a.size, b.size), max(out.size, shorter))
        if 1.0 * shorter * longer > SLOWER * n * math.log2(n):
            convolve_by_transform(a, b, first, out)
            squares = 0.0
            for x in a:
                squares += x * x
            for x in b:
                squares += x * x
            # Each of three transforms adds so much, relative to the norm of what it is made of;
            # and a transform that multiplies an error is nowhere larger than the sum, 1.
            return 3 * PRECISION * math.log2(n) * math.sqrt(squares)
    convolve_directly(a, b, first, out)
    return 0.0
