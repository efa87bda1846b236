"""Random numbers of a sweep over counts, drawn beforehand.

To pass a generator to a kernel takes 8 us, more than a sweep over a single count. An array of
uniform numbers takes 1 us. How many a sweep needs isn't known beforehand: it counts them, and a
sweep that needed more than there are is made again, with the same numbers and more after them.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable


class Draws(NamedTuple):
    """Uniform numbers, and how many were asked for."""

    uniforms: np.ndarray
    """Float64: the numbers, at least 0 and less than 1."""
    used: np.ndarray
    """Int64, shape (1,): how many were asked for. If more than there are, what came of them is of
    no use."""


@njit
def uniform(draws: Draws) -> float:
    """Return the next number."""
    k = draws.used[0]
    draws.used[0] = k + 1
    return draws.uniforms[k % draws.uniforms.size]


@njit
def find_share(weights: np.ndarray, share: float) -> int:
    """Find the index at a share of all weights, laid end to end."""
    left = share * weights.sum()
    for k in range(weights.size - 1):
        left -= weights[k]
        if left < 0:
            return k
    return weights.size - 1


@register_jitable
def pick(draws: Any, low: int, high: int) -> int:
    """Draw an integer from ``low`` to ``high``, both included.

    For ranges that counts can have, a rounded uniform number does.
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
