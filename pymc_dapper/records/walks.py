"""Walks of records: whether they walk instead of being drawn independently, how far, and how often.

This is chosen in tuning, from the sweeps that were made; no chain is run only to try it. Decisions
use counts, not times, so that a seed gives the same draws everywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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

    ``seen``, shape (n, k), has the numbers on which the factors depend, after each of n sweeps. It
    is taken as an AR(1). Moves of parameters aren't considered.
    """
    numbers = 2 ** np.arange(int(np.log2(MOST_SWEEPS)) + 1)
    left = (1 - 2 / (memory(seen) + 1)) ** numbers[:, None]
    sweeps = numbers * (SWEEP + SWEEP_OF_RECORD * n_records)
    [chosen] = best(left, cost_of_the_rest(n_records, n_parameters) + sweeps, len(seen))
    return int(numbers[chosen])


@dataclass(slots=True)
class Walks:
    """Whether records walk, how far, and how often in a draw.

    The first quarter of tuning decides whether records walk. The rest of its first half adapts how
    far, and its second half chooses how often (:mod:`pymc_dapper.kernels.tuning`). All attributes
    are a chain's state.

    Attributes
    ----------
    tune : int
        Iterations of tuning; 0 if records can't walk.
    number : int
        Sweeps of walks in a draw; 0 if records don't walk.
    reach : float
        Length of a walk, from 0 to 1.
    """

    tune: int
    n_records: int
    n_parameters: int
    number: int = 0
    reach: float = 1.0
    accepted: list[float] = field(default_factory=list)
    before: list[np.ndarray] = field(default_factory=list)
    seen: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.tune < FEWEST_SWEEPS:
            self.tune = 0

    def watch(
        self,
        done: int,
        accepted: float,
        before: Sequence[np.ndarray],
        records: Sequence[np.ndarray],
        *,
        sees: Callable[[Sequence[np.ndarray]], np.ndarray],
        can: Callable[[], bool],
    ) -> None:
        """Look at an iteration of tuning, the ``done``-th: records before and after it.

        ``sees`` computes the numbers on which the factors depend, mostly sums. ``can`` says whether
        records can walk; it is called at most once.
        """
        first, half = self.tune // 4, self.tune // 2
        if done <= first:
            self.accepted.append(accepted)
            if 2 * done > first and few_are_accepted(self.accepted):
                self.before.append(sees(before))
                self.seen.append(sees(records))
            if done == first:
                if had_better_walk(self.accepted, np.array(self.before), np.array(self.seen)):
                    self.number = int(can())
                self._forget()
        elif self.number > 0 and done <= half:
            self.reach = next_reach(self.reach, accepted, done - first)
        elif self.number > 0:
            self.seen.append(sees(records))
        if done == self.tune and self.number > 0:
            seen, n_parameters = np.array(self.seen), self.n_parameters
            self.number = best_number_of_sweeps(seen, self.n_records, n_parameters)
            self._forget()

    def are_tuned(self, done: int) -> bool:
        """Whether tuning has decided, after so many sweeps, that records don't walk."""
        return self.number == 0 and done >= self.tune // 4

    def _forget(self) -> None:
        self.accepted, self.before, self.seen = [], [], []
