"""Whether records walk instead of being drawn anew each time, how far, and how often.

All is counted, not timed, so that the same seed gives the same draws.
"""

from collections.abc import Sequence
from math import exp, log

import numpy as np

from pymc_dapper.kernels.effective_draws import effective_draws, memory

FEWEST_SWEEPS = 100
"""With fewer in tuning, records don't walk."""

TARGET = 0.3
"""The share of a walk's proposals that are to be accepted. Records walk where a smaller one is of
those drawn anew: else these go as far, and anywhere in a record's conditional distribution."""

LONG = 2.5
"""Records walk where what the factors see of them forgets in more sweeps than that, by these alone:
moves of parameters, with which records move, may not be made after tuning."""

INDEPENDENT = 4
"""Each fourth iteration draws anew first, so that a record can get from one mode to another."""

MOST_SWEEPS = 64

MOST_COLUMNS = 8
"""Of records, whose covariances are looked at."""

FEWEST_LOOKS = 3
"""For each moment, to tell what in the parameters follows these."""

ENOUGH = 0.5
"""Effective draws that an iteration should be worth,"""

NEARLY = 1.25
"""if that counts no more than so many times as much for each of them."""

# In units of some 10 ns, per record and in any case.
SWEEP = np.array([15.0, 1_000.0])
"""A sweep."""
REST_OF_ITERATION = np.array([5.0, 5_000.0])
"""What else an iteration does."""


def few_are_accepted(accepted: Sequence[float]) -> bool:
    """Say whether what is released holds the records, by the shares accepted so far."""
    late = accepted[len(accepted) // 2 :]
    return len(late) > 0 and sum(late) < TARGET * len(late)


def had_better_walk(accepted: Sequence[float], before: np.ndarray, after: np.ndarray) -> bool:
    """Say whether records are held, and what the factors see of them forgets slowly.

    Parameters
    ----------
    accepted : sequence of float
        The shares of independent draws accepted.
    before, after : ndarray, shape (n, k)
        What the factors saw before each of n sweeps, and after it.
    """
    return few_are_accepted(accepted) and memory_of_sweeps(before, after) > LONG


def memory_of_sweeps(before: np.ndarray, after: np.ndarray) -> float:
    """Tell in how many sweeps the slowest forgets, of what changes: as an autoregression would.

    Whatever moves records between one sweep and the next. Infinity where nothing changes.
    """
    centred = before - before.mean(axis=0), after - after.mean(axis=0)
    sizes = np.sqrt([(x**2).sum(axis=0) for x in centred]).prod(axis=0)
    changes = (np.ptp(before, axis=0) > 0) & (sizes > 0)
    if not changes.any():
        return np.inf
    left = ((centred[0] * centred[1]).sum(axis=0)[changes] / sizes[changes]).max()
    return float((1 + left) / max(1 - left, 1e-9))


def moments(records: Sequence[np.ndarray], n_records: int) -> np.ndarray:
    """Means and covariances of records, which is what parameters see of them, as a vector.

    What factors see may forget sooner: of a record beyond the clamps, they don't see how far.
    """
    columns = np.concatenate([x.reshape(n_records, -1) for x in records], axis=1)[:, :MOST_COLUMNS]
    means = columns.mean(axis=0)
    centred = columns - means
    covariances = centred.T @ centred / n_records
    return np.concatenate([means, covariances[np.tril_indices(len(means))]])


def next_reach(reach: float, accepted: float, n: int) -> float:
    """Adapt how far walks go, after n of them, by the share accepted (Robbins and Monro, 1951)."""
    return exp(min(0.0, max(-20.0, log(reach) + 3 * (accepted - TARGET) / (n + 10) ** 0.6)))


def share_that_follows(parameters: np.ndarray, of_records: np.ndarray) -> float:
    """Tell what share of a parameter's variance its records' moments explain: the largest one.

    By a regression on n draws of parameters, shape (n, d), and of moments, shape (n, k); 0 where n
    is too small for one.
    """
    n, k = of_records.shape
    centred = parameters - parameters.mean(axis=0)
    centred = centred[:, np.ptp(parameters, axis=0) > 0]
    if n <= FEWEST_LOOKS * k or centred.size == 0:
        return 0.0
    by = of_records - of_records.mean(axis=0)
    explained = by @ np.linalg.lstsq(by, centred)[0]
    return float(((explained**2).sum(axis=0) / (centred**2).sum(axis=0)).max())


def worth_of(times: np.ndarray, forgets: float) -> np.ndarray:
    """Tell what draws so many times as far apart are worth of an autoregression, each.

    Of draws one apart, it takes ``forgets`` for an effective one: their autocorrelation r has
    (1 + r) / (1 - r) = forgets.
    """
    left = (1 - 2 / (forgets + 1)) ** times
    return (1 - left) / (1 + left)


def best_number_of_sweeps(
    seen: np.ndarray, of_records: np.ndarray, share: float, spacing: int, n_records: int
) -> int:
    """Choose how many sweeps of walks an iteration makes.

    As many as give the most effective draws for their cost, of what the factors see and of the
    parameters: the former forgets as an autoregression does, and so does the share of the latter
    that follows the records. Where these are few for an iteration, and others cost little more for
    each, the most of those: what other steps take isn't known, and more than is counted.

    Parameters
    ----------
    seen : ndarray, shape (n, k)
        What the factors saw, with one sweep between.
    of_records : ndarray, shape (n, m)
        The records' moments.
    share : float
        Of a parameter's variance, what follows the moments (:func:`share_that_follows`).
    spacing : int
        Of so many sweeps, one was kept.
    """
    if np.isnan(effective_draws(seen)).all():
        return 1
    numbers = 2 ** np.arange(int(np.log2(MOST_SWEEPS)) + 1)
    kept = 1 / worth_of(numbers / spacing, memory(of_records))
    worth = worth_of(numbers / spacing, memory(seen))
    worth = np.minimum(worth, 1 / (1 + share * (kept - 1)))
    sweep, rest = (cost @ (n_records, 1.0) for cost in (SWEEP, REST_OF_ITERATION))
    pays = worth / (rest + numbers * sweep)
    best = np.argmax(pays)
    if worth[best] < ENOUGH:
        best = np.argmax(np.where(pays * NEARLY >= pays[best], worth, 0.0))
    return int(numbers[best])
