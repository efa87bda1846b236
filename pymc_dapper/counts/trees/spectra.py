"""Sums of many counts by Fourier transform, right in relative terms.

The errors of a transform are small relative to the largest entries of its result, not to small
ones. So the pmfs of the parts are tilted first: each entry x is multiplied by exp(tilt * x). Given
the sum, that changes nothing. If the tilt makes the known sum the expected one, the relevant
entries are the largest. Errors are bounded at each frequency, from the magnitudes there. The
transform is short, because the error of wrapping is bounded, too.

References
----------
Keich, U. (2005). sFFT: a faster accurate computation of the p-value of the entropy score. Journal
of Computational Biology 12(4). Tilted transforms.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.fourier import LEVEL_ERROR, Plan, backward, forward

COST = 2.5
"""Cost of an entry's transform at each of the log2 levels, in multiplications of a direct
convolution."""
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
"""Of Newton's method, to find a tilt: any is right, and only precision is lost with a bad one."""
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


@njit(fastmath={"reassoc", "contract", "nsz"})
def _moments(p: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    total = first = second = 0.0
    for x in range(p.size):
        w = p[x] * weights[x]
        total += w
        first += w * x
        second += w * x * x
    return total, first / total, second / total


@njit
def _cumulants(
    values: np.ndarray, starts: np.ndarray, widths: np.ndarray, tilt: float, powers: np.ndarray
) -> tuple[float, float, float]:
    """Return the sum's log-moment at a tilt, and its mean and variance when it is tilted."""
    for x in range(powers.size):
        powers[x] = math.exp(tilt * x)
    log_total = mean = variance = 0.0
    for k in range(starts.size):
        p = values[starts[k] : starts[k] + widths[k]]
        total, first, second = _moments(p, powers)
        log_total += math.log(total)
        mean += first
        variance += max(second - first * first, 0.0)
    return log_total, mean, variance


@njit
def _beyond(
    values: np.ndarray,
    starts: np.ndarray,
    widths: np.ndarray,
    tilt: float,
    end: int,
    powers: np.ndarray,
    limit: float,
) -> float:
    """Bound the probability that the tilted sum is ``end`` or more, as Chernoff does."""
    log_total, mean, variance = _cumulants(values, starts, widths, tilt, powers)
    if mean >= end:
        return 1.0
    # Tails are heavier than a normal law's. Any step gives a bound.
    least, step = 0.0, 0.4 * (end - mean) / max(variance, 1.0)
    for _ in range(STEPS // 2):
        step = min(max(step, 0.0), limit)
        there, mean, variance = _cumulants(values, starts, widths, tilt + step, powers)
        least = min(least, there - log_total - step * end)
        if least <= LOG_WRAPPED:
            break
        step += (end - mean) / max(variance, 1.0)
    return math.exp(least)


@njit
def _longer(size: int) -> int:
    """Return the next length of transforms."""
    return size // 3 * 4 if size % 3 == 0 else size // 2 * 3


@njit
def tilted(
    values: np.ndarray,
    starts: np.ndarray,
    widths: np.ndarray,
    first: int,
    last: int,
    written_out: float,
) -> Tilted:
    """Choose how parts are summed.

    Parameters
    ----------
    values, starts, widths
        The parts' pmfs, each on 0, 1, ...
    first, last : int
        The window of the sum that is wanted.
    written_out : float
        Multiplications that it takes to write convolutions out.
    """
    size, longest, widest = SHORTEST, 0, 0
    for width in widths:
        longest, widest = longest + width - 1, max(widest, width)
    while size <= last:
        size = _longer(size)
    if COST * starts.size * size * math.log2(size) > written_out:
        return DIRECTLY
    powers, limit = np.empty(widest), LARGEST_EXPONENT / max(widest, last - first + 1)
    tilt = 0.0
    log_total, mean, variance = _cumulants(values, starts, widths, tilt, powers)
    for _ in range(STEPS):
        sd = math.sqrt(variance)
        off = min(max(mean, first), last) - mean
        if last - first < sd:
            off -= BELOW * sd
        if abs(off) <= 0.5 * sd:
            break
        tilt = min(max(tilt + off / max(variance, 1.0), -limit), limit)
        log_total, mean, variance = _cumulants(values, starts, widths, tilt, powers)
    wrapped = 0.0
    while size <= longest:
        wrapped = _beyond(values, starts, widths, tilt, first + size, powers, limit)
        if wrapped <= math.exp(LOG_WRAPPED):
            break
        size, wrapped = _longer(size), 0.0
    if COST * starts.size * size * math.log2(size) > written_out:
        return DIRECTLY
    return Tilted(size, tilt, log_total, wrapped)


@njit
def spectra(
    plan: Plan, values: np.ndarray, starts: np.ndarray, widths: np.ndarray, how: Tilted
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transform the parts' tilted pmfs.

    Returns
    -------
    re, im, sizes : ndarray of float64, shape (number of parts, length / 2 + 1)
        Real and imaginary parts, and absolute values, of half of the frequencies: the other half
        are their conjugates.
    """
    n, half, widest = how.size, how.size // 2, 0
    for width in widths:
        widest = max(widest, width)
    powers = np.empty(widest)
    for x in range(widest):
        powers[x] = math.exp(how.tilt * x)
    re, im = np.empty((starts.size, half + 1)), np.empty((starts.size, half + 1))
    room = np.empty((4, n))
    for k in range(0, starts.size, 2):
        room[:2] = 0.0
        for j in range(k, min(k + 2, starts.size)):
            p, out = values[starts[j] : starts[j] + widths[j]], room[j - k]
            total, _, _ = _moments(p, powers)
            for begin in range(0, p.size, n):
                for x in range(begin, min(begin + n, p.size)):
                    out[x - begin] += p[x] * powers[x] / total
        # Two real vectors are one complex one.
        forward(plan, room[0], room[1], room[2], room[3])
        x, y = room[2], room[3]
        a, b = re[k], im[k]
        for f in range(half + 1):
            i, j = plan.places[f], plan.places[(n - f) % n]
            a[f] = 0.5 * (x[i] + x[j])
            b[f] = 0.5 * (y[i] - y[j])
        if k + 1 < starts.size:
            a, b = re[k + 1], im[k + 1]
            for f in range(half + 1):
                i, j = plan.places[f], plan.places[(n - f) % n]
                a[f] = 0.5 * (y[i] + y[j])
                b[f] = 0.5 * (x[j] - x[i])
    return re, im, _absolute(re, im)


@njit
def _absolute(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    out = np.empty_like(re)
    for k in range(re.shape[0]):
        x, y, z = re[k], im[k], out[k]
        for f in range(z.size):
            z[f] = math.sqrt(x[f] * x[f] + y[f] * y[f])
    return out


@njit(fastmath={"contract"})
def multiply(xr: np.ndarray, xi: np.ndarray, yr: np.ndarray, yi: np.ndarray) -> None:
    """Multiply the first by the second."""
    for f in range(xr.size):
        a, b = xr[f], xi[f]
        xr[f] = a * yr[f] - b * yi[f]
        xi[f] = a * yi[f] + b * yr[f]


@njit(fastmath={"contract"})
def _err(error: np.ndarray, size: np.ndarray, other: np.ndarray, by: float) -> None:
    """Multiply bounds of errors and absolute values by those of a part with such an error."""
    for f in range(error.size):
        error[f] = error[f] * (other[f] + by) + by * size[f]
        size[f] *= other[f]


@njit(fastmath={"reassoc", "contract", "nsz"})
def _mean(x: np.ndarray) -> float:
    """Mean over all frequencies; half of them are stored."""
    total = 0.0
    for f in range(x.size):
        total += x[f]
    return (2 * total - x[0] - x[-1]) / (2 * (x.size - 1))


@njit
def inverse(
    plan: Plan,
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    room: np.ndarray,
) -> None:
    """Write two real vectors of given spectra into the third and fourth row of some room."""
    (ar, ai), (br, bi) = first, second
    x, y = room[0], room[1]
    n = x.size
    scale = 1.0 / n
    for f in range(ar.size):
        i, j = plan.places[f], plan.places[(n - f) % n]
        x[i], y[i] = scale * (ar[f] - bi[f]), scale * (ai[f] + br[f])
        x[j], y[j] = scale * (ar[f] + bi[f]), scale * (br[f] - ai[f])
    backward(plan, x, y, room[2], room[3])


@njit
def summed(
    plan: Plan, values: np.ndarray, starts: np.ndarray, widths: np.ndarray, how: Tilted
) -> tuple[np.ndarray, float]:
    """Return the pmf of the tilted sum, on 0, 1, ..., and a bound on each entry's error."""
    re, im, sizes = spectra(plan, values, starts, widths, how)
    level = LEVEL_ERROR * math.log2(how.size)
    a, b, size = re[0].copy(), im[0].copy(), sizes[0].copy()
    error = np.full(size.size, 2 * level)
    for k in range(1, starts.size):
        multiply(a, b, re[k], im[k])
        _err(error, size, sizes[k], 2 * level)
    room = np.empty((4, how.size))
    nothing = np.zeros(a.size)
    inverse(plan, (a, b), (nothing, nothing), room)
    bound = _mean(error) * (1 + level) + level * _mean(size) + how.wrapped
    return np.maximum(room[2], 0.0), bound


@njit(fastmath={"reassoc", "contract", "nsz"})
def _products(p: np.ndarray, powers: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """Sum a pmf times powers, and times something known."""
    first = second = 0.0
    for x in range(p.size):
        first += p[x] * powers[x]
        second += p[x] * q[x]
    return first, second


@njit
def all_others(
    plan: Plan,
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
    plan, values, starts, widths, how
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
    re, im, sizes = spectra(plan, values, starts, widths, how)
    level, m, n = LEVEL_ERROR * math.log2(how.size), starts.size, how.size
    room = np.empty((4, n))
    room[:2] = 0.0
    for x in range(known.size):
        room[0, (first + x) % n] += known[x]
    forward(plan, room[0], room[1], room[2], room[3])
    # Of the parts before each one; and of those after it, with the sum's conjugate.
    before = np.empty((4, m, re.shape[1]))
    before[0, 0], before[1:, 0] = 1.0, 0.0
    before[2, 0] = 1.0
    for k in range(1, m):
        a, b, size, error = before[0, k], before[1, k], before[2, k], before[3, k]
        for f in range(a.size):
            a[f], b[f] = before[0, k - 1, f], before[1, k - 1, f]
            size[f], error[f] = before[2, k - 1, f], before[3, k - 1, f]
        multiply(a, b, re[k - 1], im[k - 1])
        _err(error, size, sizes[k - 1], 2 * level)
    after = np.empty((4, re.shape[1]))
    for f in range(re.shape[1]):
        x, y = room[2, plan.places[f]], room[3, plan.places[f]]
        after[0, f], after[1, f], after[2, f] = x, -y, math.sqrt(x * x + y * y)
        after[3, f] = level
    found, worst = np.empty((2, 2, re.shape[1])), 0.0
    bounds, powers = np.empty(m), np.empty(widths.max())
    for x in range(powers.size):
        powers[x] = math.exp(how.tilt * x)
    for k in range(m - 1, -1, -1):
        a, b, size, error = before[0, k], before[1, k], before[2, k], before[3, k]
        multiply(a, b, after[0], after[1])
        for f in range(a.size):
            error[f] = error[f] * (after[2, f] + after[3, f]) + size[f] * after[3, f]
            size[f] *= after[2, f]
        bounds[k] = _mean(error) * (1 + 2 * level) + 2 * level * _mean(size) + how.wrapped
        multiply(after[0], after[1], re[k], im[k])
        _err(after[3], after[2], sizes[k], 2 * level)
    for k in range(0, m, 2):
        last = min(k + 1, m - 1)
        found[0, 0], found[0, 1] = before[0, k], -before[1, k]
        found[1, 0], found[1, 1] = before[0, last], -before[1, last]
        inverse(plan, (found[0, 0], found[0, 1]), (found[1, 0], found[1, 1]), room)
        for j in range(k, last + 1):
            q, to = room[2 + j - k], out[starts[j] : starts[j] + widths[j]]
            for begin in range(0, to.size, n):
                for x in range(begin, min(begin + n, to.size)):
                    to[x] = max(q[x - begin], 0.0) * powers[x]
            mine = values[starts[j] : starts[j] + widths[j]]
            total, inside = _products(mine, powers, to)
            worst = max(worst, bounds[j] * total / inside if inside > 0 else np.inf)
    return worst
