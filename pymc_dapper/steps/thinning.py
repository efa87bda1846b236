"""Thinning: where a chain would have few effective draws, each is the last of several iterations.

The second half of tuning tells. If the draws that were asked for would be worth fewer than
``ENOUGH`` effective ones of a variable that is kept, each is the last of so many iterations that
they are worth twice as many, or of ``MOST``. A draw of a model with many values isn't made longer.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
from pymc.step_methods import BlockedStep, CompoundStep
from pymc.step_methods.compound import CompoundStepState
from pymc.step_methods.state import dataclass_state

from pymc_dapper.backend.internals import PointType, RandomGenerator, StatsType
from pymc_dapper.kernels.effective_draws import memory
from pymc_dapper.steps.base import Step
from pymc_dapper.steps.gibbs import GibbsStep
from pymc_dapper.steps.stats import WARNING_STAT, notice_of

ENOUGH = 100
"""Effective draws of a chain: PyMC warns of fewer. Fewer draws than ten times as many are judged as
if there were ten times as many."""
FEWEST = 100
"""Iterations that must have been looked at."""
MOST, LARGEST = 16, 200_000
"""Iterations of a draw, and values that they move, at most."""
LOOKED_AT = 100
"""Entries of a variable that are looked at, at most."""


@dataclass_state
class ThinnedStepState(CompoundStepState):
    """The steps' states, how many iterations were made, and what was seen in tuning."""

    iterations: int
    done: int
    seen: list[np.ndarray]

    def __init__(self, methods: list[Any], iterations: int, done: int, seen: list[np.ndarray]):
        super().__init__(methods)
        self.iterations, self.done, self.seen = iterations, done, seen


class ThinnedStep(GibbsStep):
    """Take steps in turn, once or several times for a draw.

    Parameters
    ----------
    steps : sequence of steps
        See :class:`GibbsStep`.
    names : sequence of str
        Value variables that are kept: those whose effective draws count.
    thin : int, optional
        Iterations of each draw after tuning. Chosen in tuning if not given.

    Notes
    -----
    A draw has the statistics of its last iteration, but for what must not be lost: divergences and
    warnings of all.
    """

    _state_class = ThinnedStepState

    def __init__(
        self,
        steps: Sequence[BlockedStep | CompoundStep],
        names: Sequence[str],
        thin: int | None = None,
    ):
        self.names, self.thin = list(names), thin
        self._start_thinning(0, 0)
        super().__init__(steps)

    def _start_thinning(self, tune: int, draws: int) -> None:
        self._tune, self._draws = tune, draws
        self.iterations, self.done, self.seen = self.thin or 1, 0, list[np.ndarray]()

    @property
    def sampling_state(self) -> Any:
        """The state at the last draw."""
        of_steps = super().sampling_state.methods
        return ThinnedStepState(of_steps, self.iterations, self.done, [*self.seen])

    @sampling_state.setter
    def sampling_state(self, state: Any) -> None:
        GibbsStep.sampling_state.fset(self, state)
        self.iterations, self.done, self.seen = state.iterations, state.done, [*state.seen]

    def setup_chain(self, rng: RandomGenerator, tune: int, draws: int) -> None:
        """Start a chain, with the iterations of a draw to be chosen."""
        super().setup_chain(rng, tune, draws)
        self._start_thinning(tune, draws)
        if self.thin is not None:
            self._make_more()

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make a draw."""
        point, stats = super().step(point)
        for _ in range(self.iterations - 1 if self.done >= self._tune else 0):
            point, more = super().step(point)
            stats = [_with_events_of(*pair) for pair in zip(stats, more, strict=True)]
        self.done += 1
        if self.thin is None and self._tune < 2 * self.done <= 2 * self._tune:
            self.seen.append(self._looked_at(point))
            if self.done == self._tune:
                self._choose(sum(np.size(x) for x in point.values()), stats)
        return point, stats

    def _looked_at(self, point: PointType) -> np.ndarray:
        entries = [np.ravel(point[name]) for name in self.names]
        some = [x[:: 1 + x.size // LOOKED_AT] for x in entries]
        return np.concatenate([np.empty(0), *some])

    def _choose(self, size: int, stats: StatsType) -> None:
        seen, self.seen = np.array(self.seen), []
        enough = max(self._draws, 10 * ENOUGH) / ENOUGH
        time = memory(seen) if len(seen) >= FEWEST and seen.size else 0.0
        if time <= enough:
            return
        self.iterations = ceil(max(min(2 * time / enough, MOST, LARGEST / size), 1))
        if self.iterations > 1:
            self._make_more()
            notice = notice_of(
                f"Draws of this model follow each other slowly: each is the last of "
                f"{self.iterations} iterations from here on. thin=1 keeps each iteration"
            )
            first = next((x for x in stats if WARNING_STAT in x), {})
            first[WARNING_STAT] = first.get(WARNING_STAT) or notice

    def _make_more(self) -> None:
        """Tell all steps how many iterations there will be."""
        n = self.iterations * self._draws
        self._left += n - self._draws
        for step in self.methods:
            if isinstance(step, Step):
                step.expect(n)


def _with_events_of(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return statistics of an iteration, with divergences and warnings of those before."""
    if "diverging" in after:
        after["diverging"] = after["diverging"] or before["diverging"]
    if WARNING_STAT in after:
        after[WARNING_STAT] = before[WARNING_STAT] or after[WARNING_STAT]
    return after
