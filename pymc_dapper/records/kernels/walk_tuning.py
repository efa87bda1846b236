"""Whether records walk instead of being drawn independently, how far, and how often.

Decisions use counts, not times, so that a seed gives the same draws everywhere.
"""

from collections.abc import Sequence
from math import exp, log

import numpy as np

from pymc_dapper.kernels.effective_draws import memory
from pymc_dapper.kernels.tuning import SLOW, best, correlation, cost_of_the_rest

FEWEST_SWEEPS = 100
"""With fewer draws in tuning, records don't walk."""

TARGET = 0.3
"""Target share of accepted walks. Records walk if fewer independent proposals are accepted:
otherwise independent proposals move as far, and anywhere in a record's conditional distribution."""

INDEPENDENT = 4
"""Each fourth iteration draws independently first, so that a record can change modes."""

MOST_SWEEPS = 64

SWEEP, SWEEP_OF_RECORD = 10_000.0, 150.0
"""Cost of a sweep, in nanoseconds."""


def few_are_accepted(accepted: Sequence[float]) -> bool:
    """Whether released values restrict the records, by the shares accepted so far."""
    late = accepted[len(accepted) // 2 :]
    return len(late) > 0 and sum(late) < TARGET * len(late)


def had_better_walk(accepted: Sequence[float], before: np.ndarray, after: np.ndarray) -> bool:
    """Whether released values restrict the records, and the sums have a long memory.

    Parameters
    ----------
    accepted : sequence of float
        Shares of accepted independent draws.
    before, after : ndarray, shape (n, k)
        What the factors depend on (mostly sums), before and after each of n sweeps.
    """
    return few_are_accepted(accepted) and memory_of_sweeps(before, after) > SLOW


def memory_of_sweeps(before: np.ndarray, after: np.ndarray) -> float:
    """Return the autocorrelation time of sweeps: of the slowest changing column, as an AR(1).

    Changes of records between sweeps don't matter: moves of parameters that also move records may
    not be made after tuning. Infinity if nothing changes.
    """
    changes = (np.ptp(before, axis=0) > 0) & (np.ptp(after, axis=0) > 0)
    if not changes.any():
        return np.inf
    left = correlation(before, after)[changes].max()
    return float((1 + left) / max(1 - left, 1e-9))


def next_reach(reach: float, accepted: float, n: int) -> float:
    """Adapt the reach of walks after n of them, by the accepted share (Robbins and Monro, 1951)."""
    return exp(min(0.0, max(-20.0, log(reach) + 3 * (accepted - TARGET) / (n + 10) ** 0.6)))


def best_number_of_sweeps(seen: np.ndarray, n_records: int, n_parameters: int) -> int:
    """Choose the number of walking sweeps (:func:`pymc_dapper.kernels.tuning.best`).

    By what the factors depend on after each of n sweeps, shape (n, k), taken as an AR(1). Moves
    have no say in it.
    """
    numbers = 2 ** np.arange(int(np.log2(MOST_SWEEPS)) + 1)
    left = (1 - 2 / (memory(seen) + 1)) ** numbers[:, None]
    sweeps = numbers * (SWEEP + SWEEP_OF_RECORD * n_records)
    [chosen] = best(left, cost_of_the_rest(n_records, n_parameters) + sweeps, len(seen))
    return int(numbers[chosen])
