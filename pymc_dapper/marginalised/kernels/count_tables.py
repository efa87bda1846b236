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

from pymc_dapper.counts.trees.tables import find_window
from pymc_dapper.kernels.arrays import copy_into, with_room

DROP = 40.0
"""A sum ends where weights are this much below the largest, as a logarithm."""
ROOM = 60.0
"""The same for the noise alone, where a table ends."""
WIDEST: Any = np.int64(2**17)
"""Counts to either side of the likeliest one that weights are worked out for, at most.

Of NumPy's type: numba would compile :func:`tabulate_count` again for a plain constant.
"""
LARGEST = 2**53
"""Largest count if nothing else bounds it: beyond, float64 can't distinguish counts."""
STEEPEST = 600.0
"""Largest natural parameter whose exponential is used as a factor."""
GAP = 64
"""Counts beyond impossible ones are all evaluated up to this distance; further away, some are."""
CONCAVE = 1e-9
"""Relative rounding of a second difference."""

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
    """Log-density of the released value at a count, and the logarithm of a power of h(k).

    What is given are its function, the function's context, the largest value of each count, and
    the power.
    """
    log_noise, context, largest, power = given
    return log_noise(context, cell, k) + power * log_base(largest[cell], k)


@njit
def tabulate_count(
    log_noise: Callable[..., float], context: tuple[Any, ...], largest_values: np.ndarray,
    cell: int, start: int, power: float, tilt: float, most: int,
) -> tuple[int, int, bool, bool, np.ndarray, np.ndarray, int]:  # fmt: skip
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

    Returns
    -------
    peak, lowest : int
        The likeliest count, at which h is taken as 1, and the least one in the table.
    ends_below, ends_above : bool
        Whether no count beyond the table is possible.
    logs, ratios : ndarray of float64
        The log-weights, and ratios of weights; empty if there would be too many.
    fault : int
        0, or the fault of the noise.
    """
    given, largest = (log_noise, context, largest_values, power), largest_values[cell]
    nothing = np.empty(0)
    last = LARGEST if largest == np.inf else int(largest)
    start = min(start, last)
    base = weight_at(given, cell, start)
    if not base > -np.inf:
        return start, start, True, True, nothing, nothing, IMPOSSIBLE
    window = find_window(weight_at, given, cell, start, base, tilt, 0, last, ROOM)
    # Of several that are as likely, the least: wherever the search begins, it is the same.
    peak, below, fault = window.peak, window.lowest - 1, 0
    while peak - below > 1:
        k = (peak + below) // 2
        if weight_at(given, cell, k) - base + tilt * (k - start) >= window.top:
            peak = k
        else:
            below = k
    lowest, highest = max(window.lowest, peak - most), min(window.highest, peak + most)
    if lowest > window.lowest or highest < window.highest:
        fault = TOO_WIDE
    ends = np.array([lowest == 0, highest == last])
    for side in range(2):
        edge, sign, final = (lowest, -1, 0) if side == 0 else (highest, 1, last)
        if not ends[side] and log_noise(context, cell, edge + sign) == -np.inf:
            ends[side] = True
            # Possible counts beyond it would make this a gap. Concave log-densities have none.
            ahead = 2
            while ahead <= abs(final - edge):
                if log_noise(context, cell, edge + sign * ahead) > -np.inf:
                    fault = NOT_CONCAVE
                ahead += max(1, ahead // GAP)

    endless = largest == np.inf and highest == last
    if endless or max(peak - lowest, highest - peak) >= WIDEST:
        return peak, peak, False, False, nothing, nothing, max(fault, TOO_WIDE)
    logs = np.empty(highest - lowest + 1)
    total = 0.0
    for k in range(peak, highest + 1):
        logs[k - lowest] = total + log_noise(context, cell, k)
        if k < highest:
            total += log_ratio(largest, k) + tilt
    total = 0.0
    for k in range(peak - 1, lowest - 1, -1):
        total -= log_ratio(largest, k) + tilt
        logs[k - lowest] = total + log_noise(context, cell, k)
    ratios = np.ones(logs.size)
    for j in range(1, logs.size):
        ratios[j] = np.exp(logs[j] - logs[j - 1])
    for j in range(1, logs.size - 1):
        k = lowest + j
        bend = logs[j + 1] + logs[j - 1] - 2 * logs[j]
        bend -= log_ratio(largest, k) - log_ratio(largest, k - 1)
        size = abs(logs[j]) + abs(logs[j - 1]) + abs(logs[j + 1])
        if logs[j] == -np.inf or not bend <= CONCAVE * (1 + size):
            fault = NOT_CONCAVE
    return peak, lowest, ends[0], ends[1], logs, ratios, fault


@njit
def tabulate(
    log_noise: Callable[..., float],
    context: tuple[Any, ...],
    counts: np.ndarray,
    largest: np.ndarray,
    most: int,
) -> tuple[np.ndarray, ...]:
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
    most : int
        How many counts to tabulate to either side, at most.

    Returns
    -------
    anchors : ndarray of int64, shape (number of counts,)
        The count at which h is taken as 1.
    lowest : ndarray of int64, shape (number of counts,)
        The least count in the table; each count has a run of weights.
    starts : ndarray of int64, shape (number of counts + 1,)
        The start of each run.
    ends_below, ends_above : ndarray of int64, shape (number of counts,)
        1 if no count beyond the run is possible.
    logs : ndarray of float64
        Log-weights at natural parameter 0.
    ratios : ndarray of float64
        Of each weight and the one before it.
    faults : ndarray of int64, shape (number of counts,)
        0; or ``TOO_WIDE``, if noise leaves more counts open than may be tabulated; or
        ``NOT_CONCAVE``, if its log-density isn't concave in the count; or ``IMPOSSIBLE``, if that
        is -inf at the count to begin with.
    """
    n = counts.size
    anchors, lowest = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    starts, faults = np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    below, above = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    all_logs, all_ratios = np.empty(0), np.empty(0)
    for cell in range(n):
        found = tabulate_count(log_noise, context, largest, cell, counts[cell], 0.0, 0.0, most)
        anchors[cell], lowest[cell], below[cell], above[cell], logs, ratios, faults[cell] = found
        first, last = starts[cell], starts[cell] + logs.size
        starts[cell + 1] = last
        all_logs = with_room(all_logs, first, last)
        all_ratios = with_room(all_ratios, first, last)
        copy_into(all_logs, first, logs)
        copy_into(all_ratios, first, ratios)
    logs, ratios = all_logs[: starts[n]].copy(), all_ratios[: starts[n]].copy()
    return anchors, lowest, starts, below, above, logs, ratios, faults


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
    logs: np.ndarray,
    ratios: np.ndarray,
    offset: int,
    natural: float,
    ends_below: bool,
    ends_above: bool,
    uniform: float,
) -> tuple[bool, float, float, int, float]:
    """Sum weights of a table, which has one peak.

    Parameters
    ----------
    logs, ratios : ndarray of float64
        As :func:`tabulate` returns them, of one count.
    offset : int
        The least count in the table, from the anchor.
    natural : float
        The natural parameter.
    ends_below, ends_above : bool
        Whether the table is complete.
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
    low, high = -1, logs.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if logs[middle + 1] - logs[middle] + natural > 0:
            low = middle
        else:
            high = middle
    peak = high
    level = logs[peak] + peak * natural - DROP
    first = last_above(logs, natural, level, peak, 0)
    last = last_above(logs, natural, level, peak, logs.size - 1)
    if not (first > 0 or ends_below) or not (last < logs.size - 1 or ends_above):
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
    anchors, lowest, starts, ends_below, ends_above, logs, ratios = tables
    n = naturals.size
    log_sums, means = np.full(n, -np.inf), np.zeros(n)
    counts, log_probabilities = np.zeros(uniforms.size, dtype=np.int64), np.zeros(uniforms.size)
    for cell in range(n):
        natural, anchor = naturals[cell], anchors[cell]
        if not -np.inf < natural < np.inf:
            log_sums[cell], means[cell] = np.nan, np.nan
            continue
        uniform = uniforms[cell] if uniforms.size else -1.0
        # First the table made at the start. If it lacks likely counts, a new one around the peak.
        peak, first, run = anchor, lowest[cell], slice(starts[cell], starts[cell + 1])
        own_logs, own_ratios, further = logs[run], ratios[run], natural
        below, above = ends_below[cell] == 1, ends_above[cell] == 1
        complete, log_sum, mean, drawn, log_probability = False, 0.0, 0.0, 0, 0.0
        while not complete:
            if abs(further) < STEEPEST:
                complete, log_sum, mean, drawn, log_probability = sum_table(
                    own_logs, own_ratios, first - peak, further, below, above, uniform
                )
            if not complete:
                peak, first, _, _, own_logs, own_ratios, _ = tabulate_count(
                    log_noise, context, largest, cell, anchor, 1.0, natural, WIDEST
                )
                if own_logs.size == 0:
                    return log_sums, means, counts, log_probabilities
                further, below, above = 0.0, True, True
        if peak != anchor:
            log_sum += log_base(largest[cell], peak) - log_base(largest[cell], anchor)
            log_sum += (peak - anchor) * natural
        mean, drawn = mean + peak - anchor, drawn + peak - anchor
        log_sums[cell], means[cell] = log_sum, mean
        if uniforms.size:
            counts[cell], log_probabilities[cell] = anchor + drawn, log_probability
    return log_sums, means, counts, log_probabilities


@njit
def tabulate_or_sum(
    log_noise: Callable[..., float], context: tuple[Any, ...], counts: np.ndarray, most: int,
    naturals: np.ndarray, uniforms: np.ndarray, tables: tuple[np.ndarray, ...], largest: np.ndarray,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Tabulate counts, or sum them out; the arrays of the other are empty.

    In one function, as numba takes a second for what both call.
    """
    tabulated = tabulate(log_noise, context, counts, largest, most)
    return tabulated + sum_counts(log_noise, context, naturals, uniforms, tables, largest)
