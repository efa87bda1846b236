"""GibbsStep: steps in turn, and many iterations of ours in one compiled call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
from pymc.step_methods import BlockedStep, CompoundStep

from pymc_dapper.backend.internals import PointType, RandomGenerator, StatsType
from pymc_dapper.backend.iterations import Iterations, Transition
from pymc_dapper.steps.base import Step

SECONDS = 0.04
"""A block takes about as long at most."""
FIRST_BLOCK, MOST = 16, 2**16
"""Iterations in a chain's first block, and at most; each may have twice as many as the last."""
LARGEST_BLOCK, LARGEST_POINT = 2**22, 2**14
"""Bytes of what a block writes down, and of the values in one iteration. To copy more of them takes
as long as the calls that are saved."""
FEWEST = 2000
"""Chains with fewer iterations to go aren't worth compiling the loop."""


@dataclass
class _Block:
    """Iterations that are computed already, and handed to PyMC one by one."""

    start: PointType
    states: list[Any]
    """The point and the generators' states before them."""
    rest: Iterator[tuple[PointType, StatsType]] = field(default_factory=lambda: iter(()))
    reports: list[list[np.ndarray]] = field(default_factory=list)
    """What each step's transitions report of each iteration."""
    n: int = 0
    handed_out: int = 0
    last: PointType = field(default_factory=dict)
    """The values that were handed out last."""

    def goes_on_from(self, point: PointType) -> bool:
        """Whether a point has these values: the same arrays, as a rule, or copies."""
        try:
            if point == self.last:  # arrays are compared only if they aren't the same
                return True
        except ValueError:
            pass
        if [*point] != [*self.last]:
            return False
        values = map(np.asarray, point.values())  # of a float, say
        pairs = zip(values, self.last.values(), strict=True)
        return all(x.tobytes() == y.tobytes() for x, y in pairs)


class GibbsStep(CompoundStep):
    """Take steps in turn, and compute many iterations in one compiled call.

    The chain is the one that PyMC makes of the same steps in a list, to the bit. Where only
    compiled functions of this package take part, a block of iterations is computed at once and
    handed to PyMC one by one. A block takes about a twentieth of a second at most, after which the
    progress bar moves on and an interrupt is heeded. :func:`sample` uses it.

    Parameters
    ----------
    steps : sequence of steps
        In the order in which an iteration takes them. Others' may be among them.

    Attributes
    ----------
    methods : list of steps
        The steps.

    Raises
    ------
    TypeError
        If one isn't a step.

    Notes
    -----
    Blocks need compiled steps for all variables of the model, small data, and at least 2,000
    iterations that are left. NUTS, :class:`FunctionStep`, :class:`MarginalisedStep` (which has NUTS
    within it) and counts drawn on a tree are computed in Python in each iteration. Steps are called
    one after the other while one of them tunes itself, looks for a possible start, lets records
    walk or exchange, or looks at the chain for a warning. The loop is compiled before a chain's
    first block, in up to a second, and kept on disk for all models with alike steps. The points of
    a block share its memory: copy those that you keep. An interrupt waits until the block is done.
    Whatever the steps, about one interrupt of 100 is lost: if it comes while numba throws a
    function away, or while PyMC records a draw. Then interrupt again.

    The state (``sampling_state``) is that of the last draw which PyMC was handed. What is left of
    the block is dropped, and computed again. The same happens if the point was changed. Replace
    arrays of a point, and don't write to them: the step can't notice that.

    Examples
    --------
    >>> with model:
    ...     idata = pm.sample(step=pmd.GibbsStep(pmd.assign_steps()))
    """

    def __init__(self, steps: Sequence[BlockedStep | CompoundStep]):
        if not isinstance(steps, Sequence) or not steps:
            raise TypeError(f"GibbsStep takes a list of steps, and not {steps!r}")
        for step in steps:
            if not isinstance(step, BlockedStep | CompoundStep):
                raise TypeError(f"GibbsStep takes a list of steps, and {step!r} isn't one")
        super().__init__(steps)
        self._loops: dict[tuple[Any, ...], Iterations] = {}
        self._begin(0, 0)

    def _begin(self, tune: int, draws: int) -> None:
        self._left, self._draws, self._longest = tune + draws, draws, FIRST_BLOCK
        self._seconds = float("inf")
        self._block: _Block | None = None
        self._at_most: int | None = None

    def setup_chain(self, rng: RandomGenerator, tune: int, draws: int) -> None:
        """Give each step a generator of its own, as PyMC does; a single one has the chain's."""
        if len(self.methods) == 1:
            self.methods[0].setup_chain(rng, tune, draws)
        else:
            super().setup_chain(rng, tune, draws)
        self._begin(tune, draws)

    def expect(self, draws: int) -> None:
        """Expect so many iterations after tuning."""
        self._left, self._draws = self._left + draws - self._draws, draws

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Make an iteration, or hand out one that was computed with others."""
        block = self._block
        if block is None or not block.goes_on_from(point):
            self._settle()
            block = self._computed(point)
        if block is None:
            self._left -= 1
            began = perf_counter()
            result = super().step(point)
            self._seconds = max(perf_counter() - began, 1e-9)
            self._longest = max(self._longest, 2)
            return result
        point, stats = next(block.rest)
        block.last = point.copy()
        block.handed_out += 1
        if block.handed_out == block.n:
            self._longest = min(2 * self._longest, MOST)
            self._passed(block)
        return point, stats

    def _computed(self, point: PointType) -> _Block | None:
        """Compute a block of iterations; None if the next one needs more than compiled code."""
        n = self._length(point)
        if n < 2:
            return None
        start = {name: np.array(x) for name, x in point.items()}  # PyMC writes to them in workers
        self._block = block = _Block(start, [x.bit_generator.state for x in self._rngs()])
        began = perf_counter()
        try:
            moved, reports = map(iter, self._run(start, n))
            self._seconds = max(perf_counter() - began, 1e-9) / n
            for step in self.methods:
                block.reports.append([x for _ in step.transitions for x in next(reports)])
            stats = [x.statistics(n, y) for x, y in zip(self.methods, block.reports, strict=True)]
        except MemoryError:
            raise
        except Exception:  # the step that fails says why, when it is called alone
            self._settle()
            if self._key(start) not in self._loops:  # it can't be compiled: none in this chain
                self._left = 0
            return None
        points = map(dict, map(zip, repeat((*point,)), zip(*moved, strict=True)))
        block.rest = zip(points, map(list, zip(*stats, strict=True)), strict=False)
        block.n = n
        return block

    def _length(self, point: PointType) -> int:
        """For how many iterations a block can be computed; 0 if for none."""
        ahead = self._left
        if self._at_most == 0 or (ahead < FEWEST and not self._loops):
            return 0
        for step in self.methods:
            ahead = min(ahead, step.ordinary() if isinstance(step, Step) else 0)
            if ahead < 2:
                return 0
        if self._at_most is None:
            size = sum(np.asarray(x).nbytes for x in point.values())
            moves_all = size <= LARGEST_POINT and self.moved_in_blocks() >= point.keys()
            reports = [x for _, each in self._transitions() for x in each.reports]
            size += sum(np.dtype(dtype).itemsize * prod(shape) for shape, dtype in reports)
            self._at_most = LARGEST_BLOCK // max(size, 1) if moves_all else 0
        return min(ahead, self._longest, int(SECONDS / self._seconds), self._at_most)

    def moved_in_blocks(self) -> set[str]:
        """Names of the value variables that blocks can move, among others."""
        return {name for _, each in self._transitions() for name in each.moves}

    def _run(self, point: PointType, n: int) -> Any:
        """Make iterations: values of each variable, and what each transition reports."""
        steps, transitions = zip(*self._transitions(), strict=True)
        key = self._key(point)
        if key not in self._loops:
            self._loops[key] = Iterations(transitions, point)
        return self._loops[key](n, transitions, [x.rng for x in steps], point)

    def _key(self, point: PointType) -> tuple[Any, ...]:
        """Return what a loop is made for: functions, and the order of a point's variables."""
        return (*(each.function for _, each in self._transitions()), *point)

    def _settle(self) -> None:
        """Drop the rest of a block, with generators and steps at what was handed out last."""
        block = self._block
        if block is None:
            return
        for rng, state in zip(self._rngs(), block.states, strict=True):
            rng.bit_generator.state = state
        if block.handed_out:
            self._run(block.start, block.handed_out)
        self._longest = max(block.handed_out, 1)
        self._passed(block)

    def _passed(self, block: _Block) -> None:
        """Tell steps what was handed out."""
        n, self._block = block.handed_out, None
        self._left -= n
        for step, reports in zip(self.methods, block.reports, strict=n > 0):
            step.passed(n, [x[:n] for x in reports])

    def _transitions(self) -> list[tuple[Step, Transition]]:
        ours = [x for x in self.methods if isinstance(x, Step)]
        return [(step, each) for step in ours for each in step.transitions]

    def _rngs(self) -> list[np.random.Generator]:
        return [x.rng for x in self.methods if isinstance(x, Step) and x.transitions]

    @property
    def sampling_state(self) -> Any:
        """The state at the draw that was handed out last."""
        self._settle()
        return super().sampling_state

    @sampling_state.setter
    def sampling_state(self, state: Any) -> None:
        self._block = None
        CompoundStep.sampling_state.fset(self, state)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the machine code behind."""
        self._settle()
        return {**self.__dict__, "_loops": {}}
