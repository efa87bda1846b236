"""How many moves or sweeps an iteration makes: the one rule of all tuning.

The numbers of moves and sweeps are those with the most effective draws of the slowest parameter per
cost. Of numbers that are nearly as good (90 %), those with nearly the most effective draws per
iteration are taken: what is measured hardly tells them apart, and users see iterations. The second
half of tuning measures how much autocorrelation of the parameters each kind of move leaves. The
autocorrelation of an iteration is the product over kinds. Autocorrelations below their standard
error are set to it, so that chance doesn't decide. A cost is a number of operations, counted and
not timed, so a seed gives the same draws. Moves of a kind begin only if an autocorrelation time of
more than two iterations is measured.
"""

import numpy as np

from pymc_dapper.kernels.effective_draws import memory

SLOW = 2.0
"""A longer autocorrelation time, in iterations, counts as a long memory."""

NEARLY = 0.9
"""Choices of at least this share of the best one's effective draws per cost are nearly as good. Of
these, the best with at least this share of the most effective draws per iteration is taken."""

# In nanoseconds of the machine on which `benchmarks/move_costs.py` was run last.
REST, REST_OF_PARAMETER, REST_OF_ENTRY = 150_000.0, 100_000.0, 100.0
"""Costs of the other steps: the sampling loop, the step of each parameter, and the sweep for each
entry of the records. Parameters are taken to have NUTS. If their step is quicker, a few moves too
many cost little; if it is NUTS, a few moves too few would cost much."""


def cost_of_the_rest(n_entries: int, n_parameters: int) -> float:
    """Count what the other steps of an iteration cost."""
    return REST + REST_OF_PARAMETER * n_parameters + REST_OF_ENTRY * n_entries


def best(left: np.ndarray, costs: np.ndarray, n: int) -> tuple[int, ...]:
    """Choose what has the most effective draws of the slowest parameter per cost, or nearly so.

    Parameters
    ----------
    left : ndarray, shape (..., d)
        The autocorrelation that each choice leaves of each parameter.
    costs : ndarray, shape (...)
        Of an iteration.
    n : int
        Iterations by which the autocorrelations were estimated.

    Returns
    -------
    tuple of int
        The indices of the best.
    """
    worth = worth_of(left, n)
    per_cost = worth / costs
    good = per_cost >= NEARLY * per_cost.max()
    enough = worth >= NEARLY * worth[good].max()
    chosen = np.argmax(np.where(good & enough, per_cost, 0.0))
    return tuple(int(k) for k in np.unravel_index(chosen, worth.shape))


def worth_of(left: np.ndarray, n: int) -> np.ndarray:
    """Effective draws of the slowest parameter per iteration, shape (...); see :func:`best`.

    With autocorrelation r, n draws are worth n (1 - r) / (1 + r).
    """
    slowest = np.clip(left, 1 / np.sqrt(n), 1 - 1e-6).max(axis=-1)
    return (1 - slowest) / (1 + slowest)


def forgets_slowly(seen: np.ndarray) -> bool:
    """Whether n iterations, shape (n, d), had few effective draws of a column."""
    return memory(seen) > SLOW


def correlation(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return correlations over the first axis; 1 for constant columns, and at least 0."""
    before, after = before - before.mean(axis=0), after - after.mean(axis=0)
    scale = np.sqrt((before**2).mean(axis=0) * (after**2).mean(axis=0))
    moves = scale > 0
    covariance = (before * after).mean(axis=0)
    return np.clip(np.where(moves, covariance / np.where(moves, scale, 1.0), 1.0), 0.0, 1.0)
