"""Whether records walk instead of being drawn independently, how far, and how often.

Decisions use counts, not times, so that a seed gives the same draws everywhere.
"""

from collections.abc import Sequence
from math import exp, log

import numpy as np

from pymc_dapper.kernels.effective_draws import effective_draws, memory

FEWEST_SWEEPS = 100
"""With fewer draws in tuning, records don't walk."""

TARGET = 0.3
"""Target share of accepted walks. Records walk if fewer independent proposals are accepted:
otherwise independent proposals move as far, and anywhere in a record's conditional distribution."""

LONG = 2.5
"""Records walk if the sums' autocorrelation time, under the sweep alone, exceeds this many sweeps.
Moves of parameters that also move records may not be made after tuning."""

INDEPENDENT = 4
"""Each fourth iteration draws independently first, so that a record can change modes."""

MOST_SWEEPS = 64

MOST_COLUMNS = 8
"""Number of records whose covariances are computed."""

FEWEST_LOOKS = 3
"""Draws for each moment, to estimate how parameters depend on the moments."""

# Costs in units of about 10 ns: per record, and fixed.
SWEEP = np.array([15.0, 1_000.0])
"""Cost of a sweep."""
REST_OF_ITERATION = np.array([10.0, 25_000.0])
"""Cost of the rest of an iteration, as if parameters had NUTS."""


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
    return few_are_accepted(accepted) and memory_of_sweeps(before, after) > LONG


def memory_of_sweeps(before: np.ndarray, after: np.ndarray) -> float:
    """Return the autocorrelation time of sweeps: of the slowest changing column, as an AR(1).

    Changes of records between sweeps don't matter. Infinity if nothing changes.
    """
    centred = before - before.mean(axis=0), after - after.mean(axis=0)
    sizes = np.sqrt([(x**2).sum(axis=0) for x in centred]).prod(axis=0)
    changes = (np.ptp(before, axis=0) > 0) & (sizes > 0)
    if not changes.any():
        return np.inf
    left = ((centred[0] * centred[1]).sum(axis=0)[changes] / sizes[changes]).max()
    return float((1 + left) / max(1 - left, 1e-9))


def moments(records: Sequence[np.ndarray], n_records: int) -> np.ndarray:
    """Return means and covariances of records as a vector: parameters depend on these.

    Factors may depend on less and forget sooner: a clamped value doesn't show how far it is beyond
    the limit.
    """
    columns = np.concatenate([x.reshape(n_records, -1) for x in records], axis=1)[:, :MOST_COLUMNS]
    means = columns.mean(axis=0)
    centred = columns - means
    covariances = centred.T @ centred / n_records
    return np.concatenate([means, covariances[np.tril_indices(len(means))]])


def next_reach(reach: float, accepted: float, n: int) -> float:
    """Adapt the reach of walks after n of them, by the accepted share (Robbins and Monro, 1951)."""
    return exp(min(0.0, max(-20.0, log(reach) + 3 * (accepted - TARGET) / (n + 10) ** 0.6)))


def share_that_follows(parameters: np.ndarray, of_records: np.ndarray) -> float:
    """Return the largest share of a parameter's variance that the records' moments explain.

    By a regression on n draws of parameters, shape (n, d), and of moments, shape (n, k); 0 if n is
    too small.
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
    """Return the effective number of draws in each of several thinned draws of an AR(1).

    ``times`` are the distances between draws. At distance one, an effective draw takes ``forgets``
    draws: the autocorrelation r has (1 + r) / (1 - r) = forgets.
    """
    left = (1 - 2 / (forgets + 1)) ** times
    return (1 - left) / (1 + left)


def best_number_of_sweeps(
    seen: np.ndarray, of_records: np.ndarray, share: float, spacing: int, n_records: int
) -> int:
    """Choose the number of walking sweeps in an iteration.

    It maximises effective draws per cost, both of what the factors depend on and of the parameters.
    The former are taken as an AR(1), and so is the share of the parameters' variance that follows
    the records.

    Parameters
    ----------
    seen : ndarray, shape (n, k)
        What the factors depend on, after each sweep.
    of_records : ndarray, shape (n, m)
        The records' moments.
    share : float
        Share of a parameter's variance that follows the moments (:func:`share_that_follows`).
    spacing : int
        One of this many sweeps was kept.
    """
    if np.isnan(effective_draws(seen)).all():
        return 1
    numbers = 2 ** np.arange(int(np.log2(MOST_SWEEPS)) + 1)
    kept = 1 / worth_of(numbers / spacing, memory(of_records))
    worth = worth_of(numbers / spacing, memory(seen))
    worth = np.minimum(worth, 1 / (1 + share * (kept - 1)))
    sweep, rest = (cost @ (n_records, 1.0) for cost in (SWEEP, REST_OF_ITERATION))
    return int(numbers[np.argmax(worth / (rest + numbers * sweep))])
