"""The probability, or density, that independent noise keeps equalities A e = 0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from pymc_dapper.reference._linear_invariants import Elimination, independent_columns

FloatArray = NDArray[np.float64]

_MAX_GRID = 2**22
_TINY = 1e-16


def log_normaliser(noise: Any, elimination: Elimination) -> float:
    """Log of the total of the product of the cells' densities where A e = 0.

    For noise of whole numbers that is P(A e = 0). For continuous noise it is the integral over the
    free cells: the density of A e at 0 divided by that of the solved cells' change of variables.
    Raises ValueError if the noise is continuous and neither normal nor, with one equality, Laplace;
    or if there are too many equalities for the grid.
    """
    rows = _independent_rows(elimination)
    if len(rows) == 0:
        return 0.0
    if elimination.whole:
        return float(np.log(_probability_of_zero(noise, rows)))
    volume = abs(float(np.linalg.det(rows[:, elimination.solved])))
    return float(np.log(_density_at_zero(noise, rows) * volume))


def _independent_rows(elimination: Elimination) -> FloatArray:
    """Return linearly independent rows of A, as many as its rank."""
    chosen = independent_columns(elimination.matrix.T, whole=elimination.whole)
    return np.asarray(elimination.matrix[chosen])


def _probability_of_zero(noise: Any, rows: FloatArray) -> float:
    """P(A e = 0) of whole noise, by the characteristic function of A e.

    The mean over N equidistant points in each direction is the probability that A e is 0 modulo N.
    N is doubled until nothing is added any more.
    """
    grid, before = 16, np.inf
    while grid ** len(rows) <= _MAX_GRID:
        now = _probability_modulo(noise, rows, grid)
        if abs(before - now) <= 1e-13 * now:
            return now
        grid, before = 2 * grid, now
    raise ValueError(
        f"the normaliser under {len(rows)} equalities takes too fine a grid. It is a constant: use "
        "normalised=False, which does as well for inference."
    )


def _probability_modulo(noise: Any, rows: FloatArray, grid: int) -> float:
    pmfs = _wrapped_pmfs(noise, rows.shape[1], grid)
    # The discrete Fourier transform of a pmf modulo N is the characteristic function on the grid.
    transforms = np.fft.fft(pmfs, axis=1)
    frequencies = np.indices((grid,) * len(rows)).reshape(len(rows), -1)
    product = np.ones(frequencies.shape[1], dtype=complex)
    for column, transform in zip(rows.T.astype(np.int64), transforms, strict=True):
        product *= transform[(column @ frequencies) % grid]
    return float(product.real.mean())


def _wrapped_pmfs(noise: Any, cells: int, grid: int) -> FloatArray:
    """Each cell's probabilities modulo N, shape (cells, N)."""
    reach = grid
    while True:
        support = np.arange(-reach, reach)
        pmf = np.broadcast_to(noise.pmf(support[:, None] + np.zeros(cells)), (2 * reach, cells))
        if pmf[[0, -1]].max() < _TINY * pmf.max() or reach > 2**16:
            return np.asarray(pmf.reshape(-1, grid, cells).sum(axis=0).T)
        reach *= 2


def _density_at_zero(noise: Any, rows: FloatArray) -> float:
    """Density of A e at 0 of continuous noise."""
    name = getattr(getattr(noise, "dist", noise), "name", "")
    sd = np.broadcast_to(noise.std(), rows.shape[1])
    mean = np.broadcast_to(noise.mean(), rows.shape[1])
    if name == "norm":
        return float(
            multivariate_normal(rows @ mean, (rows * sd**2) @ rows.T).pdf(np.zeros(len(rows)))
        )
    if name == "laplace" and len(rows) == 1 and not np.any(mean):
        scales = np.abs(rows[0]) * sd / np.sqrt(2)
        scales = scales[scales > 0]
        if scales.size == 1:
            return float(0.5 / scales[0])
        value, _ = quad(
            lambda t: np.prod(1 / (1 + (scales * t) ** 2)), 0, np.inf, epsabs=0, epsrel=1e-12
        )
        return float(value / np.pi)
    raise ValueError(
        "the normaliser is known here for whole noise, for normal noise, and for Laplace "
        "noise under one equality. It is a constant: use normalised=False, which does as well for "
        "inference."
    )
