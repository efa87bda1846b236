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

    The third value is the log-density of the release, with x marginalised.
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


def log_density_of_noisy_clipped_sum(released, log_noise, n, mu, sigma, bounds, cells=200):
    """Log-density of a noisy sum of n clipped normals, for each pair of mu and sigma.

    A clipped normal has a point mass at either bound and a density between them. Each of the
    `cells` between the bounds has its mass in its middle, an error of order 1 / cells^2; the law
    of the sum comes from a discrete Fourier transform, long enough for no sum to wrap around.

    Parameters
    ----------
    released : float
        The noisy sum.
    log_noise : callable
        Log-density of the noise, of an array.
    n : int
        Number of normals.
    mu, sigma : ndarray
        Their mean and standard deviation.
    bounds : tuple of float
        Where they are clipped.
    """
    mu, sigma = np.broadcast_arrays(mu, sigma)
    edges = np.linspace(*bounds, cells + 1)
    below = ndtr((edges - mu[..., None]) / sigma[..., None])
    # Positions are half cells apart: the lower bound, the cells' middles, the upper bound.
    masses = np.zeros((*mu.shape, 2 * cells + 1))
    masses[..., 0], masses[..., -1] = below[..., 0], 1 - below[..., -1]
    masses[..., 1::2] = np.diff(below)
    size = 2 * cells * n + 1
    law = np.fft.irfft(np.fft.rfft(masses, size) ** n, size)
    totals = np.linspace(n * bounds[0], n * bounds[1], size)
    return np.log(law @ np.exp(log_noise(released - totals)))
