"""Exact posteriors by quadrature and by algebra, for judging draws; they know nothing of PyMC.

Each answer has `mean`, `sd` and `quantile(q)`, as `tests.monte_carlo.z_scores` wants it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import multivariate_normal


class Tabulated:
    """A distribution given by its log-density on an even grid that holds all of its mass."""

    def __init__(self, grid, log_density):
        step = grid[1] - grid[0]
        np.testing.assert_allclose(np.diff(grid), step, rtol=1e-6)
        density = np.exp(log_density - np.max(log_density))
        # Where the tails are not cut, the trapezoidal rule of a smooth density is all but exact.
        weights = density / density.sum()
        assert max(weights[0], weights[-1]) * len(grid) < 1e-4, "the grid cuts off a tail"
        self.mean = float(weights @ grid)
        self.sd = float(np.sqrt(weights @ (grid - self.mean) ** 2))
        self._grid = grid
        self._cdf = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
        self._cdf /= self._cdf[-1]

    def quantile(self, q):
        return float(np.interp(q, self._cdf, self._grid))


@dataclass(frozen=True)
class Normal:
    """A normal distribution."""

    mean: float
    sd: float

    def quantile(self, q):
        return float(self.mean + self.sd * ndtri(q))


def marginals(grids, log_density):
    """Marginal distribution of each axis of a log-density on a product of even grids."""
    axes = range(len(grids))
    return [
        Tabulated(grid, logsumexp(log_density, axis=tuple(a for a in axes if a != axis)))
        for axis, grid in enumerate(grids)
    ]


def linear_gaussian(prior_mean, prior_cov, design, noise_cov, released):
    """Posterior mean and covariance of x ~ N(prior) given released = design x + N(0, noise_cov).

    The third value is the log-density of what was released, x integrated out.
    """
    predicted = design @ prior_mean
    released_cov = design @ prior_cov @ design.T + noise_cov
    gain = np.linalg.solve(released_cov, design @ prior_cov).T
    mean = prior_mean + gain @ (released - predicted)
    cov = prior_cov - gain @ design @ prior_cov
    return mean, cov, float(multivariate_normal(predicted, released_cov).logpdf(released))


def normals(mean, cov):
    """Marginal distributions of a multivariate normal."""
    return [Normal(float(m), float(s)) for m, s in zip(mean, np.sqrt(np.diag(cov)), strict=True)]


def log_density_of_noisy_clipped_sum(released, log_noise, n, mu, sigma, bounds, cells=2000):
    """Log-density of a noisy sum of n clipped normals, for each pair of mu and sigma.

    A clipped normal has a point mass at either bound and a density between them. Each of the
    `cells` between the bounds has its mass in its middle, an error of order 1 / cells^2, and each
    bound has its own; sums are taken by a discrete Fourier transform.

    Parameters
    ----------
    released : float
        The noisy sum.
    log_noise : callable
        Log-density of the noise, of an array.
    n : int
        Number of normals.
    mu, sigma : ndarray, of one shape
        Their mean and standard deviation.
    bounds : tuple of float
        Where they are clipped.
    """
    low, high = bounds
    width = (high - low) / cells
    edges = np.linspace(low, high, cells + 1)
    # Atoms at the bounds, cells in the middle: positions low + (0, 1, 3, 5, ..., 2 cells) width/2.
    size = 2 * cells * n + 1
    totals = n * low + np.arange(size) * width / 2
    noise = np.exp(log_noise(released - totals))
    transformed = np.fft.rfft(noise[::-1], 2 * size)
    result = np.empty(mu.shape)
    for k in np.ndindex(mu.shape):
        below = ndtr((edges - mu[k]) / sigma[k])
        masses = np.zeros(2 * cells + 1)
        masses[0], masses[-1] = below[0], 1 - below[-1]
        masses[1::2] = np.diff(below)
        law = np.fft.rfft(masses, 2 * size) ** n
        # The convolution with the reversed noise, at its last place, is their inner product.
        result[k] = np.fft.irfft(law * transformed, 2 * size)[size - 1]
    return np.log(result)
