"""Messages up a tree: the pmf of each count given the releases at it and below it.

The message of a node is a pmf on a window of counts: the convolution of its children's messages
times the likelihood of its release. Windows are cut where little is left, and noise ends where it
is negligible. The neglected share of the posterior is bounded for each node: the probability cut
from a message, times the largest message of the rest of the tree, over the total. If releases
contradict each other, the posterior lies in tails. The bound shows that, and the tree is computed
again with wider windows.
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
    NEGATIVE_BINOMIAL,
    NONE,
    OF_TABLE,
    POISSON,
    log_noise_weights,
    log_normaliser,
    log_priors,
    noise_window,
    prior_window,
)
from pymc_dapper.kernels.arrays import with_room

TAIL_MASS = 1e-12
"""Largest share of the posterior that a window may neglect."""
DROP = 50.0
"""First logarithm of what windows cut off."""
LARGEST_EXPONENT = 700.0
"""Limit of float64 as a logarithm; windows never cut off more."""


class Messages(NamedTuple):
    """Messages of some nodes."""

    starts: np.ndarray
    """Int64, shape (number of nodes,): the start of each among the values."""
    widths: np.ndarray
    """Int64, shape (number of nodes,): how many counts its window has."""
    lowest: np.ndarray
    """Int64, shape (number of nodes,): the least count of its window."""
    values: np.ndarray
    """Float64: probabilities; those of the last node only, unless all are kept."""
    log_totals: np.ndarray
    """Float64, shape (number of nodes,): logarithm of each message's divisor."""
    log_neglected: np.ndarray
    """Float64, shape (number of nodes,): logarithm of a bound on the part cut off."""
    log_shares: np.ndarray
    """Float64, shape (number of nodes,): logarithm of the mean likelihood of the release, relative
    to its maximum over counts."""
    log_sums: np.ndarray
    """Float64, shape (number of nodes,): logarithm of the sum of the noise's weights, divided by
    that mean."""
    log_largest: np.ndarray
    """Float64, shape (number of nodes,): logarithm of its largest probability."""
    impossible: int
    """A node at which no count is possible, or none that the windows hold; -1 if there is none."""


@njit
def ends(out: np.ndarray, most: float) -> tuple[int, int, float]:
    """Cut at most ``most`` from either end; return the range of the rest, and the part cut off."""
    begin, end, below, above = 0, out.size, 0.0, 0.0
    while begin < end - 1 and below + out[begin] <= most:
        below += out[begin]
        begin += 1
    while begin < end - 1 and above + out[end - 1] <= most:
        above += out[end - 1]
        end -= 1
    return begin, end, below + above


@njit
def ascend(nodes: Nodes, drop: float, keep: bool) -> Messages:
    """Pass messages up.

    Parameters
    ----------
    nodes : Nodes
        The nodes, with their largest counts.
    drop : float
        Windows end where weights are about exp(-drop) of the total.
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
        left, right, kind = nodes.left[i], nodes.right[i], nodes.noise[i]
        if left < 0:
            low, high = prior_window(nodes, i, drop)
        else:
            low, high = lowest[left], lowest[left] + widths[left] - 1
            if right >= 0:
                low, high = low + lowest[right], high + lowest[right] + widths[right] - 1
        low_noise, high_noise = noise_window(nodes, i, drop)
        cuts_noise = kind not in (NONE, EXACT) and (low < low_noise or high > high_noise)
        first, last = max(low, low_noise), min(high, high_noise, nodes.highest[i])
        if last < first:
            impossible = i
            break
        width = last - first + 1
        if width > room.size:
            room, weights = np.empty(2 * width), np.empty(2 * width)
        out, noise, best = room[:width], weights[:width], 0.0
        if kind != NONE:
            best = log_noise_weights(nodes, i, first, noise)
            if not best > -np.inf:
                impossible = i
                break

        # The children's message times the likelihood, each relative to a maximum.
        outside = 1.0
        if left < 0:
            log_priors(nodes, i, first, out)
            if kind != NONE:
                for j in range(width):
                    out[j] += noise[j]
            best = out.max()
            if not best > -np.inf:
                impossible = i
                break
            for j in range(width):
                out[j] = math.exp(out[j] - best)
            if nodes.prior[i] == FLAT:
                outside = max(1.0, nodes.scale[i])
        else:
            a = values[starts[left] : starts[left] + widths[left]]
            if right < 0:
                for j in range(width):
                    out[j] = a[first - low + j]
            else:
                b = values[starts[right] : starts[right] + widths[right]]
                convolve(a, b, first - low, out)
            if kind != NONE:
                total_noise = 0.0
                for j in range(width):
                    noise[j] = math.exp(noise[j] - best)
                    total_noise += noise[j]
                    out[j] *= noise[j]
                log_sums[i] = math.log(total_noise) + best
        total = out.sum()
        if not total > 1e-290:
            impossible = i
            break

        # Ends with less than the share that may be cut.
        begin, end, neglected = ends(out, cut * total)
        # Weights are relative to the best that is here.
        away = math.exp(min(-best, LARGEST_EXPONENT))
        if cuts_noise:
            neglected += cut * outside * away
        if left < 0 and (
            nodes.prior[i] in (POISSON, NEGATIVE_BINOMIAL)
            or (nodes.prior[i] == OF_TABLE and min(high, high_noise) > nodes.highest[i])
        ):
            neglected += cut * away
        if left < 0 and nodes.prior[i] == OF_TABLE:
            neglected += nodes.second[i] * away
        log_neglected[i] = math.log(neglected / total) if neglected > 0 else -np.inf

        # If messages aren't kept, the children's memory is free.
        start = starts[left] if left >= 0 and not keep else used
        used = start + end - begin
        starts[i], widths[i], lowest[i] = start, end - begin, first + begin
        values = with_room(values, start, used)
        largest = 0.0
        for j in range(end - begin):
            values[start + j] = p = out[begin + j] * (1 / total)
            largest = max(largest, p)
        log_totals[i] = math.log(total) + best
        if kind != NONE:
            log_totals[i] -= log_normaliser(kind, nodes.scale[i])
        log_shares[i] = math.log(total) + best
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
    """Bound the share of the posterior outside of windows.

    Returns
    -------
    largest : ndarray of float64, shape (number of nodes,)
        Logarithm of a bound on the message of the rest of the tree to a node, relative to its mean
        under the node's message.
    most, total : float
        Logarithm of the largest bound of a window, and the sum of all. They hold for roots without
        further information; a message from above multiplies them by its largest value.
    """
    n = nodes.left.size
    # Of the message of the rest of the tree to a node: the maximum, and the sum.
    largest, sums = np.zeros(n), np.full(n, np.inf)
    most, total = -np.inf, 0.0
    for i in range(n - 1, -1, -1):
        here = messages.log_neglected[i] + largest[i]
        most = max(most, here)
        total += math.exp(min(here, 600.0))
        left, right = nodes.left[i], nodes.right[i]
        if left < 0:
            continue
        # Include this node's release.
        top = largest[i] - messages.log_shares[i]
        sum_ = min(largest[i] + messages.log_sums[i], sums[i] - messages.log_shares[i])
        for child, other in ((left, right), (right, left)):
            if child < 0:
                continue
            sums[child], largest[child] = sum_, top
            if other >= 0:
                largest[child] = min(top, sum_ + messages.log_largest[other])
    return largest, most, total
