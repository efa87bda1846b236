"""Draws down a tree: each count is split between its two children, from the root on.

Given a total n, the left child's count a has probability proportional to left[a] * right[n - a]. A
draw from one message is accepted with the probability of the other's value over its largest. If
that takes too long, all possible counts are enumerated; the distribution is the same.
"""

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.messages import Messages
from pymc_dapper.counts.trees.nodes import Nodes

ATTEMPTS = 16
"""Number of trials before all counts are enumerated."""
FEW = 8
"""With fewer counts than that, they are gone through at once."""
REPEATED = 4
"""From this number of draws on, a table is made to draw from a message."""


@njit
def _guide(p: np.ndarray, cumulative: np.ndarray, guide: np.ndarray) -> None:
    """Make a table to draw from a pmf: the start of the search in its cumulative sums."""
    done = 0.0
    for j in range(p.size):
        done += p[j]
        cumulative[j] = done
    at = 0
    for k in range(guide.size):
        while at < p.size - 1 and cumulative[at] <= done * k / guide.size:
            at += 1
        guide[k] = at


@njit
def _draw(rng: np.random.Generator, cumulative: np.ndarray, guide: np.ndarray) -> int:
    u = rng.random()
    j = guide[int(u * guide.size)]
    u *= cumulative[-1]
    while cumulative[j] <= u and j < cumulative.size - 1:
        j += 1
    return j


@njit
def draw_from(rng: np.random.Generator, p: np.ndarray, lowest: int, out: np.ndarray) -> None:
    """Draw counts of a pmf on a window."""
    cumulative = np.empty(p.size)
    guide = np.empty(p.size, dtype=np.int64)
    _guide(p, cumulative, guide)
    for d in range(out.size):
        out[d] = lowest + _draw(rng, cumulative, guide)


@njit
def draw_roots(
    rng: np.random.Generator, roots: np.ndarray, messages: Messages, counts: np.ndarray
) -> None:
    """Draw the counts of roots without further information.

    Parameters
    ----------
    rng : Generator
        Is advanced.
    roots : ndarray of int64
        The roots.
    messages : Messages
        All messages up.
    counts : ndarray of int64, shape (number of nodes, number of draws)
        Those of the roots are written.
    """
    for root in roots:
        start = messages.starts[root]
        p = messages.values[start : start + messages.widths[root]]
        draw_from(rng, p, messages.lowest[root], counts[root])


@njit
def _go_through(
    rng: np.random.Generator, a: np.ndarray, b: np.ndarray, low: int, high: int, n: int
) -> int:
    """Draw i of low, ..., high with probability proportional to a[i] * b[n - i]."""
    total = 0.0
    for i in range(low, high + 1):
        total += a[i] * b[n - i]
    left = rng.random() * total
    last = low
    for i in range(low, high + 1):
        p = a[i] * b[n - i]
        if p > 0:
            last = i
            left -= p
            if left < 0:
                return i
    return last


@njit
def split_draws(
    rng: np.random.Generator, nodes: Nodes, messages: Messages, counts: np.ndarray
) -> None:
    """Draw the counts of all nodes given those of the roots.

    Parameters
    ----------
    rng : Generator
        Is advanced.
    nodes, messages
        The nodes, and all of their messages up.
    counts : ndarray of int64, shape (number of nodes, number of draws)
        The roots' counts are given, all others are written.
    """
    starts, widths, lowest = messages.starts, messages.widths, messages.lowest
    n_draws = counts.shape[1]
    width = widths.max()
    sums, entries = np.empty(width), np.empty(width, dtype=np.int64)
    for i in range(nodes.left.size - 1, -1, -1):
        left, right = nodes.left[i], nodes.right[i]
        if left < 0:
            continue
        if right < 0:
            for d in range(n_draws):
                counts[left, d] = counts[i, d]
            continue
        # The narrower message is drawn, the wider one decides: its maximum is smaller. For few
        # draws the choice is fixed, so that it doesn't depend on rounding if both are equal.
        if n_draws >= REPEATED and messages.log_largest[left] < messages.log_largest[right]:
            left, right = right, left
        a = messages.values[starts[left] : starts[left] + widths[left]]
        b = messages.values[starts[right] : starts[right] + widths[right]]
        cumulative, guide = sums[: a.size], entries[: a.size]
        if n_draws >= REPEATED:
            _guide(a, cumulative, guide)
        largest = b.max()
        for d in range(n_draws):
            n = counts[i, d] - lowest[left] - lowest[right]
            low, high = max(0, n - b.size + 1), min(a.size - 1, n)
            found = -1
            if high - low >= FEW and n_draws >= REPEATED:
                for _ in range(ATTEMPTS):
                    j = _draw(rng, cumulative, guide)
                    if low <= j <= high and rng.random() * largest < b[n - j]:
                        found = j
                        break
            if found < 0:
                found = _go_through(rng, a, b, low, high, n)
            counts[left, d] = lowest[left] + found
            counts[right, d] = lowest[right] + n - found
