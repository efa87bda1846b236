"""Shared base of all steps: how they are called and built, shared data, and their output."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from pymc import Model
from pymc.step_methods import BlockedStep
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable
from rich.progress import TextColumn
from rich.table import Column

from pymc_dapper.backend.accelerate.switch import once_more_without
from pymc_dapper.backend.internals import PointType, RandomGenerator
from pymc_dapper.backend.iterations import Transition
from pymc_dapper.backend.named_dims import same_named
from pymc_dapper.checks import options
from pymc_dapper.context import model_to_read, the_model
from pymc_dapper.graphs.asked_once import answer
from pymc_dapper.graphs.checks import check_parameters
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import agree
from pymc_dapper.html import unfolding
from pymc_dapper.steps.building import building, telling_why, tells_why
from pymc_dapper.steps.data import SharedData
from pymc_dapper.steps.progress import stage
from pymc_dapper.steps.variables import (
    chain_generator,
    check_call,
    complete_point,
    parameter_values,
)


def arrays_of(point: Mapping[str, Any], names: Sequence[str]) -> list[np.ndarray]:
    """Take values out of a point as compiled functions want them."""
    return [np.asarray(point[name], None, "C") for name in names]


class Given:
    """Inputs of a compiled function besides the moved variables: other variables, shared data.

    The variables may be anything with the names of value variables.
    """

    def __init__(self, values: Sequence[Variable], data: SharedData):
        self.names = [x.name for x in values]
        self.data = data

    def __call__(self, point: PointType) -> list[np.ndarray]:
        """Return the values at a point, and then those of the data."""
        return arrays_of(point, self.names) + self.data.values


class Step(BlockedStep):
    """A step of this package, built from a reading of a model.

    Its constructor begins with :meth:`_init`, takes the reading from :meth:`of_reading` or reads
    the model itself, and lists the other inputs of its compiled functions in ``_givens``. It makes
    all refusals before it ends with :meth:`_when_read`, which compiles. A chain begins with
    :meth:`_data_read` and :meth:`_start_chain`.
    """

    _takes: ClassVar[str] = "parameters"
    """What its variables are called in messages."""
    _n_by_position: ClassVar[int] = 0
    """How many arguments may be passed by position after the variables."""
    _column: ClassVar[tuple[str, str, str] | None] = None
    """Column of the progress bar: a statistic, its format and the heading."""

    stats_dtypes: list[dict[str, Any]]
    stats_dtypes_shapes: dict[str, tuple[type, list[int] | None]] = {}  # noqa: RUF012 (PyMC's)
    _reading: Any = None
    _givens: Sequence[Given] = ()
    _check_releases: Callable[[], None] | None = None
    """Compares releases with the model, once more when shared data have changed."""
    _waits: bool = False
    _left: Callable[[], None] | None = None

    def __new__(cls, vars: Variable | Sequence[Variable] = (), *args: Any, **kwargs: Any) -> Any:
        """Refuse arguments on which PyMC's own constructor would fail."""
        check_call(cls.__name__, vars, args[cls._n_by_position :], kwargs, cls._takes)
        return super().__new__(cls, vars, *args, **kwargs)

    @classmethod
    def of_reading(
        cls, reading: Any, vars: Sequence[TensorVariable], *args: Any, **kwargs: Any
    ) -> Self:
        """Build a step from an existing reading, which its constructor would read again.

        The reading is of these variables; the constructor takes the other arguments. Nothing is
        compiled before :meth:`compile` is called, so that other steps can refuse the model first.
        """
        step: Self = cls.__new__(cls, vars, *args, **kwargs)
        # Otherwise they are several steps, each built from its own reading.
        if isinstance(step, cls):
            step._reading, step._waits = reading, True
            step.__init__(vars, *args, **kwargs)  # type: ignore[misc]
        return step

    @tells_why
    def __init__(
        self,
        vars: Variable | Sequence[Variable],
        *,
        model: Model | None = None,
        rng: RandomGenerator = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        initial_point: PointType | None = None,
    ):
        model, options, point = self._init(vars, model, rng, blocked, compile_kwargs, initial_point)
        self._build(model, options, point)

    def _build(self, model: Model, options: dict[str, Any], point: PointType) -> None:
        """Read the model and compile, in steps without arguments of their own."""

    def compile(self) -> None:
        """Compile a step that was built by :meth:`of_reading`; of others, that is done."""
        if self._left is not None:
            left, self._left = self._left, None
            with telling_why(type(self).__name__, self.vars):
                once_more_without(left)

    def _repr_html_(self) -> str:
        return unfolding(repr(self), self.describe())

    def describe(self) -> str:
        """Describe what the step does, in words."""
        return repr(self)

    def _when_read(self, compile_all: Callable[[], None]) -> None:
        """Compile, unless that is to wait until other steps have read the model, too."""
        if self._waits:
            self._left = compile_all
        else:
            once_more_without(compile_all)

    def _compile_in_chain(self, compile_more: Callable[[], None], *, own_mode: bool) -> None:
        """Compile what a chain turned out to need; see :func:`building`."""
        with telling_why(type(self).__name__, self.vars), building(own_mode=own_mode):
            once_more_without(compile_more)

    _values = staticmethod(parameter_values)
    """Converts a user's variables to value variables."""

    def _init(
        self,
        vars: Variable | Sequence[Variable],
        model: Model | None,
        rng: RandomGenerator,
        blocked: bool,
        compile_kwargs: Mapping[str, Any] | None,
        initial_point: PointType | None,
    ) -> tuple[Model, dict[str, Any], PointType]:
        """Check the arguments of all steps: model, options for compilation, and a complete point.

        The model returned is the one to read.
        """
        self._given_values, model = the_model(model).value_vars, model_to_read(model)
        compile_kwargs = options(compile_kwargs, "compile_kwargs")
        self._will_move(self._values(vars, model))
        self.blocked = blocked
        self.rng = chain_generator(rng)
        names = ", ".join(f"'{model.values_to_rvs[x].name}'" for x in self._moved)
        self._built = f"{type(self).__name__} for {names}"
        with suppress(RuntimeError):  # a density that PyMC can't derive is told where it's needed
            answer(model, "parameters are possible", partial(check_parameters, model))
        return model, compile_kwargs, complete_point(model, initial_point)

    def _will_move(self, values: Sequence[TensorVariable]) -> None:
        """Return the value variables that the step moves, of the read and of the given model."""
        self._moved = list(values)
        self.vars = same_named(self._given_values, self._moved)

    def _stage(self, doing: str) -> None:
        """Report the present stage of building the step, such as "Compiling"."""
        stage(f"{doing} {self._built}")

    def _add_stat(self, name: str, dtype: type, *shape: int) -> None:
        """Add a statistic that only some steps of a class have."""
        self.stats_dtypes_shapes = {**self.stats_dtypes_shapes, name: (dtype, list(shape))}
        # PyMC's own backend makes arrays of a type; a shape can only be a part of it.
        own = np.dtype((dtype, shape)) if shape else dtype
        self.stats_dtypes = [{**self.stats_dtypes[0], name: own}]

    @property
    def transitions(self) -> Sequence[Transition]:
        """An iteration as compiled functions; none if it changes nothing, or needs more."""
        return ()

    def ordinary(self) -> int:
        """Count the next iterations in which the step makes its transitions and nothing else."""
        return 0

    def statistics(self, n: int, reports: Sequence[np.ndarray]) -> list[dict[str, Any]]:
        """Make the statistics of n such iterations from reported arrays, a row for each."""
        return [{} for _ in range(n)]

    def passed(self, n: int, reports: Sequence[np.ndarray]) -> None:
        """Count n iterations that :meth:`step` didn't make; ``reports`` are theirs."""

    def expect(self, draws: int) -> None:
        """Expect so many iterations after tuning."""

    def setup_chain(self, rng: RandomGenerator, tune: int, draws: int) -> None:
        """Start a chain: use its generator, forget tuning, read shared data.

        Raises
        ------
        ValueError
            If shared data changed since the step was built in more than their values: in shape, or
            in the model structure that they define.
        """
        super().setup_chain(rng, tune, draws)
        changed = [x for given in self._givens for x in given.data.read()]
        self._data_read()
        if changed and self._check_releases is not None:
            self._check_releases()
        self._start_chain(tune, draws)

    def _data_read(self) -> None:
        """Check shared data that determined the reading; they may have changed."""

    def _start_chain(self, tune: int, draws: int) -> None:
        """Forget the last chain."""

    @classmethod
    def _progressbar_config(
        cls, n_chains: int = 1
    ) -> tuple[list[TextColumn], dict[str, list[float]]]:
        if cls._column is None:
            return [], {}
        stat, written, heading = cls._column
        # Other columns are cut in a narrow terminal, to headings of three letters.
        table_column = Column(heading, no_wrap=True, min_width=len(heading))
        column = TextColumn(f"{{task.fields[{stat}]:{written}}}", table_column=table_column)
        return [column], {stat: [0] * n_chains}

    @classmethod
    def _make_progressbar_update_functions(cls) -> tuple[Any, ...]:
        shown = [] if cls._column is None else [cls._column[0]]
        return (lambda stats: {stat: stats[stat] for stat in shown},)


def check_compiled(what: str, compiled: float, expected: float, tolerance: float) -> None:
    """Refuse a compiled log-density that isn't the model's, up to a relative rounding error.

    The message begins with ``what``, such as "the compiled log-density is".
    """
    if not agree(compiled, expected, tolerance):
        raise ReadingError(
            f"{what} {compiled:.10g} where the model has {expected:.10g}. If the model uses an "
            "operation of your own, its numba implementation differs from its `perform`, or an "
            "older one was loaded from PyTensor's cache: see docs/operations.md. Otherwise this is "
            "a fault of pymc_dapper's: please report the model"
        )
