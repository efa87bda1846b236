"""Random numbers of a sweep over counts, drawn beforehand.

Kernels take arrays of random numbers, so that tests can enumerate them. How many numbers a sweep
needs isn't known beforehand. So the sweep counts them; if there were too few, it is repeated with
the same numbers and more after them.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable


class Draws(NamedTuple):
    """Uniform numbers, and how many were used."""

    uniforms: np.ndarray
    """Float64: the numbers, at least 0 and less than 1."""
    used: np.ndarray
    """Int64, shape (1,): how many were used. If there were fewer, the result is void."""


@njit
def uniform(draws: Draws) -> float:
    """Return the next number."""
    k = draws.used[0]
    draws.used[0] = k + 1
    return draws.uniforms[k % draws.uniforms.size]


@njit
def find_share(weights: np.ndarray, share: float) -> int:
    """Return the index at which cumulative weights reach a share of their total."""
    left = share * weights.sum()
    for k in range(weights.size - 1):
        left -= weights[k]
        if left < 0:
            return k
    return weights.size - 1


@register_jitable
def pick(draws: Any, low: int, high: int) -> int:
    """Draw an integer from ``low`` to ``high``, both included.

    A rounded uniform number is precise enough for ranges of counts.
    """
    return low + int(uniform(draws) * (high - low + 1))


@register_jitable
def exponential(draws: Any) -> float:
    """Draw from the standard exponential distribution."""
    return -float(np.log1p(-uniform(draws)))


@register_jitable
def choose(draws: Any, weights: np.ndarray) -> int:
    """Draw an index with a probability in proportion to its weight."""
    return find_share(weights, uniform(draws))
