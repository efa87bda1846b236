"""How many moves or sweeps an iteration makes: the one rule of all tuning.

An iteration makes the numbers of moves and of sweeps with the most effective draws of the slowest
parameter per cost. The second half of tuning measures how much of the parameters' autocorrelation
each kind leaves, and what an iteration leaves is the product. What can't be told from zero, by its
standard error, counts as that error, so nothing is done for chance. A cost is a number of
operations, counted and not timed, so a seed gives the same draws. A kind begins where something is
seen to take more than two iterations to forget.
"""

import numpy as np

from pymc_dapper.kernels.effective_draws import memory

SLOW = 2.0
"""More iterations than that are a long time to forget."""

# In nanoseconds of the machine on which `benchmarks/move_costs.py` was run last.
REST, REST_OF_PARAMETER, REST_OF_ENTRY = 150_000.0, 100_000.0, 100.0
"""The other steps: the sampling loop, each parameter's own step, and records, for each of their
entries. As if parameters had NUTS: where their step is quicker, a few moves too many cost little,
and where it is NUTS, a few too few cost much."""


def cost_of_the_rest(n_entries: int, n_parameters: int) -> float:
    """Count what the other steps of an iteration cost."""
    return REST + REST_OF_PARAMETER * n_parameters + REST_OF_ENTRY * n_entries


def best(left: np.ndarray, costs: np.ndarray, n: int) -> tuple[int, ...]:
    """Choose what has the most effective draws of the slowest parameter per cost.

    With autocorrelation r, n draws are worth n (1 - r) / (1 + r).

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
    slowest = np.clip(left, 1 / np.sqrt(n), 1 - 1e-6).max(axis=-1)
    chosen = np.argmax((1 - slowest) / (1 + slowest) / costs)
    return tuple(int(k) for k in np.unravel_index(chosen, slowest.shape))


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
