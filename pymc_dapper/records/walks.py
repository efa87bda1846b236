"""Walks of records: found in tuning, by what sweeps did; no chain is needed to try it."""

from collections.abc import Callable, Sequence

import numpy as np

from pymc_dapper.records.kernels.walk_tuning import (
    FEWEST_SWEEPS,
    best_number_of_sweeps,
    few_are_accepted,
    had_better_walk,
    moments,
    next_reach,
    share_that_follows,
)

MOST_LOOKS = 512
"""Most times in tuning that walking records' sums are recorded."""


class Walks:
    """Whether records walk, how far, and how often in a draw.

    The first quarter of tuning finds out whether they should, what is left of its first half how
    far, and its second half how often. All attributes are a chain's state.

    Attributes
    ----------
    number : int
        Sweeps of walks in a draw; 0 if records don't walk.
    reach : float
        How far.
    """

    def __init__(self, tune: int, n_records: int, *, may: bool = True):
        self.tune = tune if may and tune >= FEWEST_SWEEPS else 0
        self.n_records, self.number, self.reach = n_records, 0, 1.0
        self._forget()

    def watch(
        self,
        done: int,
        accepted: float,
        before: Sequence[np.ndarray],
        records: Sequence[np.ndarray],
        parameters: Sequence[np.ndarray],
        *,
        sees: Callable[[Sequence[np.ndarray]], np.ndarray],
        can: Callable[[], bool],
    ) -> None:
        """Look at an iteration of tuning, the ``done``-th: records before and after it.

        ``sees`` says what the factors depend on, mostly sums; ``can`` whether records can walk,
        which is asked at most once.
        """
        first, half = self.tune // 4, self.tune // 2
        spacing = 1 + (self.tune - half) // MOST_LOOKS
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
        elif self.number > 0 and done % spacing == 0:
            self.seen.append(sees(records))
            self.moments.append(moments(records, self.n_records))
            self.parameters.append(np.concatenate([[], *map(np.ravel, parameters)]))
        if done == self.tune and self.number > 0:
            seen, of_records = np.array(self.seen), np.array(self.moments)
            share = share_that_follows(np.array(self.parameters), of_records)
            self.number = best_number_of_sweeps(seen, of_records, share, spacing, self.n_records)
            self._forget()

    def are_tuned(self, done: int) -> bool:
        """Whether nothing more is found out after so many sweeps: records don't walk."""
        return self.number == 0 and done >= self.tune // 4

    def _forget(self) -> None:
        self.accepted: list[float] = []
        self.before: list[np.ndarray] = []
        self.seen: list[np.ndarray] = []
        self.moments: list[np.ndarray] = []
        self.parameters: list[np.ndarray] = []
