"""BoundaryStep: tables of probabilities moved together with people behind released tables."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from pymc import Model

from pymc_dapper.backend.internals import (
    PointType,
    SamplerWarning,
    StatsType,
    StepMethodState,
    dataclass_state,
)
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.interweaving.compiled.boundaries import compile_boundaries
from pymc_dapper.interweaving.kernels.tuning import MIN_MEASURED, is_doubling
from pymc_dapper.interweaving.reading.tables import TablesReading, agrees
from pymc_dapper.kernels.tuning import forgets_slowly
from pymc_dapper.steps.base import Given, Step
from pymc_dapper.steps.data import SharedData
from pymc_dapper.steps.stats import WARNING_STAT, WARNING_TYPE, notice_of

TRIES = 2.0
"""Target for the average number of places that a boundary tries. Tuning adapts the intervals to
it."""

FEW, USELESS = 0.1, 0.01
"""Columns are drawn anew if proposals change less than the first share of people. They no longer
are if draws change less than the second share."""

FACTOR = 1.1
"""An interval becomes wider or narrower by this factor in each iteration of tuning."""


@dataclass_state
class BoundaryStepState(StepMethodState):
    """The state that a chain needs to continue exactly where it stopped."""

    steps_done: int
    tuning_steps: int
    moves: bool
    seen: list[np.ndarray]
    widths: np.ndarray
    redraws: bool | None
    left: list[np.ndarray]


class BoundaryStep(Step):
    """Move Dirichlet tables of probabilities together with the people drawn by them.

    For people of several columns of categories, each drawn by a table of probabilities given some
    other columns, that were counted in released tables. Given 48,842 people, a probability is known
    up to sampling error, though its posterior may be far wider, because of the mechanism's noise.
    This step divides the probability of two categories of a row anew: the boundary between them
    moves, with the noise of the row's people held fixed. People whose noise it passes change
    category. The prior, the released tables in which they are counted, and the probabilities of
    columns that depend on theirs decide on the move. Boundaries move by slices (Neal 2003), from
    intervals that tuning chooses. A pass over all boundaries takes about as long as half a sweep.

    Where released tables are known so well that fewer than 1 of 10 people change in a sweep, each
    column of each person is then drawn from its conditional distribution, given all else.

    ``assign_steps`` makes it by :meth:`of_reading`, beside a :class:`DapperStep` for the people and
    a :class:`ConjugateStep` for the tables. A column that no released table counts, such as a
    class, is left to these steps. It begins only if tuning shows that probabilities have a long
    memory, and is compiled then.

    Parameters
    ----------
    vars : variable or sequence of variables
        The tables: Dirichlet variables, one for each column.
    model, rng, blocked, compile_kwargs, initial_point
        As for :class:`InterweaveStep`.

    References
    ----------
    Neal, R. M. (2003). Slice sampling. Annals of Statistics 31(3). Yu, Y., and Meng, X.-L. (2011).
    To center or not to center: that is not the question. Journal of Computational and Graphical
    Statistics 20(3).
    """

    name = "boundaries"
    stats_dtypes_shapes = {  # noqa: RUF012 (PyMC's)
        "boundaries_moved": (np.float64, []),
        "people_redrawn": (np.float64, []),
        WARNING_STAT: WARNING_TYPE,
    }
    _state_class = BoundaryStepState

    def _build(self, model: Model, options: dict[str, Any], point: PointType) -> None:
        reading: TablesReading = self._reading
        self._options = options
        self._move: Any = None
        self._stage("Checking")
        if not agrees(reading, point):
            raise ReadingError(
                "BoundaryStep read other probabilities of the columns than the model has. "
                "Leave the step out, and report the model"
            )
        state = (*reading.people.records, *reading.parameters, *reading.given)
        self._given = Given(state, SharedData(reading, self._built))
        self._givens = [self._given]
        self._names = [x.name for x in (*reading.people.records, *reading.parameters)]
        self._start_chain(0, 0)

    def _compile(self) -> None:
        self._stage("Compiling")
        self._move = compile_boundaries(self._reading, self._options)

    def _start_chain(self, tune: int, draws: int) -> None:
        self.steps_done, self.tuning_steps = 0, tune
        self.moves = False
        self.seen: list[np.ndarray] = []
        n, d = self._reading.people.n_records, len(self._reading.rvs)
        self.widths = np.full(d, np.sqrt(n))
        self.redraws: bool | None = None
        self.left: list[np.ndarray] = []

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Move all boundaries once, and people with them."""
        self.steps_done += 1
        tuning, warning, made = self.steps_done <= self.tuning_steps, None, None
        before = point
        if self.moves:
            if self._move is None:
                self._compile_in_chain(self._compile, own_mode=bool(self._options))
            n_drawn = self._reading.people.n_records * len(self._reading.rvs) * bool(self.redraws)
            given = self._given(point)
            *values, outcome, redrawn = self._move(self.rng, self.widths, n_drawn, *given)
            made = outcome, redrawn
            point = {**point, **dict(zip(self._names, values, strict=True))}
            if tuning:
                wider = np.where(outcome[0] > TRIES, 1 / FACTOR, FACTOR)
                self.widths = np.clip(self.widths * wider, 1.0, self._reading.people.n_records)
                if self.redraws and redrawn < USELESS * self._reading.people.n_records:
                    self.redraws = False
        if tuning:
            warning = self._consider_moves(before)
        self.left = [point[x] for x in self._released] if tuning else []
        return point, [{**self._statistics(made), WARNING_STAT: warning}]

    @property
    def _released(self) -> list[str]:
        """The columns that released tables count."""
        reading = self._reading
        each = zip(reading.people.records, reading.released.of[:, 0], strict=True)
        return [x.name for x, n_tables in each if n_tables > 0]

    def _statistics(self, made: tuple[np.ndarray, np.ndarray] | None) -> dict[str, Any]:
        moved = redrawn = np.nan
        if made is not None:
            moved = made[0][1].sum() / self._reading.people.n_records
            redrawn = float(made[1]) / self._reading.people.n_records
        return {"boundaries_moved": moved, "people_redrawn": redrawn, WARNING_STAT: None}

    def ordinary(self) -> int:
        """Count iterations if nothing moves; passes take too long to gain by blocks."""
        return sys.maxsize if not self.moves and self.steps_done >= max(self.tuning_steps, 1) else 0

    def statistics(self, n: int, reports: Sequence[np.ndarray]) -> list[dict[str, Any]]:
        """Make the statistics of n iterations without moves."""
        return [self._statistics(None) for _ in range(n)]

    def passed(self, n: int, reports: Sequence[np.ndarray]) -> None:
        """Count n iterations after tuning."""
        self.steps_done += n

    def _consider_moves(self, point: PointType) -> SamplerWarning | None:
        """Begin to move if a probability has a long memory or people hardly change, and say so."""
        done, measured = self.steps_done, is_doubling(self.steps_done, MIN_MEASURED)
        if done == self.tuning_steps:
            self.seen = []
            return None
        if not self.moves:
            self.seen.append(np.concatenate([np.ravel(point[x.name]) for x in self._moved]))
        if measured and self.redraws is not False:  # people may change more than at the start
            self.redraws = self._changed(point) < FEW or None
        few = measured and bool(self.redraws)
        slow = measured and not self.moves and forgets_slowly(np.array(self.seen[done // 4 :]))
        if self.moves or not (few or slow):
            return None
        why = "draws have a long memory, given the people" if slow else "people hardly change"
        self.seen, self.moves = [], True
        return notice_of(
            f"{self._built}: {why}. From here on people move with them, by moves that were "
            "compiled in tuning"
        )

    def _changed(self, point: PointType) -> float:
        """Return the share of people who changed, in released columns, since the last step."""
        columns = zip(self._released, self.left, strict=True)
        return float(np.any([point[x] != before for x, before in columns], axis=0).mean())

    def describe(self) -> str:
        """Describe what moves, and with whom."""
        reading = self._reading
        counted = reading.released.of[:, 0] > 0
        moving = [f"'{x.name}'" for x, seen in zip(reading.rvs, counted, strict=True) if seen]
        return (
            f"Moves {', '.join(moving)} with the noise of people held fixed.\n"
            f"Records that follow: {reading.people.quoted_names}\n"
            "Begins if tuning mixes poorly without"
        )

    def __repr__(self) -> str:
        """Summarise what moves."""
        names = ", ".join(x.name for x in self._reading.rvs)
        return f"<BoundaryStep: {names}; {', '.join(self._reading.people.record_names)} follow>"
