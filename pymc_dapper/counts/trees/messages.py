"""Messages up a tree: what is known of each count from what was released at it and below it.

The message of a node is a pmf on a window of counts: the convolution of its children's messages
times the noise's density at what was released. Windows are cut where little is left, and noise ends
where it is negligible. What that neglects is bounded for each node, as a share of the posterior:
what is cut from a message times the most that the rest of the tree can say about a count, by what
it says of all. As both are known when the messages are, a tree whose releases contradict each
other, so that the posterior lies in tails, is found out, and done again with wider windows.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.convolution import convolve
from pymc_dapper.counts.trees.nodes import Nodes
from pymc_dapper.counts.trees.weights import (
    EXACT,
    FLAT,
    NONE,
    log_normaliser,
    log_prior,
    noise_weights,
    noise_window,
    prior_window,
)


class Messages(NamedTuple):
    """Messages of some nodes."""

    starts: np.ndarray
    """Int64, shape (number of nodes,): where each begins among the values."""
    widths: np.ndarray
    """Int64, shape (number of nodes,): how many counts its window has."""
    lowest: np.ndarray
    """Int64, shape (number of nodes,): the least count of its window."""
    values: np.ndarray
    """Float64: probabilities; those of the last node only, unless all are kept."""
    log_totals: np.ndarray
    """Float64, shape (number of nodes,): logarithm of what each was divided by."""
    log_neglected: np.ndarray
    """Float64, shape (number of nodes,): logarithm of a bound on what its window cuts off."""
    log_shares: np.ndarray
    """Float64, shape (number of nodes,): logarithm of the mean weight that the noise gave."""
    log_sums: np.ndarray
    """Float64, shape (number of nodes,): logarithm of the sum of the noise's weights, by that."""
    log_largest: np.ndarray
    """Float64, shape (number of nodes,): logarithm of its largest probability."""
    impossible: int
    """A node that no count is possible at, or only with less than the windows hold; -1 if none."""


@njit
def ascend(nodes: Nodes, drop: float, transforms: bool, keep: bool) -> Messages:
    """Pass messages up.

    Parameters
    ----------
    nodes : Nodes
        The nodes, with their largest counts.
    drop : float
        Windows end where weights are some exp(-drop) of all.
    transforms : bool
        Whether Fourier transforms may be used.
    keep : bool
        Whether all messages are kept, or only the last.
    """
    n = nodes.left.size
    starts, widths = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    lowest = np.zeros(n, dtype=np.int64)
    log_totals, log_neglected = np.zeros(n), np.full(n, -np.inf)
    log_shares, log_sums, log_largest = np.zeros(n), np.full(n, np.inf), np.zeros(n)
    values, room, weights = np.empty(4096), np.empty(4096), np.empty(4096)
    used, impossible = 0, -1
    cut = math.exp(-drop)
    for i in range(n):
        left, right = nodes.left[i], nodes.right[i]
        kind = nodes.noise[i]
        low_noise, high_noise = noise_window(nodes, i, drop)
        if left < 0:
            low, high = prior_window(nodes, i, drop)
        else:
            low, high = lowest[left], lowest[left] + widths[left] - 1
            if right >= 0:
                low, high = low + lowest[right], high + lowest[right] + widths[right] - 1
        cuts_noise = kind not in (NONE, EXACT) and (low < low_noise or high > high_noise)
        first, last = max(low, low_noise), min(high, nodes.highest[i])
        if last < first:
            impossible = i
            break
        width = last - first + 1
        if width > room.size:
            room, weights = np.empty(2 * width), np.empty(2 * width)
        out, noise = room[:width], weights[:width]

        error = 0.0
        if left < 0:
            best = -np.inf
            for j in range(width):
                out[j] = log_prior(nodes, i, first + j)
                best = max(best, out[j])
            if not best > -np.inf:
                impossible = i
                break
            for j in range(width):
                out[j] = math.exp(out[j] - best)
        else:
            best, outside = 0.0, 1.0
            a = values[starts[left] : starts[left] + widths[left]]
            if right < 0:
                for j in range(width):
                    out[j] = a[first - low + j]
            else:
                b = values[starts[right] : starts[right] + widths[right]]
                error = convolve(a, b, first - low, out, transforms)
        if kind != NONE:
            log_noise, total_noise = noise_weights(nodes, i, first, noise)
            if not log_noise > -np.inf:
                impossible = i
                break
            for j in range(width):
                out[j] *= noise[j]
            best += log_noise - log_normaliser(kind, nodes.scale[i])
            log_sums[i] = math.log(total_noise)
        else:
            log_noise, total_noise = 0.0, 1.0 * width
        total = 0.0
        for j in range(width):
            total += out[j]
        if not total > 1e-290:
            impossible = i
            break

        # What the ends have less of than the share that may be cut.
        begin, end, below, above = 0, width, 0.0, 0.0
        while below + out[begin] <= cut * total:
            below += out[begin]
            begin += 1
        while above + out[end - 1] <= cut * total:
            above += out[end - 1]
            end -= 1
        neglected = below + above + error * math.sqrt(total_noise)
        if cuts_noise:
            neglected += cut * outside * math.exp(min(-log_noise, 600.0))
        if left < 0 and nodes.prior[i] != FLAT:
            neglected += cut * outside
        log_neglected[i] = math.log(neglected / total) if neglected > 0 else -np.inf

        # Where they aren't kept, the children's room is free.
        start = used if keep or left < 0 else starts[left]
        starts[i], widths[i], lowest[i] = start, end - begin, first + begin
        used = start + end - begin
        if used > values.size:
            more = np.empty(2 * used)
            for j in range(start):
                more[j] = values[j]
            values = more
        largest = 0.0
        for j in range(end - begin):
            values[start + j] = p = out[begin + j] / total
            largest = max(largest, p)
        log_totals[i] = math.log(total) + best
        log_shares[i] = math.log(total)
        log_sums[i] -= log_shares[i]
        log_largest[i] = math.log(largest)
    return Messages(
        starts,
        widths,
        lowest,
        values[:used].copy(),
        log_totals,
        log_neglected,
        log_shares,
        log_sums,
        log_largest,
        impossible,
    )


@njit
def bound_neglected(nodes: Nodes, messages: Messages) -> tuple[np.ndarray, float, float]:
    """Bound what windows neglect of the posterior.

    Returns
    -------
    largest : ndarray of float64, shape (number of nodes,)
        Logarithm of a bound on what the rest of the tree says about a count of a node, where what
        it says of the node's message is 1.
    most, total : float
        Logarithm of the largest bound of a window, and the sum of all. They are for roots of
        which nothing else is known; what is known from above multiplies them by its largest value.
    """
    n = nodes.left.size
    # Of what the rest of the tree says about a node's count: the largest value, and the sum.
    largest, sums = np.zeros(n), np.full(n, np.inf)
    most, total = -np.inf, 0.0
    for i in range(n - 1, -1, -1):
        here = messages.log_neglected[i] + largest[i]
        most = max(most, here)
        total += math.exp(min(here, 600.0))
        left, right = nodes.left[i], nodes.right[i]
        if left < 0:
            continue
        # With what was released here.
        top = largest[i] - messages.log_shares[i]
        sum_ = min(largest[i] + messages.log_sums[i], sums[i] - messages.log_shares[i])
        for child, other in ((left, right), (right, left)):
            if child < 0:
                continue
            sums[child], largest[child] = sum_, top
            if other >= 0:
                largest[child] = min(top, sum_ + messages.log_largest[other])
    return largest, most, total
