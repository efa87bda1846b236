"""A prior by which cells share strength: gamma-Poisson, of unknown mean and concentration.

Counts are negative binomial: Poisson, with rates from a gamma law of mean mu and shape alpha. Given
their total they are Dirichlet-multinomial with concentration alpha, whatever mu is. The relative
spread of rates, 1 / sqrt(alpha), has a half-Cauchy prior of scale 1 (Gelman 2006), and log mu is
flat from 0.1 to 1e12.

Both are integrated out on a grid whose steps are standard deviations: the trapezoidal rule is
nearly exact there, as their density falls off like a normal one. Where it doesn't, as of counts
near 0, the grid goes over all that the limits leave.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from pymc_dapper.answers.windows import Tables

LOWEST, HIGHEST = np.log(0.1), np.log(1e12)
"""Limits of the logarithm of the mean."""
LIMITS = (-12.0, 23.0)
"""Limits of the logarithm of the concentration: the prior has less than 0.3 % below, 1e-5 above."""
STEP = 0.75
"""Step of the grid, in standard deviations."""
DROP = 14.0
"""The grid ends where the log-density is that much below the largest."""
MATTERS = 8.0
"""What is that much below the largest, or more, may be cut off."""
COARSE, FINE = 1.0, 0.25
"""Steps between the limits, where the density isn't like a normal one."""
MOST_STEPS = 40
"""Steps to either side of the most likely point, at most."""


class Grid(NamedTuple):
    """Concentrations and means with their posterior weights."""

    alpha: np.ndarray
    mu: np.ndarray
    weights: np.ndarray

    def likeliest(self) -> "Grid":
        """Return the likeliest point alone."""
        best = [int(self.weights.argmax())]
        return Grid(self.alpha[best], self.mu[best], np.ones(1))


def log_prior(log_alpha: float, log_mu: float) -> float:
    """Log-density of both logarithms, not normalised."""
    inside = LOWEST <= log_mu <= HIGHEST and LIMITS[0] <= log_alpha <= LIMITS[1]
    return 0.5 * log_alpha - np.logaddexp(0.0, log_alpha) if inside else -np.inf


def log_pmf(counts: np.ndarray, alpha: float, mu: float) -> np.ndarray:
    """Log-probability of counts, negative binomial."""
    # The quotient of gamma functions keeps its digits where alpha is large beside the counts.
    log_p, log_q = -np.log1p(mu / alpha), -np.log1p(alpha / mu)
    return _log_rising(alpha, counts) - gammaln(counts + 1.0) + alpha * log_p + counts * log_q


def _log_rising(alpha: float, counts: np.ndarray) -> np.ndarray:
    """Return log of gamma(alpha + count) / gamma(alpha)."""
    if alpha < 1e6:
        return gammaln(alpha + counts) - gammaln(alpha)
    # Stirling's series, of differences; its first term that is left out is below 1e-18.
    ratio = np.log1p(counts / alpha)
    return (alpha + counts - 0.5) * ratio + counts * (np.log(alpha) - 1.0)


def cells_evidence(tables: Tables, *, most: int | None = None) -> Callable[[float, float], float]:
    """Return the log-probability of what was released of cells, as a function of both parameters.

    Parameters
    ----------
    tables : Tables
        What was released of each cell, with each count in a piece of its own.
    most : int, optional
        So many cells are looked at, at most.
    """
    which = tables.which
    if most is not None and which.size > most:
        which = which[np.linspace(0, which.size - 1, most).astype(np.int64)]
    rows, times = np.unique(which, return_counts=True)
    counts, weights = tables.nodes[rows, :-1], tables.weights()[rows]
    first, last = int(counts.min()), int(counts.max())
    few = last - first < counts.size

    def log_evidence(alpha: float, mu: float) -> float:
        if few:
            p = np.exp(log_pmf(np.arange(first, last + 1), alpha, mu))[counts - first]
        else:
            p = np.exp(log_pmf(counts, alpha, mu))
        with np.errstate(divide="ignore"):
            return float(times @ np.log(np.einsum("ij,ij->i", weights, p)))

    return log_evidence


def grid_of(
    log_evidence: Callable[[float, float], float],
    start: tuple[float, float],
    *,
    free_mean: bool = True,
) -> Grid:
    """Integrate over concentration and mean.

    Parameters
    ----------
    log_evidence : callable
        ``log_evidence(alpha, mu)``: log-probability of all that was released.
    start : tuple of float
        Logarithms of both, where to begin to look.
    free_mean : bool
        Whether the mean matters; if not it stays where it is.
    """
    from scipy.optimize import minimize

    n = 2 if free_mean else 1
    fixed = np.asarray(start, dtype=float)

    def log_density(point: np.ndarray) -> float:
        both = np.concatenate([point, fixed[n:]])
        prior = log_prior(*both)
        return prior if prior == -np.inf else prior + log_evidence(*np.exp(both))

    found = minimize(
        lambda x: min(-log_density(x), 1e300),
        fixed[:n],
        method="Nelder-Mead",
        options={"xatol": 0.02, "fatol": 0.01, "initial_simplex": _simplex(fixed[:n])},
    )
    mode, top = found.x, -found.fun
    axes = _axes(log_density, mode, top)
    ranges = [
        np.arange(-_steps(log_density, mode, -axis, top), _steps(log_density, mode, axis, top) + 1)
        for axis in axes
    ]
    steps = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, n)
    points = mode + steps @ axes
    logs = np.array([log_density(point) for point in points])
    if _is_cut_off(logs.reshape([len(each) for each in ranges]), top):
        points, logs = _over_all(log_density, n)
    weights = np.exp(logs - logs.max())
    kept = weights > np.exp(-DROP)
    both = np.concatenate([points, np.broadcast_to(fixed[n:], (len(points), 2 - n))], axis=1)
    alpha, mu = np.exp(both[kept]).T
    return Grid(alpha, mu, weights[kept] / weights[kept].sum())


def _is_cut_off(logs: np.ndarray, top: float) -> bool:
    """Say whether what matters goes on beyond a grid, or up to a limit of a parameter."""
    matters = np.pad(logs > max(top, float(logs.max())) - MATTERS, 1)
    beyond = np.pad(logs == -np.inf, 1, constant_values=True)
    near = [np.roll(beyond, shift, axis) for axis in range(logs.ndim) for shift in (-1, 1)]
    return bool(np.any(matters & np.any(near, axis=0)))


def _over_all(log_density: Callable[[np.ndarray], float], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and log-weights between the limits: finely where a coarse grid tells to."""
    limits = [LIMITS, (LOWEST, HIGHEST)][:n]
    for lengths in (COARSE, FINE):
        axes = [np.linspace(*ends, int((ends[1] - ends[0]) / lengths) + 2) for ends in limits]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, n)
        logs = np.array([log_density(point) for point in points])
        kept = points[logs > logs.max() - DROP]
        # Ends of the trapezoidal rule weigh a half.
        at_ends = sum((points[:, k] == end) for k in range(n) for end in axes[k][[0, -1]])
        logs = logs - np.log(2.0) * at_ends
        limits = [
            (max(low, found.min() - COARSE), min(high, found.max() + COARSE))
            for (low, high), found in zip(limits, kept.T, strict=True)
        ]
    return points, logs


def _simplex(start: np.ndarray) -> np.ndarray:
    return np.concatenate([start[None], start + np.eye(start.size)])


def _axes(log_density: Callable[[np.ndarray], float], mode: np.ndarray, top: float) -> np.ndarray:
    """Return steps along which the log-density bends alike: rows, in standard deviations."""
    n, bends = mode.size, np.eye(mode.size)
    h = np.full(n, 0.05)
    for _ in range(3):
        shifts = np.diag(h)
        for i in range(n):
            up, down = (log_density(mode + sign * shifts[i]) for sign in (1, -1))
            bends[i, i] = (2 * top - up - down) / h[i] ** 2
        for i in range(n):
            for j in range(i):
                with np.errstate(invalid="ignore"):
                    mixed = sum(
                        a * b * log_density(mode + a * shifts[i] + b * shifts[j])
                        for a in (1, -1)
                        for b in (1, -1)
                    )
                bends[i, j] = bends[j, i] = -mixed / (4 * h[i] * h[j])
        diagonal = np.clip(np.nan_to_num(np.diag(bends), nan=1.0, posinf=1e8), 0.05, 1e8)
        h = 0.7 / np.sqrt(diagonal)  # looked at again, at a distance that matters
    off = np.nan_to_num(bends, nan=0.0, posinf=0.0, neginf=0.0)
    limit = 0.95 * np.sqrt(np.outer(diagonal, diagonal))
    bends = np.clip(off, -limit, limit)
    np.fill_diagonal(bends, diagonal)
    values, vectors = np.linalg.eigh(bends)
    return STEP * (vectors / np.sqrt(np.maximum(values, 0.02))).T


def _steps(
    log_density: Callable[[np.ndarray], float], mode: np.ndarray, axis: np.ndarray, top: float
) -> int:
    """Return how many steps to take until the log-density has fallen."""
    for k in range(1, MOST_STEPS):
        if log_density(mode + k * axis) < top - DROP:
            return k
    return MOST_STEPS
