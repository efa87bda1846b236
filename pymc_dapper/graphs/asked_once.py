"""Initial points and log-densities of a model, computed by PyMC once for all readers.

Several readers ask PyMC for them, and PyMC computes them anew each time. Within :func:`asked_once`,
answers are cached.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np
from pymc import Model
from pymc.initial_point import make_initial_point_expression
from pytensor.graph import Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import PointType
from pymc_dapper.backend.plain_models import parts_of, same_parts
from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python

_answers: ContextVar[dict[tuple[Any, ...], tuple[list[Any], Any]] | None]
_answers = ContextVar("answers", default=None)
"""By model and question: the model's contents at the time, and the answer."""


@contextmanager
def asked_once() -> Iterator[None]:
    """Cache the answers until the context ends. Don't set the models' data meanwhile."""
    if _answers.get() is not None:
        yield
        return
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def initial_point(model: Model) -> PointType:
    """Return the initial point, by names of value variables; the caller may change it.

    Raises
    ------
    ReadingError
        If a variable's shape doesn't fit its data.
    """
    point = answer(model, "start", partial(_start, model))
    return {name: value.copy() for name, value in point.items()}


def _start(model: Model) -> PointType:
    """Compute the initial point as PyMC does, without compiling what is needed once."""
    ask = partial(make_initial_point_expression, free_rvs=model.free_RVs, return_transformed=True)
    given, transforms = model.rvs_to_initial_values, model.rvs_to_transforms
    try:
        starts = ask(rvs_to_transforms=transforms, initval_strategies=given)
        values = compile_in_python(model, [], starts)()
    except FAILURES:
        starts = ask(rvs_to_transforms={}, initval_strategies={})
        for rv, start in zip(model.free_RVs, starts, strict=True):
            try:
                compile_in_python(model, [], [start])()
            except FAILURES as error:
                raise misshapen(model, rv, error) from error
        raise
    return {x.name: value for x, value in zip(model.value_vars, values, strict=True)}


def misshapen(model: Model, variable: Variable, error: Exception) -> ReadingError:
    """Make the error that the shapes of a variable and of the data don't fit together."""
    data = [x for x in model.data_vars if x in ancestors([variable])]
    shapes = ", ".join(f"'{x.name}' {np.shape(x.get_value())}" for x in data)
    reason = str(error).partition("\n")[0].rstrip(".")
    return ReadingError(
        f"'{variable.name}' can't be evaluated with the shapes of the variables and of the data "
        f"({shapes or 'it has none'}): {reason}. Data set to another length need records with "
        "shape=data.shape[0]. A released table needs the shape of the table it was made from"
    )


def log_densities(
    model: Model, variables: Sequence[Variable], *, jacobian: bool = True
) -> list[TensorVariable]:
    """Return the log-density of random variables and Potentials, as ``model.logp`` with sum=False.

    Raises
    ------
    NotImplementedError, RuntimeError
        If PyMC can't derive the log-density of one of the model's random variables.
    """
    found: dict[Variable, TensorVariable] = {}
    # PyMC derives those of all random variables, whichever are requested.
    for every in (model.basic_RVs, model.potentials):
        if not set(every).isdisjoint(variables):
            ask = partial(model.logp, every, jacobian=jacobian, sum=False)
            found |= zip(every, answer(model, ("logp", jacobian, *every), ask), strict=True)
    return [found[x] for x in variables]


def answer[X](model: Model | None, question: Any, ask: Callable[[], X]) -> X:
    """Return the answer to a question, cached as long as the model doesn't change.

    A question about a graph alone has no model.
    """
    answers = _answers.get()
    if answers is None:
        return ask()
    parts = [] if model is None else parts_of(model)
    known = answers.get((model, question))
    if known is None or not same_parts(known[0], parts):
        known = answers[model, question] = (parts, ask())
    return known[1]
