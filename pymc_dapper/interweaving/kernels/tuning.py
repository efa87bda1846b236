"""Tuning: the fit of the t distribution and its skewness, and the number of moves that pay."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from pymc_dapper.interweaving.kernels.moves import Fit, skewed
from pymc_dapper.kernels.tuning import best, correlation, cost_of_the_rest, worth_of

MOVES_IN_TUNING = 16
"""Most moves of each kind in an iteration."""

DEFAULT_MOVES = 4
"""Moves per iteration if tuning was too short to choose, and at least in tuning."""

LONGEST, EVALUATIONS = 50.0, 6.0
"""In tuning, moves of a kind take at most ``LONGEST`` times as long as the other steps, if each
takes so many evaluations."""

MIN_MEASURED = 40
"""Iterations needed to choose, to ask, or to fit."""

LEVELS = np.arange(1, 64) / 64
"""Levels of the quantiles to which the skewness is fitted."""

SKEWNESSES = np.linspace(-1.0, 1.0, 41)
"""Values of the skewness that are tried. Beyond these, hardly anything is left of one tail."""

SKEWED_QUANTILES = skewed.py_func(
    np.array([NormalDist().inv_cdf(level) for level in LEVELS]), SKEWNESSES[:, None]
)
CENTRED_QUANTILES = SKEWED_QUANTILES - SKEWED_QUANTILES.mean(axis=1, keepdims=True)

# Costs are counted, not timed, so that the same seed gives the same draws: in nanoseconds of the
# machine on which `benchmarks/move_costs.py` was run last.
EVALUATION = 150.0
"""Fixed cost of an evaluation of any log-density."""

SET_UP, SET_UP_OF_ENTRY = 8_000.0, 0.7
"""Fixed cost of making any moves, and of each entry of the records: variates, and arrays passed
on."""

PASSES = 10.0
"""The other steps of an iteration take about as long as this number of evaluations."""


class Costs(NamedTuple):
    """Costs of moves."""

    evaluation: float
    """Cost of an evaluation of their log-density."""
    set_up: float
    """Fixed cost of making any moves."""
    rest: float
    """Cost of the other steps of an iteration."""


def counted(
    evaluation: float, set_up: float, by_others: float, n_entries: int, n_parameters: int
) -> Costs:
    """Add further costs to those of the graphs for an evaluation and for the set-up.

    ``by_others`` is the cost of an evaluation by other steps. ``n_entries`` are the entries of all
    records that move.
    """
    return Costs(
        EVALUATION + evaluation,
        SET_UP + SET_UP_OF_ENTRY * n_entries + set_up,
        cost_of_the_rest(n_entries, n_parameters) + PASSES * by_others,
    )


def moves_in_tuning(costs: Costs) -> int:
    """Return how many moves an iteration of tuning makes: fewer if they would take very long."""
    most = LONGEST * costs.rest / (EVALUATIONS * costs.evaluation)
    return int(np.clip(most, DEFAULT_MOVES, MOVES_IN_TUNING))


def unfitted(start: np.ndarray) -> Fit:
    """Return the start values, before anything is known."""
    dim = len(start)
    return Fit(start.copy(), np.ones(dim), np.zeros(dim), np.eye(dim))


def beside(fit: Fit, start: np.ndarray, n: int) -> Fit:
    """Extend a fit by the mean and Cholesky factor of n rows.

    They are taken as independent of the parameters, with a standard deviation of 1 / sqrt(n).
    ``start`` is the present value of all.
    """
    known, both = len(fit.location), unfitted(start)
    both.scale[:] /= np.sqrt(n)
    for old, new in zip(fit[:3], both[:3], strict=True):
        new[:known] = old
    both.factor[:known, :known] = fit.factor
    return both


def fit_draws(draws: np.ndarray) -> Fit:
    """Fit to more than one draw of the parameters, shape (n, d).

    First each parameter separately (:func:`_fit_skewness`). The scale matrix is then the mean
    square of the symmetric values, shrunk towards independence if n is small.
    """
    n, dim = draws.shape
    location, scale, skewness = _fit_skewness(draws)
    symmetric = skewed.py_func((draws - location) / scale, -skewness)
    squares = symmetric.T @ symmetric / (n - 1)
    sizes = np.sqrt(np.diag(squares))
    sizes[sizes <= 0] = 1.0
    weight = n / (n + dim + 5)
    shrunk = weight * squares / np.outer(sizes, sizes) + (1 - weight) * np.eye(dim)
    shrunk[np.diag_indices(dim)] = 1.0  # also for coordinates that never moved
    return Fit(location, scale, skewness, sizes[:, None] * np.linalg.cholesky(shrunk))


def _fit_skewness(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit location, scale and skewness of each parameter separately, from draws of shape (n, d).

    Quantiles of skewed values are linear in location and scale. So for each of a few values of the
    skewness a line is fitted to the quantiles, and the straightest one is chosen.
    """
    found = np.quantile(draws, LEVELS, axis=0).T
    centred = found - found.mean(axis=1, keepdims=True)
    straight = centred @ CENTRED_QUANTILES.T / np.linalg.norm(CENTRED_QUANTILES, axis=1)
    best = np.argmax(straight, axis=1)
    fitted = CENTRED_QUANTILES[best]
    scale = (centred * fitted).sum(axis=1) / (fitted**2).sum(axis=1)
    still = scale <= 0
    location = found.mean(axis=1) - scale * SKEWED_QUANTILES[best].mean(axis=1)
    location, scale = np.where(still, draws.mean(axis=0), location), np.where(still, 1.0, scale)
    return location, scale, np.where(still, 0.0, SKEWNESSES[best])


def best_numbers_of_moves(
    paths: Sequence[np.ndarray], evaluations: Sequence[np.ndarray], costs: Sequence[Costs]
) -> tuple[list[int], float]:
    """Choose the number of moves of each kind (:func:`pymc_dapper.kernels.tuning.best`).

    Between the moves of two iterations, other steps move the parameters. The autocorrelation of an
    iteration is about the product of those of all steps; exactly so if parameters and records are
    normal.

    Parameters
    ----------
    paths : sequence of ndarray, each of shape (m, k + 1, d)
        Values before and after each of a kind's k moves, in m successive iterations. The parameters
        come first; the first kind moves nothing else.
    evaluations : sequence of ndarray, each of shape (m, k)
        How many evaluations each move took.
    costs : sequence of Costs
        Of each kind. The rest of an iteration is that of the first.

    Returns
    -------
    numbers : list of int
        Moves of each kind.
    slower : float
        How many times as many effective draws an iteration with all moves is worth: 1 or more.
    """
    n, dim = len(paths[0]), paths[0].shape[-1]
    if n < MIN_MEASURED:
        return [min(DEFAULT_MOVES, made.shape[1]) for made in evaluations], 1.0
    left = correlation(paths[-1][:-1, -1, :dim], paths[0][1:, 0])
    taken = np.array(costs[0].rest)
    for path, made, cost in zip(paths, evaluations, costs, strict=True):
        left = left[..., None, :] * _within(path[..., :dim])
        moves = cost.set_up + cost.evaluation * np.cumsum(made.mean(axis=0))
        taken = taken[..., None] + np.concatenate([[0.0], moves])
    chosen, worth = best(left, taken, n), worth_of(left, n)
    return [*chosen], max(1.0, float(worth.flat[-1] / worth[chosen]))


def is_doubling(done: int, first: int) -> bool:
    """Whether ``done`` is ``first`` times a power of 2."""
    times, rest = divmod(done, first)
    return rest == 0 and times > 0 and times & (times - 1) == 0


def _within(path: np.ndarray) -> np.ndarray:
    """Autocorrelations after 0, 1, ..., k moves, shape (k + 1, d), from all pairs so far apart."""
    n = path.shape[1]
    pairs = ((path[:, : n - k], path[:, k:]) for k in range(n))
    return np.array([correlation(np.concatenate(a), np.concatenate(b)) for a, b in pairs])
