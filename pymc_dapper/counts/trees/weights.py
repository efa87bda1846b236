"""Log-weights of counts: from their releases, and from the prior."""

import math

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.nodes import Nodes
from pymc_dapper.kernels.arrays import copy_into

NONE, EXACT, DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, GAUSSIAN, LAPLACE, TABLE = range(7)
"""Kinds of noise. Of NONE nothing was released; EXACT is an invariant."""

FLAT, POISSON, NEGATIVE_BINOMIAL, OF_TABLE = range(4)
"""Kinds of priors."""

ENDLESS = 2**53
"""Largest count: float64 isn't exact beyond it."""


@njit
def log_normaliser(noise: int, scale: float) -> float:
    """Log of the normaliser of the noise's density."""
    if noise == GAUSSIAN:
        return math.log(scale) + 0.5 * math.log(2 * math.pi)
    if noise == LAPLACE:
        return math.log(2 * scale)
    if noise == DISCRETE_LAPLACE:
        q = math.exp(-1 / scale)
        return math.log1p(q) - math.log(-math.expm1(-1 / scale))
    if noise == DISCRETE_GAUSSIAN:
        if scale > 1:  # the dual series (Poisson's summation formula)
            total, step = 1.0, -2 * (math.pi * scale) ** 2
            for k in range(1, 4):
                total += 2 * math.exp(step * k * k)
            return math.log(scale) + 0.5 * math.log(2 * math.pi) + math.log(total)
        total = 1.0
        for k in range(1, 40):
            total += 2 * math.exp(-0.5 * (k / scale) ** 2)
        return math.log(total)
    return 0.0


@njit
def noise_window(nodes: Nodes, i: int, drop: float) -> tuple[int, int]:
    """Return the counts at which the noise is within exp(-drop) of its most likely value."""
    noise, released, scale = nodes.noise[i], nodes.released[i], nodes.scale[i]
    if noise == NONE:
        return 0, ENDLESS
    if noise == TABLE:
        table = int(released)
        length = nodes.table_starts[table + 1] - nodes.table_starts[table]
        return nodes.table_lowest[table], nodes.table_lowest[table] + length - 1
    reach = 0.0
    if noise in (DISCRETE_GAUSSIAN, GAUSSIAN):
        reach = scale * math.sqrt(2 * drop)
    elif noise != EXACT:
        reach = scale * drop
    lowest, highest = math.ceil(released - reach), math.floor(released + reach)
    return max(int(lowest), 0), min(int(highest), ENDLESS)


@njit
def log_noise_weights(nodes: Nodes, i: int, lowest: int, logs: np.ndarray) -> float:
    """Write log-weights from the release, not normalised, and return the largest."""
    noise, released, scale = nodes.noise[i], nodes.released[i], nodes.scale[i]
    if noise == TABLE:
        table = int(released)
        begin = nodes.table_starts[table] + lowest - nodes.table_lowest[table]
        copy_into(logs, 0, nodes.tables[begin : begin + logs.size])
        return logs.max()
    if noise in (DISCRETE_GAUSSIAN, GAUSSIAN):
        for j in range(logs.size):
            error = (released - lowest - j) / scale
            logs[j] = -0.5 * error * error
    elif noise == EXACT:
        for j in range(logs.size):
            logs[j] = 0.0 if released == lowest + j else -np.inf
    else:
        for j in range(logs.size):
            logs[j] = -abs(released - lowest - j) / scale
    return logs.max()


@njit
def log_prior(nodes: Nodes, i: int, count: int) -> float:
    """Log-probability of a count without children, except for tabulated priors; 0 if flat."""
    prior, first, second = nodes.prior[i], nodes.first[i], nodes.second[i]
    if prior == POISSON:
        if first == 0:
            return 0.0 if count == 0 else -np.inf
        return count * math.log(first) - first - math.lgamma(count + 1.0)
    if prior == NEGATIVE_BINOMIAL:  # by its size and its probability
        return (
            math.lgamma(count + first)
            - math.lgamma(first)
            - math.lgamma(count + 1.0)
            + first * math.log(second)
            + count * math.log1p(-second)
        )
    return 0.0


@njit
def log_priors(nodes: Nodes, i: int, lowest: int, logs: np.ndarray) -> None:
    """Write log-probabilities of a window of counts."""
    if nodes.prior[i] == OF_TABLE:
        table = int(nodes.first[i])
        begin = nodes.table_starts[table] + lowest - nodes.table_lowest[table]
        copy_into(logs, 0, nodes.tables[begin : begin + logs.size])
        return
    for j in range(logs.size):
        logs[j] = log_prior(nodes, i, lowest + j)


@njit
def prior_window(nodes: Nodes, i: int, drop: float) -> tuple[int, int]:
    """Return counts beyond which the prior's tail is less than exp(-drop)."""
    prior, first, second = nodes.prior[i], nodes.first[i], nodes.second[i]
    if prior == OF_TABLE:
        table = int(first)
        length = nodes.table_starts[table + 1] - nodes.table_starts[table]
        return nodes.table_lowest[table], nodes.table_lowest[table] + length - 1
    if prior == POISSON:
        # Bernstein's bound.
        reach = drop / 3 + math.sqrt((drop / 3) ** 2 + 2 * first * drop)
        return max(0, int(first - reach)), int(first + reach) + 1
    if prior == NEGATIVE_BINOMIAL:
        # Chernoff's bound at half of the largest tilt: E exp(tx) = (p / (1 - (1 - p) e^t))^r.
        tilt = -0.5 * math.log1p(-second)
        log_moment = first * (math.log(second) - math.log1p(-((1 - second) ** 0.5)))
        return 0, min(ENDLESS, int((log_moment + drop) / tilt) + 1)
    return 0, ENDLESS


@njit
def limit(nodes: Nodes, drop: float) -> int:
    """Write the largest counts that remain possible; return a node that has no limit, or -1.

    Counts aren't negative, so a part is at most its sum. If noise limits a sum, its parts may be
    larger by one: then the sum's message shows that it is cut.
    """
    for i in range(nodes.left.size - 1, -1, -1):
        _, own = noise_window(nodes, i, drop)
        of_parts = min(nodes.highest[i], own if nodes.noise[i] == EXACT else own + 1)
        nodes.highest[i] = highest = min(nodes.highest[i], own)
        for child in (nodes.left[i], nodes.right[i]):
            if child >= 0:
                nodes.highest[child] = min(nodes.highest[child], of_parts)
        if nodes.left[i] < 0:
            nodes.highest[i] = highest = min(highest, prior_window(nodes, i, drop)[1])
            if highest >= ENDLESS:
                return i
    return -1
