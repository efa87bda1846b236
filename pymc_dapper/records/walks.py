"""Walks of records: found in tuning, by what sweeps did; no chain is needed to try it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pymc_dapper.records.kernels.walk_tuning import (
    FEWEST_SWEEPS,
    best_number_of_sweeps,
    few_are_accepted,
    had_better_walk,
    next_reach,
)


@dataclass(slots=True)
class Walks:
    """Whether records walk, how far, and how often in a draw.

    The first quarter of tuning finds out whether they should, what is left of its first half how
    far, and its second half how often (:mod:`pymc_dapper.kernels.tuning`). All attributes are a
    chain's state.

    Attributes
    ----------
    tune : int
        Iterations of tuning; 0 if records can't walk.
    number : int
        Sweeps of walks in a draw; 0 if records don't walk.
    reach : float
        How far.
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

        ``sees`` says what the factors depend on, mostly sums; ``can`` whether records can walk,
        which is asked at most once.
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
        """Whether nothing more is found out after so many sweeps: records don't walk."""
        return self.number == 0 and done >= self.tune // 4

    def _forget(self) -> None:
        self.accepted, self.before, self.seen = [], [], []
