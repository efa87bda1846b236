"""SizeStep: exact draws of an unknown number of records."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from pymc import Model
from pymc.exceptions import SamplingError
from pytensor.tensor.random.basic import BetaBinomialRV, BinomialRV, HyperGeometricRV

from pymc_dapper.backend.internals import (
    PointType,
    SamplerWarning,
    StatsType,
    StepMethodState,
    dataclass_state,
)
from pymc_dapper.backend.iterations import Transition
from pymc_dapper.graphs.evaluation import agree
from pymc_dapper.sizes.compiled.draw import compile_draw
from pymc_dapper.sizes.reading.model import SizeReading, read_size
from pymc_dapper.sizes.reading.self_check import CheckedSizes, check_size
from pymc_dapper.steps.base import Given, Step, arrays_of, check_compiled
from pymc_dapper.steps.data import SharedData
from pymc_dapper.steps.stats import WARNING_STAT, WARNING_TYPE, warning_of

LAST_PART = 0.02
"""The end of the room: this share of it, at least one place."""
NEAR_THE_END = 1e-3
"""A warning is given above this posterior probability of the end of the room."""
OF_SO_MANY = (BinomialRV, BetaBinomialRV, HyperGeometricRV)
"""Laws of the number among a known number: their prior ends there by definition."""


@dataclass_state
class SizeStepState(StepMethodState):
    """The state that a chain needs to continue exactly where it stopped."""

    steps_done: int
    tuning_steps: int
    all_steps: int
    at_the_end: list[float]


class SizeStep(Step):
    """Draw an unknown number of records.

    The records are ordinary variables with room for as many as there may be, and the model uses the
    first n of them (:func:`~pymc_dapper.present`). Given all records, the conditional distribution
    of n is known up to its constant: its prior, times the factors of the present records at the
    sums of the first 0, 1, ..., N records. n is drawn from it exactly, after one pass over the
    records. If the order of the records doesn't matter, the present ones are shuffled first, so
    that any of them may leave.

    Parameters
    ----------
    vars : variable or sequence of variables
        Numbers of records: free scalars of whole numbers (or their value variables).
    model : Model, optional
        The model. Taken from the context if not given.
    rng : int, Generator, ..., optional
        Seed of the step. ``pm.sample`` passes each chain its own generator.
    blocked : bool, default True
        If False, each variable gets a step of its own; they are drawn one after the other anyway.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    initial_point : dict, optional
        Values of the model's value variables, to check the reading of the model at. Those not
        given are taken from the model's own initial point.

    Raises
    ------
    ReadingError
        If a variable isn't a number of records, if a factor depends on absent records, or if a
        factor depends on the present ones otherwise than by sums over them.
    SamplingError
        While sampling: if no number is possible after tuning.

    Notes
    -----
    Use it together with a :class:`DapperStep` for all records, which draws the absent ones from
    their prior (``pmd.sample`` does).

    The chain stays within 0, ..., N: larger numbers have no posterior probability. If the posterior
    comes near the end of the room, PyMC's log says so when the chain ends.

    The order of the records matters if they have covariates, groups or priors of their own. They
    aren't shuffled then, which is exact, too: the first n of them are present. :meth:`describe`
    says so.

    References
    ----------
    Awan, J., Barrientos, A. F., and Ju, N. (2024). Statistical inference for privatized data with
    unknown sample size. arXiv:2406.06231. Another sampler for such models, by reversible jumps.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     n = pm.DiscreteUniform("n", 0, 2000)
    ...     mu = pm.Normal("mu", 0, 2)
    ...     x = pm.Normal("x", mu, 1, shape=2000)
    ...     total = pt.switch(pmd.present(n, 2000), pt.clip(x, -3, 3), 0).sum()
    ...     pmd.LaplaceMechanism(scale=2).potential("count", n, released=502.2)
    ...     pmd.LaplaceMechanism(scale=6).potential("total", total, released=238.5)
    ...     idata = pm.sample(step=[pm.NUTS([mu]), pmd.DapperStep([x]), pmd.SizeStep([n])])
    """

    name = "size"
    stats_dtypes_shapes = {WARNING_STAT: WARNING_TYPE}  # noqa: RUF012 (PyMC's)
    _state_class = SizeStepState
    _takes = "numbers of records"

    def _build(self, model: Model, options: dict[str, Any], point: PointType) -> None:
        readings = self._reading or [read_size(model, x) for x in self._moved]
        self._stage("Checking")
        self._sizes = [_Size(check_size(reading, point)) for reading in readings]
        self._givens = [size.given for size in self._sizes]
        self._start_chain(0, 0)
        self._when_read(partial(self._compile, options))

    def _compile(self, options: dict[str, Any]) -> None:
        """Compile the log-density at all numbers of records, and compare it with the model's."""
        self._stage("Compiling")
        for size in self._sizes:
            size.compile(options)

    def _start_chain(self, tune: int, draws: int) -> None:
        self.steps_done = 0
        self.tuning_steps = tune
        self.expect(draws)
        self.at_the_end = [0.0] * len(self._sizes)

    def expect(self, draws: int) -> None:
        """Expect so many iterations after tuning: the room is judged at the last."""
        self.all_steps = self.tuning_steps + draws

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Draw each number of records given everything else."""
        point = dict(point)
        drawn = self.steps_done - self.tuning_steps
        for k, size in enumerate(self._sizes):
            at_the_end = size.update(point, self.rng)
            if at_the_end is None:
                # Other steps may find a possible state at the start, and have had their turn then.
                if drawn > 0:
                    raise SamplingError(size.impossible())
            elif drawn >= 0:
                self.at_the_end[k] += at_the_end
        self.steps_done += 1
        ends = self.steps_done == self.all_steps
        return point, [{WARNING_STAT: self._near_the_end() if ends else None}]

    @property
    def transitions(self) -> Sequence[Transition]:
        """A draw of each number."""
        return [size.transition for size in self._sizes]

    def ordinary(self) -> int:
        """Until tuning ends, from the second draw on, and until a chain's last draw."""
        drawn = self.steps_done - self.tuning_steps
        return -drawn if drawn <= 0 else self.all_steps - self.steps_done - 1

    def statistics(self, n: int, reports: Sequence[np.ndarray]) -> list[dict[str, Any]]:
        """Make the statistics of n draws; an error says that one isn't possible."""
        if self.steps_done > self.tuning_steps and any((x[:, 0] < 0).any() for x in reports):
            raise SamplingError("no number is possible")
        return [{WARNING_STAT: None} for _ in range(n)]

    def passed(self, n: int, reports: Sequence[np.ndarray]) -> None:
        """Count n draws, and add up how near the end they came."""
        for k, x in enumerate(reports if self.steps_done > self.tuning_steps else ()):
            for at_the_end in x[:, 1].tolist():  # not by `sum`, which rounds otherwise
                self.at_the_end[k] += at_the_end
        self.steps_done += n

    def _near_the_end(self) -> SamplerWarning | None:
        """Warn of numbers whose posterior comes near the end of the room."""
        draws = self.all_steps - self.tuning_steps
        warnings = [
            size.near_the_end()
            for size, total in zip(self._sizes, self.at_the_end, strict=True)
            if draws > 0 and total / draws > NEAR_THE_END and size.may_be_larger
        ]
        return warning_of(" ".join(warnings)) if warnings else None

    def describe(self) -> str:
        """Describe how the model was read.

        Returns
        -------
        str
            For each number of records: the records and their room, the factors that decide, and
            whether rows are shuffled.
        """
        return "\n".join(size.describe() for size in self._sizes)

    def __repr__(self) -> str:
        """Summarise how the model was read."""
        readings = [size.reading for size in self._sizes]
        return f"<SizeStep: {', '.join(f'{x.name} of {x.room}' for x in readings)}>"


class _Size:
    """One number of records: the log-density at each, and a draw."""

    def __init__(self, checked: CheckedSizes):
        self._checked = checked
        self.reading: SizeReading = checked.reading
        reading = self.reading
        data = SharedData(reading, f"the SizeStep for '{reading.name}'")
        self._records = ", ".join(f"'{x}'" for x in reading.names(reading.records))
        self._factors = ", ".join(f"'{x}'" for x in reading.factors)
        self._moves = (*(x.name for x in reading.records), reading.size.name)
        self.given = Given(reading.parameters, data)
        self._last = reading.room + 1 - max(1, round(LAST_PART * reading.room))

    def compile(self, options: dict[str, Any]) -> None:
        self._draw = compile_draw(self.reading, self._last, options)
        # If nobody is present, nothing changes places.
        nobody = {**self._checked.point, self._moves[-1]: np.zeros((), self.reading.size.dtype)}
        *_, log_weights = self._drawn(nobody, np.random.default_rng(0))
        expected, allowed = self._checked.log_density, self._checked.tolerance
        for n in np.flatnonzero(~agree(log_weights, expected, allowed))[:1]:
            what = f"at {self.reading.name} = {n} the compiled log-density is"
            check_compiled(what, log_weights[n], expected[n], allowed)

    @property
    def transition(self) -> Transition:
        """The draw, which reports the drawn number and the probability of the end."""
        *records, number = self._moves
        takes = (number, *records, *self.given.names, *self.given.data.values)
        return Transition(self._draw, takes, self._moves, (((2,), "float64"),))

    def _drawn(self, point: PointType, rng: np.random.Generator) -> tuple[Any, ...]:
        *records, number = arrays_of(point, self._moves)
        return self._draw(rng, number, *records, *self.given(point))

    def update(self, point: PointType, rng: np.random.Generator) -> float | None:
        """Replace the present number by a draw; return the probability of the end.

        If no number is possible, returns None, and the number unchanged. The first rows are
        permuted.
        """
        *values, outcome, _ = self._drawn(point, rng)
        point.update(zip(self._moves, values, strict=True))
        drawn, at_the_end = outcome.tolist()
        return None if drawn < 0 else at_the_end

    def impossible(self) -> str:
        """Make the error that no number is possible."""
        reading = self.reading
        return (
            f"no number '{reading.name}' from 0 to {reading.room} is possible, after tuning: with "
            f"its prior and {self._factors}, the log-density is -inf or nan at each. If the "
            f"released values need more records, give {self._records} more room; else look for a "
            "wrong unit, a wrong scale or nan in what was released, or pass a start that fits, as "
            "in pm.sample(initvals={...})"
        )

    @property
    def may_be_larger(self) -> bool:
        """Whether the room cuts off larger numbers; not for a number among known people."""
        prior = self.reading.model[self.reading.name].owner.op
        return not (self._checked.ends_with_room and isinstance(prior, OF_SO_MANY))

    def near_the_end(self) -> str:
        """Make the warning that the posterior comes near the end of the room."""
        name, room = self.reading.name, self.reading.room
        where = "where the room for its records ends"
        remedy = "Give"
        if self._checked.ends_with_room:
            where = "where its prior and the room for its records end"
            remedy = f"If '{name}' isn't known to be at most {room}, raise both, and give"
        return (
            f"the posterior of '{name}' comes near {room}, {where}: larger values are cut off. "
            f"{remedy} {self._records} more room: a longer first axis, such as {2 * room}, and as "
            "many rows in pmd.present"
        )

    def describe(self) -> str:
        reading = self.reading
        shuffled = (
            "Present records are shuffled before each draw: their order doesn't matter."
            if reading.tied is None
            else f"Records aren't shuffled, since {reading.tied}: the first '{reading.name}' of "
            "them are present, and those near the end come and go first."
        )
        return (
            f"Draws '{reading.name}' from its conditional distribution on 0, ..., "
            f"{reading.room}, given all records.\n"
            f"Records that the first '{reading.name}' of are present: {self._records}, with "
            f"room for {reading.room}\n"
            f"Factors that decide, beside its prior: {self._factors}\n"
            f"{shuffled}"
        )
