"""ConjugateStep: exact draws of parameters from their conditional distribution."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from pymc.model import Model
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import (
    PointType,
    RandomGenerator,
    StatsType,
    StepMethodState,
    dataclass_state,
)
from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.conjugacy.check import check_conditional
from pymc_dapper.conjugacy.conditional import Conditional, read_conditionals
from pymc_dapper.steps.base import Given, Step
from pymc_dapper.steps.building import tells_why
from pymc_dapper.steps.data import SharedData


@dataclass_state
class ConjugateStepState(StepMethodState):
    """Nothing but the generator: each draw starts afresh."""


class ConjugateStep(Step):
    """Draw parameters exactly from their conditional distribution given everything else.

    The step finds, in the model's graph, the variables whose distribution depends on a parameter,
    and how. If their likelihoods are conjugate to its prior, the conditional is of the prior's
    family, and a draw from it costs microseconds.

    Parameters
    ----------
    vars : variable or sequence of variables
        Free random variables (or their value variables) of the model. Normal and MvNormal ones
        that the density ties together are drawn jointly; others one after the other.
    model : Model, optional
        The model. Taken from the context if not given.
    rng : int, Generator, ..., optional
        Seed of the step. ``pm.sample`` passes each chain its own generator.
    blocked : bool, default True
        If False, each variable gets a step of its own: normal ones then aren't drawn jointly.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    initial_point : dict, optional
        Values of the model's value variables, at which the conditional is checked if the prior
        can't be drawn from. Missing ones come from the model's own initial point.

    Raises
    ------
    NotConjugateError
        If a conditional isn't of a known family. The message names the variable that breaks it.

    Notes
    -----
    Priors and the children they are conjugate to (see `pymc_dapper.conjugacy.rules` for the
    formulas):

    - Beta, or Uniform on [0, 1]: Bernoulli, Binomial, Geometric, NegativeBinomial;
    - Dirichlet: Categorical, Multinomial;
    - Gamma, or Exponential: Poisson (also with a known exposure), Exponential, rate of a Gamma,
      scale of an InverseGamma, precision of a Normal, LogNormal or HalfNormal;
    - InverseGamma: variance of a Normal, LogNormal or HalfNormal, scale of an Exponential or Gamma;
    - Normal and MvNormal: anything that enters means of Normal, LogNormal or MvNormal variables
      linearly.

    A parameter may have many children, of several kinds, and be indexed, broadcast or reshaped on
    the way to them.

    The conditional is compared with the model's own log-density when the step is built. More pairs
    can be registered: :func:`pymc_dapper.conjugacy.conjugate_rule`.

    Examples
    --------
    >>> with pm.Model():
    ...     b = pm.Normal("b", 0, 10, shape=3)
    ...     v = pm.InverseGamma("v", 2, 2)
    ...     pm.Normal("y", b[0] + X @ b[1:], pt.sqrt(v), observed=y)
    ...     idata = pm.sample(step=[pmd.ConjugateStep([b, v])])
    """

    name = "conjugate"
    _state_class = ConjugateStepState

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
        model, options, point = self._begin(
            vars, model, rng, blocked, compile_kwargs, initial_point
        )
        rvs = [model.values_to_rvs[x] for x in self._moved]
        conditionals = self._reading or read_conditionals(model, rvs)
        self._stage("Checking")
        for conditional in conditionals:
            check_conditional(conditional, point)
        self._conditionals = conditionals
        given = [_given(conditional) for conditional in conditionals]
        self._givens = given
        self._when_read(partial(self._compile, options, given, point))

    def _compile(self, options: dict[str, Any], given: Sequence[Given], point: PointType) -> None:
        """Compile the parameters of the conditionals, and draw from each once."""
        self._stage("Compiling")
        self._draws = [
            _Draw(conditional, each, options)
            for conditional, each in zip(self._conditionals, given, strict=True)
        ]
        for draw in self._draws:
            # PyTensor compiles at the first call. Here, forked workers inherit the result.
            draw.update(dict(point), np.random.default_rng(0))

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Draw each block of parameters given the present values of all other variables."""
        point = dict(point)
        for draw in self._draws:
            draw.update(point, self.rng)
        return point, [{}]

    @property
    def is_one_block(self) -> bool:
        """Whether all variables are drawn together, from their joint conditional distribution."""
        return len(self._conditionals) == 1

    def describe(self) -> str:
        """Describe the conditionals.

        Returns
        -------
        str
            A line for each block of parameters: its family and the variables it depends on.
        """
        lines = []
        for conditional in self._conditionals:
            names = ", ".join(rv.name for rv in conditional.rvs)
            there = {rv.name: f"the first {n.name} of {rv.name}" for rv, n in _present(conditional)}
            children = ", ".join(there.get(name, name) for name in conditional.children)
            children = children or "nothing: it is drawn from its prior"
            lines.append(f"{names} ~ {conditional.family}, given {children}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Summarise the conditionals."""
        return f"<ConjugateStep: {self.describe().replace(chr(10), '; ')}>"


class _Draw:
    """One block of parameters: compiled parameters of its conditional, and a draw from it."""

    def __init__(self, conditional: Conditional, given: Given, compile_kwargs: dict[str, Any]):
        self.conditional = conditional
        self.given = given
        model = conditional.model
        self._value_names = [model.rvs_to_values[rv].name for rv in conditional.rvs]

        inputs = [*conditional.given, *conditional.data.values()]
        options: dict[str, Any] = {"model": model, "compile_kwargs": compile_kwargs}
        self._parameters = JitFunction(inputs, conditional.parameters, **options)
        self._to_values = None
        if conditional.to_values is not None:
            self._to_values = JitFunction(
                [*conditional.thetas, *inputs], conditional.to_values, **options
            )

    def update(self, point: PointType, rng: np.random.Generator) -> None:
        """Replace the point's present values by a draw."""
        given = self.given(point)
        conditional = self.conditional
        values: Sequence[np.ndarray] = conditional.split(
            conditional.draw(rng, *self._parameters(*given))
        )
        if self._to_values is not None:
            values = self._to_values(*values, *given)
        point.update(zip(self._value_names, values, strict=True))


def _given(conditional: Conditional) -> Given:
    """Name the variables on which a conditional distribution depends."""
    data = SharedData(conditional, f"ConjugateStep for {_names(conditional)}")
    return Given(conditional.given, data)


def _present(conditional: Conditional) -> list[tuple[TensorVariable, TensorVariable]]:
    """Return children with absent rows, and the number of present ones."""
    return [(rv, n) for rv, n in conditional.present.items() if rv.name in conditional.children]


def _names(conditional: Conditional) -> str:
    return ", ".join(f"'{rv.name}'" for rv in conditional.rvs)
