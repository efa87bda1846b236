"""Tables of log-weights: a model's terms of each sum of cells, on windows of counts.

A model's terms may be any functions of counts. So windows are found by search. It goes uphill from
a possible table of counts; then to either side until the log-weight is ``drop`` below the maximum;
then to ever greater distances, twice as far each time, to see whether it rises again. Between
points evaluated there, the log-weight is taken to lie between its values at both. (For a sum's
terms the search is limited, because terms may cancel up to rounding errors, which grow with the
counts.)

Given the sums, log-weights may be tilted: t * sum is subtracted from a sum's log-weight, and t *
count is added to each of its parts. That changes nothing, but makes sums and parts agree on likely
counts. Parts of a total of a million people have weights exp(x log p) / x!, which are largest at 0
before tilting. So each sum is tilted until its log-weight is flat at the approximately most likely
table, and known totals until their parts' are.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.weights import ENDLESS
from pymc_dapper.kernels.arrays import with_room

FAR = 800.0
"""The search stops where log-weights are this far below the maximum."""
FARTHEST = 8
"""For sums, the search stops at this multiple of the width of their parts' range."""
CLIMBS = 500
"""Steps uphill, at most."""
MOST = 2**24
"""Entries of all tables together."""
STEPS = 30
"""Most steps of Newton's method."""
CLOSE = 16.0
"""Newton's method ends if the squared change of counts, in standard deviations, is at most this."""
EDGE = 100.0
"""Curvature of the log-weight of a count that can't fall, and wouldn't rise."""
LEAST_LEFT = 1e-3
"""Least share of the precision from below that remains if terms bend upwards."""

IMPOSSIBLE, TOO_WIDE, GROWS = 1, 2, 3
"""Faults of a node's log-weights: see :func:`tabulate`."""


class Terms(NamedTuple):
    """Which nodes of a tree, in post-order, have terms of a log-density."""

    left: np.ndarray
    right: np.ndarray
    """Int64, shape (number of nodes,): children; -1 for none."""
    exact: np.ndarray
    """Int64, shape (number of nodes,): 1 for a known sum."""
    starts: np.ndarray
    """Int64, shape (number of nodes + 1,): the start of each node's terms."""


class Window(NamedTuple):
    """The range in which log-weights aren't negligible."""

    peak: int
    """A likeliest count."""
    lowest: int
    highest: int
    top: float
    """The largest log-weight."""
    beyond: float
    """Logarithm of a bound on the sum of the weights beyond."""
    closed: bool
    """Whether all weights beyond are 0."""


class Tables(NamedTuple):
    """Log-weights of each node on a window of counts, tilted, relative to the largest."""

    starts: np.ndarray
    """Int64, shape (number of nodes + 1,): the start of each node's table; some have none."""
    lowest: np.ndarray
    """Int64, shape (number of nodes,): the least count of each."""
    values: np.ndarray
    """Float64: log-weights."""
    tops: np.ndarray
    """Float64, shape (number of nodes,): the constants subtracted from them, beside the log-weight
    of the possible counts."""
    beyond: np.ndarray
    """Float64, shape (number of nodes,): a bound on the sum of the weights beyond."""
    highest: np.ndarray
    """Int64, shape (number of nodes,): the largest count that known sums leave possible."""
    fault: int
    """0, or the fault."""
    at: int
    """The node with the fault."""


# Functions that call the log-density are inlined: code with function arguments can't be cached on
# disk (see `sums_sweep`).
@njit(inline="always")
def find_peak(
    log_weight: Callable[..., float], context: tuple[Any, ...], i: int, near: int, base: float,
    tilt: float, lowest: int, highest: int,
) -> tuple[int, float]:  # fmt: skip
    """Find a likeliest count, and its log-weight, in steps that grow as long as these do.

    Arguments are those of :func:`find_window`.
    """
    peak, top, step, climbed = near, 0.0, 1, 0
    while step > 0 and climbed < CLIMBS:  # beyond 1e15, rounding makes peaks of its own
        improved = False
        for sign in (-1, 1):
            k = min(max(peak + sign * step, lowest), highest)
            value = log_weight(context, i, k) - base + tilt * (k - near)
            if value > top:
                peak, top, improved = k, value, True
                climbed += 1
                break
        step = min(2 * step, ENDLESS) if improved else step // 2
    return peak, top


@njit(inline="always")
def find_window(
    log_weight: Callable[..., float],
    context: tuple[Any, ...],
    i: int,
    near: int,
    base: float,
    tilt: float,
    lowest: int,
    highest: int,
    drop: float,
) -> Window:
    """Find where a node's log-weights are within ``drop`` of the maximum.

    Parameters
    ----------
    log_weight : callable
        ``log_weight(context, i, count) -> float``: the sum of a node's terms at a count.
    context, i
        Its other argument, and the node.
    near : int
        A possible count.
    base, tilt : float
        ``base - tilt * (count - near)`` is taken from log-weights.
    lowest, highest : int
        The least and the largest count.
    drop : float
        See above.
    """
    peak, top = find_peak(log_weight, context, i, near, base, tilt, lowest, highest)
    edges, log_beyond, closed = np.array([peak, peak]), -np.inf, True
    for side in range(2):
        end = lowest if side == 0 else highest
        edge, looking = peak, True
        while looking:
            looking = False
            # Out of the window, in growing steps; and back to its edge.
            inside, outside, step = edge, edge, 1
            while inside == outside and inside != end:
                outside = max(inside - step, end) if side == 0 else min(inside + step, end)
                value = log_weight(context, i, outside) - base + tilt * (outside - near)
                top = max(top, value)
                if value >= top - drop:
                    inside = outside
                step *= 2
            while abs(outside - inside) > 1:
                middle = (inside + outside) // 2
                value = log_weight(context, i, middle) - base + tilt * (middle - near)
                if value >= top - drop:
                    inside = middle
                else:
                    outside = middle
            edge = inside
            # Does it rise again?
            at, value, distance, mass = edge, -np.inf, 1, 0.0
            while at != end:
                k = max(edge - distance, end) if side == 0 else min(edge + distance, end)
                last = value
                value = log_weight(context, i, k) - base + tilt * (k - near)
                if value >= top - drop:
                    edge, looking = k, True
                    break
                mass += abs(k - at) * math.exp(max(last, value) - top)
                closed = closed and value == -np.inf
                at, distance = k, 2 * distance
                if -np.inf < value < top - FAR:
                    break
            if mass > 0 and not looking:
                log_mass, most = top + math.log(mass), max(log_beyond, top + math.log(mass))
                both = math.exp(log_beyond - most) + math.exp(log_mass - most)
                log_beyond = most + math.log(both)
        edges[side] = edge
    return Window(peak, edges[0], edges[1], top, log_beyond, closed)


@njit(inline="always")
def find_tilts(
    log_weight: Callable[..., float],
    context: tuple[Any, ...],
    terms: Terms,
    near: np.ndarray,
    highest: np.ndarray,
    tilted: bool,
) -> np.ndarray:
    """Find the tilts of log-weights with which all nodes agree on likely counts.

    Newton's method finds the most likely table, not in integers. Each log-weight is approximated by
    a parabola, so that upward messages are means and variances of changes. The tilts affect the
    work only, not the result.

    Parameters
    ----------
    log_weight, context, terms, near, tilted
        As in :func:`tabulate`.
    highest : ndarray of int64, shape (number of nodes,)
        The largest possible counts.
    """
    n = near.size
    present, changes, pulls = near.copy(), np.zeros(n), np.zeros(n)
    means, variances = np.zeros(n), np.zeros(n)  # from below
    own, left_open = np.zeros(n), np.zeros(n)  # including the node's own log-weight
    for _ in range(STEPS):
        for i in range(n):
            left, right = terms.left[i], terms.right[i]
            mean = variance = 0.0
            if left >= 0:
                present[i] = 0
                for child in (left, right):
                    if child >= 0:
                        mean, variance = mean + own[child], variance + left_open[child]
                        present[i] += present[child]
            slope, bend = 0.0, 0.0
            if terms.exact[i]:
                means[i], variances[i] = mean, variance
                own[i], left_open[i] = near[i] - present[i], 0.0
                continue
            if terms.starts[i] < terms.starts[i + 1]:
                here, up, down = log_weight(context, i, present[i]), -np.inf, -np.inf
                if present[i] < highest[i]:
                    up = log_weight(context, i, present[i] + 1) - here
                if present[i] > 0:
                    down = log_weight(context, i, present[i] - 1) - here
                if -np.inf < up < np.inf and -np.inf < down < np.inf:
                    slope, bend = 0.5 * (up - down), -up - down
                elif -np.inf < up < np.inf:
                    slope, bend = up, 1.0 if up > 0 else EDGE
                elif -np.inf < down < np.inf:
                    slope, bend = -down, 1.0 if down > 0 else EDGE
            if left < 0:
                bend = max(bend, 1 / (1.0 + present[i]))
                own[i], left_open[i] = slope / bend, 1 / bend
            elif variance > 0:
                means[i], variances[i] = mean, variance
                precision = max(1 / variance + bend, LEAST_LEFT / variance)
                own[i], left_open[i] = (mean / variance + slope) / precision, 1 / precision
            else:
                means[i], variances[i] = mean, 0.0
                own[i], left_open[i] = mean, 0.0
        farthest = 0.0
        for i in range(n):  # of roots; of all others it is overwritten
            changes[i] = own[i]
            pulls[i] = 0.0
        for i in range(n - 1, -1, -1):
            left, right = terms.left[i], terms.right[i]
            if left < 0:
                if left_open[i] > 0:
                    farthest = max(farthest, changes[i] ** 2 / left_open[i])
                change = min(max(changes[i], -0.75 * present[i]), 3.0 * present[i] + 8)
                moved = min(max(present[i] + int(np.round(change)), 0), highest[i])
                if not terms.exact[i] and log_weight(context, i, moved) > -np.inf:
                    present[i] = moved
                continue
            # The message from the rest to the sum acts on all of its parts.
            pull, own_terms = pulls[i], terms.starts[i] < terms.starts[i + 1]
            if (terms.exact[i] or (tilted and own_terms)) and variances[i] > 0:
                pull = (changes[i] - means[i]) / variances[i]
            pulls[i] = pull - pulls[i]
            for child in (left, right):
                if child >= 0:
                    changes[child] = own[child] + left_open[child] * pull
                    pulls[child] = pull
        if farthest < CLOSE:
            break
    for i in range(n):
        if terms.left[i] >= 0:
            pulls[i] = -pulls[i]
    return pulls


@njit(inline="always")
def tabulate(
    log_weight: Callable[..., float],
    context: tuple[Any, ...],
    terms: Terms,
    near: np.ndarray,
    drop: float,
    tilted: bool,
) -> Tables:
    """Tabulate the log-weights of all nodes, relative to those of a possible table.

    Parameters
    ----------
    log_weight, context, terms
        The log-weights.
    near : ndarray of int64, shape (number of nodes,)
        The possible counts.
    drop : float
        Windows end where log-weights are this far below the maximum.
    tilted : bool
        Whether sums are tilted that aren't known, too. Heavy tails grow without an end if they are.

    Returns
    -------
    Tables
        The tables; or a fault: ``IMPOSSIBLE``, if a log-weight isn't finite at the possible counts;
        ``TOO_WIDE``, if tables would have too many entries; or ``GROWS``, if a sum's log-weight is
        larger somewhere beyond the range of its parts.
    """
    n = near.size
    highest, base = np.full(n, ENDLESS), np.zeros(n)
    fault, at = 0, -1
    for i in range(n - 1, -1, -1):
        if terms.exact[i]:
            highest[i] = min(highest[i], near[i])
        for child in (terms.left[i], terms.right[i]):
            if child >= 0:
                highest[child] = min(highest[child], highest[i])
        # A known sum is a constant.
        if terms.starts[i] == terms.starts[i + 1] or terms.exact[i]:
            continue
        base[i] = log_weight(context, i, near[i])
        if base[i] == -np.inf:
            fault, at = IMPOSSIBLE, i
            break
    tilts = np.zeros(n)
    if fault == 0:
        tilts = find_tilts(log_weight, context, terms, near, highest, tilted)

    starts, lowest = np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    least, most = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    tops, beyond, values = np.zeros(n), np.zeros(n), np.empty(1024)
    closed = np.ones(n, dtype=np.bool_)  # whether no other counts are possible, for any drop
    for i in range(n):
        starts[i + 1] = starts[i]
        if fault:
            continue
        is_leaf = terms.left[i] < 0
        for child in (terms.left[i], terms.right[i]):
            if child >= 0:
                least[i] += least[child]
                most[i] = min(most[i] + most[child], highest[i])
                closed[i] = closed[i] and closed[child]
        if terms.exact[i]:
            least[i] = most[i] = near[i]
        elif terms.starts[i] == terms.starts[i + 1]:
            continue
        first, last, tilt = near[i], near[i], 0.0
        if not terms.exact[i]:
            tilt, begin, end = tilts[i], 0, highest[i]
            if not is_leaf and closed[i]:
                begin, end = least[i], most[i]
            elif not is_leaf:
                reach = FARTHEST * (most[i] - least[i] + 1)
                end = min(end, max(most[i], near[i]) + reach)
            window = find_window(log_weight, context, i, near[i], base[i], tilt, begin, end, drop)
            first, last, tops[i] = window.lowest, window.highest, window.top
            beyond[i] = math.exp(window.beyond - window.top)
            if is_leaf:
                closed[i] = window.closed
            else:
                first, last = max(first, least[i]), min(last, most[i])
                closed[i] = closed[i] and first == least[i] and last == most[i]
        if last < first or starts[i] + last - first + 1 > MOST:
            fault, at = GROWS if last < first else TOO_WIDE, i
            continue
        stop = starts[i] + last - first + 1
        values = with_room(values, starts[i], stop)
        highest_here = -np.inf
        for k in range(first, last + 1):
            value = 0.0
            if not terms.exact[i]:
                value = log_weight(context, i, k) - base[i] + tilt * (k - near[i])
            values[starts[i] + k - first] = value
            highest_here = max(highest_here, value)
        if not is_leaf and tops[i] > highest_here + 1:
            fault, at = GROWS, i
            continue
        tops[i] = max(tops[i], highest_here)
        for j in range(starts[i], stop):
            values[j] -= tops[i]
        lowest[i], starts[i + 1] = first, stop
        if is_leaf:
            least[i], most[i] = first, last
        else:
            least[i], most[i] = max(least[i], first), min(most[i], last)
    return Tables(starts, lowest, values[: starts[n]].copy(), tops, beyond, highest, fault, at)
