"""How InterweaveStep moves: chosen in tuning, from the moves made; no chain is run to try it."""

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field

import numpy as np

from pymc_dapper.interweaving.kernels.tuning import (
    DEFAULT_MOVES,
    MIN_MEASURED,
    Costs,
    Fit,
    beside,
    best_numbers_of_moves,
    fit_draws,
    is_doubling,
    moves_in_tuning,
    unfitted,
)
from pymc_dapper.kernels.tuning import forgets_slowly


@dataclass(slots=True)
class Tuner:
    """How many moves of each kind an iteration makes, and along which ellipses.

    The rule is in :mod:`pymc_dapper.kernels.tuning`. Moves with the noise held fixed begin after
    40, 80, 160, ... iterations, and affine group moves after a quarter of what is left. In tuning
    there are 16 of each kind, or fewer if they take very long. All attributes are a chain's state.

    Attributes
    ----------
    tune, done : int
        Number of iterations of tuning, and of those made: counted from the first move on, or from
        the start while there is none.
    moves : int or None
        The number that was given.
    numbers : list of int
        Moves of each kind after tuning: with the noise held fixed, then affine ones.
    fits : list of Fit
        The ellipses of each kind.
    unmoved : ndarray of bool
        Coordinates that only these moves have changed, by the end of tuning.
    slower : float
        How much longer the memory of iterations is than in tuning, which makes more moves.
    seen, paths, evaluations : list
        What was recorded of iterations and not used for a decision yet.
    """

    tune: int
    dim: InitVar[int]
    moves: int | None = None
    waits: InitVar[bool] = field(default=False, kw_only=True)
    done: int = field(default=0, init=False)
    numbers: list[int] = field(init=False)
    fits: list[Fit] = field(init=False)
    unmoved: np.ndarray = field(init=False)
    slower: float = field(default=1.0, init=False)
    seen: list[np.ndarray] = field(init=False)
    paths: list[list[np.ndarray]] = field(init=False)
    evaluations: list[list[list[float]]] = field(init=False)

    def __post_init__(self, dim: int, waits: bool) -> None:
        self.numbers = [] if waits else [DEFAULT_MOVES if self.moves is None else self.moves]
        self.fits = [unfitted(np.zeros(dim))]
        self.unmoved = np.zeros(dim, dtype=bool)
        self._forget()

    def to_make(self, costs: Callable[[int], Costs]) -> list[int]:
        """Return the moves of each kind that the next iteration is to make.

        ``costs`` returns those of a kind; only tuning asks for them.
        """
        if self.done >= self.tune:
            return self.numbers
        kinds = range(len(self.numbers))
        return [max(self.moves or 0, moves_in_tuning(costs(k))) for k in kinds]

    def watch(
        self,
        values: np.ndarray,
        paths: Sequence[np.ndarray],
        evaluations: Sequence[list[float]],
        costs: Sequence[Costs],
        more: Callable[[], Sequence[np.ndarray]],
        n_rows: int = 1,
    ) -> bool:
        """Look at an iteration of tuning; return whether moves begin with the next one.

        Parameters
        ----------
        values : ndarray, shape (d,)
            The parameters' coordinates after it.
        paths, evaluations : sequence of ndarray, shape (k + 1, d), and of list of float, k of them
            The states before and after each move of a kind, and how often each move evaluated the
            log-density.
        costs : sequence of Costs
            Of each kind that is compiled. Another chain may have needed more of them.
        more : callable
            Compiles the kinds that are needed next, the first or affine ones of ``n_rows`` rows,
            and returns where these begin.
        """
        self.done += 1
        for k, path in enumerate(paths):
            self.paths[k].append(path)
            self.evaluations[k].append(evaluations[k])
        begins = not self.numbers
        if begins or self.done <= self.tune // 4:
            self.seen.append(values)
        if self.done == self.tune:
            self._choose(costs)
        elif begins and is_doubling(self.done, MIN_MEASURED) and self._forgets_slowly():
            more()
            self.done, self.tune, self.numbers = 0, self.tune - self.done, [DEFAULT_MOVES]
            self._forget()
            return True
        elif not begins:
            half = self.tune // 2
            if self.done == half or (self.done < half and is_doubling(self.done, MIN_MEASURED)):
                self._fit(self.done // 2)
            quarter = self.moves is None and self.done == self.tune // 4 >= MIN_MEASURED
            if quarter and self._forgets_slowly():
                for start in more():
                    self.fits.append(beside(self.fits[0], start, n_rows))
                    self.numbers.append(DEFAULT_MOVES)
                    self.paths.append([])
                    self.evaluations.append([])
        return False

    def _forgets_slowly(self) -> bool:
        # Early iterations count, too: a short stretch may not show a long memory.
        return forgets_slowly(np.array(self.seen[self.done // 4 :]))

    def _fit(self, since: int) -> None:
        """Fit the t distributions to the paths since an iteration."""
        for k in range(len(self.numbers)):
            path, _ = self._since(k, since)
            if len(path) > 2:
                self.fits[k] = fit_draws(path[:, -1])

    def _since(self, k: int, since: int) -> tuple[np.ndarray, np.ndarray]:
        """Paths and evaluations of a kind, from an iteration on; affine ones begin later."""
        begin = max(len(self.paths[k]) - (self.done - since), 0)
        return np.array(self.paths[k][begin:]), np.array(self.evaluations[k][begin:])

    def _choose(self, costs: Sequence[Costs]) -> None:
        """Fix numbers and fits, by the second half of tuning."""
        half, kinds = self.tune // 2, range(len(self.numbers))
        if self.numbers:
            measured = [self._since(k, half) for k in kinds]
            paths, evaluations = zip(*measured, strict=True)
            self.unmoved = self._unmoved()
            if self.moves is None:
                costs = costs[: len(self.numbers)]
                self.numbers, self.slower = best_numbers_of_moves(paths, evaluations, costs)
                if self.unmoved.any() and not any(self.numbers):
                    self.numbers[0] = evaluations[0].shape[1]
        self._fit(half)
        self._forget()

    def _unmoved(self) -> np.ndarray:
        """Find coordinates that stay the same between the moves of two iterations."""
        n, dim = len(self.paths[-1]), len(self.unmoved)
        before = np.array([path[0] for path in self.paths[0][-n:][1:]])
        after = np.array([path[-1, :dim] for path in self.paths[-1][:-1]])
        # Coordinates are computed from values, and values from coordinates, to rounding.
        same = np.isclose(before, after, rtol=1e-9, atol=1e-9)
        return same.all(axis=0) if n >= MIN_MEASURED else self.unmoved

    def _forget(self) -> None:
        # Lists, so that a state has only what was recorded.
        self.seen = []
        self.paths, self.evaluations = [[] for _ in self.numbers], [[] for _ in self.numbers]
