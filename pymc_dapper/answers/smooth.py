"""The smooth prior: gamma-Poisson with unknown mean and concentration; cells share strength.

Counts are negative binomial: Poisson, with rates from a gamma law of mean mu and shape alpha. Given
their total they are Dirichlet-multinomial with concentration alpha, whatever mu is. The relative
spread of rates, 1 / sqrt(alpha), has a half-Cauchy prior of scale 1 (Gelman 2006), and log mu is
flat from 0.1 to 1e12.

Both parameters are marginalised by the trapezoidal rule, on a grid of equal steps. Only points
next to others that matter are evaluated. Steps are halved until every second point alone would
almost have been enough. The rule's error is then far smaller, since it falls faster than any power
of the step.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

LIMITS = np.array([(-12.0, 23.0), (np.log(0.1), np.log(1e12))])
"""Limits of the logarithms of concentration and mean. The prior has less than 0.3 % below the
concentration's lower limit, and 1e-5 above its upper one."""
DROP = 10.0
"""The grid ends where the log-density is this far below its maximum."""
ALIKE = 0.1
"""Largest difference between the shares of even and odd grid points."""

LogEvidence = Callable[[np.ndarray, np.ndarray], np.ndarray]
LogDensity = Callable[[np.ndarray], np.ndarray]


class Grid(NamedTuple):
    """Concentrations and means with their posterior weights."""

    alpha: np.ndarray
    mu: np.ndarray
    weights: np.ndarray


def log_prior(log_alpha: np.ndarray) -> np.ndarray:
    """Log-density of the logarithm of the concentration, not normalised."""
    return 0.5 * log_alpha - np.logaddexp(0.0, log_alpha)


def log_pmf(counts: np.ndarray, alpha: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Log-probability of counts, negative binomial."""
    # This form of the quotient of gamma functions keeps its digits if alpha is much larger than
    # counts.
    log_p, log_q = -np.log1p(mu / alpha), -np.log1p(alpha / mu)
    return _log_rising(alpha, counts) - gammaln(counts + 1.0) + alpha * log_p + counts * log_q


def _log_rising(alpha: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return log of gamma(alpha + count) / gamma(alpha)."""
    # Differences of Stirling's series; the first omitted term is below 1e-18.
    ratio = np.log1p(counts / alpha)
    series = (alpha + counts - 0.5) * ratio + counts * (np.log(alpha) - 1.0)
    return np.where(alpha < 1e6, gammaln(alpha + counts) - gammaln(alpha), series)


def grid_of(
    log_evidence: LogEvidence, start: tuple[float, float], *, free_mean: bool = True
) -> Grid:
    """Marginalise concentration and mean.

    Parameters
    ----------
    log_evidence : callable
        ``log_evidence(alpha, mu)``: log-probability of the release, for arrays of both parameters.
    start : tuple of float
        Logarithms of both parameters, where the search begins.
    free_mean : bool
        Whether the mean matters; otherwise it keeps its start value.
    """
    n = 2 if free_mean else 1
    fixed = np.asarray(start, dtype=float)

    def both(points: np.ndarray) -> np.ndarray:
        return np.concatenate([points, np.broadcast_to(fixed[n:], (len(points), 2 - n))], axis=1)

    def log_density(points: np.ndarray) -> np.ndarray:
        return log_prior(points[:, 0]) + log_evidence(*np.exp(both(points)).T)

    mode = _mode(log_density, fixed[:n])
    number = np.ceil(np.ptp(LIMITS[:n], axis=1) / _lengths(log_density, mode)).astype(int)
    while True:
        places, logs = _where_it_matters(log_density, mode, number)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        odd = weights @ (places % 2)
        uneven = np.abs(2 * odd - 1) > ALIKE
        if not uneven.any():
            break
        number[uneven] *= 2
    alpha, mu = np.exp(both(_points(places, number))).T
    return Grid(alpha, mu, weights)


def log_marginal(counts: np.ndarray, total: int | None) -> np.ndarray:
    """Return the log-probability of tables, with both parameters marginalised; not normalised.

    Parameters
    ----------
    counts : ndarray of int64, shape (cells, tables)
        The tables.
    total : int, optional
        Their total, if it is known.
    """
    each, at = np.unique(counts, return_inverse=True)
    at, k = at.reshape(counts.shape), len(counts)

    def log_joint(alpha: np.ndarray, mu: np.ndarray) -> np.ndarray:
        points = zip(alpha, mu, strict=True)
        logs = np.stack([log_pmf(each, *point)[at].sum(axis=0) for point in points])
        return (
            logs if total is None else logs - log_pmf(np.array(total), k * alpha, k * mu)[:, None]
        )

    def log_evidence(alpha: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return np.logaddexp.reduce(log_joint(alpha, mu), axis=1)

    mean = max(float(counts.mean()), 0.5)
    alpha, mu, _ = grid_of(log_evidence, (0.5, np.log(mean)), free_mean=total is None)
    logs = log_joint(alpha, mu) + log_prior(np.log(alpha))[:, None]
    return np.logaddexp.reduce(logs, axis=0)


def _mode(log_density: LogDensity, start: np.ndarray) -> np.ndarray:
    """Return the approximate maximum of the density."""
    from scipy.optimize import minimize

    limits = LIMITS[: start.size]
    start = np.clip(start, limits[:, 0] + 0.1, limits[:, 1] - 1.1)
    simplex = np.concatenate([start[None], start + np.eye(start.size)])
    options = {"xatol": 0.05, "fatol": 0.05, "initial_simplex": simplex}

    def depth(x: np.ndarray) -> float:
        return min(-float(log_density(x[None])[0]), 1e300)

    return minimize(depth, start, method="Nelder-Mead", bounds=limits, options=options).x


def _lengths(log_density: LogDensity, mode: np.ndarray) -> np.ndarray:
    """Return approximate standard deviations of the parameters, at most 1."""
    far = 4.0 ** np.arange(-6, 1)
    found = []
    for k, (low, high) in enumerate(LIMITS[: mode.size]):
        points = np.repeat(mode[None], 2 * far.size + 1, axis=0)
        points[:, k] = np.clip(mode[k] + np.concatenate([[0], far, -far]), low, high)
        logs = log_density(points)
        fallen = (logs[0] - logs[1:]).reshape(2, -1).max(axis=0)
        at = int(np.argmax(fallen > 0.25)) if (fallen > 0.25).any() else far.size - 1
        found.append(min(far[at] * np.sqrt(0.66 / max(fallen[at], 0.1)), 1.0))
    return np.array(found)


def _points(places: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return grid points, given their numbers along each axis."""
    low, high = LIMITS[: number.size].T
    return low + (high - low) * (places / number)


def _where_it_matters(
    log_density: LogDensity, mode: np.ndarray, number: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and log-weights of points, outwards from the mode until negligible."""
    low, high = LIMITS[: mode.size].T
    around = np.array(list(itertools.product((-1, 0, 1), repeat=mode.size)))
    found: dict[tuple[int, ...], float] = {}
    new = np.round((mode - low) / (high - low) * number).astype(int)[None]
    while len(new):
        logs = log_density(_points(new, number))
        # The trapezoidal rule gives the ends half weight.
        logs = logs - np.log(2.0) * np.sum((new == 0) | (new == number), axis=1)
        found |= zip(map(tuple, new.tolist()), logs.tolist(), strict=True)
        matter = new[logs > max(found.values()) - DROP]
        near = np.unique((matter[:, None] + around).reshape(-1, mode.size), axis=0)
        near = near[np.all((near >= 0) & (near <= number), axis=1)]
        new = np.array([each for each in near if tuple(each.tolist()) not in found], dtype=int)
    places, logs = np.array(list(found)), np.array(list(found.values()))
    kept = logs > logs.max() - DROP
    return places[kept], logs[kept]
