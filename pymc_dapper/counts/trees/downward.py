"""Downward messages of a tree: from the rest of the tree to each count; they give marginals."""

import math

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.convolution import convolve
from pymc_dapper.counts.trees.messages import Messages, ends
from pymc_dapper.counts.trees.nodes import Nodes
from pymc_dapper.counts.trees.weights import NONE, log_noise_weights

NEGLIGIBLE = 1e-16
"""Share of a marginal, at either end, that messages to parts leave out: as much as rounding errors.

Such counts would take as much time as the others.
"""


@njit
def descend(nodes: Nodes, messages: Messages, downward: np.ndarray) -> np.ndarray:
    """Pass messages down.

    Parameters
    ----------
    nodes : Nodes
        The nodes.
    messages : Messages
        All of their messages up.
    downward : ndarray of float64
        The message of the rest of the tree to the last node, on its window; other roots have none.

    Returns
    -------
    values : ndarray of float64
        The message of the rest of the tree to each count, stored at the places of ``messages``: the
        product of both is the marginal pmf, up to a factor.
    """
    n = nodes.left.size
    starts, widths, lowest = messages.starts, messages.widths, messages.lowest
    values = np.ones(messages.values.size)
    values[starts[n - 1] : starts[n - 1] + downward.size] = downward
    width = widths.max()
    room, weights, turned = np.empty(width), np.empty(width), np.empty(width)
    for i in range(n - 1, -1, -1):
        left, right = nodes.left[i], nodes.right[i]
        if left < 0:
            continue
        t, noise = room[: widths[i]], weights[: widths[i]]
        for j in range(t.size):
            t[j] = values[starts[i] + j]
        total, _ = _weigh(t, messages.values[starts[i] : starts[i] + t.size], noise)
        begin, end, _ = ends(noise, NEGLIGIBLE * total)
        t, noise, low = t[begin:end], noise[begin:end], lowest[i] + begin
        if nodes.noise[i] != NONE:
            best = log_noise_weights(nodes, i, low, noise)
            for j in range(t.size):
                t[j] *= math.exp(noise[j] - best)
        _scale(t)
        for child, other in ((left, right), (right, left)):
            if child < 0:
                continue
            out = values[starts[child] : starts[child] + widths[child]]
            if other < 0:
                shift = lowest[child] - low
                for j in range(out.size):
                    at = shift + j
                    out[j] = t[at] if 0 <= at < t.size else 0.0
            else:
                m = turned[: widths[other]]
                for j in range(m.size):
                    m[j] = messages.values[starts[other] + m.size - 1 - j]
                first = lowest[child] + lowest[other] - low + m.size - 1
                convolve(m, t, first, out)
            _scale(out)
    return values


@njit
def _scale(x: np.ndarray) -> None:
    """Divide by the largest: only the ratios count."""
    largest = x.max()
    if largest > 0:
        for j in range(x.size):
            x[j] /= largest


@njit(fastmath={"reassoc", "contract", "nsz"})
def _weigh(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> tuple[float, float]:
    """Write a product, and return its sum and its first moment."""
    total = first = 0.0
    for j in range(out.size):
        out[j] = a[j] * b[j]
        total += out[j]
        first += out[j] * j
    return total, first


@njit
def summarise(
    messages: Messages,
    values: np.ndarray,
    which: np.ndarray,
    shares: np.ndarray,
    at: np.ndarray,
    means: np.ndarray,
    sds: np.ndarray,
    quantiles: np.ndarray,
    below: np.ndarray,
) -> None:
    """Write summaries of marginals.

    Parameters
    ----------
    messages, values
        Upward messages, and the result of :func:`descend`.
    which : ndarray of int64, shape (n,)
        The nodes.
    shares : ndarray of float64, shape (number of quantiles,)
        Which quantiles.
    at : ndarray of int64, shape (n,) or (0,)
        Counts for which P(fewer) and P(this many or fewer) are computed.
    means, sds : ndarray of float64, shape (n,)
        Are written: mean and standard deviation.
    quantiles : ndarray of int64, shape (n, number of quantiles)
        Written: the smallest counts with these cumulative probabilities.
    below : ndarray of float64, shape (n, 2) or (0, 2)
        Is written.
    """
    room = np.empty(messages.widths.max())
    for k in range(which.size):
        i = which[k]
        begin, width, lowest = messages.starts[i], messages.widths[i], messages.lowest[i]
        p = room[:width]
        run = slice(begin, begin + width)
        total, first = _weigh(messages.values[run], values[run], p)
        mean = first / total
        second, q, done = 0.0, 0, 0.0
        lower = upper = 0.0
        for j in range(width):
            share = p[j] / total
            second += share * (j - mean) ** 2
            if at.size:
                if lowest + j < at[k]:
                    lower += share
                if lowest + j <= at[k]:
                    upper += share
            done += share
            while q < shares.size and (done >= shares[q] or j == width - 1):
                quantiles[k, q] = lowest + j
                q += 1
        means[k], sds[k] = lowest + mean, math.sqrt(second)
        if at.size:
            below[k, 0], below[k, 1] = lower, upper
