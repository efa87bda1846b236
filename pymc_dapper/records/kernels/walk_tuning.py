"""Whether records walk in the place of being drawn anew, how far, and how often.

All is counted, not timed, so that the same seed gives the same draws.
"""

from collections.abc import Sequence
from math import exp, log

import numpy as np

from pymc_dapper.kernels.effective_draws import effective_draws, memory

FEWEST_SWEEPS = 100
"""With fewer in tuning, records don't walk."""

HELD = 0.1
"""Records walk where a smaller share of the independent draws is accepted. At 1/4 or so, a walk
gets no further: a jump that is accepted takes a record anywhere in its conditional distribution."""

LONG = 5.0
"""Records walk where what the factors see of them forgets in more sweeps than that."""

TARGET = 0.3
"""The share of a walk's proposals that are to be accepted."""

INDEPENDENT = 4
"""Each fourth iteration draws anew, so that a record can get from one mode to another."""

MOST_SWEEPS = 64

# In units of some 10 ns, per record and in any case.
SWEEP = np.array([15.0, 1_000.0])
"""A sweep."""
REST_OF_ITERATION = np.array([5.0, 5_000.0])
"""What else an iteration does."""


def few_are_accepted(accepted: Sequence[float]) -> bool:
    """Say whether what is released holds the records, by the shares accepted so far."""
    late = accepted[len(accepted) // 2 :]
    return len(late) > 0 and sum(late) < HELD * len(late)


def had_better_walk(accepted: Sequence[float], seen: np.ndarray) -> bool:
    """Say whether records are held, and what the factors see of them forgets slowly.

    Parameters
    ----------
    accepted : sequence of float
        The shares of independent draws accepted.
    seen : ndarray, shape (n, k)
        What the factors saw after the last n sweeps.
    """
    return few_are_accepted(accepted) and memory(seen) > LONG


def next_reach(reach: float, accepted: float, n: int) -> float:
    """Adapt how far walks go, after n of them, by the share accepted (Robbins and Monro, 1951)."""
    return exp(min(0.0, max(-20.0, log(reach) + 3 * (accepted - TARGET) / (n + 10) ** 0.6)))


def best_number_of_sweeps(seen: np.ndarray, spacing: int, n_records: int) -> int:
    """Choose how many sweeps of walks an iteration makes.

    As many as give the most effective draws for their cost, where what is slowest forgets as an
    autoregression does.

    Parameters
    ----------
    seen : ndarray, shape (n, k)
        What the factors saw, with one sweep between.
    spacing : int
        Of so many sweeps, one was kept.
    """
    if np.isnan(effective_draws(seen)).all():
        return 1
    sweeps = spacing * memory(seen)
    sweep, rest = (cost @ (n_records, 1.0) for cost in (SWEEP, REST_OF_ITERATION))
    numbers = 2 ** np.arange(int(np.log2(MOST_SWEEPS)) + 1)
    gains = np.tanh(numbers / sweeps) / (rest + numbers * sweep)
    return int(numbers[np.argmax(gains)])
