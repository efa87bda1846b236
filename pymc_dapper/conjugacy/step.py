"""ConjugateStep: exact draws of parameters from their conditional distribution."""

import sys
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Variable
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.generators import Drawn, DrawnInPython
from pymc_dapper.backend.internals import PointType, StatsType, StepMethodState, dataclass_state
from pymc_dapper.backend.iterations import Transition
from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.conjugacy.check import check_conditional
from pymc_dapper.conjugacy.conditional import Conditional, read_conditionals
from pymc_dapper.conjugacy.families import DIRICHLET
from pymc_dapper.conjugacy.weights import WEIGHTS
from pymc_dapper.graphs.asked_once import answer
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.rebuild import Graph, rebuild, same_function, with_constants_as_inputs
from pymc_dapper.graphs.view import Reading
from pymc_dapper.steps.base import Given, Step
from pymc_dapper.steps.data import SharedData

MANY = 3
"""Tables that differ in constants alone, such as their shapes, share a function if there are so
many."""


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
    - Gamma, or Exponential, of all weights of categories whose normalised products are the
      probabilities of a Categorical (see `pymc_dapper.conjugacy.weights`);
    - InverseGamma: variance of a Normal, LogNormal or HalfNormal, scale of an Exponential or Gamma;
    - Normal and MvNormal: anything that enters means of Normal, LogNormal or MvNormal variables
      linearly.

    A parameter may have many children, of several kinds. It may be indexed, broadcast or reshaped
    on the way to them.

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

    def _build(self, model: Model, options: dict[str, Any], point: PointType) -> None:
        rvs = [model.values_to_rvs[x] for x in self._moved]
        conditionals = self._reading or read_conditionals(model, rvs)
        self._stage("Checking")
        for conditional in conditionals:
            check_conditional(conditional, point)
        self._conditionals = conditionals
        self._draws = _Draws(conditionals)
        self._givens = [self._draws.given]
        self._when_read(partial(self._compile, options, point))

    def _compile(self, options: dict[str, Any], point: PointType) -> None:
        """Compile the draws, and draw once."""
        self._stage("Compiling")
        self._draws.compile(options)
        # PyTensor compiles at the first call. Here, forked workers inherit the result.
        self._update(point, np.random.default_rng(0))

    def _update(self, point: PointType, rng: np.random.Generator) -> PointType:
        values = self._draws.draw(rng, *self._draws.given(point), *self._draws.constants)
        return {**point, **dict(zip(self._draws.names, values, strict=True))}

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """Draw each block of parameters given the present values of all other variables."""
        return self._update(point, self.rng), [{}]

    @property
    def transitions(self) -> Sequence[Transition]:
        """The compiled draws of all blocks."""
        draws = self._draws
        takes = (*draws.given.names, *draws.given.data.values, *draws.constants)
        return [Transition(draws.draw, takes, tuple(draws.names))]

    def ordinary(self) -> int:
        """Count all iterations: each makes draws only."""
        return sys.maxsize

    @property
    def is_one_block(self) -> bool:
        """Whether all variables are drawn together, from their joint conditional distribution."""
        return len(self._conditionals) == 1

    @property
    def weights(self) -> list[TensorVariable]:
        """Return the weights of categories among the parameters."""
        return [rv for x in self._conditionals if x.family is WEIGHTS for rv in x.rvs]

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
            present = conditional.present.items()
            there = {rv.name: f"the first {n.name} of {rv.name}" for rv, n in present}
            children = ", ".join(there.get(name, name) for name in conditional.children)
            children = children or "nothing: it is drawn from its prior"
            lines.append(f"{names} ~ {conditional.family.name}, given {children}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Summarise the conditionals."""
        return f"<ConjugateStep: {self.describe().replace(chr(10), '; ')}>"


class _Draws:
    """Blocks of parameters that are drawn one after the other by one compiled function."""

    def __init__(self, conditionals: Sequence[Conditional]):
        self.names = [x.name for conditional in conditionals for x in conditional.values]
        first = rng = random_generator_type("rng")
        view = conditionals[0].view
        data: dict[SharedVariable, TensorVariable] = {}
        drawn: dict[Variable, Variable] = {}
        for conditional in conditionals:
            rng, values = _drawn(conditional, rng, drawn)
            drawn.update(zip(conditional.values, values, strict=True))
            data.update(conditional.data)
        self._model, outputs = view.model, list(drawn.values())
        listed = ", ".join(f"'{rv.name}'" for x in conditionals for rv in x.rvs)
        shared = SharedData(Reading(view, data), f"ConjugateStep for {listed}")
        others = view.values_in(outputs)
        self.given = Given(others, shared)
        self._graph: Graph = [first, *others, *data.values()], outputs
        self.constants: list[Any] = []
        """What the compiled function takes after values and data."""
        self._kind = self._find_kind() if [x.family for x in conditionals] == [DIRICHLET] else None

    def _find_kind(self) -> "_Kind":
        """Find the tables of probabilities that differ from this one in constants alone."""
        kinds = answer(self._model, "kinds of tables", list[_Kind])
        graph, self._known = with_constants_as_inputs(self._graph)
        kind = next((x for x in kinds if same_function(x.graph, graph)), None)
        if kind is None:
            kind = _Kind(graph, set())
            kinds.append(kind)
        kind.members.add(tuple(np.asarray(x).tobytes() for x in self._known))
        return kind

    def compile(self, compile_kwargs: dict[str, Any]) -> None:
        if self._kind is not None and len(self._kind.members) >= MANY:
            self._graph, self.constants = self._kind.graph, self._known
        # Parameters of one kind, such as tables of several columns, share a function.
        made = answer(self._model, ("draws", repr(compile_kwargs)), list[Any])
        draw = next((draw for known, draw in made if same_function(self._graph, known)), None)
        self.draw = copy(draw) if draw else JitFunction(*self._graph, self._model, compile_kwargs)
        made.append((self._graph, self.draw))


class _Kind(NamedTuple):
    """Tables of probabilities that are drawn alike, such as those of unequal columns."""

    graph: Graph
    """A draw of any of them, whose last inputs are the constants."""
    members: set[tuple[bytes, ...]]
    """The constants of each."""


def _drawn(
    conditional: Conditional, rng: Variable, known: Mapping[Variable, Variable]
) -> tuple[Variable, list[TensorVariable]]:
    """Draw a block, given new values of others: the generator after that, and values."""
    family, shapes = conditional.family, conditional.shapes
    length, parameters = sum(map(prod, shapes)), rebuild(conditional.parameters, known)
    if family.kernel is None:
        rng, flat = DrawnInPython(family.draw, length)(rng, *parameters)
    else:
        width = shapes[0][-1] if shapes[0] else 1
        rng, flat = Drawn(family.kernel)(rng, length, width, *(x.flatten() for x in parameters))
    if family.positive and len(shapes) > 1:  # one logarithm of all: most transforms are one
        parts = [pt.exp(x) for x in split(pt.log(flat), shapes)]
    else:
        parts = split(flat, shapes)
    thetas = dict(zip(conditional.thetas, parts, strict=True))
    return rng, rebuild(conditional.to_values, {**known, **thetas})
