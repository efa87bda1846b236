"""Thinning: where a chain would have few effective draws, each is the last of several iterations.

The second half of tuning tells, or its last ``DRAWS`` iterations. Each draw is the last of so many
iterations that the chain has ``ENOUGH`` effective draws of every variable, or of ``MOST``. Moves
that only tuning makes are allowed for. Draws of a model with many values aren't made longer. Only
what tuning has seen decides, so later draws have the right distribution.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
from pymc.step_methods import BlockedStep, CompoundStep

from pymc_dapper.backend.internals import (
    DataClassState,
    PointType,
    RandomGenerator,
    StatsType,
    dataclass_state,
)
from pymc_dapper.kernels.effective_draws import memory
from pymc_dapper.steps.base import Step
from pymc_dapper.steps.gibbs import GibbsStep
from pymc_dapper.steps.stats import WARNING_STAT, notice_of

ENOUGH, DRAWS = 200, 1000
"""Effective draws of a chain: PyMC warns of half as many. A chain of fewer draws than ``DRAWS`` is
judged as if it had so many."""
FEWEST = 100
"""Iterations that must have been looked at."""
MOST, LARGEST = 32, 200_000
"""Iterations of a draw, and values that they move, at most."""
LOOKED_AT = 100
"""Entries of a variable that are looked at, at most."""
EVENTS = {"diverging", WARNING_STAT}
"""Statistics that a draw has if one of its iterations had them."""


@dataclass_state
class ThinnedStepState(DataClassState):
    """The steps' states, and how far thinning is."""

    gibbs: DataClassState
    n_tune: int
    n_draws: int
    iterations: int
    done: int
    seen: list[np.ndarray]


class ThinnedStep(CompoundStep):
    """Take steps in turn, once or several times for a draw.

    A draw has the statistics of its last iteration, with divergences and warnings of the others.

    Parameters
    ----------
    steps : sequence of steps
        See :class:`GibbsStep`.
    names : sequence of str
        Value variables whose effective draws count.
    thin : int, optional
        Iterations of each draw after tuning. Chosen in tuning if not given.
    """

    _state_class = ThinnedStepState
    sampling_state = BlockedStep.sampling_state

    def __init__(
        self,
        steps: Sequence[BlockedStep | CompoundStep],
        names: Sequence[str],
        thin: int | None = None,
    ):
        super().__init__(steps)
        self.gibbs, self.names, self.thin = GibbsStep(steps), list(names), thin
        self.n_tune, self.n_draws, self._iterations = 0, 0, thin or 1
        self.done, self.seen = 0, list[np.ndarray]()

    def setup_chain(self, rng: RandomGenerator, tune: int, draws: int) -> None:
        """Start a chain."""
        self.gibbs.setup_chain(rng, tune, draws)
        self.n_tune, self.n_draws = tune, draws
        self.iterations, self.done, self.seen = self.thin or 1, 0, []

    @property
    def iterations(self) -> int:
        """Iterations of each draw after tuning."""
        return self._iterations

    @iterations.setter
    def iterations(self, iterations: int) -> None:
        self._iterations = iterations
        for step in (self.gibbs, *self.gibbs.methods):
            if isinstance(step, Step | GibbsStep):
                step.expect(iterations * self.n_draws)

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make a draw."""
        point, stats = self.gibbs.step(point)
        for _ in range(self.iterations - 1 if self.done >= self.n_tune else 0):
            before = stats
            point, stats = self.gibbs.step(point)
            for now, earlier in zip(stats, before, strict=True):
                for event in EVENTS & now.keys():
                    now[event] = earlier[event] or now[event]
        self.done += 1
        since = max(self.n_tune // 2, self.n_tune - DRAWS)
        if self.thin is None and since < self.done <= self.n_tune:
            entries = (np.ravel(point[name]) for name in self.names)
            self.seen.append(np.concatenate([x[:: 1 + x.size // LOOKED_AT] for x in entries]))
            if self.done == self.n_tune:
                self._choose(sum(np.size(x) for x in point.values()), stats)
        return point, stats

    def _choose(self, n_values: int, stats: StatsType) -> None:
        """Choose how many iterations a draw has, and say so."""
        seen, self.seen = np.array(self.seen), []
        changes = len(seen) >= FEWEST and np.ptp(seen, axis=0).any()
        slower = max(getattr(step, "slower", 1.0) for step in self.methods)
        needed = slower * memory(seen) * ENOUGH / max(self.n_draws, DRAWS) if changes else 1
        self.iterations = max(1, min(ceil(min(needed, MOST)), LARGEST // n_values))
        if self.iterations > 1:
            silent = next((x for x in stats if x.get(WARNING_STAT, x) is None), {})
            silent[WARNING_STAT] = notice_of(
                "Draws follow each other slowly. From here on, each is the last of several "
                f"iterations, {MOST} at most. thin=1 keeps each iteration"
            )
