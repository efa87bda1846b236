"""Sum a count out of its log-density, or draw it, however many people there are.

Of a Binomial or Poisson count k, the log-density is linear in the prior's natural parameter::

    log p(k, released) = constant + log h(k) + natural * k + log noise(released given k)

So h(k) and the noise are tabulated once, around the released value, and a sum over k takes a
multiplication for each count that isn't negligible. All weights are relative to the anchor, the
count at which the noise is likeliest, so that no digits are lost with a large total.

If the noise's log-density is concave in k, as for Gaussian, Laplace and discrete noise, so are the
log-weights: they have one peak, and fall ever faster. The weights beyond one of exp(-DROP) times
the largest, at a distance D from it, add up to less than exp(-DROP) D / DROP of the sum: 1e-14 for
a hundred thousand counts. If a natural parameter leads out of the table, a new table is made around
its peak.

The length of that table depends on the parameter, which may be anything in a trial trajectory. A
table with more than WIDEST counts on a side, or beyond LARGEST, isn't made: the sum is taken as 0,
and later counts aren't summed. There the count's prior has a standard deviation s above 1.1e4, and
is far from the noise. If the noise falls by a factor of e in b counts, the sum is at most exp(-s**2
/ (2 b**2)) of its largest value. The first table has b < 300, so this is exp(-700).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.tables import FAR, find_peak
from pymc_dapper.kernels.arrays import copy_into, int64, with_room

DROP = 40.0
"""A sum ends where weights are this much below the largest, as a logarithm."""
ROOM = 60.0
"""The same for the noise alone, where a table ends."""
MOST: Any = np.int64(2**14)
"""Counts to either side of the likeliest one that are tabulated at the start, at most."""
WIDEST: Any = np.int64(2**17)
"""The same later on. Of NumPy's type: numba would compile for each plain constant again."""
LARGEST = 2**53
"""Largest count if nothing else bounds it: beyond, float64 can't distinguish counts."""
STEEPEST = 600.0
"""Largest natural parameter whose exponential is used as a factor."""
GAP = 64
"""Counts beyond impossible ones are all evaluated up to this distance; further away, some are."""
CONCAVE = 1e-9
"""Relative rounding of a second difference."""

ANCHOR, LOWEST, START, STOP, ENDS_BELOW, ENDS_ABOVE, FAULT = range(7)
"""Columns of the rows that describe tables: see :func:`tabulate`."""
TOO_WIDE, NOT_CONCAVE, IMPOSSIBLE = 1, 2, 3
"""Faults of the noise of a count: see :func:`tabulate`."""


@njit
def log_ratio(largest: float, k: int) -> float:
    """Logarithm of h(k + 1) / h(k)."""
    if largest == np.inf:
        return -np.log(k + 1.0)
    return np.log((largest - k) / (k + 1.0))


@njit
def log_base(largest: float, k: int) -> float:
    """Logarithm of h(k)."""
    if largest == np.inf:
        return -math.lgamma(k + 1.0)
    return -math.lgamma(k + 1.0) - math.lgamma(largest - k + 1.0)


@njit
def weight_at(given: tuple[Any, ...], cell: int, k: int) -> float:
    """Log-density of the released value at a count, its prior in part: see `tabulate_count`."""
    log_noise, context, largest, power, tilt = given
    return log_noise(context, cell, k) + power * log_base(largest[cell], k) + tilt * k


@njit
def last_at_least(
    given: tuple[Any, ...], cell: int, k: int, sign: int, level: float, last: int
) -> int:
    """Find the last count with a weight that isn't below a level, up or down from a peak."""
    step, growing = 1, True
    while step > 0:
        ahead = min(max(k + sign * step, 0), last)
        if ahead != k and weight_at(given, cell, ahead) >= level:
            k = ahead
        else:
            growing = False
        step = 2 * step if growing else step // 2
    return k


@njit
def tabulate_count(
    log_noise: Callable[..., float], context: tuple[Any, ...], largest_values: np.ndarray,
    cell: int, start: int, power: float, tilt: float, most: int, run: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Tabulate the log-weights of a count.

    This needn't be inlined: the noise is passed by its address or its type (`given_once`).

    Parameters
    ----------
    log_noise, context, largest_values
        The noise, and the largest value of each count, as in :func:`tabulate`.
    cell : int
        The count.
    start : int
        A possible value of it, to begin with.
    power : float
        The table is around the peak of the noise alone if 0, and with h(k) if 1.
    tilt : float
        The natural parameter at which weights are tabulated.
    most : int
        How many counts to tabulate to either side, at most.
    run : ndarray of int64, shape (7,)
        Written to: as a row of what :func:`tabulate` returns, but for where the weights are kept.

    Returns
    -------
    logs, ratios : ndarray of float64
        The log-weights, and ratios of weights; empty if there would be too many.
    """
    largest, nothing = largest_values[cell], np.empty(0)
    last = LARGEST if largest == np.inf else int(largest)
    start = min(start, last)
    given = log_noise, context, largest_values, power, tilt
    base = weight_at(given, cell, start)
    if not base > -np.inf:
        run[FAULT] = IMPOSSIBLE
        return nothing, nothing
    peak, _ = find_peak(weight_at, given, cell, start, base, 0.0, 0, last)
    top = weight_at(given, cell, peak)
    # The least peak of several that are as likely, and the ends of the table.
    edges = np.empty(3, dtype=np.int64)
    for which in range(3):
        sign, level = 1 if which == 2 else -1, top - (0.0 if which == 0 else ROOM)
        edges[which] = last_at_least(given, cell, peak, sign, level, last)
    peak, lowest, highest = edges[0], max(edges[1], edges[0] - most), min(edges[2], edges[0] + most)
    run[ANCHOR], run[LOWEST] = peak, lowest
    run[FAULT] = TOO_WIDE if lowest > edges[1] or highest < edges[2] else 0
    for side in range(2):
        edge, sign, final = (lowest, -1, 0) if side == 0 else (highest, 1, last)
        run[ENDS_BELOW + side] = edge == final
        # If weights beyond don't fall all the time, the noise isn't concave. That is checked once.
        ahead, before = 1, np.inf
        while power == 0 and ahead <= abs(final - edge):
            weight = weight_at(given, cell, edge + sign * ahead)
            if ahead == 1 and weight == -np.inf:
                run[ENDS_BELOW + side] = 1
            if weight - CONCAVE * (1 + abs(weight)) > before:
                run[FAULT] = NOT_CONCAVE
            if -np.inf < weight < top - FAR:
                break
            before = weight
            ahead += max(1, ahead // GAP)

    endless = largest == np.inf and highest == last
    if endless or max(peak - lowest, highest - peak) >= WIDEST:
        run[FAULT] = max(run[FAULT], TOO_WIDE)
        return nothing, nothing
    size, at_peak = highest - lowest + 1, peak - lowest
    rises, logs, ratios = np.zeros(size), np.zeros(size), np.ones(size)
    for j in range(size - 1):
        rises[j] = log_ratio(largest, lowest + j)
    for j in range(at_peak, size - 1):
        logs[j + 1] = logs[j] + (rises[j] + tilt)
    for j in range(at_peak, 0, -1):
        logs[j - 1] = logs[j] - (rises[j - 1] + tilt)
    for j in range(size):
        logs[j] += log_noise(context, cell, lowest + j)
    for j in range(1, size):
        ratios[j] = np.exp(logs[j] - logs[j - 1])
    for j in range(1, size - 1):
        bend = logs[j + 1] + logs[j - 1] - 2 * logs[j] - (rises[j] - rises[j - 1])
        rounding = CONCAVE * (1 + abs(logs[j]) + abs(logs[j - 1]) + abs(logs[j + 1]))
        if logs[j] == -np.inf or not bend <= rounding:
            run[FAULT] = NOT_CONCAVE
    return logs, ratios


@njit
def tabulate(
    log_noise: Callable[..., float],
    context: tuple[Any, ...],
    counts: np.ndarray,
    largest: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tabulate the log-weights of all counts, around the likeliest noise.

    Parameters
    ----------
    log_noise, context
        The noise: ``log_noise(context, cell, k) -> float`` is the log-density of the released value
        of a count, by the count's index, at a value of it.
    counts : ndarray of int64, shape (number of counts,)
        Possible counts, to begin with.
    largest : ndarray of float64, shape (number of counts,)
        n of a Binomial, infinity for a Poisson count.

    Returns
    -------
    runs : ndarray of int64, shape (number of counts, 7)
        A row for each count, which has a run of weights. Columns:

        - ``ANCHOR``: the count at which h is taken as 1
        - ``LOWEST``: the least count in the table
        - ``START``, ``STOP``: where the run starts, and where it ends
        - ``ENDS_BELOW``, ``ENDS_ABOVE``: 1 if no count beyond the run is possible
        - ``FAULT``: 0; or ``TOO_WIDE``, if noise leaves more counts open than are tabulated; or
          ``NOT_CONCAVE``, if its log-density isn't concave in the count; or ``IMPOSSIBLE``, if that
          is -inf at the count to begin with
    logs : ndarray of float64
        Log-weights at natural parameter 0.
    ratios : ndarray of float64
        Of each weight and the one before it.
    """
    runs, end = np.zeros((counts.size, 7), dtype=np.int64), 0
    all_logs, all_ratios = np.empty(0), np.empty(0)
    for cell in range(counts.size):
        logs, ratios = tabulate_count(
            log_noise, context, largest, cell, counts[cell], 0.0, 0.0, MOST, runs[cell]
        )
        start, end = end, end + logs.size
        runs[cell, START], runs[cell, STOP] = start, end
        all_logs, all_ratios = with_room(all_logs, start, end), with_room(all_ratios, start, end)
        copy_into(all_logs, start, logs)
        copy_into(all_ratios, start, ratios)
    return runs, all_logs[:end].copy(), all_ratios[:end].copy()


@njit
def last_above(logs: np.ndarray, natural: float, level: float, peak: int, end: int) -> int:
    """Return the last weight above a level, on the way from the peak to an end of a table."""
    inside, outside = peak, end
    if logs[end] + end * natural > level:
        return end
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if logs[middle] + middle * natural > level:
            inside = middle
        else:
            outside = middle
    return inside


@njit
def sum_table(
    run: np.ndarray, logs: np.ndarray, ratios: np.ndarray, natural: float, uniform: float
) -> tuple[bool, float, float, int, float]:
    """Sum weights of a table, which has one peak.

    Parameters
    ----------
    run, logs, ratios : ndarray
        As :func:`tabulate` returns them, of one count.
    natural : float
        The natural parameter.
    uniform : float
        A uniform number, to draw a count by; none is drawn if it is negative.

    Returns
    -------
    complete : bool
        Whether the sum beyond the table is negligible; if not, the other results are meaningless.
    log_sum, mean : float
        The logarithm of the sum of weights, and the mean count, from the anchor.
    drawn : int
        The count that was drawn, from the anchor.
    log_probability : float
        Its log-probability.
    """
    offset, low, high = run[LOWEST] - run[ANCHOR], -1, logs.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if logs[middle + 1] - logs[middle] + natural > 0:
            low = middle
        else:
            high = middle
    peak = high
    level = logs[peak] + peak * natural - DROP
    first = last_above(logs, natural, level, peak, int64(0))
    last = last_above(logs, natural, level, peak, logs.size - 1)
    cut_below, cut_above = first == 0 and not run[ENDS_BELOW], last == logs.size - 1
    if cut_below or (cut_above and not run[ENDS_ABOVE]):
        return False, 0.0, 0.0, 0, 0.0

    factor = np.exp(natural)
    at_first = np.exp(logs[first] - logs[peak] + (first - peak) * natural)
    weight = at_first
    total, moment = weight, 0.0
    for j in range(first + 1, last + 1):
        weight *= ratios[j] * factor
        total += weight
        moment += weight * (j - first)
    at_peak = logs[peak] + (peak + offset) * natural
    log_sum, mean = at_peak + np.log(total), offset + first + moment / total
    if uniform < 0:
        return True, log_sum, mean, 0, 0.0

    drawn, weight = first, at_first
    left = uniform * total - weight
    while left >= 0 and drawn < last:
        drawn += 1
        weight *= ratios[drawn] * factor
        left -= weight
    return True, log_sum, mean, offset + drawn, np.log(weight / total)


@njit
def sum_counts(
    log_noise: Callable[..., float],
    context: tuple[Any, ...],
    naturals: np.ndarray,
    uniforms: np.ndarray,
    tables: tuple[np.ndarray, ...],
    largest: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sum each count out, at a natural parameter of its own.

    Parameters
    ----------
    log_noise, context
        The noise, for new tables if a natural parameter leads out of the given ones.
    naturals : ndarray of float64, shape (number of counts,)
        Natural parameters: the log-odds of a Binomial, the log-rate of a Poisson count.
    uniforms : ndarray of float64, shape (number of counts,) or (0,)
        Uniform numbers, if counts are to be drawn.
    tables : tuple of ndarray
        As :func:`tabulate` returns them.
    largest : ndarray of float64, shape (number of counts,)
        n of a Binomial, infinity for a Poisson count.

    Returns
    -------
    log_sums : ndarray of float64, shape (number of counts,)
        Log-sums of the weights; -inf for a count with too many likely values, and for all counts
        after it.
    means : ndarray of float64, shape (number of counts,)
        Mean counts given the parameter and the release, relative to the anchors. These are the
        derivatives of the log-sums.
    counts : ndarray of int64, shape (number of counts,) or (0,)
        Draws of the counts.
    log_probabilities : ndarray of float64, shape (number of counts,) or (0,)
        And their log-probabilities.
    """
    runs, all_logs, all_ratios = tables
    n = naturals.size
    log_sums, means = np.full(n, -np.inf), np.zeros(n)
    counts, log_probabilities = np.zeros(uniforms.size, dtype=np.int64), np.zeros(uniforms.size)
    for cell in range(n):
        natural = naturals[cell]
        if not -np.inf < natural < np.inf:
            log_sums[cell], means[cell] = np.nan, np.nan
            continue
        uniform = uniforms[cell] if uniforms.size else -1.0
        # First the table made at the start. If it lacks likely counts, a new one around the peak.
        run, further, anchor = runs[cell], natural, runs[cell, ANCHOR]
        logs, ratios = all_logs[run[START] : run[STOP]], all_ratios[run[START] : run[STOP]]
        complete, log_sum, mean, drawn, log_probability = False, 0.0, 0.0, 0, 0.0
        while not complete:
            if abs(further) < STEEPEST:
                complete, log_sum, mean, drawn, log_probability = sum_table(
                    run, logs, ratios, further, uniform
                )
            if not complete:
                run = run.copy()
                logs, ratios = tabulate_count(
                    log_noise, context, largest, cell, anchor, 1.0, natural, WIDEST, run
                )
                if logs.size == 0:
                    return log_sums, means, counts, log_probabilities
                further, run[ENDS_BELOW], run[ENDS_ABOVE] = 0.0, 1, 1
        peak = run[ANCHOR]
        if peak != anchor:
            log_sum += log_base(largest[cell], peak) - log_base(largest[cell], anchor)
            log_sum += (peak - anchor) * natural
        log_sums[cell], means[cell] = log_sum, mean + peak - anchor
        if uniforms.size:
            counts[cell], log_probabilities[cell] = peak + drawn, log_probability
    return log_sums, means, counts, log_probabilities


@njit
def tabulate_or_sum(
    log_noise: Callable[..., float], context: tuple[Any, ...], naturals: np.ndarray,
    uniforms: np.ndarray, counts: np.ndarray, tables: tuple[np.ndarray, ...], largest: np.ndarray,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Tabulate counts if there are any, or sum them out; the arrays of the other are empty.

    In one function, as numba takes a second for what both call.
    """
    tabulated = tabulate(log_noise, context, counts, largest)
    naturals = naturals[: 0 if counts.size else naturals.size]
    return tabulated + sum_counts(log_noise, context, naturals, uniforms, tables, largest)
