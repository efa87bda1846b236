"""Exact posterior of a 2 by 2 table given randomised answers, by quadrature."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import xlogy


class RandomisedTable:
    """Cell probabilities p ~ Dirichlet(1, 1, 1, 1) given the counts of pairs of answers.

    Given p, a pair of answers falls in a cell with probability ``p @ channel``. The posterior
    density is a polynomial in p, so that quadrature finds its integrals to rounding.
    """

    def __init__(self, answers, keep, nodes=48, points=401):
        one = np.array([[keep, 1 - keep], [1 - keep, keep]])
        self._answers, self._channel = np.asarray(answers), np.kron(one, one)
        x, weights = np.polynomial.legendre.leggauss(nodes)
        v, w = np.meshgrid((1 + x) / 2, (1 + x) / 2, indexing="ij")
        # The other three cells share what is left of 1: v, (1 - v) w and (1 - v)(1 - w) of it.
        self._shares = np.stack([v, (1 - v) * w, (1 - v) * (1 - w)])
        self._weights = np.outer(weights, weights) * (1 - v)
        self._grid = np.linspace(0, 1, points)

    def cell(self, k):
        """Mean, sd, and quantiles at 5 % and 95 %, of the probability of cell k."""
        others = [j for j in range(4) if j != k]
        log_density = np.array([self._log_density(u, k, others) for u in self._grid])
        density = CubicSpline(self._grid, np.exp(log_density - log_density.max()))
        u, total = self._grid, density.integrate(0, 1)
        mean = CubicSpline(u, u * density(u)).integrate(0, 1) / total
        variance = CubicSpline(u, (u - mean) ** 2 * density(u)).integrate(0, 1) / total
        cdf = density.antiderivative()
        quantiles = [brentq(lambda q, p=p: cdf(q) / total - p, 0, 1) for p in (0.05, 0.95)]
        return (float(mean), float(np.sqrt(variance)), *quantiles)

    def _log_density(self, u, k, others):
        p = np.empty((4, *self._weights.shape))
        p[k], p[others] = u, (1 - u) * self._shares
        answered = np.tensordot(self._channel.T, p, axes=1)
        loglik = xlogy(self._answers[:, None, None], answered).sum(axis=0)
        top = loglik.max()
        with np.errstate(divide="ignore"):
            return top + np.log(((1 - u) ** 2 * self._weights * np.exp(loglik - top)).sum())
