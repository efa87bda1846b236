"""Standard normal noise for many records at once."""

from math import prod

import numpy as np
from numba import njit

FEWEST = 2_000
"""With fewer, handing the generator over takes longer (10 us) than is gained."""


def standard_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw what ``rng.standard_normal(shape)`` does, three times as fast where that is much.

    Parameters
    ----------
    rng : Generator
        Is advanced as NumPy advances it.
    shape : tuple of int
        Shape of the array.

    Returns
    -------
    ndarray of float64
        The draws.
    """
    if prod(shape) < FEWEST:
        return rng.standard_normal(shape)
    noise = np.empty(shape)
    _fill(rng, noise.reshape(-1))
    return noise


# Numba has the same algorithm, but chooses the sign without a branch: NumPy guesses it, and is
# wrong every other time.
@njit(cache=True)
def _fill(rng: np.random.Generator, noise: np.ndarray) -> None:
    for i in range(len(noise)):
        noise[i] = rng.standard_normal()
