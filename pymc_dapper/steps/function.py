"""FunctionStep: parameters drawn by a function of the user's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pymc import Model
from pymc.exceptions import SamplingError
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import (
    PointType,
    RandomGenerator,
    StatsType,
    StepMethodState,
    dataclass_state,
)
from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.checks import function
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.view import Reading, view_of
from pymc_dapper.steps.base import Given, Step
from pymc_dapper.steps.data import SharedData

Draw = Callable[[np.random.Generator, Mapping[str, np.ndarray]], Mapping[str, Any]]


@dataclass_state
class FunctionStepState(StepMethodState):
    """The generator only: what a user's function remembers isn't known."""


class FunctionStep(Step):
    """Draw parameters with a function of your own.

    For a conditional distribution that you can draw from and :class:`ConjugateStep` doesn't know,
    or for a Markov step of your own. This is ``posterior_f`` of R's dapper.

    Parameters
    ----------
    vars : variable or sequence of variables
        Free random variables (or their value variables) of the model that the function draws.
    draw : callable
        ``draw(rng, point) -> {name: value}``. ``rng`` is the chain's NumPy ``Generator``: take all
        randomness from it. ``point`` holds the present value of every free variable of the model
        by its name, in its natural space (a probability is a probability, not its logit), as
        arrays that can't be written to. The result holds a new value for each of ``vars``.
    model : Model, optional
        The model. Taken from the context if not given.
    rng : int, Generator, ..., optional
        Seed of the step. ``pm.sample`` passes each chain its own generator.
    blocked : bool, default True
        Must be True: one function draws all of ``vars``.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    initial_point : dict, optional
        Values of the model's value variables, to try the function at. Those not given are taken
        from the model's own initial point.

    Raises
    ------
    ValueError
        If the function, tried at the initial point, fails or doesn't return a draw of the
        variables: other names, a wrong shape, values outside their support, or a point with zero
        density.

    Notes
    -----
    The chain's target stays p(theta, records given released values) if the function leaves the
    conditional distribution of ``vars`` given everything else in ``point`` invariant. That holds
    for an exact draw from this conditional. It must not use anything that was computed from earlier
    draws, such as an adapted scale, after tuning.

    Each draw's shape, support and log-density (of all factors that depend on ``vars``) are checked;
    that costs one evaluation of these factors.

    Examples
    --------
    >>> def draw(rng, point):
    ...     successes = point["record"].sum()
    ...     return {"p": rng.beta(1 + successes, 1 + len(point["record"]) - successes)}
    >>> with model:
    ...     idata = pm.sample(step=[pmd.DapperStep([record]), pmd.FunctionStep([p], draw)])
    """

    name = "function"
    _state_class = FunctionStepState
    _takes = "parameters and their draw"
    _n_by_position = 1

    def __init__(
        self,
        vars: Variable | Sequence[Variable],
        draw: Draw,
        *,
        model: Model | None = None,
        rng: RandomGenerator = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        initial_point: PointType | None = None,
    ):
        function(draw, "draw", "draw(rng, point)")
        if blocked is not True:
            raise ValueError("FunctionStep draws all its variables together: blocked must be True")
        model, options, point = self._init(vars, model, rng, blocked, compile_kwargs, initial_point)
        self._draw = draw
        self._checked = _CheckedDraw(model, self._moved, options)
        self._givens = [self._checked.given]
        try:
            self._drawn(point, np.random.default_rng(0))
        except SamplingError as error:
            raise ValueError(f"tried at the initial point, {error}") from error.__cause__

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Call the function, and check its draw."""
        return {**point, **self._drawn(point, self.rng)}, [{}]

    def _drawn(self, point: PointType, rng: np.random.Generator) -> PointType:
        natural = self._checked.natural(point)
        try:
            drawn = self._draw(rng, natural)
        except MemoryError:
            raise
        except Exception as error:
            raise SamplingError(
                f"the function given to FunctionStep for {self._checked.names} raised "
                f"{type(error).__name__}: {error}"
            ) from error
        return self._checked.to_values(drawn, point)

    def __repr__(self) -> str:
        """Describe what is drawn."""
        return f"<FunctionStep: {self._checked.names}>"


class _CheckedDraw:
    """Natural values of all variables for the function; its draw, checked, for the chain."""

    def __init__(
        self, model: Model, values: Sequence[TensorVariable], compile_kwargs: dict[str, Any]
    ):
        rvs = [model.values_to_rvs[value] for value in values]
        view = view_of(model)
        self.names = ", ".join(f"'{rv.name}'" for rv in rvs)
        self._value_names = [value.name for value in values]
        self._shapes = {rv.name: view.shape(rv) for rv in rvs}
        self._dtypes = {rv.name: np.dtype(rv.dtype) for rv in rvs}

        # From a draw to the chain's values, and to the log-density of everything that depends on
        # it.
        thetas = [rv.type(name=rv.name) for rv in rvs]
        instead = dict(zip(rvs, thetas, strict=True))
        new = view.forward(instead)
        factors = view.dependent_factors(values, jacobian=False)
        self._factor_names = list(factors)
        own = [view.values[x] for x in values]
        at_new = rebuild(list(factors.values()), dict(zip(own, new, strict=True)))
        checks = [*new, *(x.sum().astype("float64") for x in at_new)]

        # From the chain's values to natural ones.
        self._free_names = [rv.name for rv in model.free_RVs]
        naturals = view.at_values(model.free_RVs)

        outputs = [*checks, *naturals]
        reading = Reading(view, view.data_in(outputs))
        others = view.values_in(outputs)
        self.given = Given(others, SharedData(reading, f"the FunctionStep of {self.names}"))
        given = [*others, *reading.data.values()]
        self._check = JitFunction([*thetas, *given], outputs[: len(checks)], model, compile_kwargs)
        self._naturals = JitFunction(given, outputs[len(checks) :], model, compile_kwargs)

    def natural(self, point: PointType) -> dict[str, np.ndarray]:
        """Give all free variables in their natural space, as arrays that can't be written to."""
        values = [np.asarray(x).view() for x in self._naturals(*self.given(point))]
        for value in values:
            value.flags.writeable = False
        return dict(zip(self._free_names, values, strict=True))

    def to_values(self, drawn: Any, point: PointType) -> PointType:
        """Check a draw, and turn it into values of the value variables."""
        if not isinstance(drawn, Mapping):
            raise self._wrong(f"returned {type(drawn).__name__}, not a dict of values by name")
        if drawn.keys() != self._shapes.keys():
            raise self._wrong(
                f"returned values for {sorted(drawn)}, where it draws {sorted(self._shapes)}"
            )
        thetas = [self._array(name, drawn[name]) for name in self._shapes]
        results = self._check(*thetas, *self.given(point))
        values, log_densities = results[: len(thetas)], results[len(thetas) :]
        for name, log_density in zip(self._factor_names, log_densities, strict=True):
            if not np.isfinite(log_density):
                drew = ", ".join(f"'{n}' = {x}" for n, x in zip(self._shapes, thetas, strict=True))
                raise self._wrong(
                    f"drew {drew}, where the log-density of '{name}' is {float(log_density)}"
                )
        for name, theta, value in zip(self._shapes, thetas, values, strict=True):
            if not np.all(np.isfinite(value)):
                raise self._wrong(f"drew '{name}' = {theta}, which isn't inside its support")
        return dict(zip(self._value_names, map(np.asarray, values), strict=True))

    def _array(self, name: str, value: Any) -> np.ndarray:
        array = np.asarray(value)
        shape, dtype = self._shapes[name], self._dtypes[name]
        if array.shape != shape:
            raise self._wrong(
                f"returned '{name}' of shape {array.shape}, where the model has shape {shape}"
            )
        if array.dtype.kind not in "biuf":
            raise self._wrong(f"returned '{name}' of dtype {array.dtype}: it must be real numbers")
        if dtype.kind in "iu" and not np.array_equal(array, np.round(array)):
            raise self._wrong(f"drew '{name}' = {array}, where the model has whole numbers")
        return np.asarray(array, dtype=dtype, order="C")

    def _wrong(self, what: str) -> SamplingError:
        return SamplingError(f"the function given to FunctionStep for {self.names} {what}")
