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
from typing import Any, NamedTuple

import numpy as np
from numba import njit

DROP = 40.0
"""A sum ends where weights are this much below the largest, as a logarithm."""
ROOM = 60.0
"""The same for the noise alone, where a table ends."""
WIDEST = 2**17
"""Counts to either side of the likeliest one that weights are worked out for, at most."""
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


class Noise(NamedTuple):
    """Terms of each count in the log-density, beside its prior, in the form of the sweeps."""

    starts: np.ndarray
    """Int64, shape (number of counts + 1,): the start of each count's terms."""
    terms: np.ndarray
    """Int64: the terms."""
    kinds: np.ndarray
    first: np.ndarray
    contexts: np.ndarray
    """Int64, shape (number of terms,): as in `pymc_dapper.counts.kernels.line.Structure`."""
    slopes: np.ndarray
    """Float64, shape (number of terms,): the factor of the count in each term."""
    zeros: np.ndarray
    """Float64, shape (number of terms,): zeros."""


class Weights(NamedTuple):
    """Log-weights of counts; each count has a run of them."""

    anchors: np.ndarray
    """Int64, shape (number of counts,): the count at which h is taken as 1."""
    lowest: np.ndarray
    """Int64, shape (number of counts,): the least count in the table."""
    starts: np.ndarray
    """Int64, shape (number of counts + 1,): the start of each run."""
    ends_below: np.ndarray
    ends_above: np.ndarray
    """Int64, shape (number of counts,): 1 if no count beyond the run is possible."""
    logs: np.ndarray
    """Float64: log-weights at natural parameter 0."""
    ratios: np.ndarray
    """Float64: of each weight and the one before it."""
    largest: np.ndarray
    """Float64, shape (number of counts,): n of a Binomial, infinity for a Poisson count."""


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
def last_count(largest: float) -> int:
    """Return the largest possible count."""
    return LARGEST if largest == np.inf else int(largest)


# Functions that call the noise are inlined: code with function arguments can't be cached on disk
# (see `record_sweep`).
@njit(inline="always")
def tabulate_count(
    log_noise: Callable[..., float],
    context: tuple[Any, ...],
    noise: Noise,
    cell: int,
    start: int,
    largest: float,
    tilted: bool,
    natural: float,
    most: int,
) -> tuple[int, int, bool, bool, np.ndarray, np.ndarray, int]:
    """Tabulate the log-weights of a count around their peak.

    Parameters
    ----------
    log_noise : callable
        ``log_noise(context, noise, cell, k) -> float``: log-density of the released value at a
        count.
    context, noise, cell
        Its other arguments, and the index of the count.
    start : int
        A possible count, to begin with.
    largest : float
        As in :class:`Weights`.
    tilted : bool
        Whether the table is around the peak of the weights at ``natural``, which are then
        tabulated; otherwise around that of the noise, and weights are those at natural parameter 0.
    natural : float
        The natural parameter.
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
    last = last_count(largest)
    tilt = natural if tilted else 0.0
    nothing = np.empty(0)
    if log_noise(context, noise, cell, start) == -np.inf:
        return start, start, True, True, nothing, nothing, IMPOSSIBLE

    # The peak: the least count from which weights don't grow. They do at low, and don't at high.
    low, high, k, step = -1, last, min(start, last - 1), 1
    while high - low > 1:
        below = log_noise(context, noise, cell, k)
        above = log_noise(context, noise, cell, k + 1)
        if below == -np.inf:
            grows = k < start
        else:
            grows = above - below + (log_ratio(largest, k) + natural if tilted else 0.0) > 0
        if grows:
            low = k
        else:
            high = k
        # In growing steps, until it is bracketed.
        if low == -1:
            k = max(high - step, 0)
        elif high == last:
            k = min(low + step, last - 1)
        else:
            k = (low + high) // 2
        step *= 2
    peak = high

    # The ends of the table.
    top = log_noise(context, noise, cell, peak)
    base = log_base(largest, peak)
    edges, ends, fault = np.array([peak, peak]), np.array([False, False]), 0
    for side in range(2):
        sign = -1 if side == 0 else 1
        outmost = max(peak - most, 0) if side == 0 else min(peak + most, last)
        near, far, step, past = peak, peak, 1, False
        while near != outmost and not past:
            far = max(near - step, outmost) if side == 0 else min(near + step, outmost)
            beyond = log_noise(context, noise, cell, far) - top
            if tilted and beyond > -np.inf:
                beyond += log_base(largest, far) - base + (far - peak) * natural
            past = not beyond > -ROOM
            if not past:
                near = far
            step *= 2
        while abs(far - near) > 1:
            middle = (near + far) // 2
            beyond = log_noise(context, noise, cell, middle) - top
            if tilted and beyond > -np.inf:
                beyond += log_base(largest, middle) - base + (middle - peak) * natural
            if beyond > -ROOM:
                near = middle
            else:
                far = middle
        edges[side], final = near, 0 if side == 0 else last
        if near == outmost and near != final:
            fault = max(fault, TOO_WIDE)
        if near == final:
            ends[side] = True
        elif log_noise(context, noise, cell, near + sign) == -np.inf:
            ends[side] = True
            # Possible counts beyond it would make this a gap. Concave log-densities have none.
            ahead = 2
            while ahead <= abs(final - near):
                if log_noise(context, noise, cell, near + sign * ahead) > -np.inf:
                    fault = NOT_CONCAVE
                ahead += max(1, ahead // GAP)

    lowest, highest = edges[0], edges[1]
    endless = largest == np.inf and highest == last
    if endless or max(peak - lowest, highest - peak) >= WIDEST:
        return peak, peak, False, False, nothing, nothing, max(fault, TOO_WIDE)
    logs = np.empty(highest - lowest + 1)
    at_peak = peak - lowest
    total = 0.0
    for k in range(peak, highest + 1):
        logs[k - lowest] = total + log_noise(context, noise, cell, k)
        if k < highest:
            total += log_ratio(largest, k) + tilt
    total = 0.0
    for k in range(peak - 1, lowest - 1, -1):
        total -= log_ratio(largest, k) + tilt
        logs[k - lowest] = total + log_noise(context, noise, cell, k)
    ratios = np.ones(logs.size)
    for j in range(1, logs.size):
        ratios[j] = np.exp(logs[j] - logs[j - 1])
    for j in range(1, logs.size - 1):
        k = lowest + j
        bend = logs[j + 1] + logs[j - 1] - 2 * logs[j]
        bend -= log_ratio(largest, k) - log_ratio(largest, k - 1)
        size = abs(logs[j]) + abs(logs[j - 1]) + abs(logs[j + 1])
        if not bend <= CONCAVE * (1 + size):
            fault = NOT_CONCAVE
    if not logs[at_peak] > -np.inf:
        fault = IMPOSSIBLE
    return peak, lowest, ends[0], ends[1], logs, ratios, fault


@njit(inline="always")
def tabulate(
    log_noise: Callable[..., float],
    context: tuple[Any, ...],
    noise: Noise,
    counts: np.ndarray,
    largest: np.ndarray,
    most: int,
) -> tuple[Weights, np.ndarray]:
    """Tabulate the log-weights of all counts, around the likeliest noise.

    Parameters
    ----------
    log_noise, context, noise
        The noise.
    counts : ndarray of int64, shape (number of counts,)
        Possible counts, to begin with.
    largest : ndarray of float64, shape (number of counts,)
        As in :class:`Weights`.
    most : int
        How many counts to tabulate to either side, at most.

    Returns
    -------
    weights : Weights
        The tables.
    faults : ndarray of int64, shape (number of counts,)
        0; or ``TOO_WIDE``, if noise leaves more counts open than may be tabulated; or
        ``NOT_CONCAVE``, if its log-density isn't concave in the count; or ``IMPOSSIBLE``, if that
        is -inf at the count to begin with.
    """
    n = counts.size
    anchors, lowest = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    starts, faults = np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    below, above = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    all_logs, all_ratios = np.empty(1024), np.empty(1024)
    for cell in range(n):
        found = tabulate_count(
            log_noise, context, noise, cell, counts[cell], largest[cell], False, 0.0, most
        )
        anchors[cell], lowest[cell], below[cell], above[cell], logs, ratios, faults[cell] = found
        first, last = starts[cell], starts[cell] + logs.size
        starts[cell + 1] = last
        if last > all_logs.size:
            room = np.empty(last)
            all_logs = np.concatenate((all_logs[:first], room))
            all_ratios = np.concatenate((all_ratios[:first], room))
        all_logs[first:last] = logs
        all_ratios[first:last] = ratios
    logs, ratios = all_logs[: starts[n]].copy(), all_ratios[: starts[n]].copy()
    return Weights(anchors, lowest, starts, below, above, logs, ratios, largest), faults


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
        As in :class:`Weights`, of one count.
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
    first, last = 0, logs.size - 1
    if logs[first] > level:
        if not ends_below:
            return False, 0.0, 0.0, 0, 0.0
    else:
        below, first = first, peak
        while first - below > 1:
            middle = (first + below) // 2
            if logs[middle] + middle * natural > level:
                first = middle
            else:
                below = middle
    if logs[last] + last * natural > level:
        if not ends_above:
            return False, 0.0, 0.0, 0, 0.0
    else:
        above, last = last, peak
        while above - last > 1:
            middle = (last + above) // 2
            if logs[middle] + middle * natural > level:
                last = middle
            else:
                above = middle

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


@njit(inline="always")
def sum_counts(
    log_noise: Callable[..., float],
    context: tuple[Any, ...],
    noise: Noise,
    weights: Weights,
    naturals: np.ndarray,
    uniforms: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sum each count out, at a natural parameter of its own.

    Parameters
    ----------
    log_noise, context, noise
        The noise, for new tables if a natural parameter leads out of the given ones.
    weights : Weights
        The tables.
    naturals : ndarray of float64, shape (number of counts,)
        Natural parameters: the log-odds of a Binomial, the log-rate of a Poisson count.
    uniforms : ndarray of float64, shape (number of counts,) or (0,)
        Uniform numbers, if counts are to be drawn.

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
    n = naturals.size
    log_sums, means = np.full(n, np.nan), np.full(n, np.nan)
    counts, log_probabilities = np.zeros(uniforms.size, dtype=np.int64), np.zeros(uniforms.size)
    for cell in range(n):
        natural, anchor = naturals[cell], weights.anchors[cell]
        if not -np.inf < natural < np.inf:
            continue
        uniform = uniforms[cell] if uniforms.size else -1.0
        begins, ends = weights.starts[cell], weights.starts[cell + 1]
        complete, log_sum, mean, drawn, log_probability = False, 0.0, 0.0, 0, 0.0
        if abs(natural) < STEEPEST:
            complete, log_sum, mean, drawn, log_probability = sum_table(
                weights.logs[begins:ends],
                weights.ratios[begins:ends],
                weights.lowest[cell] - anchor,
                natural,
                weights.ends_below[cell] == 1,
                weights.ends_above[cell] == 1,
                uniform,
            )
        if not complete:
            largest = weights.largest[cell]
            peak, lowest, _, _, logs, ratios, _ = tabulate_count(
                log_noise, context, noise, cell, anchor, largest, True, natural, WIDEST
            )
            if logs.size == 0:
                log_sums[cell:], means[cell:] = -np.inf, 0.0
                break
            _, log_sum, mean, drawn, log_probability = sum_table(
                logs, ratios, lowest - peak, 0.0, True, True, uniform
            )
            log_sum += log_base(largest, peak) - log_base(largest, anchor)
            log_sum += (peak - anchor) * natural
            mean, drawn = mean + peak - anchor, drawn + peak - anchor
        log_sums[cell], means[cell] = log_sum, mean
        if uniforms.size:
            counts[cell], log_probabilities[cell] = anchor + drawn, log_probability
    return log_sums, means, counts, log_probabilities
