"""What is learnt in tuning: the t distribution's location and scale, and how many moves pay."""

import numpy as np

from pymc_dapper.interweaving.kernels.moves import Fit

MAX_MOVES = 8
"""Moves per iteration in tuning, and at most afterwards."""

DEFAULT_MOVES = 4
"""Moves per iteration where tuning was too short to tell."""

MIN_MEASURED = 20
"""Iterations it takes to tell."""

FIRST_FIT = 50
"""Iterations before the first fit; the following ones come after twice as many each time."""

# Costs are counted, not timed, so that the same seed gives the same draws. The unit is what one
# record costs in one evaluation of the moves' log-density, some 10 ns; per record and, what a call
# costs in any case, per call.
EVALUATION = np.array([1.0, 50.0])
"""An evaluation of the log-density: one pass over the records."""

SET_UP = np.array([4.0, 1_000.0])
"""To make any move at all: the noise, the check that records come back from it, new records."""

REST_OF_ITERATION = np.array([20.0, 6_000.0])
"""The other steps: a sweep that draws and decides on each record, and the parameters' own."""


def unfitted(start: np.ndarray) -> Fit:
    """Return what to begin with, before anything is known."""
    return Fit(start.copy(), np.eye(len(start)))


def fit_draws(draws: np.ndarray) -> Fit:
    """Fit location and scale to more than one draw of the parameters, shape (n, d).

    They are the draws' mean, and their covariance drawn towards independence where n is small.
    """
    n, dim = draws.shape
    covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    variances = np.diag(covariance).copy()
    variances[variances <= 0] = 1.0
    weight = n / (n + dim + 5)
    shrunk = weight * covariance + np.diag((1 - weight) * variances)
    scales = np.sqrt(variances)
    return Fit(
        draws.mean(axis=0), scales[:, None] * np.linalg.cholesky(shrunk / np.outer(scales, scales))
    )


def best_number_of_moves(paths: np.ndarray, evaluations: np.ndarray, n_records: int) -> int:
    """Choose how many of k moves give the most effective draws for what they cost.

    Between the moves of one iteration and those of the next, other steps move the parameters. The
    autocorrelation of a whole iteration is about the product of what either leaves: it is exactly
    that if parameters and records are normal. With autocorrelation r, n draws are worth
    n (1 - r) / (1 + r).

    Parameters
    ----------
    paths : ndarray, shape (m, k + 1, d)
        The parameters before and after each of k moves, in m successive iterations.
    evaluations : ndarray, shape (m, k)
        How many evaluations each move took.
    """
    if len(paths) < MIN_MEASURED:
        return min(DEFAULT_MOVES, evaluations.shape[1])
    elsewhere = _correlation(paths[:-1, -1], paths[1:, 0])
    inside = _correlation(paths[:, :1], paths)
    left = (elsewhere * inside).max(axis=-1)
    per_evaluation, set_up, rest = _costs(n_records)
    moves = set_up + per_evaluation * np.cumsum(evaluations.mean(axis=0))
    costs = rest + np.concatenate([[0.0], moves])
    return int(np.argmax((1 - left) / (1 + left) / costs))


def moves_waste_time(paths: np.ndarray, evaluations: np.ndarray, n_records: int) -> bool:
    """Whether it is clear before the end of tuning that no move is worth its cost.

    That is where moves cost more than the rest of an iteration, and where the other steps leave an
    autocorrelation below 1/2, so that moves could give at most three times as many effective draws.
    Takes what :func:`best_number_of_moves` does.
    """
    per_evaluation, set_up, rest = _costs(n_records)
    moves = set_up + per_evaluation * evaluations.sum(axis=1).mean()
    return bool(moves > rest and _correlation(paths[:-1, -1], paths[1:, 0]).max() < 0.5)


def _costs(n_records: int) -> list[float]:
    """Cost of an evaluation, of moving at all, and of the rest of an iteration."""
    return [float(cost @ (n_records, 1.0)) for cost in (EVALUATION, SET_UP, REST_OF_ITERATION)]


def _correlation(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Over the first axis; 1 for what never moves, and no less than 0."""
    before, after = before - before.mean(axis=0), after - after.mean(axis=0)
    scale = np.sqrt((before**2).mean(axis=0) * (after**2).mean(axis=0))
    moves = scale > 0
    covariance = (before * after).mean(axis=0)
    return np.clip(np.where(moves, covariance / np.where(moves, scale, 1.0), 1.0), 0.0, 1.0)
