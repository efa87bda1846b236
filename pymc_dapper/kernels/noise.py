"""Standard normal noise for many records at once."""

from math import prod

import numpy as np

from pymc_dapper.backend.accelerate import fill_with_normals

FEWEST = 150
"""With fewer, the call takes longer than is gained."""


def standard_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw what ``rng.standard_normal(shape)`` does, up to three times as fast where that is much.

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
    fill_with_normals(rng, noise.reshape(-1))
    return noise
