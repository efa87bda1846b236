"""Sums of many counts by Fourier transform, right in relative terms.

The errors of a transform are small relative to the largest entries of its result, not to small
ones. So the pmfs of the parts are tilted first: each entry x is multiplied by exp(tilt * x). Given
the sum, that changes nothing. If the tilt makes the known sum the expected one, the relevant
entries are the largest. Errors are bounded at each frequency, from the magnitudes there. The
transform is short, because the error of wrapping is bounded, too.

NumPy transforms all parts at once. Kernels call it in Python, which pays for sums that would take
long otherwise.

References
----------
Keich, U. (2005). sFFT: a faster accurate computation of the p-value of the entropy score. Journal
of Computational Biology 12(4). Tilted transforms.

Brent, R., Percival, C., and Zimmermann, P. (2007). Error bounds on complex floating-point
multiplication. Mathematics of Computation 76. The rounding of a transform.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
from numba import njit

LEVEL_ERROR = 5 * 2.0**-53
"""Error bound of each of a transform's log2 levels, relative to the sum of absolute entries.

A sum has a relative error of 2^-53, a product of complex numbers of 5^0.5 times that, and the
factor was rounded, too.
"""
COST = 20.0
"""Cost of an entry's transform at each of the log2 levels, in multiplications of a direct
convolution, which the compiler vectorises."""
CALL = 4e6
"""Cost of a call from compiled code."""
MOST = 2**27
"""Entries of all transforms of a sum together."""
BELOW = 2.0
"""Standard deviations by which the tilted sum is expected below its window.

Wrapped entries come from above, and are smaller if the expected sum is lower; but that loses
precision. If the window is wider than a standard deviation, the expected sum stays that far below
it.
"""
LOG_WRAPPED = -36.0
"""Largest logarithm of the wrapped part."""
SHORTEST = 64
STEPS = 8
"""Steps of Newton's method to find a tilt. Any tilt is right; a bad one loses precision."""
LARGEST_EXPONENT = 300.0


class Tilted(NamedTuple):
    """How parts are summed."""

    size: int
    """Length of the transforms; 0 if convolutions are to be written out."""
    tilt: float
    log_total: float
    """Logarithm of the expectation of exp(tilt * sum)."""
    wrapped: float
    """Bound on an entry's error from wrapping."""


DIRECTLY = Tilted(0, 0.0, 0.0, 0.0)


@njit
def longer(size: int) -> int:
    """Return the next length of transforms: powers of 2, and 3 times them."""
    return size // 3 * 4 if size % 3 == 0 else size // 2 * 3


@njit
def pays(n_parts: int, size: int, written_out: float) -> bool:
    """Whether transforms of a length take less time than ``written_out`` multiplications."""
    entries = n_parts * size
    return entries <= MOST and CALL + COST * entries * math.log2(size) <= written_out


@njit
def sum_by_transform(
    values: np.ndarray,
    starts: np.ndarray,
    widths: np.ndarray,
    first: int,
    last: int,
    written_out: float,
) -> tuple[np.ndarray, Tilted, float]:
    """Sum parts by Fourier transform, if that takes less time.

    Parameters
    ----------
    values, starts, widths
        The parts' pmfs, each on 0, 1, ...
    first, last : int
        The window of the sum that is wanted.
    written_out : float
        Multiplications that it takes to write convolutions out.

    Returns
    -------
    pmf : ndarray of float64
        Of the tilted sum, on the window.
    how : Tilted
        How it was summed; ``DIRECTLY`` if it wasn't.
    error : float
        Bound on each entry's error.
    """
    size = SHORTEST
    while size <= last:
        size = longer(size)
    pmf, found = np.empty(0), np.zeros(5)
    if pays(starts.size, size, written_out):
        with numba.objmode(pmf="float64[::1]", found="float64[::1]"):
            pmf, found = _sum(values, starts, widths, first, last, written_out)
    return pmf, Tilted(int(found[0]), found[1], found[2], found[3]), found[4]


@njit
def others_by_transform(
    values: np.ndarray,
    starts: np.ndarray,
    widths: np.ndarray,
    how: Tilted,
    known: np.ndarray,
    first: int,
    out: np.ndarray,
) -> float:
    """Write the message to each part, from the sum and all other parts.

    Parameters
    ----------
    values, starts, widths, how
        As above.
    known : ndarray of float64
        The message to the sum, times exp(-tilt * sum), from ``first`` on; adds up to 1.
    first : int
        Its start.
    out : ndarray of float64
        Is written at the places of ``values``, times exp(tilt * count).

    Returns
    -------
    float
        Bound on the share by which a part's marginal pmf is off, the largest of all parts.
    """
    size, tilt, _, wrapped = how
    with numba.objmode(error="float64"):
        p = padded(values, starts, widths)
        each, error = all_others(p, Tilted(size, tilt, 0.0, wrapped), known, first)
        for row, start, width in zip(each, starts.tolist(), widths.tolist(), strict=True):
            out[start : start + width] = row[:width]
    return error


def padded(values: np.ndarray, starts: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return parts as the rows of a table."""
    p = np.zeros((widths.size, widths.max()))
    for row, start, width in zip(p, starts.tolist(), widths.tolist(), strict=True):
        row[:width] = values[start : start + width]
    return p


def _sum(
    values: np.ndarray,
    starts: np.ndarray,
    widths: np.ndarray,
    first: int,
    last: int,
    written_out: float,
) -> tuple[np.ndarray, np.ndarray]:
    p = padded(values, starts, widths)
    how = tilted(p, int((widths - 1).sum()), first, last, written_out)
    if how.size == 0:
        return np.zeros(0), np.zeros(5)
    pmf, error = summed(p, how)
    return pmf[first : last + 1].copy(), np.array([*how, error])


def cumulants(p: np.ndarray, tilt: float) -> tuple[float, float, float]:
    """Return the sum's log-moment at a tilt, and its mean and variance when it is tilted."""
    x = np.arange(p.shape[1])
    powers = np.exp(tilt * x)
    total, first, second = (p @ np.stack([powers, powers * x, powers * x**2], axis=1)).T
    mean = first / total
    variance = np.maximum(second / total - mean**2, 0.0)
    return float(np.log(total).sum()), float(mean.sum()), float(variance.sum())


def beyond(p: np.ndarray, tilt: float, end: int, limit: float) -> float:
    """Bound the probability that the tilted sum is ``end`` or more, as Chernoff does."""
    log_total, mean, variance = cumulants(p, tilt)
    if mean >= end:
        return 1.0
    # Tails are heavier than a normal law's. Any step gives a bound.
    least, step = 0.0, 0.4 * (end - mean) / max(variance, 1.0)
    for _ in range(STEPS // 2):
        step = min(max(step, 0.0), limit)
        there, mean, variance = cumulants(p, tilt + step)
        least = min(least, there - log_total - step * end)
        if least <= LOG_WRAPPED:
            break
        step += (end - mean) / max(variance, 1.0)
    return math.exp(least)


def tilted(p: np.ndarray, longest: int, first: int, last: int, written_out: float) -> Tilted:
    """Choose how parts are summed, whose sum is ``longest`` at most; else as in the kernel."""
    limit = LARGEST_EXPONENT / max(p.shape[1], last - first + 1)
    tilt = 0.0
    log_total, mean, variance = cumulants(p, tilt)
    for _ in range(STEPS):
        sd = math.sqrt(variance)
        off = min(max(mean, first), last) - mean
        if last - first < sd:
            off -= BELOW * sd
        if abs(off) <= 0.5 * sd:
            break
        tilt = min(max(tilt + off / max(variance, 1.0), -limit), limit)
        log_total, mean, variance = cumulants(p, tilt)
    size, wrapped = SHORTEST, 0.0
    while size <= last:
        size = longer(size)
    while size <= longest:
        wrapped = beyond(p, tilt, first + size, limit)
        if wrapped <= math.exp(LOG_WRAPPED):
            break
        size, wrapped = longer(size), 0.0
    return Tilted(size, tilt, log_total, wrapped) if pays(len(p), size, written_out) else DIRECTLY


def spectra(p: np.ndarray, how: Tilted) -> tuple[np.ndarray, np.ndarray, float]:
    """Transform the parts' tilted pmfs.

    Returns
    -------
    each : ndarray of complex128, shape (number of parts, length / 2 + 1)
        Half of the frequencies: the others are their conjugates.
    sizes : ndarray of float64
        Bounds on their absolute values.
    error : float
        Bound on their errors, and on the relative error of a product.
    """
    n, width = how.size, p.shape[1]
    powers, turns = np.exp(how.tilt * np.arange(width)), -(-width // n)
    rows = np.zeros((len(p), turns * n))
    np.multiply(p, powers, out=rows[:, :width])
    rows[:, :width] /= (p @ powers)[:, None]
    each = np.fft.rfft(rows.reshape(len(p), turns, n).sum(axis=1) if turns > 1 else rows, axis=1)
    error = 2 * LEVEL_ERROR * math.log2(n)
    sizes = np.abs(each)
    sizes += error
    return each, sizes, error


def _mean(x: np.ndarray) -> float:
    """Mean over all frequencies."""
    return float(2 * x.sum() - x[0] - x[-1]) / (2 * (x.size - 1))


def summed(p: np.ndarray, how: Tilted) -> tuple[np.ndarray, float]:
    """Return the pmf of the tilted sum, on 0, 1, ..., and a bound on each entry's error."""
    each, sizes, error = spectra(p, how)
    # If each of some factors is off by an error, so is the product by this much at most.
    size, off = sizes.prod(axis=0), error * (1 / sizes).sum(axis=0)
    bound = _mean(size * (off + error)) + how.wrapped
    return np.maximum(np.fft.irfft(each.prod(axis=0), how.size), 0.0), bound


def all_others(
    p: np.ndarray, how: Tilted, known: np.ndarray, first: int
) -> tuple[np.ndarray, float]:
    """Return the message to each part, and the bound, as the kernel does."""
    each, sizes, error = spectra(p, how)
    n, width = how.size, p.shape[1]
    whole = np.zeros(n)
    np.add.at(whole, (first + np.arange(known.size)) % n, known)
    of_sum = np.fft.rfft(whole)
    # As above, but of all factors except one, and of the sum's.
    size, off = sizes.prod(axis=0), np.divide(error, sizes, out=sizes)
    size[1:-1] *= 2  # half of the frequencies are stored
    of_others = size * (np.abs(of_sum) + error)
    bounds = off @ (of_others * (off.sum(axis=0) + 2 * error) + size * error)
    off *= off
    bounds = (bounds - off @ of_others) / (error * n) + how.wrapped
    q = np.fft.irfft(_without_each(np.conj(each, out=each), of_sum), n, axis=1)
    q = q[:, :width] if width <= n else q[:, np.arange(width) % n]
    powers = np.exp(how.tilt * np.arange(width))
    to = np.maximum(q, 0.0, out=q)
    to *= powers
    with np.errstate(divide="ignore"):
        return to, float((bounds * (p @ powers) / np.einsum("ij,ij->i", p, to)).max())


def _without_each(rows: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Multiply all rows but one, and another one, for each row."""
    found = np.empty_like(rows)
    found[0] = 1.0
    for k in range(1, len(rows)):
        np.multiply(found[k - 1], rows[k - 1], out=found[k])
    other = other.copy()
    for row, out in zip(rows[::-1], found[::-1], strict=True):
        out *= other
        other *= row
    return found
